import Foundation
import InletCore
import InletTestSupport
import SystemPackage
import Testing

@testable import InletLinux

private struct NoMoreRecords: Error { let seen: [InotifyRecord] }

struct InotifyTests {
    let folder: TemporaryDirectory

    init() throws { folder = try TemporaryDirectory() }

    private func collect(
        _ inotify: borrowing Inotify, _ waker: Waker, until done: ([InotifyRecord]) -> Bool
    ) throws -> [InotifyRecord] {
        var records: [InotifyRecord] = []
        let end = ContinuousClock.now.advanced(by: .seconds(120))
        while !done(records) {
            guard try inotify.wait(until: end, waker: waker).isReadable else { throw NoMoreRecords(seen: records) }
            records += try inotify.read()
        }
        return records
    }

    @Test func `a path that is no folder, or not there, is refused`() throws {
        let inotify = try Inotify()
        let file = try folder.write([1], to: "file")
        let link = folder.path.appending("link")
        try FileManager.default.createSymbolicLink(atPath: link.string, withDestinationPath: folder.path.string)
        for path in [file, link, folder.path.appending("none")] {
            var caught: SystemError?
            do throws(SystemError) { _ = try inotify.add(path) } catch { caught = error }
            #expect(caught?.isMissing == true, "\(path): \(String(describing: caught))")
        }
    }

    @Test func `creating, writing, renaming and deleting are seen, in nested folders of their own watch`() throws {
        let inotify = try Inotify()
        let waker = try Waker()
        let outer = try inotify.add(folder.path)
        let inner = try inotify.add(folder.makeDirectory("in"))
        let file = folder.path.appending("in").pushing(FilePath(bytes: [0xFF, 0x0A]))
        let writer = try FileDescriptor.open(
            file, .writeOnly, options: [.create, .closeOnExec], permissions: .ownerReadWrite)
        try writer.closeAfter { _ = try writer.writeAll([1, 2, 3]) }
        try DurableFile.rename(file, to: folder.path.appending("b"))
        try DurableFile.remove(folder.path.appending("b"))
        let records = try collect(inotify, waker) { $0.contains { $0.mask.contains(.deleted) } }
        func named(_ name: [UInt8]) -> [InotifyRecord] { records.filter { $0.name == name } }
        #expect(named(Array("in".utf8)).map(\.mask) == [[.created, .isDirectory]])
        #expect(named([0xFF, 0x0A]).map(\.mask) == [.created, .closedAfterWriting, .movedFrom])
        #expect(named([0xFF, 0x0A]).allSatisfy { $0.watch == inner })
        #expect(named([0x62]).map(\.mask) == [.movedTo, .deleted])
        #expect(named([0x62]).allSatisfy { $0.watch == outer })
        #expect(named([0x62])[0].cookie == named([0xFF, 0x0A])[2].cookie)
        #expect(named([0x62])[0].cookie != 0)
    }

    @Test func `writing without closing is not reported`() throws {
        let inotify = try Inotify()
        let path = try folder.write([1], to: "a")
        _ = try inotify.add(folder.path)
        let file = try FileDescriptor.open(path, .writeOnly, options: .closeOnExec)
        _ = try file.writeAll([1, 2, 3])
        #expect(try inotify.read().isEmpty)
        try file.close()
        #expect(try inotify.read().map(\.mask) == [.closedAfterWriting])
    }

    @Test func `a watched folder that goes says so, and its watch ends`() throws {
        let inotify = try Inotify()
        let inner = try folder.makeDirectory("in")
        let watch = try inotify.add(inner)
        try FileManager.default.removeItem(atPath: inner.string)
        let masks = try inotify.read().filter { $0.watch == watch }.map(\.mask)
        #expect(masks.contains(.selfDeleted))
        #expect(masks.contains(.watchRemoved))
        inotify.remove(watch)
    }

