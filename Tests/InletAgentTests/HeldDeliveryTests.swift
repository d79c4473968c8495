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
            try scene.drop("big")
            try await eventually("it has begun") { scene.here.record.running == 1 }
            try await stage.job("big", "elsewhere") { $0.deliveries[1].state == .delivered }
            #expect(stage.agent.control.limit(.rate(0), for: "here") != nil)
            let waiting = try await stage.job("big", "back") { $0.deliveries[0].state == .ready }.deliveries[0]
            #expect(waiting.attempts == 0 && waiting.code == nil)
            #expect(waiting.reason == "was sent back while a limit of bandwidth was 0")
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
        var clock = ShutClock(patience: .seconds(10))
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
