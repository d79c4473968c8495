import InletAgent
import InletCore
import InletJournal
import InletPipelines
import InletTestSupport
import SystemPackage
import Testing

@testable import InletAgent

/// Destinations beside each other: each has lanes of its own.
@Suite(.timeLimit(.minutes(8))) struct LaneTests {
    private static let connections = 8

    /// Files below a folder go to the destination of its name; those of one byte are small.
    private func scene(_ others: [String: ScriptedPipeline]) throws -> Scene {
        var scene = try Scene()
        scene.workers = 3
        // What hangs at the end is ended.
        scene.grace = .milliseconds(50)
        let pipelines = others.merging(["fast": scene.here]) { one, _ in one }
        scene.destinations = pipelines.map { .scripted($0.key, $0.value, smallLimit: 1, connections: Self.connections) }
        let routes = try pipelines.keys.sorted().map { name in
            var route = Route(name: name, key: try KeyTemplate("{dir}/{name}"), to: [name])
            route.match = RouteMatch(paths: [try GlobPattern("\(name)/**")])
            route.retry = scene.route.retry
            return route
        }
        (scene.route, scene.others) = (routes[0], Array(routes[1...]))
        return scene
    }

    private func drop(_ scene: Scene, _ name: String, big: Range<Int>, small: Range<Int>) throws {
        for number in big { try scene.drop(FilePath("\(name)/big-\(number)")) }
        for number in small { try scene.drop(FilePath("\(name)/small-\(number)"), "x") }
    }

    /// Whoever has as many on their way at once as alone, and never waits for another's end, takes no longer than alone.
    @Test func `a fast destination has all its places beside a slow one and one that hangs`() async throws {
        let (slow, hanging, slowGate, fastGate) = (ScriptedPipeline(), ScriptedPipeline(), Gate(), Gate())
        let scene = try scene(["slow": slow, "hanging": hanging])
        let all = scene.workers + Self.connections
        slow.always(.hold(slowGate, .deliver))
        hanging.always(.stall)
        scene.here.always(.hold(fastGate, .deliver))
        try await scene.run { stage in
            for name in ["slow", "hanging"] { try drop(scene, name, big: 0..<12, small: 0..<40) }
            try await eventually("both have all that they may have") {
                slow.record.running == all && hanging.record.running == all
            }
            try drop(scene, "fast", big: 0..<scene.workers, small: 0..<Self.connections)
            try await eventually("so has the fast one") { scene.here.record.running == all }
            fastGate.open()
            try drop(scene, "fast", big: scene.workers..<40, small: Self.connections..<200)
            try await eventually("all has arrived there") { scene.here.record.stored.count == 240 }
            #expect(slow.record.running == all && hanging.record.running == all)
            #expect(slow.record.orders.count == all && hanging.record.orders.count == all)
            slowGate.open()
            try await eventually("the slow one has all, too") { slow.record.stored.count == 52 }
            #expect(hanging.record.running == all)
        }
        for pipeline in [slow, hanging, scene.here] { #expect(pipeline.record.mostRunning <= all) }
    }

    /// Twenty lanes with three files each: twenty places of their own, and a pool for 35 more.
    @Test(arguments: [false, true])
    func `big transfers beyond the common pool begin when others hang or end`(hangsSoon: Bool) async throws {
        let names = (0..<20).map { "far-\($0)" }
        let gate = Gate()
        let pipelines = Dictionary(uniqueKeysWithValues: names.map { ($0, ScriptedPipeline()) })
        var scene = try scene(pipelines)
        scene.silence = hangsSoon ? .milliseconds(200) : .seconds(3600)
        let (all, places) = (20 * scene.workers, 20 + scene.workers + StallDetector.spare)
        for pipeline in pipelines.values { pipeline.always(.hold(gate, .deliver)) }
        let waiting = scene
        try await waiting.run { stage in
            for name in names { try drop(waiting, name, big: 0..<waiting.workers, small: 0..<0) }
            try await eventually("as many run as may") {
                stage.agent.control.live?.inFlight.count == (hangsSoon ? all : places)
            }
            try await eventually("each runs some") { pipelines.values.allSatisfy { $0.record.running > 0 } }
            // Small files never wait for a place.
            try drop(waiting, names[0], big: 0..<0, small: 0..<Self.connections)
            try await eventually("the small ones run") {
                pipelines[names[0]]?.record.running ?? 0 > Self.connections
            }
            gate.open()
            try await eventually("all has arrived") {
                pipelines.values.reduce(0) { $0 + $1.record.stored.count } == all + Self.connections
            }
        }
    }

    @Test func `small files at once are shared between destinations, and none gets less than a few`() throws {
        func shares(_ connections: [Int]) throws -> [Int] {
            let destinations = connections.enumerated().map { number, count in
                Destination.scripted("\(number)", ScriptedPipeline(), connections: count)
            }
            let board = DestinationRegistry(destinations, paused: [], uptimes: [:], workers: 1, log: try EventLog(nil))
            return try connections.indices.map { try #require(board.room(of: "\($0)")?.limits[.small]) }
        }
        #expect(try shares([256]) == [256])
        #expect(try shares([32, 32, 4, 8]) == [32, 32, 4, 8])
        // Who wants less leaves the rest to the others.
        #expect(try shares([256, 4, 32]) == [220, 4, 32])
        #expect(try shares([200, 200, 200]).sorted() == [85, 85, 86])
        #expect(try shares(Array(repeating: 32, count: 64)) == Array(repeating: 8, count: 64))
    }
}
