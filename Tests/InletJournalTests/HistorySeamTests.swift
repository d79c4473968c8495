import InletCore
import InletJournalSupport
import InletTestSupport
import SystemPackage
import Testing

@testable import InletJournal

/// What other parts of the journal have added to files and deliveries goes to the history with them, and comes back.
@Suite(.seated) struct HistorySeamTests {
    /// A migration that gives either table a column must give it to the history too, or say here why not.
    @Test(
        .enabled(if: SQLiteShell.isInstalled),
        arguments: [("file", ["finish_at"]), ("delivery", ["owner", "until"])])
    func `the history has every column but those that only what is open needs`(
        table: String, missing: [String]
    ) throws {
        let bench = try Bench()
        bench.journal.close()
        let found = try SQLiteShell.run(
            bench.journal.path,
            """
            SELECT name FROM pragma_table_info('\(table)')
            EXCEPT SELECT name FROM pragma_table_info('history_as_\(table)') ORDER BY name
            """)
        #expect(found.split(separator: "\n").map(String.init) == missing)
    }

    @Test(.enabled(if: SQLiteShell.isInstalled))
    func `what comes back is as it was, to the last column`() async throws {
        let bench = try Bench()
        var admission = FileAdmission.content(3, "a.txt", .link, to: ["r2", "disk"])
        admission.plan?.priority = .high
        admission.plan?.labels = ["event": "wedding"]
        admission.plan?.with = ["title": "x"]
        let id = try await bench.deliver(admission)
        let before = try Self.rows(bench)
        #expect(try await bench.prune() == 1)
        #expect(try Self.rows(bench).isEmpty)
        #expect(try await bench.job(id).deliveries.map(\.priority) == [.high, .high])
        let isBack = try await bench.journal.commit { try Journal.revive(id, $0) }
        #expect(isBack)
        #expect(try Self.rows(bench) == before)
        #expect(try await bench.journal.totals().values.map(\.files) == [1])
        #expect(try await bench.journal.queueCounts().isEmpty)
    }

    /// Files, deliveries and contents, but for when a delivery that has ended would have been due.
    private static func rows(_ bench: Bench) throws -> String {
        try ["file", "delivery", "content"].map { table in
            let columns = try SQLiteShell.run(
                bench.journal.path,
                "SELECT group_concat(name) FROM pragma_table_info('\(table)') WHERE name <> 'next_at'"
            ).filter { $0 != "\n" }
            return try SQLiteShell.run(bench.journal.path, "SELECT \(columns) FROM \(table)")
        }.joined()
    }

    @Test func `what is sent again from there is as urgent as it was`() async throws {
        let bench = try Bench()
        var admission = FileAdmission.test("old")
        admission.plan?.priority = .high
        let id = try await bench.admit(admission)
        try await bench.settle(.test(.gone))
        try await bench.finishAll()
        #expect(try await bench.prune() == 1)
        _ = try await bench.admit("new", at: Bench.start + .seconds(-60))
        #expect(try await bench.journal.retry(id, uptimes: [:], at: Bench.start))
        #expect(try await bench.journal.queueCounts() == bench.journal.countedQueue())
        #expect(try await bench.claimAll(most: 1).map(\.file.id) == [id])
    }

    @Test func `a companion comes back though its file was forgotten meanwhile`() async throws {
        let bench = try Bench()
        var admission = FileAdmission.test("a.mp4")
        admission.companions = [
            CompanionAdmission(
                .test("a.xmp", .test(inode: 2)), Companion(path: "a.xmp", kind: .sameStem, ending: "xmp"),
                category: "other", mediaType: "text/xml", lanes: ["r2": .big])
        ]
        guard case .admitted(let main) = try await bench.journal.admitSet(admission, at: Bench.start).main else {
            throw Unexpected(what: "not admitted")
        }
        try await bench.settle(.delivered(.test("a.mp4")))
        let companion = main + 1
        _ = try await bench.journal.cancel(companion, at: Bench.start)
        try await bench.finishAll()
        // What was cancelled goes first.
        var step = (files: 0, next: HistoryPlace() as HistoryPlace?, youngest: nil as WallTime?)
        while step.files == 0 {
            let place = try #require(step.next)
            step = try await bench.journal.moveToHistory(finishedBy: Bench.later, from: place)
        }
        #expect(
            try await bench.journal.newest("/in", ["a.mp4", "a.xmp"]).map { $0?.state } == [.delivered, .cancelled])
        #expect(try await bench.journal.forget(main))
        #expect(try await bench.job(companion).deliveries.count == 1)
        #expect(try await bench.journal.retry(companion, uptimes: [:], at: Bench.start))
        #expect(try await bench.claimAll().map(\.file.id) == [companion])
    }

    /// The state of a batch is the worst of its files': here, that of one for which nothing can be done.
    @Test func `a unit with a rejected file stays while another of its files waits for a person`() async throws {
        let bench = try Bench()
        var (sent, refused) = (FileAdmission.test("gigs/X/a", expire: .seconds(60)), FileAdmission.refused("gigs/X/b"))
        (sent.unit, refused.unit) = ("gigs/X", "gigs/X")
        let id = try await bench.admit(sent)
        _ = try await bench.journal.admit(refused, at: Bench.start)
        _ = try await bench.journal.closeUnit(
            "gigs/X", root: "/in", routes: ["all"], marker: nil, uptimes: ["r2": 0], at: Bench.start)
        #expect(try await bench.journal.setUptime("r2", 60_000, at: Bench.start) == [id])
        try await bench.finishAll()
        #expect(try await bench.journal.batch(of: id)?.state == .rejected)
        #expect(try await bench.prune() == 0)
        #expect(try await bench.journal.retry(id, uptimes: ["r2": 60_000], at: Bench.start))
        try await bench.settle(.delivered(.test("gigs/X/a")))
        try await bench.finishAll()
        #expect(try await bench.prune() == 2)
    }

    @Test func `a batch is found by its files, and told to a receiver that was away, once they are there`() async throws
    {
        let bench = try Bench()
        var admission = FileAdmission.test("gigs/X/a")
        admission.unit = "gigs/X"
        let id = try await bench.admit(admission)
        let batch = try #require(try await bench.journal.batch(of: id))
        _ = try await bench.journal.closeUnit(
            "gigs/X", root: "/in", routes: ["all"], marker: nil, uptimes: [:], at: Bench.start)
        try await bench.settle(.delivered(.test("gigs/X/a")))
        try await bench.finishAll()
        #expect(try await bench.prune() == 1)
        #expect(try await bench.journal.batch(of: id)?.id == batch.id)
        #expect(try await bench.journal.endedBatch(batch.id, limit: 9)?.jobs.map(\.file.id) == [id])
    }
}
