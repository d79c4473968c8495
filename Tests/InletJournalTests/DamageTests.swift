import Foundation
import InletCore
import InletJournal
import InletJournalSupport
import InletTestSupport
import SystemPackage
import Testing

/// Journals that a disk, a cable or a careless copy has damaged. Whatever is wrong with them: no crash, no empty journal
/// without a word, and either all that was committed or an error with the file's name and what to do.
@Suite(.seated) struct DamageTests {
    private let directory: TemporaryDirectory
    private let path: FilePath
    private static let files = 60

    init() throws {
        directory = try TemporaryDirectory()
        path = directory.path.appending("journal.sqlite")
    }

    private func open() throws(JournalError) -> Journal { try Journal(path: path, now: Bench.start) }

    private func name(_ suffix: String) -> FilePath { FilePath("journal.sqlite" + suffix) }

    private func bytes(_ suffix: String = "") throws -> Data {
        try Data(contentsOf: URL(fileURLWithPath: path.string + suffix))
    }

    /// Puts exactly these files there.
    private func place(_ files: [String: Data]) throws {
        for found in try FileManager.default.contentsOfDirectory(atPath: directory.path.string) {
            try FileManager.default.removeItem(atPath: directory.path.appending(found).string)
        }
        for (suffix, content) in files { try directory.write(content, to: name(suffix)) }
    }

    /// A closed journal: one file.
    private func closed() async throws -> Data {
        let journal = try open()
        for number in 0..<Self.files { _ = try await journal.admit(.test("\(number)"), at: Bench.start) }
        journal.close()
        return try bytes()
    }

    /// What a killed process leaves: a database, its log, and the log's index.
    private func killed() async throws -> [String: Data] {
        let journal = try open()
        defer { journal.close() }
        for number in 0..<Self.files { _ = try await journal.admit(.test("\(number)"), at: Bench.start) }
        return ["": try bytes(), "-wal": try bytes("-wal"), "-shm": try bytes("-shm")]
    }

    private enum Outcome: Equatable {
        /// So many files are in it, and work goes on.
        case opened(Int)
        /// It is kept under another name, with what was beside it.
        case setAside
        /// It stays where it is, and opening or reading it says what is wrong.
        case damaged
    }

    /// Opens what is there and uses it; fails when the error does not name file, cause and remedy.
    private func outcome(_ what: String) async throws -> Outcome {
        let before = try bytes()
        let journal: Journal
        do throws(JournalError) {
            journal = try open()
        } catch {
            #expect("\(error)".contains(path.string), "\(what): \(error)")
            switch error {
            // The second: a damaged name of a migration looks like one of a later version.
            case .unreadable(_, let aside, _), .newerSchema(_, let aside):
                #expect(try Data(contentsOf: URL(fileURLWithPath: aside.string)) == before, "\(what): changed")
                #expect(!FileManager.default.fileExists(atPath: path.string), "\(what)")
                return .setAside
            default:
                // A damaged name of a column: it stays where it is, and every start says so.
                #expect(FileManager.default.fileExists(atPath: path.string), "\(what)")
                return .damaged
            }
        }
        defer { journal.close() }
        do throws(JournalError) {
            let jobs = try await journal.jobs(FileFilter(limit: 10_000))
            _ = try await journal.recover(destinations: ["r2"], at: Bench.start)
            _ = try await journal.admit(.test("after", .test(size: 7)), at: Bench.start)
            return .opened(jobs.count)
        } catch {
            let text = "\(error)"
            // A value that cannot be understood any more is an error too, but not one that SQLite finds.
            #expect(text.contains(path.string), "\(what): \(text)")
            if case .damaged = error {
                #expect(text.contains("queue restore") && text.contains("queue reset"), "\(what): \(text)")
            }
            return .damaged
        }
    }

    @Test func `a journal that was cut off at any page is set aside as it is`() async throws {
        let whole = try await closed()
        for size in stride(from: 4096, to: whole.count, by: 4096) {
            try place(["": whole.prefix(size)])
            #expect(try await outcome("cut to \(size)") == .setAside, "cut to \(size) of \(whole.count)")
        }
    }

