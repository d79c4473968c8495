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

    @Test
    func `what a process left that died while it made the journal is taken back, and the journal opens`() async throws {
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
        try await journal.settle(.test(.delivered))
        _ = try await journal.cancel(2, at: Bench.start)
        let before = try await journal.jobs(FileFilter())
        let totals = try await journal.totals()
        journal.close()
        let reopened = try open()
        #expect(try await reopened.jobs(FileFilter()) == before)
        #expect(try await reopened.totals().mapValues { "\($0)" } == totals.mapValues { "\($0)" })
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
        #expect(text.contains(path.string) && text.contains(aside.string))
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
        #expect(text.contains("newer version") && text.contains("rename it back"))
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

@Suite(.seated) struct BackupTests {
    private let directory: TemporaryDirectory
    private let path: FilePath
    private let copy: FilePath

    init() throws {
        directory = try TemporaryDirectory()
        path = directory.path.appending("journal.sqlite")
        copy = directory.path.appending("copy.sqlite")
    }

    private func open() throws(JournalError) -> Journal { try Journal(path: path, now: Bench.start) }

    /// How many files the journal there has.
    private func files(_ path: FilePath) async throws -> Int {
        let journal = try Journal(path: path, now: Bench.start)
        defer { journal.close() }
        return try await journal.totals().values.reduce(0) { $0 + $1.files }
    }

    /// More than a few steps of 1 MiB: 400 files that were refused.
    private func fill(_ journal: Journal) async throws {
        let long = String(repeating: "x", count: 20_000)
        for part in 0..<4 {
            _ = try await journal.admit((0..<100).map { .refused("\(part)-\($0)", long) }, at: Bench.start)
        }
    }

    /// Files named by their numbers, the first of them delivered.
    private func makeJournal(_ files: Int = 3) async throws -> Journal {
        let journal = try open()
        _ = try await journal.admit((1...files).map { .test("\($0)") }, at: Bench.start)
        try await journal.settle(.test(.delivered))
        return journal
    }

    @Test func `a backup is one private file with all that was committed`() async throws {
        let journal = try await makeJournal()
        let before = try await journal.jobs(FileFilter())
        try await journal.copy(to: copy)
        _ = try await journal.admit(.test("later"), at: Bench.start)
        journal.close()
        #expect(
            try FileManager.default.contentsOfDirectory(atPath: directory.path.string).sorted() == [
                "copy.sqlite", "journal.sqlite",
            ])
        let mode = try FileManager.default.attributesOfItem(atPath: copy.string)[.posixPermissions] as? NSNumber
        #expect(mode?.intValue == 0o600)
        let opened = try Journal(path: copy, now: Bench.start)
        defer { opened.close() }
        #expect(try await opened.jobs(FileFilter()) == before)
    }

    @Test func `a backup is not written over a file`() async throws {
        let journal = try await makeJournal()
        defer { journal.close() }
        try directory.write("mine".utf8, to: "copy.sqlite")
        await #expect(throws: JournalError.self) { try await journal.copy(to: copy) }
        #expect(try Data(contentsOf: URL(fileURLWithPath: copy.string)) == Data("mine".utf8))
    }

    @Test func `commits go on while a backup is made, and those before it are in it`() async throws {
        let journal = try open()
        defer { journal.close() }
        try await fill(journal)
        let isCopied = Flag()
        let during = try await withThrowingTaskGroup(of: Int.self) { group in
            group.addTask { [copy] in
                try await journal.copy(to: copy)
                isCopied.set()
                return 0
            }
            group.addTask {
                var count = 0
                while !isCopied.isSet {
                    _ = try await journal.admit(.test("during-\(count)"), at: Bench.start)
                    count += 1
                }
                return count
            }
            return try await group.reduce(0, +)
        }
        #expect(during > 0)
        let opened = try Journal(path: copy, now: Bench.start)
        defer { opened.close() }
        let totals = try await opened.totals()
        #expect(totals[.rejected]?.files == 400)
        #expect(totals[.pending]?.files ?? 0 <= during)
        // One after the other: what is in it has no gaps.
        let names = try await opened.jobs(FileFilter(states: [.pending], limit: 1_000_000)).map { "\($0.file.path)" }
        #expect(Set(names) == Set((0..<names.count).map { "during-\($0)" }))
    }

    @Test func `a restored journal gives no key away, and the old one is kept`() async throws {
        let journal = try await makeJournal()
        try await journal.copy(to: copy)
        // The world goes on: 2 is delivered, 4 comes.
        try await journal.settle(.test(.delivered))
        _ = try await journal.admit(.test("4"), at: Bench.start)
        let sequence = try await journal.nextSequence()
        journal.close()
        let restoration = try Journal.restore(copy, to: path, now: Bench.start)
        #expect(restoration.files == 3 && restoration.open == 2)
        let aside = try #require(restoration.setAside)
        let old = try Journal(path: aside, now: Bench.start)
        #expect(try await old.totals()[.delivered]?.files == 2)
        old.close()
        let restored = try open()
        defer { restored.close() }
        #expect(try await restored.totals().mapValues(\.files) == [.delivered: 1, .pending: 2])
        // Nor are ids that no row had before the backup given out twice.
        #expect(try SQLiteShell.run(path, "SELECT min(seq) >= 1000000, count(*) > 3 FROM sqlite_sequence") == "1|1\n")
        // The file of key 2 changes: what may be there since keeps its key.
        let changed = FileAdmission.test("2", .test(size: 99), key: "2")
        guard case .admitted(let id) = try await restored.admit(changed, at: Bench.start) else {
            throw Unexpected(what: "not admitted")
        }
        #expect(try await restored.job(id)?.deliveries.map(\.key) == ["2_2"])
        #expect(id > 1000, "job numbers that may have been given out since are not given out again")
        #expect(try await restored.nextSequence() > sequence)
        #expect(FileManager.default.fileExists(atPath: copy.string))
    }

    @Test func `what is no journal is not restored, and nothing is changed`() async throws {
        try await makeJournal().close()
        let before = try Data(contentsOf: URL(fileURLWithPath: path.string))
        try directory.write(Data(repeating: 7, count: 5000), to: "garbage")
        for name in ["garbage", "missing"] {
            #expect(throws: JournalError.self) {
                try Journal.restore(directory.path.appending(name), to: path, now: Bench.start)
            }
        }
        #expect(try Data(contentsOf: URL(fileURLWithPath: path.string)) == before)
        #expect(
            try FileManager.default.contentsOfDirectory(atPath: directory.path.string).sorted() == [
                "garbage", "journal.sqlite",
            ])
    }

    @Test(.enabled(if: SQLiteShell.isInstalled))
    func `a backup of a newer version, and a database of something else, are refused`() async throws {
        let journal = try await makeJournal()
        try await journal.copy(to: copy)
        journal.close()
        try SQLiteShell.run(copy, "INSERT INTO grdb_migrations VALUES ('999 from a later version')")
        let other = directory.path.appending("other.sqlite")
        try SQLiteShell.run(other, "CREATE TABLE photos (name TEXT)")
        for (backup, word) in [(copy, "newer version"), (other, "not a journal")] {
            do throws(JournalError) {
                _ = try Journal.restore(backup, to: path, now: Bench.start)
                Issue.record("restored \(backup)")
            } catch {
                #expect("\(error)".contains(word) && "\(error)".contains(backup.string), "\(error)")
            }
        }
        #expect(try await files(path) == 3)
    }

    @Test func `a restore that died between its renames keeps a start from beginning an empty journal`() async throws {
        let journal = try await makeJournal()
        try await journal.copy(to: copy)
        journal.close()
        // What it leaves: the journal set aside, the draft whole.
        try FileManager.default.moveItem(atPath: path.string, toPath: path.string + ".replaced-1")
        try FileManager.default.copyItem(atPath: copy.string, toPath: path.string + ".restoring")
        do throws(JournalError) {
            try open().close()
            Issue.record("an empty journal was begun")
        } catch {
            #expect("\(error)".contains("queue restore"), "\(error)")
        }
        #expect(throws: JournalError.self) {
            try Journal.restore(directory.path.appending("missing"), to: path, now: Bench.start)
        }
        #expect(throws: JournalError.self) { try open().close() }
        #expect(try Journal.restore(copy, to: path, now: Bench.start).setAside == nil)
        #expect(try await files(path) == 3)
    }

    @Test
    func `a restore that died while it set the old journal aside lets none of its log into the new one`() async throws {
        let journal = try await makeJournal()
        try await journal.copy(to: copy)
        // What a killed agent leaves beside its journal; nothing of it may be in the restored one.
        _ = try await journal.admit(.test("later"), at: Bench.start)
        let log = try Data(contentsOf: URL(fileURLWithPath: path.string + "-wal"))
        #expect(!log.isEmpty)
        journal.close()
        try FileManager.default.moveItem(atPath: path.string, toPath: path.string + ".replaced-1")
        try log.write(to: URL(fileURLWithPath: path.string + "-wal"))
        try FileManager.default.copyItem(atPath: copy.string, toPath: path.string + ".restoring")
        let aside = try #require(try Journal.restore(copy, to: path, now: Bench.start).setAside)
        #expect(try Data(contentsOf: URL(fileURLWithPath: aside.string + "-wal")) == log)
        #expect(try await files(path) == 3)
    }

    @Test func `a copy that is cancelled leaves the journal as it was, and at work`() async throws {
        let journal = try open()
        defer { journal.close() }
        try await fill(journal)
        await withTaskGroup(of: Void.self) { group in
            group.addTask { [copy] in
                await #expect(throws: JournalError.self) { try await journal.copy(to: copy) }
            }
            group.cancelAll()
            for number in 0..<20 {
                group.addTask { _ = try? await journal.admit(.test("during-\(number)"), at: Bench.start) }
            }
        }
        #expect(try await journal.totals().values.reduce(0) { $0 + $1.files } == 420)
    }

    @Test func `a reset keeps the journal, log and all, and the next start begins an empty one`() async throws {
        let journal = try await makeJournal()
        journal.close()
        let aside = try #require(try Journal.reset(path, now: Bench.start))
        #expect(try Journal.reset(path, now: Bench.start) == nil)
        #expect(try await files(path) == 0)
        #expect(try await files(aside) == 3)
    }
}
