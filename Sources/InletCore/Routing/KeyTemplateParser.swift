/// Splits a template's text into parts; offsets in its errors are UTF-8 offsets into the whole text.
struct KeyTemplateParser {
    private let bytes: [UInt8]
    private var index = 0
    private var literal: [UInt8] = []
    private var parts: [KeyTemplate.Part] = []

    init(_ text: String) { bytes = Array(text.utf8) }

    mutating func parse() throws(PatternError) -> [KeyTemplate.Part] {
        while index < bytes.count {
            switch bytes[index] {
            case UInt8(ascii: "{"): try parseOpeningBrace()
            case UInt8(ascii: "}"): try parseClosingBrace()
            case UInt8(ascii: "/"):
                finishLiteral()
                parts.append(.separator)
                index += 1
            default:
                literal.append(bytes[index])
                index += 1
            }
        }
        finishLiteral()
        if parts.isEmpty { throw PatternError(offset: 0, message: "the template is empty; the usual one is '{name}'") }
        return parts
    }

    private mutating func finishLiteral() {
        if !literal.isEmpty { parts.append(.literal(String(decoding: literal, as: UTF8.self))) }
        literal = []
    }

    private mutating func parseOpeningBrace() throws(PatternError) {
        if bytes[index...].starts(with: "{{".utf8) {
            literal.append(bytes[index])
            index += 2
            return
        }
        guard let end = bytes[index...].firstIndex(of: UInt8(ascii: "}")) else {
            throw PatternError(offset: index, message: "'{' is not closed by '}'; for a brace itself write '{{'")
        }
        let inside = String(decoding: bytes[(index + 1)..<end], as: UTF8.self)
        do throws(PatternError) {
            finishLiteral()
            parts.append(.field(try KeyField(inside)))
        } catch {
            throw PatternError(offset: index + 1 + error.offset, message: error.message)
        }
        index = end + 1
    }

    private mutating func parseClosingBrace() throws(PatternError) {
        guard bytes[index...].starts(with: "}}".utf8) else {
            throw PatternError(offset: index, message: "'}' without a '{' before it; for a brace itself write '}}'")
        }
        literal.append(bytes[index])
        index += 2
    }
}
