/// A date format of Unicode TR35 (part 4, "Date Format Patterns") for the Gregorian calendar with English names.
///
/// Weeks follow ISO 8601 in every locale. Text is in single quotes; `''` is a quote.
struct DatePattern: Sendable, Hashable {
    enum Part: Sendable, Hashable {
        case literal(String)
        case field(letter: UInt8, width: Int)
    }

    private let parts: [Part]

    /// Parses `text`; rejects unknown letters, and years that do not match their neighbours.
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
            case .field(let letter, let width): Self.text(letter, width, time)
            }
        }.joined()
    }

    /// Splits `FORMAT@ZONE` at the last `@` outside quotes.
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
        guard let widest = widest[letter] else {
            let name = String(UnicodeScalar(letter))
            let known = widest.keys.sorted().map { String(UnicodeScalar($0)) }.joined(separator: " ")
            throw PatternError(
                offset: offset,
                message: "'\(name)' is not a date field (known: \(known)); put text in quotes: '\(name)'")
        }
        if width > widest {
            throw PatternError(
                offset: offset,
                message: "'\(String(UnicodeScalar(letter)))' may appear at most \(widest) times in a row"
            )
        }
    }

    /// `YYYY` is the year of the ISO week, which differs from the date's around New Year; mixing them misfiles
    /// silently.
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
                message: "use 'YYYY' with the week 'ww'; it differs from 'yyyy' around New Year")
        }
    }
}

// The fields, in the order of TR35.
extension DatePattern {
    /// The supported letters, and how often each may be repeated.
    private static let widest: [UInt8: Int] = {
        let table: [(Unicode.Scalar, Int)] = [
            ("G", 5), ("y", 9), ("Y", 9), ("u", 9), ("Q", 4), ("M", 5), ("L", 5), ("w", 2), ("d", 2), ("D", 3),
            ("E", 6),
            ("e", 6), ("a", 3), ("h", 2), ("H", 2), ("K", 2), ("k", 2), ("m", 2), ("s", 2), ("S", 9), ("A", 9),
            ("Z", 5),
            ("X", 5), ("x", 5),
        ]
        return Dictionary(uniqueKeysWithValues: table.map { (UInt8(ascii: $0), $1) })
    }()

    private static let months = [
        "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
        "December",
    ]
    private static let weekdays = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]

    static func text(_ letter: UInt8, _ width: Int, _ time: LocalTime) -> String {
        switch Unicode.Scalar(letter) {
        case "G", "y", "Y", "u", "Q", "M", "L", "w", "d", "D", "E", "e": dateText(Unicode.Scalar(letter), width, time)
        case "Z", "X", "x": offsetText(Unicode.Scalar(letter), width, time.offset)
        default: clockText(Unicode.Scalar(letter), width, time.millisecondOfDay)
        }
    }

    private static func dateText(_ letter: Unicode.Scalar, _ width: Int, _ time: LocalTime) -> String {
        switch letter {
        case "G": era(width, time.date.year)
        case "y": year(width, time.date.year > 0 ? time.date.year : 1 - time.date.year)
        case "Y": year(width, time.weekYear)
        case "u": pad(time.date.year, width)
        case "Q": quarter(width, Int64(time.date.month + 2) / 3)
        case "M", "L": named(width, Int64(time.date.month), months[time.date.month - 1])
        case "w": pad(Int64(time.week), width)
        case "d": pad(Int64(time.date.day), width)
        case "D": pad(Int64(time.dayOfYear), width)
        case "e": named(width, Int64(time.weekday), weekdays[time.weekday - 1])
        default: named(max(width, 3), Int64(time.weekday), weekdays[time.weekday - 1])
        }
    }

    private static func clockText(_ letter: Unicode.Scalar, _ width: Int, _ millisecond: Int64) -> String {
        let hour = millisecond / 3_600_000
        switch letter {
        case "a": return hour < 12 ? "AM" : "PM"
        case "h": return pad((hour + 11) % 12 + 1, width)
        case "H": return pad(hour, width)
        case "K": return pad(hour % 12, width)
        case "k": return pad((hour + 23) % 24 + 1, width)
        case "m": return pad(millisecond / 60_000 % 60, width)
        case "s": return pad(millisecond / 1000 % 60, width)
        case "A": return pad(millisecond, width)
        default: return String((pad(millisecond % 1000, 3) + "000000").prefix(width))
        }
    }

    private static func era(_ width: Int, _ year: Int64) -> String {
        let name = year > 0 ? ("AD", "Anno Domini", "A") : ("BC", "Before Christ", "B")
        return width < 4 ? name.0 : width == 4 ? name.1 : name.2
    }

    private static func year(_ width: Int, _ year: Int64) -> String {
        width == 2 ? pad(abs(year) % 100, 2) : pad(year, width)
    }

    private static func quarter(_ width: Int, _ number: Int64) -> String {
        switch width {
        case 1...2: pad(number, width)
        case 3: "Q\(number)"
        default: ["1st", "2nd", "3rd", "4th"][Int(number) - 1] + " quarter"
        }
    }

    /// The number for widths 1 and 2, then the name: `Nov`, `November`, `N`, `No`.
    private static func named(_ width: Int, _ number: Int64, _ name: String) -> String {
        switch width {
        case 1...2: pad(number, width)
        case 3: String(name.prefix(3))
        case 4: name
        case 5: String(name.prefix(1))
        default: String(name.prefix(2))
        }
    }

    /// `Z` to `ZZZ`: +0100, `ZZZZ`: GMT+01:00, `ZZZZZ`: +01:00; `X` and `x` by length, with `Z` for UTC in `X`.
    private static func offsetText(_ letter: Unicode.Scalar, _ width: Int, _ offset: Int64) -> String {
        let sign = offset < 0 ? "-" : "+"
        let hours = pad(abs(offset) / 3600, 2)
        let minutes = pad(abs(offset) / 60 % 60, 2)
        if letter == "Z", width == 4 { return offset == 0 ? "GMT" : "GMT\(sign)\(hours):\(minutes)" }
        if offset == 0, letter == "X" || (letter == "Z" && width == 5) { return "Z" }
        if letter != "Z", width == 1 { return sign + hours + (minutes == "00" ? "" : minutes) }
        let hasColon = width == 5 || (letter != "Z" && width == 3)
        return sign + hours + (hasColon ? ":" : "") + minutes
    }

    private static func pad(_ number: Int64, _ width: Int) -> String {
        let digits = String(abs(number))
        return (number < 0 ? "-" : "") + String(repeating: "0", count: max(0, width - digits.count)) + digits
    }
}
