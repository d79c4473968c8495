import InletCore
import InletJournal
import InletJournalSupport
import InletLinux
import InletPipelines
import InletTestSupport
import SystemPackage
import Testing

@testable import InletAgent

extension LaneSlots {
    fileprivate mutating func beginClaim() -> Claim? { begin()?.claim }
}

@Suite struct LaneSlotsTests {
    /// Claims of files of their own.
    private func claims(
        _ count: Int, expire: Duration? = nil, worksOnFirst: Bool = false, priority: Priority = .normal
    ) async throws -> [Claim] {
        let directory = try TemporaryDirectory()
        let journal = try Journal(path: directory.path.appending("journal.sqlite"), now: .now)
        defer { journal.close() }
        for number in 0..<count {
            let admission = FileAdmission.made("\(number)", inode: UInt64(number), to: "a") {
                ($0.retry, $0.priority) = (RetryPolicy(expire: expire), priority)
            }
            _ = try await journal.admit(admission, at: WallTime(milliseconds: Int64(number)))
        }
        let room = ClaimCapacity(destination: "a", limits: [.small: 1000])
        if worksOnFirst {
            let one = ClaimRequest(lane: .small, room: room, most: 1)
            let ended: [EndedClaim] = try await journal.exchange([], for: one, at: .now).claims.map {
                ($0.delivery.id, .waiting(until: WallTime(milliseconds: 0), saying: "queued"))
            }
            _ = try await journal.exchange(ended, for: .none(.small), at: .now)
        }
        let wish = ClaimRequest(lane: .small, room: room, most: 1000)
        let claims = try await journal.exchange([], for: wish, at: .now).claims
        #expect(claims.count == count)
        return claims
    }

    private func keys(_ claims: [Claim]) -> [String?] { claims.map(\.delivery.key) }
    private func keys(_ ended: [LaneSlots.Ended]) -> [String?] { keys(ended.map(\.claim)) }

    @Test func `claims begin in their order, each once, and no more than may run`() async throws {
        var slots = LaneSlots()
        slots.add(try await claims(3))
        #expect(slots.beginClaim() == nil, "nothing begins before the limit is known")
        slots.setLimit(2)
        #expect(slots.hasSurplus)
        let begun = [slots.beginClaim(), slots.beginClaim()].compactMap(\.self)
        #expect(keys(begun) == ["0", "1"] && slots.beginClaim() == nil)
        #expect(slots.held == 3 && slots.open == 3)
        slots.end(.back(begun[0]))
        #expect(keys([slots.beginClaim()].compactMap(\.self)) == ["2"])
        #expect(!slots.hasSurplus && slots.held == 2 && slots.open == 3)
        #expect(keys(slots.takeEnded()) == ["0"] && slots.takeEnded().isEmpty)
        #expect(slots.open == 2)
    }

    @Test func `what is more urgent starts before what is at hand already, and after what is as urgent`() async throws {
        var slots = LaneSlots()
        for priority in [Priority.normal, .low, .high, .normal, .high] {
            slots.add(try await claims(2, priority: priority))
        }
        slots.setLimit(99)
        var taken: [Claim] = []
        while let claim = slots.beginClaim() { taken.append(claim) }
        let ranks = taken.map(\.delivery.priority)
        #expect(ranks == [.high, .high, .high, .high, .normal, .normal, .normal, .normal, .low, .low])
        #expect(keys(taken) == (0..<5).flatMap { _ in ["0", "1"] })
    }

    @Test func `a limit that shrinks below what runs starts nothing until enough has ended`() async throws {
        var slots = LaneSlots()
        slots.add(try await claims(3))
        slots.setLimit(2)
        let begun = [slots.beginClaim(), slots.beginClaim()].compactMap(\.self)
        slots.setLimit(1)
        #expect(begun.count == 2 && slots.takeEnded().isEmpty)
        slots.end(.back(begun[0]))
        #expect(slots.beginClaim() == nil)
        slots.end(.back(begun[1]))
        #expect(slots.beginClaim()?.delivery.key == "2")
    }

    @Test func `where nothing may run, what is at hand goes back, and what runs does not`() async throws {
        var slots = LaneSlots()
        slots.add(try await claims(3))
        slots.setLimit(1)
        let first = slots.beginClaim()
        let begun = try #require(first)
        slots.setLimit(0)
        let back = slots.takeEnded()
        #expect(keys(back) == ["1", "2"] && back.allSatisfy(\.isBack) && slots.open == 1)
        slots.end(.back(begun))
        #expect(slots.beginClaim() == nil && keys(slots.takeEnded()) == ["0"] && slots.open == 0)
    }

    @Test func `what has waited for too long ends so, unless its destination works on it`() async throws {
        var slots = LaneSlots()
        slots.add(try await claims(3, expire: .seconds(10), worksOnFirst: true))
        #expect(slots.nextExpiry(4000) == .seconds(6) && slots.nextExpiry(nil) == nil)
        slots.endExpired(9999)
        slots.endExpired(nil)
        #expect(slots.ended.isEmpty)
        slots.endExpired(10_000)
        #expect(keys(slots.ended) == ["1", "2"])
        #expect(slots.ended.allSatisfy { if case .expired = $0.settlement { true } else { false } })
        slots.endExpired(99_000)
        #expect(slots.held == 1 && slots.nextExpiry(99_000) == nil)
    }

