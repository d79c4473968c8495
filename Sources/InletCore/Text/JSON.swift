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

/// JSON without an encoder: log lines and receipts are written for every file.
package enum JSONString {
    /// `text` as a JSON string (RFC 8259, section 7), including quotes. Escapes terminal controls and
    /// direction-changing characters, so that a line is safe to print.
    package static func quote(_ text: String) -> String {
        var bytes: [UInt8] = []
        append(text, to: &bytes)
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Appends the same to `bytes`.
    package static func append(_ text: String, to bytes: inout [UInt8]) {
        bytes.append(UInt8(ascii: "\""))
        var text = text
        text.withUTF8 { all in
            // Most texts need no escape, and are as long as a path.
            if isPlain(all) { bytes.append(contentsOf: all) } else { copy(all, to: &bytes, escaping: needsEscape) }
        }
        bytes.append(UInt8(ascii: "\""))
    }

    /// Whether all bytes are ASCII that needs no escape; looks at eight at a time.
    private static func isPlain(_ all: UnsafeBufferPointer<UInt8>) -> Bool {
        let bytes = UnsafeRawBufferPointer(all)
        var index = 0
        while index + 8 <= bytes.count {
            if !isPlain(bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self)) { return false }
            index += 8
        }
        return bytes[index...].allSatisfy { !needsEscape($0) && $0 < 0x80 }
    }

    /// The same of eight bytes. A subtraction that borrows sets the high bit of its byte, or of a later one: then some
    /// byte was special (Hacker's Delight, "Find First 0-Byte").
    private static func isPlain(_ word: UInt64) -> Bool {
        let (ones, highs): (UInt64, UInt64) = (0x0101_0101_0101_0101, 0x8080_8080_8080_8080)
        func zeros(_ word: UInt64) -> UInt64 { (word &- ones) & ~word }
        let controls = (word &- ones &* 0x20) & ~word
        let quotes = zeros(word ^ ones &* UInt64(UInt8(ascii: "\"")))
        let slashes = zeros(word ^ ones &* UInt64(UInt8(ascii: "\\")))
        let deletes = zeros(word ^ ones &* UInt64(delete))
        return (controls | quotes | slashes | deletes | word) & highs == 0
    }

    /// JSON of another encoder, with the same escapes as `append`; its value stays the same.
    package static func masked(_ json: [UInt8]) -> [UInt8] {
        json.withUnsafeBufferPointer { all in
            var bytes: [UInt8] = []
            bytes.reserveCapacity(all.count)
            copy(all, to: &bytes) { $0 == delete }
            return bytes
        }
    }

    /// Copies `all`, and escapes bytes for which `mustEscape` is true, and harmful scalars.
    private static func copy(
        _ all: UnsafeBufferPointer<UInt8>, to bytes: inout [UInt8], escaping mustEscape: (UInt8) -> Bool
    ) {
        var (start, index) = (0, 0)
        while index < all.count {
            let length = mustEscape(all[index]) ? 1 : harm(in: all, at: index)
            if length > 0, let scalar = scalar(all[index..<(index + length)]) {
                bytes.append(contentsOf: all[start..<index])
                bytes += (shortEscapes[scalar] ?? escaped(scalar)).utf8
                start = index + length
            }
            index += max(length, 1)
        }
        bytes.append(contentsOf: all[start...])
    }

    private static let delete: UInt8 = 0x7F

    /// The length of a multibyte scalar at `index` that must be escaped; 0 for others.
    private static func harm(in all: UnsafeBufferPointer<UInt8>, at index: Int) -> Int {
        // C1 controls, and the lead bytes of all deceptive characters.
        let length =
            switch all[index] {
            case 0xC2, 0xD8: 2
            case 0xE1, 0xE2, 0xEF: 3
            case 0xF3: 4
            default: 0
            }
        guard length > 0, index + length <= all.count,
            let scalar = scalar(all[index..<(index + length)]), isHarmful(scalar)
        else { return 0 }
        return length
    }

    private static func scalar(_ bytes: Slice<UnsafeBufferPointer<UInt8>>) -> Unicode.Scalar? {
        String(validating: bytes, as: UTF8.self)?.unicodeScalars.first
    }

    private static func isHarmful(_ scalar: Unicode.Scalar) -> Bool {
        (0x80..<0xA0).contains(scalar.value) || scalar.isDeceptive
    }

    private static let shortEscapes: [Unicode.Scalar: String] = [
        "\"": "\\\"", "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t",
    ]

    /// `\uXXXX`, or two of them, as in JSON.
    static func escaped(_ scalar: Unicode.Scalar) -> String {
        String(scalar).utf16.map { unit in
            let digits = String(unit, radix: 16)
            return "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
        }.joined()
    }

    private static func needsEscape(_ byte: UInt8) -> Bool {
        byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") || byte == delete
    }
}

/// A JSON object on one line, built field by field as bytes.
package struct JSONLine: Sendable {
    private var bytes: [UInt8] = [UInt8(ascii: "{")]

    package init() { bytes.reserveCapacity(512) }

    /// The complete object so far.
    package var finished: [UInt8] { bytes + [UInt8(ascii: "}")] }

    package mutating func add(_ name: String, _ text: String) {
        begin(name)
        JSONString.append(text, to: &bytes)
    }

    package mutating func add(_ name: String, _ flag: Bool) {
        begin(name)
        bytes += Array((flag ? "true" : "false").utf8)
    }

    package mutating func add(_ name: String, _ number: Int64) {
        begin(name)
        bytes.append(contentsOf: String(number).utf8)
    }

    package mutating func add(_ name: String, _ numbers: [Int64]) {
        begin(name)
        list(numbers) { $0.append(contentsOf: String($1).utf8) }
    }

    package mutating func add(_ name: String, _ texts: [String]) {
        begin(name)
        list(texts) { JSONString.append($1, to: &$0) }
    }

    package mutating func add(_ name: String, _ objects: [JSONLine]) {
        begin(name)
        list(objects) { $0.append(contentsOf: $1.finished) }
    }

    package mutating func add(_ name: String, _ object: JSONLine) {
        begin(name)
        bytes.append(contentsOf: object.finished)
    }

    /// - Parameter json: a value in JSON.
    package mutating func add(_ name: String, json: [UInt8]) {
        begin(name)
        bytes.append(contentsOf: json)
    }

    private mutating func begin(_ name: String) {
        if bytes.count > 1 { bytes.append(UInt8(ascii: ",")) }
        JSONString.append(name, to: &bytes)
        bytes.append(UInt8(ascii: ":"))
    }

    private mutating func list<Item>(_ items: [Item], _ append: (inout [UInt8], Item) -> Void) {
        bytes.append(UInt8(ascii: "["))
        for (index, item) in items.enumerated() {
            if index > 0 { bytes.append(UInt8(ascii: ",")) }
            append(&bytes, item)
        }
        bytes.append(UInt8(ascii: "]"))
    }
}
