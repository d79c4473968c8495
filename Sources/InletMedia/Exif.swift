internal import InletCore
internal import InletLinux

/// The places of the EXIF block in pictures: a small TIFF file inside the file (CIPA DC-008, "Exchangeable image file
/// format").
enum ExifBlock {
    /// The most that is read of a block: a JPEG segment holds no more.
    static let maximumBytes = 0xFFF0
    /// The most segments before the picture; APP0 to APP15 with many-part colour profiles stay below.
    private static let maximumSegments = 200

    /// The fields of a picture that begins with `head`; nil if it has none or is of another format.
    static func find(_ head: [UInt8], _ bytes: BoundedBytes) throws(SystemError) -> ExifFields? {
        if isTIFF(head) { return try ExifFields(head, bytes) }
        return try block(head, bytes).flatMap { ExifFields(block: $0) }
    }

    private static func block(_ head: [UInt8], _ bytes: BoundedBytes) throws(SystemError) -> [UInt8]? {
        if head.starts(with: [0xFF, 0xD8]) { return try inJPEG(at: 0, bytes) }
        if head.starts(with: "FUJIFILMCCD-RAW".utf8) { return try inRAF(bytes) }
        if head.starts(with: png) { return try inPNG(bytes) }
        if head.starts(with: "RIFF".utf8), head.dropFirst(8).starts(with: "WEBP".utf8) { return try inWebP(bytes) }
        return nil
    }

    /// The block of `count` bytes at `offset`, cut to that size. Some programs write JPEG's `Exif`
    /// and two NULs before it in every format.
    static func at(_ offset: Int64, count: Int64, _ bytes: BoundedBytes) throws(SystemError) -> [UInt8]? {
        let block = try bytes.read(upTo: Int(min(count, Int64(maximumBytes))), at: offset)
        let tiff = block.starts(with: "Exif\0\0".utf8) ? Array(block.dropFirst(6)) : block
        return isTIFF(tiff) ? tiff : nil
    }

    /// Both byte orders. 42 is TIFF's mark; the others are those of Olympus (ORF) and Panasonic (RW2), whose files are
    /// TIFF otherwise.
    private static func isTIFF(_ head: [UInt8]) -> Bool {
        let marks: [[UInt8]] = [
            [0x49, 0x49, 0x2A, 0], [0x4D, 0x4D, 0, 0x2A], Array("IIRO".utf8), Array("IIRS".utf8), Array("MMOR".utf8),
            [0x49, 0x49, 0x55, 0],
        ]
        return marks.contains { head.starts(with: $0) }
    }

    /// The first APP1 segment that begins with `Exif`, in the picture that starts at `start`.
    static func inJPEG(at start: Int64, _ bytes: BoundedBytes) throws(SystemError) -> [UInt8]? {
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

    /// Fujifilm's raw files hold a whole JPEG; byte 84 has its offset.
    private static func inRAF(_ bytes: BoundedBytes) throws(SystemError) -> [UInt8]? {
        guard let place = try bytes.read(4, at: 84) else { return nil }
        let start = Int64(place.bigEndian(4, at: 0))
        guard try bytes.read(2, at: start) == [0xFF, 0xD8] else { return nil }
        return try inJPEG(at: start, bytes)
    }
}

/// The block of EXIF in pictures made of chunks: PNG (third edition, 11.3.4.5, `eXIf`) and WebP (RIFF, `EXIF`).
extension ExifBlock {
    static let png: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]

    /// A chunk is its length, its name, its content and a four-byte checksum.
    private static func inPNG(_ bytes: BoundedBytes) throws(SystemError) -> [UInt8]? {
        var offset: Int64 = 8
        while let head = try bytes.read(8, at: offset) {
            let length = Int64(head.bigEndian(4, at: 0))
            if head[4...].elementsEqual("eXIf".utf8) { return try at(offset + 8, count: length, bytes) }
            offset += 8 + length + 4
        }
        return nil
    }

    /// A chunk is its name, its length with the least significant byte first, and its content up to an even length.
    private static func inWebP(_ bytes: BoundedBytes) throws(SystemError) -> [UInt8]? {
        var offset: Int64 = 12
        while let head = try bytes.read(8, at: offset) {
            let length = Int64(Array(head[4...].reversed()).bigEndian(4, at: 0))
            if head[..<4].elementsEqual("EXIF".utf8) { return try at(offset + 8, count: length, bytes) }
            offset += 8 + length + length % 2
        }
        return nil
    }
}

