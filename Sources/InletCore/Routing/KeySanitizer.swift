import SystemPackage

/// Turns text into keys that every store, URL and shell can handle.
package enum KeySanitizer {
    /// The longest key of S3 and R2, in bytes of UTF-8.
    static let longestKey = 1024
    /// The longest extension to keep when a key is cut; a longer one counts as part of the name.
    private static let longestExtension = 32

    /// `text` as a key; empty if nothing remains.
    static func key(_ text: String) -> String {
        if isPlain(text) { return limited(text) }
        var scalars = String.UnicodeScalarView()
        for scalar in KeyTemplate.composed(text).unicodeScalars {
            scalars.append(isHarmless(scalar) ? scalar : "_")
        }
        // Splits by scalar: a slash with a combining mark is one Character, but stores see the slash.
        let names = scalars.split(separator: "/").map { String($0) }.filter { $0 != "." && $0 != ".." }
        return limited(names.joined(separator: "/"))
    }

    /// `text` as the name of one visible folder, at most 64 bytes long; nil if nothing remains.
    package static func folderName(_ text: String) -> String? {
        let name = key(text.replacing("/", with: "_"))
        guard !name.isEmpty else { return nil }
        return cut((name.hasPrefix(".") ? "_" + name.dropFirst() : name)[...], to: 64)
    }

    /// Whether `text` is already a key, apart from its length: printable ASCII, and no name is empty, `.` or `..`.
    /// Nearly all keys are, and need no look-up of Unicode properties.
    static func isPlain(_ text: String) -> Bool {
        var (length, dots) = (0, 0)
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "/"):
                if length == dots, length <= 2 { return false }
                (length, dots) = (0, 0)
            case UInt8(ascii: "."): (length, dots) = (length + 1, dots + 1)
            case 0x5C: return false
            case 0x21...0x7E: length += 1
            default: return false
            }
        }
        return length != dots || length > 2
    }

    /// `text` with `_` for each control character.
    static func withoutControls(_ text: String) -> String {
        var scalars = String.UnicodeScalarView()
        for scalar in text.unicodeScalars {
            scalars.append(scalar.properties.generalCategory == .control ? "_" : scalar)
        }
        return String(scalars)
    }

    /// White space, controls, backslashes, invisible and direction-changing characters are not harmless.
    private static func isHarmless(_ scalar: Unicode.Scalar) -> Bool {
        scalar != "\\" && !scalar.isDeceptive && !scalar.properties.isWhitespace
            && scalar.properties.generalCategory != .control
    }

    /// `bytes` as text with `%HH` for each byte that is not UTF-8, and whether there was none.
    static func text(of bytes: ArraySlice<UInt8>) -> (text: String, isExact: Bool) {
        if let text = String(validating: bytes, as: UTF8.self) { return (text, true) }
        let text = DisplayText.text(of: bytes, isPlain: { _ in true }, escape: { "%" + [$0].hex.uppercased() })
        return (text, false)
    }

    /// Eight hexadecimal digits of FNV-1a (32 bits; Fowler, Noll, Vo), the same on every run and machine.
    package static func hash(_ bytes: some Sequence<UInt8>) -> String {
        let value = bytes.reduce(0x811C_9DC5 as UInt32) { ($0 ^ UInt32($1)) &* 0x0100_0193 }
        return stride(from: 24, through: 0, by: -8).map { UInt8(truncatingIfNeeded: value >> UInt32($0)) }.hex
    }

    /// `key` within the limit; drops characters before the extension.
    private static func limited(_ key: String) -> String {
        guard key.utf8.count > longestKey else { return key }
        let (head, ending) = splitExtension(key)
        return cut(head, to: longestKey - ending.utf8.count) + ending
    }

    /// The longest form of `key` after extending its last name, in bytes: a valid file name stays one.
    static func limit(for key: String) -> Int {
        let bytes = key.utf8
        let above = bytes.lastIndex(of: UInt8(ascii: "/")).map { bytes[...$0].count } ?? 0
        let longest = FilePath.Component.longest
        // Only folders have such keys, and only the last name of one is shortened.
        if bytes.count > longestKey { return above + longest }
        return bytes.count - above <= longest ? min(longestKey, above + longest) : longestKey
    }

    /// `key` before and from the dot of its last name's extension; an overlong extension stays in the head.
    static func splitExtension(_ key: String) -> (head: Substring, ending: Substring) {
        let bytes = key.utf8
        let start = bytes.lastIndex(of: UInt8(ascii: "/")).map { bytes.index(after: $0) } ?? bytes.startIndex
        guard let dot = bytes[start...].lastIndex(of: UInt8(ascii: ".")), dot > start,
            (2...longestExtension).contains(bytes.distance(from: dot, to: bytes.endIndex))
        else { return (key[...], "") }
        return (key[..<dot], key[dot...])
    }

    /// At most `limit` bytes of `text`, ending with a whole character (or a whole scalar, if a single character is
    /// longer). Does not end with a name that a store would take for a folder.
    static func cut(_ text: Substring, to limit: Int) -> String {
        guard text.utf8.count > limit else { return String(text) }
        let text = String(text)
        let last = text.utf8.index(text.startIndex, offsetBy: limit)
        let characterEnd = text.indices.last { $0 <= last } ?? text.startIndex
        let scalarEnd = text.unicodeScalars.indices.last { $0 <= last } ?? text.startIndex
        let end = characterEnd > text.startIndex ? characterEnd : scalarEnd
        var names = text.unicodeScalars[..<end].split(separator: "/", omittingEmptySubsequences: false)
            .map { String($0) }
        while let name = names.last, ["", ".", ".."].contains(name) { names.removeLast() }
        return names.isEmpty ? "_" : names.joined(separator: "/")
    }
}
