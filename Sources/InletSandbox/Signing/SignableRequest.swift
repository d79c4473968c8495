import Foundation

/// What a signature covers: method, path, query and the headers it names.
struct SignableRequest: Sendable {
    var method: String
    /// Decoded, with its leading slash.
    var path: String
    /// Decoded names and values, in any order.
    var query: [(name: String, value: String)]
    var host: String
    /// Part of the signature where present: a presigned single PUT must be sent with the content type it was made for.
    var contentType: String?

    init(
        method: String, path: String, query: [(name: String, value: String)] = [], host: String,
        contentType: String? = nil
    ) {
        self.method = method
        self.path = path
        self.query = query
        self.host = host
        self.contentType = contentType
    }

    var signedHeaders: String { contentType == nil ? "host" : "content-type;host" }

    func value(_ name: String) -> String? { query.first { $0.name == name }?.value }

    var canonicalQuery: String {
        query.map { (URIText.encode($0.name), URIText.encode($0.value)) }.sorted { $0 < $1 }
            .map { "\($0.0)=\($0.1)" }.joined(separator: "&")
    }

    /// The "canonical request" of the specification; bodies of presigned requests are not signed.
    var canonicalText: String {
        let type = contentType.map { "content-type:\($0)\n" } ?? ""
        return [
            method, URIText.encodePath(path), canonicalQuery, "\(type)host:\(host)\n", signedHeaders,
            "UNSIGNED-PAYLOAD",
        ].joined(separator: "\n")
    }
}

/// Percent-encoding by the rules of AWS's `UriEncode`: everything but unreserved characters, in upper-case hex.
enum URIText {
    static func encode(_ text: String) -> String { encode(text, keeping: []) }
    static func encodePath(_ path: String) -> String { encode(path, keeping: [UInt8(ascii: "/")]) }

    /// The text that `encoded` stands for; nil when its bytes are not UTF-8 or an escape is broken.
    static func decode(_ encoded: some StringProtocol) -> String? { encoded.removingPercentEncoding }

    /// The decoded pairs of a query; nil when one of them cannot be decoded.
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
        text.utf8.map { byte in
            switch byte {
            case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
                UInt8(ascii: "~"):
                return String(UnicodeScalar(byte))
            case let byte where kept.contains(byte): return String(UnicodeScalar(byte))
            default: return (byte < 16 ? "%0" : "%") + String(byte, radix: 16, uppercase: true)
            }
        }.joined()
    }
}
