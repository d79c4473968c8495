import Foundation
import InletCore
import InletLinux
import InletTestSupport
import Synchronization
import SystemPackage
import Testing

@testable import InletAgent
@testable import InletDashboard

/// The port, over real connections.
@Suite(.serialized) struct DashboardServerTests {
    @Test func `without secrets everyone on this machine has full access`() async throws {
        try await DashboardScene().serving { port in
            let client = try RawClient(port: port)
            let session = try await client.get("session")
            #expect(session.status == 200 && session.object["access"] as? String == "full")
            #expect(session.object["login"] as? String == "none" && session.object["version"] as? String == "1.2.3")
            let paused = try await client.post("pause")
            #expect(paused.status == 200 && paused.object["done"] as? Bool == true, "\(paused)")
        }
    }

    @Test func `each role may do what it may, by token`() async throws {
        let scene = try DashboardScene(token: "full-token", reader: "read-token")
        try await scene.serving { port in
            let client = try RawClient(port: port)
            func status(_ method: String, _ path: String, _ token: String?) async throws -> (Int, String?) {
                let headers = token.map { DashboardScene.bearer($0) } ?? DashboardScene.marks
                let answer = try await client.request(
                    method, "/api/v1/" + path, headers: headers, body: method == "GET" ? nil : "{}")
                return (answer.status, answer.error)
            }
            #expect(try await status("GET", "status", nil) == (401, "login_needed"))
            #expect(try await status("POST", "pause", nil) == (401, "login_needed"))
            #expect(try await status("GET", "status", "read-token") == (200, nil))
            #expect(try await status("POST", "pause", "read-token") == (403, "read_only"))
            #expect(try await status("GET", "status", "full-token") == (200, nil))
            #expect(try await status("POST", "pause", "full-token") == (200, nil))
            #expect(try await status("GET", "status", "no-token") == (401, "login_needed"))
            let watcher = try await client.request("GET", "/healthz", headers: DashboardScene.bearer("an-old-token"))
            #expect(watcher.status == 200)
            let least = "{\"older_ms\": \(Int64.min)}"
            let asked = try await client.post("queue/list", least, DashboardScene.bearer("read-token"))
            #expect(asked.status == 400)
            #expect(try await status("POST", "tokens/disk", "full-token") == (404, "not_found"))
            #expect(try await client.request("GET", "/").status == 200)
            #expect(try await client.get("session").object["access"] as? String == "none")
        }
    }

    @Test func `an address to subscribe to is for full logins only`() async throws {
        let scene = try DashboardScene(token: "full-token", reader: "read-token")
        try await scene.serving { port in
            let client = try RawClient(port: port)
            func receivers(_ headers: [String: String]) async throws -> RawAnswer {
                try await client.request("GET", "/api/v1/receivers", headers: headers)
            }
            for headers in [DashboardScene.bearer("read-token"), [:]] {
                let answer = try await receivers(headers)
                #expect([401, 403].contains(answer.status) && !answer.body.contains("topic"), "\(answer.body)")
            }
            let answer = try await receivers(DashboardScene.bearer("full-token"))
            let list = try JSONValue(parsing: answer.body.utf8)
            let phone =
                #"{"name":"phone","kind":"ntfy","events":["failed","volume_done"],"#
                + #""subscribe":"https://ntfy.sh/a-topic"}"#
            let told = try JSONValue(parsing: phone.utf8)
            #expect(answer.status == 200 && list.array?.first == told, "\(answer.body)")
            #expect(list.array?.last?["kind"] == .string("webhook") && list.array?.last?["subscribe"] == nil)
            #expect(!answer.body.contains("canary"))
        }
    }

