internal import CExif
internal import InletCore
internal import InletLinux

/// The places of the EXIF block in pictures: a small TIFF file inside the file (CIPA DC-008, "Exchangeable image file
/// format").
enum ExifBlock {
    /// The most that libexif reads of a block: a JPEG segment holds no more.
    static let maximumBytes = 0xFFF0
    /// The most segments before the picture; APP0 to APP15 with many-part colour profiles stay below.
    private static let maximumSegments = 200

    /// The block of a picture that begins with `head`; nil if it has none or is of another format.
    static func find(_ head: [UInt8], _ bytes: BoundedBytes) throws(SystemError) -> [UInt8]? {
        if head.starts(with: [0xFF, 0xD8]) { return try inJPEG(at: 0, bytes) }
        if isTIFF(head) { return try TIFFExcerpt.read(head, bytes) }
        if head.starts(with: "FUJIFILMCCD-RAW".utf8) { return try inRAF(bytes) }
        if head.starts(with: png) { return try inPNG(bytes) }
        if head.starts(with: "RIFF".utf8), head.dropFirst(8).starts(with: "WEBP".utf8) { return try inWebP(bytes) }
        return nil
    }

    /// The block of `count` bytes at `offset`, cut to the size that libexif reads. Some programs write JPEG's `Exif`
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

/// The dates and the camera in a block of EXIF.
extension ExifBlock {
    /// Dates with the fields that make them exact (CIPA DC-008 4.6.5 and 4.6.6), the best first. The last one changes when a
    /// picture is edited.
    private static let fields: [(name: String, date: UInt32, offset: UInt32, subSeconds: UInt32)] = [
        ("DateTimeOriginal", 0x9003, 0x9011, 0x9291), ("CreateDate", 0x9004, 0x9012, 0x9292),
        ("DateTime", 0x0132, 0x9010, 0x9290),
    ]

    /// The dates in `block`, which begins with TIFF's header; the best first, none when it is damaged.
    static func dates(_ block: [UInt8]) -> [CaptureDate] {
        guard let data = ExifFields(block) else { return [] }
        return fields.compactMap { field in
            guard let text = data.text(field.date),
                let time = DateText.time(
                    text, subSeconds: data.text(field.subSeconds), offset: data.text(field.offset))
            else { return nil }
            return CaptureDate(time: time, origin: "EXIF \(field.name)")
        }
    }

    /// The camera that wrote `block`.
    static func cameraTags(_ block: [UInt8]) -> CameraTags {
        guard let data = ExifFields(block) else { return CameraTags() }
        func text(_ tag: UInt32) -> String? { data.text(tag).flatMap { String(validating: $0, as: UTF8.self) } }
        return CameraTags(make: text(0x010F), model: text(0x0110))
    }
}

/// Owns libexif's data of a block.
private final class ExifFields {
    private let data: UnsafeMutablePointer<ExifData>

    /// nil if memory is short.
    init?(_ block: [UInt8]) {
        let bytes = Array("Exif\0\0".utf8) + block
        guard let data = inlet_exif_parse(bytes, UInt32(bytes.count)) else { return nil }
        self.data = data
    }

    deinit { exif_data_unref(data) }

    /// The bytes of a text, up to its NUL; nil if it is missing.
    func text(_ tag: UInt32) -> [UInt8]? {
        guard let entry = inlet_exif_entry(data, ExifTag(tag))?.pointee, entry.format == EXIF_FORMAT_ASCII,
            let bytes = entry.data
        else { return nil }
        return Array(UnsafeBufferPointer(start: bytes, count: Int(entry.size)).prefix { $0 != 0 })
    }
}

/// The dates and the camera of a TIFF file as a small block of EXIF.
///
/// libexif reads the first 64 KiB of its input. In a file the directories may be anywhere, also behind the picture,
/// where most software writes them. So the relevant fields are collected here.
struct TIFFExcerpt {
    /// A text, including its NUL.
    private typealias Field = (tag: UInt64, value: [UInt8])

    /// Make and model, the dates, and the fields that make them exact: see `ExifBlock`.
    private static let wanted: Set<UInt64> = [
        0x010F, 0x0110, 0x0132, 0x9003, 0x9004, 0x9010, 0x9011, 0x9012, 0x9290, 0x9291, 0x9292,
    ]
    private static let exifPointer: UInt64 = 0x8769
    /// No date, fraction of a second, or camera's name is longer.
    private static let longestText = 64
    /// The most entries of one directory; valid files have at most a few hundred.
    private static let maximumEntries = 2000

    private let bytes: BoundedBytes
    private let isBig: Bool

    /// The block for a file that begins with `head`: TIFF, or a raw format built on it.
    static func read(_ head: [UInt8], _ bytes: BoundedBytes) throws(SystemError) -> [UInt8]? {
        guard head.count >= 8 else { return nil }
        let excerpt = TIFFExcerpt(bytes: bytes, isBig: head[0] == 0x4D)
        let main = try excerpt.directory(at: Int64(excerpt.number(head[4..<8])))
        let exif = try main.exif.map { offset throws(SystemError) in try excerpt.directory(at: offset).fields } ?? []
        // EXIF's own fields first: libexif keeps the first of a name.
        return excerpt.block(exif + main.fields)
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

    /// A TIFF file of one directory that holds `fields`.
    private func block(_ fields: [Field]) -> [UInt8] {
        var entries: [UInt8] = []
        var values: [UInt8] = []
        for field in fields {
            let place = 8 + 2 + fields.count * 12 + 4 + values.count
            entries += written(field.tag, 2) + written(2, 2) + written(UInt64(field.value.count), 4)
            if field.value.count <= 4 {
                entries += (field.value + [0, 0, 0, 0]).prefix(4)
            } else {
                entries += written(UInt64(place), 4)
                values += field.value
            }
        }
        let head = (isBig ? [0x4D, 0x4D, 0, 0x2A] : [0x49, 0x49, 0x2A, 0]) + written(8, 4)
        return head + written(UInt64(fields.count), 2) + entries + [0, 0, 0, 0] + values
    }

    private func number(_ bytes: ArraySlice<UInt8>) -> UInt64 {
        (isBig ? Array(bytes) : bytes.reversed()).bigEndian(bytes.count, at: 0)
    }

    private func written(_ number: UInt64, _ width: Int) -> [UInt8] {
        let little = (0..<width).map { UInt8(truncatingIfNeeded: number >> UInt64(8 * $0)) }
        return isBig ? little.reversed() : little
    }
}
