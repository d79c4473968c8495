import Foundation
import InletCore
import InletLinux
import InletTestSupport
import Synchronization
import SystemPackage
import Testing

/// Files that are not what a folder says they are.
@Suite(.timeLimit(.minutes(5))) struct MadeUpFileTests {
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
