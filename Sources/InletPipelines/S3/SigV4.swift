internal import InletCore
internal import InletTransfer

/// AWS Signature Version 4 with an Authorization header, as pure values ("Authenticating Requests: Using the Authorization
/// Header", Amazon S3 API Reference). Paths are not normalised: an S3 key may hold `..` and `//`.
struct SigV4: Sendable {
    /// `x-amz-content-sha256` of a body that the signature does not cover, for use over TLS.
    static let unsignedPayload = "UNSIGNED-PAYLOAD"
    static let algorithm = "AWS4-HMAC-SHA256"

    /// When and where a signature is valid.
    struct Scope: Sendable, Hashable {
        /// `20130524T000000Z`
        let time: String
        let region: String
        let service: String
        let day: String
        /// As it is signed and named: `20130524/us-east-1/s3/aws4_request`.
        let text: String

        init(time: String, region: String, service: String = "s3") {
            self.time = time
            self.region = region
            self.service = service
            day = String(time.prefix(8))
            text = "\(day)/\(region)/\(service)/aws4_request"
        }

        /// A secret key's derivation for this day, region and service; worth keeping, because it costs four hashes.
        func key(_ secret: Secret) -> MessageCode {
            [day, region, service, "aws4_request"].reduce(MessageCode(key: ("AWS4" + secret.reveal()).utf8)) {
                MessageCode(key: $0.code(of: $1.utf8))
            }
        }
    }

    private typealias Field = (key: String, value: String)

    private let method: String
    private let path: String
    private let query: [(name: String, value: String)]
    private let payload: String
    private let scope: Scope
    /// Names and values of the signed fields, in the order of their names; several of one name are one field.
    private let fields: [Field]

    /// - Parameters:
    ///   - path: as sent, percent-encoded.
    ///   - query: not encoded, in any order.
    ///   - headers: every signed field, `host` among them.
    ///   - payload: hexadecimal SHA-256 of the body, or `unsignedPayload`.
    init(
        method: String, path: String, query: [(name: String, value: String)], headers: HTTPFields, payload: String,
        scope: Scope
    ) {
        (self.method, self.path, self.query, self.payload) = (method, path, query, payload)
        self.scope = scope
        fields = Self.canonicalFields(headers)
    }

    /// The value of the Authorization field. Every small file needs one: its steps are written into one buffer.
    func authorization(accessKey: String, _ key: MessageCode) -> String {
        var text: [UInt8] = []
        text.reserveCapacity(Self.usualLength)
        let signature = sign(key, using: &text)
        text += Self.algorithm.utf8
        text += " Credential=".utf8
        text += accessKey.utf8
        text.append(UInt8(ascii: "/"))
        text += scope.text.utf8
        text += ", SignedHeaders=".utf8
        writeNames(to: &text)
        text += ", Signature=".utf8
        Self.writeHex(signature, to: &text)
        return String(decoding: text, as: UTF8.self)
    }

    /// The size of the canonical request, the longest of the three texts.
    private static let usualLength = 1024

    /// - Parameter text: an empty buffer, which is empty again afterwards.
    private func sign(_ key: MessageCode, using text: inout [UInt8]) -> [UInt8] {
        writeCanonicalRequest(to: &text)
        let hash = SHA256.bytes(of: text)
        text.removeAll(keepingCapacity: true)
        Self.write(Self.algorithm, endingWith: "\n", to: &text)
        Self.write(scope.time, endingWith: "\n", to: &text)
        Self.write(scope.text, endingWith: "\n", to: &text)
        Self.writeHex(hash, to: &text)
        let code = key.code(of: text)
        text.removeAll(keepingCapacity: true)
        return code
    }

    private func writeCanonicalRequest(to text: inout [UInt8]) {
        Self.write(method, endingWith: "\n", to: &text)
        Self.write(path, endingWith: "\n", to: &text)
        Self.write(Self.canonicalQuery(query), endingWith: "\n", to: &text)
        for (name, value) in fields {
            Self.write(name, endingWith: ":", to: &text)
            Self.write(value, endingWith: "\n", to: &text)
        }
        text.append(UInt8(ascii: "\n"))
        writeNames(to: &text)
        text.append(UInt8(ascii: "\n"))
        text += payload.utf8
    }

    /// The names of the signed fields, as the Authorization field lists them.
    private func writeNames(to text: inout [UInt8]) {
        for field in fields { Self.write(field.key, endingWith: ";", to: &text) }
        if !fields.isEmpty { text.removeLast() }
    }

    private static func write(_ part: String, endingWith end: Unicode.Scalar, to text: inout [UInt8]) {
        text += part.utf8
        text.append(UInt8(ascii: end))
    }

    /// As `Sequence.hex`, without a string of its own.
    private static func writeHex(_ bytes: [UInt8], to text: inout [UInt8]) {
        func digit(_ value: UInt8) -> UInt8 { value + (value < 10 ? UInt8(ascii: "0") : UInt8(ascii: "a") - 10) }
        for byte in bytes {
            text.append(digit(byte >> 4))
            text.append(digit(byte & 15))
        }
    }

    private static func canonicalFields(_ headers: HTTPFields) -> [Field] {
        var fields: [Field] = headers.map { (lowercased($0.name), collapsed($0.value)) }
        // Names are ASCII, ordered by their bytes. Sorting is stable: values of one name keep their order.
        fields.sort { $0.key < $1.key }
        guard zip(fields, fields.dropFirst()).contains(where: { $0.key == $1.key }) else { return fields }
        var joined: [Field] = []
        for field in fields {
            if joined.last?.key == field.key {
                joined[joined.count - 1].value += "," + field.value
            } else {
                joined.append(field)
            }
        }
        return joined
    }

    /// Sorted by encoded name, then value; also the form in which the query is sent.
    static func canonicalQuery(_ query: [(name: String, value: String)]) -> String {
        if query.isEmpty { return "" }
        let encoded = query.map { (Percent.encode($0.name[...]), Percent.encode($0.value[...])) }
        let sorted = encoded.sorted { left, right in
            left.0 == right.0
                ? left.1.utf8.lexicographicallyPrecedes(right.1.utf8)
                : left.0.utf8.lexicographicallyPrecedes(right.0.utf8)
        }
        return sorted.map { "\($0.0)=\($0.1)" }.joined(separator: "&")
    }

    /// Most names need no change: the others cost an allocation.
    private static func lowercased(_ name: String) -> String {
        name.utf8.contains { (0x41...0x5A).contains($0) } ? name.lowercased() : name
    }

    /// Trimmed, with runs of spaces replaced by one.
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
}

extension WallTime {
    /// `20261121T072000Z` (ISO 8601, basic form), as signatures have it.
    var signingTime: String {
        let digits = rfc3339.utf8.prefix(19).filter { $0 != UInt8(ascii: "-") && $0 != UInt8(ascii: ":") }
        return String(decoding: digits, as: UTF8.self) + "Z"
    }

    /// Reads the output of `signingTime`.
    init?(signingTime text: String) {
        guard text.utf8.count == 16 else { return nil }
        var long = Array(text.utf8)
        for (place, mark) in [(4, "-"), (7, "-"), (13, ":"), (16, ":")] {
            long.insert(contentsOf: mark.utf8, at: place)
        }
        self.init(rfc3339: String(decoding: long, as: UTF8.self))
    }
}
