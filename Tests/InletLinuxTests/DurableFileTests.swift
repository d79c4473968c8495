import Foundation
import InletCore
import InletTestSupport
import Synchronization
import SystemPackage
import Testing

@testable import InletLinux

struct DurableFileTests {
    let folder: TemporaryDirectory

    init() throws { folder = try TemporaryDirectory() }

    private var names: [String] {
        get throws { try FileManager.default.contentsOfDirectory(atPath: folder.path.string).sorted() }
    }

    @Test func `a write into a missing folder names it and leaves nothing`() throws {
        let path = folder.path.appending("none").appending("file")
        let error = try #require(throws: SystemError.self) { try DurableFile.write([1], to: path, mode: 0o600) }
        #expect(error.isMissing)
        #expect(error.call == "create")
        #expect(try names.isEmpty)
    }

    @Test func `a write onto a folder fails and leaves no temporary file`() throws {
        try folder.makeDirectory("taken")
        try folder.write([1], to: "taken/file")
        let error = try #require(throws: SystemError.self) {
            try DurableFile.write([1], to: folder.path.appending("taken"), mode: 0o600)
        }
        #expect(error.call == "rename")
        #expect(try names == ["taken"])
    }

    @Test func `a write replaces content and mode at once`() throws {
        let path = try folder.write(Array("old and longer".utf8), to: "file")
        try DurableFile.write(Array("new".utf8), to: path, mode: 0o640)
        #expect(try DurableFile.read(path, limit: 100) == Array("new".utf8))
        #expect(try SourceFile(opening: path).mode == 0o640)
        #expect(try names == ["file"])
    }

    @Test func `names of 255 bytes can be written`() throws {
        let name = String(repeating: "é", count: 127) + "x"
        let path = folder.path.appending(name)
        try DurableFile.write([1], to: path, mode: 0o600)
        #expect(try names == [name])
    }

    @Test func `reading stops at the limit, and reads what has no size`() throws {
        let path = try folder.write([1, 2, 3, 4], to: "file")
        #expect(try DurableFile.read(path, limit: 4) == [1, 2, 3, 4])
        let error = try #require(throws: SystemError.self) { try DurableFile.read(path, limit: 3) }
        #expect(error.refusal == .tooLarge(limit: 3))
        #expect(try !DurableFile.read("/proc/self/status", limit: 1 << 20).isEmpty)
    }

    @Test func `folders are made with those above them, and again without complaint`() throws {
        let deep = folder.path.appending("a/b/c")
        try DurableFile.makeDirectories(deep, mode: 0o700)
        try DurableFile.makeDirectories(deep, mode: 0o700)
        guard case .directory = try FileLook.look(at: deep) else {
            Issue.record("no folder")
            return
        }
        try folder.write([1], to: "a/file")
        let error = try #require(throws: SystemError.self) {
            try DurableFile.makeDirectories(folder.path.appending("a/file"), mode: 0o700)
        }
        #expect(error.code == .notDirectory)
        #expect(throws: SystemError.self) {
            try DurableFile.makeDirectories(folder.path.appending("a/file/below"), mode: 0o700)
        }
    }

    enum Way: CaseIterable {
        case kernel
        case link
        case look

        func rename(_ path: FilePath, to target: FilePath) throws {
            switch self {
            case .kernel: try DurableFile.rename(path, to: target)
            case .link: try DurableFile.renameByLink(path, to: target)
            case .look: try DurableFile.renameAfterLook(path, to: target)
            }
        }
    }

    @Test(arguments: Way.allCases)
    func `a rename never overwrites, by whichever way the file system allows`(way: Way) throws {
        let first = try folder.write([1], to: "first")
        let second = try folder.write([2], to: "second")
        let error = try #require(throws: SystemError.self) { try way.rename(first, to: second) }
        #expect(error.isTaken)
        #expect(error.target == second)
        #expect(error.description.contains("nothing was overwritten"))
        #expect(try DurableFile.read(first, limit: 10) == [1])
        #expect(try DurableFile.read(second, limit: 10) == [2])

        try way.rename(first, to: folder.path.appending("free"))
        #expect(try names == ["free", "second"])
        #expect(try DurableFile.read(folder.path.appending("free"), limit: 10) == [1])
        let gone = try #require(throws: SystemError.self) { try way.rename(first, to: folder.path.appending("x")) }
        #expect(gone.isMissing)
    }

    @Test func `a rename across file systems says so`() throws {
        let path = try folder.write([1], to: "file")
        let shared = FilePath("/dev/shm")
        try #require(try FileSystemKind.of(shared).name == "tmpfs")
        let error = try #require(throws: SystemError.self) {
            try DurableFile.rename(path, to: shared.appending("inlet-" + String(UInt64.random(in: 0 ... .max))))
        }
        #expect(error.code == .improperLink)
        #expect(try names == ["file"])
    }

    @Test func `a lock is held by one process, and free when that one is killed`() async throws {
        let path = folder.path.appending("lock")
        let holder = try OtherProcess("exec 9>\"$1\"; flock -x 9; echo locked; read never", path.string)
        #expect(try isFree(path) == false)
        holder.kill()
        try await eventually("free") { try isFree(path) }
        #expect(throws: SystemError.self) { try isFree(folder.path.appending("none/lock")) }
    }

    @Test func `a lock ends with its owner and has mode 0600`() async throws {
        let path = folder.path.appending("lock")
        do {
            let lock = try FileLock(path)
            #expect(try isFree(path) == false)
            _ = consume lock
        }
        try await eventually("free") { try isFree(path) }
        #expect(try SourceFile(opening: path).mode == 0o600)
    }

    private func isFree(_ path: FilePath) throws(SystemError) -> Bool {
        let lock = try FileLock(path)
        return lock != nil
    }
}

