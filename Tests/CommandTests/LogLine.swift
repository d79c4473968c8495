import Foundation

/// One line of the log: a JSON object whose fields are text, integers, flags or lists of text.
struct LogLine: Sendable, CustomStringConvertible {
    enum Field: Sendable, Equatable, Decodable {
        case text(String)
        case number(Int64)
        case flag(Bool)
        case list([String])

        init(from decoder: any Decoder) throws {
            let value = try decoder.singleValueContainer()
            if let number = try? value.decode(Int64.self) {
                self = .number(number)
            } else if let text = try? value.decode(String.self) {
                self = .text(text)
            } else if let flag = try? value.decode(Bool.self) {
                self = .flag(flag)
            } else {
                self = .list(try value.decode([String].self))
            }
        }
    }

    let description: String
    let fields: [String: Field]

    init(_ line: Substring) throws {
        description = String(line)
        fields = try JSONDecoder().decode([String: Field].self, from: Data(line.utf8))
    }

    var event: String { self["event"] ?? "" }

    /// A field's text; nil where it is missing or no text.
    subscript(name: String) -> String? {
        if case .text(let text)? = fields[name] { text } else { nil }
    }

    func number(_ name: String) -> Int64? {
        if case .number(let number)? = fields[name] { number } else { nil }
    }

    func flag(_ name: String) -> Bool? {
        if case .flag(let flag)? = fields[name] { flag } else { nil }
    }

    /// Whether the field `path` ends with `name`.
    func isAbout(_ name: String) -> Bool { self["path"]?.hasSuffix("/" + name) ?? false }
}