    @Test func `a login opens a session by cookie, and a logout ends it`() async throws {
        let scene = try DashboardScene(token: "full-token", password: "the password", reader: "read-token")
        try await scene.serving { port in
            let client = try RawClient(port: port)
            let order = #"{"secret": "the password"}"#
            let login = try await client.post("login", order)
            #expect(login.status == 200 && login.object["access"] as? String == "full")
            let cookie = try #require(login.headers["set-cookie"])
            #expect(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict") && cookie.contains("Path=/"))
            #expect(!cookie.contains("Secure") && !cookie.contains("password"))
            let session = ["Cookie": String(cookie.prefix { $0 != ";" })]
            #expect(try await client.get("status", session).status == 200)
            let marked = session.merging(DashboardScene.marks) { $1 }
            #expect(try await client.post("pause", "{}", session).error == "csrf")
            #expect(try await client.post("pause", "{}", marked).status == 200)
            let foreign = marked.merging(["Origin": "http://evil.example"]) { $1 }
            #expect(try await client.post("pause", "{}", foreign).error == "csrf")
            #expect(try await client.post("logout", "{}", marked).status == 200)
            #expect(try await client.get("status", session).status == 401)
            let secure = DashboardScene.marks.merging(["X-Forwarded-Proto": "https"]) { $1 }
            let reader = try await client.post("login", #"{"secret": "read-token"}"#, secure)
            #expect(reader.object["access"] as? String == "read")
            #expect(reader.headers["set-cookie"]?.hasSuffix("; Secure") == true)
        }
    }

    @Test func `who guesses has to wait, and it is said once for each wait`() async throws {
        let scene = try DashboardScene(token: "full-token", password: "the password")
        let refused = Mutex<[String]>([])
        let end = scene.log.listen { event in
            guard case .dashboardRefused = event else { return }
            refused.withLock { $0.append(event.line.name) }
        }
        defer { end() }
        try await scene.serving { port in
            let client = try RawClient(port: port)
            let wrong = #"{"secret": "not it"}"#
            for _ in 0..<LoginThrottle.free {
                let answer = try await client.post("login", wrong)
                #expect(answer.status == 401)
            }
            let late = try await client.post("login", #"{"secret": "the password"}"#)
            #expect(late.status == 429 && late.error == "tries")
            #expect(late.headers["retry-after"].flatMap { Int($0) }.map { (1...31).contains($0) } == true)
            let token = try await client.get("status", DashboardScene.bearer("full-token"))
            #expect(token.status == 429)
            #expect(refused.withLock { $0 } == ["dashboard.refused"])
        }
    }

    @Test func `a name that is not ours is not answered, but watchers may ask by any`() async throws {
        try await DashboardScene().serving { port in
            let client = try RawClient(port: port)
            #expect(try await client.request("GET", "/api/v1/status", host: "evil.example").error == "host")
            #expect(try await client.request("GET", "/", host: "evil.example").status == 421)
            #expect(try await client.request("GET", "/api/v1/status", host: "inlet.example").status == 200)
            #expect(try await client.request("GET", "/healthz", host: "evil.example").body == "ok\n")
            #expect(try await client.request("GET", "/readyz", host: "evil.example").object["ready"] as? Bool == true)
        }
    }

    @Test func `readyz says why not to those who may know, and that it is not to all`() async throws {
        var root = RootStatus(root: "/in", state: .failing("no room"))
        root.directories = 1
        try await DashboardScene(roots: [root]).serving { port in
            let answer = try await RawClient(port: port).request("GET", "/readyz")
            #expect(answer.status == 503 && answer.object["ready"] as? Bool == false)
            #expect(answer.object["reasons"] as? [String] == ["/in cannot be watched: no room"])
        }
        try await DashboardScene(token: "full-token", roots: [root]).serving { port in
            let client = try RawClient(port: port)
            let stranger = try await client.request("GET", "/readyz")
            #expect(stranger.status == 503 && stranger.object["reasons"] == nil)
            let known = try await client.request("GET", "/readyz", headers: DashboardScene.bearer("full-token"))
            #expect((known.object["reasons"] as? [String])?.count == 1)
        }
    }

    @Test func `a body that is too large is refused, and its connection ends`() async throws {
        try await DashboardScene().serving { port in
            let client = try RawClient(port: port)
            let large = String(repeating: "x", count: Endpoint.usualBody + 1)
            let answer = try await client.post("limits", large)
            #expect(answer.status == 413 && answer.error == "too_large")
            try await client.end()
            let head = try RawClient(port: port)
            head.send("GET /healthz HTTP/1.1\r\nHost: x\r\nX-Long: \(String(repeating: "x", count: 40_000))\r\n\r\n")
            try await head.end()
            #expect(!head.text.contains("200 OK"))
            let path = try await RawClient(port: port).get("jobs?q=\(String(repeating: "x", count: 9000))")
            #expect(path.status == 413)
            #expect(try await RawClient(port: port).request("GET", "/healthz").status == 200)
        }
    }

    @Test func `who does not say what he wants is sent away`() async throws {
        var bounds = ServerBounds()
        (bounds.idle, bounds.reading) = (.milliseconds(300), .milliseconds(300))
        try await DashboardScene(bounds: bounds).serving { port in
            let silent = try RawClient(port: port)
            let slow = try RawClient(port: port)
            slow.send("GET /healthz HT")
            let stuck = try RawClient(port: port)
            stuck.send(
                "POST /api/v1/limits HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nX-Inlet: 1\r\n"
                    + "Content-Length: 100\r\n\r\n{")
            for client in [silent, slow, stuck] { try await client.end() }
        }
    }

    @Test func `more connections than there may be wait for their turn`() async throws {
        var bounds = ServerBounds()
        bounds.connections = 2
        try await DashboardScene(bounds: bounds).serving { port in
            var held = try await RawClient.connected(2, to: port)
            let third = try RawClient(port: port)
            third.send("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            held.removeAll()
            #expect(try await third.answer().status == 200)
        }
    }

    @Test func `a port that is taken is told once, and had when it is free`() async throws {
        let first = try DashboardScene()
        let events = Mutex<[String]>([])
        var second: DashboardScene?
        try await first.serving { port in
            let scene = try DashboardScene(port: port)
            second = scene
            let end = scene.log.listen { event in events.withLock { $0.append(event.line.name) } }
            defer { end() }
            let server = scene.server
            try await whileServing({ try await server.run() }) {
                try await eventually("it says that it cannot") { scene.status.current.state == .failing }
                #expect(scene.status.current.error?.hasPrefix("another program listens there") == true)
                #expect(try await scene.control.status().dashboard?.state == .failing)
            }
            #expect(events.withLock { $0 } == ["dashboard.failed"])
        }
        let scene = try #require(second)
        try await scene.serving { port in
            let health = try await RawClient(port: port).request("GET", "/healthz")
            #expect(health.status == 200 && scene.status.current.state == .listening)
        }
    }

    @Test func `the page is told that it has not changed`() async throws {
        try await DashboardScene().serving { port in
            let client = try RawClient(port: port)
            let page = try await client.request("GET", "/")
            let tag = try #require(page.headers["etag"])
            #expect(page.status == 200 && page.headers["content-type"] == "text/html; charset=utf-8")
            let again = try await client.request("GET", "/", headers: ["If-None-Match": tag])
            #expect(again.status == 304 && again.body.isEmpty)
            #expect(try await client.request("GET", "/", headers: ["If-None-Match": "\"x\""]).status == 200)
            #expect(try await client.request("POST", "/", headers: DashboardScene.marks, body: "{}").status == 405)
            #expect(try await client.request("GET", "/assets/nothing").status == 404)
        }
    }
}
