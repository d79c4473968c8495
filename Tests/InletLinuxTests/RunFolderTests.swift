import Foundation
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

/// What tests leave behind, which is nothing, whatever becomes of them.
struct RunFolderTests {
    @Test func `what a killed process left is removed, what a running one has is not`() async throws {
        let base = try TemporaryDirectory()
        let (place, note) = (base.path.string, base.path.appending("note").string)
        await #expect(processExitsWith: .signal(SIGKILL)) { [place = place as String, note = note as String] in
            let run = try RunFolder.make(in: FilePath(place))
            try FileManager.default.createDirectory(
                atPath: run.path.string + "/1/deep", withIntermediateDirectories: true)
            try run.path.string.write(toFile: note, atomically: true, encoding: .utf8)
            kill(getpid(), SIGKILL)
        }
        let dead = try String(contentsOfFile: note, encoding: .utf8)
        #expect(isThere("\(dead)/1/deep"))
        let running = try RunFolder.make(in: base.path)
        #expect(!isThere(dead))
        RunFolder.sweep(base.path)
        #expect(isThere(running.path.string))
    }

    @Test func `folders of other names and links to other places are nobody's to remove`() throws {
        let base = try TemporaryDirectory()
        try base.write([1], to: "inlet-mine/file")
        try base.write([1], to: "elsewhere/file")
        let link = base.path.appending(RunFolder.prefix + "link").string
        try FileManager.default.createSymbolicLink(
            atPath: link, withDestinationPath: base.path.appending("elsewhere").string)
        RunFolder.sweep(base.path)
        #expect(isThere(base.path.appending("inlet-mine/file").string) && isThere("\(link)/file"))
    }

    @Test func `a folder's end is noticed by nobody but those in it`() throws {
        var folder: TemporaryDirectory? = try TemporaryDirectory()
        let other = try TemporaryDirectory()
        let path = try #require(folder?.path)
        #expect(isThere(path.string) && path != other.path)
        folder = nil
        #expect(!isThere(path.string) && isThere(other.path.string))
    }

    @Test(.enabled(if: TestMount.isAllowed, "needs the right to mount"))
    func `what is still mounted in a folder is taken off, not emptied`() throws {
        let outside = try TemporaryDirectory()
        try outside.write([1], to: "kept")
        var folder: TemporaryDirectory? = try TemporaryDirectory()
        let path = try #require(folder?.path)
        let inner = try TestMount("tmpfs", at: path)
        let deep = try TestMount(folder: outside.path, at: #require(folder).makeDirectory("a b/c"))
        folder = nil
        #expect(!isThere(path.string) && isThere(outside.path.appending("kept").string))
        #expect(try !MountTable.current().mounts.contains { $0.point.starts(with: path) })
        withExtendedLifetime((inner, deep)) {}
    }

    private func isThere(_ path: String) -> Bool { FileManager.default.fileExists(atPath: path) }
}

struct LeashTests {
    @Test func `a program ends with the process that started it, when that is killed`() async throws {
        let folder = try TemporaryDirectory()
        let note = folder.path.appending("id").string
        await #expect(processExitsWith: .signal(SIGKILL)) { [note = note as String] in
            let program = Process()
            program.executableURL = URL(fileURLWithPath: "/bin/sh")
            program.arguments = ["-c", "trap '' HUP INT TERM; exec sleep 600"]
            (program.standardOutput, program.standardError) = (FileHandle.nullDevice, FileHandle.nullDevice)
            try program.run()
            Leash.hold(program.processIdentifier)
            try "\(program.processIdentifier)".write(toFile: note, atomically: true, encoding: .utf8)
            kill(getpid(), SIGKILL)
        }
        let id = try #require(Int32(try String(contentsOfFile: note, encoding: .utf8)))
        try await eventually("it is gone") { !Leash.isRunning(id) }
    }

    @Test func `what still runs is known from what has ended, collected or not`() throws {
        #expect(Leash.isRunning(getpid()))
        let other = try OtherProcess("echo ready; read -r line")
        #expect(Leash.isRunning(other.id))
        other.kill()
        #expect(!Leash.isRunning(other.id))
    }
}
