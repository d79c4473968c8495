import Foundation
import HTTPTypes
import Hummingbird
import InletCore

/// A request's address, decoded: what tables of calls and signatures go by.
struct DecodedRequest: Sendable {
    var method: String
    /// Decoded, with its leading slash.
    var path: String
    /// Decoded names and values, in any order.
    var query: [(name: String, value: String)] = []
    var host: String
    /// Part of the signature where present: a presigned single PUT must be sent with the content type it was made for.
    var contentType: String?

    var signedHeaders: String { contentType == nil ? "host" : "content-type;host" }

    func value(_ name: String) -> String? { query.first { $0.name == name }?.value }

    var canonicalQuery: String {
        query.map { (URIText.encode($0.name), URIText.encode($0.value)) }.sorted { $0 < $1 }
            .map { "\($0.0)=\($0.1)" }.joined(separator: "&")
    }

    /// The "canonical request" of the specification; bodies of presigned requests are not signed.
    var canonicalText: String {
        let type = contentType.map { "content-type:\($0)\n" } ?? ""
        return canonicalText("\(type)host:\(host)\n", signedHeaders, payload: "UNSIGNED-PAYLOAD")
    }

    /// That of a request with an Authorization field that covers the fields `names`.
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
    /// What a signature of the arrived request would have to cover. nil when the path or query is not decodable.
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

/// Percent-encoding by the rules of AWS's `UriEncode`: everything but unreserved characters, in upper-case hex.
enum URIText {
    private static let unreserved = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~".utf8)

    static func encode(_ text: String) -> String { encode(text, keeping: unreserved) }
    static func encodePath(_ path: String) -> String { encode(path, keeping: unreserved.union("/".utf8)) }

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
        text.utf8.map { kept.contains($0) ? String(UnicodeScalar($0)) : "%" + [$0].hex.uppercased() }.joined()
    }
}
