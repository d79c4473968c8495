package import SystemPackage

/// `names:` — the rule for file names in keys.
package enum NameRule: String, Sendable, CaseIterable {
    /// It stays as it is, byte for byte; only what a destination cannot hold is encoded (`KeptName`).
    case keep
    /// `_` for white space, `\`, control and invisible characters, in Unicode's normal form C (`KeySanitizer`).
    case clean
}

/// The names in the keys of one destination.
package enum NameForm: Sendable, Hashable {
    case clean
    /// Kept, for a folder: any bytes.
    case folder
    /// Kept, for an object store: UTF-8, at most 1,024 bytes in all.
    case object
}

/// The limits of a destination's names.
package struct NameLimits: Sendable, Equatable {
    /// Bytes that no name may have.
    package var refused: Set<UInt8> = [0]
    /// Bytes that no name may end in.
    package var refusedLast: Set<UInt8> = []
    /// Whether every name is UTF-8.
    package var isText = false
    /// In bytes.
    package var longest = FilePath.Component.longest

    package init() {}
}

/// Keys with names as their files have them.
///
/// Keys are text, and names are bytes. The scheme of MirBSD's OPTU-8 writes a byte that is not UTF-8 as a character from
/// U+EF80 to U+EFFF, of the private use area. It writes each byte of such a character itself in the same way. No two
/// names have the same text, and `bytes` finds them again.
///
/// Bytes beyond a destination's limits are written as `%XX` (RFC 3986, section 2.1), and so is `%`, but only in such a
/// name. A name that is too long keeps its extension and ends in `~` and eight hexadecimal digits of its SHA-256.
package enum KeptName {
    /// The text of a name or path.
    package static func text(of bytes: some Collection<UInt8>) -> String {
        if let text = String(validating: bytes, as: UTF8.self), !hasRaw(text) { return text }
        return DisplayText.text(
            of: Array(bytes)[...], isPlain: { !isRaw($0) },
            escape: { Unicode.Scalar(0xEF00 + UInt32($0)).map { String($0) } ?? "" })
    }

    /// The bytes of a name or path that has this text.
    package static func bytes(of text: String) -> [UInt8] {
        guard hasRaw(text) else { return Array(text.utf8) }
        return text.unicodeScalars.flatMap { isRaw($0) ? [UInt8($0.value & 0xFF)] : Array(String($0).utf8) }
    }

    /// `text` as a key whose names meet the limits of a folder, or of an object store.
    static func key(_ text: String, _ form: NameForm) -> String {
        if form == .clean { return KeySanitizer.key(text) }
        if KeySanitizer.isPlain(text), text.utf8.count <= FilePath.Component.longest { return text }
        var limits = NameLimits()
        if form == .object { (limits.isText, limits.longest) = (true, .max) }
        let key = held(text, limits)
        return form == .object ? shortened(key, to: KeySanitizer.longestKey) : key
    }

    /// `key` with names that meet the limits.
    package static func held(_ key: String, _ limits: NameLimits) -> String {
        // By scalar: a slash with a combining mark is one Character, but destinations see the slash.
        key.unicodeScalars.split(separator: "/").map { name in
            shortened(encoded(String(name), limits), to: limits.longest)
        }.joined(separator: "/")
    }

    /// `name` with `%XX` for each byte that the limits refuse, and for `%`; unchanged where they refuse none.
    private static func encoded(_ name: String, _ limits: NameLimits) -> String {
        let scalars = Array(name.unicodeScalars)
        let end = scalars.lastIndex { !isOne($0, of: limits.refusedLast) }.map { $0 + 1 } ?? 0
        func isRefused(_ place: Int) -> Bool {
            place >= end || isOne(scalars[place], of: limits.refused) || limits.isText && isRaw(scalars[place])
        }
        let isDots = name == "." || name == ".."
        guard isDots || scalars.indices.contains(where: isRefused) else { return name }
        return scalars.indices.map { place in
            guard isDots || isRefused(place) || scalars[place] == "%" else { return String(scalars[place]) }
            return bytes(of: String(scalars[place])).map { "%" + [$0].hex.uppercased() }.joined()
        }.joined()
    }

    private static func isOne(_ scalar: Unicode.Scalar, of refused: Set<UInt8>) -> Bool {
        scalar.isASCII && refused.contains(UInt8(scalar.value))
    }

    private static func shortened(_ text: String, to limit: Int) -> String {
        let bytes = bytes(of: text)
        guard bytes.count > limit else { return text }
        let (head, ending) = KeySanitizer.splitExtension(text)
        let tail = "~" + SHA256.bytes(of: bytes).prefix(4).hex + ending
        return KeySanitizer.cut(head, to: limit - tail.utf8.count) + tail
    }

    private static func isRaw(_ scalar: Unicode.Scalar) -> Bool { (0xEF80...0xEFFF).contains(scalar.value) }
    private static func hasRaw(_ text: String) -> Bool {
        text.utf8.contains(0xEE) && text.unicodeScalars.contains(where: isRaw)
    }
}

extension FilePath {
    /// The path of a key below a folder.
    package init(key: String) { self.init(bytes: KeptName.bytes(of: key)) }
}
