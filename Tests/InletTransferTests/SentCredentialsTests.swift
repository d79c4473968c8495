import Foundation
import InletCore
import InletTestSupport
import InletTransfer
import Testing

/// Which credentials of a request are hidden in its answer.
struct SentCredentialsTests {
    private func shown(
        _ text: String, _ headers: HTTPFields = [], query: String = "", proxy: ProxyServer? = nil
    ) throws -> String {
        let url = try HTTPURL("https://h.example/p\(query)", rules: .configured(allowHTTP: false))
        var answer = HTTPResponse(status: 400)
        answer.sentCredentials = SentCredentials(HTTPRequest("GET", url, headers: headers), proxy: proxy)
        return answer.redactor.redacted(text)
    }

    @Test(arguments: [
        ("Authorization", "Bearer canary-1"), ("authorization", "canary-1"), ("X-API-Key", "canary-1"),
        ("x-api-key", "canary-1"), ("X-Upload-Token", "canary-1"), ("x-amz-security-token", "canary-1"),
        ("Cookie", "canary-1"), ("webhook-signature", "canary-1"),
        ("Authorization", "AWS4-HMAC-SHA256 Credential=canary-1/20261121/auto/s3/aws4_request, Signature=ab12cd34"),
    ])
    func `a field that says who we are is hidden`(_ name: String, _ value: String) throws {
        #expect(try shown("no canary-1 here", [(name, value)]) == "no *** here")
    }

    @Test func `a login is hidden with the password in it`() throws {
        let word = Data("up:pass-canary".utf8).base64EncodedString()
        let said = try shown("\(word) up:pass-canary pass-canary up", [("Authorization", "Basic \(word)")])
        #expect(said == "*** *** *** up")
    }

    @Test func `a signature is hidden, and not the names around it`() throws {
        let value =
            "AWS4-HMAC-SHA256 Credential=AKID9/20261121/auto/s3/aws4_request, SignedHeaders=host, Signature=ab12cd34"
        let said = try shown("AKID9/20261121/auto host ab12cd34 AWS4-HMAC-SHA256", [("Authorization", value)])
        #expect(said == "***/20261121/auto host *** AWS4-HMAC-SHA256")
    }

    @Test func `credentials of a query are hidden as they were sent and as they were read`() throws {
        let said = try shown("a/b+c a%2Fb%2Bc plain", query: "?token=a%2Fb%2Bc&r=plain")
        #expect(said == "*** *** plain")
    }

    @Test func `what signs an address is hidden, whatever the signer calls it`() throws {
        let said = try shown(
            "a%2Bcanary a+canary jwt-canary film.mov 2026-11-23",
            query: "?se=2026-11-23&sig=a%2Bcanary&key=film.mov&J%57T=jwt-canary")
        #expect(said == "*** *** *** film.mov 2026-11-23")
    }

    @Test func `a proxy's login is hidden too`() throws {
        let proxy = try ProxyServer("http://me:proxy-canary@proxy.example:3128", usualPort: false)
        let word = Data("me:proxy-canary".utf8).base64EncodedString()
        #expect(try shown("Proxy-Authorization: Basic \(word), proxy-canary", proxy: proxy).contains("Basic ***, ***"))
    }

    @Test func `other fields stay readable`() throws {
        let said = try shown("application/json 12345 host", [("Content-Type", "application/json"), ("X-Id", "12345")])
        #expect(said == "application/json 12345 host")
    }

    @Test func `an answer brings along what was sent`() async throws {
        let server = try ScriptedServer { connection in
            _ = try connection.readRequest()
            try connection.answer("400 Bad", "you said canary-key-1")
        }
        let client = HTTPClient(userAgent: "inlet-tests/1")
        defer { client.shutdown() }
        let url = try HTTPURL("http://127.0.0.1:\(server.port)/", rules: .configured(allowHTTP: false))
        let answer = try await client.send(HTTPRequest("GET", url, headers: [("X-API-Key", "canary-key-1")]))
        #expect(answer.redactor.redacted(String(decoding: answer.body, as: UTF8.self)) == "you said ***")
    }
}
