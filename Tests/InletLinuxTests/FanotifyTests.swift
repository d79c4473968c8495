import Foundation
import InletCore
import InletTestSupport
import SystemPackage
import Testing

@testable import InletLinux

/// Why the kernel lets this process have no fanotify for a file system of its own; nil when it does.
private let fanotifyRefusal: String? = {
    do {
        let folder = try TemporaryDirectory()
        let mount = try TestMount("tmpfs", at: folder.path)
        defer { mount.unmount() }
        let fanotify = try Fanotify()
        try fanotify.mark(folder.path)
        let reader = try HandleReader(folder.path)
        _ = try reader.find(try reader.ownHandle())
        return nil
    } catch {
        return "\(error)"
    }
}()

/// With the real calls, on a file system that nobody else writes to; skipped, and seen to be, where this process may not make
/// them.
@Suite(.enabled(if: fanotifyRefusal == nil, "\(fanotifyRefusal ?? "")"))
struct FanotifyTests {
    let folder: TemporaryDirectory
    private let mount: TestMount

    init() throws {
        folder = try TemporaryDirectory()
        mount = try TestMount("tmpfs", at: folder.path)
    }

    @Test func `one mark tells of folders that were not there, by the handle they have`() throws {
        let fanotify = try Fanotify()
        try fanotify.mark(folder.path)
        let deep = try folder.makeDirectory("a/b")
        // Under its own name from the start: what is written without one is closed without one.
        try create(deep.appending("file"))
        try DurableFile.rename(deep.appending("file"), to: folder.path.appending("moved"))
        let moved = Array("moved".utf8)
        let reader = try HandleReader(folder.path)
        let inner = try HandleReader(deep).ownHandle()
        let outer = try reader.ownHandle()
        let records = try read(
            fanotify,
            until: {
                let last = $0.parts(cookie: 1).last?.place
                return last?.name == moved && last?.directory == outer
            })
        #expect(
            records.contains {
                $0.place?.directory == inner && $0.place?.name == Array("file".utf8)
                    && $0.mask.contains(.closedAfterWriting)
            })
        #expect(try reader.find(inner)?.path.lastComponent == "b")
        #expect(try reader.find(inner)?.identity.inode == directory(deep)?.inode)
        try FileManager.default.removeItem(atPath: deep.string)
        #expect(try reader.find(inner) == nil)
    }

    @Test func `a renamed folder is found under its new name by the same handle`() throws {
        let old = try folder.makeDirectory("old")
        let handle = try HandleReader(old).ownHandle()
        try DurableFile.rename(old, to: folder.path.appending("new"))
        let reader = try HandleReader(folder.path)
        #expect(try reader.find(handle)?.path == reader.own().path.appending("new"))
    }

    @Test func `records end a wait that is for something else`() throws {
        let fanotify = try Fanotify()
        let inotify = try Inotify()
        let waker = try Waker()
        try fanotify.mark(folder.path)
        try folder.write([1], to: "a")
        let bound = ContinuousClock.now.advanced(by: .seconds(120))
        #expect(try inotify.wait(until: bound, waker: waker, other: fanotify.number).isReadable)
        #expect(try !fanotify.isDrained)
    }

    @Test func `what does not fit in the queue is lost, and one record says so`() throws {
        let limit = try? DurableFile.read("/proc/sys/fs/fanotify/max_queued_events", limit: 64)
        let most = limit.flatMap { Int(String(decoding: $0, as: UTF8.self).filter(\.isNumber)) } ?? 16_384
        let fanotify = try Fanotify()
        try fanotify.mark(folder.path)
        // Folders: one record each, while a file's end may be told later, when a child that has just started holds it open.
        for number in 0..<(most + 10) { _ = try folder.makeDirectory(FilePath("\(number)")) }
        var (count, losses) = (0, 0)
        while true {
            let batch = try fanotify.read()
            if batch.isEmpty { break }
            count += batch.count
            losses += batch.count(where: \.isOverflow)
        }
        #expect(losses == 1 && count == most + 1)
    }

    @Test func `a path that is no folder, or not there, is refused`() throws {
        let fanotify = try Fanotify()
        let file = try folder.write([1], to: "file")
        for path in [file, folder.path.appending("none")] {
            var caught: SystemError?
            do throws(SystemError) { try fanotify.mark(path) } catch { caught = error }
            #expect(caught?.isMissing == true, "\(path): \(String(describing: caught))")
        }
    }

    @Test func `a mount has one number for all of its folders`() throws {
        let inner = try folder.makeDirectory("in")
        #expect(try MountTable.number(of: folder.path) == MountTable.number(of: inner))
        #expect(try MountTable.number(of: folder.path) != MountTable.number(of: "/proc"))
    }

    private func read(
        _ fanotify: borrowing Fanotify, until isLast: (FanotifyRecord) -> Bool
    ) throws -> [FanotifyRecord] {
        var records: [FanotifyRecord] = []
        while true {
            let batch = try fanotify.read()
            // What a call has done is queued before it returns.
            try #require(!batch.isEmpty, "\(records.count) records, but not the last one")
            if let last = batch.firstIndex(where: isLast) { return records + batch[...last] }
            records += batch
        }
    }

    private func create(_ path: FilePath) throws {
        try FileDescriptor.open(path, .writeOnly, options: [.create, .closeOnExec], permissions: .ownerReadWrite)
            .close()
    }

    private func directory(_ path: FilePath) throws -> FileIdentity? {
        guard case .directory(let identity) = try FileLook.look(at: path) else { return nil }
        return identity
    }
}

