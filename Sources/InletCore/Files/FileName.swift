package import SystemPackage

/// File names are bytes. `FilePath.string` repairs invalid UTF-8 and then names another file, so paths cross module,
/// database and kernel borders as bytes, and become text for display only.
extension FilePath {
    /// The path's bytes, without the terminating NUL.
    package var bytes: [UInt8] {
        withPlatformString { pointer in
            pointer.withMemoryRebound(to: UInt8.self, capacity: length) {
                Array(UnsafeBufferPointer(start: $0, count: length))
            }
        }
    }

    /// A path made of `bytes`, which end at the first NUL if there is one.
    package init(bytes: some Collection<UInt8>) {
        var terminated = bytes.map { CChar(bitPattern: $0) }
        terminated.append(0)
        self.init(platformString: terminated)
    }

    /// Whether it is `folder`, or below it, name by name. As `starts(with:)`, which makes a view of both paths first: the
    /// names of large folders are asked this by the thousand.
    package func isWithin(_ folder: FilePath) -> Bool {
        let (own, other) = (length, folder.length)
        guard other > 0 else { return true }
        return withPlatformString { path in
            folder.withPlatformString { start in
                guard own >= other, (0..<other).allSatisfy({ path[$0] == start[$0] }) else { return false }
                return own == other || path[other] == Self.separator || start[other - 1] == Self.separator
            }
        }
    }

    private static let separator = CChar(UInt8(ascii: "/"))

    /// The path as a person may see it: control characters, quotes of the terminal and invalid UTF-8 become `\xHH`.
    package var display: String { DisplayText.escape(bytes) }
}

/// Turns bytes of unknown origin into text that is safe on a terminal, in a log line and in a page.
package enum DisplayText {
    /// Escapes C0/C1 controls, DEL, what is not seen or turns the direction of text, and bytes that are not UTF-8 as `\xHH`.
    package static func escape(_ bytes: some Sequence<UInt8>) -> String {
        let all = Array(bytes)
        // Most names; thousands a second of them are logged.
        if all.allSatisfy({ (0x20..<0x7F).contains($0) }) { return String(decoding: all, as: UTF8.self) }
        return text(of: all[...], isPlain: isPrintable, escape: { "\\x" + [$0].hex.uppercased() })
    }

    /// `bytes` as text: scalars that are `isPlain` as they are, the bytes of all others, and those that are no UTF-8, as `escape`
    /// writes them.
    static func text(
        of bytes: ArraySlice<UInt8>, isPlain: (Unicode.Scalar) -> Bool, escape: (UInt8) -> String
    ) -> String {
        var result = String.UnicodeScalarView()
        var (iterator, parser) = (bytes.makeIterator(), Unicode.UTF8.ForwardParser())
        var rest = bytes
        while true {
            let length: Int
            switch parser.parseScalar(from: &iterator) {
            case .valid(let encoded):
                let scalar = Unicode.UTF8.decode(encoded)
                length = encoded.count
                if isPlain(scalar) {
                    result.append(scalar)
                    rest = rest.dropFirst(length)
                    continue
                }
            case .error(let count): length = count
            case .emptyInput: return String(result)
            }
            for byte in rest.prefix(length) { result.append(contentsOf: escape(byte).unicodeScalars) }
            rest = rest.dropFirst(length)
        }
    }

    /// Escapes a text the same way.
    package static func escape(_ text: String) -> String { escape(text.utf8) }

    /// The bytes of an escaped text. One that had `\xHH` in it before it was escaped gives others.
    package static func unescape(_ text: String) -> [UInt8] {
        var bytes: [UInt8] = []
        var rest = Array(text.utf8)[...]
        while let first = rest.first {
            let digits = rest.dropFirst(2).prefix(2)
            if first == UInt8(ascii: "\\"), rest.dropFirst().first == UInt8(ascii: "x"), digits.count == 2,
                let byte = UInt8(String(decoding: digits, as: UTF8.self), radix: 16)
            {
                bytes.append(byte)
                rest = rest.dropFirst(4)
            } else {
                bytes.append(first)
                rest = rest.dropFirst()
            }
        }
        return bytes
    }

    static func isPrintable(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0..<0x20, 0x7F..<0xA0: false
        default: !scalar.isDeceptive
        }
    }
}

