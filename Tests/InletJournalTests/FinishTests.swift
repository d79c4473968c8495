import InletCore
import InletJournal
import InletJournalSupport
import Testing

@Suite(.seated) struct FinishTests {
    @Test func `a file is finished once, with one receipt`() async throws {
        let bench = try Bench()
        _ = try await bench.admit("a")
        try await bench.settle(.test(.delivered))
        let job = try #require(try await bench.journal.unfinished(at: Bench.start, limit: 9).first)
        let results = try await withThrowingTaskGroup(of: Bool.self) { group in
            for number in 0..<8 {
                group.addTask {
                    try await bench.journal.finish(
                        job.file, disposition: Disposition.deleted, receipt: [UInt8(number)], at: Bench.start) != nil
                }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(results.filter(\.self).count == 1)
        #expect(try await bench.journal.receipts(limit: 9).count == 1)
        #expect(try await bench.journal.unfinished(at: Bench.start, limit: 9).isEmpty)
        let file = try await bench.job(job.file.id).file
        #expect(file.disposition == Disposition.deleted)
        #expect(file.finishedAt == Bench.start)
    }

    @Test func `pending files are not for the finisher`() async throws {
        let bench = try Bench()
        _ = try await bench.admit("a", to: ["r2", "disk"])
        try await bench.settle(.test(.delivered))
        #expect(try await bench.journal.unfinished(at: Bench.start, limit: 9).isEmpty)
        #expect(try await bench.journal.nextFinish() == nil)
    }

    @Test func `what is put off comes back at its time`() async throws {
        let bench = try Bench()
        let id = try await bench.admit("a")
        try await bench.settle(.test(.delivered))
        #expect(try await bench.journal.nextFinish() == WallTime(milliseconds: 0))
        let later = Bench.start + .seconds(60)
        try await bench.journal.postponeFinish(id, until: later, note: "held")
        #expect(try await bench.journal.unfinished(at: Bench.start, limit: 9).isEmpty)
        #expect(try await bench.journal.nextFinish() == later)
        #expect(try await bench.job(id).file.disposition == "held")
        #expect(try await bench.journal.unfinished(at: later, limit: 9).map(\.file.id) == [id])
    }

    @Test(.enabled(if: SQLiteShell.isInstalled))
    func `what cannot be read of a file shows, and keeps none of the others from their end`() async throws {
        let bench = try Bench()
        let damaged = try await bench.admit("a")
        let unproved = try await bench.admit("b")
        let whole = try await bench.admit("c")
        for _ in 0..<3 { try await bench.settle(.test(.delivered)) }
        try SQLiteShell.run(
            bench.journal.path,
            "UPDATE file SET labels = x'7b' WHERE id = \(damaged); "
                + "UPDATE delivery SET proof = x'7b' WHERE file_id = \(unproved)")
        let jobs = try await bench.journal.unfinished(at: Bench.start, limit: 9)
        #expect(jobs.map(\.file.id) == [damaged, unproved, whole])
        #expect(jobs.map { $0.damage == nil } == [false, false, true])
        #expect(jobs[1].damage == "the proof of its delivery to 'r2' cannot be read")
    }

    @Test func `an intent lasts until the file is finished`() async throws {
        let bench = try Bench()
        let id = try await bench.admit("a")
        try await bench.settle(.test(.delivered))
        try await bench.journal.intend(id, [1, 2])
        #expect(try await bench.job(id).file.intent == [1, 2])
        try await bench.journal.intend(id, nil)
        #expect(try await bench.job(id).file.intent == nil)
        try await bench.journal.intend(id, [3])
        try await bench.finishAll()
        #expect(try await bench.job(id).file.intent == nil)
    }

    @Test func `the finisher may find that the file was superseded`() async throws {
        let bench = try Bench()
        let id = try await bench.admit("a")
        try await bench.settle(.test(.delivered))
        let file = try await bench.job(id).file
        #expect(
            try await bench.journal.finish(
                file, disposition: Disposition.untouched("changed"), state: .superseded, receipt: [], at: Bench.start)
                != nil)
        #expect(try await bench.journal.totals().mapValues(\.files) == [.superseded: 1])
    }

    @Test func `a file that is sent again is not finished by a finisher that looked before`() async throws {
        let bench = try Bench()
        let id = try await bench.admit("a")
        try await bench.settle(.test(.failed))
        let file = try await bench.job(id).file
        #expect(try await bench.journal.retry(id, uptimes: [:], at: Bench.start))
        await #expect(throws: JournalError.self) { try await bench.journal.intend(id, [1]) }
        try await bench.journal.postponeFinish(id, until: Bench.start + .seconds(60), note: "held")
        #expect(
            try await bench.journal.finish(file, disposition: Disposition.kept, receipt: [], at: Bench.start) == nil)
        #expect(try await bench.journal.receipts(limit: 9).isEmpty)
        try await bench.settle(.test(.delivered))
        #expect(try await bench.journal.unfinished(at: Bench.start, limit: 9).map(\.file.state) == [.delivered])
    }

    @Test func `a file on its way to quarantine, or in it, is not sent again before it is back`() async throws {
        let bench = try Bench()
        let id = try await bench.admit("a")
        try await bench.settle(.test(.failed))
        try await bench.journal.intend(id, [1])
        #expect(try await !bench.journal.retry(id, uptimes: [:], at: Bench.start))
        try await bench.finishAll(Disposition.quarantined("/x"))
        #expect(try await !bench.journal.retry(id, uptimes: [:], at: Bench.start))
        #expect(try await bench.journal.quarantined(byRetryOf: [id])[id]?.map(\.id) == [id])
        try await bench.journal.beginReturn(of: [id])
        var now = try await bench.job(id).file.identity
        now.changed += 1
        let retry = FileAction.retry(uptimes: [:], returned: [id: now])
        #expect(try await bench.journal.act(retry, on: [id], at: Bench.start).outcomes == [.done])
        let file = try await bench.job(id).file
        #expect(file.state == .pending && file.intent == nil && file.disposition == nil && file.identity == now)
    }

    @Test func `when who moved a file back from quarantine dies, its name is free for a new file`() async throws {
        let bench = try Bench()
        let id = try await bench.admit("a")
        try await bench.settle(.test(.failed))
        try await bench.finishAll(Disposition.quarantined("/x"))
        try await bench.journal.beginReturn(of: [id])
        let back = Arrival.test("a", .test(changed: 9))
        #expect(try await bench.journal.recall([back], tolerance: 0) == [.known])
        _ = try await bench.journal.recover(destinations: ["r2"], at: Bench.start)
        #expect(try await bench.job(id).file.intent == nil)
        #expect(try await bench.journal.recall([back], tolerance: 0) == [.new])
    }

    @Test func `receipts come newest first`() async throws {
        let bench = try Bench()
        for number in UInt8(1)...5 {
            let id = try await bench.admit("\(number)")
            try await bench.settle(.test(.delivered))
            _ = try await bench.journal.finish(
                try await bench.job(id).file, disposition: Disposition.kept, receipt: [number], at: Bench.start)
        }
        #expect(try await bench.journal.receipts(limit: 3) == [[5], [4], [3]])
    }
}
