import Foundation
import InletCore
import InletJournal
import InletJournalSupport
import InletTestSupport
import SystemPackage
import Testing

/// A small file system of the test's own; only where the test may mount one.
@Suite(.seated, .enabled(if: SmallDisk.isAvailable, "needs the right to mount a tmpfs")) struct FullDiskTests {
    @Test func `a full disk is told as such, and the journal goes on when space returns`() async throws {
        let disk = try SmallDisk()
        defer { disk.unmount() }
        let journal = try Journal(path: disk.path.appending("journal.sqlite"), now: Bench.start)
        defer { journal.close() }
        try disk.fill()
        let admitted = try await Self.admitUntilFull(journal)
        #expect(try await journal.totals().mapValues(\.files) == (admitted == 0 ? [:] : [.pending: admitted]))
        try disk.free()
        _ = try await journal.admit(.test("after"), at: Bench.start)
        #expect(try await journal.totals()[.pending]?.files == admitted + 1)
    }

    @Test func `a transaction that outgrows the disk midway fails as full, for all in it`() async throws {
        let disk = try SmallDisk()
        defer { disk.unmount() }
        let journal = try Journal(path: disk.path.appending("journal.sqlite"), now: Bench.start)
        defer { journal.close() }
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

    @Test func `a proof waits for space and is not lost`() async throws {
        let disk = try SmallDisk()
        defer { disk.unmount() }
        let journal = try Journal(path: disk.path.appending("journal.sqlite"), now: Bench.start)
        defer { journal.close() }
        guard case .admitted(let id) = try await journal.admit(.test("a"), at: Bench.start) else {
            throw Unexpected(what: "not admitted")
        }
        let isFull = Flag()
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                _ = try await journal.withClaim(.big, rooms: [.test()], clock: { Bench.start }) { _ in
                    try disk.fill()
                    _ = try await Self.admitUntilFull(journal)
                    isFull.set()
                    return (Settlement.test(.delivered), 0)
                }
            }
            group.addTask {
                try await eventually("the disk is full") { isFull.isSet }
                await #expect(throws: JournalError.self) { try await journal.setPaused("r2", true) }
                try disk.free()
            }
            try await group.waitForAll()
        }
        #expect(try await journal.job(id)?.file.state == .delivered)
    }

    @Test func `an exchange on a full disk loses neither the proof nor what was to be claimed`() async throws {
        let disk = try SmallDisk()
        defer { disk.unmount() }
        let journal = try Journal(path: disk.path.appending("journal.sqlite"), now: Bench.start)
        defer { journal.close() }
        _ = try await journal.admit(.test("a", lane: .small), at: Bench.start)
        _ = try await journal.admit(.test("b", lane: .small), at: Bench.start)
        let wish = ClaimWish(lane: .small, room: .test(), most: 1)
        let claim = try #require(try await journal.exchange([], for: wish, at: Bench.start).claims.first)
        try disk.fill()
        _ = try await Self.admitUntilFull(journal)
        let ended = [EndedClaim(claim, .delivered(.test()))]
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
        let path = disk.path.appending("journal.sqlite")
        var admitted = 0
        do throws(JournalError) {
            let journal = try Journal(path: path, now: Bench.start)
            defer { journal.close() }
            for number in 0..<1500 {
                _ = try await journal.admit(.test("\(number)"), at: Bench.start)
                admitted += 1
            }
        } catch {
            #expect(error.isFull, "\(error)")
        }
        try disk.grow()
        let journal = try Journal(path: path, now: Bench.start)
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

    func unmount() { _ = try? Bench.run("/bin/umount", ["-l", path.string]) }

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
