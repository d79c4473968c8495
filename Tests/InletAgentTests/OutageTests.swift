import InletCore
import InletJournal
import InletLinux
import InletTestSupport
import InletTransfer
import Synchronization
import SystemPackage
import Testing

@testable import InletAgent
@testable import InletPipelines

@Suite struct OutageTests {
    @Test func `an outage pauses the destination, costs no attempt, and a probe brings it back`() async throws {
        let scene = try Scene()
        scene.here.script("a", .fail(.outage))
        try await scene.run { stage in
            try scene.drop("a")
            try await eventually("it is down") { stage.events.count("destination.down") == 1 }
            try scene.drop("b")
            #expect(try await stage.finished("a").deliveries[0].attempts == 1)
            try await stage.finished("b")
            #expect(
                scene.here.record.calls == ["a", "probe", "a", "b"]
                    || scene.here.record.calls == ["a", "probe", "b", "a"])
            try await eventually("it is said") { stage.events.count("destination.up") == 1 }
        }
    }

    @Test func `refused credentials pause the destination and cost no attempt`() async throws {
        let scene = try Scene()
        scene.here.script("a", .fail(.refused))
        try await scene.run { stage in
            try scene.drop("a")
            let job = try await stage.job("a", "back in the queue") {
                $0.deliveries[0].code == .unauthorized && $0.deliveries[0].state == .ready
            }
            #expect(job.deliveries[0].attempts == 0)
            try await stage.admit("b")
            guard case .credentialsRefused? = stage.agent.control.live?.destinations.first?.state else {
                throw Unexpected(description: "the destination is not marked as refusing its credentials")
            }
            #expect(stage.agent.control.live?.destinations.first?.lastError == DeliveryError.refused.reason)
            #expect(scene.here.record.orders.count == 1)
        }
    }

    @Test func `a file's last fault has its destination probed, and ends it only while that is well`() async throws {
        var scene = try Scene()
        scene.route.retry.attempts = 1
        scene.pace = ProbePace(first: .milliseconds(20), interval: .milliseconds(100))
        // On a busy machine it may be tried again before the probe has answered, which tells nothing.
        scene.here.script("a", .fail(.serverFault), .fail(.serverFault), .fail(.serverFault), .fail(.serverFault))
        scene.here.script("b", .fail(.serverFault))
        let here = scene.here
        try await scene.run { stage in
            try await stage.process("a", as: .failed)
            let calls = here.record.calls
            #expect(calls.first == "a" && calls.dropLast().contains("probe") && calls.last == "a", "\(calls)")
            here.failProbes(.outage)
            #expect(try await stage.process("b").deliveries[0].attempts == 1)
            #expect(stage.events.count("destination.down") == 1)
        }
    }

    @Test func `a paused destination is left alone until it is resumed`() async throws {
        let scene = try Scene()
        try await scene.run { stage in
            let commands = stage.agent.control
            #expect(try await commands.setPaused(true, nil, by: "test") == ["here"])
            #expect(try await commands.setPaused(true, "nowhere", by: "test") == [])
            try await stage.admit("a")
            #expect(stage.agent.control.live?.destinations.first?.isPaused == true)
            #expect(scene.here.record.orders.isEmpty)
            _ = try await commands.setPaused(false, "here", by: "test")
            try await stage.finished("a")
            #expect(stage.events.names.contains("destination.resumed"))
        }
    }

    @Test func `a pause outlives a restart`() async throws {
        let scene = try Scene()
        try await scene.run { stage in
            _ = try await stage.agent.control.setPaused(true, "here", by: "test")
        }
        try scene.drop("a")
        try await scene.run { stage in
            try await stage.job("a")
            #expect(scene.here.record.orders.isEmpty)
            _ = try await stage.agent.control.setPaused(false, "here", by: "test")
            try await stage.finished("a")
        }
    }

    @Test func `without credits nothing new begins, and what the destination works on goes on to its end`() async throws
    {
        let scene = try Scene()
        let soon = Duration.milliseconds(20)
        scene.here.always(.wait(soon))
        scene.here.script("broke", .wait(soon), .fail(.unpaid))
        try await scene.run { stage in
            try scene.drop("film")
            try await eventually("it works on the film") { scene.here.attempts(at: "film") >= 1 }
            try scene.drop("broke")
            try await eventually("it is down") { stage.events.count("destination.down") == 1 }
            try await stage.admit("new")
            let before = scene.here.attempts(at: "film")
            try await eventually("it is asked about the film") { scene.here.attempts(at: "film") >= before + 5 }
            #expect(scene.here.attempts(at: "new") == 0 && scene.here.attempts(at: "broke") == 2)
            scene.here.script("film", .deliver)
            try await stage.finished("film")
            // Jobs that were paid for say nothing about what is left.
            #expect(stage.events.count("destination.up") == 0)
            #expect(!scene.here.record.calls.contains("new"))
        }
    }

    @Test func `a destination without credits that is away too is left alone, and goes on once a probe reaches it`()
        throws
    {
        let log = try EventLog(nil)
        let board = DestinationRegistry(
            [.scripted("here", ScriptedPipeline())], paused: [], uptimes: [:], workers: 1, log: log)
        func rooms() -> [Bool] { board.rooms().map(\.isForBegunOnly) }
        #expect(rooms() == [false])
        board.report("here", .outage(after: .seconds(3600)), reason: "empty", code: .outOfCredits)
        #expect(rooms() == [true])
        let far = try #require(board.nextLook())
        board.report("here", .outage(after: .seconds(3600)), reason: "empty", code: .outOfCredits)
        #expect(board.nextLook() == far, "a delivery that finds nothing puts no probe off")
        board.report("here", .outage(after: nil), reason: "away", code: .connectFailed)
        #expect(rooms() == [] && board.dueProbes().isEmpty)
        let near = try #require(board.nextLook())
        #expect(near < far)
        #expect(board.report("here", .probeFailed(credentials: false), reason: "empty", code: .outOfCredits).opens)
        #expect(rooms() == [true])
        #expect(!board.report("here", .delivered(file: 1)).opens)
        #expect(rooms() == [true])
        _ = board.setPaused("here", true)
        #expect(rooms() == [])
        _ = board.setPaused("here", false)
        #expect(board.report("here", .probeSucceeded).opens)
        #expect(rooms() == [false])
    }
}

