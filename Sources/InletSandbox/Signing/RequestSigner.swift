import Foundation
import HTTPTypes
import Hummingbird
import InletCore
import SystemPackage

/// A key pair in a region. Signs and verifies by AWS Signature Version 4 for S3, in the query (AWS, "Authenticating
/// requests: using query parameters") and in the Authorization header. Refuses as S3 does.
struct RequestSigner: Sendable {
    static let algorithm = "AWS4-HMAC-SHA256"
    /// The longest lifetime of a presigned URL: 7 days, in seconds.
    private static let longestLifetime: Int64 = 604_800
    /// The largest difference between the client's clock and the server's: 15 minutes.
    private static let allowedSkew = Duration.seconds(900)

    let secret: Secret
    var accessKey = "SANDBOX"
    var region = "auto"

    /// `20261121/auto/s3/aws4_request`.
    func scope(at stamp: SigningTime) -> String { "\(stamp.text.prefix(8))/\(region)/s3/aws4_request" }

    func signature(of canonicalRequest: String, at stamp: SigningTime) -> [UInt8] {
        key(at: stamp).code(of: stringToSign(canonicalRequest, at: stamp).utf8)
    }

    /// Whether `hex` is the signature of `canonicalRequest`; compared in constant time.
    private func isSignature(_ hex: String, of canonicalRequest: String, at stamp: SigningTime) -> Bool {
        guard let bytes = Digest(.sha256, hex: hex)?.bytes, bytes.count == 32 else { return false }
        return key(at: stamp).isCode(bytes, of: stringToSign(canonicalRequest, at: stamp).utf8)
    }

    private func stringToSign(_ canonicalRequest: String, at stamp: SigningTime) -> String {
        let hash = SHA256.digest(of: canonicalRequest.utf8).hex
        return [Self.algorithm, stamp.text, scope(at: stamp), hash].joined(separator: "\n")
    }

    private func key(at stamp: SigningTime) -> MessageCode {
        let first = MessageCode(key: "AWS4\(secret.reveal())".utf8)
        return scope(at: stamp).split(separator: "/").reduce(first) { MessageCode(key: $0.code(of: $1.utf8)) }
    }
}

// MARK: - In the query

extension RequestSigner {
    /// The query that makes `request` valid for `lifetime` seconds from `now`.
    func presign(_ request: DecodedRequest, lifetime: Int64, now: WallTime) -> String {
        var signed = request
        let stamp = SigningTime(now)
        signed.query += [
            ("X-Amz-Algorithm", Self.algorithm), ("X-Amz-Credential", "\(accessKey)/\(scope(at: stamp))"),
            ("X-Amz-Date", stamp.text), ("X-Amz-Expires", String(lifetime)),
            ("X-Amz-SignedHeaders", signed.signedHeaders),
        ]
        let signature = signature(of: signed.canonicalText, at: stamp).hex
        return signed.canonicalQuery + "&X-Amz-Signature=" + signature
    }

    /// An address that is valid for `lifetime` seconds, unless a fault changes that.
    func url(_ request: DecodedRequest, lifetime: Int64, now: WallTime, fault: FaultAction?) -> String {
        var origin = "http://\(request.host)"
        if case .partURLs(.origin(let other))? = fault { origin = other }
        let query = presign(request, lifetime: fault == .expiredURLs ? 0 : lifetime, now: now)
        return origin + URIText.encodePath(request.path) + "?" + query
    }

    /// Checks the signature and lifetime of a request that claims to be presigned; 403 as S3 answers it.
    func verify(_ request: DecodedRequest, now: WallTime) throws(SandboxRefusal) {
        var unsigned = request
        unsigned.query.removeAll { $0.name == "X-Amz-Signature" }
        guard let given = request.value("X-Amz-Signature"), request.value("X-Amz-Algorithm") == Self.algorithm,
            let stamp = SigningTime(text: request.value("X-Amz-Date") ?? ""),
            let lifetime = request.value("X-Amz-Expires").flatMap(Int64.init),
            (0...Self.longestLifetime).contains(lifetime)
        else { throw .accessDenied("The request carries no complete query signature.") }
        guard request.value("X-Amz-Credential") == "\(accessKey)/\(scope(at: stamp))",
            isSignature(given, of: unsigned.canonicalText, at: stamp)
        else { throw .signatureDoesNotMatch }
        let end = stamp.time + .seconds(lifetime)
        guard now < end else {
            throw .accessDenied(
                "Request has expired",
                details: [
                    "X-Amz-Expires": String(lifetime), "Expires": end.rfc3339, "ServerTime": now.rfc3339,
                ])
        }
    }
}

// MARK: - In the Authorization header

