import Foundation
import InletCore
import InletTestSupport
import SystemPackage
import Testing

@testable import InletTransfer

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
        let key = try #require(Certificate.publicKey(whole))
        let end = key.endIndex
        for count in 0..<end { #expect(Certificate.publicKey(Array(whole.prefix(count))) == nil) }
        var generator = SeededGenerator(seed: 7)
        for _ in 0..<3000 {
            var damaged = whole
            damaged[Int.random(in: 0..<damaged.count, using: &generator)] = .random(in: 0...255, using: &generator)
            if let found = Certificate.publicKey(damaged) { #expect(found.endIndex <= damaged.count) }
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
@Suite(.serialized, .timeLimit(.minutes(8)), .enabled(if: FileManager.default.isExecutableFile(atPath: TLSServer.path)))
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
