internal import InletLinux

/// The dates of a TIFF file as a small block of EXIF.
///
/// libexif looks at the first 64 KiB of what it gets. In a file the directories may stand anywhere, behind the picture
/// too, where most software writes them; so the fields that matter are brought together.
struct TIFFExcerpt {
    /// A text, its NUL included.
    private struct Field {
        var tag: UInt64
        var value: [UInt8]
    }

    /// The dates and what makes them exact: `ExifDates`.
    private static let wanted: Set<UInt64> = [
        0x0132, 0x9003, 0x9004, 0x9010, 0x9011, 0x9012, 0x9290, 0x9291, 0x9292,
    ]
    private static let exifPointer: UInt64 = 0x8769
    /// No date and no fraction of a second is longer.
    private static let longestText = 64
    /// Entries of one directory; sound files have at most a few hundred.
    private static let maximumEntries = 2000

    private let bytes: BoundedBytes
    private let isBig: Bool

    /// The block for a file that begins with `head`, which is TIFF's or that of a raw format built on it.
    static func read(_ head: [UInt8], _ bytes: BoundedBytes) throws(SystemError) -> [UInt8]? {
        guard head.count >= 8 else { return nil }
        let excerpt = TIFFExcerpt(bytes: bytes, isBig: head[0] == 0x4D)
        let main = try excerpt.directory(at: Int64(excerpt.number(head[4..<8])))
        let exif = try main.exif.map { offset throws(SystemError) in try excerpt.directory(at: offset).fields } ?? []
        // EXIF's own fields first: libexif keeps the first of a name.
        return excerpt.block(exif + main.fields)
    }

    /// The wanted fields of a directory, and where it says that EXIF's lies.
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
            fields.append(Field(tag: tag, value: value))
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