/// The last component of a path, as bytes, split where its extension begins.
///
/// The extension is what follows the last dot; a leading dot (`.profile`) or a trailing one begins none.
package struct FileName: Hashable, Sendable {
    package let bytes: [UInt8]
    private let dot: Int?

    package init(_ path: FilePath) {
        let all = path.bytes
        self.init(bytes: all[(all.lastIndex(of: UInt8(ascii: "/")).map { $0 + 1 } ?? 0)...])
    }

    package init(bytes: some Sequence<UInt8>) {
        let name = Array(bytes)
        let last = name.lastIndex(of: UInt8(ascii: "."))
        dot = last.flatMap { $0 > 0 && $0 < name.count - 1 ? $0 : nil }
        self.bytes = name
    }

    package var stem: ArraySlice<UInt8> { bytes[..<(dot ?? bytes.endIndex)] }
    package var `extension`: ArraySlice<UInt8> { dot.map { bytes[($0 + 1)...] } ?? [] }

    /// The extension in lower case without the dot, as tables and `extensions:` have it; empty when there is none, or
    /// when it is not UTF-8.
    package var plainExtension: String { String(validating: self.extension, as: UTF8.self)?.lowercased() ?? "" }

    /// Whether the name ends in `extension` (lower case, without the dot), which may have dots of its own: `tar.gz`.
    package func hasExtension(_ extension: String) -> Bool {
        let suffix = Array(("." + `extension`).utf8)
        guard `extension`.isEmpty == false, bytes.count > suffix.count,
            let tail = String(validating: bytes.suffix(suffix.count), as: UTF8.self)
        else { return false }
        return tail.lowercased().utf8.elementsEqual(suffix)
    }

    /// What programs add to the name of a file that they are just fetching.
    private static let partEndings = ["part", "partial", "filepart", "crdownload", "download"]

    /// Whether it is a name of what is being fetched.
    package var isOfPart: Bool { Self.partEndings.contains(plainExtension) }

    /// Whether this is what a program calls a file that it fetches and will call `other`: `a.mov.part`, or, as Firefox has it,
    /// `a.Xy12Zw34.mov.part`.
    package func isPart(of other: FileName) -> Bool {
        guard isOfPart else { return false }
        if stem == other.bytes[...] { return true }
        let inner = FileName(bytes: stem)
        guard !other.extension.isEmpty, inner.extension == other.extension else { return false }
        let random = FileName(bytes: inner.stem)
        return random.stem == other.stem && random.extension.count == Self.randomLength
    }

    private static let randomLength = 8
}

extension FilePath.Component {
    /// The name's bytes.
    package var bytes: [UInt8] { FilePath(root: nil, [self]).bytes }

    /// The longest name, in bytes, that nearly all file systems of Linux take (NAME_MAX).
    package static let longest = 255

    /// `PREFIX STEM TAIL .EXTENSION SUFFIX`, in at most `limit` bytes: what does not fit is taken off the stem's end, and off
    /// the extension only where no letter of the stem would be left. What is UTF-8 stays UTF-8; bytes that are not are
    /// kept as they are. Two long names may become the same one: whoever writes under it must not replace what is there.
    ///
    /// - Parameter limit: more than what is added takes.
    package func fitting(
        prefix: String = "", tail: String = "", suffix: String = "", limit: Int = longest
    ) -> FilePath.Component {
        let name = FileName(bytes: bytes)
        let room = limit - prefix.utf8.count - tail.utf8.count - suffix.utf8.count
        let ending = Array(name.bytes[name.stem.endIndex...])
        // One letter may take four bytes.
        let keepsEnding = room - ending.count >= min(name.stem.count, 4)
        var result = Array(prefix.utf8)
        result += Self.head(
            of: keepsEnding ? name.stem : name.bytes[...], within: keepsEnding ? room - ending.count : room)
        result += tail.utf8
        if keepsEnding { result += ending }
        result += suffix.utf8
        return FilePath(bytes: result).lastComponent ?? self
    }

    /// The first bytes of a name, `limit` of them or a few less: not the first half of a sequence of UTF-8, which some file
    /// systems refuse.
    package static func head(of name: ArraySlice<UInt8>, within limit: Int) -> ArraySlice<UInt8> {
        let head = name.prefix(max(0, limit))
        guard head.endIndex < name.endIndex, isContinuation(name[head.endIndex]),
            let lead = head.suffix(3).lastIndex(where: { !isContinuation($0) }), name[lead] >= 0xC0
        else { return head }
        return head[..<lead]
    }

    private static func isContinuation(_ byte: UInt8) -> Bool { byte & 0xC0 == 0x80 }
}
