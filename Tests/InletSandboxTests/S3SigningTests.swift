import Foundation
import HTTPTypes
import InletCore
import InletTestSupport
import Testing

@testable import InletSandbox

@Suite struct S3SigningTests {
    struct Example: Sendable, CustomStringConvertible {
        var description: String
        var method = "GET"
        var path = "/"
        var query: [(name: String, value: String)] = []
        var fields: [String: String] = [:]
        var payload = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        var signedHeaders: String
        var signature: String
    }

    /// AWS, "Signature Calculations for the Authorization Header: Transferring Payload in a Single Chunk".
    static let published = [
        Example(
            description: "GET object", path: "/test.txt", fields: ["Range": "bytes=0-9"],
            signedHeaders: "host;range;x-amz-content-sha256;x-amz-date",
            signature: "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"),
        Example(
            description: "PUT object", method: "PUT", path: "/test$file.text",
            fields: ["Date": "Fri, 24 May 2013 00:00:00 GMT", "x-amz-storage-class": "REDUCED_REDUNDANCY"],
            payload: "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072",
            signedHeaders: "date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class",
            signature: "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"),
        Example(
            description: "GET bucket lifecycle", query: [("lifecycle", "")],
            signedHeaders: "host;x-amz-content-sha256;x-amz-date",
            signature: "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"),
        Example(
            description: "list objects", query: [("max-keys", "2"), ("prefix", "J")],
            signedHeaders: "host;x-amz-content-sha256;x-amz-date",
            signature: "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"),
    ]

    private static let signer = RequestSigner(
        secret: Secret("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"), accessKey: "AKIAIOSFODNN7EXAMPLE",
        region: "us-east-1")
    private static let moment = WallTime(milliseconds: 1_369_353_600_000)

    private static func fields(_ example: Example) -> HTTPFields {
        var fields = HTTPFields()
        let own = [
            "x-amz-date": "20130524T000000Z", "x-amz-content-sha256": example.payload,
            "Authorization": "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,"
                + "SignedHeaders=\(example.signedHeaders),Signature=\(example.signature)",
        ]
        for (name, value) in own.merging(example.fields, uniquingKeysWith: { $1 }) {
            if let name = HTTPField.Name(name) { fields[name] = value }
        }
        return fields
    }

    @Test(arguments: published)
    func `a published example is verified, and none that differs from it`(_ example: Example) throws {
        let request = SignableRequest(
            method: example.method, path: example.path, query: example.query, host: "examplebucket.s3.amazonaws.com")
        let fields = Self.fields(example)
        try Self.signer.verify(request, fields, sessionToken: nil, now: Self.moment)
        var others = [request, request, request]
        others[0].method = "DELETE"
        others[1].path += "x"
        others[2].host = "other.s3.amazonaws.com"
        for other in others {
            #expect(throws: SandboxRefusal.signatureDoesNotMatch) {
                try Self.signer.verify(other, fields, sessionToken: nil, now: Self.moment)
            }
        }
        for (offset, isGood) in [(900, true), (-900, true), (901, false), (-901, false)] {
            let now = Self.moment + .seconds(offset)
            let verified: Void? = try? Self.signer.verify(request, fields, sessionToken: nil, now: now)
            #expect((verified != nil) == isGood, "\(offset)")
        }
    }

    @Test func `who may not ask is told why`() async throws {
        try await withS3 { sandbox, client async throws in
            let body = Data("x".utf8)
            var other = client
            other.secret = "wrong"
            #expect(try await other.send("PUT", "a", body).refusal == "403 SignatureDoesNotMatch")
            other = client
            other.accessKey = "WRONG"
            #expect(try await other.send("PUT", "a", body).refusal == "403 InvalidAccessKeyId")
            other = client
            other.region = "eu-central-1"
            let region = try await other.send("PUT", "a", body)
            #expect(region.refusal == "400 AuthorizationHeaderMalformed" && region.xml("Region") == "auto")
            other = client
            other.now = client.now + .seconds(-1000)
            let skewed = try await other.send("PUT", "a", body)
            #expect(skewed.refusal == "403 RequestTimeTooSkewed" && skewed.xml("ServerTime") != nil)
            #expect(
                try await client.http.send("PUT", client.http.origin + "/archive/a", body).refusal == "403 AccessDenied"
            )
            let basic = ["Authorization": "Basic abc"]
            let answer = try await client.http.send("GET", client.http.origin + "/archive/a", headers: basic)
            #expect(answer.refusal == "400 AuthorizationHeaderMalformed")
            let token = try await client.send("PUT", "a", body, headers: ["x-amz-security-token": "t"])
            #expect(token.refusal == "400 InvalidToken")
            #expect(sandbox.objects().isEmpty)
        }
    }

    @Test func `a session has its token, and a wrong clock its skew`() async throws {
        var account = S3Client.account
        account.sessionToken = Secret("canary-token")
        try await withS3(account: account, rules: .init(clockOffset: .seconds(3600))) { _, client async throws in
            let token = ["x-amz-security-token": "canary-token"]
            #expect(try await client.send("PUT", "a", Data(), headers: token).refusal == "403 RequestTimeTooSkewed")
            var ahead = client
            ahead.now = client.now + .seconds(3600)
            #expect(try await ahead.send("PUT", "a", Data()).refusal == "400 InvalidToken")
            #expect(try await ahead.send("PUT", "a", Data(), headers: token).status == 200)
        }
    }

    @Test func `every field of x-amz must be signed`() throws {
        var fields = Self.fields(Self.published[0])
        fields["x-amz-copy-source"] = "/bucket/other"
        let request = SignableRequest(method: "GET", path: "/test.txt", host: "examplebucket.s3.amazonaws.com")
        #expect {
            try Self.signer.verify(request, fields, sessionToken: nil, now: Self.moment)
        } throws: { error in
            (error as? SandboxRefusal)?.details.first?.value == "x-amz-copy-source"
        }
    }
}