/// What the kernel writes, made by hand: little-endian, as on all machines that this is built for.
private struct RecordBytes {
    static func place(_ type: UInt8, _ place: FanotifyRecord.Place, padding: Int = 0) -> [UInt8] {
        let handle = place.directory
        let body =
            little(handle.fileSystem) + little(UInt32(handle.bytes.count)) + little(handle.type) + handle.bytes
            + place.name + [UInt8](repeating: 0, count: 1 + padding)
        return [type, 0] + little(UInt16(4 + body.count)) + body
    }

    static func record(_ mask: UInt64, _ infos: [UInt8] = [], version: UInt8 = 3) -> [UInt8] {
        little(UInt32(24 + infos.count)) + [version, 0] + little(UInt16(24)) + little(mask) + little(Int32(-1))
            + little(Int32(7)) + infos
    }

    static func little<Number: FixedWidthInteger>(_ number: Number) -> [UInt8] {
        withUnsafeBytes(of: number.littleEndian) { Array($0) }
    }
}

private func parse(_ bytes: [UInt8]) -> [FanotifyRecord] { bytes.withUnsafeBytes { Fanotify.parse($0) } }

struct FanotifyRecordTests {
    private static let folder = FileHandle(fileSystem: 0x0102_0304_0506_0708, type: 1, bytes: [9, 8, 7])
    private static let other = FileHandle(fileSystem: 1, type: -2, bytes: [])
    private static let here = FanotifyRecord.Place(directory: folder, name: [0xFF, 0x0A])
    private static let there = FanotifyRecord.Place(directory: other, name: [0x62])

    @Test func `a record has its mask, its folder and its name`() {
        let bytes = RecordBytes.record(0x108, RecordBytes.place(2, Self.here, padding: 3))
        #expect(parse(bytes) == [FanotifyRecord(mask: [.created, .closedAfterWriting], place: Self.here)])
    }

