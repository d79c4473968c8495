import InletCore
import InletLinux
import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

@testable import InletPipelines

/// A job on which there is no word for as long as a job may take: asking ends, and the job is there for a person's retry.
@Suite(.timeLimit(.minutes(8))) struct VOPISilenceTests {
    @Test func `strange answers count in the time in which somebody asked, until there is a word`() {
        let limits = VOPIChain.Limits(poll: .seconds(3), soft: .seconds(3600), hard: .seconds(21_600))
        var chain = VOPIChain(record: VOPIRecord(), limits: limits)
        var now = WallTime(milliseconds: 1_700_000_000_000)
        /// Asks every ten minutes for so long. - Returns: whether it was over at any time.
        func ask(for time: Duration) -> Bool {
            let end = now + time
            var isOver = chain.heardNothing(now: now)
            while now < end {
                now = now + .seconds(600)
                isOver = chain.heardNothing(now: now) || isOver
            }
            return isOver
        }
        let afterFiveHours = ask(for: .seconds(5 * 3600))
        // What was noted survives the process; a week in which nobody asked counts for ten minutes.
        chain.record = VOPIRecord(chain.record.entries)
        now = now + .seconds(7 * 86_400)
        let afterAWeek = ask(for: .seconds(2400))
        let afterSixHours = ask(for: .seconds(1200))
        #expect([afterFiveHours, afterAWeek, afterSixHours] == [false, false, true])
        chain.heard()
        #expect(chain.record == VOPIRecord())
        let anew = ask(for: .seconds(6 * 3600 - 600))
        // A clock that was set back makes nothing older.
        now = now + .seconds(-7 * 86_400)
        let afterSetBack = ask(for: .seconds(6 * 3600 - 600))
        let last = ask(for: .seconds(600))
        #expect([anew, afterSetBack, last] == [false, false, true])
    }

    /// Attempts every ten minutes until it ends, at most for 20 hours. - Returns: how long that took, and why.
    private func end(
        _ place: VOPIPlace, _ path: FilePath, _ order: DeliveryOrder, _ notes: Notes
    ) async throws -> (Duration, DeliveryError)? {
        let start = place.clock.now
        for _ in 1...120 {
            if case .failure(let error) = try await place.attempt(path, order, notes.attempt()) {
                return (place.clock.now - start, error)
            }
            place.clock.advance(.seconds(600))
        }
        return nil
    }

    @Test(arguments: [FaultAction.status(400), .html, .redirect(to: "https://elsewhere.example/")])
    func `a job that nothing tells of for six hours is left to a retry, which goes on with it`(
        _ answer: FaultAction
    ) async throws {
        try await withVOPI(VOPIRules(pace: .manual)) { place in
            let (path, order) = try place.file(1000)
            let notes = Notes()
            _ = try await place.attempt(path, order, notes.attempt()).get()
            place.misbehave(answer, at: .job, times: nil)
            for _ in 1...2 {
                let (time, error) = try #require(try await end(place, path, order, notes))
                #expect(error.verdict == .giveUp && error.reason.contains("goes on with the same job"), "\(error)")
                #expect(time >= .seconds(6 * 3600) && time <= .seconds(6 * 3600 + 1200), "\(time)")
                // What has failed is cleared away, but not the job.
                let entries = notes.entries
                await #expect(throws: DeliveryError.self) {
                    try await place.pipeline.abandon(order, checkpoint: entries)
                }
            }
            place.sandbox.faults.clear()
            place.sandbox.advance(steps: 20)
            _ = try await place.deliver(path, order, notes)
            let tally = place.sandbox.tally
            #expect((tally.puts, tally.jobs, tally.cancels, tally.charges) == (1, 1, 0, 1))
        }
    }

    @Test func `a job that was taken up again by a retry is cancelled with it`() async throws {
        try await withVOPI(VOPIRules(pace: .manual)) { place in
            let (path, order) = try place.file(1000)
            let notes = Notes()
            _ = try await place.attempt(path, order, notes.attempt()).get()
            place.misbehave(.status(400), at: .job, times: nil)
            _ = try #require(try await end(place, path, order, notes))
            place.sandbox.faults.clear()
            _ = try await place.attempt(path, order, notes.attempt()).get()
            let entries = notes.entries
            try await place.pipeline.abandon(order, checkpoint: entries)
            #expect(place.sandbox.tally.cancels == 1)
        }
    }

    @Test func `a job that was asked for and cannot be looked for is left to a retry, which finds it`() async throws {
        try await withVOPI { place in
            let (path, order) = try place.file(1000)
            let notes = Notes()
            place.misbehave(.loseAnswer, at: .createJob)
            place.misbehave(.status(400), at: .listJobs, times: nil)
            let (_, error) = try #require(try await end(place, path, order, notes))
            #expect(error.reason.contains("goes on with the same job"), "\(error)")
            let entries = notes.entries
            place.sandbox.faults.clear()
            await #expect(throws: DeliveryError.self) {
                try await place.pipeline.abandon(order, checkpoint: entries)
            }
            _ = try await place.deliver(path, order, notes)
            let tally = place.sandbox.tally
            #expect((tally.puts, tally.jobs, tally.cancels, tally.charges) == (1, 1, 0, 1))
        }
    }
}
