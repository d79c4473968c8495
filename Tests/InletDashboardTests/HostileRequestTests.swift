import InletCore
import InletTestSupport
import SystemPackage
import Testing

@testable import InletDashboard

/// What strangers send, by whatever names the port is found.
@Suite(.serialized) struct HostileRequestTests {
    /// What no refusal tells: where we are, and what we are made of.
    private static let unsaid = ["/usr/", "HTTPParser", "NIO", ".swift", "GRDB", "SQL", "Error(", "Fatal", "internal"]

    @Test(arguments: [nil, "the-token-of-this-test"] as [String?])
    func `a bad request has the answer that it deserves, and harms nobody`(token: String?) async throws {
        #expect(HostileRequests.all.count >= 300)
        let scene = try DashboardScene(token: token)
        try await scene.serving { port in
            for request in HostileRequests.all {
                let said = String(decoding: request.bytes.prefix(200), as: UTF8.self).debugDescription
                let client = try RawClient(port: port)
                client.send(request.bytes)
                guard let answer = try? await client.answer() else {
                    Issue.record("no answer: \(said)")
                    continue
                }
                let isOpen = token == nil || request.isPublic
                let expected = isOpen ? request.statuses : [400, 401, 403, 404, 405, 413, 421]
                #expect(expected.contains(answer.status), "\(answer.status) \(answer.body): \(said)")
                #expect(answer.headers["set-cookie"] == nil, "\(said)")
                guard answer.status >= 400 else { continue }
                for word in Self.unsaid + [scene.directory.path.string] {
                    #expect(!answer.body.contains(word), "\(answer.body): \(said)")
                }
            }
            #expect(try await RawClient(port: port).request("GET", "/healthz").body == "ok\n")
        }
    }

    private static let guards = [
        "content-security-policy":
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
            + "form-action 'self'; frame-ancestors 'none'; base-uri 'none'", "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer", "x-frame-options": "DENY", "cross-origin-resource-policy": "same-origin",
        "cross-origin-opener-policy": "same-origin", "permissions-policy": "camera=()", "cache-control": "no-",
    ]

    @Test func `every answer is guarded, and nothing allows another site to read it`() async throws {
        let scene = try DashboardScene(token: "full-token", reader: "read-token")
        let full = DashboardScene.bearer("full-token")
        try await scene.serving { port in
            let client = try RawClient(port: port)
            let tag = try await client.request("GET", "/").headers["etag"] ?? ""
            let long = "/" + String(repeating: "a", count: 9000)
            let cases: [(status: Int, method: String, path: String, headers: [String: String], host: String)] = [
                (200, "GET", "/", [:], "localhost"), (200, "GET", "/api/v1/jobs", full, "localhost"),
                (200, "GET", "/metrics", full, "localhost"), (200, "GET", "/healthz", [:], "localhost"),
                (304, "GET", "/", ["If-None-Match": tag], "localhost"),
                (401, "GET", "/api/v1/jobs", [:], "localhost"),
                (403, "POST", "/api/v1/pause", DashboardScene.bearer("read-token"), "localhost"),
                (403, "POST", "/api/v1/pause", [:], "localhost"), (404, "GET", "/nothing", full, "localhost"),
                (403, "PUT", "/api/v1/jobs", full, "localhost"), (405, "PUT", "/", full, "localhost"),
                (413, "GET", long, full, "localhost"), (421, "GET", "/", [:], "evil.example"),
            ]
            for (status, method, path, headers, host) in cases {
                let foreign = headers.merging(["Origin": "http://evil.example"]) { $1 }
                let answer = try await client.request(method, path, host: host, headers: foreign)
                #expect(answer.status == status, "\(method) \(path.prefix(40))")
                for (name, value) in Self.guards {
                    #expect(answer.headers[name]?.contains(value) == true, "\(name) of \(method) \(path.prefix(40))")
                }
                #expect(!answer.headers.keys.contains { $0.hasPrefix("access-control-") || $0 == "server" })
            }
        }
    }

    /// Bounds by which only the one that is meant can end a connection in time.
    private static func bounds(_ change: (inout ServerBounds) -> Void) -> ServerBounds {
        var bounds = ServerBounds()
        (bounds.idle, bounds.reading, bounds.writing) = (.seconds(3600), .seconds(3600), .seconds(3600))
        change(&bounds)
        return bounds
    }