/// The dates and the camera that the fields tell.
extension ExifFields {
    /// Dates with the fields that make them exact (CIPA DC-008 4.6.5 and 4.6.6), the best first. The last one changes when a
    /// picture is edited.
    private static let dateTags: [(name: String, date: UInt64, offset: UInt64, subSeconds: UInt64)] = [
        ("DateTimeOriginal", 0x9003, 0x9011, 0x9291), ("CreateDate", 0x9004, 0x9012, 0x9292),
        ("DateTime", 0x0132, 0x9010, 0x9290),
    ]

    /// The best first, none when the block is damaged.
    var dates: [CaptureDate] {
        Self.dateTags.compactMap { tags in
            guard let text = text(tags.date),
                let time = DateText.time(text, subSeconds: self.text(tags.subSeconds), offset: self.text(tags.offset))
            else { return nil }
            return CaptureDate(time: time, origin: "EXIF \(tags.name)")
        }
    }

    var cameraTags: CameraTags {
        func valid(_ tag: UInt64) -> String? { text(tag).flatMap { String(validating: $0, as: UTF8.self) } }
        return CameraTags(make: valid(0x010F), model: valid(0x0110))
    }
}

/// The texts of a TIFF file, or of a block of EXIF, that tell dates and the camera.
///
/// Every number in the file is an offset or a size that whoever wrote it chose: all reading goes through
/// `BoundedBytes`. The directories may be anywhere, also behind the picture, where most software writes them.
struct ExifFields {
    /// A text, including its NUL.
    private typealias Field = (tag: UInt64, value: [UInt8])

    /// Make and model, the dates, and the fields that make them exact.
    private static let wanted: Set<UInt64> = [
        0x010F, 0x0110, 0x0132, 0x9003, 0x9004, 0x9010, 0x9011, 0x9012, 0x9290, 0x9291, 0x9292,
    ]
    private static let exifPointer: UInt64 = 0x8769
    /// No date, fraction of a second, or camera's name is longer, with the padding that cameras add.
    private static let longestText = 256
    /// The most entries of one directory; valid files have at most a few hundred.
    private static let maximumEntries = 2000

    private let bytes: BoundedBytes
    private let isBig: Bool
    private var fields: [Field] = []

    /// Of a file that begins with `head`: TIFF, or a raw format built on it. nil where it is too short.
    init?(_ head: [UInt8], _ bytes: BoundedBytes) throws(SystemError) {
        guard head.count >= 8 else { return nil }
        (self.bytes, isBig) = (bytes, head[0] == 0x4D)
        let main = try directory(at: Int64(number(head[4..<8])))
        let exif = try main.exif.map { offset throws(SystemError) in try directory(at: offset).fields } ?? []
        // EXIF's own fields first.
        fields = exif + main.fields
    }

    /// Of a block that begins with TIFF's header.
    init?(block: [UInt8]) {
        let bytes = BoundedBytes(size: Int64(block.count)) { offset, count in
            Array(block[Int(offset)..<Int(offset) + count])
        }
        // Memory can always be read.
        try? self.init(block, bytes)
    }

    /// The bytes of a text, up to its NUL; nil if it is missing.
    func text(_ tag: UInt64) -> [UInt8]? {
        fields.first { $0.tag == tag }.map { Array($0.value.prefix { $0 != 0 }) }
    }

    /// The wanted fields of a directory, and the offset of the EXIF directory.
    private func directory(at offset: Int64) throws(SystemError) -> (fields: [Field], exif: Int64?) {
        var fields: [Field] = []
        var exif: Int64?
        let count = number(try bytes.read(upTo: 2, at: offset)[...])
        let entries = try bytes.read(upTo: Int(min(count, UInt64(Self.maximumEntries))) * 12, at: offset + 2)
        for start in stride(from: 0, to: entries.count - 11, by: 12) {
            let entry = entries[start..<(start + 12)]
            let tag = number(entry.prefix(2))
            if tag == Self.exifPointer { exif = Int64(number(entry.suffix(4))) }
            guard Self.wanted.contains(tag), let value = try text(entry) else { continue }
            fields.append((tag, value))
        }
        return (fields, exif)
    }

    /// The bytes of an entry that is a short text; up to four stand in the entry itself.
    private func text(_ entry: ArraySlice<UInt8>) throws(SystemError) -> [UInt8]? {
        let (type, count) = (number(entry.dropFirst(2).prefix(2)), number(entry.dropFirst(4).prefix(4)))
        guard type == 2, (1...UInt64(Self.longestText)).contains(count) else { return nil }
        if count <= 4 { return Array(entry.suffix(4).prefix(Int(count))) }
        return try bytes.read(Int(count), at: Int64(number(entry.suffix(4))))
    }

    private func number(_ bytes: ArraySlice<UInt8>) -> UInt64 {
        (isBig ? Array(bytes) : bytes.reversed()).bigEndian(bytes.count, at: 0)
    }
}
