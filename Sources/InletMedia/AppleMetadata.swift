internal import InletLinux

/// The metadata of `moov/meta`: `keys` names them, `ilst` holds a value under each key's number
/// (Apple, "QuickTime File Format": Metadata Atoms and Types).
enum AppleMetadata {
    private static let creationDate = Array("com.apple.quicktime.creationdate".utf8)
    /// A key's length that no sound file reaches; keys behind a longer one are not looked at.
    private static let longestKey = 1024
    private static let maximumKeys = 256

    static func dates(in meta: Box, _ bytes: BoundedBytes) throws(SystemError) -> [CaptureDate] {
        let inside = try children(of: meta, bytes)
        guard let keys = try bytes.first("keys", in: inside), let list = try bytes.first("ilst", in: inside),
            let number = try number(ofKey: creationDate, in: keys, bytes),
            let item = try bytes.first(BoxType(code: number), in: list.content),
            let data = try bytes.first("data", in: item.content),
            // The value's type and locale, then the value.
            let content = try bytes.content(of: data, limit: 72), content.count > 8,
            let time = DateText.time(content.dropFirst(8))
        else { return [] }
        return [CaptureDate(time: time, origin: "QuickTime creationdate")]
    }

    /// QuickTime's `meta` holds boxes at once, MPEG's has four bytes of version and flags before them. Both begin with
    /// `hdlr`.
    static func children(of meta: Box, _ bytes: BoundedBytes) throws(SystemError) -> Range<Int64> {
        let start = meta.content.lowerBound
        let head = try bytes.read(upTo: Int(min(meta.length, 8)), at: start)
        let isPlain = head.count == 8 && head.dropFirst(4).elementsEqual("hdlr".utf8)
        return (isPlain ? start : min(start + 4, meta.content.upperBound))..<meta.content.upperBound
    }

    /// Keys count from 1; each is its length, a namespace and the name.
    private static func number(
        ofKey name: [UInt8], in keys: Box, _ bytes: BoundedBytes
    ) throws(SystemError) -> UInt32? {
        var offset = keys.content.lowerBound + 8
        for number in 1...UInt32(maximumKeys) {
            guard offset + 8 <= keys.content.upperBound, let head = try bytes.read(8, at: offset) else { return nil }
            let length = Int(head.bigEndian(4, at: 0))
            guard (8...longestKey).contains(length), offset + Int64(length) <= keys.content.upperBound else {
                return nil
            }
            if length == 8 + name.count, try bytes.read(name.count, at: offset + 8) == name { return number }
            offset += Int64(length)
        }
        return nil
    }
}
