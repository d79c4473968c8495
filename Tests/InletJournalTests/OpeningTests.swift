import Foundation
import InletCore
import InletJournal
import InletJournalSupport
import InletTestSupport
import SystemPackage
import Testing

@Suite(.seated) struct OpeningTests {
    private let directory: TemporaryDirectory
    private let path: FilePath

    init() throws {
        directory = try TemporaryDirectory()
        path = directory.path.appending("journal.sqlite")
    }

    private func open() throws(JournalError) -> Journal { try Journal(path: path, now: Bench.start) }

    private func bytes(_ path: FilePath) throws -> Data { try Data(contentsOf: URL(fileURLWithPath: path.string)) }

    private func makeJournal() async throws {
        let journal = try open()
        for number in 0..<50 { _ = try await journal.admit(.test("\(number)"), at: Bench.start) }
        journal.close()
    }

    /// Opens, expects that the journal is set aside, and returns where it went and what was said.
    private func setAside() throws -> (FilePath, String) {
        do throws(JournalError) {
            try open().close()
        } catch {
            #expect(!FileManager.default.fileExists(atPath: path.string))
            switch error {
            case .unreadable(let named, let aside, _):
                #expect(named == path)
                return (aside, "\(error)")
            case .newerSchema(let named, let aside):
                #expect(named == path)
                return (aside, "\(error)")
            default: throw error
            }
        }
        throw Unexpected(what: "the journal opened")
    }

    /// A rollback journal without records for a database of `pages` pages ("The Rollback Journal", SQLite file format, 3).
    private func rollbackJournal(pages: UInt32, pageSize: UInt32) -> Data {
        let head: [UInt8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7]
        let fields: [UInt32] = [0, 7, pages, 512, pageSize]
        let bytes = head + fields.flatMap { field in withUnsafeBytes(of: field.bigEndian) { Array($0) } }
        return Data(bytes + Array(repeating: 0, count: 512 - bytes.count))
    }

    @Test func `what a process left that died while it made the journal is taken back, and the journal opens`()
        async throws
    {
        try await makeJournal()
        let pages = UInt32(try bytes(path).count / 4096)
        let hot = URL(fileURLWithPath: path.string + "-journal")
        try rollbackJournal(pages: pages, pageSize: 4096).write(to: hot)
        let journal = try open()
        #expect(try await journal.totals().mapValues(\.files) == [.pending: 50])
        #expect(!FileManager.default.fileExists(atPath: hot.path))
        journal.close()
    }

    @Test func `everything is there after reopening`() async throws {
        let journal = try open()
        for name in ["a", "b", "c"] { _ = try await journal.admit(.test(name, to: ["r2", "disk"]), at: Bench.start) }
        _ = try await journal.withClaim(.big, rooms: [.test()], clock: { Bench.start }) { _ in
            (Settlement.test(.delivered), 0)
        }
        _ = try await journal.cancel(2, at: Bench.start)
        let before = try await journal.jobs(FileFilter())
        let totals = try await journal.totals()
        journal.close()
        let reopened = try open()
        #expect(try await reopened.jobs(FileFilter()) == before)
        #expect(try await reopened.totals() == totals)
        reopened.close()
    }

    @Test func `a closed journal is one file`() async throws {
        try await makeJournal()
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path.string) == ["journal.sqlite"])
    }

    @Test func `a file that is no journal is set aside as it is`() throws {
        let garbage = Data((0..<10_000).map { UInt8(truncatingIfNeeded: $0 &* 31) })
        try directory.write(garbage, to: "journal.sqlite")
        let (aside, text) = try setAside()
        #expect(try bytes(aside) == garbage)
        #expect(text.contains(path.string))
        #expect(text.contains(aside.string))
        #expect(text.contains("Starting again begins an empty journal"))
        try open().close()
    }

    @Test(arguments: [0, 18, 100, 101, 105])
    func `a journal with a damaged first page is set aside as it is`(offset: Int) async throws {
        try await makeJournal()
        var damaged = try bytes(path)
        damaged.replaceSubrange(offset..<offset + 8, with: [UInt8](repeating: 0xEE, count: 8))
        try directory.write(damaged, to: "journal.sqlite")
        let (aside, _) = try setAside()
        #expect(try bytes(aside) == damaged)
        try open().close()
    }

    @Test func `an empty file with a log is set aside with its log`() throws {
        try directory.write([], to: "journal.sqlite")
        let log = [UInt8](repeating: 7, count: 5000)
        try directory.write(log, to: "journal.sqlite-wal")
        let (aside, _) = try setAside()
        #expect(try bytes(FilePath(aside.string + "-wal")) == Data(log))
    }

    @Test func `an empty file without a log is a new journal`() throws {
        try directory.write([], to: "journal.sqlite")
        try open().close()
    }

    @Test(.enabled(if: SQLiteShell.isInstalled))
    func `a journal of a newer version is set aside as it is`() async throws {
        try await makeJournal()
        try SQLiteShell.run(path, "INSERT INTO grdb_migrations VALUES ('999 from a later version')")
        let before = try bytes(path)
        let (aside, text) = try setAside()
        #expect(try bytes(aside) == before)
        #expect(text.contains("newer version"))
        #expect(text.contains("rename it back"))
        try open().close()
    }

    @Test func `a journal that cannot be reached is an error, and nothing is renamed`() throws {
        let nowhere = directory.path.appending("missing").appending("journal.sqlite")
        do throws(JournalError) {
            try Journal(path: nowhere, now: Bench.start).close()
            Issue.record("opened")
        } catch {
            guard case .failed = error else {
                Issue.record("\(error)")
                return
            }
            #expect("\(error)".contains(nowhere.string))
        }
    }
}
