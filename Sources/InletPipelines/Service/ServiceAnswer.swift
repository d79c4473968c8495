internal import InletCore
internal import InletTransfer

/// How the answers of all services are read.
extension HTTPResponse {
    var isSuccess: Bool { (200..<300).contains(status) }

    /// Whether it calls itself JSON.
    var isJSON: Bool { header("Content-Type")?.lowercased().hasPrefix("application/json") ?? false }

    /// Its body as JSON; nil for what is none, whatever is wrong with it.
    var jsonBody: JSONValue? { try? JSONValue(parsing: body) }

    /// The beginning of its text without our own credentials, without anything between `<` and `>`, and with single blanks.
    /// - Parameter limit: how many bytes of the body are looked at.
    func plainText(_ limit: Int) -> String {
        let text = String(decoding: redactor.redacted(Array(body.prefix(limit))), as: UTF8.self)
        var isTag = false
        var result = ""
        for character in text {
            switch character {
            case "<": isTag = true
            case ">":
                isTag = false
                result.append(" ")
            default: if !isTag { result.append(character) }
            }
        }
        return result.split(whereSeparator: \.isWhitespace).joined(separator: " ")
    }
}

/// A member of an answer is of another kind than it should be: nothing of the answer is used then.
struct JSONMismatch: Error {}

extension JSONValue {
    /// The text called `name`; nil where there is none.
    func text(_ name: String) throws(JSONMismatch) -> String? { try member(name, \.string) }

    /// The list called `name`; nil where there is none.
    func list(_ name: String) throws(JSONMismatch) -> [JSONValue]? { try member(name, \.array) }

    /// The whole number called `name`, which some servers write as text; nil where there is none.
    func number(_ name: String) throws(JSONMismatch) -> Int64? {
        try member(name) { $0.integer ?? $0.string.flatMap { Int64($0) } }
    }

    private func member<Value>(_ name: String, _ read: (JSONValue) -> Value?) throws(JSONMismatch) -> Value? {
        guard let value = self[name] else { return nil }
        guard let result = read(value) else { throw JSONMismatch() }
        return result
    }
}