struct UnnamedFileTests {
    private let folder: TemporaryDirectory

    init() throws { folder = try TemporaryDirectory() }

    private var names: [String] {
        get throws { try FileManager.default.contentsOfDirectory(atPath: folder.path.string).sorted() }
    }

    @Test func `what a process that dies has written is gone with it, until it has a name`() throws {
        guard let file = try UnnamedFile.make(in: folder.path) else {
            Issue.record("the temporary folder must be on a usual file system")
            return
        }
        let written = "whole".withCString { write(file.descriptor.number, $0, 5) }
        #expect(written == 5)
        #expect(try names.isEmpty)
        let name = try #require(FilePath("receipt.json").lastComponent)
        // What a process left that died before its last rename.
        let left = folder.path.pushing(TemporaryFile.fixedName(for: name))
        try DurableFile.rename(try folder.write(Array("old".utf8), to: "x"), over: left)
        #expect(try file.place(at: folder.path.appending(name), in: folder.path, for: name))
        #expect(try names == ["receipt.json"])
        #expect(try DurableFile.read(folder.path.appending(name), limit: 100) == Array("whole".utf8))
    }

    @Test func `many who write one file leave one whole file, and nothing else`() async throws {
        let path = folder.path.appending("book")
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<8 as Range<UInt8> {
                group.addTask {
                    for _ in 0..<20 {
                        try DurableFile.write([UInt8](repeating: number, count: 1000), to: path, mode: 0o600)
                    }
                }
            }
            try await group.waitForAll()
        }
        #expect(try names == ["book"])
        let content = try DurableFile.read(path, limit: 2000)
        #expect(content.count == 1000 && Set(content).count == 1)
    }

    @Test func `a name that is taken is not taken over`() throws {
        let path = try folder.write([1], to: "taken")
        let file = try UnnamedFile.make(in: folder.path)
        do throws(SystemError) {
            try file?.link(as: path)
            Issue.record("it has the name of another")
        } catch {
            #expect(error.isTaken)
        }
    }

    @Test func `where there are no such files there is none`() throws {
        let isThere = try UnnamedFile.make(in: "/proc") != nil
        #expect(!isThere)
    }
}

struct LongNameTests {
    private let place: TemporaryDirectory

    init() throws { place = try TemporaryDirectory() }

    private func name(_ count: Int, ending: String = "") throws -> FilePath.Component {
        try #require(FilePath.Component(String(repeating: "n", count: count) + ending))
    }

    @Test func `a name that no file can have is missing, a path that is too long is not known to be`() throws {
        #expect(try FileLook.look(at: place.path.appending(name(256))) == .missing)
        #expect(try FileLook.look(at: RootedPath(place.path, FilePath(root: nil, [name(256)]))) == .missing)
        var deep = place.path
        while deep.length < 4200 { deep.append(try name(200)) }
        let path = deep
        #expect(throws: SystemError.self) { try FileLook.look(at: path.appending(name(200))) }
        #expect(try FileLook.look(at: path.appending(name(256))) == .missing)
    }

    @Test func `a folder says how long its names may be`() throws {
        let folder = try Folder(place.path)
        #expect(folder.longestName == 255)
        #expect(try folder.canHold(name(255)))
        #expect(try !folder.canHold(name(256)))
    }

    @Test func `a file is made under a name of 255 bytes, and never over another`() throws {
        let folder = try Folder(place.path)
        try folder.create([1], as: name(255), mode: 0o600)
        let error = #expect(throws: SystemError.self) { try folder.create([2], as: name(255), mode: 0o600) }
        #expect(error?.isTaken == true)
        #expect(try folder.read(name(255), limit: 9) == [1])
        #expect(try FileManager.default.contentsOfDirectory(atPath: place.path.string).count == 1)
    }

    @Test func `copies of two long names that begin alike do not take each other for leftovers`() throws {
        let source = try SourceFile(opening: place.write([1], to: "source"))
        let target = try place.makeDirectory("target")
        for ending in ["1", "2"] {
            _ = try FileCopy.copy(
                source, toTemporaryIn: target, name: name(254, ending: ending), isCancelled: { false },
                progress: { _ in })
        }
        let left = { try FileManager.default.contentsOfDirectory(atPath: target.string) }
        #expect(try left().count == 2)
        #expect(try left().allSatisfy { $0.utf8.count <= 143 })
        FileCopy.removeLeftovers(of: try name(254, ending: "1"), in: target)
        #expect(try left().count == 1)
        FileCopy.removeLeftovers(of: try name(254, ending: "2"), in: target)
        #expect(try left().isEmpty)
    }
}

struct FileCopyTests {
    let folder: TemporaryDirectory
    let target: FilePath

    init() throws {
        folder = try TemporaryDirectory()
        target = try folder.makeDirectory("target")
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

/// Bytes in which no two blocks of 64 KiB are equal.
func pattern(_ count: Int) -> [UInt8] {
    var generator = SeededGenerator(seed: UInt64(count))
    let block = (0..<8192).flatMap { _ in withUnsafeBytes(of: generator.next()) { Array($0) } }
    var bytes: [UInt8] = []
    for number in 0...(count / block.count) {
        bytes += withUnsafeBytes(of: number) { Array($0) }
        bytes += block.dropFirst(8)
    }
    return Array(bytes.prefix(count))
}
