/// A PNG (ISO/IEC 15948) of 8-bit RGB pixels, not compressed: one stored block a row.
enum PNG {
    /// - Parameters:
    ///   - rows: Of three bytes a pixel; all of one length, up to 65,534 bytes.
    ///   - note: A keyword and its Latin-1 text, kept in a `tEXt` chunk.
    static func encode(rows: [[UInt8]], note: (keyword: String, text: String)) -> [UInt8] {
        let width = UInt32((rows.first?.count ?? 0) / 3)
        let header = width.bytes + UInt32(rows.count).bytes + [8, 2, 0, 0, 0]
        return [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A] + chunk("IHDR", header)
            + chunk("tEXt", Array("\(note.keyword)\0\(note.text)".utf8)) + chunk("IDAT", zlib(rows)) + chunk("IEND", [])
    }

    /// A zlib stream (RFC 1950) of stored blocks (RFC 1951, section 3.2.4), each a row after its filter type 0.
    private static func zlib(_ rows: [[UInt8]]) -> [UInt8] {
        var stream: [UInt8] = [0x78, 0x01]
        var (low, high): (UInt32, UInt32) = (1, 0)
        for (index, row) in rows.enumerated() {
            let bytes = [0] + row
            let count = UInt16(bytes.count)
            stream.append(index == rows.count - 1 ? 1 : 0)
            stream += [count, ~count].flatMap { [UInt8(truncatingIfNeeded: $0), UInt8($0 >> 8)] }
            stream += bytes
            for byte in bytes {
                low = (low + UInt32(byte)) % 65_521
                high = (high + low) % 65_521
            }
        }
        return stream + (high << 16 | low).bytes
    }

    private static func chunk(_ type: String, _ data: [UInt8]) -> [UInt8] {
        let covered = Array(type.utf8) + data
        let sum = ~covered.reduce(UInt32.max) { table[Int(UInt8(truncatingIfNeeded: $0) ^ $1)] ^ ($0 >> 8) }
        return UInt32(data.count).bytes + covered + sum.bytes
    }

    /// Of CRC-32 (ISO/IEC 15948, annex D).
    private static let table: [UInt32] = (0..<256).map { index in
        (0..<8).reduce(UInt32(index)) { value, _ in value & 1 == 1 ? 0xEDB8_8320 ^ (value >> 1) : value >> 1 }
    }
}

extension UInt32 {
    /// Big-endian.
    fileprivate var bytes: [UInt8] {
        stride(from: 24, through: 0, by: -8).map { UInt8(truncatingIfNeeded: self >> $0) }
    }
}
