package import SystemPackage

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
