internal import InletCore
internal import InletLinux
internal import InletTransfer

/// The words of an answer that is no success. Three shapes are sent, and what stands before the server sends others:
/// `{error, message, statusCode, details?}`, the same without `statusCode`, and `{success, newBalance, error}`.
/// They are without our own credentials.
struct VOPISaid: Sendable, Equatable {
    /// `error` where it is a code, such as `NOT_FOUND`; it may also be prose.
    let code: String?
    let message: String
    /// Which fields were wrong and why; the server sends a list or nested objects.
    let details: [String]
    let isJSON: Bool
    let isEmpty: Bool

    init(_ response: HTTPResponse) {
        let body = Array(response.body.prefix(256 << 10))
        isEmpty = body.allSatisfy { [0x20, 0x09, 0x0A, 0x0D].contains($0) }
        guard let value = VOPIValue(body), value.isObject else {
            code = nil
            details = []
            isJSON = false
            message = response.plainText(4096)
            return
        }
        isJSON = true
        let error = value["error"].text
        code = error.flatMap { Self.isCode($0) ? response.redactor.redacted($0) : nil }
        let prose = code == nil ? error : nil
        let redactor = response.redactor
        message = redactor.redacted(value["message"].text ?? prose ?? "")
        details = Self.details(value["details"]).map { redactor.redacted($0) }
    }

    private static func isCode(_ text: String) -> Bool {
        text.utf8.allSatisfy { (0x41...0x5A).contains($0) || (0x30...0x39).contains($0) || $0 == 0x5F }
    }

    /// Whether the server has no such route, as its framework says it.
    var isUnknownRoute: Bool { isJSON && code == nil && message.hasPrefix("Route ") && message.hasSuffix(" not found") }

    /// Whether the text is that of a database or network that failed within the server.
    var isDatabaseFault: Bool {
        let signs = [
            "econnrefused", "econnreset", "etimedout", "ehostunreach", "enetunreach", "enotfound", "eai_again", "epipe",
            "connection terminated", "terminating connection", "too many clients", "remaining connection slots",
            "timeout exceeded when trying to connect", "connection timeout", "the database system is",
        ]
        let text = message.lowercased()
        return signs.contains { text.contains($0) }
    }

    /// All words for a person, safe to print.
    var text: String {
        let words = [code, message.isEmpty ? nil : message].compactMap(\.self).joined(separator: ": ")
        let text = ([words] + details.prefix(5)).filter { !$0.isEmpty }.joined(separator: "; ")
        return DeliveryError.excerpt(Array(text.utf8))
    }

    private static func details(_ value: VOPIValue) -> [String] {
        if value.isList { return value.list.prefix(20).compactMap(line) }
        return nested(value, at: "", depth: 0)
    }

    /// One objection of a list: where (`instancePath` or `path`), and what.
    private static func line(_ value: VOPIValue) -> String? {
        guard let message = value["message"].text ?? value.text else { return nil }
        let path = value["path"].list.compactMap { $0.text ?? $0.integer.map { String($0) } }.joined(separator: "/")
        let place = value["instancePath"].text ?? path
        return place.isEmpty ? message : "\(place) \(message)"
    }

    /// Objections below their fields' names, in lists called `_errors`.
    private static func nested(_ value: VOPIValue, at path: String, depth: Int) -> [String] {
        guard depth < 8 else { return [] }
        let members = value.members.sorted { $0.key < $1.key }
        return members.flatMap { name, member in
            if name == "_errors" {
                member.list.compactMap(\.text).map { path.isEmpty ? $0 : "\(path) \($0)" }
            } else if member.isObject {
                nested(member, at: "\(path)/\(name)", depth: depth + 1)
            } else {
                member.text.map { ["\(path)/\(name) \($0)"] } ?? []
            }
        }
    }
}