    @Test func `a journal that was cut off within a page is set aside, or has everything`() async throws {
        let whole = try await closed()
        var random = SeededGenerator(seed: 4)
        for _ in 0..<20 {
            let size = Int.random(in: 1..<whole.count, using: &random)
            try place(["": whole.prefix(size)])
            let outcome = try await outcome("cut to \(size)")
            if case .opened(let files) = outcome { #expect(files == Self.files, "cut to \(size)") }
        }
    }

    @Test(arguments: [1, 2, 3, 4] as [UInt64])
    func `flipped bytes are found, or cost no file`(seed: UInt64) async throws {
        let whole = try await closed()
        var random = SeededGenerator(seed: seed)
        var found = 0
        for _ in 0..<40 {
            var damaged = whole
            let count = [1, 8, 512].randomElement(using: &random) ?? 1
            let start = Int.random(in: 0..<whole.count - count, using: &random)
            for offset in start..<start + count { damaged[offset] ^= UInt8.random(in: 1...255, using: &random) }
            try place(["": damaged])
            let what = "seed \(seed): \(count) bytes at \(start)"
            let outcome = try await outcome(what)
            if case .opened(let files) = outcome { #expect(files == Self.files, "\(what)") } else { found += 1 }
        }
        #expect(found > 0, "seed \(seed): nothing was damaged")
    }

    @Test func `the log of a killed process is taken up, with whatever index`() async throws {
        let files = try await killed()
        let index = files["-shm"] ?? Data()
        let garbage = Data(index.indices.map { UInt8(truncatingIfNeeded: $0 &* 31) })
        for shm in [index, nil, Data(), garbage, index.prefix(100), Data(count: index.count)] {
            var placed = files
            placed["-shm"] = shm
            try place(placed)
            let what = "index of \(shm?.count ?? -1) bytes"
            #expect(try await outcome(what) == .opened(Self.files), "\(what)")
        }
    }

    @Test
    func `a torn log loses its last commits only, and a log that is missing or garbage leaves what was before it`()
        async throws
    {
        let files = try await killed()
        let log = try #require(files["-wal"])
        var random = SeededGenerator(seed: 9)
        var counts: [Int] = []
        let sizes = (0..<12).map { _ in Int.random(in: 0..<log.count, using: &random) }.sorted()
        for size in sizes {
            try place(["": try #require(files[""]), "-wal": log.prefix(size)])
            switch try await outcome("log cut to \(size)") {
            case .opened(let count): counts.append(count)
            // The schema itself was in the part that is gone.
            case .setAside, .damaged: counts.append(0)
            }
        }
        #expect(counts == counts.sorted() && counts.allSatisfy { $0 <= Self.files }, "\(counts) for \(sizes)")
        for start in [0, 32, log.count / 2] {
            var torn = log
            torn[start] ^= 0xFF
            try place(["": try #require(files[""]), "-wal": torn])
            if case .opened(let count) = try await outcome("log with another byte \(start)") {
                #expect(count <= Self.files)
            }
        }
    }

    @Test(.enabled(if: SQLiteShell.isInstalled))
    func `damage that is met while the journal is in use says what to do`() async throws {
        let journal = try open()
        defer { journal.close() }
        _ = try await journal.admit(
            (0..<2000).map { .refused("\($0)", String(repeating: "x", count: 5000)) }, at: Bench.start)
        // Into the database, and out of the connection's memory: the log is empty, so that the pages are read again.
        try SQLiteShell.run(path, "PRAGMA wal_checkpoint(TRUNCATE)")
        var damaged = try bytes()
        for page in 20..<damaged.count / 4096 {
            damaged.replaceSubrange(page * 4096..<page * 4096 + 200, with: Data(repeating: 0xEE, count: 200))
        }
        let file = try FileHandle(forWritingTo: URL(fileURLWithPath: path.string))
        try file.write(contentsOf: damaged)
        try file.close()
        do throws(JournalError) {
            _ = try await journal.jobs(FileFilter(limit: 10_000))
            Issue.record("the damage was not met")
        } catch {
            guard case .damaged(let named, let cause) = error else {
                Issue.record("\(error)")
                return
            }
            #expect(named == path && !cause.isEmpty)
            #expect("\(error)".contains("inlet queue restore") && "\(error)".contains("inlet queue reset"))
        }
    }
}