    @Test func `a rename has two places, and is the two records that inotify has`() {
        let bytes = RecordBytes.record(
            0x5000_0000, RecordBytes.place(10, Self.here) + RecordBytes.place(12, Self.there))
        let records = parse(bytes)
        #expect(records.map(\.place) == [Self.here])
        #expect(records.map(\.target) == [Self.there])
        let parts = records.flatMap { $0.parts(cookie: 5) }
        #expect(parts.map(\.place) == [Self.here, Self.there])
        #expect(
            parts.map(\.record) == [
                InotifyRecord(watch: -1, mask: [.movedFrom, .isDirectory], cookie: 5, name: [0xFF, 0x0A]),
                InotifyRecord(watch: -1, mask: [.movedTo, .isDirectory], cookie: 5, name: [0x62]),
            ])
    }

    @Test func `an overflow has no place`() {
        let records = parse(RecordBytes.record(0x4000))
        #expect(records == [FanotifyRecord(mask: .overflow)])
        #expect(records[0].isOverflow)
        #expect(records[0].parts(cookie: 1).isEmpty)
    }

    @Test func `what is not known is passed over, and what is not of this version ends the list`() {
        let known = RecordBytes.place(2, Self.here)
        let process: [UInt8] = [4, 0, 8, 0, 1, 2, 3, 4]
        #expect(parse(RecordBytes.record(8, process + known)).map(\.place) == [Self.here])
        #expect(parse(RecordBytes.record(8, known, version: 2) + RecordBytes.record(8, known)).isEmpty)
        var foreign = known
        foreign[12] = 200
        #expect(parse(RecordBytes.record(8, foreign)) == [FanotifyRecord(mask: .closedAfterWriting)])
        #expect(parse(RecordBytes.record(8, [2, 0, 0, 0])) == [FanotifyRecord(mask: .closedAfterWriting)])
    }

    @Test func `random bytes never break the parser`() {
        for seed in 0..<3000 as Range<UInt64> {
            var generator = SeededGenerator(seed: seed)
            var bytes = (0..<Int.random(in: 0...300, using: &generator)).map { _ in
                UInt8.random(in: 0...255, using: &generator) & (seed % 2 == 0 ? 0xFF : 0x1F)
            }
            // Half of them get a head that is believed, so that what follows it is read.
            if seed % 4 < 2, bytes.count >= 24 {
                bytes.replaceSubrange(0..<8, with: RecordBytes.little(UInt32(bytes.count)) + [3, 0, 24, 0])
            }
            let records = parse(bytes)
            #expect(records.count <= bytes.count / 24, "seed \(seed)")
            #expect(records.allSatisfy { $0.place?.name.contains(0) != true }, "seed \(seed)")
        }
    }

    @Test func `whole records are read back, and a cut one ends the list`() {
        for seed in 0..<300 as Range<UInt64> {
            var generator = SeededGenerator(seed: seed)
            func bytes(_ counts: ClosedRange<Int>) -> [UInt8] {
                (0..<Int.random(in: counts, using: &generator)).map { _ in .random(in: 1...255, using: &generator) }
            }
            func place() -> FanotifyRecord.Place {
                FanotifyRecord.Place(
                    directory: FileHandle(
                        fileSystem: .random(in: 0 ... .max, using: &generator),
                        type: .random(in: .min ... .max, using: &generator), bytes: bytes(0...128)),
                    name: bytes(1...255))
            }
            var records: [FanotifyRecord] = []
            var all: [UInt8] = []
            for _ in 0..<Int.random(in: 1...6, using: &generator) {
                let mask = UInt32.random(in: 0 ... .max, using: &generator)
                let record = FanotifyRecord(mask: .init(rawValue: mask), place: place(), target: place())
                let infos = [
                    record.place.map { RecordBytes.place(10, $0) }, record.target.map { RecordBytes.place(12, $0) },
                ]
                all += RecordBytes.record(UInt64(mask), infos.compactMap(\.self).flatMap(\.self))
                records.append(record)
            }
            #expect(parse(all) == records, "seed \(seed)")
            #expect(parse(all.dropLast()) == records.dropLast(), "seed \(seed)")
        }
    }
}
