/// The position of an error in JSON; both numbers count from 1, columns in bytes.
package struct JSONFault: Error, Sendable, Equatable, CustomStringConvertible {
    package var line: Int
    package var column: Int
    /// Continues "line 3, column 7: ".
    package var message: String

    package var description: String { "line \(line), column \(column): \(message)" }
}

/// Reads JSON (RFC 8259) from start to end, one value at a time, so that a large list need not fit in memory as values.
/// Rejects nesting deeper than `deepest`. Of two members with the same name, the last one counts.
package struct JSONReader: Sendable {
    package static let deepest = 64

    private let bytes: [UInt8]
    package private(set) var offset = 0
    private var depth = 0

    /// Skips a byte order mark.
    package init(_ bytes: [UInt8]) {
        self.bytes = bytes
        offset = bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? 3 : 0
    }

    // MARK: - Values

    package mutating func value() throws(JSONFault) -> JSONValue {
        switch try next() {
        case UInt8(ascii: "{"):
            var fields: JSONObject = [:]
            try members { name, reader throws(JSONFault) in fields[name] = try reader.value() }
            return .object(fields)
        case UInt8(ascii: "["):
            var items: [JSONValue] = []
            try elements { reader throws(JSONFault) in items.append(try reader.value()) }
            return .array(items)
        case UInt8(ascii: "\""): return .string(try string())
        case UInt8(ascii: "t"): return try word("true", .boolean(true))
        case UInt8(ascii: "f"): return try word("false", .boolean(false))
        case UInt8(ascii: "n"): return try word("null", .null)
        case UInt8(ascii: "-"), 0x30...0x39: return .number(try number())
        default: throw fault("expected a value here")
        }
    }

    /// Reads an object: `take` reads each member's value.
    package mutating func members(_ take: (String, inout JSONReader) throws(JSONFault) -> Void) throws(JSONFault) {
        try list(UInt8(ascii: "{"), UInt8(ascii: "}"), "an object needs '{', members separated by commas, and '}'") {
            reader throws(JSONFault) in
            guard try reader.next() == UInt8(ascii: "\"") else {
                throw reader.fault("a member's name must be in quotes")
            }
            let name = try reader.string()
            guard try reader.next() == UInt8(ascii: ":") else { throw reader.fault("expected ':' after a name") }
            reader.offset += 1
            try take(name, &reader)
        }
    }

    /// Reads an array: `take` reads each element.
    package mutating func elements(_ take: (inout JSONReader) throws(JSONFault) -> Void) throws(JSONFault) {
        try list(UInt8(ascii: "["), UInt8(ascii: "]"), "a list needs '[', values separated by commas, and ']'", take)
    }

    /// The first byte of the next token, without consuming it.
    package mutating func next() throws(JSONFault) -> UInt8 {
        skipSpace()
        guard let byte = peek else { throw fault("the text ends too early") }
        return byte
    }

    /// Checks that only white space is left.
    package mutating func end() throws(JSONFault) {
        skipSpace()
        if peek != nil { throw fault("there is more text after the value") }
    }

    package func fault(_ message: String) -> JSONFault {
        let read = bytes.prefix(offset)
        let lineStart = read.lastIndex(of: 0x0A).map { $0 + 1 } ?? 0
        return JSONFault(line: 1 + read.count { $0 == 0x0A }, column: 1 + offset - lineStart, message: message)
    }

    // MARK: - Pieces

    private mutating func list(
        _ open: UInt8, _ close: UInt8, _ rule: String, _ item: (inout JSONReader) throws(JSONFault) -> Void
    ) throws(JSONFault) {
        guard try next() == open else { throw fault(rule) }
        offset += 1
        depth += 1
        guard depth <= Self.deepest else { throw fault("values are nested deeper than \(Self.deepest) levels") }
        defer { depth -= 1 }
        if try next() == close {
            offset += 1
            return
        }
        while true {
            try item(&self)
            switch try next() {
            case UInt8(ascii: ","): offset += 1
            case close:
                offset += 1
                return
            default: throw fault(rule)
            }
        }
    }

    private mutating func word(_ text: String, _ value: JSONValue) throws(JSONFault) -> JSONValue {
        guard bytes[offset...].starts(with: text.utf8) else { throw fault("expected a value here") }
        offset += text.utf8.count
        return value
    }

    private mutating func number() throws(JSONFault) -> String {
        let start = offset
        if peek == UInt8(ascii: "-") { offset += 1 }
        let whole = digits()
        guard whole > 0, whole == 1 || bytes[offset - whole] != UInt8(ascii: "0") else {
            throw fault("this is not a JSON number")
        }
        if peek == UInt8(ascii: ".") {
            offset += 1
            guard digits() > 0 else { throw fault("this is not a JSON number") }
        }
        if peek == UInt8(ascii: "e") || peek == UInt8(ascii: "E") {
            offset += 1
            if peek == UInt8(ascii: "-") || peek == UInt8(ascii: "+") { offset += 1 }
            guard digits() > 0 else { throw fault("this is not a JSON number") }
        }
        return String(decoding: bytes[start..<offset], as: UTF8.self)
    }

    private var peek: UInt8? { offset < bytes.count ? bytes[offset] : nil }

    private mutating func skipSpace() {
        while let byte = peek, byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 { offset += 1 }
    }

    private mutating func digits() -> Int {
        let start = offset
        while let byte = peek, (0x30...0x39).contains(byte) { offset += 1 }
        return offset - start
    }

    // MARK: - Texts

    private mutating func string() throws(JSONFault) -> String {
        offset += 1
        // The text up to the last escape, and the start of the rest.
        var (text, start): ([UInt8], Int) = ([], offset)
        while let byte = peek {
            switch byte {
            case UInt8(ascii: "\""):
                let rest = bytes[start..<offset]
                let result = try utf8(text.isEmpty ? rest : (text + rest)[...])
                offset += 1
                return result
            case UInt8(ascii: "\\"):
                text += bytes[start..<offset]
                text += try escape()
                start = offset
            case 0..<0x20: throw fault("a string must not contain line breaks or control characters")
            default: offset += 1
            }
        }
        throw fault("the string is not closed")
    }

    private mutating func escape() throws(JSONFault) -> [UInt8] {
        offset += 1
        let plain: [UInt8: UInt8] = [
            UInt8(ascii: "\""): 0x22, UInt8(ascii: "\\"): 0x5C, UInt8(ascii: "/"): 0x2F, UInt8(ascii: "b"): 0x08,
            UInt8(ascii: "f"): 0x0C, UInt8(ascii: "n"): 0x0A, UInt8(ascii: "r"): 0x0D, UInt8(ascii: "t"): 0x09,
        ]
        guard let kind = peek else { throw fault("the string is not closed") }
        offset += 1
        if let byte = plain[kind] { return [byte] }
        guard kind == UInt8(ascii: "u"), let unit = codeUnit() else { throw fault("this is not a JSON escape") }
        var units = [unit]
        // A surrogate pair is one character; a lone surrogate becomes U+FFFD.
        if UTF16.isLeadSurrogate(unit), bytes[offset...].starts(with: "\\u".utf8) {
            let here = offset
            offset += 2
            if let second = codeUnit(), UTF16.isTrailSurrogate(second) { units.append(second) } else { offset = here }
        }
        return Array(String(decoding: units, as: UTF16.self).utf8)
    }

    /// Four hexadecimal digits; nil without moving if they are missing.
    private mutating func codeUnit() -> UInt16? {
        guard offset + 4 <= bytes.count else { return nil }
        let digits = bytes[offset..<offset + 4]
        guard digits.allSatisfy({ Character(UnicodeScalar($0)).isHexDigit }) else { return nil }
        offset += 4
        return UInt16(String(decoding: digits, as: UTF8.self), radix: 16)
    }

    private func utf8(_ bytes: ArraySlice<UInt8>) throws(JSONFault) -> String {
        guard let text = String(validating: bytes, as: UTF8.self) else { throw fault("the string before is not UTF-8") }
        return text
    }
}