/// A destination that never answers, and the others.
@Suite struct HungDestinationTests {
    /// Everything below `far` goes to the one that hangs, all else to `near`.
    private func route(_ scene: inout Scene) throws {
        scene.silence = .milliseconds(200)
        scene.workers = 2
        scene.route.key = try KeyTemplate("{dir}/{name}")
        scene.route.match = RouteMatch(paths: [try GlobPattern("far/**")])
        scene.route.to = ["far"]
        scene.others = [Route(name: "near", key: try KeyTemplate("{dir}/{name}"), to: ["near"])]
    }

    private func folder(_ name: String, _ path: FilePath, _ pool: BlockingPool, _ smallLimit: Int64) throws
        -> Destination
    {
        let values = ConfigSection(
            values: ["path": .string(path.string)], positions: [:], position: SourcePosition(line: 1, column: 1))
        var made = try PipelineFactory(pool: pool, userAgent: "test").make(
            DestinationSettings(name: name, type: "folder", values: values))
        made.smallLimit = smallLimit
        return made
    }

    @Test(
        .enabled(if: TestMount.hasBindfs, "needs bindfs and the right to use it"), arguments: [0, 1 << 20] as [Int64])
    func `a folder whose file system never answers does not hold up another folder`(smallLimit: Int64) async throws {
        var scene = try Scene()
        try route(&scene)
        let far = try scene.directory.makeDirectory("share")
        let mount = try TestMount(bindfs: scene.directory.makeDirectory("server"), at: far)
        // What all destinations have in common is scarce.
        let pool = BlockingPool(name: "bulk", threads: 1)
        scene.destinations = [
            try folder("far", far, pool, smallLimit),
            try folder("near", scene.directory.makeDirectory("library"), pool, smallLimit),
        ]
        try await scene.run { stage in
            try await stage.process("far/0")
            mount.freeze()
            defer { mount.thaw() }
            for number in 1...12 { try scene.drop(FilePath("far/\(number)")) }
            try await eventually("its deliveries hang") {
                stage.agent.control.live?.inFlight.count { $0.ref.destination == "far" } ?? 0 >= scene.workers
            }
            for number in 0..<12 { try await stage.process(FilePath("near/\(number)")) }
            mount.thaw()
            for number in 1...12 { try await stage.finished(FilePath("far/\(number)")) }
        }
    }

    @Test func `one that hangs does not keep another waiting, and each destination keeps to its limit`() async throws {
        var scene = try Scene()
        try route(&scene)
        let far = ScriptedPipeline()
        let gate = Gate()
        far.always(.hold(gate, .deliver))
        scene.destinations = [
            .scripted("far", far, smallLimit: -1), .scripted("near", scene.here, smallLimit: -1),
        ]
        try await scene.run { stage in
            for number in 0..<8 { try scene.drop(FilePath("far/\(number)")) }
            try await eventually("all that may run there hang") { far.record.running == scene.workers }
            for number in 0..<8 { try scene.drop(FilePath("near/\(number)")) }
            for number in 0..<8 { try await stage.finished(FilePath("near/\(number)")) }
            #expect(far.record.mostRunning == scene.workers && scene.here.record.mostRunning <= scene.workers)
            gate.open()
            for number in 0..<8 { try await stage.finished(FilePath("far/\(number)")) }
        }
    }
}

/// What a limit of 0 does to deliveries that run.
@Suite struct HeldDeliveryTests {
    /// An agent that is told something by its own events.
    private final class Told: Sendable {
        let commands = Mutex<AgentControl?>(nil)
    }

