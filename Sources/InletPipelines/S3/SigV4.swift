internal import Crypto
internal import InletCore
internal import InletTransfer

/// AWS Signature Version 4 with an Authorization header, as pure values ("Authenticating Requests: Using the Authorization
/// Header", Amazon S3 API Reference). Paths are not normalised: an S3 key may hold `..` and `//`.
struct SigV4: Sendable {
    /// `x-amz-content-sha256` of a body that the signature does not cover, for use over TLS.
    static let unsignedPayload = "UNSIGNED-PAYLOAD"
    static let algorithm = "AWS4-HMAC-SHA256"

    /// What is signed of a request.
    struct Request: Sendable {
        var method: String
        /// As on the wire, percent-encoded.
        var path: String
        /// Not encoded, in any order.
        var query: [(name: String, value: String)]
        /// Every field that is signed, `host` among them.
        var headers: HTTPFields
        /// Hexadecimal SHA-256 of the body, or `unsignedPayload`.
        var payload: String
    }

    /// When and where a signature is valid.
    struct Scope: Sendable, Hashable {
        /// `20130524T000000Z`
        var time: String
        var region: String
        var service = "s3"

        var day: String { String(time.prefix(8)) }
        var text: String { "\(day)/\(region)/\(service)/aws4_request" }
    }

    private let request: Request
    private let scope: Scope
    /// Names and values of the signed fields, in the order of their names; those of one name are one field.
    private let fields: [(key: String, value: String)]
    let signedHeaders: String

    init(request: Request, scope: Scope) {
        self.request = request
        self.scope = scope
        // Sorting is stable: values of one name stay in their order.
        let sorted = request.headers.map { (key: Self.lowercased($0.name), value: Self.collapsed($0.value)) }
            .sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
        var fields: [(key: String, value: String)] = []
        for field in sorted {
            if fields.last?.key == field.key {
                fields[fields.count - 1].value += "," + field.value
            } else {
                fields.append(field)
            }
        }
        self.fields = fields
        signedHeaders = fields.map(\.key).joined(separator: ";")
    }

    var canonicalRequest: String {
        var text = "\(request.method)\n\(request.path)\n\(Self.canonicalQuery(request.query))\n"
        for (name, value) in fields { text += "\(name):\(value)\n" }
        return text + "\n\(signedHeaders)\n\(request.payload)"
    }

    var stringToSign: String {
        "\(Self.algorithm)\n\(scope.time)\n\(scope.text)\n\(Checksum.sha256(canonicalRequest.utf8).hex)"
    }

    /// The signature, in hexadecimal.
    func signature(_ key: SigningKey) -> String { Self.hmac(key.key, stringToSign).hex }

    /// The value of the Authorization field.
    func authorization(accessKey: String, _ key: SigningKey) -> String {
        "\(Self.algorithm) Credential=\(accessKey)/\(scope.text), SignedHeaders=\(signedHeaders), "
            + "Signature=\(signature(key))"
    }

    /// Sorted by encoded name, then value; also the form in which the query goes on the wire.
    static func canonicalQuery(_ query: [(name: String, value: String)]) -> String {
        let encoded = query.map { (Percent.encode($0.name[...]), Percent.encode($0.value[...])) }
        let sorted = encoded.sorted { left, right in
            left.0 == right.0
                ? left.1.utf8.lexicographicallyPrecedes(right.1.utf8)
                : left.0.utf8.lexicographicallyPrecedes(right.0.utf8)
        }
        return sorted.map { "\($0.0)=\($0.1)" }.joined(separator: "&")
    }

    /// Most names are as they must be: the others cost an allocation.
    private static func lowercased(_ name: String) -> String {
        name.utf8.contains { (0x41...0x5A).contains($0) } ? name.lowercased() : name
    }

    /// Without spaces at the ends, and with one instead of many within.
    private static func collapsed(_ value: String) -> String {
        let space = UInt8(ascii: " ")
        var last = space
        let isCollapsed = value.utf8.allSatisfy { byte in
            defer { last = byte }
            return byte != space || last != space
        }
        if isCollapsed, last != space { return value }
        return value.split(separator: " ").joined(separator: " ")
    }

    fileprivate static func hmac(_ key: SymmetricKey, _ text: String) -> HMAC<SHA256>.MAC {
        var code = HMAC<SHA256>(key: key)
        var text = text
        text.withUTF8 { code.update(data: UnsafeRawBufferPointer($0)) }
        return code.finalize()
    }
}

/// What a secret key becomes for one day, region and service; worth keeping, because it costs four hashes.
struct SigningKey: Sendable {
    fileprivate let key: SymmetricKey

    init(secret: Secret, _ scope: SigV4.Scope) {
        var key = SymmetricKey(data: Array(("AWS4" + secret.reveal()).utf8))
        for step in [scope.day, scope.region, scope.service, "aws4_request"] {
            key = SymmetricKey(data: SigV4.hmac(key, step))
        }
        self.key = key
    }
}

extension WallTime {
    /// `20261121T072000Z` (ISO 8601, basic form), as signatures have it.
    var signingTime: String {
        let digits = rfc3339.utf8.prefix(19).filter { $0 != UInt8(ascii: "-") && $0 != UInt8(ascii: ":") }
        return String(decoding: digits, as: UTF8.self) + "Z"
    }
}
