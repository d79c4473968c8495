import CHost
import Foundation
import InletCore
import InletTestSupport
import SystemPackage
import Testing

@testable import InletLinux

/// Who has a file open, against real processes.
struct OpenWritersTests {
    let folder: TemporaryDirectory
    let path: FilePath

    init() throws {
        ProcessSetup.ignoreSignals()
        folder = try TemporaryDirectory()
        path = try folder.write([UInt8](repeating: 7, count: 8192), to: "a")
    }

    private func identity() throws -> FileIdentity { try #require(try FileLook.look(at: path).identity) }

    private func holder() throws -> OpenWriters.WriterProcess? {
        WriterProbe.holders(of: [(try identity(), path)]).first ?? nil
    }

    @Test func `a writer in another process is named until it ends`() async throws {
        let writer = try OtherProcess("exec 3>>\"$1\"; echo ready; read never", path.string)
        let holder = try #require(try holder())
        #expect(holder.process == writer.id)
        #expect(holder.name == "sh" && !holder.isMapping)
        #expect(holder.text == "sh (process \(writer.id))")
        writer.kill()
        try await eventually("nobody holds it") { try self.holder() == nil }
    }

    @Test func `a reader is no writer`() async throws {
        let reader = try OtherProcess("exec 3<\"$1\"; echo ready; read never", path.string)
        // A process that another test starts holds all descriptors of this one until its `exec`.
        try await eventually("nobody is found") { try holder() == nil }
        reader.kill()
    }

    @Test func `a writer under another name of the same inode is found`() throws {
        let other = folder.path.appending("b")
        try FileManager.default.linkItem(atPath: path.string, toPath: other.string)
        let writer = try OtherProcess("exec 3<>\"$1\"; echo ready; read never", other.string)
        #expect(try holder()?.process == writer.id)
    }

    @Test func `a writable mapping is found after its descriptor is closed, a private one is not`() async throws {
        let file = try FileDescriptor.open(path, .readWrite, options: .closeOnExec)
        let shared = try #require(mmap(nil, 4096, PROT_READ | PROT_WRITE, CInt(MAP_SHARED), file.rawValue, 0))
        let own = try #require(mmap(nil, 4096, PROT_READ | PROT_WRITE, CInt(MAP_PRIVATE), file.rawValue, 0))
        try file.close()
        try await eventually("only the mapping is left") {
            let holder = try holder()
            return holder?.isMapping == true && holder?.process == ProcessInfo.processInfo.processIdentifier
        }
        munmap(shared, 4096)
        try await eventually("nobody holds it") { try holder() == nil }
        munmap(own, 4096)
    }

    @Test func `a probe is asked anew for a file that changed since the last look`() throws {
        // Makes the look that later ones would use.
        _ = WriterProbe.holder(of: try identity(), at: path)
        let late = folder.path.appending("late")
        let writer = try OtherProcess("exec 3>\"$1\"; echo ready; read never", late.string)
        let identity = try #require(try FileLook.look(at: late).identity)
        #expect(WriterProbe.holder(of: identity, at: late)?.process == writer.id)
    }

    @Test(
        arguments: [
            ("7fac12c35000-7fac12c36000 rw-s 00000000 fe:00 16239092                   /srv/a b.mov", "/srv/a b.mov"),
            ("1-2 -w-s 0 0:1f 9 /x", "/x"), ("1-2 rw-p 0 fe:00 9 /x", nil), ("1-2 r--s 0 fe:00 9 /x", nil),
            ("1-2 rw-s 0 00:01 0 /dev/zero (deleted)", nil), ("1-2 rw-s 0 fe:00 9", nil),
            ("1-2 rw-s 0 fe 9 /x", nil),
            ("1-2 rw-s 0 fe:00 9 [anon]", nil), (" ", nil), ("", nil),
        ] as [(String, String?)])
    func `lines of maps`(line: String, expected: String?) {
        #expect(mapping(line).flatMap { $0.may_change ? $0.path : nil } == expected)
    }

    private func mapping(_ line: String) -> (device: UInt64, inode: UInt64, may_change: Bool, path: String?)? {
        line.withCString { text in
            var found = inlet_host_mapping()
            guard inlet_host_read_mapping(text, &found) else { return nil }
            return (found.device, found.inode, found.may_change, found.path.map { String(cString: $0) })
        }
    }

    @Test func `device numbers are those of stat`() throws {
        let found = try #require(mapping("1-2 rw-s 0 fe:00 16239092 /x"))
        #expect(found.device == 65_024 && found.inode == 16_239_092 && found.path == "/x")
    }

    @Test func `random bytes never break the parser`() {
        let letters = Array("0123456789abcdef:- rws/\u{00FF}".utf8)
        for seed in 0..<2000 as Range<UInt64> {
            var generator = SeededGenerator(seed: seed)
            let bytes = (0..<Int.random(in: 0...300, using: &generator)).map { _ in
                seed % 2 == 0
                    ? letters.randomElement(using: &generator) ?? 1 : UInt8.random(in: 1...255, using: &generator)
            }
            var found = inlet_host_mapping()
            let isMapping = (bytes + [0]).map { CChar(bitPattern: $0) }.withUnsafeBufferPointer { line in
                line.baseAddress.map { inlet_host_read_mapping($0, &found) } ?? false
            }
            #expect(!isMapping || !found.may_change || found.inode != 0, "seed \(seed)")
        }
    }
}

/// An overlay over two folders.
private final class Overlay {
    let directory: TemporaryDirectory
    var path: FilePath { directory.path.appending("merged") }

