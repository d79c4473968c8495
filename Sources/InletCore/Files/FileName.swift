package import SystemPackage

/// File names are bytes. `FilePath.string` repairs invalid UTF-8 and then names another file. So paths cross the
/// borders of modules, database and kernel as bytes, and become text only for display.
extension FilePath {
    /// The path's bytes, without the terminating NUL.
    package var bytes: [UInt8] {
        withPlatformString { pointer in
            pointer.withMemoryRebound(to: UInt8.self, capacity: length) {
                Array(UnsafeBufferPointer(start: $0, count: length))
            }
        }
    }

    /// A path of `bytes`, up to the first NUL.
    package init(bytes: some Collection<UInt8>) {
        var terminated = bytes.map { CChar(bitPattern: $0) }
        terminated.append(0)
        self.init(platformString: terminated)
    }

    /// Whether this path is `folder` or below it, component by component. Like `starts(with:)`, but without creating
    /// views of both paths: large folders check thousands of names.
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

    /// Where its last name begins.
    package var nameStart: Int {
        withPlatformString { path in
            var start = length
            while start > 0, path[start - 1] != Self.separator { start -= 1 }
            return start
        }
    }

    /// Its first bytes as text; nil if they are not UTF-8.
    package func text(to end: Int) -> String? {
        withPlatformString { path in
            path.withMemoryRebound(to: UInt8.self, capacity: length) {
                String(validating: UnsafeBufferPointer(start: $0, count: max(0, end)), as: UTF8.self)
            }
        }
    }

    /// Whether its bytes sort before those of `other`: the order of listings, and of the journal's indexes.
    package func precedes(_ other: FilePath) -> Bool {
        withPlatformString { own in
            other.withPlatformString { other in
                var place = 0
                while own[place] == other[place], own[place] != 0 { place += 1 }
                return UInt8(bitPattern: own[place]) < UInt8(bitPattern: other[place])
            }
        }
    }

    /// The path for people: control characters, terminal quotes and invalid UTF-8 become `\xHH`.
    package var display: String { DisplayText.escape(bytes) }
}

