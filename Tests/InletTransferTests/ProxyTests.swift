import Foundation
import InletCore
import InletTestSupport
import InletTransfer
import Testing

/// Requests through real proxies on loopback.
@Suite(.timeLimit(.minutes(4))) struct ProxyTests {
    private static let login = "Basic " + Data("me:can:ary".utf8).base64EncodedString()

    /// A client whose requests all go through `address`.
    private func client(
        _ address: String, user: String? = nil, trust: Trust = .system, noProxy: [String] = []
    ) throws -> HTTPClient {
        var section = ConfigSection(values: [:], positions: [:], position: SourcePosition(line: 1, column: 1))
        section.values["url"] = .secret(Secret(address))
        section.values["no_proxy"] = .list(noProxy.map { .string($0) })
        if let user {
            section.values["user"] = .string(user)
            section.values["password"] = .secret(Secret("can:ary"))
        }
        let rules = ProxyRules(try ProxySettings(Section(ProxyKeys(), section)), isOwn: true)
        return HTTPClient(trust: trust, userAgent: "inlet-tests/1", proxies: rules)
    }

    private func url(_ text: String) throws -> HTTPURL { try HTTPURL(text, rules: .configured(allowHTTP: true)) }

    /// A server that says what it was asked.
    private func origin(_ seen: Seen<ReceivedRequest>) throws -> ScriptedServer {
        try ScriptedServer { connection in
            seen.append(try connection.readRequest())
            try connection.answer("200 OK", headers: "Connection: close\r\n", "here")
        }
    }

    @Test func `a plain request goes by its whole address, and the login stays with the proxy`() async throws {
        let seen = Seen<ReceivedRequest>()
        let origin = try origin(seen)
        let proxy = try ForwardProxy(to: origin.port, login: Self.login)
        let client = try client(proxy.address, user: "me")
        defer { client.shutdown() }
        let request = HTTPRequest(
            "PUT", try url("http://store.test/a/b"), headers: [("Authorization", "Bearer origin")],
            body: .bytes(Array("body".utf8)))
        let answer = try await client.send(request)
        #expect(answer.status == 200 && answer.body == Array("here".utf8))
        let asked = try #require(proxy.asked.first)
        #expect(asked.line == "PUT http://store.test/a/b HTTP/1.1" && proxy.asked.count == 1)
        let received = try #require(seen.all.first)
        #expect(received.line == "PUT /a/b HTTP/1.1" && received.body == Array("body".utf8))
        #expect(received.headers["authorization"] == "Bearer origin" && received.headers["proxy-authorization"] == nil)
    }

    @Test(.enabled(if: FileManager.default.isExecutableFile(atPath: TLSServer.path)))
    func `an encrypted request goes through a tunnel, and its login is not the proxy's to see`() async throws {
        let server = try TLSServer()
        let proxy = try ForwardProxy(to: UInt16(server.port), login: Self.login)
        let client = try client(proxy.address, user: "me", trust: Trust(caFile: server.certificate))
        defer { client.shutdown() }
        let place = try url("https://127.0.0.1:\(server.port)/")
        let answer = try await client.send(HTTPRequest("GET", place, headers: [("Authorization", "Bearer canary")]))
        #expect(answer.status == 200 && !answer.body.isEmpty)
        let asked = try #require(proxy.asked.first)
        #expect(asked.line == "CONNECT 127.0.0.1:\(server.port) HTTP/1.1")
        #expect(asked.headers["proxy-authorization"] == Self.login && asked.headers["authorization"] == nil)
        // The pin is read through the tunnel too, and a connection alone asks for nothing.
        #expect(try await client.pin(of: place) != nil)
        try await client.connect(to: place)
        #expect(proxy.asked.allSatisfy { $0.line.hasPrefix("CONNECT ") })
    }

    @Test(
        arguments: [
            ("https://store.test/x", "407 Proxy Authentication Required", ErrorCode.proxyRefused, "wants a login"),
            ("http://store.test/x", "407 Proxy Authentication Required", .proxyRefused, "wants a login"),
            ("https://store.test/x", "403 Forbidden", .proxyRefused, "it answered 403"),
            ("https://store.test/x", "502 Bad Gateway", .connectFailed, "answered 502"),
            ("https://store.test/x", "503 Service Unavailable", .connectFailed, "answered 503"),
            ("http://store.test/x", "502 Bad Gateway", .serverError, "answered 502"),
        ] as [(String, String, ErrorCode, String)])
    func `a proxy that refuses is an outage that names it`(
        _ address: String, _ refusal: String, _ code: ErrorCode, _ words: String
    ) async throws {
        let proxy = try ForwardProxy(to: 1, refusal: refusal)
        let client = try client(proxy.address)
        defer { client.shutdown() }
        let error = try #require(await failure(client, HTTPRequest("GET", url(address))))
        #expect(error.isOutage && error.code == code, "\(error)")
        #expect(error.reason.contains("the proxy \(proxy.address)") && error.reason.contains(words), "\(error)")
    }

    @Test func `a login that is not taken is said as that, without the password`() async throws {
        let proxy = try ForwardProxy(to: 1, login: "Basic other")
        let client = try client(proxy.address, user: "me")
        defer { client.shutdown() }
        let error = try #require(await failure(client, HTTPRequest("GET", url("https://store.test/"))))
        #expect(error.reason.contains("does not take our login") && !error.reason.contains("can:ary"))
    }

    @Test(arguments: ["http", "socks5", "socks5h"])
    func `a proxy that is down is an outage that names it`(_ scheme: String) async throws {
        let port = try ChaosProxy(to: 1)
        port.close()
        let client = try client("\(scheme)://127.0.0.1:\(port.port)")
        defer { client.shutdown() }
        let error = try #require(await failure(client, HTTPRequest("GET", url("https://192.0.2.1/"))))
        #expect(error.isOutage && error.code == .connectFailed, "\(error)")
        #expect(error.reason.contains("the proxy \(scheme)://127.0.0.1:\(port.port) does not answer"), "\(error)")
    }

    @Test func `what no_proxy names is reached directly`() async throws {
        let seen = Seen<ReceivedRequest>()
        let origin = try origin(seen)
        let proxy = try ForwardProxy(to: origin.port)
        let client = try client(proxy.address, noProxy: ["127.0.0.0/8"])
        defer { client.shutdown() }
        #expect(try await client.send(HTTPRequest("GET", origin.url("/direct"))).status == 200)
        #expect(proxy.asked.isEmpty && seen.all.first?.line == "GET /direct HTTP/1.1")
    }

    @Test func `a proxy that cannot be used is not gone around`() async throws {
        let seen = Seen<ReceivedRequest>()
        let origin = try origin(seen)
        let rules = ProxyRules { $0 == "all_proxy" ? "socks4://p:1" : nil }
        let client = HTTPClient(userAgent: "inlet-tests/1", proxies: rules)
        defer { client.shutdown() }
        let error = try #require(await failure(client, HTTPRequest("GET", url("http://store.test:\(origin.port)/"))))
        #expect(error.code == .proxyRefused && error.isOutage && error.reason.contains("all_proxy"))
        // This machine needs none.
        #expect(try await client.send(HTTPRequest("GET", origin.url("/"))).status == 200)
    }
}
