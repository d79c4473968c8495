internal import FoundationEssentials

/// The only place that reads and writes JSON. `Codable` structs with Foundation's coders are for messages and notes of
/// a known shape. `JSONValue` is for objects with unknown members, `JSONReader` for texts too large for memory as
/// values. `JSONLine` is for lines written for every file.
package enum JSON {
    /// `value` on one line, members ordered by name: equal values have equal bytes.
    /// - Parameter isPretty: a line for each member, for people who open the file.
    package static func encode(_ value: some Encodable, isPretty: Bool = false) throws -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        if isPretty { encoder.outputFormatting.insert(.prettyPrinted) }
        return Array(try encoder.encode(value))
    }

    package static func decode<Value: Decodable>(
        _ bytes: some Sequence<UInt8>, as type: Value.Type = Value.self
    ) throws -> Value {
        try JSONDecoder().decode(type, from: Data(bytes))
    }

    // MARK: - Notes, which later and earlier versions read

    /// The decoded note; nil if there is none.
    package static func note<Value: Decodable>(_ bytes: [UInt8]?, as type: Value.Type = Value.self) -> Value? {
        // A note of another version, or a damaged one, counts as missing: its content is requested or sent again.
        bytes.flatMap { try? decode($0, as: type) }
    }

    /// Decodes notes of other versions: takes missing or unsuitable members from `other`, and ignores additional ones.
    /// nil unless the note is an object.
    package static func note<Value: Codable>(_ bytes: [UInt8]?, else other: Value) -> Value? {
        guard let said = object(bytes), let ours = object(note(of: other)) else { return nil }
        func value(_ said: JSONObject) -> Value? {
            note(JSONValue.object(ours.merging(said) { $1 }).bytes)
        }
        return value(said) ?? value(said.filter { value([$0.key: $0.value]) != nil })
    }

    /// The noted object; nil if there is none.
    package static func object(_ bytes: [UInt8]?) -> JSONObject? { bytes.flatMap { value($0)?.object } }

    /// nil if it is not JSON and the reason does not matter.
    package static func value(_ bytes: some Sequence<UInt8>) -> JSONValue? {
        // The caller reports the text itself.
        try? JSONValue(parsing: bytes)
    }

    package static func note(of value: some Encodable) -> [UInt8] {
        // Numbers, booleans and texts always encode; an empty note counts as missing.
        (try? encode(value)) ?? []
    }
}

