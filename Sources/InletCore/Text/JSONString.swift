/// JSON without an encoder: log lines and receipts are written for every file.
package enum JSONString {
    /// `text` as a JSON string (RFC 8259 section 7), quotes included. What a terminal would obey, and what turns the direction
    /// of what is read, is escaped, so that a line may be shown as it is.
    package static func quote(_ text: String) -> String {
        var bytes: [UInt8] = []
        append(text, to: &bytes)
        return String(decoding: bytes, as: UTF8.self)
    }

    /// The same, at the end of `bytes`.
    package static func append(_ text: String, to bytes: inout [UInt8]) {
        bytes.append(UInt8(ascii: "\""))
        var text = text
        text.withUTF8 { all in
            var (start, index) = (0, 0)
            while index < all.count {
                let length = needsEscape(all[index]) ? 1 : harm(in: all, at: index)
                if length > 0 {
                    bytes.append(contentsOf: all[start..<index])
                    bytes.append(contentsOf: length == 1 ? escape(all[index]) : escape(all[index..<(index + length)]))
                    start = index + length
                }
                index += max(length, 1)
            }
            bytes.append(contentsOf: all[start...])
        }
        bytes.append(UInt8(ascii: "\""))
    }

    /// JSON of another encoder with what `append` escapes escaped: it is the same value.
    package static func masked(_ json: [UInt8]) -> [UInt8] {
        json.withUnsafeBufferPointer { all in
            var bytes: [UInt8] = []
            bytes.reserveCapacity(all.count)
            var (start, index) = (0, 0)
            while index < all.count {
                let length = all[index] == delete ? 1 : harm(in: all, at: index)
                if length > 0 {
                    bytes.append(contentsOf: all[start..<index])
                    bytes.append(contentsOf: length == 1 ? escape(delete) : escape(all[index..<(index + length)]))
                    start = index + length
                }
                index += max(length, 1)
            }
            bytes.append(contentsOf: all[start...])
            return bytes
        }
    }

    private static let delete: UInt8 = 0x7F

    /// The length of the scalar of several bytes that begins there, where it must be escaped; 0 for all others.
    private static func harm(in all: UnsafeBufferPointer<UInt8>, at index: Int) -> Int {
        // C1 controls, and the first bytes of all that is deceptive.
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

    /// `\uXXXX`, or two of them.
    private static func escape(_ bytes: Slice<UnsafeBufferPointer<UInt8>>) -> [UInt8] {
        guard let scalar = scalar(bytes) else { return Array(bytes) }
        return Array(escaped(scalar).utf8)
    }

    /// `\uXXXX`, or two of them, as JSON has it.
    static func escaped(_ scalar: Unicode.Scalar) -> String {
        String(scalar).utf16.map { unit in
            let digits = String(unit, radix: 16)
            return "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
        }.joined()
    }

    private static func needsEscape(_ byte: UInt8) -> Bool {
        byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") || byte == delete
    }

    private static func escape(_ byte: UInt8) -> [UInt8] {
        switch byte {
        case UInt8(ascii: "\""): return Array("\\\"".utf8)
        case UInt8(ascii: "\\"): return Array("\\\\".utf8)
        case UInt8(ascii: "\n"): return Array("\\n".utf8)
        case UInt8(ascii: "\r"): return Array("\\r".utf8)
        case UInt8(ascii: "\t"): return Array("\\t".utf8)
        default:
            let digits = String(byte, radix: 16)
            return Array(("\\u00" + (digits.count == 1 ? "0" : "") + digits).utf8)
        }
    }
}

/// A JSON object on one line that grows field by field, as bytes.
package struct JSONLine: Sendable {
    private var bytes: [UInt8] = [UInt8(ascii: "{")]

    package init() { bytes.reserveCapacity(512) }

    /// The object as it is now, whole.
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

    /// - Parameter json: a value as it stands in JSON.
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
