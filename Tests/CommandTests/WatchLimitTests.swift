import Foundation
import InletTestSupport
import SystemPackage
import Testing

/// A user namespace of its own, in which the kernel's limits are lower for one process.
private enum LowLimit {
    static func launcher(_ limit: String, _ value: Int) -> [String] {
        ["/usr/bin/unshare", "-Ur", "/bin/sh", "-c", "echo \(value) > /proc/sys/user/\(limit) && exec \"$@\"", "--"]
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
        var config = ConfigText()
        config.watch += ["poll: 1s", "rescan: off"]
        let place = try Place(config)
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

    @Test func `folders without a watch are polled, and the limit is said once with what is needed`() async throws {
        let place = try place()
        let agent = try await place.run(launcher: LowLimit.launcher("max_inotify_watches", 3))
        try await agent.line("watch.added")
        let limit = try await agent.line("watch.limit")
        let reason = try #require(limit["reason"])
        #expect(reason.hasPrefix("3 of 5 folders have a watch, the other 2 are polled"))
        #expect(reason.contains("sysctl fs.inotify.max_user_watches=524288"))
        try await expectAll(place, agent)
        #expect(try await agent.stop() == .code(0))
    }

    @Test func `without an inotify instance everything is polled`() async throws {
        let place = try place()
        let agent = try await place.run(launcher: LowLimit.launcher("max_inotify_instances", 0))
        try await agent.line("watch.added")
        let limit = try await agent.line("watch.limit")
        let reason = try #require(limit["reason"])
        #expect(reason.contains("max_user_instances") && reason.contains("all 5 folders are polled"))
        try await expectAll(place, agent)
        #expect(try await agent.stop() == .code(0))
    }
}
