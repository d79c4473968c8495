import Foundation
import InletTestSupport
import SystemPackage
import Testing

/// Secrets are in the agent's memory, and stay there.
@Suite struct MemoryTests {
    private static let canary = "sandbox-key-93f1"

    private static func readAsNobody(_ path: String) throws {
        let setpriv = Nobody.launcher
        try Tool.run(setpriv[0], setpriv[1], setpriv[2], setpriv[3], "/usr/bin/head", "-c", "0", path)
    }

    private static func limit(_ process: InletProcess) throws -> [Substring] {
        let limits = try String(contentsOfFile: "/proc/\(process.id)/limits", encoding: .utf8)
        let line = try #require(limits.split(separator: "\n").first { $0.hasPrefix("Max core file size") })
        return line.dropFirst("Max core file size".count).split(separator: " ").prefix(2).map { $0 }
    }

    @Test func `no command may leave a core dump`() async throws {
        let place = try Place()
        let agent = try await place.run()
        let log = try place.folder.write(Data("no log line\n".utf8), to: "some.log")
        let tail = try place.start("tail", "--file", log.string)
        try await tail.wait("it has begun") { !tail.output.isEmpty }
        for process in [agent, tail] { #expect(try Self.limit(process) == ["0", "0"]) }
        try await agent.stop()
    }

    @Test(.enabled(if: Nobody.isAvailable, "needs root and setpriv"))
    func `its memory is closed to programs of its own user, and it works all the same`() async throws {
        let place = try Place()
        try Nobody.own(place.folder.path)
        let agent = try await place.run(launcher: Nobody.launcher)
        try place.put("a.txt", bytes(100))
        try Nobody.own(place.drop)
        try await agent.line("job.finished") { $0["state"] == "delivered" }
        for name in ["environ", "maps", "mem"] {
            let attributes = try FileManager.default.attributesOfItem(atPath: "/proc/\(agent.id)/\(name)")
            #expect(attributes[.ownerAccountID] as? Int == 0, "\(name)")
        }
        let status = try String(contentsOfFile: "/proc/\(agent.id)/status", encoding: .utf8)
        #expect(status.contains("Uid:\t65534\t65534"))
        try Self.readAsNobody("/proc/self/environ")
        #expect(throws: InletProcess.Unexpected.self) { try Self.readAsNobody("/proc/\(agent.id)/environ") }
        try await agent.stop()
    }

    @Test func `a crash leaves no core and no secret behind`() async throws {
        try await withSpiral { place, _ in
            let agent = try await place.run()
            agent.signal(SIGABRT)
            #expect(try await agent.ending() == .signal(SIGABRT))
            #expect(!(agent.output + agent.errors).contains(Self.canary))
            #expect(!agent.errors.contains("Registers:"))
            let names = try FileManager.default.subpathsOfDirectory(atPath: place.folder.path.string)
            #expect(names.allSatisfy { !$0.split(separator: "/").contains { $0.hasPrefix("core") } }, "\(names)")
        }
    }
}
