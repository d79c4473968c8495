import Foundation
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

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
        #expect(LeaseProbe.of(path) == .busy)
        try writer.close()
        try await eventually("free") { LeaseProbe.of(path) == .free }
    }

    @Test func `a writer in another process is seen`() async throws {
        let writer = try OtherProcess("exec 3>>\"$1\"; echo ready; read never", path.string)
        #expect(LeaseProbe.of(path) == .busy)
        writer.kill()
        try await eventually("free") { LeaseProbe.of(path) == .free }
    }

    @Test func `a writable mapping whose descriptor is closed is busy`() async throws {
        let writer = try FileDescriptor.open(path, .readWrite, options: .closeOnExec)
        let page = try #require(
            mmap(nil, 4096, PROT_READ | PROT_WRITE, CInt(MAP_SHARED), writer.rawValue, 0))
        try writer.close()
        #expect(LeaseProbe.of(path) == .busy)
        munmap(page, 4096)
        try await eventually("free") { LeaseProbe.of(path) == .free }
    }

    @Test func `readers do not make a file busy`() async throws {
        let reader = try #require(FileHandle(forReadingAtPath: path.string))
        try await eventually("free") { LeaseProbe.of(path) == .free }
        try reader.close()
    }

    @Test func `the probe holds nothing afterwards`() async throws {
        try await eventually("free") { LeaseProbe.of(path) == .free }
        // Would hang until the lease break time (45 s) if the lease were still there, and fail when not blocking.
        let writer = try FileDescriptor.open(path, .writeOnly, options: [.nonBlocking, .closeOnExec])
        try writer.close()
    }

    @Test func `a file under another's write lease, as Samba takes one, is busy`() async throws {
        let holder = try FileDescriptor.open(path, .readWrite, options: .closeOnExec)
        // A program that another test starts has the file open as well, until it is that program.
        try await eventually("the lease is held") { fcntl(holder.rawValue, Self.setLease, CInt(F_WRLCK)) == 0 }
        #expect(LeaseProbe.of(path) == .busy)
        try holder.close()
        try await eventually("free") { LeaseProbe.of(path) == .free }
    }

    /// F_SETLEASE, which the Glibc module leaves out.
    private static let setLease: CInt = 1024

    @Test func `a missing file is unknown with the reason`() throws {
        guard case .unknown(let reason) = LeaseProbe.of(folder.path.appending("none")) else {
            Issue.record("not unknown")
            return
        }
        #expect(reason.contains("No such file"))
    }
}
