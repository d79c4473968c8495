import Foundation
import InletCore
import InletTestSupport
import Testing

@testable import InletSandbox

@Suite struct SigningTests {
    /// The example of AWS's own documentation ("Authenticating requests: using query parameters").
    @Test func `the signature is that of the published example`() throws {
        let signer = RequestSigner(
            secret: Secret("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"), accessKey: "AKIAIOSFODNN7EXAMPLE",
            region: "us-east-1")
        let request = SignableRequest(method: "GET", path: "/test.txt", host: "examplebucket.s3.amazonaws.com")
        let moment = WallTime(milliseconds: 1_369_353_600_000)
        let query = signer.presign(request, lifetime: 86_400, now: moment)
        #expect(query.hasSuffix("=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404"))
        var arrived = request
        arrived.query = try #require(URIText.decodeQuery(query))
        try signer.verify(arrived, now: moment + .seconds(86_399))
        #expect(throws: SandboxRefusal.self) { try signer.verify(arrived, now: moment + .seconds(86_400)) }
    }

    @Test func `a URL is good for what it was made for and nothing else`() async throws {
        try await withSandbox { sandbox, client async throws in
            let upload = try await client.create(.r2, key: "a.bin", parts: 2)
            let url = upload.urls[0]
            let altered = [
                url.replacingOccurrences(of: "partNumber=1", with: "partNumber=2"),
                url.replacingOccurrences(of: "X-Amz-Expires=3600", with: "X-Amz-Expires=7200"),
                url.replacingOccurrences(of: "/sandbox/a.bin", with: "/sandbox/b.bin"),
                url.replacingOccurrences(of: "127.0.0.1", with: "localhost"),
                String(url.dropLast()) + (url.hasSuffix("0") ? "1" : "0"), url + "&extra=1", url + "zz",
                String(url.dropLast(64)) + String(repeating: "x", count: 64),
            ]
            for address in altered {
                let answer = try await client.send("PUT", address, Data("x".utf8))
                #expect(answer.status == 403 && answer.text.contains("SignatureDoesNotMatch"), "\(address)")
            }
            #expect(try await client.send("GET", url).status == 403)
            let bare = String(url.prefix { $0 != "?" }) + "?partNumber=1&uploadId=\(upload.id)"
            let unsigned = try await client.send("PUT", bare, Data("x".utf8))
            #expect(unsigned.status == 403 && unsigned.text.contains("AccessDenied"))
            #expect(try await client.send("PUT", url, Data("x".utf8)).status == 200)
            #expect(sandbox.openUploads() == [upload.id])
        }
    }

    @Test func `an expired URL is refused as S3 refuses it`() async throws {
        try await withSandbox(urlLifetime: .zero) { _, client async throws in
            let upload = try await client.create(.v1, key: "a", parts: 1)
            let answer = try await client.send("PUT", upload.urls[0], Data("x".utf8))
            #expect(answer.status == 403 && answer.headers["content-type"] == "application/xml")
            for text in ["<Code>AccessDenied</Code>", "<Message>Request has expired</Message>", "<X-Amz-Expires>0<"] {
                #expect(answer.text.contains(text))
            }
        }
    }

    @Test func `keys are compared by value`() {
        #expect(SigningSecret.areEqual("abc", "abc"))
        #expect(!SigningSecret.areEqual("abc", "abd") && !SigningSecret.areEqual("abc", "abcd"))
        #expect(!SigningSecret.areEqual("", "a"))
    }
}