/// Any JSON value (RFC 8259), kept as received: a server's additional members survive a change and are sent back.
package indirect enum JSONValue: Sendable {
    case null
    case boolean(Bool)
    /// As written, so that no digit is lost.
    case number(String)
    case string(String)
    case array([JSONValue])
    case object(JSONObject)

    /// - Throws: `JSONFault` with the position; also for text after the value.
    package init(parsing bytes: some Sequence<UInt8>) throws(JSONFault) {
        var reader = JSONReader(Array(bytes))
        self = try reader.value()
        try reader.end()
    }

    package init(_ number: Int) { self = .number(String(number)) }

    /// Omits a zero fraction. `number` must be finite: JSON has no other numbers.
    package init(_ number: Double) {
        self = .number(Int64(exactly: number).map { String($0) } ?? String(number.isFinite ? number : 0))
    }

    /// Omits nil members, because servers reject null.
    package static func members(_ members: [String: JSONValue?]) -> JSONValue {
        .object(members.compactMapValues(\.self))
    }

    package var string: String? { if case .string(let text) = self { text } else { nil } }
    package var boolean: Bool? { if case .boolean(let value) = self { value } else { nil } }
    package var array: [JSONValue]? { if case .array(let items) = self { items } else { nil } }
    package var object: JSONObject? { if case .object(let fields) = self { fields } else { nil } }
    /// A whole number, including one written as `3.0`.
    package var integer: Int64? {
        guard case .number(let text) = self else { return nil }
        return Int64(text) ?? Double(text).flatMap { Int64(exactly: $0) }
    }
    /// nil for a number that does not fit in a double.
    package var double: Double? {
        guard case .number(let text) = self, let value = Double(text), value.isFinite else { return nil }
        return value
    }

    /// A member of an object; nil for other values, and for `null`.
    package subscript(name: String) -> JSONValue? {
        guard case .object(let fields) = self, let value = fields[name], value != .null else { return nil }
        return value
    }

    /// The text of a member, or that it is missing; nil for another type, which makes the message unusable. Of two
    /// members with the same name, the last one counts.
    package func text(at name: String) -> String?? {
        guard let value = self[name] else { return .some(nil) }
        return value.string.map { .some($0) }
    }

    /// Like `text(at:)` for a whole number, which some servers write as text.
    package func integer(at name: String) -> Int64?? {
        guard let value = self[name] else { return .some(nil) }
        return (value.integer ?? value.string.flatMap { Int64($0) }).map { .some($0) }
    }

    /// JSON on one line, members ordered by name.
    package var text: String { String(decoding: bytes, as: UTF8.self) }

    package var bytes: [UInt8] { written(indent: nil) }

    /// For people: a line for each member.
    package var prettyText: String { String(decoding: written(indent: 0), as: UTF8.self) }

    private func written(indent: Int?) -> [UInt8] {
        var bytes: [UInt8] = []
        write(to: &bytes, indent: indent)
        return bytes
    }

    private func write(to bytes: inout [UInt8], indent: Int?) {
        switch self {
        case .null: bytes += "null".utf8
        case .boolean(let value): bytes += (value ? "true" : "false").utf8
        case .number(let digits): bytes += digits.utf8
        case .string(let value): JSONString.append(value, to: &bytes)
        case .array(let items):
            // Rows of numbers, such as points, stay on one line.
            let inner = items.allSatisfy(\.isScalar) ? nil : indent
            Self.write(items.map { (nil, $0) }, "[]", to: &bytes, indent: inner)
        case .object(let fields):
            Self.write(fields.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }, "{}", to: &bytes, indent: indent)
        }
    }

    private static func write(
        _ items: [(name: String?, value: JSONValue)], _ brackets: String, to bytes: inout [UInt8], indent: Int?
    ) {
        func newLine(_ depth: Int) {
            bytes.append(UInt8(ascii: "\n"))
            bytes += repeatElement(UInt8(ascii: " "), count: 2 * depth)
        }
        bytes += brackets.utf8.prefix(1)
        for (index, item) in items.enumerated() {
            if index > 0 { bytes.append(UInt8(ascii: ",")) }
            if let indent { newLine(indent + 1) }
            if let name = item.name {
                JSONString.append(name, to: &bytes)
                bytes += (indent == nil ? ":" : ": ").utf8
            }
            item.value.write(to: &bytes, indent: indent.map { $0 + 1 })
        }
        if let indent, !items.isEmpty { newLine(indent) }
        bytes += brackets.utf8.suffix(1)
    }

    private var isScalar: Bool { array == nil && object == nil }
}

/// Numbers with equal values are equal: servers write `3` as `3.0`.
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

/// For members of reports that are assembled from parts, or passed on as received.
extension JSONValue: Encodable {
    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .null: try container.encodeNil()
        case .boolean(let value): try container.encode(value)
        case .number: if let integer { try container.encode(integer) } else { try container.encode(double) }
        case .string(let text): try container.encode(text)
        case .array(let items): try container.encode(items)
        case .object(let members): try container.encode(members)
        }
    }
}

/// For members of orders whose shape is not known beforehand.
extension JSONValue: Decodable {
    package init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        // A failure only tells that the value has another type; the last one is the caller's.
        func value<Value: Decodable>(_ type: Value.Type) -> Value? { try? container.decode(type) }
        self =
            if container.decodeNil() {
                .null
            } else if let flag = value(Bool.self) {
                .boolean(flag)
            } else if let number = value(Int64.self) {
                .number(String(number))
            } else if let number = value(Double.self) {
                JSONValue(number)
            } else if let text = value(String.self) {
                .string(text)
            } else if let items = value([JSONValue].self) {
                .array(items)
            } else {
                .object(try container.decode(JSONObject.self))
            }
    }
}

package typealias JSONObject = [String: JSONValue]
