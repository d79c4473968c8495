import InletCore
import InletJournalSupport
import InletTestSupport
import SystemPackage
import Testing

@testable import InletJournal

/// What comes back from the history, when that is much.
@Suite(.seated, .enabled(if: SQLiteShell.isInstalled)) struct RevivalTests {
    private static let part = Journal.revivedAtOnce

    /// A history of one unit of one file, or of one file without a unit. - Returns: the file.
    private func buried(_ bench: Bench, unit: Bool) async throws -> Int64 {
        guard unit else { return try await bench.bury("a", key: "k") }
        var admission = FileAdmission.test("gigs/X/a", key: "k")
        admission.unit = "gigs/X"
        let id = try await bench.admit(admission)
        _ = try await bench.journal.closeUnit(
            "gigs/X", root: "/in", routes: ["all"], marker: nil, uptimes: [:], at: Bench.start)
        try await bench.settle(.delivered(.test("k")))
        try await bench.finishAll()
        guard try await bench.prune() == 1 else { throw Unexpected(what: "the unit did not go to the history") }
        return id
    }

    /// Copies a file of the history, which has one delivery, so often: under paths of their own, or under the same one.
    private func copy(_ id: Int64, _ times: Int, _ bench: Bench, newNames: Bool) throws {
        let (file, delivery) = (
            try columns(of: "history_file", but: ["id", "path"], bench),
            try columns(of: "history_delivery", but: ["id", "file_id", "key"], bench)
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

    private func columns(of table: String, but others: [String], _ bench: Bench) throws -> String {
        let names = try SQLiteShell.run(bench.journal.path, "SELECT name FROM pragma_table_info('\(table)')")
        return names.split(separator: "\n").map(String.init).filter { !others.contains($0) }.joined(separator: ", ")
    }

    private func count(_ table: String, _ bench: Bench) throws -> Int {
        Int(try SQLiteShell.run(bench.journal.path, "SELECT count(*) FROM \(table)").filter { $0 != "\n" }) ?? -1
    }

    @Test func `a large unit comes back in parts, each its own transaction, and the last with the action`() async throws
    {
        let bench = try Bench()
        let id = try await buried(bench, unit: true)
        try copy(id, 2 * Self.part + 79, bench, newNames: true)
        var left: [Int] = []
        while try await bench.journal.commit({ try Journal.revivePart(of: [id], $0) }) {
            left.append(try count("history_file", bench))
            // All the while, each file is in one of the two places.
            #expect(try count("file", bench) + (left.last ?? 0) == 2 * Self.part + 80)
            #expect(try await bench.journal.batch(of: id)?.counts == [.delivered: 2 * Self.part + 80])
        }
        #expect(left == [Self.part + 80, 80])
        #expect(try await bench.journal.forget(id))
        #expect(try count("history_file", bench) == 0 && count("history_delivery", bench) == 0)
        #expect(try count("file", bench) == 2 * Self.part + 79)
    }

    #if DEBUG
        @Test(arguments: [true, false])
        func `no transaction of a command brings back more than a part`(isGroup: Bool) async throws {
            let bench = try Bench()
            let id = try await buried(bench, unit: true)
            try copy(id, 2 * Self.part + 79, bench, newNames: true)
            let files = isGroup ? Array(id..<id + 100) : [id]
            let transactions = try await bench.journal.runs(of: "BEGIN") {
                let done = try await bench.journal.act(.forget, on: files, at: Bench.start).outcomes
                #expect(done == files.map { _ in .done })
            }
            // Two parts, a look for more, and the command.
            #expect(transactions == 4)
            #expect(try count("file", bench) == 2 * Self.part + 80 - files.count)
        }
    #endif

    @Test func `of a path that was written to for years, what is newer comes back before what is older`() async throws {
        let bench = try Bench()
        let id = try await buried(bench, unit: false)
        try copy(id, Self.part + 50, bench, newNames: false)
        var parts = 0
        while try await bench.journal.commit({ try Journal.revivePart(of: [id], $0) }) {
            parts += 1
            let isInOrder = "SELECT (SELECT max(id) FROM history_file) < (SELECT min(id) FROM file)"
            #expect(try SQLiteShell.run(bench.journal.path, isInOrder) == "1\n")
        }
        #expect(parts == 1)
        try await bench.journal.replaceProof(of: bench.job(id).deliveries[0].id, by: .test("k"))
        #expect(try count("file", bench) == Self.part + 51 && count("history_file", bench) == 0)
    }

    /// A sidecar without a file of its own, and later the same with one.
    @Test func `what comes back as newer brings what it comes after with it`() async throws {
        let bench = try Bench()
        let first = try await bench.bury("a.xmp", key: "a.xmp")
        var admission = FileAdmission.test("a.mp4")
        admission.companions = [
            CompanionAdmission(
                .test("a.xmp", .test(size: 20, inode: 2)), Companion(path: "a.xmp", kind: .sameStem, ending: "xmp"),
                category: "other", mediaType: "text/xml", lanes: ["r2": .big])
        ]
        guard case .admitted(let main) = try await bench.journal.admitSet(admission, at: Bench.start).main else {
            throw Unexpected(what: "not admitted")
        }
        try await bench.settle(.delivered(.test("a.mp4")))
        try await bench.settle(.delivered(.test("a_2.xmp")))
        try await bench.finishAll()
        try await bench.finishAll()
        #expect(try await bench.prune() == 2)
        let before = try await bench.job(main + 1).deliveries[0]
        #expect(try await before.afterID == bench.job(main).deliveries[0].id)
        try await bench.journal.replaceProof(of: bench.job(first).deliveries[0].id, by: .test("a.xmp"))
        #expect(try count("history_file", bench) == 0)
        #expect(try await bench.job(main + 1).deliveries[0].afterID == before.afterID)
    }
}
