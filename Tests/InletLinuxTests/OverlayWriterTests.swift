import Foundation
import InletCore
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

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
        #expect(WriterProbe.probe(path: path) == .busy)
        try file.close()
        // A process that another test starts holds all descriptors of this one until its `exec`.
        try await eventually("only the mapping is left") {
            try OpenWriters().holder(of: identity(path), at: path)?.isMapping ?? false
        }
        #expect(WriterProbe.probe(path: path) == .busy)
        munmap(page, 4096)
        try await eventually("nobody holds it") { WriterProbe.probe(path: path) == .free }
    }

    private func identity(_ path: FilePath) throws -> FileIdentity {
        try #require(try FileLook.look(at: path).identity)
    }
}
