import Foundation
import InletCore
import InletTestSupport
import Synchronization
import SystemPackage
import Testing

@testable import InletLinux

struct SourceFileTests {
    let folder: TemporaryDirectory

    init() throws { folder = try TemporaryDirectory() }

    @Test func `a symlink, a FIFO, a socket, a device and a folder are refused as not regular`() throws {
        let file = try folder.write([1], to: "file")
        let link = folder.path.appending("link")
        try FileManager.default.createSymbolicLink(atPath: link.string, withDestinationPath: file.string)
        let fifo = folder.path.appending("fifo")
        try run("/usr/bin/mkfifo", fifo.string)
        let socket = try DatagramSocket(at: folder.path.appending("socket"))
        for path in [link, fifo, socket.path, "/dev/null", folder.path] {
            let error = try #require(throws: SystemError.self) { try SourceFile(opening: path) }
            #expect(error.isNotRegular, "\(path)")
            #expect(error.description.contains("not a regular file"), "\(error)")
        }
    }

    @Test func `a missing file is missing, with path and cause in the text`() throws {
        let error = try #require(throws: SystemError.self) {
            try SourceFile(opening: folder.path.appending("gone\u{1B}"))
        }
        #expect(error.isMissing)
        #expect(error.description == "stat \(folder.path)/gone\\x1B: No such file or directory")
    }

    @Test func `a small file is read whole, a larger one refused`() throws {
        for count in [0, 1, 10] {
            let content = [UInt8](repeating: 7, count: count)
            #expect(try SourceFile(opening: folder.write(content, to: "a")).content(limit: 10) == content)
        }
        let large = try SourceFile(opening: folder.write([UInt8](repeating: 7, count: 11), to: "a"))
        let error = #expect(throws: SystemError.self) { try large.content(limit: 10) }
        #expect(error?.code == .fileTooLarge && error?.refusal == .tooLarge(limit: 10))
    }

    @Test func `a small content keeps no room for a large one`() throws {
        let content = try SourceFile(opening: folder.write([7, 8], to: "a")).content(limit: 1 << 20)
        #expect(content == [7, 8] && content.capacity < 4096)
    }

    @Test func `reads by offset and stops at the end`() throws {
        let source = try SourceFile(opening: folder.write(0..<100, to: "a"))
        var bytes = [UInt8](repeating: 0, count: 30)
        let middle = try bytes.withUnsafeMutableBytes { try source.read(into: $0, at: 50) }
        #expect(middle == 30)
        #expect(bytes == Array(50..<80))
        let last = try bytes.withUnsafeMutableBytes { try source.read(into: $0, at: 90) }
        #expect(last == 10)
        let end = try bytes.withUnsafeMutableBytes { try source.read(into: $0, at: 100) }
        #expect(end == 0)
    }

    @Test func `growth shows in the identity, a replacement in the name`() throws {
        let path = try folder.write([1, 2, 3], to: "a")
        let source = try SourceFile(opening: path)
        #expect(source.opened.size == 3)
        #expect(try source.identity() == source.opened)
        #expect(try source.naming() == .it)

        let handle = try #require(FileHandle(forWritingAtPath: path.string))
        try handle.seekToEnd()
        try handle.write(contentsOf: [4])
        try handle.close()
        #expect(try source.identity().size == 4)
        #expect(try !source.identity().isUntouched(since: source.opened))
        #expect(try source.naming() == .it)

        try FileManager.default.removeItem(atPath: path.string)
        #expect(try source.naming() == .nothing)
        try FileManager.default.createSymbolicLink(atPath: path.string, withDestinationPath: "/etc/hostname")
        #expect(try source.naming() == .nothing)
        try FileManager.default.removeItem(atPath: path.string)
        try folder.write([1, 2, 3], to: "a")
        #expect(try source.naming() == .another(try #require(FileLook.look(at: path).identity)))
        #expect(try source.identity().inode == source.opened.inode)
    }

    @Test func `numbers that a file system gives out anew are no other file, and a ctime is`() throws {
        let source = try SourceFile(opening: try folder.write([1, 2, 3], to: "a"))
        var other = source.opened
        (other.inode, other.device) = (other.inode + 1, other.device + 1)
        #expect(source.isRenumbered(other, since: source.opened))
        other.changed += 1
        #expect(!source.isRenumbered(other, since: source.opened))
    }

    @Test func `what keeps from looking at a name says nothing of its file`() throws {
        let path = try folder.write([1, 2, 3], to: "a")
        let source = try SourceFile(opening: path)
        let number = KernelFaults.begin(KernelFaultPlan(below: [path], seed: 1, count: 3, every: 1))
        for _ in 0..<3 { #expect(throws: SystemError.self) { try source.naming() } }
        KernelFaults.end(number)
        #expect(try source.naming() == .it)
    }

    @Test func `reading leaves the access time alone`() throws {
        let path = try folder.write([1], to: "a")
        try run("/usr/bin/touch", "-a", "-d", "2001-01-01T00:00:00Z", path.string)
        let source = try SourceFile(opening: path)
        var byte: [UInt8] = [0]
        _ = try byte.withUnsafeMutableBytes { try source.read(into: $0, at: 0) }
        #expect(try run("/usr/bin/stat", "-c", "%X", path.string) == "978307200")
    }

    @Test func `a look tells the kinds apart`() throws {
        let file = try folder.write([1, 2], to: "file")
        try FileManager.default.linkItem(atPath: file.string, toPath: folder.path.appending("second").string)
        let link = folder.path.appending("link")
        try FileManager.default.createSymbolicLink(atPath: link.string, withDestinationPath: "nowhere")
        guard case .regular(let identity, let owner, let links) = try FileLook.look(at: file) else {
            Issue.record("not regular")
            return
        }
        #expect(identity.size == 2)
        #expect(owner == ProcessSetup.userID)
        #expect(links == 2)
        #expect(try FileLook.look(at: link) == .symlink)
        #expect(try FileLook.look(at: "/dev/null") == .other)
        #expect(try FileLook.look(at: folder.path.appending("none")) == .missing)
        #expect(try FileLook.look(at: file.appending("below")) == .missing)
        #expect(try FileLook.look(at: folder.path).identity == nil)
    }
}

