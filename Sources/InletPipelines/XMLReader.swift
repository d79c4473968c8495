/// An element of an S3 answer or of a checksum list, with its text and children.
struct XMLElement: Sendable, Equatable {
    /// Without namespace prefix.
    var name: String
    /// By name, entities not decoded.
    var attributes: [String: String] = [:]
    /// All text directly inside, entities decoded.
    var text = ""
    var children: [XMLElement] = []

    /// The root of `bytes`; nil for text that `XMLReader` cannot read, where the reason does not matter.
    init?(_ bytes: [UInt8], most: Int = XMLReader.elementLimit) {
        // Callers that report it show the text itself.
        guard let root = try? XMLReader.read(bytes, most: most) else { return nil }
        self = root
    }

    init(name: String) { self.name = name }

    func text(of name: String) -> String? { children.first { $0.name == name }?.text }

    func all(_ name: String) -> [XMLElement] { children.filter { $0.name == name } }

    func integer(_ name: String) -> Int64? { text(of: name).flatMap { Int64($0) } }
}

/// Reads the XML of S3 stores' answers and of checksum lists: elements, attributes, text, the five entities and character
/// references.
///
/// Document types are refused, so nothing can expand; depth and number of elements are bounded.
struct XMLReader {
    static let depthLimit = 16
    /// A page of 1,000 objects has about 10,000.
    static let elementLimit = 50_000

    enum Fault: Error, Equatable {
        case malformed
        case doctype
        case tooDeep
        case tooMany
    }

    private let bytes: [UInt8]
    private var position = 0
    private var elements = 0
    private let most: Int

    /// The root element of `bytes`, with at most `most` elements below it.
    static func read(_ bytes: [UInt8], most: Int = elementLimit) throws(Fault) -> XMLElement {
        var reader = XMLReader(bytes: bytes, most: most)
        let mark: [UInt8] = [0xEF, 0xBB, 0xBF]
        if bytes.starts(with: mark) { reader.position = mark.count }
        return try reader.document()
    }

    /// Open elements, outermost first; the root ends the loop.
    private mutating func document() throws(Fault) -> XMLElement {
        var open: [(element: XMLElement, text: [UInt8])] = []
        while position < bytes.count {
            if bytes[position] != UInt8(ascii: "<") {
                try characters(&open)
            } else if skips("<?", to: "?>") || skips("<!--", to: "-->") {
                continue
            } else if follows("<![CDATA[") {
                guard !open.isEmpty else { throw .malformed }
                open[open.count - 1].text += try rest(after: 9, to: "]]>")
            } else if follows("<!") {
                throw .doctype
            } else if follows("</") {
                guard let ended = open.popLast() else { throw .malformed }
                let element = try end(ended)
                if open.isEmpty { return try alone(element) }
                open[open.count - 1].element.children.append(element)
            } else {
                let (element, isEmpty) = try start(depth: open.count)
                if !isEmpty {
                    open.append((element, []))
                } else if open.isEmpty {
                    return try alone(element)
                } else {
                    open[open.count - 1].element.children.append(element)
                }
            }
        }
        throw .malformed
    }

    /// Text between tags. Only white space may stand outside the root.
    private mutating func characters(_ open: inout [(element: XMLElement, text: [UInt8])]) throws(Fault) {
        while position < bytes.count, bytes[position] != UInt8(ascii: "<") {
            let byte = bytes[position]
            guard !open.isEmpty else {
                guard Self.isSpace(byte) else { throw .malformed }
                position += 1
                continue
            }
            if byte == UInt8(ascii: "&") {
                open[open.count - 1].text += try reference()
            } else {
                open[open.count - 1].text.append(byte)
                position += 1
            }
        }
    }

    private static let entities = ["amp": "&", "lt": "<", "gt": ">", "quot": "\"", "apos": "'"]

    /// `&amp;`, `&#38;` or `&#x26;` as UTF-8.
    private mutating func reference() throws(Fault) -> [UInt8] {
        guard let end = bytes[position...].prefix(12).firstIndex(of: UInt8(ascii: ";")) else { throw .malformed }
        let name = String(decoding: bytes[(position + 1)..<end], as: UTF8.self)
        position = end + 1
        if let text = Self.entities[name] { return Array(text.utf8) }
        guard name.hasPrefix("#") else { throw .malformed }
        let isHex = name.dropFirst().first == "x"
        let digits = name.dropFirst(isHex ? 2 : 1)
        guard digits.first != "+", digits.first != "-", let value = UInt32(digits, radix: isHex ? 16 : 10),
            let scalar = UnicodeScalar(value)
        else { throw .malformed }
        return Array(String(Character(scalar)).utf8)
    }