    static let isAvailable: Bool = getuid() == 0 && (try? Overlay()) != nil

    init() throws {
        // On the disk: an overlay's upper layer cannot be a file system in memory everywhere.
        directory = try TemporaryDirectory()
        for name in ["lower", "upper", "work", "merged"] as [FilePath] { try directory.makeDirectory(name) }
        let folder = directory.path.string
        try run(
            "/bin/mount", "-t", "overlay", "overlay", "-o",
            "lowerdir=\(folder)/lower,upperdir=\(folder)/upper,workdir=\(folder)/work", path.string)
    }

    deinit { _ = try? run("/bin/umount", "-l", path.string) }
}

@Suite(.enabled(if: Overlay.isAvailable, "needs root and overlayfs")) struct OverlayWriterTests {
    @Test func `a mapping that an overlay's lease does not show is found among the processes`() async throws {
        ProcessSetup.ignoreSignals()
        let overlay = try Overlay()
        defer { withExtendedLifetime(overlay) {} }
        let path = overlay.path.appending("mapped.bin")
        let file = try FileDescriptor.open(
            path, .readWrite, options: [.create, .closeOnExec], permissions: .ownerReadWrite)
        try file.writeAll([UInt8](repeating: 0, count: 4096))
        let page = try #require(mmap(nil, 4096, PROT_READ | PROT_WRITE, CInt(MAP_SHARED), file.rawValue, 0))
        #expect(WriterProbe.probe(RootedPath("", path)) == .busy)
        try file.close()
        // A process that another test starts holds all descriptors of this one until its `exec`.
        try await eventually("only the mapping is left") {
            try WriterProbe.holders(of: [(identity(path), path)]).first??.isMapping ?? false
        }
        #expect(WriterProbe.probe(RootedPath("", path)) == .busy)
        munmap(page, 4096)
        try await eventually("nobody holds it") { WriterProbe.probe(RootedPath("", path)) == .free }
    }

    private func identity(_ path: FilePath) throws -> FileIdentity {
        try #require(try FileLook.look(at: path).identity)
    }
}

/// The writer check against real writers. Runs as the owner of the files, or as root.
///
/// "Free" is waited for: a process that another test starts holds all descriptors of this one until its `exec`.
struct LeaseTests {
    let folder: TemporaryDirectory
    let path: FilePath

    init() throws {
        ProcessSetup.ignoreSignals()
        folder = try TemporaryDirectory()
        path = try folder.write([UInt8](repeating: 7, count: 8192), to: "a")
    }

    @Test func `a file that is open for writing is busy until it is closed`() async throws {
        let writer = try #require(FileHandle(forWritingAtPath: path.string))
        #expect(lease(path) == .busy)
        try writer.close()
        try await eventually("free") { lease(path) == .free }
    }

    @Test func `a writer in another process is seen`() async throws {
        let writer = try OtherProcess("exec 3>>\"$1\"; echo ready; read never", path.string)
        #expect(lease(path) == .busy)
        writer.kill()
        try await eventually("free") { lease(path) == .free }
    }

