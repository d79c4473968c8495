import InletCore

/// The parts of the source that excerpts may show.
///
/// Invalid YAML has no values yet, so the mask finds credentials by their keys' names. Values that were read as secrets
/// are added with their exact positions.
struct SecretMask: Sendable {
    private static let telltales = [
        "secret", "password", "passwd", "passphrase", "token", "credential", "api_key", "apikey", "access_key",
    ].map { Array($0.utf8) }

    private let source: SourceText
    private let names: [String]
    private var limits: [Int: Int] = [:]

    /// - Parameter names: the keys with secret values.
    init(source: SourceText, names: [String]) {
        self.source = source
        self.names = names
        var number = 1
        while number <= source.lines.count {
            number = hideLines(from: number)
        }
    }

    /// How many characters of a line (from 1) may be shown; nil for all.
    func limit(ofLine line: Int) -> Int? { limits[line] }

    /// Hides a value that was read as a secret.
    mutating func hide(_ node: YAMLNode) {
        let first = node.position.line
        hide(line: first, after: node.position.column - 1)
        if node.lastLine > first {
            for line in first + 1...node.lastLine { hide(line: line, after: 0) }
        }
    }

    private mutating func hide(line: Int, after count: Int) { limits[line] = min(limits[line] ?? .max, count) }

    /// Hides the credential named on a line, and its continuation on further lines. Returns the next line to examine.
    private mutating func hideLines(from number: Int) -> Int {
        let line = source.lines[number - 1]
        // The first of several addresses: everything behind it is hidden too.
        let logins = line.indices.lazy.filter { line[$0] == "@" }.compactMap { Self.login(in: line[...$0]) }
        if let login = logins.first { hide(line: number, after: login.lowerBound) }
        guard let key = secretWord(in: line) else { return number + 1 }
        hide(line: number, after: key.end)
        if line.first(where: { $0 != " " && $0 != "\t" }) == "#" { return number + 1 }
        let rest = line[key.end...].drop { $0 == " " || $0 == "\t" }
        if let quote = rest.first, quote == "\"" || quote == "'", !rest.dropFirst().contains(quote) {
            return hideQuoted(from: number + 1, until: quote)
        }
        return hideContinuation(from: number + 1, deeperThan: key.start, firstToo: rest.isEmpty || rest.first == "#")
    }

    /// Hides everything up to the closing quote, or to the end without one. Returns the next line to examine.
    private mutating func hideQuoted(from first: Int, until quote: Unicode.Scalar) -> Int {
        var number = first
        while number <= source.lines.count {
            hide(line: number, after: 0)
            if source.lines[number - 1].contains(quote) { return number + 1 }
            number += 1
        }
        return number
    }

    /// Hides blank and deeper lines, which continue the value, and the next line if the value has not started yet.
    private mutating func hideContinuation(from first: Int, deeperThan indent: Int, firstToo: Bool) -> Int {
        var number = first
        var always = firstToo
        while number <= source.lines.count {
            let line = source.lines[number - 1]
            let blank = line.allSatisfy { $0 == " " || $0 == "\t" }
            let depth = line.prefix { $0 == " " }.count
            guard blank || always || depth > indent else { break }
            // The next line may name a credential of its own instead of holding the value.
            if always, !blank, depth <= indent, secretWord(in: line) != nil { break }
            hide(line: number, after: 0)
            if !blank { always = false }
            number += 1
        }
        return number
    }

    /// The first word that names a credential: its start, and the end of its colon, or else of the word.
    private func secretWord(in line: [Unicode.Scalar]) -> (start: Int, end: Int)? {
        var start = 0
        while start < line.count {
            guard Self.isWord(line[start]) else {
                start += 1
                continue
            }
            let end = line[start...].firstIndex { !Self.isWord($0) } ?? line.count
            let colon = colon(behind: end, in: line)
            if isSecret(word: line[start..<end], isKey: colon != nil) { return (start, colon ?? end) }
            start = end
        }
        return nil
    }

    /// The end of the colon after a possibly quoted key; nil if the word is not a key.
    private func colon(behind end: Int, in line: [Unicode.Scalar]) -> Int? {
        let gap = line[end...].prefix { $0 == " " || $0 == "\"" || $0 == "'" }
        return gap.endIndex < line.count && line[gap.endIndex] == ":" ? gap.endIndex + 1 : nil
    }

    private func isSecret(word: ArraySlice<Unicode.Scalar>, isKey: Bool) -> Bool {
        guard word.count >= 3, word.count <= 64 else { return false }
        let lower = word.map { Self.lowercased(UInt8(truncatingIfNeeded: $0.value)) }
        if Self.telltales.contains(where: { Self.contains($0, in: lower) }) { return true }
        if !isKey { return names.contains { $0.utf8.elementsEqual(lower) } }
        return Suggestion.nearest(to: String(decoding: lower, as: UTF8.self), in: names) != nil
    }

    private static func contains(_ part: [UInt8], in word: [UInt8]) -> Bool {
        guard word.count >= part.count else { return false }
        return (0...word.count - part.count).contains { word[$0] == part[0] && word[$0...].starts(with: part) }
    }

    private static func lowercased(_ byte: UInt8) -> UInt8 { (0x41...0x5A).contains(byte) ? byte | 0x20 : byte }

    private static func isWord(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar {
        case "a"..."z", "A"..."Z", "0"..."9", "_", "-": true
        default: false
        }
    }
}

/// The login in a URL, `https://user:password@host`, with or without a scheme. No usable URL has one.
extension SecretMask {
    /// The range before the last `@` that may be a login: from behind `://`, or from the start of a word with a colon.
    static func login<Text: BidirectionalCollection<Unicode.Scalar>>(in text: Text) -> Range<Text.Index>? {
        guard let end = text.lastIndex(of: "@") else { return nil }
        if let marks = text[..<end].firstRange(of: Array("://".unicodeScalars)) { return marks.upperBound..<end }
        let word = text[..<end].reversed().prefix { ![" ", "\t", "\"", "'"].contains($0) }
        // A field of a template may contain a colon too.
        guard word.contains(":"), !word.contains("{") else { return nil }
        return text.index(end, offsetBy: -word.count)..<end
    }

    /// `text` with its login replaced by `***`.
    static func withoutLogin(_ text: String) -> String {
        login(in: text.unicodeScalars).map { "\(text[..<$0.lowerBound])***\(text[$0.upperBound...])" } ?? text
    }
    /// `text` in quotes, for an error message; `this text` if it contains a login, or if an unclosed quote may have
    /// swallowed a credential.
    static func quoted(_ text: String) -> String { isHarmless(text) ? "'\(DisplayText.escape(text))'" : "this text" }

    static func isHarmless(_ text: String) -> Bool {
        login(in: text.unicodeScalars) == nil && text.unicodeScalars.count <= 40
            && ![": ", "\":", "':", "\n"].contains { text.contains($0) }
    }
}
