import Foundation
import InletCore
import InletLinux
import InletTestSupport
import Synchronization
import SystemPackage
import Testing

struct FileCopyTests {
    let folder: TemporaryDirectory
    let target: FilePath

    init() throws {
        folder = try TemporaryDirectory()
        target = try folder.makeDirectory("target")
    }

    /// Bytes in which no two blocks of 64 KiB are equal.
    private func pattern(_ count: Int) -> [UInt8] {
        var generator = SeededGenerator(seed: UInt64(count))
        let block = (0..<8192).flatMap { _ in withUnsafeBytes(of: generator.next()) { Array($0) } }
        var bytes: [UInt8] = []
        for number in 0...(count / block.count) {
            bytes += withUnsafeBytes(of: number) { Array($0) }
            bytes += block.dropFirst(8)
        }
        return Array(bytes.prefix(count))
    }

    private func names(_ path: FilePath) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: path.string)
    }

    private func copy(_ source: SourceFile, to directory: FilePath, name: FilePath.Component = "a.mp4") throws
        -> FilePath
    {
        try FileCopy.copy(source, toTemporaryIn: directory, name: name, isCancelled: { false }, progress: { _ in })
    }

    @Test func `cancelling in the middle leaves nothing`() throws {
        let source = try SourceFile(opening: folder.write(pattern(20 << 20), to: "a"))
        let seen = Mutex<Int64>(0)
        let error = try #require(throws: FileCopyError.self) {
            try FileCopy.copy(
                source, toTemporaryIn: target, name: "a", isCancelled: { seen.withLock { $0 > 0 } },
                progress: { done in seen.withLock { $0 = done } })
        }
        #expect(error == .cancelled)
        #expect((1..<Int64(20 << 20)).contains(seen.withLock { $0 }))
        #expect(try names(target).isEmpty)
    }

    @Test func `a source that was cut short is an error of the source, and leaves nothing`() throws {
        let path = try folder.write(pattern(5000), to: "a")
        let source = try SourceFile(opening: path)
        try #require(FileHandle(forWritingAtPath: path.string)).truncate(atOffset: 1000)
        let error = try #require(throws: FileCopyError.self) { try copy(source, to: target) }
        #expect(error == .sourceShort(path, expected: 5000, found: 1000))
        #expect(try names(target).isEmpty)
    }

    @Test func `a missing target folder is an error of the target`() throws {
        let source = try SourceFile(opening: folder.write([1], to: "a"))
        let error = try #require(throws: FileCopyError.self) { try copy(source, to: folder.path.appending("none")) }
        guard case .target(let cause) = error else {
            Issue.record("\(error)")
            return
        }
        #expect(cause.isMissing)
    }

    @Test(arguments: [0, 1, 4095, 4097, 9 << 20, (8 << 20) + (8 << 20) + 1])
    func `content of any length arrives, on the same file system and on another`(count: Int) throws {
        let bytes = pattern(count)
        let source = try SourceFile(opening: folder.write(bytes, to: "a"))
        let memory = try TemporaryDirectory.inMemory()
        defer { withExtendedLifetime(memory) {} }
        let elsewhere = memory.path
        for directory in [target, elsewhere] {
            var last: Int64 = -1
            var isRising = true
            let temporary = try FileCopy.copy(
                source, toTemporaryIn: directory, name: "a.mp4", isCancelled: { false },
                progress: { done in
                    isRising = isRising && done > last
                    last = done
                })
            #expect(isRising)
            #expect(last == (count == 0 ? -1 : Int64(count)))
            #expect(try DurableFile.read(temporary, limit: 32 << 20) == bytes)
            let name = try #require(temporary.lastComponent).string
            #expect(name.wholeMatch(of: /\.a\.mp4\.inlet-[0-9a-z]{8}\.tmp/) != nil, "\(name)")
        }
    }

    @Test func `mode, mtime and user attributes are kept, set-user-ID is not`() throws {
        let path = try folder.write([1, 2, 3], to: "a")
        try run("/bin/chmod", "4751", path.string)
        try run("/usr/bin/touch", "-d", "1969-12-31T23:59:58.5Z", path.string)
        let extended = FileAttributeKey("NSFileExtendedAttributes")
        try FileManager.default.setAttributes(
            [extended: ["user.origin": Data("camera".utf8)]], ofItemAtPath: path.string)
        let source = try SourceFile(opening: path)
        let temporary = try SourceFile(opening: copy(source, to: target))
        #expect(temporary.mode == 0o751)
        #expect(temporary.opened.modified == -1_500_000_000)
        let kept = try FileManager.default.attributesOfItem(atPath: temporary.path.string)[extended]
        #expect((kept as? [String: Data])?["user.origin"] == Data("camera".utf8))
    }

    @Test func `a name of 255 bytes gives a temporary name of at most 255, cut between characters`() throws {
        let source = try SourceFile(opening: folder.write([1], to: "a"))
        let name = try #require(FilePath.Component(String(repeating: "é", count: 127)))
        let temporary = try copy(source, to: target, name: name)
        let bytes = try #require(temporary.lastComponent).string
        #expect(bytes.utf8.count <= 255)
        #expect(!bytes.contains("\u{FFFD}"))
    }

    @Test func `reading back gives the bytes on the disk, whichever way`() throws {
        for (directory, count) in [
            (folder.path, 3_000_001), (folder.path, 1 << 20), (folder.path, 0), ("/dev/shm", 5000),
        ] {
            let bytes = pattern(count)
            let path = directory.appending("inlet-back-" + String(UInt64.random(in: 0 ... .max)))
            try DurableFile.write(bytes, to: path, mode: 0o600)
            defer { try? DurableFile.remove(path) }
            var reader = try UncachedReader(path)
            var found: [UInt8] = []
            while try reader.next({ found += $0 }) {}
            #expect(found == bytes, "\(path) \(count)")
        }
    }

    @Test func `what a dead process left of a copy is removed, and nothing else`() throws {
        let source = try SourceFile(opening: folder.write([1], to: "a"))
        _ = try copy(source, to: target, name: "a.mp4")
        _ = try copy(source, to: target, name: "b.mp4")
        try folder.write([1], to: "target/a.mp4")
        try folder.write([1], to: "target/.a.mp4.inlet-notes.tmp")
        FileCopy.removeLeftovers(of: "a.mp4", in: target)
        let left = try names(target)
        #expect(left.count == 3)
        #expect(left.contains("a.mp4"))
        #expect(left.contains(".a.mp4.inlet-notes.tmp"))
        #expect(left.contains { $0.hasPrefix(".b.mp4.inlet-") })
    }

    @Test func `reading back what is missing is an error with its path`() throws {
        let path = folder.path.appending("none")
        let error = try #require(throws: SystemError.self) { _ = try UncachedReader(path).isDirect }
        #expect(error.isMissing)
        #expect(error.path == path)
    }
}

