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

/// One row that cannot be read any more, among others that can.
@Suite(.seated, .enabled(if: SQLiteShell.isInstalled)) struct DamagedRowTests {
    private let bench: Bench
    init() throws { bench = try Bench() }

    private static let rule = ManifestRule(format: .mhl)

    private func admit(_ unit: FilePath, _ names: [String]) async throws -> [Int64] {
        var ids: [Int64] = []
        for name in names {
            var admission = FileAdmission.test("\(unit)/\(name)", unit: unit)
            admission.plan?.manifest = Self.rule
            admission.plan?.digests = [Digest(.xxh64, [1])]
            ids.append(try await bench.admit(admission))
        }
        try await bench.closeUnit(unit)
        return ids
    }

    private func deliver(_ count: Int) async throws {
        for _ in 0..<count { try await bench.settle(.test(.delivered)) }
        try await bench.finishAll()
    }

    @Test func `a batch has all its files, and says which of them it cannot read`() async throws {
        let ids = try await admit("A001", ["a", "b", "c", "d"])
        try await deliver(4)
        let path = bench.journal.path
        try SQLiteShell.run(path, "UPDATE file SET policy = x'00' WHERE id = \(ids[0])")
        try SQLiteShell.run(path, "UPDATE file SET digests = x'00' WHERE id = \(ids[1])")
        try SQLiteShell.run(path, "UPDATE delivery SET proof = x'00' WHERE file_id = \(ids[2])")
        let batch = try #require(try await bench.batch(of: ids[0]))
        let jobs = try await bench.journal.jobs(ofBatch: batch.id)
        #expect(jobs.map(\.file.id) == ids && jobs.map(\.file.isDamaged) == [true, true, false, false])
        #expect(jobs.map { $0.deliveries[0].isDamaged } == [false, false, true, false])
        #expect(jobs.map { $0.file.digests.isEmpty } == [false, true, false, false])
        let page = try await bench.journal.delivered(DeliveredFilter(batch: batch.id), after: 0, limit: 9).page
        #expect(page.map { $0.delivery.proof == nil } == [false, false, true, false])
    }

    @Test func `a list that is owed without its rule is put off like any other`() async throws {
        _ = try await admit("A001", ["a"])
        _ = try await admit("A002", ["a"])
        try await deliver(2)
        try SQLiteShell.run(bench.journal.path, "UPDATE manifest SET rule = x'00' WHERE batch_id = 1")
        let first = try #require(try await bench.journal.nextManifest(at: Bench.start))
        #expect(first.batch == 1 && first.rule == nil)
        try await bench.journal.manifestFailed(first, reason: "damaged", until: Bench.start + .seconds(30))
        let second = try #require(try await bench.journal.nextManifest(at: Bench.start))
        #expect(second.batch == 2 && second.rule == Self.rule)
    }

    @Test func `a policy that cannot be read keeps its unit neither from its end nor from its list`() async throws {
        let ids = try await admit("A001", ["a", "b"])
        try await deliver(1)
        let done = try #require(try await bench.job(ids[0]).file.finishedAt)
        #expect(done == Bench.start)
        try SQLiteShell.run(bench.journal.path, "UPDATE file SET policy = x'00' WHERE id = \(ids[0])")
        try await deliver(1)
        let order = try #require(try await bench.journal.nextManifest(at: Bench.start))
        #expect(order.rule == Self.rule)
    }
}

/// Notices of a batch whose rows cannot be read.
@Suite(.seated, .enabled(if: SQLiteShell.isInstalled)) struct UnreadableNoticeTests {
    private let bench: Bench
    init() throws { bench = try Bench() }

    /// A batch of one file that has failed. - Returns: its id.
    private func ended() async throws -> Int64 {
        try await bench.setSinks([NotificationSink(name: "ops", events: [.batchDone])])
        _ = try await bench.failUnit()
        guard case .due(let notice) = try await bench.journal.nextNotice("ops", at: Bench.start) else {
            throw Unexpected(what: "no notice")
        }
        return try #require(notice.subject)
    }

    @Test func `a batch that cannot be read now is not one that is forgotten`() async throws {
        let batch = try await ended()
        try SQLiteShell.run(bench.journal.path, "ALTER TABLE batch RENAME TO away")
        await #expect(throws: JournalError.self) { _ = try await bench.journal.endedBatch(batch, limit: 9) }
        try SQLiteShell.run(bench.journal.path, "ALTER TABLE away RENAME TO batch")
        #expect(try await bench.journal.endedBatch(batch, limit: 9)?.jobs.count == 1)
        #expect(try await bench.journal.endedBatch(batch + 1, limit: 9) == nil)
    }

    @Test func `a batch is told with what can be read of its files`() async throws {
        let batch = try await ended()
        try SQLiteShell.run(
            bench.journal.path, "UPDATE file SET policy = x'00', labels = x'00'; UPDATE delivery SET fields = x'00'")
        let told = try #require(try await bench.journal.endedBatch(batch, limit: 9))
        #expect(told.batch.counts == [.failed: 1])
        #expect(told.jobs.map(\.file.path) == ["gigs/X/a"] && told.jobs.map(\.file.state) == [.failed])
    }
}

