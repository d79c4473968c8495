import Foundation
import InletCore
import InletJournal
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

@testable import InletAgent

/// Claims that wait for a connection: with eight connections, eight run and others wait at hand.
@Suite struct SmallLaneTests {
    private static let connections = 8
    private static let files = LaneSlots.most(connections) + 8

    /// Drops files, and returns when as many run as may, and as many wait at hand.
    private func fill(_ scene: Scene, _ stage: Stage) async throws {
        for number in 0..<Self.files { try scene.drop(FilePath("\(number)")) }
        try await eventually("the stock is full") {
            let claimed = try await stage.journal.deliveryCounts(.claimed)["here"]
            return claimed == LaneSlots.most(Self.connections) && scene.here.record.running == Self.connections
        }
    }

    /// What the next start finds: nothing claimed, and no attempt counted of what has not been delivered.
    private func expectAllGivenBack(_ scene: Scene, delivered: Int) async throws {
        let journal = try Journal(path: scene.directory.path.appending("state").appending("journal.sqlite"), now: .now)
        defer { journal.close() }
        #expect(try await journal.deliveryCounts(.delivered)["here"] ?? 0 == delivered)
        #expect(try await journal.recover(destinations: ["here"], at: .now).freedClaims == 0)
        let open = try await journal.jobs(FileFilter(limit: 100)).flatMap(\.deliveries).filter { $0.state == .ready }
        #expect(open.allSatisfy { $0.attempts == 0 })
    }

    @Test func `at the end what runs may end, and what waits at hand goes back untried`() async throws {
        let scene = try Scene()
        scene.here.always(.untilStopping(.deliver))
        try await scene.run { stage in try await fill(scene, stage) }
        #expect(scene.here.record.orders.count == Self.connections)
        try await expectAllGivenBack(scene, delivered: Self.connections)
    }

    @Test func `after the grace what was ended is given back, too`() async throws {
        var scene = try Scene()
        scene.grace = .milliseconds(50)
        scene.here.always(.stall)
        let stalling = scene
        try await stalling.run { stage in try await fill(stalling, stage) }
        #expect(scene.here.record.orders.count == Self.connections)
        try await expectAllGivenBack(stalling, delivered: 0)
    }