    /// A start tag, and whether it closes itself. Skips what is no attribute.
    private mutating func start(depth: Int) throws(Fault) -> (element: XMLElement, isEmpty: Bool) {
        elements += 1
        guard elements <= most else { throw .tooMany }
        guard depth < Self.depthLimit else { throw .tooDeep }
        position += 1
        var element = XMLElement(name: try name())
        var (quote, began, named): (UInt8?, Int, String?) = (nil, position, nil)
        while position < bytes.count {
            let byte = bytes[position]
            position += 1
            if let open = quote {
                guard byte == open else { continue }
                if let named {
                    element.attributes[named] = String(decoding: bytes[began..<position - 1], as: UTF8.self)
                }
                (quote, named, began) = (nil, nil, position)
            } else if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "'") {
                (quote, began) = (byte, position)
            } else if byte == UInt8(ascii: "=") {
                named = Self.attribute(bytes[began..<position - 1])
            } else if byte == UInt8(ascii: "<") {
                throw .malformed
            } else if byte == UInt8(ascii: ">") {
                return (element, bytes[position - 2] == UInt8(ascii: "/"))
            }
        }
        throw .malformed
    }

    /// An attribute's name without prefix and white space; nil for anything else.
    private static func attribute(_ text: ArraySlice<UInt8>) -> String? {
        let name = text.drop(while: isSpace).prefix { !isSpace($0) }
        guard !name.isEmpty, name.count <= 256, name.allSatisfy(isName) else { return nil }
        return name.split(separator: UInt8(ascii: ":")).last.map { String(decoding: $0, as: UTF8.self) }
    }

    /// An end tag, which must be that of the innermost open element.
    private mutating func end(_ open: (element: XMLElement, text: [UInt8])) throws(Fault) -> XMLElement {
        position += 2
        let name = try self.name()
        while position < bytes.count, Self.isSpace(bytes[position]) { position += 1 }
        guard name == open.element.name, position < bytes.count, bytes[position] == UInt8(ascii: ">") else {
            throw .malformed
        }
        position += 1
        var element = open.element
        element.text = String(decoding: open.text, as: UTF8.self)
        return element
    }

    private mutating func name() throws(Fault) -> String {
        let start = position
        while position < bytes.count, Self.isName(bytes[position]) { position += 1 }
        guard position > start, position - start <= 256, position < bytes.count else { throw .malformed }
        guard let name = bytes[start..<position].split(separator: UInt8(ascii: ":")).last else { throw .malformed }
        return String(decoding: name, as: UTF8.self)
    }

    /// `element`, if only space and comments follow it.
    private mutating func alone(_ element: XMLElement) throws(Fault) -> XMLElement {
        while position < bytes.count {
            if Self.isSpace(bytes[position]) {
                position += 1
            } else if !skips("<!--", to: "-->"), !skips("<?", to: "?>") {
                throw .malformed
            }
        }
        return element
    }

    // MARK: - Bytes

    private func follows(_ text: String) -> Bool { bytes[position...].starts(with: text.utf8) }

    /// Skips `start … end`, if it is complete.
    private mutating func skips(_ start: String, to end: String) -> Bool {
        guard follows(start),
            let range = bytes[(position + start.utf8.count)...].firstRange(of: Array(end.utf8))
        else { return false }
        position = range.upperBound
        return true
    }

    /// The text up to `end`; skips both.
    private mutating func rest(after count: Int, to end: String) throws(Fault) -> ArraySlice<UInt8> {
        let body = bytes[(position + count)...]
        guard let range = body.firstRange(of: Array(end.utf8)) else { throw .malformed }
        position = range.upperBound
        return body[..<range.lowerBound]
    }

    private static func isSpace(_ byte: UInt8) -> Bool { [0x20, 0x09, 0x0A, 0x0D].contains(byte) }

    private static func isName(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "-"), UInt8(ascii: "."),
            UInt8(ascii: ":"), 0x80...:
            true
        default: false
        }
    }
}