@Suite(.enabled(if: ProcessSetup.userID == 0, "only root gives files away")) struct FileOwnerTests {
    private let directory: TemporaryDirectory
    private let folder: FilePath

    init() throws {
        directory = try TemporaryDirectory()
        folder = directory.path.appending("theirs")
        try FileManager.default.createDirectory(atPath: folder.string, withIntermediateDirectories: true)
        #expect(chown(folder.string, 4711, 4712) == 0)
    }

    private func owner(_ name: String) throws -> UInt32 {
        var status = stat()
        try #require(lstat(folder.appending(name).string, &status) == 0)
        return status.st_uid
    }

    @Test func `what root made in another's folder is his`() throws {
        try directory.write("x".utf8, to: "theirs/file")
        try FileManager.default.createDirectory(
            atPath: folder.appending("sub").string, withIntermediateDirectories: true)
        for name in ["file", "sub"] {
            FileOwner.give(folder.appending(name), toOwnerOf: folder)
            #expect(try owner(name) == 4711)
        }
    }

    @Test func `a lock and folders that root makes there are his`() throws {
        let lock = try FileLock(folder.appending("lock"))
        let isOurs = lock != nil
        #expect(isOurs)
        try DurableFile.makeDirectories(
            folder.appending("a").appending("b"), mode: 0o750, asFolderOwner: true)
        for name in ["lock", "a", "a/b"] { #expect(try owner(name) == 4711, "\(name)") }
    }

    @Test func `what he put in its place is not given away`() throws {
        try directory.write("x".utf8, to: "ours")
        #expect(link(directory.path.appending("ours").string, folder.appending("hard").string) == 0)
        #expect(symlink(directory.path.appending("ours").string, folder.appending("soft").string) == 0)
        for name in ["hard", "soft", "missing"] { FileOwner.give(folder.appending(name), toOwnerOf: folder) }
        // Its other name is what the symlink leads to.
        #expect(try owner("hard") == 0)
    }
}

struct UserNameTests {
    @Test(
        arguments: [("root", .found(0)), ("nobody-has-this-name", .unknown), ("", .unknown)] as [(String, UserLookup)])
    func `users are found by name`(_ name: String, _ answer: UserLookup) {
        #expect(FileOwner.user(named: name) == answer)
    }
}

/// A log file that others write, rotate and cut.
@Suite struct FollowedFileTests {
    private func append(_ text: String, to path: FilePath) throws {
        let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: path.string))
        try handle.seekToEnd()
        try handle.write(contentsOf: Data(text.utf8))
        try handle.close()
    }

    private func next(_ file: inout FollowedFile) throws -> String { String(decoding: try file.next(), as: UTF8.self) }

    @Test func `what is written before and after a rotation comes once, in its order`() throws {
        let folder = try TemporaryDirectory()
        let path = try folder.write("old\n".utf8, to: "inlet.log")
        var file = try FollowedFile(path, tail: 1 << 20)
        let isCut = file.isCut
        #expect(!isCut)
        #expect(try next(&file) == "old\n")
        #expect(try next(&file) == "")
        try append("last of the old\n", to: path)
        try FileManager.default.moveItem(atPath: path.string, toPath: path.string + ".1")
        #expect(try next(&file) == "last of the old\n")
        #expect(try next(&file) == "")
        try append("later still\n", to: FilePath(path.string + ".1"))
        try folder.write("new\n".utf8, to: "inlet.log")
        #expect(try next(&file) == "later still\n")
        #expect(try next(&file) == "new\n")
        try append("more\n", to: path)
        #expect(try next(&file) == "more\n")
    }

    @Test func `a file that is cut to nothing is read from its beginning again`() throws {
        let folder = try TemporaryDirectory()
        let path = try folder.write("a long line\n".utf8, to: "inlet.log")
        var file = try FollowedFile(path, tail: 5)
        let isCut = file.isCut
        #expect(isCut)
        #expect(try next(&file) == "line\n")
        try FileHandle(forWritingTo: URL(fileURLWithPath: path.string)).truncate(atOffset: 0)
        try append("new\n", to: path)
        #expect(try next(&file) == "new\n")
        #expect(throws: SystemError.self) { _ = try FollowedFile(folder.path.appending("none"), tail: 1) }
    }
}

