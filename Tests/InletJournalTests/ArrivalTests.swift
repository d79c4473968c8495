import InletCore
import InletJournalSupport
import InletTestSupport
import SystemPackage
import Testing

@testable import InletJournal

/// When files last came, and how those of the last days ended.
@Suite(.seated) struct ArrivalTests {
    private let bench: Bench
    init() throws { bench = try Bench() }

    private static func later(_ seconds: Int) -> WallTime { Bench.start + .seconds(seconds) }

    /// Admits a file of `root`, which is watched. - Returns: its number.
    @discardableResult
    private func admit(_ name: String, in root: FilePath, after seconds: Int) async throws -> Int64 {
        _ = try await bench.journal.firstSeen(root: root, now: Bench.start)
        var admission = FileAdmission.test(name, to: ["r2"])
        admission.arrival.root = root
        return try await bench.admit(admission, at: Self.later(seconds))
    }

    @Test func `the newest file and the last one of each folder are known, also after a restart`() async throws {
        try await admit("a", in: "/one", after: 1)
        try await admit("b", in: "/one", after: 2)
        let last = try await admit("c", in: "/two", after: 3)
        _ = try await bench.journal.firstSeen(root: "/three", now: Self.later(9))
        let journal = try bench.reopen()
        defer { journal.close() }
        let known = try await journal.arrivals(in: ["/one", "/two", "/three"])
        #expect(known.newest == Arrival(job: last, path: "/two/c", at: Self.later(3)))
        #expect(
            known.folders == [
                "/one": FolderArrivals(lastFile: Self.later(2), firstSeen: Bench.start),
                "/two": FolderArrivals(lastFile: Self.later(3), firstSeen: Bench.start),
                "/three": FolderArrivals(firstSeen: Self.later(9)),
            ])
    }

    @Test func `a file that went to the history came all the same`() async throws {
        _ = try await bench.journal.firstSeen(root: "/in", now: Bench.start)
        _ = try await bench.bury("old.txt")
        let row = try await bench.job(1).file
        let known = try await bench.journal.arrivals(in: [row.root])
        #expect(known.newest?.job == 1 && known.newest?.path == row.fullPath)
        #expect(known.folders[row.root]?.lastFile == row.admittedAt)
    }

    @Test func `an adopted file did not come`() async throws {
        let came = try await admit("came", in: "/one", after: 1)
        let adoption = FileAdoption(.test("was there"), plan: nil)
        _ = try await bench.journal.firstSeen(root: adoption.arrival.root, now: Bench.start)
        _ = try await bench.journal.adopt([adoption], at: Self.later(5))
        let known = try await bench.journal.arrivals(in: ["/one", adoption.arrival.root])
        #expect(known.newest?.job == came)
        #expect(known.folders[adoption.arrival.root]?.lastFile == nil)
    }

    /// A release before this one: without what the last migration added.
    private static let earlier = """
        DROP VIEW history_as_file; DROP INDEX history_unanswered; ALTER TABLE history_file DROP COLUMN unanswered;
        DROP INDEX file_unanswered; DROP INDEX delivery_failed; ALTER TABLE root DROP COLUMN last_file;
        ALTER TABLE delivery DROP COLUMN resent;
        DELETE FROM grdb_migrations WHERE identifier = '12 answers and arrivals';
        """

    @Test(.enabled(if: SQLiteShell.isInstalled))
    func `the journal of an earlier version tells last files, and what waits for an answer`() async throws {
        for root in ["/in", "/one"] as [FilePath] {
            _ = try await bench.journal.firstSeen(root: root, now: Bench.start)
        }
        try await bench.offer(.refused("old"))
        try await bench.finishAll(at: Self.later(60))
        #expect(try await bench.prune() == 1)
        try await admit("new", in: "/one", after: 7)
        bench.journal.close()
        try SQLiteShell.run(bench.journal.path, Self.earlier)
        let journal = try Journal(path: bench.journal.path, now: Bench.start)
        defer { journal.close() }
        let folders = try await journal.arrivals(in: ["/in", "/one"]).folders
        #expect(folders["/in"]?.lastFile == Bench.start && folders["/one"]?.lastFile == Self.later(7))
        var open = FileFilter()
        open.isUnanswered = true
        #expect(try await journal.jobs(open).map(\.file.id) == [1])
    }

    @Test func `a quiet folder is remembered over a restart, until files come again`() async throws {
        try await bench.journal.setQuiet("/one", since: Self.later(1))
        try await bench.journal.setQuiet("/one", since: Self.later(2))
        try await bench.journal.setQuiet("/two", since: Self.later(3))
        try await bench.journal.setQuiet("/two", since: nil)
        let journal = try bench.reopen()
        defer { journal.close() }
        let known = try await journal.arrivals(in: ["/one", "/two"])
        #expect(known.folders["/one"]?.quietSince == Self.later(2) && known.folders["/two"]?.quietSince == nil)
    }

    /// All ends since `since`, piece by piece.
    private func ends(since: WallTime, until: WallTime = Bench.later) async throws -> [EndedFiles.End] {
        var (ends, place) = ([EndedFiles.End](), EndedFiles.Place() as EndedFiles.Place?)
        while let from = place {
            let piece = try await bench.journal.ends(since: since, until: until, from: from)
            (ends, place) = (ends + piece.ends, piece.next)
        }
        return ends.sorted { $0.job < $1.job }
    }

    @Test func `ends are those of finished files in the time asked for, in the history too, and none of adopted files`()
        async throws
    {
        _ = try await bench.bury("old.txt")
        let failed = try await bench.admit("bad.txt", key: "bad")
        try await bench.settle(.ended(.failed, code: .badRequest, reason: "no"))
        try await bench.finishAll(at: Self.later(60))
        try await bench.admit("waits.txt", key: "waits")
        _ = try await bench.journal.adopt([FileAdoption(.test("was there"), plan: nil)], at: Self.later(61))
        let all = try await ends(since: Bench.start)
        #expect(all.map(\.job) == [1, failed] && all.map(\.state) == [.delivered, .failed])
        #expect(all.last?.at == Self.later(60))
        #expect(try await ends(since: Self.later(1)).map(\.job) == [failed])
        #expect(try await ends(since: Bench.start, until: Self.later(1)).map(\.job) == [1])
    }
}
