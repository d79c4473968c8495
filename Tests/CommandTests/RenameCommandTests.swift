import Foundation
import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

/// A file that is renamed while its bytes leave, with a destination that looks whether it is still there.
@Suite struct RenameCommandTests {
    /// Before Linux 5.17 fanotify does not tell the two names together.
    private static let modes =
        ProcessInfo.processInfo.isOperatingSystemAtLeast(
            OperatingSystemVersion(majorVersion: 5, minorVersion: 17, patchVersion: 0))
        ? ["auto", "fanotify"] : ["auto"]

    private func place(_ mode: String) throws -> Place {
        return try Place(watch: ["mode: \(mode)"])
    }

    @Test(arguments: modes)
    func `a folder that is moved into one so new that nobody watches it is not sent again`(_ mode: String) async throws
    {
        let place = try place(mode)
        let agent = try await place.run()
        for name in ["1.bin", "2.bin"] {
            try place.put(FilePath("card/\(name)"), bytes(100))
            try await agent.line("job.finished") { $0.isAbout(name) }
        }
        // While it does not look.
        agent.signal(SIGSTOP)
        try place.folder.makeDirectory("drop/new")
        try #require(rename(place.drop.appending("card").string, place.drop.appending("new/card").string) == 0)
        agent.signal(SIGCONT)
        try await agent.line("job.renamed", number: 2)
        try await place.deliver("last.bin", bytes(100), by: agent)
        #expect(agent.lines("job.admitted").count == 3)
        #expect(try await agent.stop() == .code(0))
    }

    @Test(arguments: modes)
    func `a file that was renamed is known, though another has its old name by then`(_ mode: String) async throws {
        let place = try place(mode)
        let agent = try await place.run()
        try await place.deliver("live.bin", bytes(100), by: agent)
        agent.signal(SIGSTOP)
        try #require(rename(place.drop.appending("live.bin").string, place.drop.appending("old.bin").string) == 0)
        try place.put("live.bin", bytes(200))
        agent.signal(SIGCONT)
        try await agent.line("job.renamed") { $0.isAbout("old.bin") }
        try await agent.line("job.finished", number: 2) { $0.isAbout("live.bin") }
        #expect(agent.lines("job.admitted").count == 2)
        #expect(try await agent.stop() == .code(0))
    }

    @Test func `a file that is renamed while it is sent begins anew under its new name, and leaves nothing of the old`()
        async throws
    {
        try await withSpiral("parallel_parts: 1") { place, sandbox in
            // Its first part arrives, the second one hangs.
            sandbox.faults.add(Fault(.stall, at: .part, part: 2, times: nil))
            let agent = try await place.run()
            let content = bytes(11 << 20)
            try place.put("one.mov", content)
            // All of it has been read: the rename is seen by who looks whether the file is there, not by who reads it.
            try await agent.line("transfer.progress") { $0.isAbout("one.mov") && $0.number("sent") == 10 << 20 }
            try #require(rename(place.drop.appending("one.mov").string, place.drop.appending("two.mov").string) == 0)
            try await agent.wait("the rename is seen, and waits") {
                try await place.inlet("status").output.contains("two.mov: waiting for its delivery: it was renamed")
            }
            #expect(agent.lines("job.admitted").count == 1)
            sandbox.faults.clear()
            try await agent.line("job.finished") { $0.isAbout("one.mov") && $0["state"] == "gone" }
            try await agent.line("job.finished") { $0.isAbout("two.mov") && $0["state"] == "delivered" }
            #expect(sandbox.objects().map(\.key) == ["two.mov"])
            #expect(try place.content(#require(sandbox.objects().first).path) == content)
            try await agent.wait("the first upload is given up") { sandbox.openUploads().isEmpty }
            #expect(agent.lines("job.admitted").count == 2 && agent.lines("job.renamed").isEmpty)
            let balance = try await place.balance()
            #expect(balance["delivered"] == 1 && balance["gone"] == 1, "\(balance)")
            #expect(try await agent.stop() == .code(0))
        }
    }
}