/// Files that are not what a folder says they are.
@Suite(.timeLimit(.minutes(15))) struct MadeUpFileTests {
    let folder: TemporaryDirectory

    init() throws { folder = try TemporaryDirectory() }

    @Test func `a file that gives more than its size says is told from others`() throws {
        let own = FilePath("/proc/\(ProcessInfo.processInfo.processIdentifier)")
        let madeUp = try SourceFile(opening: own.appending("status"))
        #expect(madeUp.opened.size == 0)
        #expect(try madeUp.exceedsItsSize())
        for content in [[], [1], [UInt8](repeating: 7, count: 4096)] as [[UInt8]] {
            #expect(try !SourceFile(opening: folder.write(content, to: "file")).exceedsItsSize())
        }
        #expect(try WriterProbe.look(at: "status", in: Folder(own)).file == .other)
        #expect(try WriterProbe.look(at: "file", in: Folder(folder.path)).file?.identity?.size == 4096)
    }

    @Test func `a file that has grown since it was opened is none of those`() throws {
        let path = try folder.write([1], to: "file")
        let source = try SourceFile(opening: path)
        let handle = try #require(FileHandle(forWritingAtPath: path.string))
        try handle.seekToEnd()
        try handle.write(contentsOf: [2, 3])
        try handle.close()
        #expect(try !source.exceedsItsSize())
    }

    @Test(arguments: ["fifo", "device"])
    func `what is swapped in between the look and the opening is never read, nor waited for`(kind: String) throws {
        let (file, other) = (try folder.write([1], to: "file"), folder.path.appending("other"))
        // Only root may make a device, and not everywhere.
        if kind == "device" {
            guard (try? run("/usr/bin/env", "mknod", other.string, "c", "1", "3")) != nil else { return }
        } else {
            try run("/usr/bin/env", "mkfifo", other.string)
        }
        let target = folder.path.appending("target")
        try FileManager.default.linkItem(atPath: file.string, toPath: target.string)
        let swapper = Swapper()
        swapper.begin(file, other, as: target, in: folder.path)
        defer { swapper.end() }
        var (opened, refused) = (0, 0)
        while opened + refused < 2000 || opened == 0 || refused == 0 {
            do throws(SystemError) {
                let source = try SourceFile(opening: "target", in: Folder(folder.path))
                #expect(source.opened.size == 1)
                opened += 1
            } catch {
                // A file system that has no devices (nodev) does not open one.
                #expect(error.isNotRegular || kind == "device" && error.isPermission, "\(error)")
                refused += 1
            }
        }
    }

    @Test func `the kernel's own file systems are known by their numbers`() throws {
        #expect(try FileSystemKind.of("/proc").isPseudo && FileSystemKind.of("/proc").name == "proc")
        #expect(try !FileSystemKind.of(folder.path).isPseudo)
        for number in [0x9FA0, 0x6265_6572, 0x6367_7270, 0x6462_6720, 0xCAFE_4A11, 0x6573_5543] as [Int64] {
            #expect(FileSystemKind(magic: number).isPseudo)
        }
        // fuse, tmpfs, ext4, autofs, overlay.
        for number in [0x6573_5546, 0x0102_1994, 0xEF53, 0x0187, 0x794C_7630] as [Int64] {
            #expect(!FileSystemKind(magic: number).isPseudo)
        }
    }
}

/// Puts one file and the other under one name, in turns, on a thread of its own.
private final class Swapper: Sendable {
    private let isOver = Mutex(false)

    func begin(_ one: FilePath, _ other: FilePath, as target: FilePath, in folder: FilePath) {
        let next = folder.appending("next").string
        Thread.detachNewThread { [self] in
            while !isOver.withLock(\.self) {
                for file in [other, one] {
                    guard link(file.string, next) == 0, rename(next, target.string) == 0 else { return }
                }
            }
        }
    }

    func end() { isOver.withLock { $0 = true } }
}