    @Test func `services that end without being asked to give back what waits at hand, and begin nothing`() async throws
    {
        let scene = try Scene()
        scene.here.always(.stall)
        struct Abandoned: Error {}
        await #expect(throws: Abandoned.self) {
            try await scene.run { stage in
                try await fill(scene, stage)
                throw Abandoned()
            }
        }
        #expect(scene.here.record.orders.count == Self.connections)
        try await expectAllGivenBack(scene, delivered: 0)
    }

    @Test func `when a destination goes down, what waits at hand for it is not begun`() async throws {
        let scene = try Scene()
        let gate = Gate()
        scene.here.always(.hold(gate, .fail(.outage)))
        scene.here.failProbes(.outage, .outage, .outage)
        try await scene.run { stage in
            try await fill(scene, stage)
            gate.open()
            try await eventually("all is given back") { try await stage.journal.deliveryCounts(.claimed).isEmpty }
            #expect(scene.here.record.orders.count == Self.connections)
            #expect(try await stage.journal.deliveryCounts(.ready) == ["here": Self.files])
            #expect(try await stage.jobs().flatMap(\.deliveries).allSatisfy { $0.attempts == 0 })
        }
    }

    @Test func `when a destination is paused, what waits at hand for it is not begun`() async throws {
        let scene = try Scene()
        let gate = Gate()
        scene.here.always(.hold(gate, .deliver))
        try await scene.run { stage in
            try await fill(scene, stage)
            _ = try await stage.agent.control.setPaused(true, "here", by: "test")
            gate.open()
            try await eventually("all is given back") { try await stage.journal.deliveryCounts(.claimed).isEmpty }
            #expect(scene.here.record.orders.count == Self.connections)
            _ = try await stage.agent.control.setPaused(false, "here", by: "test")
            try await eventually("all has arrived") { scene.here.record.stored.count == Self.files }
        }
        #expect(scene.here.record.orders.count == Self.files)
        #expect(scene.here.record.mostRunning <= Self.connections)
    }

    @Test func `what still runs for a destination that was paused keeps nobody else waiting`() async throws {
        var scene = try Scene()
        let gate = Gate()
        let other = ScriptedPipeline()
        scene.destinations = [.scripted("here", scene.here), .scripted("other", other, connections: 2)]
        scene.others = [scene.route]
        (scene.others[0].name, scene.others[0].to) = ("rest", ["other"])
        scene.route.match.extensions = ["big"]
        scene.here.always(.hold(gate, .deliver))
        let both = scene
        try await both.run { stage in
            for number in 0..<Self.connections { try both.drop(FilePath("\(number).big")) }
            try await eventually("all connections are taken") { both.here.record.running == Self.connections }
            _ = try await stage.agent.control.setPaused(true, "here", by: "test")
            try both.drop("small")
            try await stage.finished("small")
            #expect(both.here.record.running == Self.connections)
            gate.open()
        }
    }

    @Test func `one that is cancelled while it waits at hand is never begun, and can be sent again`() async throws {
        let scene = try Scene()
        let gate = Gate()
        scene.here.always(.hold(gate, .deliver))
        try await scene.run { stage in
            try await fill(scene, stage)
            let begun = Set(scene.here.record.orders.map(\.key))
            let waiting = try #require(
                try await stage.jobs().first { job in
                    job.deliveries[0].state == .claimed && !begun.contains(job.deliveries[0].key ?? "")
                })
            #expect(try await stage.agent.control.act(.cancel, on: waiting.file.id) == .done)
            gate.open()
            try await stage.finished(waiting.file.path, .cancelled)
            try await eventually("the others have arrived") { scene.here.record.stored.count == Self.files - 1 }
            #expect(scene.here.record.orders.count == Self.files - 1)
            #expect(try await stage.agent.control.act(.retry, on: waiting.file.id) == .done)
            try await stage.finished(waiting.file.path)
        }
        #expect(scene.here.record.stored.count == Self.files)
    }

    @Test func `what goes back to wait for its time expires there`() async throws {
        var scene = try Scene()
        let gate = Gate()
        // Time enough to begin; then it waits for it.
        scene.route.retry.expire = .seconds(3)
        let later = DeliveryError(.retry(after: .seconds(3600)), .serverError, "come back in an hour")
        scene.here.always(.hold(gate, .fail(later)))
        let waiting = scene
        try await waiting.run { stage in
            try waiting.drop("a")
            try await eventually("a is on its way") { waiting.here.record.running == 1 }
            gate.open()
            try await stage.finished("a", .expired)
        }
        #expect(scene.here.record.orders.count == 1)
    }

    @Test func `of many files that come at once, all is said of each, once and in its order`() async throws {
        let scene = try Scene()
        for number in 0..<200 { try scene.drop(FilePath("\(number)")) }
        try await scene.run { stage in
            try await eventually("all is finished") { stage.events.count("job.finished") == 200 }
            var said: [FilePath: [String]] = [:]
            for event in stage.events.all {
                switch event {
                case .jobAdmitted(_, let path, _, _, _, _): said[path, default: []].append("admitted")
                case .jobStarted(let ref, _, _, _, _, _): said[ref.path, default: []].append("started")
                case .jobDelivered(let ref, _, _): said[ref.path, default: []].append("delivered")
                case .jobFinished(_, let path, _, _, _): said[path, default: []].append("finished")
                default: break
                }
            }
            #expect(said.count == 200)
            #expect(Set(said.values) == [["admitted", "started", "delivered", "finished"]])
        }
    }

    @Test(.enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/sqlite3")))
    func `one that the journal refuses keeps the others neither from their proofs nor from their turn`() async throws {
        let scene = try Scene()
        let gate = Gate()
        scene.here.script("a", .hold(gate, .deliver))
        try await scene.run { stage in
            try scene.drop("a")
            try await eventually("a is on its way") { scene.here.record.running == 1 }
            // No policy: its row cannot be read, and its claim not be settled.
            try damage(stage.journal, "UPDATE file SET policy = x'00'")
            gate.open()
            try scene.drop("b")
            try await eventually("b has arrived") {
                try await stage.journal.deliveryCounts(.delivered) == ["here": 1]
            }
            #expect(try await stage.journal.deliveryCounts(.claimed) == ["here": 1])
            try scene.drop("c")
            try await eventually("c has arrived") {
                try await stage.journal.deliveryCounts(.delivered) == ["here": 2]
            }
            try damage(stage.journal, "UPDATE file SET policy = (SELECT policy FROM file ORDER BY id DESC LIMIT 1)")
            try await stage.finished("a")
        }
        #expect(scene.here.record.orders.map(\.key) == ["a", "b", "c"])
    }

    private func damage(_ journal: Journal, _ sql: String) throws {
        let shell = Process()
        shell.executableURL = URL(fileURLWithPath: "/usr/bin/sqlite3")
        shell.arguments = ["-cmd", ".timeout 60000", journal.path.string, sql]
        try shell.run()
        shell.waitUntilExit()
        #expect(shell.terminationStatus == 0)
    }
}
