import Foundation
import InletCore
import InletLinux
import InletPipelines
import InletSandbox
import InletTestSupport
import InletTransfer
import Testing

/// What becomes of jobs that do not simply complete.
@Suite(.timeLimit(.minutes(8))) struct VOPIJobFateTests {
    @Test func `a job that failed twice and then completes is delivered`() async throws {
        try await withVOPI(VOPIRules(outcome: .fails(times: 2, error: "Gemini timed out"))) { place in
            let (path, order) = try place.file()
            _ = try await place.deliver(path, order)
            #expect(place.sandbox.jobs().map(\.failures) == [2])
            #expect(place.sandbox.tally.jobs == 1)
        }
    }

    @Test func `a job that failed for good is reported, and a retry makes another of the same upload`() async throws {
        try await withVOPI(VOPIRules(outcome: .fails("No product in sight"))) { place in
            let (path, order) = try place.file()
            let notes = Notes()
            let error = try await place.failure(path, order, notes)
            #expect(error?.verdict == .giveUp)
            #expect(error?.reason.contains("No product in sight") == true)
            place.sandbox.rules.outcome = .completes
            _ = try await place.deliver(path, order, notes)
            let tally = place.sandbox.tally
            #expect((tally.puts, tally.jobs) == (1, 2))
        }
    }

    @Test func `an upload that the server cannot read is sent once more`() async throws {
        try await withVOPI(VOPIRules(outcome: .fails("Failed to download video: No body"))) { place in
            let (path, order) = try place.file()
            let error = try await place.failure(path, order)
            #expect(error?.verdict == .giveUp)
            #expect(place.sandbox.videos().count == 2)
            #expect(place.sandbox.tally.jobs == 2)
        }
    }

    @Test func `a job that somebody cancelled is watched, then reported`() async throws {
        try await withVOPI(VOPIRules(pace: .manual)) { place in
            let (path, order) = try place.file()
            let notes = Notes()
            _ = try await place.attempt(path, order, notes.attempt()).get()
            try await place.api.cancel(try #require(place.sandbox.jobs().first).id)
            let start = place.clock.now
            let error = try await place.failure(path, order, notes)
            #expect(error?.reason.contains("cancelled at the server") == true)
            #expect(place.clock.now - start >= .seconds(1800))
        }
    }

    @Test func `a job that ran while it was cancelled is delivered all the same`() async throws {
        try await withVOPI(VOPIRules(pace: .manual)) { place in
            let (path, order) = try place.file()
            let notes = Notes()
            _ = try await place.attempt(path, order, notes.attempt()).get()
            place.sandbox.advance(steps: 2)
            try await place.api.cancel(try #require(place.sandbox.jobs().first).id)
            _ = try await place.attempt(path, order, notes.attempt()).get()
            place.sandbox.advance(steps: 20)
            _ = try await place.deliver(path, order, notes)
        }
    }

    @Test func `a job that was deleted is missed three times, then reported`() async throws {
        try await withVOPI(VOPIRules(pace: .manual)) { place in
            let (path, order) = try place.file()
            let notes = Notes()
            _ = try await place.attempt(path, order, notes.attempt()).get()
            try await place.api.delete(try #require(place.sandbox.jobs().first).id)
            let before = place.count(.job)
            let error = try await place.failure(path, order, notes)
            #expect(error?.reason.contains("deleted") == true)
            #expect(place.count(.job) - before == 3)
            // Its video went with it.
            place.sandbox.rules.pace = .polls(steps: 7)
            _ = try await place.deliver(path, order, notes)
            #expect(place.sandbox.tally.puts == 2)
        }
    }

    @Test func `a job that never ends is cancelled, sent once more, and then reported`() async throws {
        try await withVOPI(VOPIRules(outcome: .neverRuns)) { place in
            let (path, order) = try place.file(1000)
            let notes = Notes()
            let start = place.clock.now
            var failure: DeliveryError?
            for _ in 1...200 where failure == nil {
                if case .failure(let error) = try await place.attempt(path, order, notes.attempt()) { failure = error }
                place.clock.advance(.seconds(600))
            }
            #expect(failure?.verdict == .giveUp)
            #expect(failure?.reason.contains("did not end within 6h") == true)
            #expect(place.clock.now - start > .seconds(12 * 3600))
            let tally = place.sandbox.tally
            #expect((tally.jobs, tally.cancels, tally.puts) == (2, 2, 2))
        }
    }

    @Test func `a job waits its turn as long as the server finishes others`() async throws {
        try await withVOPI(VOPIRules(outcome: .neverRuns)) { place in
            let (path, order) = try place.file(1000)
            let notes = Notes()
            let (other, another) = try place.file(1000, "other.mp4")
            for _ in 1...20 {
                for _ in 1...3 {
                    _ = try await place.attempt(path, order, notes.attempt()).get()
                    place.clock.advance(.seconds(600))
                }
                place.sandbox.rules.outcome = .completes
                _ = try await place.deliver(other, another)
            }
            #expect(place.sandbox.tally.cancels == 0)
        }
    }

    @Test func `an empty account holds everything back and sends nothing`() async throws {
        try await withVOPI(credits: 0) { place in
            let (path, order) = try place.file()
            let notes = Notes()
            let error = try await place.failure(path, order, notes)
            #expect(error?.code == .outOfCredits)
            guard case .outage = error?.verdict else {
                Issue.record("does not pause the destination")
                return
            }
            #expect(place.sandbox.tally.presigns == 0)
            place.sandbox.credits = 1
            _ = try await place.deliver(path, order, notes)
            #expect(place.sandbox.credits == 0)
        }
    }

    @Test func `an account that ran empty meanwhile costs no second upload`() async throws {
        try await withVOPI(VOPIRules(pace: .manual), credits: 1) { place in
            let (path, order) = try place.file()
            let notes = Notes()
            _ = try await place.attempt(path, order, notes.attempt()).get()
            place.sandbox.credits = 0
            place.sandbox.rules.pace = .polls(steps: 1)
            #expect(try await place.failure(path, order, notes)?.code == .outOfCredits)
            place.sandbox.credits = 1
            _ = try await place.deliver(path, order, notes)
            let tally = place.sandbox.tally
            #expect((tally.puts, tally.jobs, tally.charges) == (1, 2, 1))
        }
    }

    @Test func `what passes while a job runs costs no attempt`() async throws {
        try await withVOPI { place in
            let (path, order) = try place.file()
            place.misbehave(.reply(.vopiRateLimit(retryAfter: 120)), at: .job)
            place.misbehave(.status(429, retryAfter: 60), at: .job)
            let notes = Notes()
            let start = place.clock.now
            _ = try await place.deliver(path, order, notes)
            #expect(place.clock.now - start >= .seconds(180))
        }
    }

    @Test func `a place for the upload that is refused by our rules ends it`() async throws {
        try await withVOPI { place in
            place.misbehave(.partURLs(.origin("ftp://storage.example")), at: .presign)
            let (path, order) = try place.file()
            let error = try await place.failure(path, order)
            #expect(error?.verdict == .giveUp && error?.code == .forbiddenURL)
            #expect(place.count(.upload) == 0)
        }
    }

    @Test func `an upload URL that has expired is asked for anew`() async throws {
        try await withVOPI { place in
            place.misbehave(.expiredURLs, at: .presign, times: 2)
            let (path, order) = try place.file()
            _ = try await place.deliver(path, order)
            #expect(place.sandbox.tally.presigns == 3)
            #expect(place.sandbox.tally.puts == 1)
        }
    }
}
