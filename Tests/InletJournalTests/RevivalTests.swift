import InletCore
import InletJournalSupport
import InletTestSupport
import SystemPackage
import Testing

@testable import InletJournal

/// What comes back from the history, when that is much.
@Suite(.seated, .enabled(if: SQLiteShell.isInstalled)) struct RevivalTests {
    private let bench: Bench
    init() throws { bench = try Bench() }

    private static let part = Journal.revivedAtOnce

    /// A history of one unit of one file, or of one file without a unit. - Returns: the file.
    private func buried(unit: Bool) async throws -> Int64 {
        guard unit else { return try await bench.bury("a", key: "k") }
        let id = try await bench.admit(.test("gigs/X/a", key: "k", unit: "gigs/X"))
        try await bench.closeUnit("gigs/X")
        try await bench.settleAndFinish(.delivered(.test("k")))
        guard try await bench.prune() == 1 else { throw Unexpected(what: "the unit did not go to the history") }
        return id
    }

    /// Copies a file of the history, which has one delivery, so often: under paths of their own, or under the same one.
    private func copy(_ id: Int64, _ times: Int, newNames: Bool) throws {
        let (file, delivery) = (
            try columns(of: "history_file", but: ["id", "path"]),
            try columns(of: "history_delivery", but: ["id", "file_id", "key"])
        )
        try SQLiteShell.run(
            bench.journal.path,
            """
            BEGIN;
            CREATE TEMP TABLE copies AS
                WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < \(times)) SELECT n FROM c;
            INSERT INTO history_file (id, path, \(file))
                SELECT id + n, \(newNames ? "CAST(path || n AS BLOB)" : "path"), \(file) FROM history_file, copies
                WHERE id = \(id);
            INSERT INTO history_delivery (id, file_id, key, \(delivery))
                SELECT 1000 + n, file_id + n, key || n, \(delivery) FROM history_delivery, copies WHERE file_id = \(id);
            UPDATE tally SET files = files + \(times), bytes = bytes + 10 * \(times) WHERE state = 'delivered';
            UPDATE history_place SET kept = kept + \(times);
            COMMIT;
            """)
    }

    private func columns(of table: String, but others: [String]) throws -> String {
        let names = try SQLiteShell.run(bench.journal.path, "SELECT name FROM pragma_table_info('\(table)')")
        return names.split(separator: "\n").map(String.init).filter { !others.contains($0) }.joined(separator: ", ")
    }

    private func count(_ table: String) throws -> Int {
        Int(try SQLiteShell.run(bench.journal.path, "SELECT count(*) FROM \(table)").filter { $0 != "\n" }) ?? -1
    }

    @Test
    func `a large unit comes back in parts, each its own transaction, and the last with the action`() async throws {
        let id = try await buried(unit: true)
        try copy(id, 2 * Self.part + 79, newNames: true)
        var left: [Int] = []
        while try await bench.journal.commit({ try Journal.revivePart(of: [id], $0) }) {
            left.append(try count("history_file"))
            // All the while, each file is in one of the two places.
            #expect(try count("file") + (left.last ?? 0) == 2 * Self.part + 80)
            #expect(try await bench.batch(of: id)?.counts == [.delivered: 2 * Self.part + 80])
        }
        #expect(left == [Self.part + 80, 80])
        #expect(try await bench.forget(id))
        #expect(try count("history_file") == 0 && count("history_delivery") == 0)
        #expect(try count("file") == 2 * Self.part + 79)
    }

    #if DEBUG
        @Test(arguments: [true, false])
        func `no transaction of a command brings back more than a part`(isGroup: Bool) async throws {
            let id = try await buried(unit: true)
            try copy(id, 2 * Self.part + 79, newNames: true)
            let files = isGroup ? Array(id..<id + 100) : [id]
            let transactions = try await bench.journal.runs(of: "BEGIN") {
                let done = try await bench.act(.forget, on: files).outcomes
                #expect(done == files.map { _ in .done })
            }
            // Two parts, a look for more, and the command.
            #expect(transactions == 4)
            #expect(try count("file") == 2 * Self.part + 80 - files.count)
        }
    #endif

    @Test func `of a path that was written to for years, what is newer comes back before what is older`() async throws {
        let id = try await buried(unit: false)
        try copy(id, Self.part + 50, newNames: false)
        var parts = 0
        while try await bench.journal.commit({ try Journal.revivePart(of: [id], $0) }) {
            parts += 1
            let isInOrder = "SELECT (SELECT max(id) FROM history_file) < (SELECT min(id) FROM file)"
            #expect(try SQLiteShell.run(bench.journal.path, isInOrder) == "1\n")
        }
        #expect(parts == 1)
        try await bench.journal.replaceProof(of: bench.job(id).deliveries[0].id, by: .test("k"))
        #expect(try count("file") == Self.part + 51 && count("history_file") == 0)
    }

    /// A sidecar without a file of its own, and later the same with one.
    @Test func `what comes back as newer brings what it comes after with it`() async throws {
        let first = try await bench.bury("a.xmp", key: "a.xmp")
        let companion = CompanionAdmission.test("a.xmp", .sameStem, .test(size: 20, inode: 2))
        let main = try await bench.admit(.test("a.mp4", companions: [companion]))
        try await bench.settle(.delivered(.test("a.mp4")))
        try await bench.settleAndFinish(.delivered(.test("a_2.xmp")))
        try await bench.finishAll()
        #expect(try await bench.prune() == 2)
        let before = try await bench.job(main + 1).deliveries[0]
        #expect(try await before.afterID == bench.job(main).deliveries[0].id)
        try await bench.journal.replaceProof(of: bench.job(first).deliveries[0].id, by: .test("a.xmp"))
        #expect(try count("history_file") == 0)
        #expect(try await bench.job(main + 1).deliveries[0].afterID == before.afterID)
    }
}

