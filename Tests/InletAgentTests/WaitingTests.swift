import InletCore
import InletJournal
import InletTestSupport
import SystemPackage
import Testing

@testable import InletAgent

/// Deliveries that destinations work on for a while.
@Suite struct WaitingTests {
    @Test func `twenty jobs that run keep no worker from a file`() async throws {
        var scene = try Scene()
        scene.workers = 1
        scene.destinations = [.scripted("here", scene.here, smallLimit: 0, connections: 2)]
        scene.here.always(.wait(.seconds(3600)))
        let held = scene
        try await held.run { stage in
            for number in 0..<20 { try held.drop(FilePath("job-\(number)")) }
            try await eventually("all wait") { stage.events.count("job.waiting") == 20 }
            held.here.script("film", .deliver)
            try held.drop("film")
            try await stage.finished("film")
            #expect(try await stage.journal.waiting(limit: 100).count == 20)
        }
    }

    @Test func `polls are said once, and what they say is seen`() async throws {
        let scene = try Scene()
        let soon = Duration.milliseconds(20)
        let gate = Gate()
        scene.here.script(
            "film", .work(StepProgress(percent: 72, step: "extracting"), saying: "extracting frames", for: soon),
            .work(StepProgress(percent: 80, step: "scoring"), saying: "scoring", for: soon), .wait(soon),
            .hold(gate, .deliver))
        try await scene.run { stage in
            try scene.drop("film")
            try await eventually("it is asked again and again") { scene.here.record.orders.count == 4 }
            let running = try #require(stage.agent.control.live?.inFlight.first)
            // What was reported last holds until something else is.
            #expect(running.step == StepProgress(percent: 80, step: "scoring"))
            gate.open()
            let job = try await stage.finished("film")
            #expect(job.deliveries[0].attempts == 1 && job.deliveries[0].reason == nil)
            #expect(stage.agent.control.live?.step(job.deliveries[0].id) == nil)
            let lines = stage.events.all.map(\.line)
            #expect(lines.filter { $0.name == "job.started" }.map(\.level) == [.info, .debug, .debug, .debug])
            let waits = lines.filter { $0.name == "job.waiting" }
            #expect(waits.map(\.level) == [.info, .debug, .debug])
            #expect(waits[0].fields.contains { $0.0 == "reason" && $0.1 == .text("extracting frames") })
            let progress = try #require(lines.first { $0.name == "transfer.progress" })
            #expect(progress.fields.contains { $0.0 == "percent" && $0.1 == .number(72) })
            #expect(progress.fields.contains { $0.0 == "step" && $0.1 == .text("extracting") })
        }
    }

    @Test func `progress has a line every five percent or five seconds, whichever is later`() {
        let start = ContinuousClock.now
        let reports: [(seconds: Int, percent: Double, isDue: Bool)] = [
            (0, 3, false), (1, 5, true), (2, 50, false), (5, 9.9, false), (6, 10, true), (20, 14, false),
            (30, 95, true), (31, 20, false), (40, 24, false), (41, 26, true),
        ]
        var pace = ProgressPace()
        for report in reports {
            let time = start.advanced(by: .seconds(report.seconds))
            #expect(pace.isDue(report.percent, at: time) == report.isDue, "\(report)")
        }
    }

    @Test func `a step is remembered for as long as its delivery waits`() {
        let inFlight = Transfers()
        let step = StepProgress(percent: 40, step: "s")
        #expect(inFlight.note(step, of: 1, at: .now) && !inFlight.note(step, of: 1, at: .now))
        #expect(inFlight.step(1) == step && inFlight.step(2) == nil)
        inFlight.forgetStep(of: 1)
        #expect(inFlight.step(1) == nil)
        for delivery in 0..<20_001 { _ = inFlight.note(step, of: Int64(delivery), at: .now) }
        #expect(inFlight.step(0) == nil && inFlight.step(20_000) == step)
    }
}
