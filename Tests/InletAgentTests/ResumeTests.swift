import InletCore
import InletJournal
import InletLinux
import InletPipelines
import InletTestSupport
import Synchronization
import SystemPackage
import Testing

@testable import InletAgent

/// What an agent does at its start with what waits.
@Suite struct ResumeTests {
    /// A scene whose journal has the given files, untried.
    private func waiting(_ names: [String]) async throws -> Scene {
        let scene = try Scene()
        try await scene.run { stage in
            _ = try await stage.agent.control.setPaused(true, "here", by: "test")
            for name in names { try scene.drop(FilePath(name)) }
            try await eventually("all are known") { try await stage.jobs().count == names.count }
        }
        #expect(scene.here.record.calls.isEmpty, "a start without work asks nobody")
        return scene
    }

    /// Takes back what `waiting` has paused.
    private func resume(_ stage: Stage) async throws {
        _ = try await stage.agent.control.setPaused(false, "here", by: "test")
    }

    @Test func `a start with work asks once before anything goes, and tells in the end what was resumed`() async throws
    {
        var scene = try await waiting((1...9).map { "\($0)" })
        scene.route.retry.attempts = 1
        scene.here.script("3", .fail(.hopeless))
        scene.here.script("5", .wait(.seconds(3600)))
        try await scene.run { stage in
            #expect(stage.events.count("queue.resuming") == 1)
            #expect(stage.agent.control.live?.resume == ResumeSummary(of: 9))
            try await resume(stage)
            try await eventually("it is said") { stage.events.count("queue.resumed") == 1 }
            let summaries = stage.events.all.compactMap {
                if case .queueResumed(let summary) = $0 { summary } else { nil }
            }
            let summary = try #require(summaries.first)
            #expect(summary == ResumeSummary(of: 9, resumed: 7, failed: 1, waiting: 1))
            #expect(summary.text == "7 of 9 resumed, 1 failed, 1 waiting again")
            #expect(stage.agent.control.live?.resume == nil)
            #expect(stage.events.count("destination.up") == 0, "it was never down")
            try await stage.process("new")
            #expect(stage.events.count("queue.resumed") == 1)
        }
        #expect(scene.here.record.calls.first == "probe")
        #expect(scene.here.record.calls.count { $0 == "probe" } == 1)
    }

    @Test func `what waits for a destination that is away is not tried`() async throws {
        let scene = try await waiting(["a", "b"])
        // Who resumes it has it asked again.
        scene.here.failProbes(.outage, .outage)
        try await scene.run { stage in
            try await eventually("it is down") { stage.events.count("destination.down") == 1 }
            try await resume(stage)
            try await eventually("it was asked again") { scene.here.record.calls.count == 2 }
            try await stage.admit("c")
            #expect(scene.here.record.calls == ["probe", "probe"])
            #expect(stage.events.count("queue.resumed") == 0)
        }
    }

    @Test func `what waits for a destination that refuses our credentials goes untried until it takes new ones`()
        async throws
    {
        var scene = try await waiting(["a", "b"])
        scene.here.failProbes(.refused)
        let renewed = ScriptedPipeline()
        renewed.failProbes(.refused)
        scene.renew = { name in .scripted(name, renewed) }
        try await scene.run { stage in
            try await eventually("it is refused") { nextProbe(stage) != nil }
            try await resume(stage)
            try await eventually("the next credentials are refused too") {
                renewed.record.calls == ["probe"] && nextProbe(stage).map { $0 > .now } ?? false
            }
            try scene.drop("c")
            for name in ["a", "b", "c"] as [FilePath] {
                let delivery = try await stage.job(name).deliveries[0]
                #expect(delivery.state == .ready && delivery.attempts == 0 && delivery.code == nil)
            }
            #expect(scene.here.record.orders.isEmpty && renewed.record.orders.isEmpty)
            #expect(stage.events.count("destination.down") == 1 && stage.events.count("queue.resumed") == 0)
            try await resume(stage)
            for name in ["a", "b", "c"] as [FilePath] {
                #expect(try await stage.finished(name).deliveries[0].attempts == 1)
            }
            #expect(scene.here.record.orders.isEmpty && renewed.record.stored.keys.sorted() == ["a", "b", "c"])
            try await eventually("it is said") { stage.events.count("destination.up") == 1 }
            try await eventually("it is said") { stage.events.count("queue.resumed") == 1 }
        }
    }

    /// When the destination is asked again that refuses our credentials; nil while it does not refuse them.
    private func nextProbe(_ stage: Stage) -> WallTime? {
        let state = stage.agent.control.live?.destinations.first?.state
        return if case .credentialsRefused(_, let time)? = state { time } else { nil }
    }

