import Foundation
import InletCore
import InletJournal
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

@testable import InletAgent

@Suite struct BackupTests {
    private let directory: TemporaryDirectory
    private let journal: Journal
    private var folder: FilePath { directory.path.appending("backups") }

    init() throws {
        directory = try TemporaryDirectory()
        journal = try Journal(path: directory.path.appending("journal.sqlite"), now: .now)
    }

    private func names() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: folder.string).sorted()
    }

    @Test func `the newest backups are kept, and nothing else in their folder is touched`() async throws {
        defer { journal.close() }
        let backups = JournalBackups(journal)
        for second in 0..<4 {
            _ = try await backups.make(now: WallTime(milliseconds: 1_700_000_000_000 + Int64(second) * 1000))
        }
        try directory.write("mine".utf8, to: "backups/journal-old.sqlite")
        try directory.write("mine".utf8, to: "backups/notes.txt")
        let made = try names().filter { $0.hasPrefix("journal-2") }
        #expect(made.count == 4)
        try await backups.prune(keep: 2)
        let left = Array(made.suffix(2)) + ["journal-old.sqlite", "notes.txt"]
        #expect(try names() == left)
        #expect(await backups.newest() != nil)
    }

    @Test func `an earlier backup is replaced, and anything else is refused and left as it is`() async throws {
        defer { journal.close() }
        let backups = JournalBackups(journal)
        let target = directory.path.appending("mine.sqlite")
        for _ in 0..<2 { #expect(try await backups.make(at: target, now: .now) == target) }
        let text = try directory.write("text".utf8, to: "text")
        try FileManager.default.createSymbolicLink(
            atPath: directory.path.appending("link").string, withDestinationPath: target.string)
        for path in [text, journal.path, directory.path, directory.path.appending("link")] {
            await #expect(throws: Refusal.self, "\(path)") {
                try await backups.make(at: path, now: .now)
            }
        }
        #expect(try Data(contentsOf: URL(fileURLWithPath: text.string)) == Data("text".utf8))
        let missing = directory.path.appending("missing").appending("a.sqlite")
        await #expect(throws: (any Error).self) { try await backups.make(at: missing, now: .now) }
        let left = try FileManager.default.contentsOfDirectory(atPath: directory.path.string)
        #expect(!left.contains { $0.hasSuffix(".tmp") }, "\(left)")
    }

    @Test func `a change of the journal is seen, and its end is not one`() async throws {
        defer { journal.close() }
        let backups = JournalBackups(journal)
        let before = try #require(backups.lastChange())
        _ = try await backups.make(now: .now)
        #expect(backups.lastChange() == before)
        // The log's time has the file system's steps.
        try await eventually("the change has a later time") {
            try await journal.setPaused("r2", true)
            return backups.lastChange().map { $0 > before } ?? false
        }
    }

    @Test func `a journal whose changes cannot be seen is not one that rests`() async throws {
        let backups = JournalBackups(journal)
        journal.close()
        for suffix in ["", "-wal"] {
            let file = FilePath(journal.path.string + suffix)
            if isThere(file) { try remove(file) }
        }
        #expect(backups.lastChange() == nil)
    }

    @Test(
        arguments: [
            (nil, 60), (0, 86_400), (1000, 85_400), (86_390, 60), (100_000, 60), (-500, 86_400),
        ] as [(Int64?, Int64)])
    func `the next backup is due a period after the last, and not at once at every start`(age: Int64?, wait: Int64)
        throws
    {
        defer { journal.close() }
        let job = try #require(BackupJob(journal, BackupRule(every: .seconds(86_400)), try EventLog(nil)))
        let now = WallTime.now
        let last = age.map { WallTime(milliseconds: now.milliseconds - $0 * 1000) }
        #expect(job.untilDue(after: last, now: now) == .seconds(wait))
    }
}
