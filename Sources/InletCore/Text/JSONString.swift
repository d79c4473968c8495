/// JSON without an encoder: log lines and receipts are written for every file.
package enum JSONString {
    /// `text` as a JSON string (RFC 8259 section 7), quotes included.
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
            var start = 0
            for (index, byte) in all.enumerated() where needsEscape(byte) {
                bytes.append(contentsOf: all[start..<index])
                bytes.append(contentsOf: escape(byte))
                start = index + 1
            }
            bytes.append(contentsOf: all[start...])
        }
        bytes.append(UInt8(ascii: "\""))
    }

    private static func needsEscape(_ byte: UInt8) -> Bool {
        byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\")
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