#if DEBUG
    /// Lists of files, from a long history: each read of the journal is a short one, and others have their turn in between.
    @Suite(.seated, .enabled(if: SQLiteShell.isInstalled)) struct ListingTests {
        private static let count = 5 * Int(Journal.stretch)

        /// A history of so many files that nothing was sent of.
        private func bench() async throws -> Bench {
            let bench = try Bench()
            try await bench.offer(.refused("a"))
            try await bench.finishAll()
            guard try await bench.prune() == 1 else { throw Unexpected(what: "nothing went to the history") }
            let info = "pragma_table_info('history_file') WHERE name NOT IN ('id', 'path')"
            let names = try SQLiteShell.run(bench.journal.path, "SELECT name FROM \(info)")
            let columns = names.split(separator: "\n").joined(separator: ", ")
            try SQLiteShell.run(
                bench.journal.path,
                """
                WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < \(Self.count - 1))
                INSERT INTO history_file (id, path, \(columns))
                    SELECT id + n, CAST(path || n AS BLOB), \(columns) FROM c CROSS JOIN history_file WHERE id = 1
                """)
            return bench
        }

        /// - Returns: the jobs, and in how many reads they were found.
        private func list(_ bench: Bench, _ filter: FileFilter) async throws -> (jobs: [Job], reads: Int) {
            var jobs: [Job] = []
            let reads = try await bench.journal.runs(of: "BEGIN") { jobs = try await bench.journal.jobs(filter) }
            return (jobs, reads)
        }

        @Test func `a filter that hardly anything passes is asked of one stretch in each read`() async throws {
            let bench = try await bench()
            var filter = FileFilter(limit: 100)
            filter.path = try GlobPattern("a17")
            let found = try await list(bench, filter)
            #expect(found.jobs.map(\.file.id) == [18])
            // And one for what was found.
            #expect(found.reads == 6)
            filter.path = nil
            filter.labels = ["no": "such"]
            let none = try await list(bench, filter)
            #expect(none.jobs.isEmpty && none.reads == 5)
        }

        @Test func `an open question among many answered files is found in one read`() async throws {
            let bench = try await bench()
            try SQLiteShell.run(bench.journal.path, "UPDATE history_file SET unanswered = NULL WHERE id <> 18")
            var filter = FileFilter(states: [.rejected], limit: 100)
            filter.isUnanswered = true
            let found = try await list(bench, filter)
            #expect(found.jobs.map(\.file.id) == [18])
            // And one for what was found.
            #expect(found.reads == 2)
        }

        @Test func `of many that pass so many are read at once, newest first`() async throws {
            let bench = try await bench()
            let wanted = Int(Journal.stretch) + 2 * Journal.readAtOnce
            let found = try await list(bench, FileFilter(states: [.rejected], limit: wanted))
            #expect(found.jobs.map(\.file.id) == (0..<wanted).map { Int64(Self.count - $0) })
            #expect(found.reads == 2 + wanted / Journal.readAtOnce)
        }
    }
#endif

