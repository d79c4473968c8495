import InletCore
import InletLinux
import InletTestSupport
import Synchronization
import SystemPackage
import Testing

@testable import InletAgent
@testable import InletJournal

extension DeliveryError {
    static let gateway = DeliveryError(.outage(after: nil), .serverError, "the test's gateway says 502")
    static let shortage = DeliveryError(.outage(after: nil), .outOfResources, "no descriptors; raise LimitNOFILE")
    static let badDisk = DeliveryError(.outage(after: nil), .sourceUnreadable, "the device reports errors")
    static func busy(_ seconds: Int64) -> DeliveryError {
        DeliveryError(.retry(after: .seconds(seconds)), .throttled, "the test's server says 429")
    }
}

/// When deliveries began, and until when a destination asked for time.
private final class Moments: Sendable {
    private let state = Mutex<(began: [FilePath: WallTime], until: WallTime?)>(([:], nil))

    var began: [FilePath: WallTime] { state.withLock(\.began) }
    var slowedUntil: WallTime? { state.withLock(\.until) }

    func note(_ event: AgentEvent) {
        state.withLock { state in
            switch event {
            case .jobStarted(let ref, _, _, _, _, _):
                if let name = ref.path.lastComponent { state.began[FilePath(name.string)] = .now }
            case .destinationThrottled(_, _, let until): state.until = until
            default: break
            }
        }
    }
}

/// Whose fault it is, and who has to wait for it.
@Suite struct RuleTests {
    @Test func `one bad file ends failed, while the others are delivered and nobody is paused for it again`()
        async throws
    {
        var scene = try Scene()
        scene.route.retry.attempts = 2
        scene.here.script("bad", .fail(.gateway), .fail(.gateway), .fail(.gateway))
        try await scene.run { stage in
            try scene.drop("bad")
            let job = try await stage.finished("bad", .failed)
            #expect(job.deliveries[0].attempts == 2 && job.deliveries[0].code == .serverError)
            try await eventually("both are said") {
                stage.events.count("destination.down") == 1 && stage.events.count("destination.up") == 1
            }
            try scene.drop("good")
            try await stage.finished("good")
            #expect(stage.events.count("destination.down") == 1)
        }
        #expect(scene.here.attempts(at: "bad") == 3, "the first one was the destination's")
    }

    @Test func `after an outage one delivery goes first, and the others when it has arrived`() async throws {
        let scene = try Scene()
        let gate = Gate()
        scene.here.script("a", .fail(.outage))
        try await scene.run { stage in
            try scene.drop("a")
            try await eventually("it is down") { stage.events.count("destination.down") == 1 }
            scene.here.always(.hold(gate, .deliver))
            for number in 0..<20 { try scene.drop(FilePath("b\(number)")) }
            try await eventually("one is on its way") { scene.here.record.running == 1 }
            try await eventually("all are known") { try await stage.jobs().count == 21 }
            #expect(stage.agent.control.live?.destinations.map(\.state) == [.trial])
            #expect(scene.here.record.mostRunning == 1)
            gate.open()
            try await eventually("all have arrived") { scene.here.record.stored.count == 21 }
        }
        #expect(stageIsCounted(scene))
    }

    /// Nothing was sent twice, but for the one that found the outage.
    private func stageIsCounted(_ scene: Scene) -> Bool { scene.here.record.orders.count == 22 }

    @Test func `a server that asks for time is left alone by all files, and no attempt is counted`() async throws {
        var scene = try Scene()
        let moments = Moments()
        scene.onEvent = { moments.note($0) }
        scene.here.script("a", .fail(.busy(1)))
        try await scene.run { stage in
            try scene.drop("a")
            try await eventually("it is slowed") { stage.events.count("destination.throttled") == 1 }
            try scene.drop("b")
            try await stage.finished("b")
            #expect(try #require(moments.began["b"]) >= #require(moments.slowedUntil))
            #expect(try await stage.finished("a").deliveries[0].attempts == 1)
            #expect(stage.events.count("destination.down") == 0)
        }
        #expect(!scene.here.record.calls.contains("probe"))
    }

    @Test func `what this machine lacks is nobody's fault, is said once, and passes`() async throws {
        let scene = try Scene()
        scene.here.script("a", .fail(.shortage), .fail(.shortage))
        scene.here.script("b", .fail(.shortage))
        try await scene.run { stage in
            for name in ["a", "b", "c"] as [FilePath] { try scene.drop(name) }
            #expect(try await stage.finished("c").deliveries[0].attempts == 1)
            #expect(try await stage.finished("b").deliveries[0].attempts == 1)
            #expect(try await stage.finished("a").deliveries[0].attempts == 1)
            #expect(stage.events.count("destination.down") == 0)
            #expect((1...3).contains(stage.events.count("agent.error")))
        }
        #expect(scene.here.attempts(at: "a") == 3 && !scene.here.record.calls.contains("probe"))
    }

    @Test(arguments: [(.sourceGone, .gone), (.sourceChanged, .superseded)] as [(DeliveryError.Verdict, DeliveryState)])
    func `a path is looked at anew when its file went or changed under way`(
        _ verdict: DeliveryError.Verdict, _ end: DeliveryState
    ) throws {
        let ref = AgentEvent.JobRef(job: 1, delivery: 2, path: "/a", route: "r", destination: "d")
        func outcome(_ error: DeliveryError) throws -> (Settlement, DeliveryReport) {
            var random = SeededGenerator(seed: 1)
            let (file, now) = (try fileRow(), WallTime(milliseconds: 0))
            let attempt = FailedAttempt(file: file.id, number: 1, policy: file.policy.retry, time: now)
            let decision = FailureClassifier.classify(error, attempt, using: &random) { _, _ in .none }
            return decision.outcome(ref, file, attempt: 1, at: now)
        }
        let (settlement, report) = try outcome(DeliveryError(verdict, .sourceGone, "why"))
        #expect(report.wantsLook?.path == "a")
        #expect(try outcome(.hopeless).1.wantsLook == nil)
        guard case .ended(let state, _, _) = settlement else {
            Issue.record("it has not ended")
            return
        }
        #expect(state == end)
    }

    private func fileRow() throws -> FileRow {
        FileRow(
            id: 1, root: "/in", path: "a",
            identity: FileIdentity(size: 1, modified: 0, changed: 0, inode: 1, device: 1),
            state: .pending, mediaType: "text/plain",
            policy: FilePolicy(onSuccess: .keep, onFailure: .keep, retry: RetryPolicy()),
            admittedAt: WallTime(milliseconds: 0), labels: [:], digests: [])
    }
}
