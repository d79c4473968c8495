/// The width of a text in terminal columns: two for wide characters (UAX #11 and emoji), none for combining marks.
package enum DisplayWidth {
    /// East Asian wide and fullwidth characters; emoji have their own property.
    private static let wide: [ClosedRange<UInt32>] = [
        0x1100...0x115F, 0x2329...0x232A, 0x2E80...0x303E, 0x3041...0x4DBF, 0x4E00...0xA4CF, 0xA960...0xA97F,
        0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE10...0xFE19, 0xFE30...0xFE6F, 0xFF00...0xFF60, 0xFFE0...0xFFE6,
        0x16FE0...0x18CFF, 0x1AFF0...0x1B2FF, 0x1F200...0x1F2FF, 0x20000...0x3FFFD,
    ]
    /// Hangul vowels and finals, which join the consonant before them.
    private static let joining: ClosedRange<UInt32> = 0x1160...0x11FF
    private static let softHyphen: UInt32 = 0xAD
    private static let emojiSelector: UInt32 = 0xFE0F

    package static func of(_ text: String) -> Int {
        if text.utf8.allSatisfy({ (0x20..<0x7F).contains($0) }) { return text.utf8.count }
        return text.reduce(0) { $0 + of($1) }
    }

    /// The width of a character with all its marks.
    package static func of(_ character: Character) -> Int {
        let scalars = character.unicodeScalars
        if scalars.count > 1, scalars.contains(where: { $0.value == emojiSelector }) { return 2 }
        return scalars.map(of).max() ?? 0
    }

    private static func of(_ scalar: Unicode.Scalar) -> Int {
        let value = scalar.value
        if value < 0x7F { return value < 0x20 ? 0 : 1 }
        if value == softHyphen { return 1 }
        switch scalar.properties.generalCategory {
        case .control, .format, .nonspacingMark, .enclosingMark: return 0
        default: break
        }
        if joining.contains(value) { return 0 }
        if value < 0x1100 { return 1 }
        return scalar.properties.isEmojiPresentation || wide.contains { $0.contains(value) } ? 2 : 1
    }

    /// The longest prefix within `columns`.
    package static func prefix(_ text: String, _ columns: Int) -> String {
        String(text.prefix(count(of: text, within: columns)))
    }

    /// How many of the first `characters` fit in `columns`.
    private static func count(of characters: some Sequence<Character>, within columns: Int) -> Int {
        var left = columns
        return characters.prefix { character in
            left -= of(character)
            return left >= 0
        }.count
    }

    /// The text within `columns`; ends with `…` if it was cut.
    package static func cut(_ text: String, _ columns: Int) -> String {
        if of(text) <= columns { return text }
        return columns < 1 ? "" : prefix(text, columns - 1) + "…"
    }

    /// The text within `columns`, with `…` instead of the middle: both ends of a path matter.
    package static func shorten(_ text: String, _ columns: Int) -> String {
        if of(text) <= columns { return text }
        guard columns > 3 else { return cut(text, columns) }
        let tail = (columns - 1) / 2
        return prefix(text, columns - 1 - tail) + "…" + text.suffix(count(of: text.reversed(), within: tail))
    }

    /// Appends spaces up to `columns`.
    package static func pad(_ text: String, _ columns: Int) -> String {
        text + String(repeating: " ", count: max(0, columns - of(text)))
    }

    /// Prepends spaces up to `columns`.
    package static func padLeft(_ text: String, _ columns: Int) -> String {
        String(repeating: " ", count: max(0, columns - of(text))) + text
    }
}

/// The last filter before a terminal. The author of a text escapes its names (`DisplayText`); this catches what was
/// forgotten, and JSON from encoders that do not escape such characters.
extension DisplayText {
    /// `text` with `\uXXXX` for control characters, except line ends and tabs, and for direction-changing characters.
    /// Text stays readable, and JSON keeps its value, because these occur only in strings.
    ///
    /// - Parameter keepsColours: keeps `ESC [ NUMBER m`, which colours our own words.
    package static func masked(_ text: String, keepsColours: Bool) -> String {
        if text.utf8.allSatisfy({ (0x20..<0x7F).contains($0) || $0 == UInt8(ascii: "\n") }) { return text }
        var result = String.UnicodeScalarView()
        var rest = Substring(text).unicodeScalars
        while let scalar = rest.first {
            if keepsColours, scalar == escapeCharacter, let length = colour(rest) {
                result.append(contentsOf: rest.prefix(length))
                rest = rest.dropFirst(length)
            } else {
                if scalar == "\t" || scalar == "\n" || isPrintable(scalar) {
                    result.append(scalar)
                } else {
                    result.append(contentsOf: JSONString.escaped(scalar).unicodeScalars)
                }
                rest = rest.dropFirst()
            }
        }
        return String(result)
    }

    private static let escapeCharacter: Unicode.Scalar = "\u{1B}"

    /// The length of a colour sequence at the beginning of `text`, in scalars; nil if there is none.
    private static func colour(_ text: Substring.UnicodeScalarView) -> Int? {
        let digits = text.dropFirst(2).prefix { ("0"..."9").contains($0) }.count
        guard text.dropFirst().first == "[", (1...2).contains(digits), text.dropFirst(2 + digits).first == "m" else {
            return nil
        }
        return 3 + digits
    }
}

extension Unicode.Scalar {
    /// Whether it is invisible, or changes the reading order, so that one name looks like another: Unicode's
    /// Bidi_Control, zero width, line and paragraph separators, and tags. The two joiners are allowed: emoji and
    /// several scripts need them.
    var isDeceptive: Bool {
        switch value {
        case 0xAD, 0x61C, 0x180E, 0x200B, 0x200E...0x200F, 0x2028...0x202E, 0x2060...0x206F, 0xFEFF, 0xFFF9...0xFFFB,
            0xE0000...0xE007F:
            true
        default: false
        }
    }
}
