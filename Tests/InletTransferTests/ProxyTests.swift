import Foundation
import InletCore
import InletTestSupport
import SystemPackage
import Testing

@testable import InletTransfer

/// Requests through real proxies on loopback.
@Suite(.timeLimit(.minutes(15))) struct ProxyTests {
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
            ("https://store.test/x", "407 Proxy Authentication Required", ErrorCode.proxyRefused, "requires a login"),
            ("http://store.test/x", "407 Proxy Authentication Required", .proxyRefused, "requires a login"),
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
        #expect(error.reason.contains("refuses our login") && !error.reason.contains("can:ary"))
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

/// Pins as texts, and the way through a certificate to the key that they are about.
struct PublicKeyPinTests {
    private static let openSSL = FileManager.default.isExecutableFile(atPath: TLSServer.path)

    private static func pem() -> String {
        """
        -----BEGIN CERTIFICATE-----
        MIIC+TCCAeGgAwIBAgIUYW3LnfSUWtjga1FRL1lLLrCBKeEwDQYJKoZIhvcNAQEL
        BQAwDDEKMAgGA1UEAwwBeDAeFw0yNjExMjEyMDU0MjlaFw0yNjExMjMyMDU0Mjla
        MAwxCjAIBgNVBAMMAXgwggEiMA0GCSqGSIb3DQEBAQUAA4IBDwAwggEKAoIBAQCN
        9MxcIHMUN3NzbPWjnSBOL5wH56lprf0mZeeWxLcDqL7UlXalalvo2dNWUA60En1d
        10ENrx1jzn/U/bSk8ahTY92kkunfnyiP4k9MJEm+G+zFV/wMZBdwCjJG7pdzuu4v
        vi3VY47EgpZq9JJZAWQgh9fjTWxrJmMw8Eun38wcEvsqpJzHAsbeq0phZ1F3JZZH
        oKiTz/pNL7KSVcFhHkiTnM2DbSu48mxTm4RUn9G6zJw90nYO2ucL4ZtLNrMGNfmN
        7qA/Ms7aujqHBa7odOu39gFbZzVkR3EwQw4V2hqfnqlFkz77a1DBwVsVrD26cjPx
        w23pbAMglx7rTCHN9fHrAgMBAAGjUzBRMB0GA1UdDgQWBBSt4wvNBTukw0FhJFQK
        G1P+LnQYqjAfBgNVHSMEGDAWgBSt4wvNBTukw0FhJFQKG1P+LnQYqjAPBgNVHRMB
        Af8EBTADAQH/MA0GCSqGSIb3DQEBCwUAA4IBAQBvvhBVi8Y5OYlo+f8qulcmTfi8
        7SVrPULcOKYg9hwLHlCgd4JTLxGwbacjLKAyPUdD4bNblgyqUjrTAcZuOXz29PWX
        0fbALjnBk7D+WDCl+/zpNAoh3lMF9xD1BvzOS02l0p4CJs2D3u7qVMW/AeZccGGS
        givu8ZgCdKnOp8faEE7Q5FNBchmz5N5JDegoUB23WxXYqOVNXbqEMt4owuJ1mQb3
        CWyPeh9Y8OZf/bseTlcUyLyBnY0qJAQr5yqvbDszoNiqOO//2gsZsSXtxhkv94cC
        b+eAgOlnuOax45hTBn0i3EDjf16sI/DsJJnFQMUsrukWhPm+qXO1k2JQ1Sag
        -----END CERTIFICATE-----
        """
    }

    @Test func `the pin of a certificate is what openssl says`() {
        #expect(
            PublicKeyPin(certificatePEM: Self.pem())?.text == "sha256//bClOcaMqdsebtAQffMEYmJfvVpVyiPfO/s0sX2MWozA=")
        #expect(PublicKeyPin(certificatePEM: "before\n" + Self.pem() + "\nafter\n" + Self.pem()) != nil)
    }

    @Test(arguments: [
        ("sha256//bClOcaMqdsebtAQffMEYmJfvVpVyiPfO/s0sX2MWozA=", true),
        (
            "sha256//bClOcaMqdsebtAQffMEYmJfvVpVyiPfO/s0sX2MWozA=;sha256//47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
            true
        ),
        ("", false), ("sha256//", false), ("sha256//AAAA", false), ("/etc/passwd", false),
        ("sha1//bClOcaMqdsebtAQffMEYmJfvVpVyiPfO/s0sX2MWozA=", false),
        ("bClOcaMqdsebtAQffMEYmJfvVpVyiPfO/s0sX2MWozA=", false),
        ("sha256//bClOcaMqdsebtAQffMEYmJfvVpVyiPfO/s0sX2MWozA=;", false),
        ("sha256//bClOcaMqdsebtAQffMEYmJfvVpVyiPfO/s0sX2MWozA=;/tmp/key", false),
    ]) func `a pin is sha256 and 32 bytes, and never a file`(text: String, isValid: Bool) {
        #expect((PublicKeyPin(text) != nil) == isValid)
        if isValid { #expect(PublicKeyPin(text)?.text == text) }
    }

    @Test func `what is no certificate has no pin`() {
        let texts = ["", "-----BEGIN CERTIFICATE-----", "-----BEGIN CERTIFICATE-----\n!!\n-----END CERTIFICATE-----"]
        for text in texts + ["-----BEGIN X-----\nMAMCAQE=\n-----END X-----"] {
            #expect(PublicKeyPin(certificatePEM: text) == nil)
        }
    }

    @Test func `a certificate that is cut or damaged is read or refused, never trusted to its lengths`() throws {
        let lines = Self.pem().split(separator: "\n").dropFirst().dropLast().joined()
        let whole = Array(try #require(Data(base64Encoded: lines)))
        let key = try #require(PublicKeyPin.publicKey(of: whole))
        let end = key.endIndex
        for count in 0..<end { #expect(PublicKeyPin.publicKey(of: Array(whole.prefix(count))) == nil) }
        var generator = SeededGenerator(seed: 7)
        for _ in 0..<3000 {
            var damaged = whole
            damaged[Int.random(in: 0..<damaged.count, using: &generator)] = .random(in: 0...255, using: &generator)
            if let found = PublicKeyPin.publicKey(of: damaged) { #expect(found.endIndex <= damaged.count) }
        }
    }

    @Test(.enabled(if: openSSL), arguments: ["rsa:2048", "ec:secp384r1", "ed25519"])
    func `keys of any kind have the pin that openssl computes`(kind: String) throws {
        let directory = try TemporaryDirectory()
        let certificate = directory.path.appending("cert.pem").string
        let parts = kind.split(separator: ":").map(String.init)
        let newKey =
            parts[0] == "ec" ? ["ec", "-pkeyopt", "ec_paramgen_curve:\(parts[1])"] : [kind]
        try Self.run(
            ["req", "-x509", "-nodes", "-days", "2", "-subj", "/CN=inlet", "-newkey"] + newKey + [
                "-keyout", directory.path.appending("key.pem").string, "-out", certificate,
            ])
        let key = directory.path.appending("public.der").string
        let publicKey = directory.path.appending("public.pem").string
        try Self.run(["x509", "-in", certificate, "-pubkey", "-noout", "-out", publicKey])
        try Self.run(["pkey", "-pubin", "-in", publicKey, "-outform", "der", "-out", key])
        let digest = Checksum.sha256(try Data(contentsOf: URL(fileURLWithPath: key)))
        let text = String(decoding: try Data(contentsOf: URL(fileURLWithPath: certificate)), as: UTF8.self)
        #expect(PublicKeyPin(certificatePEM: text)?.text == "sha256//" + Data(digest.bytes).base64EncodedString())
    }

    private static func run(_ arguments: [String]) throws {
        let process = TLSServer.openssl(arguments)
        try process.run()
        process.waitUntilExit()
        #expect(process.terminationStatus == 0)
    }
}

/// Pins against a real TLS server.
@Suite(
    .serialized, .timeLimit(.minutes(15)),
    .enabled(if: FileManager.default.isExecutableFile(atPath: TLSServer.path)))
struct HTTPClientPinTests {
    private static let otherPin = "sha256//47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="

    private func url(_ server: TLSServer, host: String = "127.0.0.1") throws -> HTTPURL {
        try HTTPURL("https://\(host):\(server.port)/", rules: .configured(allowHTTP: false))
    }

    private func pin(_ server: TLSServer) async throws -> PublicKeyPin {
        try #require(try await makeClient().pin(of: url(server)))
    }

    @Test func `the pin of a server is that of its certificate, trusted or not`() async throws {
        let server = try TLSServer()
        let file = try Data(contentsOf: URL(fileURLWithPath: server.certificate.string))
        #expect(try await pin(server) == PublicKeyPin(certificatePEM: String(decoding: file, as: UTF8.self)))
        let plain = try HTTPURL("http://127.0.0.1:1/", rules: .configured(allowHTTP: false))
        #expect(try await makeClient().pin(of: plain) == nil)
    }

    @Test func `a pin alone makes a self-signed server trusted, under any name`() async throws {
        let server = try TLSServer()
        let client = makeClient(trust: Trust(pin: try await pin(server)))
        #expect(try await client.send(HTTPRequest("GET", url(server))).status == 200)
        #expect(try await client.send(HTTPRequest("GET", url(server, host: "localhost"))).status == 200)
    }

    @Test func `another key than the pinned one is refused before anything is sent`() async throws {
        let server = try TLSServer()
        for caFile in [nil, server.certificate] {
            let client = makeClient(trust: Trust(caFile: caFile, pin: PublicKeyPin(Self.otherPin)))
            let error = await failure(client, HTTPRequest("GET", try url(server)))
            #expect(error?.code == .tlsFailed)
            #expect(error?.reason.contains("pin") == true)
        }
    }

    @Test func `one of several pins is enough`() async throws {
        let server = try TLSServer()
        let pin = PublicKeyPin("\(Self.otherPin);\(try await pin(server).text)")
        let client = makeClient(trust: Trust(pin: pin))
        #expect(try await client.send(HTTPRequest("GET", url(server))).status == 200)
    }

    @Test func `with a ca_file beside the pin, authority and name are asked too`() async throws {
        let server = try TLSServer()
        let pin = try await pin(server)
        let client = makeClient(trust: Trust(caFile: server.certificate, pin: pin))
        #expect(try await client.send(HTTPRequest("GET", url(server))).status == 200)
        #expect(await failure(client, HTTPRequest("GET", try url(server, host: "localhost")))?.code == .tlsFailed)
        let other = try TLSServer()
        let mixed = makeClient(trust: Trust(caFile: other.certificate, pin: pin))
        #expect(await failure(mixed, HTTPRequest("GET", try url(server)))?.code == .tlsFailed)
    }

    @Test func `a server that speaks no TLS has no pin`() async throws {
        let server = try ScriptedServer { connection in
            try connection.write("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
            connection.waitForEnd()
        }
        let url = try HTTPURL("https://127.0.0.1:\(server.port)/", rules: .configured(allowHTTP: false))
        await #expect(throws: TransferError.self) { try await makeClient().pin(of: url) }
    }
}
