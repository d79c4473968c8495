import Foundation
import InletTestSupport
import SystemPackage
import Testing

/// A user namespace of its own, in which the kernel's limits are lower for one process.
private enum LowLimit {
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
        ), ("max_inotify_instances", 0, "all 5 folders are polled", "max_user_instances"),
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