    /// Sends a byte now and then, until the connection ends.
    private static func dribble(_ client: RawClient) async throws {
        await #expect(throws: RawClient.Ended.self) {
            try await client.receive("the end of the connection") { _ in
                client.send("x")
                return false
            }
        }
    }

    private static let refusedHeads = [
        "POST /nothing HTTP/1.1\r\n\(HostileRequests.marks)", "PUT /api/v1/jobs HTTP/1.1\r\n\(HostileRequests.marks)",
        "POST /api/v1/pause HTTP/1.1\r\n\(HostileRequests.host)", "GET / HTTP/1.1\r\n\(HostileRequests.host)",
        "POST /api/v1/pause HTTP/1.1\r\nHost: evil.example\r\n", "POST /healthz HTTP/1.1\r\nHost: evil.example\r\n",
        "POST /api/v1/pause HTTP/1.1\r\n\(HostileRequests.marks)", "GET /healthz HTTP/1.1\r\n\(HostileRequests.host)",
        "POST /api/v1/tokens/disk HTTP/1.1\r\n\(HostileRequests.marks)",
        "POST /\(String(repeating: "a", count: 9000)) HTTP/1.1\r\n\(HostileRequests.marks)",
    ]

    @Test(arguments: ["Content-Length: 999999999\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\nfffffff\r\n"])
    func `whoever was refused cannot go on sending for ever`(announced: String) async throws {
        let scene = try DashboardScene(token: "full-token", bounds: Self.bounds { $0.reading = .milliseconds(200) })
        try await scene.serving { port in
            for head in Self.refusedHeads {
                let client = try RawClient(port: port)
                client.send(head + announced)
                try await Self.dribble(client)
            }
        }
    }

    @Test func `a head that comes in drops is not waited for`() async throws {
        try await DashboardScene(bounds: Self.bounds { $0.idle = .seconds(2) }).serving { port in
            let fresh = try RawClient(port: port)
            fresh.send("GET /healthz HTTP/1.1\r\nX-Long: ")
            try await Self.dribble(fresh)
            let known = try RawClient(port: port)
            #expect(try await known.request("GET", "/healthz").status == 200)
            known.send("GET /healthz HTTP/1.1\r\nX-Long: ")
            try await Self.dribble(known)
        }
    }

    @Test func `a body that is cut short is the sender's fault`() async throws {
        try await DashboardScene().serving { port in
            for rest in [
                "Content-Length: 10\r\n\r\n{}", "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n",
                "Transfer-Encoding: chunked\r\n\r\n",
            ] {
                let client = try RawClient(port: port)
                client.send("POST /api/v1/queue/cancel HTTP/1.1\r\n\(HostileRequests.marks)\(rest)")
                client.finishSending()
                let answer = try await client.answer()
                #expect(answer.status == 400 && answer.error == "bad_request", "\(answer)")
                try await client.end()
            }
        }
    }

    @Test func `whoever takes nothing of his answers gives way to the next`() async throws {
        let bounds = Self.bounds { ($0.connections, $0.writing) = (1, .milliseconds(300)) }
        try await DashboardScene(bounds: bounds).serving { port in
            let deaf = try RawClient(port: port)
            let question = "GET /api/v1/openapi.json HTTP/1.1\r\n\(HostileRequests.host)\r\n"
            // More than the buffers between us hold.
            deaf.send(String(repeating: question, count: 500))
            let next = try RawClient(port: port)
            #expect(try await next.request("GET", "/healthz").body == "ok\n")
            withExtendedLifetime(deaf) {}
        }
    }

    @Test func `one address cannot have all connections`() async throws {
        try await DashboardScene(bounds: Self.bounds { $0.connectionsOfOne = 2 }).serving { port in
            var held = try await RawClient.connected(2, to: port)
            let third = try RawClient(port: port)
            try await third.end()
            #expect(third.text.isEmpty)
            #expect(try await held[1].request("GET", "/healthz").status == 200)
            held.removeFirst()
            try await eventually("the next is served") {
                (try? await RawClient(port: port).request("GET", "/healthz").status) == 200
            }
        }
    }

    private static let large = [
        ("GET", "/api/v1/jobs?limit=5000", nil), ("GET", "/api/v1/receipts?limit=5000", nil),
        ("POST", "/api/v1/queue/list", "{\"limit\": 5000}"), ("GET", "/api/v1/batches/last/offload", nil),
    ]

    @Test func `large answers take turns, and small ones need not`() async throws {
        try await DashboardScene(bounds: Self.bounds { $0.largeAnswers = 0 }).serving { port in
            let client = try RawClient(port: port)
            for (method, path, body) in Self.large {
                let answer = try await client.request(method, path, headers: DashboardScene.marks, body: body)
                #expect(answer.status == 429 && answer.error == "busy", "\(path)")
                #expect(answer.headers["retry-after"] == "5")
            }
            #expect(try await client.get("jobs?limit=1000").status == 200)
            #expect(try await client.get("status").status == 200)
            // The view of a fleet asks for both at once, in the window of each person who looks.
            #expect(try await client.get("fleet").status == 404)
            #expect(try await client.get("fleet/search?q=a.mov").status == 404)
        }
        try await DashboardScene(bounds: Self.bounds { $0.largeAnswers = 1 }).serving { port in
            let client = try RawClient(port: port)
            for (method, path, body) in Self.large + Self.large {
                let answer = try await client.request(method, path, headers: DashboardScene.marks, body: body)
                #expect(answer.status == (path.hasSuffix("offload") ? 404 : 200), "\(path)")
            }
        }
    }

    @Test func `each address has connections of its own in the book`() {
        let book = ConnectionLimiter(most: 2)
        #expect(book.enter([1]) && book.enter([1]) && !book.enter([1]) && book.enter([2]))
        book.leave([1])
        #expect(book.enter([1]) && !book.enter([1]))
    }
}
