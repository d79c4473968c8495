import Foundation
import InletCore
import InletLinux
import InletSandbox
import InletTestSupport
import InletTransfer
import SystemPackage
import Testing

@testable import InletPipelines

/// What becomes of jobs that do not simply complete.
@Suite(.timeLimit(.minutes(15))) struct VOPIJobFateTests {
    @Test func `a job that failed twice and then completes is delivered`() async throws {
        try await withVOPI(VOPIRules(outcome: .fails(times: 2, error: "Gemini timed out"))) { place, path, order, _ in
            _ = try await place.deliver(path, order)
            #expect(place.sandbox.jobs().map(\.failures) == [2])
            #expect(place.sandbox.tally.jobs == 1)
        }
    }

    @Test func `a job that failed for good is reported, and a retry makes another of the same upload`() async throws {
        try await withVOPI(VOPIRules(outcome: .fails("No product in sight"))) { place, path, order, notes in
            let error = expectError(try await place.failure(path, order, notes), .giveUp)
            #expect(error?.reason.contains("No product in sight") == true)
            place.sandbox.rules.outcome = .completes
            _ = try await place.deliver(path, order, notes)
            let tally = place.sandbox.tally
            #expect((tally.puts, tally.jobs) == (1, 2))
        }
    }

    @Test func `an upload that the server cannot read is sent once more`() async throws {
        try await withVOPI(VOPIRules(outcome: .fails("Failed to download video: No body"))) { place, path, order, _ in
            expectError(try await place.failure(path, order), .giveUp)
            #expect(place.sandbox.videos().count == 2)
            #expect(place.sandbox.tally.jobs == 2)
        }
    }

    @Test func `a job that somebody cancelled is watched, then reported`() async throws {
        try await withVOPI(VOPIRules(pace: .manual)) { place, path, order, notes in
            _ = try await place.attempt(path, order, notes.attempt()).get()
            try await place.api.cancel(try #require(place.sandbox.jobs().first).id)
            let start = place.clock.now
            let error = try await place.failure(path, order, notes)
            #expect(error?.reason.contains("cancelled at the server") == true)
            #expect(place.clock.now - start >= .seconds(1800))
        }
    }

    @Test func `a job that ran while it was cancelled is delivered all the same`() async throws {
        try await withVOPI(VOPIRules(pace: .manual)) { place, path, order, notes in
            _ = try await place.attempt(path, order, notes.attempt()).get()
            place.sandbox.advance(steps: 2)
            try await place.api.cancel(try #require(place.sandbox.jobs().first).id)
            _ = try await place.attempt(path, order, notes.attempt()).get()
            place.sandbox.advance(steps: 20)
            _ = try await place.deliver(path, order, notes)
        }
    }

    @Test func `a job that was deleted is missed three times, then reported`() async throws {
        try await withVOPI(VOPIRules(pace: .manual)) { place, path, order, notes in
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
        try await withVOPI(VOPIRules(outcome: .neverRuns), file: 1000) { place, path, order, notes in
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
        try await withVOPI(VOPIRules(outcome: .neverRuns), file: 1000) { place, path, order, notes in
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
        try await withVOPI(credits: 0) { place, path, order, notes in
            let error = expectError(try await place.failure(path, order, notes), code: .outOfCredits)
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
        try await withVOPI(VOPIRules(pace: .manual), credits: 1) { place, path, order, notes in
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
        try await withVOPI { place, path, order, _ in
            place.misbehave(.reply(.vopiRateLimit(retryAfter: 120)), at: .job)
            place.misbehave(.status(429, retryAfter: 60), at: .job)
            let notes = Notes()
            let start = place.clock.now
            _ = try await place.deliver(path, order, notes)
            #expect(place.clock.now - start >= .seconds(180))
        }
    }

    @Test func `a place for the upload that is refused by our rules ends it`() async throws {
        try await withVOPI { place, path, order, _ in
            place.misbehave(.partURLs(.origin("ftp://storage.example")), at: .presign)
            expectError(try await place.failure(path, order), .giveUp, code: .forbiddenURL)
            #expect(place.count(.upload) == 0)
        }
    }

    @Test func `an upload URL that has expired is asked for anew`() async throws {
        try await withVOPI { place, path, order, _ in
            place.misbehave(.expiredURLs, at: .presign, times: 2)
            _ = try await place.deliver(path, order)
            #expect(place.sandbox.tally.presigns == 3)
            #expect(place.sandbox.tally.puts == 1)
        }
    }
}

/// What comes between a video and its pictures on bad days: gateways, cancellations at the wrong moment, other people.
@Suite(.timeLimit(.minutes(15))) struct VOPIUnkindTests {
    private static let publicURL = "https://store.example/uploads/1.mp4"

    /// Notes of a delivery that has just asked for a job and got no answer.
    private static func asking(_ now: WallTime) -> VOPIRecord {
        var record = VOPIRecord()
        record.upload = VOPIRecord.Upload(
            url: "", publicURL: publicURL, expires: now.milliseconds, contentType: "video/mp4")
        record.sent = VOPIRecord.Sent(md5: "00", etag: nil, isProved: false)
        record.creating = VOPIRecord.Creating(sentAt: now.milliseconds, lookAt: now.milliseconds)
        return record
    }

    @Test func `a gateway that knows nothing of a job does not make it gone`() async throws {
        try await withVOPI { place, path, order, _ in
            let kong = FaultReply.vopi(404, error: "Not Found", message: "no Route matched with those values")
            place.misbehave(.reply(kong), at: .job, times: 5)
            _ = try await place.deliver(path, order)
            let tally = place.sandbox.tally
            #expect((tally.puts, tally.jobs, tally.charges) == (1, 1, 1))
        }
    }

    @Test func `a delivery that is cancelled while it asks for a job cancels the one that comes late`() async throws {
        try await withVOPI(VOPIRules(pace: .manual)) { place, path, order, notes in
            _ = try await place.attempt(path, order, notes.attempt()).get()
            let made = try #require(place.sandbox.jobs().first)
            var record = VOPIRecord(notes.entries)
            // As if the request had been cut off, and what was made so far was another delivery's.
            record.job = nil
            record.creating = VOPIRecord.Creating(sentAt: place.clock.now.milliseconds, lookAt: 0)
            record.dead = [made.id]
            let entries = record.entries
            await #expect(throws: DeliveryError.self) { try await place.pipeline.abandon(order, checkpoint: entries) }
            #expect(place.sandbox.tally.cancels == 0)
            _ = try await place.api.createJob(VOPINewJob(videoURL: made.videoURL))
            try await place.pipeline.abandon(order, checkpoint: entries)
            #expect(place.sandbox.tally.cancels == 1)
        }
    }

    @Test func `a job that does not come in two minutes was never asked for`() async throws {
        try await withVOPI { place in
            let (_, order) = try place.file()
            let entries = Self.asking(place.clock.now).entries
            await #expect(throws: DeliveryError.self) { try await place.pipeline.abandon(order, checkpoint: entries) }
            place.clock.advance(VOPIChain.answerable)
            try await place.pipeline.abandon(order, checkpoint: entries)
        }
    }

    @Test func `a request that was left after a minute is not repeated while it may still make a job`() {
        let now = WallTime.now
        let limits = VOPIChain.Limits(poll: .seconds(3), soft: .seconds(3600), hard: .seconds(21_600))
        var step = VOPIChain(record: Self.asking(now), limits: limits)
        let start = step.next(size: 1, now: now + .seconds(3600))
        guard case .look(let upload) = start else {
            Issue.record("\(start)")
            return
        }
        // The deadline of the request is longer than the wait that was noted before it.
        let left = now + .seconds(60)
        step.unanswered(now: left)
        let first = left + VOPIChain.lostFor
        #expect(step.next(size: 1, now: left + (VOPIChain.lostFor - .milliseconds(1))) != .look(upload))
        #expect(step.next(size: 1, now: first) == .look(upload))
        step.found([], now: first)
        let second = first + VOPIChain.lostFor
        #expect(step.next(size: 1, now: second) == .look(upload))
        step.found([], now: second)
        #expect(step.next(size: 1, now: second) == .create(upload))
        #expect(second >= now + VOPIChain.answerable)
    }

    @Test func `the presigned URL leaves the notes with the last byte`() async throws {
        try await withVOPI(VOPIRules(pace: .manual)) { place, path, order, notes in
            _ = try await place.attempt(path, order, notes.attempt()).get()
            let record = VOPIRecord(notes.entries)
            #expect(record.upload?.url == "" && record.job != nil)
            for (name, note) in notes.entries {
                #expect(!String(decoding: note, as: UTF8.self).contains("?"), "\(name)")
            }
        }
    }

    @Test func `results that nobody could fetch wait for a retry, however late`() async throws {
        try await withVOPI { place, path, order, notes in
            place.misbehave(.partURLs(.origin("ftp://storage.example")), at: .downloadURLs)
            #expect(try await place.failure(path, order, notes)?.code == .forbiddenURL)
            place.clock.advance(.seconds(2 * 86_400))
            let entries = notes.entries
            await #expect(throws: DeliveryError.self) { try await place.pipeline.abandon(order, checkpoint: entries) }
            _ = try await place.deliver(path, order, notes)
            #expect(place.sandbox.tally.jobs == 1)
        }
    }

    @Test func `results that were given up while they were fetched are fetched by a retry, without another job`()
        async throws
    {
        try await withVOPI { place, path, order, notes in
            place.misbehave(
                .reply(.vopi(500, error: "INTERNAL_ERROR", message: "store")), at: .downloadURLs, times: nil)
            for _ in 1...50 where VOPIRecord(notes.entries).job?.isFetching != true {
                let until = try await place.attempt(path, order, notes.attempt()).get().wait().until
                place.clock.advance(to: until)
            }
            #expect(VOPIRecord(notes.entries).job?.isFetching == true)
            // It has expired, or somebody has cancelled it: what is left is cleared away as the agent does it.
            let entries = notes.entries
            try await place.pipeline.abandon(order, checkpoint: entries)
            let kept = Notes(place.pipeline.reusable(entries))
            place.sandbox.faults.clear()
            place.clock.advance(.seconds(2 * 86_400))
            _ = try await place.deliver(path, order, kept)
            let tally = place.sandbox.tally
            #expect((tally.puts, tally.jobs, tally.charges, tally.cancels) == (1, 1, 1, 0))
        }
    }

    @Test func `results are not written through a symlink`() async throws {
        try await withVOPI(VOPIRules(pace: .manual)) { place, path, order, notes in
            _ = try await place.attempt(path, order, notes.attempt()).get()
            let job = try #require(place.sandbox.jobs().first).id
            let elsewhere = try TemporaryDirectory()
            let folder = place.results.appending(job).string
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
            try FileManager.default.createSymbolicLink(
                atPath: folder + "/images", withDestinationPath: elsewhere.path.string)
            place.sandbox.advance(steps: 20)
            let error = try await place.failure(path, order, notes)
            #expect(error?.verdict == .giveUp && error?.reason.contains("is a symlink") == true)
            #expect(try FileManager.default.contentsOfDirectory(atPath: elsewhere.path.string) == [])
            try FileManager.default.removeItem(atPath: folder + "/images")
            _ = try await place.deliver(path, order, notes)
            #expect(try place.fetched(of: job) == place.pictures(of: job))
            #expect(place.sandbox.tally.jobs == 1)
        }
    }
}
