internal import InletCore
package import InletLinux

/// The small picture that a camera puts into its JPEG files, beside the dates (CIPA DC-008: the second directory of the
/// EXIF block). It is handed on as it is; no picture is decoded here.
package enum EmbeddedPicture {
    /// A segment holds no more.
    package static let mostBytes = ExifBlock.maximumBytes
    private static let (offsetTag, lengthTag): (UInt64, UInt64) = (0x0201, 0x0202)
    /// A valid directory has a few dozen.
    private static let mostEntries = 200

    /// nil if the file has none, is damaged or of another format. Reads at most `BoundedBytes.maximumBytes`. Blocks.
    ///
    /// - Throws: Only if the file cannot be read.
    package static func read(from source: SourceFile) throws(SystemError) -> [UInt8]? {
        try read(BoundedBytes(source))
    }

    static func read(_ bytes: BoundedBytes) throws(SystemError) -> [UInt8]? {
        guard try bytes.read(upTo: 2, at: 0) == [0xFF, 0xD8] else { return nil }
        return try ExifBlock.inJPEG(at: 0, bytes).flatMap(picture)
    }

    /// The picture in a block that begins with TIFF's header. Every offset counts from there, and is checked: whoever
    /// wrote the file chose it.
    private static func picture(in block: [UInt8]) -> [UInt8]? {
        let isBig = block.starts(with: "MM".utf8)
        func number(_ offset: Int, _ width: Int) -> UInt64? {
            guard offset >= 0, offset <= block.count - width else { return nil }
            let bytes = block[offset..<offset + width]
            return isBig
                ? bytes.reduce(0) { $0 << 8 | UInt64($1) } : bytes.reversed().reduce(0) { $0 << 8 | UInt64($1) }
        }
        func entries(_ directory: Int) -> Int? {
            number(directory, 2).flatMap { $0 <= mostEntries ? Int($0) : nil }
        }
        guard let first = number(4, 4).map({ Int($0) }), let count = entries(first),
            let second = number(first + 2 + 12 * count, 4).map({ Int($0) }), second > 0, let own = entries(second)
        else { return nil }
        var (start, length): (Int?, Int?)
        for entry in 0..<own {
            let place = second + 2 + 12 * entry
            switch number(place, 2) {
            case offsetTag: start = number(place + 8, 4).map { Int($0) }
            case lengthTag: length = number(place + 8, 4).map { Int($0) }
            default: continue
            }
        }
        guard let start, let length, length > 4, length <= block.count, start <= block.count - length else {
            return nil
        }
        let picture = Array(block[start..<start + length])
        return picture.starts(with: [0xFF, 0xD8, 0xFF]) ? picture : nil
    }
}
