import Foundation
import InletCore
import InletLinux
import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

@testable import InletPipelines

/// What a person sees of a delivery, and what it takes to end one.
@Suite(.timeLimit(.minutes(15))) struct VOPIControlTests {
    @Test(arguments: [VOPIOperation.upload, .job, .download])
    func `cancelling ends any step at once, and its job is cancelled after it`(_ operation: VOPIOperation) async throws
    {
        try await withVOPI(VOPIRules(pace: operation == .download ? .polls(steps: 7) : .manual)) { place in
            // Never released.
            place.misbehave(.stall, at: operation, times: nil)
            let (path, order) = try place.file(1_000_000)
            let notes = Notes()
            let ended = Switch()
            let task = Task {
                defer { ended.turnOn() }
                return try await place.attempt(path, order, notes.attempt())
            }
            try await eventually("the step is under way") { place.count(operation) > 0 }
            task.cancel()
            // Far below what would end it otherwise: 30 s for a look, no byte moving for a minute elsewhere.
            try await eventually("it ends") { ended.isOn }
            guard case .failure(let error) = try await task.value else {
                Issue.record("was not cancelled")
                return
            }
            #expect(error.verdict == .cancelled)
            for _ in 1...2 { try await place.pipeline.abandon(order, checkpoint: notes.entries) }
            let tally = place.sandbox.tally
            #expect(tally.jobs == (operation == .upload ? 0 : 1))
            // What has ended is paid for, and only what broken downloads left goes.
            #expect(tally.cancels == (operation == .job ? 1 : 0))
            if operation == .job { #expect(place.sandbox.jobs().map(\.status) == ["cancelled"]) }
            if operation == .download {
                #expect(try place.files(of: try #require(place.sandbox.jobs().first).id).isEmpty)
            }
        }
    }

    @Test func `an upload that stands still is named, and its place is kept for the next attempt`() async throws {
        // Long enough that a busy machine is not taken for a stall.
        try await withVOPI(settings: ["no_progress": .duration(.seconds(2))]) { place in
            // As often as a body is sent in one attempt.
            place.misbehave(.stall, at: .upload, times: 5)
            let (path, order) = try place.file(100_000, "turntable.mp4")
            let notes = Notes()
            let error = expectError(try await place.failure(path, order, notes), .outage(after: nil), code: .stalled)
            #expect(error?.reason.contains("turntable.mp4") == true && error?.reason.contains("no byte moved") == true)
            #expect(notes.entries["upload"] != nil && notes.entries["sent"] == nil)
            _ = try await place.deliver(path, order, notes)
            let tally = place.sandbox.tally
            #expect((tally.presigns, tally.puts, tally.jobs) == (1, 1, 1))
        }
    }

    /// Runs an attempt, and adds what can be seen of its progress.
    private func watched(
        _ place: VOPIPlace, _ path: FilePath, _ order: DeliveryOrder, _ notes: Notes, _ seen: Listing<StepProgress>
    ) async throws -> DeliveryOutcome {
        let attempt = notes.attempt()
        // As the agent does between two looks.
        if let last = seen.all.last { attempt.report(last) }
        let ended = Switch()
        let task = Task {
            defer { ended.turnOn() }
            return try await place.attempt(path, order, attempt).get()
        }
        try await eventually("the attempt ends") {
            if let step = attempt.progress { seen.add(step) }
            return ended.isOn
        }
        if let step = attempt.progress { seen.add(step) }
        return try await task.value
    }

    @Test func `progress is 0 to 70 while it sends, to 95 while it is processed, to 100 while it fetches`() async throws
    {
        try await withVOPI(VOPIRules(pace: .manual, progress: .full, frames: 12), file: 24_000_000) {
            place, path, order, _ in
            place.misbehave(.slowRead(bytesPerSecond: 8_000_000), at: .upload)
            place.misbehave(.delay(.milliseconds(50)), at: .download, times: nil)
            let (notes, seen) = (Notes(), Listing<StepProgress>())
            var outcome = try await watched(place, path, order, notes, seen)
            for _ in 1...40 {
                guard case .waiting(let until, _) = outcome else { break }
                place.clock.advance(to: until)
                place.sandbox.advance(steps: 1)
                outcome = try await watched(place, path, order, notes, seen)
            }
            try outcome.proof()
            let percents = seen.all.map(\.percent)
            #expect(percents == percents.sorted())
            let sending = seen.all.filter { $0.step == "uploading" }.map(\.percent)
            #expect(sending.contains { $0 > 0 } && sending.allSatisfy { (0...70).contains($0) })
            let processing = seen.all.filter { $0.step.hasPrefix("processing: ") }
            #expect(processing.allSatisfy { (70...95).contains($0.percent) })
            #expect(processing.contains { $0.step.contains("scoring") && $0.percent > 70 })
            #expect(Set(processing.map(\.step)).count >= 4)
            let fetching = seen.all.filter { $0.step.hasPrefix("fetch") }
            #expect(fetching.allSatisfy { (95...100).contains($0.percent) })
            #expect(fetching.contains { $0.step.hasPrefix("fetched ") && $0.percent > 95 && $0.percent < 100 })
            #expect(seen.all.last == StepProgress(percent: 100, step: "fetched"))
        }
    }
}

/// A process that is killed at any step goes on there: one upload, one job, all results.
@Suite(.timeLimit(.minutes(15))) struct VOPIKillTests {
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

/// A job on which there is no word for as long as a job may take: asking ends, and the job is there for a person's retry.
@Suite(.timeLimit(.minutes(15))) struct VOPISilenceTests {
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
        try await withVOPI(VOPIRules(pace: .manual), file: 1000) { place, path, order, notes in
            _ = try await place.attempt(path, order, notes.attempt()).get()
            place.misbehave(answer, at: .job, times: nil)
            for _ in 1...2 {
                let (time, error) = try #require(try await end(place, path, order, notes))
                #expect(error.verdict == .giveUp && error.reason.contains("continues the same job"), "\(error)")
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
        try await withVOPI(VOPIRules(pace: .manual), file: 1000) { place, path, order, notes in
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
        try await withVOPI(file: 1000) { place, path, order, notes in
            place.misbehave(.loseAnswer, at: .createJob)
            place.misbehave(.status(400), at: .listJobs, times: nil)
            let (_, error) = try #require(try await end(place, path, order, notes))
            #expect(error.reason.contains("continues the same job"), "\(error)")
            let entries = notes.entries
            place.sandbox.faults.clear()
            await #expect(throws: DeliveryError.self) { try await place.pipeline.abandon(order, checkpoint: entries) }
            _ = try await place.deliver(path, order, notes)
            let tally = place.sandbox.tally
            #expect((tally.puts, tally.jobs, tally.cancels, tally.charges) == (1, 1, 0, 1))
        }
    }
}
