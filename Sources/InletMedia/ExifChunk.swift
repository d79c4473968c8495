internal import InletLinux

/// The block of EXIF in pictures made of chunks: PNG (third edition, 11.3.4.5, `eXIf`) and WebP (RIFF, `EXIF`).
enum ExifChunk {
    static let png: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]

    static func isWebP(_ head: [UInt8]) -> Bool {
        head.starts(with: "RIFF".utf8) && head.dropFirst(8).starts(with: "WEBP".utf8)
    }

    /// A chunk is its length, its name, its content and a checksum of four bytes.
    static func inPNG(_ bytes: BoundedBytes) throws(SystemError) -> [UInt8]? {
        var offset: Int64 = 8
        while let head = try bytes.read(8, at: offset) {
            let length = Int64(head.bigEndian(4, at: 0))
            if head[4...].elementsEqual("eXIf".utf8) { return try ExifBlock.at(offset + 8, count: length, bytes) }
            offset += 8 + length + 4
        }
        return nil
    }

    /// A chunk is its name, its length with the least significant byte first, and its content up to an even length.
    static func inWebP(_ bytes: BoundedBytes) throws(SystemError) -> [UInt8]? {
        var offset: Int64 = 12
        while let head = try bytes.read(8, at: offset) {
            let length = Int64(Array(head[4...].reversed()).bigEndian(4, at: 0))
            if head[..<4].elementsEqual("EXIF".utf8) { return try ExifBlock.at(offset + 8, count: length, bytes) }
            offset += 8 + length + length % 2
        }
        return nil
    }
}
