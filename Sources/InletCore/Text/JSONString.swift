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