extension RequestSigner {
    /// - Parameters:
    ///   - request: The decoded method, path, query and host of `fields`.
    ///   - sessionToken: The required `x-amz-security-token`; nil = none is allowed.
    func verify(_ request: DecodedRequest, _ fields: HTTPFields, sessionToken: Secret?, now: WallTime)
        throws(SandboxRefusal)
    {
        guard let authorization = fields[.authorization] else {
            throw .accessDenied("The request carries no signature.")
        }
        let pairs = try Self.pairs(authorization)
        let credential = (pairs["Credential"] ?? "").split(separator: "/").map(String.init)
        guard credential.count >= 5, let signed = pairs["SignedHeaders"], let signature = pairs["Signature"] else {
            throw Self.malformed("Credential, SignedHeaders and Signature are needed")
        }
        // A key id may contain slashes; the scope follows it.
        let key = credential.dropLast(4).joined(separator: "/")
        guard key == accessKey else {
            throw SandboxRefusal(
                403, "InvalidAccessKeyId", "The AWS Access Key Id you provided does not exist in our records.",
                details: ["AWSAccessKeyId": key])
        }
        guard let stamp = SigningTime(text: fields["x-amz-date"] ?? "") else {
            throw .accessDenied("AWS authentication requires a valid x-amz-date.")
        }
        try checkScope(credential.suffix(4).joined(separator: "/"), region: credential[credential.count - 3], stamp)
        try Self.checkPayload(fields)
        let names = signed.split(separator: ";").map(String.init)
        try Self.checkCoverage(names, fields)
        guard isSignature(signature, of: request.canonicalText(names, fields), at: stamp) else {
            throw .signatureDoesNotMatch
        }
        guard max(stamp.time - now, now - stamp.time) <= Self.allowedSkew else {
            throw SandboxRefusal(
                403, "RequestTimeTooSkewed",
                "The difference between the request time and the current time is too large.",
                details: [
                    "RequestTime": stamp.text, "ServerTime": now.rfc3339, "MaxAllowedSkewMilliseconds": "900000",
                ])
        }
        guard SigningSecret.areEqual(fields["x-amz-security-token"] ?? "", sessionToken?.reveal() ?? "") else {
            throw SandboxRefusal(400, "InvalidToken", "The provided token is malformed or otherwise invalid.")
        }
    }

    /// The pieces of `AWS4-HMAC-SHA256 Credential=…, SignedHeaders=…, Signature=…`.
    private static func pairs(_ authorization: String) throws(SandboxRefusal) -> [String: String] {
        guard authorization.hasPrefix(algorithm + " ") else { throw malformed("only \(algorithm) is understood") }
        var pairs: [String: String] = [:]
        for item in authorization.dropFirst(algorithm.count + 1).split(separator: ",") {
            let halves = item.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            pairs[String(halves[0].filter { $0 != " " })] = halves.count == 2 ? String(halves[1]) : ""
        }
        return pairs
    }

    private func checkScope(_ given: String, region: String, _ stamp: SigningTime) throws(SandboxRefusal) {
        guard region == self.region else {
            throw Self.malformed(
                "the region '\(region)' is wrong; expecting '\(self.region)'", details: ["Region": self.region])
        }
        guard given == scope(at: stamp) else {
            throw Self.malformed("the scope is not <date of x-amz-date>/<region>/s3/aws4_request")
        }
    }

    /// `x-amz-content-sha256` must say how the body is covered.
    private static func checkPayload(_ fields: HTTPFields) throws(SandboxRefusal) {
        guard let text = fields["x-amz-content-sha256"] else {
            throw .badRequest("Missing required header for this request: x-amz-content-sha256")
        }
        guard !text.hasPrefix("STREAMING-") else { throw .notImplemented("A body in signed chunks") }
        guard text == "UNSIGNED-PAYLOAD" || Digest(.sha256, hex: text)?.bytes.count == 32 else {
            throw .invalidArgument("x-amz-content-sha256 must be UNSIGNED-PAYLOAD or a SHA-256 in hexadecimal.")
        }
    }

    /// `host` and every `x-amz-` field must be covered.
    private static func checkCoverage(_ signed: [String], _ fields: HTTPFields) throws(SandboxRefusal) {
        let needed = ["host"] + fields.map(\.name.canonicalName).filter { $0.hasPrefix("x-amz-") }
        guard let missing = needed.first(where: { !signed.contains($0) }) else { return }
        throw .accessDenied(
            "There were headers present in the request which were not signed",
            details: ["HeadersNotSigned": missing])
    }

    private static func malformed(_ reason: String, details: KeyValuePairs<String, String> = [:]) -> SandboxRefusal {
        SandboxRefusal(
            400, "AuthorizationHeaderMalformed", "The authorization header is malformed; \(reason).", details: details)
    }
}

/// The moment of signing, to the second.
struct SigningTime {
    var time: WallTime
    /// `20261121T072000Z`.
    var text: String

    init(_ time: WallTime) {
        text = time.rfc3339Seconds.filter { $0 != "-" && $0 != ":" }
        self.time = WallTime(milliseconds: time.milliseconds / 1000 * 1000)
    }