/// What was delivered, as those who look again ask for it; and when its deliveries began.
@Suite(.seated) struct DeliveredTests {
    private let bench: Bench
    init() throws { bench = try Bench() }

    @Test func `a delivery began when it was first claimed, and anew once it is sent again`() async throws {
        let id = try await bench.admit("a")
        #expect(try await bench.job(id).deliveries.first?.startedAt == nil)
        let first = Bench.start + .seconds(5)
        try await bench.hold(at: first) { claim in
            #expect(claim.delivery.startedAt == first)
            return .again(first, counts: true)
        }
        let second = first + .seconds(60)
        try await bench.settle(.test(.failed), at: second)
        var delivery = try #require(try await bench.job(id).deliveries.first)
        #expect(delivery.startedAt == first && delivery.endedAt == second)
        let third = second + .seconds(60)
        #expect(try await bench.retry(id, at: third))
        #expect(try await bench.job(id).deliveries.first?.startedAt == nil)
        try await bench.settle(.test(.delivered), at: third)
        delivery = try #require(try await bench.job(id).deliveries.first)
        #expect(delivery.startedAt == third && delivery.endedAt == third)
    }

    @Test func `the rule that finishes a file sees when its last delivery ended`() async throws {
        try await bench.admit("a")
        let now = Bench.start + .seconds(5)
        let claim = try #require(try await bench.claimAll(at: now).first)
        let end = now + .seconds(3)
        let none = ClaimRequest.none(.big)
        _ = try await bench.journal.exchange(
            [(claim.delivery.id, .test(.delivered))], for: none,
            ending: { job in
                #expect(job.deliveries.first?.endedAt == end && job.deliveries.first?.startedAt == now)
                return (Disposition.kept, Array("{}".utf8))
            }, at: end)
        #expect(try await bench.journal.receipts(limit: 9).count == 1)
    }

    @Test func `pages hold every proof once, and only those that are meant`() async throws {
        var ids: [Int64] = []
        for number in 0..<7 { ids.append(try await bench.admit("\(number)", to: ["r2", "disk"])) }
        let late = Bench.start + .seconds(100)
        for number in 0..<7 {
            let time = number < 4 ? Bench.start : late
            try await bench.settle(.test(number == 6 ? .failed : .delivered), at: time)
            if number < 3 { try await bench.settle(.test(.delivered), of: "disk", at: time) }
        }
        #expect(try await pages(DeliveredFilter(), 4).count == 9)
        #expect(try await pages(DeliveredFilter(), 1).map { $0.delivery.id }.count == 9)
        #expect(try await pages(DeliveredFilter(destination: "disk"), 2).map { $0.file.id } == Array(ids.prefix(3)))
        let some = try await pages(DeliveredFilter(jobs: [ids[1], ids[5], ids[6]]), 100)
        #expect(some.map { $0.file.id } == [ids[1], ids[1], ids[5]])
        #expect(try await pages(DeliveredFilter(since: late), 100).map { $0.file.id } == [ids[4], ids[5]])
        #expect(try await pages(DeliveredFilter(batch: 1), 100).isEmpty)
        #expect(some.allSatisfy { $0.delivery.proof != nil })
    }

    @Test(.enabled(if: SQLiteShell.isInstalled))
    func `what lies far apart in a long history is found, over pages with nothing`() async throws {
        for name in ["first", "last"] {
            try await bench.admit(name)
            try await bench.settle(.test(.delivered))
        }
        try SQLiteShell.run(bench.journal.path, "UPDATE delivery SET id = 20000 WHERE file_id = 2")
        var page = try await bench.journal.delivered(DeliveredFilter(destination: "r2"), after: 0, limit: 9)
        #expect(page.page.map { $0.delivery.id } == [1])
        page = try await bench.journal.delivered(
            DeliveredFilter(destination: "r2"), after: try #require(page.next), limit: 9)
        #expect(page.page.isEmpty && page.next != nil)
        #expect(try await pages(DeliveredFilter(destination: "r2"), 9).map { $0.delivery.id } == [1, 20000])
    }

    /// All pages; no number comes twice.
    private func pages(_ filter: DeliveredFilter, _ size: Int) async throws -> [DeliveredFile] {
        var all: [DeliveredFile] = []
        var last: Int64? = 0
        while let after = last {
            let (page, next) = try await bench.journal.delivered(filter, after: after, limit: size)
            #expect(page.count <= size)
            all += page
            last = next
        }
        #expect(Set(all.map(\.delivery.id)).count == all.count)
        return all
    }
}
