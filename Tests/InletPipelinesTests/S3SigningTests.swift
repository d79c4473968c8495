import InletCore
import InletLinux
import InletTestSupport
import InletTransfer
import SystemPackage
import Testing

@testable import InletPipelines

/// Signature Version 4 against the vectors that AWS publishes.
@Suite struct S3SigningTests {
    struct Vector: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var method: String
        var path = "/"
        var query: S3API.Query = []
        var headers: HTTPFields = []
        var body = ""
        var signature: String

        init(
            _ name: String, _ method: String, _ path: String = "/", query: S3API.Query = [], headers: HTTPFields = [],
            body: String = "", _ signature: String
        ) {
            testDescription = name
            self.method = method
            self.path = path
            self.query = query
            self.headers = headers
            self.body = body
            self.signature = signature
        }
    }

    /// "Examples: Signature Calculations", Amazon S3 API Reference.
    static let s3: [Vector] = [
        Vector(
            "GET object", "GET", "/test.txt", headers: [("Range", "bytes=0-9")],
            "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"),
        Vector(
            "PUT object", "PUT", "/test%24file.text",
            headers: [("Date", "Fri, 24 May 2013 00:00:00 GMT"), ("x-amz-storage-class", "REDUCED_REDUNDANCY")],
            body: "Welcome to Amazon S3.", "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"),
        Vector(
            "GET bucket lifecycle", "GET", query: [("lifecycle", "")],
            "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"),
        Vector(
            "GET bucket (list objects)", "GET", query: [("max-keys", "2"), ("prefix", "J")],
            "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"),
    ]

    @Test(arguments: s3) func `the examples of the S3 reference come out`(_ vector: Vector) {
        let payload = Checksum.sha256(vector.body.utf8).hex
        let fixed: HTTPFields = [
            ("Host", "examplebucket.s3.amazonaws.com"), ("x-amz-date", "20130524T000000Z"),
            ("x-amz-content-sha256", payload),
        ]
        let scope = SigV4.Scope(time: "20130524T000000Z", region: "us-east-1")
        let request = SigV4(
            method: vector.method, path: vector.path, query: vector.query, headers: fixed + vector.headers,
            payload: payload, scope: scope)
        let key = scope.key(Secret("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"))
        let field = request.authorization(accessKey: "AKIDEXAMPLE", key)
        #expect(field.hasSuffix(", Signature=\(vector.signature)"))
    }

    /// Of the Signature Version 4 test suite, those that hold for S3, which does not normalise paths.
    static let suite: [Vector] = [
        Vector("get-vanilla", "GET", "/", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
        Vector(
            "get-vanilla-query-order-key-case", "GET", query: [("Param2", "value2"), ("Param1", "value1")],
            "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"),
        Vector(
            "get-vanilla-query-order-value", "GET", query: [("Param1", "value2"), ("Param1", "value1")],
            "5772eed61e12b33fae39ee5e7012498b51d56abc0abb7c60486157bd471c4694"),
        Vector(
            "get-vanilla-utf8-query", "GET", query: [("ሴ", "bar")],
            "2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04"),
        Vector("get-utf8", "GET", "/%E1%88%B4", "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85"),
        Vector(
            "get-unreserved", "GET", "/-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
            "07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f"),
        Vector("post-vanilla", "POST", "/", "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"),
        Vector(
            "post-vanilla-query", "POST", query: [("Param1", "value1")],
            "28038455d6de14eafc1f9222cf5aa6f1a96197d7deb8263271d420d138af7f11"),
        Vector(
            "post-header-key-sort", "POST", headers: [("My-Header1", "value1")],
            "c5410059b04c1ee005303aed430f6e6645f61f4dc9e1461ec8f8916fdf18852c"),
        Vector(
            "post-header-value-case", "POST", headers: [("My-Header1", "VALUE1")],
            "cdbc9802e29d2942e5e10b5bccfdd67c5f22c7c4e8ae67b53629efa58b974b7d"),
        Vector(
            "get-header-value-trim", "GET", headers: [("My-Header1", " value1"), ("My-Header2", " \"a   b   c\"")],
            "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736"),
        Vector(
            "get-header-key-duplicate", "GET",
            headers: [("My-Header1", "value2"), ("My-Header1", "value2"), ("My-Header1", "value1")],
            "c9d5ea9f3f72853aea855b47ea873832890dbdd183b4468f858259531a5138ea"),
        Vector(
            "post-x-www-form-urlencoded", "POST", headers: [("Content-Type", "application/x-www-form-urlencoded")],
            body: "Param1=value1", "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a"),
    ]

    @Test(arguments: suite) func `the published test suite comes out`(_ vector: Vector) {
        let scope = SigV4.Scope(time: "20150830T123600Z", region: "us-east-1", service: "service")
        let request = SigV4(
            method: vector.method, path: vector.path, query: vector.query,
            headers: [("Host", "example.amazonaws.com"), ("X-Amz-Date", scope.time)] + vector.headers,
            payload: Checksum.sha256(vector.body.utf8).hex, scope: scope)
        let key = scope.key(Secret("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"))
        let field = request.authorization(accessKey: "AKIDEXAMPLE", key)
        #expect(field.hasSuffix(", Signature=\(vector.signature)"))
    }

    // MARK: - Requests

    private static func api(_ values: [String: ConfigValue] = [:]) throws -> (S3API, HTTPClient) {
        let settings = try S3SettingsTests.settings(values)
        let client = HTTPClient(userAgent: "inlet-tests/1")
        let knowledge = S3StoreKnowledge(checksums: StoreChecksums(), address: "here")
        return (S3API(settings: settings, client: client, knowledge: knowledge), client)
    }

    @Test func `over TLS a file's bytes are not signed, over plain HTTP they are`() throws {
        let (api, client) = try Self.api()
        defer { client.shutdown() }
        let time = WallTime(milliseconds: 1_795_240_800_000)
        let directory = try TemporaryDirectory()
        let source = try SourceFile(opening: try directory.write([1, 2, 3], to: "source"))
        let slice = HTTPBody.slice(source, offset: 0, length: 3)
        var call = S3API.Call(method: "PUT", key: "k", body: slice)
        let unsigned = try api.signed(call, at: time)
        #expect(Self.header("x-amz-content-sha256", unsigned) == "UNSIGNED-PAYLOAD")
        #expect(Self.header("x-amz-date", unsigned) == "20261121T060000Z")
        call.sha256 = Checksum.sha256([1, 2, 3])
        #expect(Self.header("x-amz-content-sha256", try api.signed(call, at: time)) == call.sha256?.hex)
        let empty = try api.signed(S3API.Call(method: "HEAD", key: "k"), at: time)
        #expect(Self.header("x-amz-content-sha256", empty) == Checksum.sha256([]).hex)
        #expect(S3Proving(.md5).slices(isEncrypted: true) == SliceProof(kind: .md5, ahead: []))
        #expect(S3Proving(.md5).slices(isEncrypted: false) == SliceProof(kind: .md5, ahead: [.sha256]))
    }

    @Test func `every field that is sent is signed, the session token too`() throws {
        let (api, client) = try Self.api(["session_token": .secret(Secret("token"))])
        defer { client.shutdown() }
        let call = S3API.Call(
            method: "PUT", key: "a b/ü+.bin", query: [("uploadId", "x/y+="), ("partNumber", "1")],
            headers: [("Content-Type", "video/mp4")])
        let request = try api.signed(call)
        #expect(request.url.redacted == "https://s3.eu-west-1.store.example/media/a%20b/%C3%BC%2B.bin")
        #expect(request.url.text.hasSuffix("?uploadId=x%2Fy%2B%3D&partNumber=1"))
        let authorization = try #require(Self.header("Authorization", request))
        #expect(
            authorization.contains(
                "SignedHeaders=content-type;host;x-amz-content-sha256;x-amz-date;x-amz-security-token,"))
        #expect(authorization.contains("/eu-west-1/s3/aws4_request"))
        #expect(!authorization.contains("secret-canary"))
        #expect(Self.header("x-amz-security-token", request) == "token")
    }

    @Test func `a small file that is in memory is signed as any other`() throws {
        let (api, client) = try Self.api()
        defer { client.shutdown() }
        var call = S3API.Call(method: "PUT", key: "k", body: .bytes([1, 2, 3]))
        #expect(Self.header("x-amz-content-sha256", try api.signed(call)) == Checksum.sha256([1, 2, 3]).hex)
        call.isFile = true
        #expect(Self.header("x-amz-content-sha256", try api.signed(call)) == "UNSIGNED-PAYLOAD")
        call.sha256 = Checksum.sha256([1, 2, 3])
        #expect(Self.header("x-amz-content-sha256", try api.signed(call)) == call.sha256?.hex)
        // curl writes the host itself.
        #expect(Self.header("host", try api.signed(call)) == nil)
    }

    @Test func `the requests of one second share what they are signed with`() throws {
        let keyring = SignerCache(
            .fixed(S3Credentials(accessKey: Secret("a"), secretKey: Secret("s"), sessionToken: nil)))
        let time = WallTime(milliseconds: 1_795_240_800_000)
        let first = try keyring.signer(at: time, region: "auto")
        #expect(first.scope.time == "20261121T060000Z" && first.scope.text == "20261121/auto/s3/aws4_request")
        #expect(try keyring.signer(at: time + .milliseconds(999), region: "auto") === first)
        let next = try keyring.signer(at: time + .seconds(1), region: "auto")
        #expect(next.scope.time == "20261121T060001Z")
        #expect(try keyring.signer(at: time, region: "auto").scope == first.scope)
        let there = try keyring.signer(at: time, region: "eu-west-1")
        #expect(there.scope.text == "20261121/eu-west-1/s3/aws4_request")
        keyring.forget()
        #expect(try keyring.signer(at: time, region: "eu-west-1") !== there)
    }

    @Test func `a store may be silent for as long as its answer may take`() throws {
        let (api, client) = try Self.api()
        defer { client.shutdown() }
        let request = try api.signed(S3API.Call(method: "POST", key: "k", answerDeadline: .seconds(300)))
        #expect(request.answerDeadline == .seconds(300))
        #expect(request.silenceTimeout == .seconds(300))
        #expect(request.stallTimeout == .seconds(60))
    }

    @Test func `the key for a day is kept, and made anew for the next`() throws {
        let keyring = SignerCache(
            .fixed(S3Credentials(accessKey: Secret("a"), secretKey: Secret("s"), sessionToken: nil)))
        let today = WallTime(milliseconds: 1_795_305_599_000)
        let scope = try keyring.signer(at: today, region: "auto").scope
        #expect(scope.time == "20261121T235959Z")
        func signature(_ time: WallTime) throws -> String {
            let request = SigV4(
                method: "GET", path: "/", query: [], headers: [("host", "h")], payload: SigV4.unsignedPayload,
                scope: scope)
            let key = try keyring.signer(at: time, region: "auto").key
            return request.authorization(accessKey: "a", key)
        }
        let first = try signature(today)
        #expect(try signature(today) == first)
        #expect(try signature(today + .seconds(1)) != first)
        #expect(try signature(today) == first)
    }

    private static func header(_ name: String, _ request: HTTPRequest) -> String? {
        request.headers.first { $0.name == name }?.value
    }
}
