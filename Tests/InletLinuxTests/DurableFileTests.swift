import Foundation
import InletCore
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

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
