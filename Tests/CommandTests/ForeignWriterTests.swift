import Foundation
import InletTestSupport
import SystemPackage
import Testing

/// Files of another owner, whose writers an agent without CAP_LEASE may not ask the kernel for.
@Suite(.enabled(if: Nobody.isAvailable, "needs root and setpriv")) struct ForeignWriterTests {
    /// Root without that one capability.
    private static let launcher = [Nobody.launcher[0], "--bounding-set=-lease", "--inh-caps=-lease"]

    @Test func `a writer that no lease shows is found among the processes, and waited for`() async throws {
        let place = try Place()
        let agent = try await place.run(launcher: Self.launcher)
        try await agent.line("watch.added") { $0["writer_check"]?.hasPrefix("on for own files only") ?? false }
        let draft = place.folder.path.appending("draft")
        let writer = try FileDescriptor.open(
            draft, .writeOnly, options: [.create, .closeOnExec], permissions: [.ownerReadWrite, .groupRead, .otherRead])
        try writer.writeAll(bytes(1000))
        try Nobody.own(draft)
        try FileManager.default.setAttributes(
            [.modificationDate: Date(timeIntervalSince1970: 1_000_000_000)], ofItemAtPath: draft.string)
        #expect(rename(draft.string, place.drop.appending("recording.wav").string) == 0)
        try await agent.line("file.settling") { $0["busy"] == "yes" }
        try await place.deliver("other.txt", bytes(10), by: agent)
        #expect(agent.lines("job.admitted") { $0.isAbout("recording.wav") }.isEmpty)
        try await eventually("the status names this process") {
            let roots = try await place.inlet("status", "--json").object()["roots"] as? [[String: Any]]
            let files = roots?.first?["unsettled"] as? [[String: Any]]
            return (files?.first?["held_by"] as? String)?.hasSuffix("(process \(getpid()))") ?? false
        }
        try writer.close()
        try await agent.line("job.finished") { $0.isAbout("recording.wav") }
        #expect(try place.content(place.library.appending("recording.wav")) == bytes(1000))
        #expect(try await agent.stop() == .code(0))
    }

    @Test func `an agent without any rights finds the writers of its own user`() async throws {
        let place = try Place()
        let draft = try place.folder.write(bytes(1000), to: "draft")
        try Nobody.own(place.folder.path)
        // Everybody may write to it, but only its owner may ask for a lease.
        #expect(chown(draft.string, 0, 0) == 0 && chmod(draft.string, 0o666) == 0)
        let agent = try await place.run(launcher: Nobody.launcher)
        try await agent.line("watch.added") { $0["writer_check"]?.hasPrefix("on for own files only") ?? false }
        let writer = try HeldFile(draft, by: Nobody.launcher)
        #expect(rename(draft.string, place.drop.appending("recording.wav").string) == 0)
        try await agent.line("file.settling") { $0["busy"] == "yes" }
        try place.put("other.txt", bytes(10))
        try Nobody.own(place.drop.appending("other.txt"))
        try await agent.line("job.finished") { $0.isAbout("other.txt") }
        #expect(agent.lines("job.admitted") { $0.isAbout("recording.wav") }.isEmpty)
        try await eventually("the status names the writer") {
            let status = try place.start("status", launcher: Nobody.launcher)
            _ = try await status.ending()
            return status.output.contains("recording.wav: open for writing by sh (process \(writer.id))")
        }
        try writer.close()
        try await agent.line("job.finished") { $0.isAbout("recording.wav") && $0["state"] == "delivered" }
        #expect(try await agent.stop() == .code(0))
    }
}

/// A process that has a file open for writing, and does nothing with it.
private final class HeldFile {
    private let process = Process()
    private let input = Pipe()

    init(_ path: FilePath, by launcher: [String]) throws {
        let command = launcher + ["/bin/sh", "-c", "exec 3>>\"$1\" && echo ready && read never", "sh", path.string]
        process.executableURL = URL(fileURLWithPath: command[0])
        process.arguments = Array(command.dropFirst())
        process.standardInput = input
        let output = Pipe()
        process.standardOutput = output
        try process.run()
        Leash.hold(process.processIdentifier)
        guard !output.fileHandleForReading.availableData.isEmpty else {
            throw InletProcess.Unexpected(description: "\(path) cannot be opened for writing")
        }
    }

    var id: Int32 { process.processIdentifier }

    func close() throws {
        try input.fileHandleForWriting.close()
        process.waitUntilExit()
    }

    deinit { if process.isRunning { process.terminate() } }
}