    @Test func `what a person cancels at hand is let go of, and what runs is not`() async throws {
        var slots = LaneSlots()
        let claims = try await claims(3)
        slots.add(claims)
        slots.setLimit(1)
        _ = slots.beginClaim()
        let isLetGo = [0, 1, 1].map { slots.letGo(of: claims[$0].delivery.id) }
        #expect(isLetGo == [false, true, false])
        #expect(keys(slots.atHand) == ["2"] && keys(slots.ended) == ["1"])
    }

    @Test func `what the journal refuses is offered again when it is time, and is never lost`() async throws {
        var slots = LaneSlots()
        let now = ContinuousClock.now
        let ended = try await claims(4).map(LaneSlots.Ended.back)
        slots.putBack(Array(ended[2...]))
        slots.putBack(Array(ended[..<2]))
        #expect(keys(slots.takeEnded()) == ["0", "1", "2", "3"])
        slots.keep(Array(ended[..<2]), until: now.advanced(by: .seconds(2)))
        slots.keep(Array(ended[2...]), until: now.advanced(by: .seconds(3)))
        #expect(slots.open == 4 && slots.nextOffer == now.advanced(by: .seconds(3)))
        #expect(slots.takeRefused(at: now.advanced(by: .seconds(2))).isEmpty)
        #expect(keys(slots.takeRefused(at: now.advanced(by: .seconds(3)))) == ["0", "1", "2", "3"])
        #expect(slots.open == 0 && slots.nextOffer == nil)
    }

    @Test func `ends gather while much is under way, and for longer while there are claims at hand`() async throws {
        let some = try await claims(300)
        func slots(waiting: Int, running: Int, ended: Int) -> LaneSlots {
            var slots = LaneSlots()
            slots.setLimit(running)
            slots.add(Array(some.prefix(waiting + running)))
            while slots.beginClaim() != nil {}
            slots.putBack(Array(repeating: .back(some[0]), count: ended))
            return slots
        }
        // Little is under way: each end is written at once.
        #expect(slots(waiting: 0, running: 4, ended: 4).pause == nil)
        #expect(slots(waiting: 0, running: LaneSlots.crowd, ended: 0).pause == nil)
        #expect(slots(waiting: 0, running: LaneSlots.crowd + 1, ended: 0).pause == .milliseconds(2))
        #expect(slots(waiting: 90, running: 32, ended: 6).pause == .milliseconds(10))
        #expect(slots(waiting: 40, running: 32, ended: LaneSlots.batch).pause == nil)
        // The connections would idle.
        #expect(slots(waiting: 3, running: 32, ended: 6).pause == .milliseconds(2))
        #expect(slots(waiting: 3, running: 32, ended: LaneSlots.batch / 4).pause == nil)
        // Nothing runs yet, and enough is at hand for as many as ever.
        #expect(slots(waiting: LaneSlots.reserve, running: 0, ended: 6).pause == .milliseconds(10))
    }

    @Test(arguments: 0..<40 as Range<UInt64>)
    func `every claim that comes in goes out once, whatever happens in between`(seed: UInt64) async throws {
        var random = SeededGenerator(seed: seed)
        var (slots, running, out): (LaneSlots, [Claim], [Int64]) = (LaneSlots(), [], [])
        let all = try await claims(60)
        var left = all[...]
        let start = ContinuousClock.now
        for step in 0..<400 {
            let now = start.advanced(by: .seconds(step))
            switch Int.random(in: 0..<10, using: &random) {
            case 0, 1:
                let some = left.prefix(Int.random(in: 0...4, using: &random))
                slots.add(Array(some))
                left = left.dropFirst(some.count)
            case 2, 3: if let claim = slots.beginClaim() { running.append(claim) }
            case 4, 5:
                guard let index = running.indices.randomElement(using: &random) else { continue }
                slots.end(.back(running.remove(at: index)))
            case 6: slots.setLimit(Int.random(in: 0...5, using: &random))
            case 7: _ = slots.letGo(of: all[Int.random(in: 0..<60, using: &random)].delivery.id)
            default:
                let taken = slots.takeEnded() + slots.takeRefused(at: now)
                switch Int.random(in: 0..<3, using: &random) {
                case 0: slots.putBack(taken)
                case 1: slots.keep(taken, until: now.advanced(by: .seconds(3)))
                default: out += taken.map(\.claim.delivery.id)
                }
            }
            try #require(slots.running == running.count)
            try #require(slots.open + out.count + left.count == all.count, "seed \(seed), step \(step)")
        }
        for claim in running { slots.end(.back(claim)) }
        slots.setLimit(0)
        let rest = slots.takeEnded() + slots.takeRefused(at: start.advanced(by: .seconds(9999)))
        out += rest.map(\.claim.delivery.id) + left.map(\.delivery.id)
        #expect(out.sorted() == all.map(\.delivery.id).sorted())
    }
}

/// Destinations beside each other: each has lanes of its own.
@Suite(.timeLimit(.minutes(15))) struct LaneTests {
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
            try await eventually("the small ones run") { pipelines[names[0]]?.record.running ?? 0 > Self.connections }
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
