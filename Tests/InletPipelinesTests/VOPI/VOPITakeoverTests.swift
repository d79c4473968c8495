import Foundation
import InletCore
import InletSandbox
import InletTestSupport
import Testing

@testable import InletPipelines

/// A successor on another machine: it gets no URLs and no times, and makes no second job where there may be one.
@Suite(.timeLimit(.minutes(15))) struct VOPITakeoverTests {
    @Test(arguments: [VOPIRules.Generation.apiKey, .bearer], DyingNotes.Moment.allCases)
    func `whenever its predecessor died, one job is made`(
        _ generation: VOPIRules.Generation, _ moment: DyingNotes.Moment
    ) async throws {
        for count in 0...20 {
            let outlived = Switch()
            try await withVOPI(VOPIRules(generation: generation, pace: .polls(steps: 7))) { place in
                let (path, order) = try place.file()
                let dying = DyingNotes([:], notes: count, moment)
                _ = try await Task { try await place.attempt(path, order, dying.attempt()) }.value
                if !dying.hasDied { outlived.turnOn() }
                let handed = place.pipeline.handedOver(dying.entries)
                #expect(place.pipeline.handedOver(handed) == handed)
                #expect(handed["results"] == nil)
                let proof = try await place.deliver(path, order, Notes(handed))
                let what: Comment = "died at note \(count), \(moment)"
                let tally = place.sandbox.tally
                #expect((tally.jobs, tally.charges) == (1, 1), what)
                // An upload whose end no note tells of begins anew.
                #expect(place.sandbox.videos().count <= 2, what)
                let job = try #require(place.sandbox.jobs().first)
                #expect(proof.details?["job_id"] == job.id, what)
                #expect(try place.fetched(of: job.id) == place.pictures(of: job.id), what)
            }
            if outlived.isOn { return #expect(count >= 5) }
        }
        Issue.record("there is no end of notes")
    }

    @Test func `a request that may be on its way has all its time, whatever the clocks say`() async throws {
        try await withVOPI { place in
            place.misbehave(.loseAnswer, at: .createJob)
            let (path, order) = try place.file()
            let notes = Notes()
            try await place.attempt(path, order, notes.attempt()).get().wait()
            let successor = Notes(place.pipeline.handedOver(notes.entries))
            let start = place.clock.now
            let wait = try await place.attempt(path, order, successor.attempt()).get().wait()
            #expect(wait.until >= start + VOPIChain.answerable)
            #expect(VOPIRecord(successor.entries).creating?.isHandedOver == nil)
            _ = try await place.deliver(path, order, successor)
            #expect(place.count(.createJob) == 1 && place.sandbox.tally.jobs == 1)
        }
    }

    @Test func `no URL with a signature is handed over, and its job is found all the same`() throws {
        let name = "https://store.example/up?sig=canary"
        var record = VOPIRecord()
        record.upload = VOPIRecord.Upload(
            url: "https://store.example/put?sig=canary", publicURL: name, expires: 7, contentType: "video/mp4")
        record.sent = VOPIRecord.Sent(md5: "00", etag: nil, isProved: true)
        // No job was asked for: the video is sent anew.
        #expect(VOPIRecord(record.handedOver.entries) == VOPIRecord())
        record.creating = VOPIRecord.Creating(sentAt: 5, lookAt: 6, looks: 1)
        let entries = record.handedOver.entries
        #expect(entries.values.allSatisfy { !String(decoding: $0, as: UTF8.self).contains("canary") })
        let handed = VOPIRecord(entries)
        #expect(handed.upload?.isNamed(name) == true)
        #expect(handed.upload?.isNamed("https://store.example/up?sig=other") == false)
        #expect(handed.sent == nil && handed.creating?.isHandedOver == true)
        #expect(handed.handedOver == handed)
    }

    @Test func `times of another agent's notes cannot be too large or too small`() {
        let limit = Int64.min
        let job = Array(#"{"id":"a","since":\#(limit),"isAdopted":false,"isFetching":false,"seen":\#(limit)}"#.utf8)
        var chain = VOPIChain(
            record: VOPIRecord(["job": job]), limits: .init(poll: .seconds(3), soft: .seconds(60), hard: .seconds(600)))
        let now = WallTime(milliseconds: 1_700_000_000_000)
        chain.looked(now: now)
        #expect(chain.record.job?.since == now.milliseconds - chain.limits.away.milliseconds)
    }
}