    /// nil for a text that is not exactly such a time.
    init?(text: String) {
        guard let parts = text.wholeMatch(of: /(\d{4})(\d\d)(\d\dT\d\d)(\d\d)(\d\dZ)/)?.output,
            let time = WallTime(rfc3339: "\(parts.1)-\(parts.2)-\(parts.3):\(parts.4):\(parts.5)")
        else { return nil }
        self.init(time)
        guard self.text == text else { return nil }
    }
}

/// The sandbox's own signing key: made once, and kept in `signing.key` (mode 0600) so that URLs survive a restart.
enum SigningSecret {
    static func load(from root: FilePath) throws -> Secret {
        let path = root.appending("signing.key")
        if FileManager.default.fileExists(atPath: path.string) {
            let text = try String(contentsOfFile: path.string, encoding: .utf8)
            if text.count == 64 { return Secret(text) }
        }
        let text = [UInt8].unforeseeable(32).hex
        let draft = root.appending("signing.key.\(UUID().uuidString)")
        let file = try FileDescriptor.open(
            draft, .writeOnly, options: [.create, .exclusiveCreate, .closeOnExec], permissions: [.ownerReadWrite])
        _ = try file.closeAfter { try file.writeAll(text.utf8) }
        try FileMove.rename(draft, to: path)
        return Secret(text)
    }

    /// Compares in constant time.
    static func areEqual(_ left: String, _ right: String) -> Bool {
        MessageCode.areEqual(Array(left.utf8), Array(right.utf8))
    }
}

/// A request's decoded address, for tables of calls and signatures.
struct DecodedRequest: Sendable {
    var method: String
    /// Decoded, with its leading slash.
    var path: String
    /// Decoded names and values, in any order.
    var query: [(name: String, value: String)] = []
    var host: String
    /// Signed if present: a presigned single PUT must be sent with the content type that it was made for.
    var contentType: String?

    var signedHeaders: String { contentType == nil ? "host" : "content-type;host" }

    func value(_ name: String) -> String? { query.first { $0.name == name }?.value }

    var canonicalQuery: String {
        query.map { (URIText.encode($0.name), URIText.encode($0.value)) }.sorted { $0 < $1 }
            .map { "\($0.0)=\($0.1)" }.joined(separator: "&")
    }

    /// The "canonical request" of the specification; it leaves out bodies of presigned requests.
    var canonicalText: String {
        let type = contentType.map { "content-type:\($0)\n" } ?? ""
        return canonicalText("\(type)host:\(host)\n", signedHeaders, payload: "UNSIGNED-PAYLOAD")
    }

    /// The same for a request with an Authorization field that covers the fields `names`.
    func canonicalText(_ names: [String], _ fields: HTTPFields) -> String {
        let lines = names.map { name in
            let value = name == "host" ? host : fields[name] ?? ""
            // Leading, trailing and repeated blanks do not count.
            return "\(name):\(value.split(separator: " ").joined(separator: " "))\n"
        }
        return canonicalText(
            lines.joined(), names.joined(separator: ";"), payload: fields["x-amz-content-sha256"] ?? "")
    }

    private func canonicalText(_ lines: String, _ names: String, payload: String) -> String {
        [method, URIText.encodePath(path), canonicalQuery, lines, names, payload].joined(separator: "\n")
    }
}

extension DecodedRequest {
    /// The canonical request of the arrived request; nil if its path or query cannot be decoded.
    init?(_ request: Request) {
        let halves = (request.head.path ?? "/").split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        guard let path = URIText.decode(halves[0]),
            let query = URIText.decodeQuery(halves.count > 1 ? String(halves[1]) : "")
        else { return nil }
        let signsType = query.contains { $0.name == "X-Amz-SignedHeaders" && $0.value == "content-type;host" }
        self.init(
            method: request.method.rawValue, path: path, query: query, host: request.head.authority ?? "",
            contentType: signsType ? request.headers[.contentType] ?? "" : nil)
    }
}

/// Percent-encoding by AWS's `UriEncode`: everything but unreserved characters, in upper-case hex.
enum URIText {
    private static let unreserved = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~".utf8)

    static func encode(_ text: String) -> String { encode(text, keeping: unreserved) }
    static func encodePath(_ path: String) -> String { encode(path, keeping: unreserved.union("/".utf8)) }

    /// The decoded text; nil if its bytes are not UTF-8 or an escape is broken.
    static func decode(_ encoded: some StringProtocol) -> String? { encoded.removingPercentEncoding }

    /// The decoded pairs of a query; nil if one cannot be decoded.
    static func decodeQuery(_ query: String) -> [(name: String, value: String)]? {
        var pairs: [(name: String, value: String)] = []
        for item in query.split(separator: "&") {
            let halves = item.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard let name = decode(halves[0]), let value = decode(halves.count > 1 ? halves[1] : "") else {
                return nil
            }
            pairs.append((name, value))
        }
        return pairs
    }

    private static func encode(_ text: String, keeping kept: Set<UInt8>) -> String {
        text.utf8.map { kept.contains($0) ? String(UnicodeScalar($0)) : "%" + [$0].hex.uppercased() }.joined()
    }
}
