/// A JSON value of any shape (RFC 8259), for the parts of messages that a sandbox keeps as they came. Unlike `JSONValue`, it tells
/// a field that is null from one that is absent, as the real servers do, and it does not read with our own reader what our own
/// writer has written.
package enum SandboxJSON: Sendable, Hashable {
    case null
    case bool(Bool)
    case number(Double)
    case string(String)
    case array([SandboxJSON])
    case object([String: SandboxJSON])

    /// A field of an object; nil for other values and where it is absent.
    package subscript(name: String) -> SandboxJSON? { fields?[name] }

    package var text: String? { if case .string(let text) = self { text } else { nil } }
    package var number: Double? { if case .number(let number) = self { number } else { nil } }
    package var fields: [String: SandboxJSON]? { if case .object(let fields) = self { fields } else { nil } }
    package var items: [SandboxJSON]? { if case .array(let items) = self { items } else { nil } }

    init(_ number: Int) { self = .number(Double(number)) }

    static let empty = SandboxJSON.object([:])
}

extension SandboxJSON: Codable {
    package init(from decoder: any Decoder) throws {
        let value = try decoder.singleValueContainer()
        // A decoder tells the type of a value by refusing all others.
        func read<Value: Decodable>() -> Value? { try? value.decode(Value.self) }
        if value.decodeNil() {
            self = .null
        } else if let text: String = read() {
            self = .string(text)
        } else if let flag: Bool = read() {
            self = .bool(flag)
        } else if let number: Double = read() {
            self = .number(number)
        } else if let fields: [String: SandboxJSON] = read() {
            self = .object(fields)
        } else {
            self = .array(try value.decode([SandboxJSON].self))
        }
    }

    package func encode(to encoder: any Encoder) throws {
        var value = encoder.singleValueContainer()
        switch self {
        case .null: try value.encodeNil()
        case .bool(let flag): try value.encode(flag)
        case .number(let number): try value.encode(number)
        case .string(let text): try value.encode(text)
        case .array(let items): try value.encode(items)
        case .object(let fields): try value.encode(fields)
        }
    }
}

extension SandboxJSON: ExpressibleByStringLiteral, ExpressibleByBooleanLiteral, ExpressibleByIntegerLiteral {
    package init(stringLiteral text: String) { self = .string(text) }
    package init(booleanLiteral flag: Bool) { self = .bool(flag) }
    package init(integerLiteral number: Int) { self.init(number) }
}

extension SandboxJSON: ExpressibleByDictionaryLiteral, ExpressibleByArrayLiteral {
    package init(dictionaryLiteral pairs: (String, SandboxJSON)...) { self = .object(Dictionary(pairs) { $1 }) }
    package init(arrayLiteral items: SandboxJSON...) { self = .array(items) }
}
