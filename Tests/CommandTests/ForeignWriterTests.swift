import Foundation
import InletTestSupport
import SystemPackage
import Testing

/// Files of another owner, whose writers an agent without CAP_LEASE may not ask the kernel for.
@Suite(.enabled(if: Nobody.isAvailable, "needs root and setpriv")) struct ForeignWriterTests {
    /// Root without that one capability.
    private static let launcher = [Nobody.launcher[0], "--bounding-set=-lease", "--inh-caps=-lease"]

    @Test func `a writer that no lease shows is found among the processes, and waited for`() async throws {
        let (place, agent) = try await Place.running(launcher: Self.launcher)
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
            return status.output.contains("recording.wav\topen for writing by sh (process \(writer.id))")
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

/// A user namespace of its own, in which the kernel's limits are lower for one process.
enum LowLimit {
    static func launcher(_ limit: String, _ value: Int) -> [String] {
        ["/usr/bin/unshare", "-Ur", "/bin/sh", "-c", "echo \(value) > /proc/sys/user/\(limit) && exec \"$@\"", "--"]
    }

    /// Raises it again for a process that was started so.
    static func raise(_ limit: String, to value: Int, for process: Int32) throws {
        let raising = Process()
        raising.executableURL = URL(fileURLWithPath: "/usr/bin/nsenter")
        raising.arguments = [
            "--preserve-credentials", "-U", "-t", "\(process)", "/bin/sh", "-c",
            "echo \(value) > /proc/sys/user/\(limit)",
        ]
        try raising.run()
        raising.waitUntilExit()
        try #require(raising.terminationStatus == 0)
    }

    static let isAvailable: Bool = {
        let process = Process()
        let command = launcher("max_inotify_watches", 3) + ["/bin/true"]
        process.executableURL = URL(fileURLWithPath: command[0])
        process.arguments = Array(command.dropFirst())
        process.standardError = FileHandle.nullDevice
        guard (try? process.run()) != nil else { return false }
        process.waitUntilExit()
        return process.terminationStatus == 0
    }()
}

@Suite(.enabled(if: LowLimit.isAvailable, "needs user namespaces (unshare -Ur)")) struct WatchLimitTests {
    private func place() throws -> Place {
        let place = try Place(watch: ["poll: 1s", "rescan: off"])
        for name in ["a", "b", "c", "d"] { try place.folder.makeDirectory(FilePath("drop/\(name)")) }
        return place
    }

    /// Puts a file in every folder, old and new, and waits for all.
    private func expectAll(_ place: Place, _ agent: InletProcess) async throws {
        for (number, name) in ["0", "a/1", "b/2", "c/3", "d/4", "c/new/5"].enumerated() {
            try place.put(FilePath(name), bytes(10 + number))
        }
        try await agent.line("job.finished", number: 6)
        #expect(Set(agent.lines("job.finished").compactMap { $0["path"] }).count == 6)
        #expect(agent.lines("watch.limit").count == 1)
    }

    @Test(arguments: [
        (
            "max_inotify_watches", 3, "3 of 5 folders have a watch, the other 2 are polled",
            "raise it with 'sysctl fs.inotify.max_user_watches="
        ), ("max_inotify_instances", 0, "polls all 5 folders", "max_user_instances"),
    ])
    func `folders without a watch are polled, and the limit is said once with what is needed`(
        _ limit: String, _ few: Int, _ what: String, _ remedy: String
    ) async throws {
        let place = try place()
        let agent = try await place.run(launcher: LowLimit.launcher(limit, few))
        try await agent.line("watch.added")
        let reason = try #require(try await agent.line("watch.limit")["reason"])
        #expect((few == 0 ? reason.contains(what) : reason.hasPrefix(what)) && reason.contains(remedy), "\(reason)")
        try await expectAll(place, agent)
        #expect(try await agent.stop() == .code(0))
    }

    @Test(arguments: [("max_inotify_watches", 3, 100), ("max_inotify_instances", 0, 10)])
    func `what is polled for want of watches gets them when there are some, without a rescan and without being lost`(
        _ limit: String, _ few: Int, _ enough: Int
    ) async throws {
        let place = try place()
        let agent = try await place.run(launcher: LowLimit.launcher(limit, few))
        try await agent.line("watch.limit")
        try await agent.wait("that is shown") { try await place.inlet("status").output.contains("polled)") }
        try LowLimit.raise(limit, to: enough, for: agent.id)
        try await agent.wait("nothing is polled") { try await !place.inlet("status").output.contains("polled)") }
        try await expectAll(place, agent)
        #expect(agent.lines("watch.lost").isEmpty && agent.lines("watch.added").count == 1)
        #expect(try await agent.stop() == .code(0))
    }

    @Test func `watches of folders that were removed go to those that had none`() async throws {
        let place = try place()
        let agent = try await place.run(launcher: LowLimit.launcher("max_inotify_watches", 3))
        try await agent.line("watch.limit")
        for name in ["a", "b", "c"] { try FileManager.default.removeItem(atPath: place.drop.appending(name).string) }
        try await agent.wait("nothing is polled") { try await !place.inlet("status").output.contains("polled)") }
        try place.put("d/1", bytes(10))
        try await agent.line("job.finished")
        #expect(try await agent.stop() == .code(0))
    }
}

/// What `inlet check` says of watching.
@Suite struct WatchCheckTests {
    private func limit(_ name: String) throws -> String {
        try String(contentsOfFile: "/proc/sys/fs/inotify/\(name)", encoding: .utf8)
            .trimmingCharacters(in: .whitespacesAndNewlines)
    }

    @Test func `the folders are counted, and compared with what the kernel allows`() async throws {
        let place = try Place()
        for name in ["a", "b/c", ".stfolder/ignored"] { try place.folder.makeDirectory(FilePath("drop/\(name)")) }
        let said = try await place.inlet("check").output
        #expect(said.contains("4 of \(try limit("max_user_watches")) needed (fs.inotify.max_user_watches)"))
        #expect(said.contains("1 of \(try limit("max_user_instances")) inotify instances needed"))
    }

    @Test func `what is polled needs no watch`() async throws {
        let place = try Place(watch: ["mode: poll", "poll: 3s"])
        let said = try await place.inlet("check").output
        #expect(said.contains("watch \(place.drop): polled, every 3s or less often (mode: poll, on "))
        #expect(said.contains("0 of \(try limit("max_user_watches")) needed"))
    }

    @Test func `a symlink is not taken for a folder that is to come`() async throws {
        let place = try Place()
        let real = place.folder.path.appending("real")
        try FileManager.default.moveItem(atPath: place.drop.string, toPath: real.string)
        try FileManager.default.createSymbolicLink(
            atPath: place.drop.string, withDestinationPath: real.string)
        let said = try await place.inlet("check").output
        #expect(said.contains("watch \(place.drop): a symlink to \(real); name its target"))
    }

    @Test(.enabled(if: TestMount.hasBindfs, "needs bindfs, /dev/fuse and the right to mount"))
    func `each mount below the folder has a line of its own`() async throws {
        let place = try Place()
        let share = try place.folder.makeDirectory("drop/share")
        let mount = try TestMount(bindfs: place.folder.makeDirectory("other"), at: share)
        defer { mount.unmount() }
        let said = try await place.inlet("check").output
        #expect(said.contains("watch \(share): polled, every 10s or less often (fuse"))
        #expect(said.contains("1 of \(try limit("max_user_watches")) needed"))
    }
}
