package import SystemPackage

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
