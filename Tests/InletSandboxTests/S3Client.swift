import Foundation
import InletCore
import InletTestSupport
import SystemPackage

@testable import InletSandbox

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
        let request = SignableRequest(
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
