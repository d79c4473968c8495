import Foundation
import InletCore
import InletLinux
import InletTestSupport
import Testing

@testable import InletTransfer

/// What a server shows of itself before it is trusted.
@Suite(.serialized) struct PeerCertificateTests {
    @Test(.enabled(if: FileManager.default.isExecutableFile(atPath: TLSServer.path)), arguments: ["1_3", "1_2"])
    func `an untrusted server's certificate tells its name, its issuer, its end and the version of TLS`(
        _ version: String
    ) async throws {
        let server = try TLSServer(["-tls\(version)"])
        let url = try HTTPURL("https://127.0.0.1:\(server.port)/", rules: .configured(allowHTTP: false))
        let client = makeClient()
        let peer = try #require(try await client.certificate(of: url))
        #expect(peer.subject.contains("inlet test") && peer.issuer.contains("inlet test"), "\(peer)")
        #expect(peer.version == "TLSv\(version.replacing("_", with: "."))", "\(peer)")
        let left = try #require(peer.expires) - .now
        #expect(left > .seconds(86_400) && left <= .seconds(2 * 86_400), "\(left)")
        client.shutdown()
    }

    @Test(arguments: ["Nov  9 05:06:07 2026 GMT", "2026-11-09 05:06:07 GMT"])
    func `both spellings of a certificate's end are read`(_ text: String) throws {
        let facts = ["Subject:": "a", "Issuer:": "b", "Expire date:": text]
        let peer = try #require(PeerCertificate(version: nil) { facts[$0] })
        #expect(peer.expires == WallTime(rfc3339: "2026-11-09T05:06:07Z"))
    }

    @Test func `without TLS there is no certificate`() async throws {
        let server = try ScriptedServer { connection in connection.waitForEnd() }
        #expect(try await makeClient().certificate(of: server.url("/")) == nil)
        #expect(server.connections == 0)
    }

    @Test(arguments: [-7200, 0, 7200])
    func `the server's clock is compared with ours by the Date of any answer`(_ seconds: Int64) async throws {
        let server = try ScriptedServer { connection in
            while true {
                let request = try connection.readRequest()
                let isOpen = request.headers["authorization"] == nil && request.line.hasPrefix("HEAD ")
                let date = "Date: \(HTTPDate.text(.now + .seconds(seconds)))\r\n"
                try connection.answer("403 Forbidden", headers: isOpen ? date : "")
            }
        }
        let difference = try #require(try await makeClient().clockDifference(at: server.url("/")))
        #expect(abs(difference.components.seconds - seconds) <= 3, "\(difference)")
    }

    @Test func `a server that tells no time is compared with nothing`() async throws {
        let server = try ScriptedServer { connection in
            while true {
                _ = try connection.readRequest()
                try connection.answer("204 No Content")
            }
        }
        #expect(try await makeClient().clockDifference(at: server.url("/")) == nil)
    }
}

/// A moment as RFC 9110, section 5.6.7 writes it.
private enum HTTPDate {
    static func text(_ time: WallTime) -> String {
        let format = DateFormatter()
        format.locale = Locale(identifier: "en_US_POSIX")
        format.timeZone = TimeZone(secondsFromGMT: 0)
        format.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
        return format.string(from: Date(timeIntervalSince1970: Double(time.milliseconds) / 1000))
    }
}
