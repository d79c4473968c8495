internal import FoundationEssentials
package import InletCore

/// Any JSON, read without expectations: the server writes `{}`, `""` or 0 where a nullable field is not set, and its
/// generations differ in what they send.
package enum VOPIValue: Sendable, Hashable {
    case null
    case boolean(Bool)
    case integer(Int64)
    case number(Double)
    case text(String)
    case list([VOPIValue])
    case object([String: VOPIValue])

    /// The value of `body`; nil when it is empty or no JSON.
    package init?(_ body: [UInt8]) {
        guard !body.isEmpty, let value = try? JSONDecoder().decode(VOPIValue.self, from: Data(body)) else { return nil }
        self = value
    }

    /// The member called `name`; `.null` where there is none.
    package subscript(name: String) -> VOPIValue {
        if case .object(let members) = self { members[name] ?? .null } else { .null }
    }

    /// A text that is set: nil for `""`, `{}`, null and every other kind.
    package var text: String? { if case .text(let text) = self, !text.isEmpty { text } else { nil } }

    /// A number, also one that is written as text; nil for every other kind.
    package var number: Double? {
        switch self {
        case .integer(let value): Double(value)
        case .number(let value): value
        case .text(let text): Double(text).flatMap { $0.isFinite ? $0 : nil }
        default: nil
        }
    }

    /// A whole number; fractions are cut off.
    package var integer: Int? { number.flatMap { Int(exactly: $0.rounded(.towardZero)) } }

    package var boolean: Bool? { if case .boolean(let value) = self { value } else { nil } }

    /// The elements; none for every other kind.
    package var list: [VOPIValue] { if case .list(let values) = self { values } else { [] } }

    package var isList: Bool { if case .list = self { true } else { false } }

    /// The members; none for every other kind.
    package var members: [String: VOPIValue] { if case .object(let members) = self { members } else { [:] } }

    package var isObject: Bool { if case .object = self { true } else { false } }

    /// A moment (RFC 3339, with or without a fraction); nil for `""` and what is none.
    package var time: WallTime? { text.flatMap { Self.time($0) } }

    private static func time(_ text: String) -> WallTime? {
        let plain = Date.ISO8601FormatStyle(includingFractionalSeconds: false)
        let exact = Date.ISO8601FormatStyle(includingFractionalSeconds: true)
        let date = (try? plain.parse(text)) ?? (try? exact.parse(text))
        return date.map { WallTime(milliseconds: Int64(($0.timeIntervalSince1970 * 1000).rounded())) }
    }

    /// The value where it is set: nil for null, `{}`, `[]` and `""`.
    package var unlessEmpty: VOPIValue? {
        switch self {
        case .null, .object([:]), .list([]), .text(""): nil
        default: self
        }
    }

    /// As JSON with sorted keys.
    package var json: [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return (try? encoder.encode(self)).map { Array($0) } ?? Array("null".utf8)
    }
}

extension VOPIValue: Codable {
    package init(from decoder: any Decoder) throws {
        let value = try decoder.singleValueContainer()
        if let text = try? value.decode(String.self) {
            self = .text(text)
        } else if let members = try? value.decode([String: VOPIValue].self) {
            self = .object(members)
        } else if let values = try? value.decode([VOPIValue].self) {
            self = .list(values)
        } else if let flag = try? value.decode(Bool.self) {
            self = .boolean(flag)
        } else if let whole = try? value.decode(Int64.self) {
            self = .integer(whole)
        } else if let number = try? value.decode(Double.self) {
            self = .number(number)
        } else {
            self = .null
        }
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .null: try container.encodeNil()
        case .boolean(let flag): try container.encode(flag)
        case .integer(let whole): try container.encode(whole)
        case .number(let number): try container.encode(number)
        case .text(let text): try container.encode(text)
        case .list(let values): try container.encode(values)
        case .object(let members): try container.encode(members)
        }
    }
}
