/// The last look at what goes to a terminal. Whoever makes a text escapes the names in it (`DisplayText`); this is for what
/// was forgotten, and for JSON of encoders that leave such letters as they are.
package enum TerminalText {
    /// `text` with each control but ends of lines and tabs, and what turns the direction of what is read, as `\uXXXX`: text
    /// stays readable, and JSON, where those stand in strings only, the same value.
    ///
    /// - Parameter keepsColours: `ESC [ NUMBER m` stays; it is what our own words are coloured with.
    package static func masked(_ text: String, keepsColours: Bool) -> String {
        if text.utf8.allSatisfy({ (0x20..<0x7F).contains($0) || $0 == UInt8(ascii: "\n") }) { return text }
        var result = String.UnicodeScalarView()
        var rest = Substring(text).unicodeScalars
        while let scalar = rest.first {
            if keepsColours, scalar == escape, let length = colour(rest) {
                result.append(contentsOf: rest.prefix(length))
                rest = rest.dropFirst(length)
            } else {
                if isHarmless(scalar) {
                    result.append(scalar)
                } else {
                    result.append(contentsOf: JSONString.escaped(scalar).unicodeScalars)
                }
                rest = rest.dropFirst()
            }
        }
        return String(result)
    }

    private static let escape: Unicode.Scalar = "\u{1B}"

    private static func isHarmless(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0x09, 0x0A: true
        case 0..<0x20, 0x7F..<0xA0: false
        default: !scalar.isDeceptive
        }
    }

    /// How many scalars a colour takes at the beginning of `text`; nil where there is none.
    private static func colour(_ text: Substring.UnicodeScalarView) -> Int? {
        let digits = text.dropFirst(2).prefix { ("0"..."9").contains($0) }.count
        guard text.dropFirst().first == "[", (1...2).contains(digits), text.dropFirst(2 + digits).first == "m" else {
            return nil
        }
        return 3 + digits
    }
}
