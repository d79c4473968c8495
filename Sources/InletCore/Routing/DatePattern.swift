/// A date format of Unicode TR35 (part 4, "Date Format Patterns") for the Gregorian calendar with English names.
///
/// Weeks are ISO 8601's, whatever the locale. Text stands between single quotes; `''` is a quote.
struct DatePattern: Sendable, Hashable {
    enum Part: Sendable, Hashable {
        case literal(String)
        case field(letter: UInt8, width: Int)
    }

    private let parts: [Part]

    /// Parses `text`; letters that are no field here are refused, and years that do not go with what they stand beside.
    init(_ text: String) throws(PatternError) {
        var parts: [Part] = []
        let bytes = Array(text.utf8)
        var index = 0
        while index < bytes.count {
            if bytes[index] == UInt8(ascii: "'") {
                parts.append(.literal(try Self.quoted(bytes, &index)))
            } else if (0x41...0x5A).contains(bytes[index] & 0xDF) {
                let run = bytes[index...].prefix { $0 == bytes[index] }
                try Self.check(letter: bytes[index], width: run.count, at: index)
                parts.append(.field(letter: bytes[index], width: run.count))
                index = run.endIndex
            } else {
                let run = bytes[index...].prefix { $0 != UInt8(ascii: "'") && !(0x41...0x5A).contains($0 & 0xDF) }
                parts.append(.literal(String(decoding: run, as: UTF8.self)))
                index = run.endIndex
            }
        }
        self.parts = parts
        try checkYears(in: bytes)
    }

    func text(_ time: LocalTime) -> String {
        parts.map { part in
            switch part {
            case .literal(let text): text
            case .field(let letter, let width): DateField.text(letter, width, time)
            }
        }.joined()
    }

    /// Splits `FORMAT@ZONE` at the last `@` outside of quotes.
    static func splitZone(_ text: String) -> (format: String, zone: String?) {
        var isQuoted = false
        var at: String.Index?
        for index in text.utf8.indices {
            if text.utf8[index] == UInt8(ascii: "'") { isQuoted.toggle() }
            if text.utf8[index] == UInt8(ascii: "@"), !isQuoted { at = index }
        }
        guard let at else { return (text, nil) }
        return (String(text[..<at]), String(text[text.utf8.index(after: at)...]))
    }

    private static func quoted(_ bytes: [UInt8], _ index: inout Int) throws(PatternError) -> String {
        let quote = UInt8(ascii: "'")
        let start = index
        if bytes[(start + 1)...].first == quote {
            index += 2
            return "'"
        }
        var text: [UInt8] = []
        index += 1
        while index < bytes.count {
            if bytes[index] != quote {
                text.append(bytes[index])
                index += 1
            } else if bytes[(index + 1)...].first == quote {
                text.append(quote)
                index += 2
            } else {
                index += 1
                return String(decoding: text, as: UTF8.self)
            }
        }
        throw PatternError(offset: start, message: "the quoted text is not closed by another '")
    }

    private static func check(letter: UInt8, width: Int, at offset: Int) throws(PatternError) {
        guard let widest = DateField.widest[letter] else {
            let name = String(UnicodeScalar(letter))
            let known = DateField.widest.keys.sorted().map { String(UnicodeScalar($0)) }.joined(separator: " ")
            throw PatternError(
                offset: offset,
                message: "'\(name)' is no date field here (known: \(known)); text stands between quotes: '\(name)'")
        }
        if width > widest {
            throw PatternError(
                offset: offset, message: "'\(String(UnicodeScalar(letter)))' may stand at most \(widest) times in a row"
            )
        }
    }

    /// `YYYY` is the year of the ISO week, which differs from the date's around New Year; mixing them misfiles silently.
    private func checkYears(in bytes: [UInt8]) throws(PatternError) {
        let letters = Set(parts.compactMap { if case .field(let letter, _) = $0 { letter } else { nil } })
        let hasWeek = letters.contains(UInt8(ascii: "w"))
        let hasDay = !letters.isDisjoint(with: "MLdD".utf8)
        if letters.contains(UInt8(ascii: "Y")), !hasWeek, hasDay {
            throw PatternError(
                offset: bytes.firstIndex(of: UInt8(ascii: "Y")) ?? 0,
                message: "'YYYY' is the year of the week 'ww'; with months and days use 'yyyy'")
        }
        if letters.contains(UInt8(ascii: "y")), hasWeek, !hasDay, !letters.contains(UInt8(ascii: "Y")) {
            throw PatternError(
                offset: bytes.firstIndex(of: UInt8(ascii: "y")) ?? 0,
                message: "the week 'ww' goes with the year 'YYYY', which differs from 'yyyy' around New Year")
        }
    }
}
