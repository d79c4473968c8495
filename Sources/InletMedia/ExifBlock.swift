internal import InletLinux

/// Where pictures keep their block of EXIF, a small TIFF file inside of the file (CIPA DC-008, "Exchangeable image file
/// format").
enum ExifBlock {
    /// What libexif looks at of a block: a JPEG segment holds no more.
    static let maximumBytes = 0xFFF0
    /// Segments before the picture; APP0 to APP15 with many-part colour profiles stay below.
    private static let maximumSegments = 200

    /// The block of a picture that begins with `head`; nil when it has none or is of another kind.
    static func find(_ head: [UInt8], _ bytes: BoundedBytes) throws(SystemError) -> [UInt8]? {
        if head.starts(with: [0xFF, 0xD8]) { return try inJPEG(at: 0, bytes) }
        if isTIFF(head) { return try TIFFExcerpt.read(head, bytes) }
        if head.starts(with: "FUJIFILMCCD-RAW".utf8) { return try inRAF(bytes) }
        if head.starts(with: ExifChunk.png) { return try ExifChunk.inPNG(bytes) }
        if ExifChunk.isWebP(head) { return try ExifChunk.inWebP(bytes) }
        return nil
    }

    /// The block of `count` bytes from `offset` on, cut to what libexif looks at. Some programs write JPEG's `Exif` and two
    /// NULs before it everywhere.
    static func at(_ offset: Int64, count: Int64, _ bytes: BoundedBytes) throws(SystemError) -> [UInt8]? {
        let block = try bytes.read(upTo: Int(min(count, Int64(maximumBytes))), at: offset)
        let tiff = block.starts(with: "Exif\0\0".utf8) ? Array(block.dropFirst(6)) : block
        return isTIFF(tiff) ? tiff : nil
    }

    /// Both byte orders; 42 is TIFF's mark, the others are those of Olympus (ORF) and Panasonic (RW2), whose files are
    /// TIFF otherwise.
    private static func isTIFF(_ head: [UInt8]) -> Bool {
        let marks: [[UInt8]] = [
            [0x49, 0x49, 0x2A, 0], [0x4D, 0x4D, 0, 0x2A], Array("IIRO".utf8), Array("IIRS".utf8), Array("MMOR".utf8),
            [0x49, 0x49, 0x55, 0],
        ]
        return marks.contains { head.starts(with: $0) }
    }

    /// The first APP1 segment that begins with `Exif`, in the picture that starts at `start`.
    private static func inJPEG(at start: Int64, _ bytes: BoundedBytes) throws(SystemError) -> [UInt8]? {
        var offset = start + 2
        for _ in 0..<maximumSegments {
            let head = try bytes.read(upTo: 10, at: offset)
            guard head.count >= 4, head[0] == 0xFF else { return nil }
            switch head[1] {
            case 0xFF: offset += 1
            case 0x01, 0xD0...0xD7: offset += 2
            // The picture itself begins, or the file ends.
            case 0xD8...0xDA: return nil
            default:
                let length = Int64(head.bigEndian(2, at: 2))
                if head[1] == 0xE1, length > 8, head.dropFirst(4).elementsEqual("Exif\0\0".utf8) {
                    return try at(offset + 10, count: length - 8, bytes)
                }
                offset += 2 + max(length, 2)
            }
        }
        return nil
    }

    /// Fujifilm's raw files hold a whole JPEG, whose place stands at byte 84.
    private static func inRAF(_ bytes: BoundedBytes) throws(SystemError) -> [UInt8]? {
        guard let place = try bytes.read(4, at: 84) else { return nil }
        let start = Int64(place.bigEndian(4, at: 0))
        guard try bytes.read(2, at: start) == [0xFF, 0xD8] else { return nil }
        return try inJPEG(at: start, bytes)
    }
}
