import Foundation
import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

/// `inlet log`, and what `check` says of proxies.
@Suite(.serialized) struct LogCommandTests {
    @Test func `a running agent changes its level, says who wanted it, and forgets it when it starts again`()
        async throws
    {
        let place = try Place(.spiral(try FreePort.any()))
        let agent = try await place.run()
        try await agent.line("agent.ready")
        #expect(try await place.inlet("log", "level").output == "debug\n")
        let set = try await place.inlet("log", "level", "error", code: 0)
        #expect(set.output == "log level: error, until the next start or reload (the configuration says debug)\n")
        let told = try await agent.line("log.level")
        #expect(told["to"] == "error" && told["by"]?.hasPrefix("uid ") == true)
        try place.put("quiet.bin", bytes(10))
        try await eventually("it is in the queue") {
            try await place.inlet("queue", "list", "--json").output.contains("quiet.bin")
        }
        #expect(agent.lines("job.admitted").isEmpty)
        try await place.inlet("log", "level", "verbose", code: 64, errors: "debug, info, warning, error")
        #expect(try await agent.stop() == .code(0))
        try await place.inlet("log", "level", code: 75)
    }

    @Test func `a reader of standard error that stands still holds up neither files nor the end`() async throws {
        let place = try Place()
        // A pipe that is full, and that nobody reads; the agent itself keeps its other end open.
        let script = #"mkfifo full && exec 3<>full && head -c 65536 /dev/zero >&3 && exec "$@" 2>full"#
        let agent = try place.start("run", launcher: ["/bin/sh", "-c", script, "sh"])
        try place.put("a.bin", bytes(10))
        let file = place.library.appending("a.bin").string
        try await agent.wait("the file is delivered") { FileManager.default.fileExists(atPath: file) }
        #expect(try await agent.stop() == .code(0))
    }

    @Test func `the schema of the log is JSON`() async throws {
        let place = try Place()
        let schema = try await InletProcess.run(["log", "schema"], in: place.folder.path, code: 0)
        let object = try JSONSerialization.jsonObject(with: Data(schema.output.utf8)) as? [String: Any]
        #expect(object?["title"] as? String == "Inlet log line")
    }

    @Test func `check says which proxy a destination is reached through, and why`() async throws {
        let proxy = try ForwardProxy(to: 1, refusal: "403 Forbidden")
        let place = try Place()
        try place.configure(
            text: """
                state_dir: state
                proxy: { url: "\(proxy.address)", no_proxy: near.invalid }
                destinations:
                  far: { type: r2, api: "https://far.invalid", api_key: x }
                  near: { type: r2, api: "https://near.invalid", api_key: x }
                """)
        let check = try await place.inlet(
            "check", code: 69, says: "it answered 403",
            "destination near: is reached directly ('near.invalid' of no_proxy)")
        #expect(
            check.output.contains(
                "destination far: is to be reached through the proxy \(proxy.address) (by 'proxy' of the configuration)"
            ))
    }
}
