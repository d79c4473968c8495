import Foundation
import InletCore
import InletLinux
import InletSandbox
import InletTestSupport
import Testing

@testable import InletPipelines

/// A process that is killed at any step goes on there: one upload, one job, all results.
@Suite(.timeLimit(.minutes(8))) struct VOPIKillTests {
    @Test(arguments: [VOPIRules.Generation.apiKey, .bearer], DyingNotes.Moment.allCases)
    func `killed once at each note`(_ generation: VOPIRules.Generation, _ moment: DyingNotes.Moment) async throws {
        // Until an attempt outlives all its notes.
        for count in 0...20 {
            let outlived = try await killed(generation, after: count, moment)
            if outlived { return #expect(count >= 5) }
        }
        Issue.record("there is no end of notes")
    }

    /// Whether the attempt that was to be killed ended by itself.
    private func killed(
        _ generation: VOPIRules.Generation, after count: Int, _ moment: DyingNotes.Moment
    ) async throws -> Bool {
        let outlived = Switch()
        // All of the job in one look, so that an attempt comes as far as it can.
        try await withVOPI(VOPIRules(generation: generation, pace: .polls(steps: 7))) { place in
            let (path, order) = try place.file()
            let dying = DyingNotes([:], notes: count, moment)
            let first = Task { try await place.attempt(path, order, dying.attempt()) }
            _ = try await first.value
            if !dying.hasDied { outlived.turnOn() }
            _ = try await place.deliver(path, order, Notes(dying.entries))
            let tally = place.sandbox.tally
            let what: Comment = "killed at note \(count), \(moment)"
            #expect(place.sandbox.videos().count == 1, what)
            #expect(place.sandbox.videos().allSatisfy { $0.puts <= 2 }, what)
            #expect(tally.jobs == 1, what)
            #expect(tally.charges == 1, what)
            let job = try #require(place.sandbox.jobs().first)
            #expect(try place.fetched(of: job.id) == place.pictures(of: job.id), what)
            #expect(try place.product(of: job.id)["complete"] as? Bool == true, what)
        }
        return outlived.isOn
    }

    @Test func `killed while it sends, it sends to the same place`() async throws {
        try await withVOPI { place in
            let (path, order) = try place.file(3_000_000)
            place.misbehave(.stall, at: .upload)
            let notes = Notes()
            let first = Task { try await place.attempt(path, order, notes.attempt()) }
            try await eventually("it sends") { place.count(.upload) > 0 }
            first.cancel()
            _ = try await first.value
            _ = try await place.deliver(path, order, notes)
            #expect(place.sandbox.tally.presigns == 1)
            #expect(place.sandbox.videos().count == 1)
        }
    }

    @Test func `killed while it fetches, it fetches the rest`() async throws {
        try await withVOPI(VOPIRules(pace: .polls(steps: 7), frames: 12)) { place in
            let (path, order) = try place.file()
            let notes = Notes()
            // Some come whole, one is cut and then held.
            place.misbehave(.truncateAnswer(afterBytes: 100), at: .download)
            let first = Task {
                while true {
                    let ended = try await place.attempt(path, order, notes.attempt())
                    guard case .success(.waiting(let until, _)) = ended else { return }
                    place.clock.advance(to: until)
                }
            }
            try await eventually("pictures come") { place.count(.download) > 3 }
            first.cancel()
            _ = try? await first.value
            _ = try await place.deliver(path, order, notes)
            let job = try #require(place.sandbox.jobs().first)
            #expect(try place.fetched(of: job.id) == place.pictures(of: job.id))
            #expect(place.sandbox.tally.jobs == 1)
        }
    }

    @Test(arguments: [FaultAction.loseAnswer, .replyAfterWork(.vopi(500, error: "INTERNAL_ERROR", message: "queue"))])
    func `a job whose answer was lost is found again`(_ fault: FaultAction) async throws {
        try await withVOPI { place in
            place.misbehave(fault, at: .createJob)
            let (path, order) = try place.file()
            _ = try await place.deliver(path, order)
            #expect(place.sandbox.tally.jobs == 1)
            #expect(place.count(.createJob) == 1)
            #expect(place.count(.listJobs) == 1)
        }
    }

    @Test func `a job that was never made is asked for again once it was looked for twice`() async throws {
        try await withVOPI { place in
            place.misbehave(.reset(afterBytes: 1), at: .createJob)
            let (path, order) = try place.file()
            let start = place.clock.now
            _ = try await place.deliver(path, order)
            #expect(place.clock.now - start >= .seconds(60))
            #expect(place.count(.listJobs) == 2)
            #expect(place.sandbox.tally.jobs == 1)
            #expect(place.sandbox.tally.puts == 1)
        }
    }

    @Test func `a job that came late after all is the only one that counts`() async throws {
        try await withVOPI(VOPIRules(pace: .manual)) { place in
            let (path, order) = try place.file()
            let notes = Notes()
            _ = try await place.attempt(path, order, notes.attempt()).get()
            let first = try #require(place.sandbox.jobs().first)
            // As if its answer had been lost, and another had been made beside it.
            var entries = notes.entries
            let asked = #"{"lookAt":0,"looks":0,"sentAt":\#(place.clock.now.milliseconds)}"#
            (entries["job"], entries["creating"]) = (nil, Array(asked.utf8))
            place.clock.advance(.seconds(1))
            _ = try await place.api.createJob(VOPINewJob(videoURL: first.videoURL))
            let again = Notes(entries)
            _ = try await place.attempt(path, order, again.attempt()).get()
            place.sandbox.advance(steps: 20)
            let proof = try await place.deliver(path, order, again)
            #expect(proof.details?["job_id"] == first.id)
            #expect(place.sandbox.tally.cancels == 1)
            #expect(place.sandbox.tally.charges == 1)
        }
    }
}