    @Test func `an overflow is a record with watch -1`() throws {
        let limit = try #require(
            Int(
                String(
                    decoding: try DurableFile.read("/proc/sys/fs/inotify/max_queued_events", limit: 64), as: UTF8.self
                )
                .trimmingCharacters(in: .whitespacesAndNewlines)))
        try #require(limit <= 100_000, "the queue of this machine is too long for a test")
        let inotify = try Inotify()
        _ = try inotify.add(folder.path)
        let names = [folder.path.appending("a"), folder.path.appending("b")]
        try folder.write([1], to: "a")
        for number in 0...(limit / 2 + 8) { try DurableFile.rename(names[number % 2], to: names[(number + 1) % 2]) }
        var overflow: InotifyRecord?
        while overflow == nil {
            let records = try inotify.read()
            try #require(!records.isEmpty)
            overflow = records.first { $0.isOverflow }
        }
        #expect(overflow == InotifyRecord(watch: -1, mask: .overflow))
    }

    @Test func `random bytes never break the parser`() {
        for seed in 0..<2000 as Range<UInt64> {
            var generator = SeededGenerator(seed: seed)
            let bytes = (0..<Int.random(in: 0...200, using: &generator)).map { _ in
                UInt8.random(in: 0...255, using: &generator) & (seed % 2 == 0 ? 0xFF : 0x13)
            }
            let records = bytes.withUnsafeBytes { Inotify.parse($0) }
            #expect(records.count <= bytes.count / 16, "seed \(seed)")
            #expect(records.allSatisfy { !$0.name.contains(0) }, "seed \(seed)")
        }
    }

    @Test func `whole records are read back, and a cut one ends the list`() {
        for seed in 0..<300 as Range<UInt64> {
            var generator = SeededGenerator(seed: seed)
            let records = (0..<Int.random(in: 1...6, using: &generator)).map { _ in
                InotifyRecord(
                    watch: .random(in: -1...9, using: &generator),
                    mask: .init(rawValue: .random(in: 0 ... .max, using: &generator)),
                    cookie: .random(in: 0 ... .max, using: &generator),
                    name: (0..<Int.random(in: 0...255, using: &generator)).map { _ in
                        .random(in: 1...255, using: &generator)
                    })
            }
            let bytes = records.flatMap { record -> [UInt8] in
                let padded =
                    record.name.isEmpty ? [] : record.name + [UInt8](repeating: 0, count: 16 - record.name.count % 16)
                return little(UInt32(bitPattern: record.watch)) + little(record.mask.rawValue) + little(record.cookie)
                    + little(UInt32(padded.count)) + padded
            }
            #expect(bytes.withUnsafeBytes { Inotify.parse($0) } == records, "seed \(seed)")
            #expect(bytes.dropLast().withUnsafeBytes { Inotify.parse($0) } == records.dropLast(), "seed \(seed)")
        }
    }

    /// No memory for each event: all names are in the one copy of what was read, as far apart as they were there.
    @Test func `names of one reading share their storage`() {
        let event =
            little(1) + little(0x100) + little(0) + little(16) + Array("name".utf8) + Array(repeating: 0, count: 12)
        let bytes = (0..<100).flatMap { _ in event }
        let records = bytes.withUnsafeBytes { Inotify.parse($0) }
        let places = records.map { $0.nameBytes.withUnsafeBytes { UInt(bitPattern: $0.baseAddress) } }
        #expect(records.count == 100 && records.allSatisfy { $0.name == Array("name".utf8) })
        #expect(zip(places, places.dropFirst()).allSatisfy { $1 == $0 + UInt(event.count) })
    }

    private func little(_ number: UInt32) -> [UInt8] { withUnsafeBytes(of: number) { Array($0) } }

    @Test func `a wait ends by deadline, by waker and by records, each told apart`() async throws {
        let inotify = try Inotify()
        let waker = try Waker()
        let start = ContinuousClock.now
        #expect(try inotify.wait(until: start.advanced(by: .milliseconds(20)), waker: waker).isTimedOut)
        #expect(ContinuousClock.now >= start.advanced(by: .milliseconds(20)))

        waker.wake()
        waker.wake()
        #expect(try inotify.wait(until: nil, waker: waker) == WaitOutcome(isReadable: false, isWoken: true))
        #expect(try inotify.wait(until: .now, waker: waker).isTimedOut, "a wake-up is taken by the wait it ends")

        _ = try inotify.add(folder.path)
        try folder.write([1], to: "a")
        #expect(try inotify.wait(until: nil, waker: waker) == WaitOutcome(isReadable: true, isWoken: false))
    }

    @Test func `a waker ends a wait that is going on, on another thread`() async throws {
        let waker = try Waker()
        let pool = BlockingPool(name: "waits", threads: 1)
        async let woken = pool.run { () throws(SystemError) in
            try waker.wait(until: ContinuousClock.now.advanced(by: .seconds(120)))
        }
        waker.wake()
        #expect(try await woken)
        #expect(try !waker.wait(until: .now))
        pool.shutdown()
    }

    @Test func `a loop on a pool of one thread waits for records and goes on awaiting`() async throws {
        let pool = BlockingPool(name: "intake", threads: 1)
        let waker = try Waker()
        let path = folder.path
        async let names = withTaskExecutorPreference(pool) { () async throws -> [[UInt8]] in
            let inotify = try Inotify()
            _ = try inotify.add(path)
            var names: [[UInt8]] = []
            while true {
                let outcome = try inotify.wait(until: .now.advanced(by: .seconds(60)), waker: waker)
                if outcome.isWoken || outcome.isTimedOut { return names }
                names += try inotify.read().filter { $0.mask.contains(.closedAfterWriting) }.map(\.name)
                await Task.yield()
                if names.count == 3 { waker.wake() }
            }
        }
        try await eventually("the watch is set") { try hasWatch() }
        for name in ["a", "b", "c"] as [FilePath] { try folder.write([1], to: name) }
        #expect(try await names.count == 3)
        pool.shutdown()
    }

    // The watched folder's inode is in the descriptor's entry in /proc.
    private func hasWatch() throws -> Bool {
        guard case .directory(let identity) = try FileLook.look(at: folder.path) else { return false }
        let inode = "ino:" + String(identity.inode, radix: 16) + " "
        return try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fdinfo").contains { name in
            (try? String(contentsOfFile: "/proc/self/fdinfo/" + name, encoding: .utf8))?.contains(inode) == true
        }
    }
}