/// Small files that are read whole by their names in an open folder.
struct SmallContentTests {
    let folder: TemporaryDirectory
    private let bytes = Array("content".utf8)

    init() throws { folder = try TemporaryDirectory() }

    private func known(_ path: FilePath, in root: FilePath? = nil) throws -> FileIdentity {
        try #require(try FileLook.look(at: (root ?? folder.path).pushing(path)).identity)
    }

    /// What is read of a file that was as `known` when it was admitted.
    private func content(
        _ path: FilePath, _ known: FileIdentity, _ rule: SourceRule = SourceRule(), in root: FilePath? = nil
    ) throws -> [UInt8]? {
        var folders = FolderCache(root ?? folder.path)
        return try folders.content(of: path, known: known, rule)
    }

    @Test func `a file that is what it was is read whole, also an empty one and one whose name is no UTF-8`() throws {
        let odd = FilePath(bytes: [0x64, 0x2F, 0xFF, 0x0A])
        let names: [(FilePath, [UInt8])] = [("a", bytes), ("d/b", [7]), ("d/empty", []), (odd, [1, 2, 3])]
        var folders = FolderCache(folder.path)
        for (name, bytes) in names {
            try folder.makeDirectory("d")
            let path = folder.path.pushing(name)
            let file = try FileDescriptor.open(
                path, .writeOnly, options: [.create, .closeOnExec], permissions: .ownerReadWrite)
            try file.closeAfter { _ = try file.writeAll(bytes) }
            #expect(try folders.content(of: name, known: known(name), SourceRule()) == bytes)
        }
        folders.close()
    }

    @Test(arguments: ["grown", "cut", "rewritten", "replaced", "symlink", "fifo", "folder"])
    func `any other file in its place is not read`(_ kind: String) throws {
        let path = try folder.write(bytes, to: "a")
        let known = try known("a")
        let url = URL(fileURLWithPath: path.string)
        switch kind {
        case "grown": try Data(bytes + [1]).write(to: url)
        case "cut": try Data(bytes.dropLast()).write(to: url)
        case "rewritten":
            // The same length, in place, and at another time.
            let file = try FileDescriptor.open(path, .writeOnly, options: .closeOnExec)
            try file.closeAfter { _ = try file.writeAll(toAbsoluteOffset: 0, Array("CONTENT".utf8)) }
            try FileManager.default.setAttributes(
                [.modificationDate: Date(timeIntervalSince1970: 1_000_000_000)], ofItemAtPath: path.string)
        case "replaced":
            let other = try folder.write(bytes, to: "other")
            #expect(rename(other.string, path.string) == 0)
        default: try FileManager.default.removeItem(at: url)
        }
        switch kind {
        case "symlink":
            let other = try folder.write(bytes, to: "other")
            try FileManager.default.createSymbolicLink(atPath: path.string, withDestinationPath: other.string)
        case "fifo": #expect(mkfifo(path.string, 0o600) == 0)
        case "folder": try folder.makeDirectory("a")
        default: break
        }
        #expect(try content("a", known) == nil)
    }

    @Test func `a file that is gone is not read, nor one behind a symlink`() throws {
        try folder.write(bytes, to: "d/a")
        let known = try known("d/a")
        try FileManager.default.moveItem(
            atPath: folder.path.appending("d").string, toPath: folder.path.appending("e").string)
        #expect(throws: SystemError.self) { try content("d/a", known) }
        try FileManager.default.createSymbolicLink(
            atPath: folder.path.appending("d").string, withDestinationPath: folder.path.appending("e").string)
        #expect(throws: SystemError.self) { try content("d/a", known) }
        #expect(try content("e/none", known) == nil)
        #expect(try content("e/a", known) == bytes)
    }

    @Test func `a file of another owner, or with a second name, is not read where the rule excludes it`() throws {
        let path = try folder.write(bytes, to: "a")
        let known = try known("a")
        #expect(try content("a", known, SourceRule(owners: [getuid()], hardLinks: .refuse)) == bytes)
        #expect(try content("a", known, SourceRule(owners: [getuid() + 1])) == nil)
        try FileManager.default.linkItem(atPath: path.string, toPath: folder.path.appending("b").string)
        let linked = try self.known("a")
        #expect(try content("a", linked, SourceRule(hardLinks: .refuse)) == nil)
        #expect(try content("a", linked, SourceRule(hardLinks: .allow)) == bytes)
    }

    /// Its size is 0, and reading it yields a line.
    @Test func `a file that yields more than its size is not read`() throws {
        let known = try known("version", in: "/proc")
        #expect(known.size == 0)
        #expect(try content("version", known, in: "/proc") == nil)
        // Nor as one that would have so much.
        var longer = known
        longer.size = 1
        #expect(try content("version", longer, in: "/proc") == nil)
    }
}