    @Test func `a writable mapping whose descriptor is closed is busy`() async throws {
        let writer = try FileDescriptor.open(path, .readWrite, options: .closeOnExec)
        let page = try #require(
            mmap(nil, 4096, PROT_READ | PROT_WRITE, CInt(MAP_SHARED), writer.rawValue, 0))
        try writer.close()
        #expect(lease(path) == .busy)
        munmap(page, 4096)
        try await eventually("free") { lease(path) == .free }
    }

    @Test func `readers do not make a file busy`() async throws {
        let reader = try #require(FileHandle(forReadingAtPath: path.string))
        try await eventually("free") { lease(path) == .free }
        try reader.close()
    }

    @Test func `the probe holds nothing afterwards`() async throws {
        try await eventually("free") { lease(path) == .free }
        // Would hang until the lease break time (45 s) if the lease were still there, and fail when not blocking.
        let writer = try FileDescriptor.open(path, .writeOnly, options: [.nonBlocking, .closeOnExec])
        try writer.close()
    }

    @Test func `a file under another's write lease, as Samba takes one, is busy`() async throws {
        let holder = try FileDescriptor.open(path, .readWrite, options: .closeOnExec)
        // A program that another test starts has the file open as well, until it is that program.
        try await eventually("the lease is held") { fcntl(holder.rawValue, Self.setLease, CInt(F_WRLCK)) == 0 }
        #expect(lease(path) == .busy)
        try holder.close()
        try await eventually("free") { lease(path) == .free }
    }

    @Test func `files of a listing are probed in their open folder, as they are then`() throws {
        let odd = FilePath(bytes: [0x64, 0x2F, 0xFF, 0x0A])
        let (kept, grown) = (try folder.write([1], to: "d/kept"), try folder.write([1], to: "d/grown"))
        let raw = folder.path.pushing(odd).withPlatformString { open($0, O_CREAT | O_WRONLY | O_CLOEXEC, 0o600) }
        close(raw)
        var turn = FolderCache(folder.path)
        let before = try #require(try turn.look("d/grown").identity)
        try Data([1, 2, 3]).write(to: URL(fileURLWithPath: grown.string))
        // The folder that is open is meant, whatever its name is now.
        try FileManager.default.moveItem(
            atPath: folder.path.appending("d").string, toPath: folder.path.appending("e").string)
        let now = try turn.probe("d/grown")
        #expect(now.writer == .free && now.file?.identity?.size == 3 && before.size == 1)
        #expect(try turn.probe(odd).file?.identity?.size == 0)
        let moved = folder.path.pushing("e").appending(try #require(kept.lastComponent))
        let writer = try #require(FileHandle(forWritingAtPath: moved.string))
        #expect(try turn.probe("d/kept").writer == .busy)
        try writer.close()
        turn.close()
        #expect(throws: SystemError.self) { try turn.probe("d/kept") }
    }

    @Test(arguments: ["symlink", "folder", "fifo", "nothing"])
    func `what took the place of a listed file is not read`(kind: String) throws {
        var turn = FolderCache(folder.path)
        #expect(try turn.look("a").identity != nil)
        try FileManager.default.removeItem(atPath: path.string)
        switch kind {
        case "symlink":
            try FileManager.default.createSymbolicLink(
                atPath: path.string, withDestinationPath: try folder.write([1], to: "target").string)
        case "folder": try FileManager.default.createDirectory(atPath: path.string, withIntermediateDirectories: false)
        case "fifo": #expect(path.withPlatformString { mkfifo($0, 0o600) } == 0)
        default: break
        }
        let found = try turn.probe("a")
        if case .unknown = found.writer {} else { Issue.record("\(found)") }
        #expect(found.file == nil)
    }

    /// F_SETLEASE, which the Glibc module leaves out.
    private static let setLease: CInt = 1024

    @Test func `a missing file is unknown with the reason`() throws {
        guard case .unknown(let reason) = lease(folder.path.appending("none")) else {
            Issue.record("not unknown")
            return
        }
        #expect(reason.contains("No such file"))
    }
}

private func lease(_ path: FilePath) -> LeaseProbe {
    LeaseProbe.look { () throws(SystemError) in try SourceFile(opening: path) }.probe
}
