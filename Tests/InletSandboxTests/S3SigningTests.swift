import Foundation
import HTTPTypes
import InletCore
import InletTestSupport
import SystemPackage
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
        let request = DecodedRequest(
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
        let request = DecodedRequest(method: "GET", path: "/test.txt", host: "examplebucket.s3.amazonaws.com")
        #expect {
            try Self.signer.verify(request, fields, sessionToken: nil, now: Self.moment)
        } throws: { error in
            (error as? SandboxRefusal)?.details.first?.value == "x-amz-copy-source"
        }
    }
}

/// Runs an S3 sandbox on a folder of its own (or `directory`) while `body` talks to it over real sockets.
func withS3(
    directory: FilePath? = nil, account: S3Sandbox.Account = S3Client.account, faults: S3Fault...,
    rules: S3Sandbox.Rules = .init(), _ body: @Sendable @escaping (S3Sandbox, S3Client) async throws -> Void
) async throws {
    let folder = try TemporaryDirectory()
    let sandbox = try S3Sandbox(
        directory: directory ?? folder.path, account: account, rules: rules, faults: FaultPlan(faults))
    try await whileServing({ try await sandbox.run() }) {
        try await body(sandbox, S3Client(port: try await sandbox.port()))
    }
}

/// A small client that signs every request. The way from a canonical request to its signature is the sandbox's own,
/// which the published examples prove.
struct S3Client: Sendable {
    static let account = S3Sandbox.Account(bucket: "archive", accessKey: "AKID", secretKey: Secret("canary-secret"))

    let http: SandboxClient
    var accessKey = "AKID"
    var secret = "canary-secret"
    var region = "auto"
    var now = WallTime(milliseconds: Int64(Date().timeIntervalSince1970 * 1000))
    var bucket = "archive"

    init(port: Int) { http = SandboxClient(port: port) }

    /// The address and the fields of a signed request.
    ///
    /// - Parameters:
    ///   - path: A key, or empty for the bucket itself.
    ///   - payload: The value of `x-amz-content-sha256`.
    func sign(
        _ method: String, _ path: String, query: [(String, String)], payload: String, headers: [String: String]
    ) -> (url: String, fields: [String: String]) {
        let full = "/\(bucket)/\(path)"
        let request = DecodedRequest(
            method: method, path: full, query: query.map { (name: $0.0, value: $0.1) }, host: "127.0.0.1:\(http.port)")
        let stamp = SigningTime(now)
        var fields = headers.merging(["x-amz-date": stamp.text, "x-amz-content-sha256": payload]) { $1 }
        let signer = RequestSigner(secret: Secret(secret), accessKey: accessKey, region: region)
        let covered = fields.map { ($0.key.lowercased(), $0.value) }.filter { $0.0.hasPrefix("x-amz-") }
        let sorted = (covered + [("host", request.host)]).sorted { $0.0 < $1.0 }
        let names = sorted.map(\.0).joined(separator: ";")
        let lines = sorted.map { "\($0.0):\($0.1)\n" }.joined()
        let canonical = [method, URIText.encodePath(full), request.canonicalQuery, lines, names, payload]
            .joined(separator: "\n")
        fields["Authorization"] =
            "AWS4-HMAC-SHA256 Credential=\(accessKey)/\(signer.scope(at: stamp)), SignedHeaders=\(names), "
            + "Signature=\(signer.signature(of: canonical, at: stamp).hex)"
        let url = http.origin + URIText.encodePath(full) + (query.isEmpty ? "" : "?" + request.canonicalQuery)
        return (url, fields)
    }

    /// - Parameter signed: The value of `x-amz-content-sha256`; nil = the body's own.
    func send(
        _ method: String, _ path: String, query: [(String, String)] = [], _ body: Data? = nil,
        headers: [String: String] = [:], signed: String? = nil
    ) async throws -> SandboxClient.Answer {
        let payload = signed ?? sha256(body ?? Data())
        let (url, fields) = sign(method, path, query: query, payload: payload, headers: headers)
        return try await http.send(method, url, body, headers: fields)
    }

    /// curl's exit status, for connections that end without an answer.
    func curl(
        _ method: String, _ path: String, query: [(String, String)] = [], _ body: String
    ) async throws -> Int32 {
        let (url, fields) = sign(method, path, query: query, payload: sha256(Data(body.utf8)), headers: [:])
        let headers = fields.flatMap { ["-H", "\($0.key): \($0.value)"] }
        return try await SandboxClient.curl(["-X", method, "--data-binary", body, "-m", "120", url] + headers)
    }

    func create(_ key: String, headers: [String: String] = [:]) async throws -> String {
        let answer = try await send("POST", key, query: [("uploads", "")], headers: headers)
        guard let id = answer.xml("UploadId") else { throw Refused(answer: answer.text) }
        return id
    }

    func part(_ key: String, _ upload: String, _ number: Int, _ body: Data) async throws -> SandboxClient.Answer {
        try await send("PUT", key, query: [("partNumber", String(number)), ("uploadId", upload)], body)
    }

    func complete(
        _ key: String, _ upload: String, _ etags: [(Int, String)], headers: [String: String] = [:]
    ) async throws -> SandboxClient.Answer {
        let body = Data(Self.list(etags).utf8)
        return try await send("POST", key, query: [("uploadId", upload)], body, headers: headers)
    }

    /// The body of complete.
    static func list(_ etags: [(Int, String)]) -> String {
        let parts = etags.map { number, etag in
            "<Part><ETag>\(etag.replacing("\"", with: "&quot;"))</ETag><PartNumber>\(number)</PartNumber></Part>"
        }
        return "<CompleteMultipartUpload xmlns=\"x\">\(parts.joined())</CompleteMultipartUpload>"
    }

    /// Sends `parts`, numbered from 1, to a new upload that stays open.
    func open(_ key: String, _ parts: [Data]) async throws -> (upload: String, etags: [(Int, String)]) {
        let upload = try await create(key)
        var etags: [(Int, String)] = []
        for (index, body) in parts.enumerated() {
            let answer = try await part(key, upload, index + 1, body)
            etags.append((index + 1, answer.headers["etag"] ?? ""))
        }
        return (upload, etags)
    }
}

extension SandboxClient.Answer {
    /// The text of the first element `name`.
    func xml(_ name: String) -> String? { xmls(name).first }

    /// The texts of all elements `name`.
    func xmls(_ name: String) -> [String] {
        text.split(separator: "<\(name)>").dropFirst().compactMap { piece in
            piece.firstRange(of: "</\(name)>").map { String(piece[..<$0.lowerBound]) }
        }
    }

    /// `403 AccessDenied`, as the tables of refusals name them.
    var refusal: String { "\(status) \(xml("Code") ?? "")" }
}
