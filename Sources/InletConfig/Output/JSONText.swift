internal import InletCore

/// A JSON document whose objects keep the order of their keys (RFC 8259), so that generated files do not change by chance.
indirect enum JSONText: Sendable {
    case string(String)
    case integer(Int64)
    case boolean(Bool)
    case array([JSONText])
    case object([(String, JSONText)])

    /// The document over several lines; short arrays of plain values stay on one.
    func text(depth: Int = 0) -> String {
        switch self {
        case .string(let text): JSONString.quote(text)
        case .integer(let number): String(number)
        case .boolean(let flag): flag ? "true" : "false"
        case .array(let items) where items.allSatisfy(\.isPlain):
            "[" + items.map { $0.text() }.joined(separator: ", ") + "]"
        case .array(let items):
            Self.block("[", items.map { $0.text(depth: depth + 1) }, "]", depth: depth)
        case .object(let fields) where fields.isEmpty:
            "{}"
        case .object(let fields):
            Self.block(
                "{", fields.map { "\(JSONString.quote($0.0)): \($0.1.text(depth: depth + 1))" }, "}", depth: depth)
        }
    }

    private var isPlain: Bool {
        switch self {
        case .string, .integer, .boolean: true
        case .array, .object: false
        }
    }

    private static func block(_ open: String, _ lines: [String], _ close: String, depth: Int) -> String {
        let margin = String(repeating: "  ", count: depth)
        return open + "\n" + lines.map { "\(margin)  \($0)" }.joined(separator: ",\n") + "\n\(margin)\(close)"
    }
}