/// Needs the right to mount a file system of its own, which a container's root may lack.
@Suite(.enabled(if: SmallDisk.isAllowed), .serialized)
struct FullDiskTests {
    @Test func `a full disk fails the copy as full and leaves no temporary file`() throws {
        let disk = try SmallDisk()
        let source = try SourceFile(opening: disk.outside.write([UInt8](repeating: 1, count: 3 << 20), to: "a"))
        let error = try #require(throws: FileCopyError.self) {
            try FileCopy.copy(
                source, toTemporaryIn: disk.path, name: "a", isCancelled: { false }, progress: { _ in })
        }
        guard case .target(let cause) = error else {
            Issue.record("\(error)")
            return
        }
        #expect(cause.isFull)
        #expect(cause.description.contains("free space"))
        #expect(try FileManager.default.contentsOfDirectory(atPath: disk.path.string).isEmpty)
    }

    @Test func `a full disk fails a durable write, and the old content stays`() throws {
        let disk = try SmallDisk()
        let path = disk.path.appending("state")
        try DurableFile.write([1, 2, 3], to: path, mode: 0o600)
        let error = try #require(throws: SystemError.self) {
            try DurableFile.write([UInt8](repeating: 1, count: 3 << 20), to: path, mode: 0o600)
        }
        #expect(error.isFull)
        #expect(try DurableFile.read(path, limit: 10) == [1, 2, 3])
        #expect(try FileManager.default.contentsOfDirectory(atPath: disk.path.string) == ["state"])
        #expect(try FreeSpace.available(at: disk.path) < 1 << 20)
    }
}

/// A tmpfs of 1 MiB, mounted as long as the value lives.
final class SmallDisk {
    let outside: TemporaryDirectory
    let path: FilePath

    init() throws {
        outside = try TemporaryDirectory()
        path = try outside.makeDirectory("disk")
        try run("/bin/mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", path.string)
    }

    deinit { _ = try? run("/bin/umount", path.string) }

    static let isAllowed: Bool = (try? SmallDisk()) != nil
}