    @Test func `what an earlier process began is told as resumed, at its first attempt only`() async throws {
        var scene = try Scene()
        scene.grace = .milliseconds(100)
        scene.here.script("a", .stall, .fail(.passing))
        func resumed(_ stage: Stage) -> [Bool] {
            stage.events.all.map(\.line).filter { $0.name == "job.started" }.map { line in
                line.fields.contains { $0.0 == "resumed" && $0.1 == .flag(true) }
            }
        }
        try await scene.run { stage in
            try scene.drop("a")
            try await eventually("its note is durable") { stage.events.count("job.checkpoint") == 1 }
            #expect(resumed(stage) == [false])
        }
        try await scene.run { stage in
            try await stage.finished("a")
            try await stage.process("b")
            #expect(resumed(stage) == [true, false, false])
        }
    }

    @Test func `nothing goes before the probe has answered, and one that hangs holds up no other`() async throws {
        let probes = Gate()
        var scene = try await waiting(["a"])
        scene.here.holdProbes(probes)
        let other = ScriptedPipeline()
        scene.destinations.append(.scripted("other", other))
        scene.others = [scene.route]
        (scene.others[0].name, scene.others[0].to) = ("rest", ["other"])
        scene.route.match.extensions = ["never"]
        other.script("b", .fail(.outage))
        try await scene.run { stage in
            try await resume(stage)
            try await stage.process("b")
            #expect(other.record.calls.contains("probe"))
            #expect(scene.here.record.orders.isEmpty)
            #expect(
                stage.agent.control.live?.destinations.first { $0.name == "here" }?.state == .unproved)
            probes.open()
            try await stage.finished("a")
        }
    }

    @Test func `a delivery that ended the process time and again is left alone, and the others go on`() async throws {
        let scene = try await waiting(["a"])
        let journal = try Journal(path: scene.journalPath, now: .now)
        try await journal.setPaused("here", false)
        let wish = ClaimRequest(
            lane: .small, room: ClaimCapacity(destination: "here", limits: [.small: 1]), most: 1)
        for crash in 1...RetryPolicy.mostCrashes {
            let later = WallTime.now + .seconds(100 * crash)
            let claim = try #require(try await journal.exchange([], for: wish, at: later).claims.first)
            try await journal.begin(claim.delivery.id)
            if crash < RetryPolicy.mostCrashes { _ = try await journal.recover(destinations: ["here"], at: .now) }
        }
        journal.close()
        try await scene.run { stage in
            try await stage.finished("a", .failed)
            try await stage.process("b")
            let failed = try await stage.job("a")
            #expect(failed.deliveries[0].code == .agentCrashed && failed.deliveries[0].attempts == 0)
            try await eventually("it is said") { stage.events.count("job.failed") == 1 }
            try await stage.retry(failed)
        }
    }
}

/// A part of the agent that ends unasked is missed, and what it cannot read is not taken for nothing.
@Suite struct ServiceRestartTests {
    private struct Broken: Error, CustomStringConvertible { var description: String { "it broke" } }

    @Test func `a part that ends unasked is said, shown, and begins anew, with longer pauses`() async throws {
        let log = try EventLog(nil)
        let record = EventRecord(log)
        let restarts = ServiceSupervisor(log: log, first: .milliseconds(1))
        let runs = Count()
        let task = StopFlag()
        await withDiscardingTaskGroup { group in
            group.addTask {
                await restarts.keep("counting") {
                    if runs.add() == 1 { throw Broken() }
                    if runs.value == 2 { return }
                    task.set()
                    await StopFlag().wait()
                }
            }
            await task.wait()
            #expect(restarts.incidents().map(\.service) == ["counting"])
            #expect(restarts.incidents().map(\.reason) == ["it ended without a reason"])
            #expect(restarts.incidents(at: .now.advanced(by: .seconds(61))).isEmpty)
            group.cancelAll()
        }
        let said = record.all.compactMap { event in
            if case .serviceFailed(_, let reason, let wait) = event { (reason, wait) } else { nil }
        }
        #expect(said.map(\.0) == ["it broke", "it ended without a reason"])
        #expect(said.map(\.1) == [.milliseconds(1), .milliseconds(2)])
        #expect(restarts.incidents().isEmpty)
    }

    @Test(arguments: ["finisher", "sweeper"])
    func `a journal that one of them cannot read is trouble, not the end of its work`(_ part: String) async throws {
        let directory = try TemporaryDirectory()
        let journal = try Journal(path: directory.path.appending("journal.sqlite"), now: .now)
        let shared = Shared.test(journal, try EventLog(nil)) { $0.stateDirectory = directory.path }
        let finisher = FinishingStage(shared, BlockingPool(name: "finisher", threads: 1), version: "test")
        journal.close()
        try await whileRunning(part == "finisher" ? [finisher] : [UploadCleaner(shared: shared)]) {
            try await eventually("it is said") { shared.health.journal.isFailing }
        }
    }
}
