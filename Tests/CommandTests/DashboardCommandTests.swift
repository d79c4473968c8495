import Foundation
import InletTestSupport
import SystemPackage
import Testing

/// The port of a real agent, and what it says after the agent was killed.
@Suite(.serialized) struct DashboardCommandTests {
    private static func place(_ port: Int, _ keys: String = "", destination: String? = nil) throws -> Place {
        try Place(destination: destination, top: ["dashboard: { listen: \"127.0.0.1:\(port)\"\(keys) }"])
    }

    private static func get(_ port: Int, _ path: String) async throws -> [String: Any] {
        let answer = try await RawClient(port: port).request("GET", path)
        return try JSONSerialization.jsonObject(with: Data(answer.body.utf8)) as? [String: Any] ?? [:]
    }

    private static func jobs(_ port: Int) async throws -> [String: String] {
        let answer = try await RawClient(port: port).request("GET", "/api/v1/jobs")
        let list = try JSONSerialization.jsonObject(with: Data(answer.body.utf8)) as? [[String: Any]] ?? []
        let pairs = list.map { ($0["path"] as? String ?? "", $0["state"] as? String ?? "") }
        return Dictionary(uniqueKeysWithValues: pairs)
    }

    private static func expectStory(_ port: Int) async throws {
        let story = try await get(port, "/api/v1/jobs/1/story")
        let names = (story["events"] as? [[String: Any]])?.compactMap { $0["event"] as? String } ?? []
        #expect(names.contains("job.delivered") && story["receipt"] is [String: Any], "\(story)")
    }

    @Test func `a link of inlet open logs one browser in, once`() async throws {
        let port = try FreePort.any()
        let place = try Self.place(port, ", login: link")
        let agent = try await place.run()
        try await agent.line("dashboard.ready")
        let client = try RawClient(port: port)
        #expect(try await client.request("GET", "/api/v1/status").status == 401)
        #expect(try await Self.get(port, "/api/v1/session")["login"] as? String == "link")
        let link = try await place.inlet("open", code: 0).output.trimmingCharacters(in: .whitespacesAndNewlines)
        let code = try #require(link.split(separator: "/").last)
        #expect(link == "http://127.0.0.1:\(port)/#/enter/\(code)" && code.count == 64)
        // The connection of before may have been idle for too long.
        func enter(_ secret: Substring) async throws -> RawAnswer {
            try await RawClient(port: port).request(
                "POST", "/api/v1/login", headers: ["Content-Type": "application/json", "X-Inlet": "1"],
                body: "{\"secret\": \"\(secret)\"}")
        }
        #expect(try await enter(code.dropLast() + "g").status == 401)
        let first = try await enter(code)
        let cookie = try #require(first.headers["set-cookie"]?.split(separator: ";").first)
        let status = try await RawClient(port: port).request(
            "GET", "/api/v1/status", headers: ["Cookie": String(cookie)])
        #expect(first.status == 200 && status.status == 200)
        #expect(try await enter(code).status == 401)
        #expect(!(agent.errors + agent.output).contains(code))
        #expect(try await agent.stop() == .code(0))
        try await place.inlet("open", code: 75, errors: "no agent is running")
        try place.configure(replacing: "dashboard: {", with: "# dashboard: {")
        let closed = try await place.run()
        try await place.inlet("open", code: 78, errors: "the configuration opens no port")
        #expect(try await closed.stop() == .code(0))
    }

