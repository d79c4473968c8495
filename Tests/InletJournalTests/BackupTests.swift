import Foundation
import InletCore
import InletJournal
import InletJournalSupport
import InletTestSupport
import SystemPackage
import Testing

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

    /// Files named by their numbers, the first of them delivered.
    private func makeJournal(_ files: Int = 3) async throws -> Journal {
        let journal = try open()
        _ = try await journal.admit((1...files).map { .test("\($0)") }, at: Bench.start)
        _ = try await journal.withClaim(.big, rooms: [.test()], clock: { Bench.start }) { _ in
            (Settlement.test(.delivered), 0)
        }
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
        // More than a few steps of 1 MiB.
        let journal = try open()
        defer { journal.close() }
        let long = String(repeating: "x", count: 20_000)
        for part in 0..<4 {
            _ = try await journal.admit((0..<100).map { .refused("\(part)-\($0)", long) }, at: Bench.start)
        }
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
        _ = try await journal.withClaim(.big, rooms: [.test()], clock: { Bench.start }) { _ in
            (Settlement.test(.delivered), 0)
        }
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
        let reopened = try open()
        #expect(try await reopened.totals().values.reduce(0) { $0 + $1.files } == 3)
        reopened.close()
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
        let restored = try open()
        #expect(try await restored.totals().values.reduce(0) { $0 + $1.files } == 3)
        restored.close()
    }

    @Test func `a restore that died while it set the old journal aside lets none of its log into the new one`()
        async throws
    {
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
        let restored = try open()
        #expect(try await restored.totals().values.reduce(0) { $0 + $1.files } == 3)
        restored.close()
    }

    @Test func `a copy that is cancelled leaves the journal as it was, and at work`() async throws {
        let journal = try open()
        defer { journal.close() }
        let long = String(repeating: "x", count: 20_000)
        for part in 0..<4 {
            _ = try await journal.admit((0..<100).map { .refused("\(part)-\($0)", long) }, at: Bench.start)
        }
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

    @Test func `ids that no row had before the backup are not given out twice`() async throws {
        let journal = try await makeJournal()
        try await journal.copy(to: copy)
        journal.close()
        _ = try Journal.restore(copy, to: path, now: Bench.start)
        let restored = try open()
        defer { restored.close() }
        #expect(try SQLiteShell.run(path, "SELECT min(seq) >= 1000000, count(*) > 3 FROM sqlite_sequence") == "1|1\n")
    }

    @Test func `a reset keeps the journal, log and all, and the next start begins an empty one`() async throws {
        let journal = try await makeJournal()
        journal.close()
        let aside = try #require(try Journal.reset(path, now: Bench.start))
        #expect(try Journal.reset(path, now: Bench.start) == nil)
        let empty = try open()
        #expect(try await empty.totals().isEmpty)
        empty.close()
        let kept = try Journal(path: aside, now: Bench.start)
        #expect(try await kept.totals().values.reduce(0) { $0 + $1.files } == 3)
        kept.close()
    }
}