    @Test
    func
        `a file that waits for a limit of 0 does not hold another destination up, goes back to the queue, and goes on later`()
        async throws
    {
        var scene = try Scene()
        let other = ScriptedPipeline()
        scene.workers = 1
        scene.destinations = [
            .scripted("here", scene.here, smallLimit: 0), .scripted("other", other, smallLimit: 0),
        ]
        scene.route.to = ["here", "other"]
        scene.here.script("big", .waitForLimit)
        try await scene.run { stage in
            try await stage.start("big")
            try await stage.job("big", "elsewhere") { $0.deliveries[1].state == .delivered }
            #expect(stage.agent.control.limit(.rate(0), for: "here") != nil)
            let waiting = try await stage.job("big", "back") { $0.deliveries[0].state == .ready }.deliveries[0]
            #expect(waiting.attempts == 0 && waiting.code == nil)
            #expect(waiting.reason == "was stopped while a bandwidth limit was 0")
            #expect(scene.here.record.orders.count == 1)
            #expect(stage.agent.control.limit(.auto, for: "here") != nil)
            let job = try await stage.finished("big")
            #expect(job.deliveries[0].attempts == 1 && job.deliveries[0].reason == nil)
            // With what the first attempt left.
            #expect(scene.here.record.notes == [[:], ["upload": [1]]])
        }
    }

    @Test func `one that was claimed a moment before its limit became 0 does not begin`() async throws {
        var scene = try Scene()
        let told = Told()
        scene.destinations = [.scripted("here", scene.here, smallLimit: 0)]
        scene.onEvent = { event in
            guard case .jobStarted = event else { return }
            _ = told.commands.withLock(\.self)?.limit(.rate(0), for: "here")
        }
        try await scene.run { stage in
            told.commands.withLock { $0 = stage.agent.control }
            try scene.drop("a")
            try await eventually("it is back") { stage.events.count("job.retry") == 1 }
            #expect(scene.here.record.orders.isEmpty)
            let codes = stage.events.all.compactMap {
                if case .jobRetry(_, let error, _, _) = $0 { error.code } else { nil }
            }
            #expect(codes == [.heldByLimit])
            told.commands.withLock { $0 = nil }
            #expect(stage.agent.control.limit(.auto, for: "here") != nil)
            #expect(try await stage.finished("a").deliveries[0].attempts == 1)
        }
    }

    @Test func `what runs at a destination whose limit is 0 and does not wait for it is left alone`() async throws {
        let transfers = Transfers()
        func begin(_ delivery: Int64, _ destination: String, isHeld: Bool) {
            let ref = AgentEvent.JobRef(
                job: delivery, delivery: delivery, path: "/a", route: "all", destination: destination)
            let notes = CheckpointLog(entries: [:], write: { _ in }, replace: { _ in })
            let attempt = Attempt(checkpoint: notes, isStopping: { false })
            if isHeld { attempt.note.begin() }
            _ = transfers.add(ref, size: 1, since: .now, attempt: attempt)
        }
        begin(1, "here", isHeld: true)
        begin(2, "here", isHeld: false)
        begin(3, "there", isHeld: true)
        #expect(transfers.sendBack(heldAt: "here"))
        #expect((1...3).filter { transfers.isSentBack($0) } == [1])
        #expect(!transfers.sendBack(heldAt: "nowhere"))
        transfers.remove(1)
        transfers.remove(2)
        #expect(!transfers.sendBack(heldAt: "here"))
    }

    @Test func `a limit that is 0 for a moment ends nothing, and no look comes where nothing runs`() {
        let start = ContinuousClock.now
        func at(_ seconds: Int) -> ContinuousClock.Instant { start.advanced(by: .seconds(seconds)) }
        var clock = ZeroLimitClock(patience: .seconds(10))
        #expect(clock.due([], at: start).isEmpty && clock.nextLook([], at: start) == nil)
        #expect(clock.due(["a"], at: start).isEmpty && clock.nextLook([], at: start) == at(10))
        #expect(clock.due([], at: at(9)).isEmpty && clock.nextLook([], at: at(9)) == nil)
        #expect(clock.due(["a"], at: at(11)).isEmpty && clock.nextLook([], at: at(11)) == at(21))
        #expect(clock.due(["a", "b"], at: at(15)).isEmpty && clock.nextLook([], at: at(15)) == at(21))
        #expect(clock.due(["a", "b"], at: at(21)) == ["a"])
        // Something runs at a, which may yet want to send; the time of b comes before.
        #expect(clock.nextLook(["a"], at: at(21)) == at(25))
        #expect(clock.due(["a", "b"], at: at(25)) == ["a", "b"])
        #expect(clock.nextLook(["a"], at: at(25)) == at(35) && clock.nextLook([], at: at(25)) == nil)
    }
}