/// A small file system of the test's own; only where the test may mount one.
@Suite(.seated, .enabled(if: SmallDisk.isAvailable, "needs the right to mount a tmpfs")) struct FullDiskTests {
    @Test func `a full disk is told as such, and the journal goes on when space returns`() async throws {
        let disk = try SmallDisk()
        let journal = try disk.openJournal()
        defer { disk.unmount(journal) }
        try disk.fill()
        let admitted = try await Self.admitUntilFull(journal)
        #expect(try await journal.totals().mapValues(\.files) == (admitted == 0 ? [:] : [.pending: admitted]))
        try disk.free()
        _ = try await journal.admit(.test("after"), at: Bench.start)
        #expect(try await journal.totals()[.pending]?.files == admitted + 1)
    }

    @Test func `a transaction that outgrows the disk midway fails as full, for all in it`() async throws {
        let disk = try SmallDisk()
        let journal = try disk.openJournal()
        defer { disk.unmount(journal) }
        let reason = String(repeating: "x", count: 20_000)
        let full = await withTaskGroup(of: Bool?.self) { group in
            for number in 0..<500 {
                group.addTask {
                    do throws(JournalError) {
                        _ = try await journal.admit(.refused("\(number)", reason), at: Bench.start)
                        return nil
                    } catch {
                        return error.isFull
                    }
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        let admitted = full.filter { $0 == nil }.count
        #expect(admitted < 500)
        #expect(!full.contains(false))
        #expect(try await journal.totals()[.rejected]?.files ?? 0 == admitted)
    }

    @Test func `an exchange on a full disk loses neither the proof nor what was to be claimed`() async throws {
        let disk = try SmallDisk()
        let journal = try disk.openJournal()
        defer { disk.unmount(journal) }
        _ = try await journal.admit(.test("a", lane: .small), at: Bench.start)
        _ = try await journal.admit(.test("b", lane: .small), at: Bench.start)
        let wish = ClaimRequest(lane: .small, room: .test(), most: 1)
        let claim = try #require(try await journal.exchange([], for: wish, at: Bench.start).claims.first)
        try disk.fill()
        _ = try await Self.admitUntilFull(journal)
        let ended: [EndedClaim] = [(claim.delivery.id, .delivered(.test()))]
        do throws(JournalError) {
            _ = try await journal.exchange(ended, for: wish, at: Bench.start)
            Issue.record("the disk was not full")
        } catch {
            #expect(error.isFull, "\(error)")
        }
        #expect(try await journal.deliveryCounts(.claimed) == ["r2": 1])
        #expect(try await journal.deliveryCounts(.delivered) == [:])
        try disk.free()
        let exchange = try await journal.exchange(ended, for: wish, at: Bench.start)
        #expect(exchange.settled.map(\.state) == [.delivered])
        #expect(exchange.claims.map { "\($0.file.path)" } == ["b"])
    }

    /// In KiB. With the first a journal has no room for its tables; with the last it has for some hundreds of files.
    @Test(arguments: Array(stride(from: 128, through: 1024, by: 64)))
    func `whatever room there is, what was admitted stays and the rest can come later`(size: Int) async throws {
        let disk = try SmallDisk(size: "\(size)k")
        defer { disk.unmount() }
        var admitted = 0
        do throws(JournalError) {
            let journal = try disk.openJournal()
            defer { journal.close() }
            for number in 0..<1500 {
                _ = try await journal.admit(.test("\(number)"), at: Bench.start)
                admitted += 1
            }
        } catch {
            #expect(error.isFull, "\(error)")
        }
        try disk.grow()
        let journal = try disk.openJournal()
        defer { journal.close() }
        #expect(try await journal.totals()[.pending]?.files ?? 0 == admitted)
        _ = try await journal.admit(.test("after"), at: Bench.start)
        #expect(try await journal.jobs(FileFilter(limit: 10_000)).count == admitted + 1)
    }

    /// Returns how many were admitted.
    private static func admitUntilFull(_ journal: Journal) async throws -> Int {
        for number in 0..<5000 {
            do throws(JournalError) {
                _ = try await journal.admit(.test("filler-\(number)"), at: Bench.start)
            } catch {
                #expect(error.isFull, "\(error)")
                return number
            }
        }
        throw Unexpected(what: "the disk never filled")
    }
}

private final class SmallDisk: Sendable {
    private let directory: TemporaryDirectory
    var path: FilePath { directory.path }
    private var ballast: URL { URL(fileURLWithPath: path.appending("ballast").string) }

    static let isAvailable: Bool = {
        guard getuid() == 0, let disk = try? SmallDisk() else { return false }
        disk.unmount()
        return true
    }()

    init(size: String = "2m") throws {
        directory = try TemporaryDirectory()
        try Bench.run("/bin/mount", ["-t", "tmpfs", "-o", "size=\(size)", "tmpfs", directory.path.string])
    }

    func grow() throws { try Bench.run("/bin/mount", ["-o", "remount,size=16m", directory.path.string]) }

    func openJournal() throws(JournalError) -> Journal {
        try Journal(path: path.appending("journal.sqlite"), now: Bench.start)
    }

    func unmount(_ journal: Journal? = nil) {
        journal?.close()
        _ = try? Bench.run("/bin/umount", ["-l", path.string])
    }

    func fill() throws {
        try Data().write(to: ballast)
        let file = try FileHandle(forWritingTo: ballast)
        defer { try? file.close() }
        for size in [65_536, 4096, 1] {
            while (try? file.write(contentsOf: Data(count: size))) != nil {}
        }
    }

    func free() throws { try FileManager.default.removeItem(at: ballast) }
}
