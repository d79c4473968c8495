import Foundation
import InletCore
import InletTestSupport
import InletTransfer
import SystemPackage
import Testing

@Suite(.serialized, .timeLimit(.minutes(8)), .enabled(if: FileManager.default.isExecutableFile(atPath: TLSServer.path)))
struct HTTPClientTLSTests {
    private func url(_ server: TLSServer, host: String = "127.0.0.1") throws -> HTTPURL {
        try HTTPURL("https://\(host):\(server.port)/", rules: .configured(allowHTTP: false))
    }

    @Test func `an unknown certificate is refused, and taken when ca_file names it`() async throws {
        let server = try TLSServer()
        let error = try #require(await failure(makeClient(), HTTPRequest("GET", url(server))))
        #expect(error.code == .tlsFailed)
        #expect(error.reason.contains("ca_file"))
        let trusting = makeClient(trust: Trust(caFile: server.certificate))
        #expect(try await trusting.send(HTTPRequest("GET", url(server))).status == 200)
    }

    @Test func `a trusted certificate for another name is refused`() async throws {
        let server = try TLSServer()
        let trusting = makeClient(trust: Trust(caFile: server.certificate))
        let error = await failure(trusting, HTTPRequest("GET", try url(server, host: "localhost")))
        #expect(error?.code == .tlsFailed)
    }

    @Test func `a ca_file that is missing is named as the cause`() async throws {
        let server = try TLSServer()
        let error = await failure(
            makeClient(trust: Trust(caFile: "/nonexistent/ca.pem")), HTTPRequest("GET", try url(server)))
        #expect(error?.code == .tlsFailed)
        #expect(error?.reason.contains("ca_file") == true)
    }

    /// The server closes after each answer, and says in it whether the handshake was a whole one.
    @Test(arguments: ["-tls1_3", "-tls1_2"])
    func `a second connection resumes the session of the first`(_ version: String) async throws {
        let server = try TLSServer([version])
        let client = makeClient(trust: Trust(caFile: server.certificate))
        var handshakes: [Substring] = []
        for _ in 1...3 {
            let said = try await client.send(HTTPRequest("GET", url(server))).body
            handshakes += String(decoding: said, as: UTF8.self).split(separator: "\n").compactMap {
                $0.hasPrefix("New, ") || $0.hasPrefix("Reused, ") ? $0.prefix { $0 != "," } : nil
            }
        }
        #expect(handshakes == ["New", "Reused", "Reused"])
        // A resumed handshake shows no certificate.
        #expect(try await client.pin(of: url(server)) != nil)
    }

    @Test func `a session is not resumed with a server that is trusted otherwise`() async throws {
        let server = try TLSServer()
        let trusting = makeClient(trust: Trust(caFile: server.certificate))
        #expect(try await trusting.send(HTTPRequest("GET", url(server))).status == 200)
        #expect(await failure(makeClient(), HTTPRequest("GET", try url(server)))?.code == .tlsFailed)
    }

    @Test func `a server that speaks no TLS is a TLS failure`() async throws {
        let server = try ScriptedServer { connection in
            try connection.write("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
            connection.waitForEnd()
        }
        let url = try HTTPURL("https://127.0.0.1:\(server.port)/", rules: .configured(allowHTTP: false))
        #expect(await failure(makeClient(), HTTPRequest("GET", url))?.code == .tlsFailed)
    }
}