/// Turns unknown bytes into text that is safe on a terminal, in a log line and in a page.
package enum DisplayText {
    /// Escapes C0 and C1 controls, DEL, invisible and direction-changing characters, and invalid UTF-8 as `\xHH`.
    package static func escape(_ bytes: some Sequence<UInt8>) -> String {
        let all = Array(bytes)
        // The fast path for most names: thousands per second are logged.
        if all.allSatisfy({ (0x20..<0x7F).contains($0) }) { return String(decoding: all, as: UTF8.self) }
        return text(of: all[...], isPlain: isPrintable, escape: { "\\x" + [$0].hex.uppercased() })
    }

    /// `text` as one word of a shell's command line, in quotes where it needs them.
    package static func shellWord(_ text: String) -> String {
        let isPlain = text.utf8.allSatisfy { byte in
            (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
                || "/._-~".utf8.contains(byte)
        }
        return isPlain && !text.isEmpty ? text : "'" + text.replacing("'", with: "'\\''") + "'"
    }

    /// `bytes` as text: `isPlain` scalars unchanged, the bytes of all others, and invalid UTF-8, as `escape` writes
    /// them.
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

    /// Escapes a text the same way, also one of a kept name.
    package static func escape(_ text: String) -> String { escape(KeptName.bytes(of: text)) }

    /// The bytes of an escaped text. Ambiguous if the original text contained `\xHH`.
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

/// The last component of a path as bytes, split at its extension.
///
/// The extension follows the last dot; a leading dot (`.profile`) or a trailing one starts none.
package struct FileName: Hashable, Sendable {
    package let bytes: [UInt8]
    private let dot: Int?

    package init(_ path: FilePath) {
        let start = path.nameStart
        self = path.withPlatformString { bytes in
            bytes.withMemoryRebound(to: UInt8.self, capacity: path.length) {
                FileName(bytes: UnsafeBufferPointer(start: $0 + start, count: path.length - start))
            }
        }
    }

    package init(bytes: some Sequence<UInt8>) {
        let name = Array(bytes)
        let last = name.lastIndex(of: UInt8(ascii: "."))
        dot = last.flatMap { $0 > 0 && $0 < name.count - 1 ? $0 : nil }
        self.bytes = name
    }

    package var stem: ArraySlice<UInt8> { bytes[..<(dot ?? bytes.endIndex)] }
    package var `extension`: ArraySlice<UInt8> { dot.map { bytes[($0 + 1)...] } ?? [] }

    /// The extension in lower case without the dot, as tables and `extensions:` write it; empty without an extension,
    /// or if it is not UTF-8.
    package var plainExtension: String { String(validating: self.extension, as: UTF8.self)?.lowercased() ?? "" }

    /// Whether the name ends with `extension` (lower case, without the dot), which may contain dots: `tar.gz`.
    package func hasExtension(_ extension: String) -> Bool {
        guard !`extension`.isEmpty, bytes.count > `extension`.utf8.count + 1 else { return false }
        // ASCII, as nearly all are, needs no texts.
        if let isEqual = hasASCII(`extension`) { return isEqual }
        let suffix = Array(("." + `extension`).utf8)
        guard let tail = String(validating: bytes.suffix(suffix.count), as: UTF8.self)
        else { return false }
        return tail.lowercased().utf8.elementsEqual(suffix)
    }

    /// The same for ASCII; nil where one of both is not.
    private func hasASCII(_ extension: String) -> Bool? {
        let start = bytes.count - `extension`.utf8.count
        var isEqual = bytes[start - 1] == UInt8(ascii: ".")
        for (byte, wanted) in zip(bytes[start...], `extension`.utf8) {
            if byte | wanted >= 0x80 { return nil }
            let isUpper = (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte)
            isEqual = isEqual && (isUpper ? byte | 0x20 : byte) == wanted
        }
        return isEqual
    }

    /// The extensions that programs add to the names of files they are downloading.
    private static let partEndings = ["part", "partial", "filepart", "crdownload", "download"]

    /// Whether the name is that of a partial download.
    package var isOfPart: Bool { Self.partEndings.contains(plainExtension) }

    /// Whether a program names a download this before renaming it to `other`: `a.mov.part`, or Firefox's
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

    /// The longest name in bytes on nearly all Linux file systems (NAME_MAX).
    package static let longest = 255

    /// `PREFIX STEM TAIL .EXTENSION SUFFIX` in at most `limit` bytes. Shortens the end of the stem, and the extension
    /// only if nothing of the stem would remain. Valid UTF-8 stays valid; other bytes stay unchanged. Two long names
    /// may become equal, so never overwrite an existing file of that name.
    ///
    /// - Parameter limit: more than the length of the additions.
    package func fitting(
        prefix: String = "", tail: String = "", suffix: String = "", limit: Int = longest
    ) -> FilePath.Component {
        let name = FileName(bytes: bytes)
        let room = limit - prefix.utf8.count - tail.utf8.count - suffix.utf8.count
        let ending = Array(name.bytes[name.stem.endIndex...])
        // One character may take four bytes.
        let keepsEnding = room - ending.count >= min(name.stem.count, 4)
        var result = Array(prefix.utf8)
        result += Self.head(
            of: keepsEnding ? name.stem : name.bytes[...], within: keepsEnding ? room - ending.count : room)
        result += tail.utf8
        if keepsEnding { result += ending }
        result += suffix.utf8
        return FilePath(bytes: result).lastComponent ?? self
    }

    /// The first `limit` bytes of a name, or a few less: never cuts a UTF-8 sequence, because some file systems reject
    /// that.
    package static func head(of name: ArraySlice<UInt8>, within limit: Int) -> ArraySlice<UInt8> {
        let head = name.prefix(max(0, limit))
        guard head.endIndex < name.endIndex, isContinuation(name[head.endIndex]),
            let lead = head.suffix(3).lastIndex(where: { !isContinuation($0) }), name[lead] >= 0xC0
        else { return head }
        return head[..<lead]
    }

    private static func isContinuation(_ byte: UInt8) -> Bool { byte & 0xC0 == 0x80 }
}
