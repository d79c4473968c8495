internal import InletCore

/// Any JSON value (RFC 8259), kept as it came: what a server adds to its objects outlives being read, changed and sent back.
package indirect enum JSONValue: Sendable {
    case null
    case boolean(Bool)
    /// As it is written, so that no digit is lost.
    case number(String)
    case string(String)
    case array([JSONValue])
    case object(JSONObject)

    /// - Throws: `JSONFault` with the place; also for anything behind the value.
    package init(parsing bytes: some Sequence<UInt8>) throws(JSONFault) {
        var reader = JSONReader(Array(bytes))
        self = try reader.value()
        try reader.end()
    }

    package init(_ number: Int) { self = .number(String(number)) }

    package var string: String? { if case .string(let text) = self { text } else { nil } }
    package var boolean: Bool? { if case .boolean(let value) = self { value } else { nil } }
    package var array: [JSONValue]? { if case .array(let items) = self { items } else { nil } }
    package var object: JSONObject? { if case .object(let fields) = self { fields } else { nil } }
    /// A whole number, also one that was written as `3.0`.
    package var integer: Int64? {
        guard case .number(let text) = self else { return nil }
        return Int64(text) ?? Double(text).flatMap { Int64(exactly: $0) }
    }
    /// nil for a number that no double can hold.
    package var double: Double? {
        guard case .number(let text) = self, let value = Double(text), value.isFinite else { return nil }
        return value
    }

    /// A member of an object; nil for everything else, and for `null`.
    package subscript(name: String) -> JSONValue? {
        guard case .object(let fields) = self, let value = fields[name], value != .null else { return nil }
        return value
    }

    /// One line of JSON, members in the order of their names.
    package var text: String {
        var result = ""
        write(into: &result, indent: nil)
        return result
    }

    /// For people: a line for each member.
    package var prettyText: String {
        var result = ""
        write(into: &result, indent: 0)
        return result
    }

    private func write(into text: inout String, indent: Int?) {
        switch self {
        case .null: text += "null"
        case .boolean(let value): text += value ? "true" : "false"
        case .number(let digits): text += digits
        case .string(let value): text += JSONString.quote(value)
        case .array(let items):
            // Points are rows of numbers: they stay on one line.
            let inner = items.allSatisfy(\.isScalar) ? nil : indent
            Self.write(items.map { ("", $0) }, "[", "]", into: &text, indent: inner)
        case .object(let fields):
            let members = fields.sorted { $0.key < $1.key }.map { (JSONString.quote($0.key) + ":", $0.value) }
            Self.write(members, "{", "}", into: &text, indent: indent)
        }
    }

    private static func write(
        _ items: [(name: String, value: JSONValue)], _ open: String, _ close: String, into text: inout String,
        indent: Int?
    ) {
        text += open
        for (index, item) in items.enumerated() {
            if index > 0 { text += "," }
            if let indent { text += "\n" + String(repeating: "  ", count: indent + 1) }
            text += item.name
            if indent != nil, !item.name.isEmpty { text += " " }
            item.value.write(into: &text, indent: indent.map { $0 + 1 })
        }
        if let indent, !items.isEmpty { text += "\n" + String(repeating: "  ", count: indent) }
        text += close
    }

    private var isScalar: Bool {
        switch self {
        case .array, .object: false
        default: true
        }
    }
}

/// Numbers are equal when they are worth the same: servers write `3` as `3.0`.
extension JSONValue: Equatable {
    package static func == (left: JSONValue, right: JSONValue) -> Bool {
        switch (left, right) {
        case (.null, .null): true
        case (.boolean(let left), .boolean(let right)): left == right
        case (.string(let left), .string(let right)): left == right
        case (.array(let left), .array(let right)): left == right
        case (.object(let left), .object(let right)): left == right
        case (.number(let first), .number(let second)):
            if let one = left.integer, let other = right.integer {
                one == other
            } else {
                first == second || left.double.map { $0 == right.double } ?? false
            }
        default: false
        }
    }
}

/// The members of a JSON object by name.
package typealias JSONObject = [String: JSONValue]

/// Where a text stops being JSON; both count from 1, columns in bytes.
package struct JSONFault: Error, Sendable, Equatable, CustomStringConvertible {
    package var line: Int
    package var column: Int
    /// Continues "line 3, column 7: ".
    package var message: String

    package var description: String { "line \(line), column \(column): \(message)" }
}
