import Foundation
import InletTestSupport
import SystemPackage
import Testing

/// `inlet sandbox`, which scripts measure the agent against.
@Suite struct SandboxTests {
    /// What `GET /` at this address answers.
    private static func report(_ address: String, _ folder: FilePath) async throws -> [String: Any] {
        let target = folder.appending("report.json")
        let curl = Process()
        curl.executableURL = URL(fileURLWithPath: "/usr/bin/curl")
        curl.arguments = ["-sf", "--noproxy", "*", "-o", target.string, address + "/"]
        try curl.run()
        try await eventually("the report") { !curl.isRunning }
        try #require(curl.terminationStatus == 0)
        let data = try Data(contentsOf: URL(fileURLWithPath: target.string))
        return try JSONSerialization.jsonObject(with: data) as? [String: Any] ?? [:]
    }

    @Test(.enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/curl")))
    func `the sandbox runs by itself, says where, takes a delivery, and reports it`() async throws {
        let place = try Place()
        let ready = place.folder.path.appending("ready.json")
        let servers = try InletProcess(
            ["sandbox", "--dir", place.folder.path.appending("servers").string, "--ready-file", ready.string],
            in: place.folder.path)
        try await servers.wait("the servers") { place.exists(ready) }
        let said = try #require(try JSONSerialization.jsonObject(with: place.content(ready)) as? [String: String])
        #expect(Set(said.keys).isSuperset(of: ["spiral", "s3", "gighive", "vopi", "roboscope", "control", "api_key"]))
        try await servers.wait("the same line on its output") { servers.output.contains(said["control"] ?? "?") }
        var config = ConfigText()
        config.destination =
            "type: r2, api: \"\(said["spiral"] ?? "")\", dialect: v1, api_key: \(said["api_key"] ?? "")"
        try place.configure(config)
        try place.put("clip.mov", bytes(20_000))
        let agent = try await place.run()
        try await agent.line("job.finished") { $0["state"] == "delivered" }
        #expect(try await agent.stop() == .code(0))
        let spiral = try #require(
            try await Self.report(said["control"] ?? "", place.folder.path)["spiral"] as? [String: Any])
        let objects = try #require(spiral["objects"] as? [[String: Any]])
        #expect(objects.compactMap { $0["key"] as? String } == ["clip.mov"])
        #expect(objects.first?["versions"] as? Int == 1 && objects.first?["size"] as? Int == 20_000)
        let path = FilePath(objects.first?["path"] as? String ?? "")
        #expect(try place.content(path) == bytes(20_000))
        let server = try #require(spiral["server"] as? [String: Any])
        #expect((server["bytes"] as? [String: Int])?["single"] == 20_000)
        #expect((server["requests"] as? [String: Int])?["single"] == 1 && server["faults"] as? Int == 0)
        #expect(spiral["open_uploads"] as? [String] == [])
        #expect(try await servers.stop() == .code(0))
    }

    @Test func `the sandbox is for scripts, and not among the commands that help lists`() async throws {
        let folder = try TemporaryDirectory()
        let help = try await InletProcess.run(["--help"], in: folder.path, code: 0, says: "  demo ")
        #expect(!help.output.contains("  sandbox "))
        try await InletProcess.run(["sandbox", "--dir", "x", "--trouble", "2"], in: folder.path, code: 64)
    }
}