    @Test func `a login outlives a restart and a kill, and ends with its password`() async throws {
        let port = try FreePort.any()
        let place = try Self.place(port, ", password: first-password")
        var agent = try await place.run()
        try await agent.line("dashboard.ready")
        let login = try await RawClient(port: port).request(
            "POST", "/api/v1/login", headers: ["Content-Type": "application/json", "X-Inlet": "1"],
            body: #"{"secret": "first-password"}"#)
        let cookie = try #require(login.headers["set-cookie"]?.split(separator: ";").first)
        func status() async throws -> Int {
            try await RawClient(port: port).request("GET", "/api/v1/status", headers: ["Cookie": String(cookie)]).status
        }
        let file = place.state.appending("logins.json")
        try await agent.wait("the login is written") { (try? place.content(file)) != nil }
        #expect(try await status() == 200)
        try await agent.kill()
        agent = try await place.run()
        try await agent.line("dashboard.ready")
        #expect(try await status() == 200)
        #expect(try await agent.stop() == .code(0))
        try place.configure(replacing: "first-password", with: "other-password")
        agent = try await place.run()
        try await agent.line("dashboard.ready")
        #expect(try await status() == 401)
        #expect(try await agent.stop() == .code(0))
    }

    @Test func `after a kill and a restart everything that the port says is true at once`() async throws {
        let port = try FreePort.any()
        let gone = try FreePort.any()
        let place = try Self.place(
            port,
            destination: "type: r2, api: \"http://127.0.0.1:\(gone)\", dialect: v1, api_key: \"\(ConfigText.apiKey)\"")
        let first = try await place.run()
        try await first.line("dashboard.ready") { $0["url"] == "http://127.0.0.1:\(port)/" }
        for name in ["a", "b", "c"] as [FilePath] { try place.put(name, bytes(30)) }
        try await first.line("job.admitted", number: 3)
        try await first.line("destination.down")
        try await first.kill()

        let second = try await place.run()
        try await second.line("dashboard.ready")
        let status = try await Self.get(port, "/api/v1/status")
        #expect(status["running"] as? Bool == true && status["pending"] as? Int == 3)
        #expect((status["dashboard"] as? [String: Any])?["state"] as? String == "listening")
        let expected = Dictionary(uniqueKeysWithValues: ["a", "b", "c"].map { ("\(place.drop)/\($0)", "pending") })
        #expect(try await Self.jobs(port) == expected)
        try await second.line("destination.down")
        let ready = try await Self.get(port, "/readyz")
        #expect(ready["ready"] as? Bool == false)
        #expect((ready["reasons"] as? [String])?.contains("nothing can be sent: store is down") == true, "\(ready)")
        let text = try await place.inlet("status").output
        #expect(text.contains("Dashboard  http://127.0.0.1:\(port)/"), "\(text)")

        try await withSandbox(place.folder.path.appending("store"), port: gone) { _, _ in
            try await second.line("job.finished", number: 3)
            try await second.wait("it is ready") {
                try await Self.get(port, "/readyz")["ready"] as? Bool == true
            }
            let states = try await Set(Self.jobs(port).values)
            #expect(states == ["delivered"])
            let after = try await Self.get(port, "/api/v1/status")
            #expect((after["files"] as? [String: Int])?["delivered"] == 3 && after["pending"] as? Int == 0)
            try await Self.expectStory(port)
        }
        #expect(try await second.stop() == .code(0))
    }

    @Test func `a port that is taken stops nothing, and status says so`() async throws {
        let holder = try ScriptedServer { $0.waitForEnd() }
        let place = try Self.place(Int(holder.port))
        let agent = try await place.run()
        try await agent.line("dashboard.failed") { $0["reason"]?.hasPrefix("another program listens there") == true }
        try place.put("a", bytes(30))
        try await agent.line("job.finished")
        let text = try await place.inlet("status").output
        #expect(text.contains("cannot listen: another program listens there"), "\(text)")
        #expect(try await agent.stop() == .code(0))
    }

    @Test func `check says whether the port can be had and who gets in, also beside the agent that has it`()
        async throws
    {
        let port = try FreePort.any()
        let place = try Self.place(port)
        let url = "http://127.0.0.1:\(port)/"
        let free = try await place.inlet("check", code: 0)
        #expect(free.output.contains("✓ dashboard: \(url) is free, for this machine only, without a login"))
        let agent = try await place.run()
        try await agent.line("dashboard.ready")
        try await place.inlet("check", code: 0, says: "✓ dashboard: \(url), served by the running agent")
        #expect(try await agent.stop() == .code(0))
        let holder = try ScriptedServer { $0.waitForEnd() }
        let taken = try await Self.place(Int(holder.port), ", token: secret-enough").inlet("check")
        #expect(taken.ending == .code(1), "\(taken.output)")
        #expect(
            taken.output.contains(
                "! dashboard: cannot listen at 127.0.0.1:\(holder.port): another program listens there")
                && taken.output.contains("    → choose another port for dashboard.listen"), "\(taken.output)")
        #expect(try await Place().inlet("check").output.contains("✓ dashboard: none"))
    }

    @Test func `the program holds the page: each file of the folder is served as it is`() async throws {
        let types = [
            "html": "text/html; charset=utf-8", "css": "text/css; charset=utf-8",
            "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml",
        ]
        let port = try FreePort.any()
        let agent = try await Self.place(port).run()
        try await agent.line("dashboard.ready")
        let client = try RawClient(port: port)
        let folder = Repository.root.appending("Sources/InletWeb/page")
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.string)
        #expect(names.contains("index.html"))
        for name in names {
            let path = ["index.html": "/", "kiosk.html": "/cards?kiosk"][name] ?? "/assets/\(name)"
            let answer = try await client.request("GET", path)
            let bytes = try Data(contentsOf: URL(filePath: folder.appending(name).string))
            #expect(answer.status == 200 && Data(answer.body.utf8) == bytes, "\(name)")
            #expect(answer.headers["content-type"] == types[FilePath(name).extension ?? ""], "\(name)")
        }
        #expect(try await agent.stop() == .code(0))
    }
}
