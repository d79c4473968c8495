import InletCore
import InletTestSupport
import Testing

@testable import InletDashboard

/// Who is let in while somebody guesses, and through proxies.
@Suite(.serialized) struct AuthenticatorTests {
    private static let long = "0f1e2d3c4b5a69788796a5b4c3d2e1f0"

    private static func logIn(_ client: RawClient, _ secret: String) async throws -> Int {
        try await client.request(
            "POST", "/api/v1/login", headers: DashboardScene.marks, body: "{\"secret\": \"\(secret)\"}"
        ).status
    }

    private static func look(
        _ client: RawClient, _ token: String, _ headers: [String: String] = [:]
    ) async throws -> Int {
        let headers = DashboardScene.bearer(token).merging(headers) { $1 }
        return try await client.request("GET", "/api/v1/status", headers: headers).status
    }

    @Test func `a token that nobody can guess opens while others of its address have to wait`() async throws {
        let scene = try DashboardScene(token: Self.long, password: "a password of more than 24", reader: "the-reader")
        try await scene.serving { port in
            let client = try RawClient(port: port)
            for _ in 0..<LoginThrottle.free { #expect(try await Self.logIn(client, "not it") == 401) }
            #expect(try await Self.look(client, Self.long) == 200)
            #expect(try await Self.logIn(client, Self.long) == 200)
            #expect(try await Self.look(client, "the-reader") == 429)
            #expect(try await Self.logIn(client, "a password of more than 24") == 429)
            #expect(try await Self.look(client, Self.long + "0") == 429)
        }
    }

    @Test(arguments: [false, true])
    func `whom a proxy names is believed only where one is configured`(isConfigured: Bool) async throws {
        try await DashboardScene(token: "full-token", proxy: isConfigured).serving { port in
            let client = try RawClient(port: port)
            for number in 0..<LoginThrottle.free {
                let from = ["X-Forwarded-For": "203.0.113.\(number)"]
                #expect(try await Self.look(client, "no-token", from) == 401)
            }
            let status = try await Self.look(client, "full-token", ["X-Forwarded-For": "203.0.113.99"])
            #expect(status == (isConfigured ? 200 : 429))
        }
    }

    @Test func `without a secret nobody comes in by HTTP/1.0, as proxies do that add nothing`() async throws {
        func ask(_ port: Int, _ path: String, inPieces: Bool = false) async throws -> RawAnswer {
            let client = try RawClient(port: port)
            let text = "GET \(path) HTTP/1.0\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
            for piece in inPieces ? text.map(String.init) : [text] { client.send(piece) }
            return try await client.answer()
        }
        try await DashboardScene().serving { port in
            for inPieces in [false, true] {
                let answer = try await ask(port, "/api/v1/status", inPieces: inPieces)
                #expect(answer.status == 403 && answer.error == "proxy", "\(answer)")
            }
            let health = try await ask(port, "/healthz")
            #expect(health.body == "ok\n")
        }
        try await DashboardScene(token: "full-token").serving { port in
            let session = try await ask(port, "/api/v1/session")
            #expect(session.object["access"] as? String == "none")
        }
    }

    @Test(arguments: ["Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-IP", "Via"])
    func `without a secret nobody comes through a proxy`(header: String) async throws {
        let through = DashboardScene.marks.merging([header: "for=203.0.113.1"]) { $1 }
        try await DashboardScene().serving { port in
            let client = try RawClient(port: port)
            #expect(try await client.request("GET", "/api/v1/status", headers: through).error == "proxy")
            #expect(try await client.request("POST", "/api/v1/pause", headers: through, body: "{}").error == "proxy")
            let direct = try RawClient(port: port)
            #expect(try await direct.request("GET", "/api/v1/status").status == 200)
            #expect(try await direct.request("GET", "/healthz", headers: through).status == 200)
        }
        try await DashboardScene(token: "full-token").serving { port in
            let client = try RawClient(port: port)
            #expect(try await Self.look(client, "full-token", [header: "for=203.0.113.1"]) == 200)
        }
    }
}
