import Foundation
import InletCore
import InletLinux
import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

@testable import InletPipelines

/// Answers about a job that are no word of the server on that job: none of them may end its delivery.
@Suite(.timeLimit(.minutes(15))) struct VOPIStrangerTests {
    private static let unknownRoute = FaultReply.vopi(
        404, error: "Not Found", message: "Route GET:/api/v1/jobs not found")

    static let answers: [FaultAction] = [
        .reply(unknownRoute), .redirect(to: "https://elsewhere.example/"), .status(400), .status(409), .status(413),
        .status(501), .html, .garbage,
        .reply(.vopi(403, error: "INSUFFICIENT_CREDITS", message: "Insufficient credits.")),
    ]

    @Test(arguments: answers.indices)
    func `whatever answers in the server's place, the job is waited for`(_ index: Int) async throws {
        try await withVOPI(VOPIRules(pace: .manual), file: 1000) { place, path, order, notes in
            _ = try await place.attempt(path, order, notes.attempt()).get()
            place.misbehave(Self.answers[index], at: .job, times: 3)
            for _ in 1...3 {
                let start = place.clock.now
                let (until, saying) = try await place.attempt(path, order, notes.attempt()).get().wait()
                #expect(saying?.contains("looking at job") == true, "\(saying ?? "")")
                #expect(until > start && until - start <= .seconds(60))
                place.clock.advance(to: until)
            }
            place.sandbox.advance(steps: 20)
            _ = try await place.deliver(path, order, notes)
            let tally = place.sandbox.tally
            #expect((tally.puts, tally.jobs, tally.cancels, tally.charges) == (1, 1, 0, 1))
        }
    }

    @Test(arguments: [VOPIOperation.listJobs, .downloadURLs])
    func `nor do strange answers to other questions about it`(_ operation: VOPIOperation) async throws {
        try await withVOPI(file: 1000) { place, path, order, _ in
            if operation == .listJobs { place.misbehave(.loseAnswer, at: .createJob) }
            for fault in [FaultAction.redirect(to: "https://elsewhere.example/"), .reply(Self.unknownRoute), .html] {
                place.misbehave(fault, at: operation)
            }
            _ = try await place.deliver(path, order)
            let tally = place.sandbox.tally
            #expect((tally.puts, tally.jobs, tally.cancels, tally.charges) == (1, 1, 0, 1))
            #expect(place.count(operation) >= 4)
        }
    }

    private static func refusal(_ status: Int, _ code: String) -> FaultAction {
        .reply(FaultReply(status, type: "application/json", body: #"{"error":"\#(code)","message":"no"}"#))
    }

    @Test func `a request for a job that is refused ends it, since there is no job`() async throws {
        try await withVOPI(file: 1000) { place, path, order, _ async throws in
            place.misbehave(Self.refusal(400, "VALIDATION_ERROR"), at: .createJob)
            #expect(try await place.failure(path, order)?.verdict == .giveUp)
            #expect(place.sandbox.tally.jobs == 0)
        }
    }

    /// What a server says that hands the job of another video to this one, with or without that video's name.
    private static func answer(with job: VOPISandbox.Job, namesVideo: Bool) -> FaultReply {
        let video = namesVideo ? #","videoUrl":"\#(job.videoURL)""# : ""
        return FaultReply(
            201, type: "application/json", body: #"{"id":"\#(job.id)","status":"pending"\#(video)}"#)
    }

    @Test(arguments: [true, false], [true, false])
    func `a job that is another video's is not taken for this one's`(namesVideo: Bool, isMade: Bool) async throws {
        try await withVOPI(file: 1000) { place, path, order, _ in
            _ = try await place.deliver(path, order)
            let first = try #require(place.sandbox.jobs().first)
            let reply = Self.answer(with: first, namesVideo: namesVideo)
            place.misbehave(isMade ? .replyAfterWork(reply) : .reply(reply), at: .createJob)
            let (other, another) = try place.file(2000, "other.mp4")
            let proof = try await place.deliver(other, another)
            #expect(proof.details?["job_id"] != first.id)
            let second = try #require(place.sandbox.jobs().last)
            #expect(proof.details?["job_id"] == second.id)
            #expect(try place.fetched(of: second.id) == place.pictures(of: second.id))
            let tally = place.sandbox.tally
            #expect((tally.puts, tally.jobs, tally.cancels, tally.charges) == (2, 2, 0, 2))
        }
    }

    @Test
    func `a server that always answers with another video's job fails the file, and loses that job nothing`()
        async throws
    {
        try await withVOPI(VOPIRules(pace: .manual), file: 1000) { place, path, order, notes in
            _ = try await place.attempt(path, order, notes.attempt()).get()
            let first = try #require(place.sandbox.jobs().first)
            place.misbehave(.reply(Self.answer(with: first, namesVideo: false)), at: .createJob, times: nil)
            let (other, another) = try place.file(2000, "other.mp4")
            let others = Notes()
            let error = try #require(try await place.failure(other, another, others))
            #expect(error.verdict == .giveUp && error.reason.contains("another video's, for the second time"))
            place.clock.advance(.seconds(3600))
            try await place.pipeline.abandon(another, checkpoint: others.entries)
            place.sandbox.advance(steps: 20)
            _ = try await place.deliver(path, order, notes)
            let tally = place.sandbox.tally
            #expect((tally.jobs, tally.cancels, tally.charges) == (1, 0, 1))
        }
    }

    @Test(arguments: [(429, "RATE_LIMIT_EXCEEDED"), (409, "CONFLICT"), (422, "VALIDATION_ERROR")])
    func `a job that the server has refused in its own words is not looked for`(_ status: Int, _ code: String)
        async throws
    {
        try await withVOPI(file: 1000) { place, path, order, notes in
            place.misbehave(Self.refusal(status, code), at: .createJob)
            let start = place.clock.now
            var waited = Duration.zero
            if case .success(.waiting(let until, _)) = try await place.attempt(path, order, notes.attempt()) {
                waited = until - start
            }
            #expect(waited < .seconds(30), "\(waited)")
            place.clock.advance(waited)
            _ = try await place.deliver(path, order, notes)
            #expect(place.count(.listJobs) == 0)
            let tally = place.sandbox.tally
            #expect((tally.puts, tally.jobs, tally.charges) == (1, 1, 1))
        }
    }

    @Test(arguments: [
        FaultAction.status(429), .html, .reply(FaultReply(404, type: "text/html", body: "<html>404</html>")),
    ])
    func `a job that something else has answered for is looked for`(_ answer: FaultAction) async throws {
        try await withVOPI(file: 1000) { place, path, order, _ in
            place.misbehave(answer, at: .createJob)
            _ = try await place.deliver(path, order)
            #expect(place.count(.listJobs) > 0 && place.sandbox.tally.jobs == 1)
        }
    }

    @Test func `a server that cannot say whether it is ready has its stuck jobs cancelled all the same`() async throws {
        try await withVOPI(VOPIRules(outcome: .neverRuns), file: 1000) { place, path, order, notes in
            place.misbehave(.reply(Self.unknownRoute), at: .ready, times: nil)
            for _ in 1...50 where place.sandbox.tally.cancels == 0 {
                try await place.attempt(path, order, notes.attempt()).get().wait()
                place.clock.advance(.seconds(600))
            }
            #expect(place.sandbox.tally.cancels == 1)
        }
    }

    @Test func `an agent that was off for days picks up what was finished meanwhile`() async throws {
        try await withVOPI(VOPIRules(pace: .manual), file: 1000) { place, path, order, notes in
            _ = try await place.attempt(path, order, notes.attempt()).get()
            place.clock.advance(.seconds(5 * 86_400))
            // The server was off too, and the job is still to be made.
            let saying = try await place.attempt(path, order, notes.attempt()).get().wait().saying
            #expect(saying?.hasPrefix("processing: pending") == true, "\(saying ?? "")")
            #expect(place.sandbox.tally.cancels == 0 && place.count(.ready) == 0)
            place.sandbox.advance(steps: 20)
            _ = try await place.deliver(path, order, notes)
            #expect(place.sandbox.tally.jobs == 1)
        }
    }

    @Test func `an empty account holds back new jobs only`() async throws {
        try await withVOPI(VOPIRules(pace: .manual), credits: 1, file: 1000) { place, path, order, _ in
            let (other, another) = try place.file(1000, "other.mp4")
            let notes = Notes()
            _ = try await place.attempt(path, order, notes.attempt()).get()
            place.sandbox.advance(steps: 3)
            #expect(place.sandbox.credits == 0)
            #expect(try await place.failure(other, another)?.code == .outOfCredits)
            try await place.attempt(path, order, notes.attempt()).get().wait()
            place.sandbox.advance(steps: 20)
            _ = try await place.deliver(path, order, notes)
            let tally = place.sandbox.tally
            #expect((tally.presigns, tally.jobs) == (1, 1))
        }
    }

    // MARK: - Jobs that nobody needs

    /// Notes of a delivery whose request was not answered, beside two jobs that came of it.
    private func twoJobs(
        _ place: VOPIPlace, _ path: FilePath, _ order: DeliveryOrder
    ) async throws -> Notes.Entries {
        let notes = Notes()
        _ = try await place.attempt(path, order, notes.attempt()).get()
        let first = try #require(place.sandbox.jobs().first)
        var entries = notes.entries
        let asked = #"{"lookAt":0,"looks":0,"sentAt":\#(place.clock.now.milliseconds)}"#
        (entries["job"], entries["creating"]) = (nil, Array(asked.utf8))
        place.clock.advance(.seconds(1))
        _ = try await place.api.createJob(VOPINewJob(videoURL: first.videoURL))
        return entries
    }

    /// Killed around the note of the adoption.
    private func killed(
        _ place: VOPIPlace, _ path: FilePath, _ order: DeliveryOrder, _ entries: Notes.Entries,
        _ moment: DyingNotes.Moment
    ) async throws -> Notes.Entries {
        let dying = DyingNotes(entries, notes: moment == .afterNote ? 1 : 0, moment)
        let attempt = Task { try await place.attempt(path, order, dying.attempt()) }
        _ = try await attempt.value
        #expect(dying.hasDied)
        return dying.entries
    }

    @Test(arguments: DyingNotes.Moment.allCases)
    func `killed while it adopts a job, it forgets none of the others`(_ moment: DyingNotes.Moment) async throws {
        try await withVOPI(VOPIRules(pace: .manual), file: 1000) { place, path, order, _ in
            let entries = try await twoJobs(place, path, order)
            let first = try #require(place.sandbox.jobs().first)
            let again = Notes(try await killed(place, path, order, entries, moment))
            _ = try await place.attempt(path, order, again.attempt()).get()
            #expect(place.sandbox.tally.cancels == 1)
            place.sandbox.advance(steps: 20)
            let proof = try await place.deliver(path, order, again)
            #expect(proof.details?["job_id"] == first.id)
            let tally = place.sandbox.tally
            #expect((tally.jobs, tally.cancels, tally.charges) == (2, 1, 1))
        }
    }

    @Test func `a job that could not be cancelled at once is cancelled at the next look`() async throws {
        try await withVOPI(VOPIRules(pace: .manual), file: 1000) { place, path, order, _ in
            let notes = Notes(try await twoJobs(place, path, order))
            _ = try await place.api.generation()
            place.misbehave(.status(500), at: .cancel)
            _ = try await place.attempt(path, order, notes.attempt()).get()
            #expect(place.sandbox.tally.cancels == 0)
            _ = try await place.attempt(path, order, notes.attempt()).get()
            #expect(place.sandbox.tally.cancels == 1)
        }
    }

    @Test func `giving up a delivery cancels those that nobody needs too`() async throws {
        try await withVOPI(VOPIRules(pace: .manual), file: 1000) { place, path, order, _ in
            let entries = try await twoJobs(place, path, order)
            let left = try await killed(place, path, order, entries, .afterNote)
            for _ in 1...2 { try await place.pipeline.abandon(order, checkpoint: left) }
            #expect(place.sandbox.tally.cancels == 2)
        }
    }
}
