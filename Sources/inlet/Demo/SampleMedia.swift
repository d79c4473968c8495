import Foundation

/// One triangle as binary glTF 2.0 (Khronos, section "GLB File Format"): a JSON chunk and a binary chunk.
enum GLBSample {
    static func write(to file: inout SampleFile) throws {
        var positions: [UInt8] = []
        for coordinate: Float in [-0.5, 0, 0, 0.5, 0, 0, 0, 1, 0] {
            positions.append(littleEndian: coordinate.bitPattern)
        }
        var json = Array(scene(bytes: positions.count).utf8)
        json += [UInt8](repeating: UInt8(ascii: " "), count: (4 - json.count % 4) % 4)
        var head = Array("glTF".utf8)
        head.append(littleEndian: UInt32(2))
        head.append(littleEndian: UInt32(12 + 8 + json.count + 8 + positions.count))
        try file.write(head)
        try file.write(chunk("JSON", json))
        try file.write(chunk("BIN\0", positions))
    }

    private static func chunk(_ type: String, _ data: [UInt8]) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.append(littleEndian: UInt32(data.count))
        return bytes + Array(type.utf8) + data
    }

    private static func scene(bytes: Int) -> String {
        """
        {"asset":{"version":"2.0","generator":"inlet demo"},"scene":0,"scenes":[{"nodes":[0]}],\
        "nodes":[{"name":"spaceship","mesh":0}],"meshes":[{"primitives":[{"attributes":{"POSITION":0}}]}],\
        "buffers":[{"byteLength":\(bytes)}],"bufferViews":[{"buffer":0,"byteLength":\(bytes),"target":34962}],\
        "accessors":[{"bufferView":0,"componentType":5126,"count":3,"type":"VEC3",\
        "min":[-0.5,0,0],"max":[0.5,1,0]}]}
        """
    }
}

/// One page as PDF 1.4 (ISO 32000-1, section 7.5), its cross-reference table made from the real offsets.
enum PDFSample {
    static func write(to file: inout SampleFile) throws {
        let text = "BT /F1 24 Tf 72 720 Td (How to drop a file) Tj 0 -40 Td /F1 12 Tf (Put it in the folder.) Tj ET"
        let objects = [
            "<< /Type /Catalog /Pages 2 0 R >>",
            "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R "
                + "/Resources << /Font << /F1 5 0 R >> >> >>",
            "<< /Length \(text.utf8.count) >>\nstream\n\(text)\nendstream",
            "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        ]
        var body = "%PDF-1.4\n"
        var offsets: [Int] = []
        for (index, object) in objects.enumerated() {
            offsets.append(body.utf8.count)
            body += "\(index + 1) 0 obj\n\(object)\nendobj\n"
        }
        let start = body.utf8.count
        body += "xref\n0 \(objects.count + 1)\n0000000000 65535 f \n"
        for offset in offsets {
            let digits = String(offset)
            body += String(repeating: "0", count: 10 - digits.count) + digits + " 00000 n \n"
        }
        body += "trailer\n<< /Size \(objects.count + 1) /Root 1 0 R >>\nstartxref\n\(start)\n%%EOF\n"
        try file.write(Array(body.utf8))
    }
}

/// A 440 Hz sine as WAVE: 44.1 kHz, 16 bit, one channel; 88,200 bytes a second.
enum WAVSample {
    private static let rate = 44_100

    static func write(seconds: Int, to file: inout SampleFile) throws {
        let length = UInt32(seconds * rate * 2)
        var head = Array("RIFF".utf8)
        head.append(littleEndian: 36 + length)
        head += Array("WAVEfmt ".utf8)
        head.append(littleEndian: UInt32(16))
        head.append(littleEndian: UInt16(1))
        head.append(littleEndian: UInt16(1))
        head.append(littleEndian: UInt32(rate))
        head.append(littleEndian: UInt32(rate * 2))
        head.append(littleEndian: UInt16(2))
        head.append(littleEndian: UInt16(16))
        head += Array("data".utf8)
        head.append(littleEndian: length)
        try file.write(head)
        // 440 periods fill a second exactly, so that one second repeated has no clicks.
        let second = Array(0..<rate).reduce(into: [UInt8]()) { bytes, index in
            let value = sin(2 * Double.pi * 440 * Double(index) / Double(rate))
            bytes.append(littleEndian: Int16(value * 12_000))
        }
        for _ in 0..<seconds { try file.write(second) }
    }
}

/// The frame of a QuickTime movie (`ftyp`, then 26 MiB of `mdat`): the right structure and size, no picture in it.
enum MOVSample {
    private static let payload = 26 << 20

    static func write(to file: inout SampleFile) throws {
        var head: [UInt8] = []
        head.append(bigEndian: UInt32(20))
        head += Array("ftypqt  ".utf8)
        head.append(bigEndian: UInt32(0x2005_0300))
        head += Array("qt  ".utf8)
        head.append(bigEndian: UInt32(8 + payload))
        head += Array("mdat".utf8)
        try file.write(head)
        try file.writeNoise(count: payload, seed: 0x1E7_CAFE)
    }
}

/// A gradient as PNG (ISO/IEC 15948): 8-bit RGB, one stored-deflate block per row, real checksums.
enum PNGSample {
    struct Palette {
        var top: [Int]
        var bottom: [Int]

        static let sunset = Palette(top: [38, 22, 84], bottom: [255, 150, 60])
        static let sea = Palette(top: [190, 230, 250], bottom: [0, 60, 110])
    }

    static func write(_ width: Int, _ height: Int, _ palette: Palette, to file: inout SampleFile) throws {
        try file.write([0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A])
        var header: [UInt8] = []
        header.append(bigEndian: UInt32(width))
        header.append(bigEndian: UInt32(height))
        header += [8, 2, 0, 0, 0]
        try file.write(chunk("IHDR", header))
        try file.write(chunk("IDAT", zlib(rows: height) { row(of: $0, width, height, palette) }))
        try file.write(chunk("IEND", []))
    }

    /// Filter type 0, then the pixels; a slight slope to the right keeps rows from being all one colour.
    private static func row(of y: Int, _ width: Int, _ height: Int, _ palette: Palette) -> [UInt8] {
        var bytes: [UInt8] = [0]
        bytes.reserveCapacity(1 + 3 * width)
        for x in 0..<width {
            let share = (y * 4 + x * height / width) * 1000 / (5 * height)
            for (top, bottom) in zip(palette.top, palette.bottom) {
                bytes.append(UInt8(top + (bottom - top) * share / 1000))
            }
        }
        return bytes
    }

    /// A zlib stream (RFC 1950) of stored blocks (RFC 1951, section 3.2.4).
    private static func zlib(rows: Int, _ row: (Int) -> [UInt8]) -> [UInt8] {
        var stream: [UInt8] = [0x78, 0x01]
        var sum = Adler32()
        for index in 0..<rows {
            let bytes = row(index)
            stream.append(index == rows - 1 ? 1 : 0)
            stream.append(littleEndian: UInt16(bytes.count))
            stream.append(littleEndian: ~UInt16(bytes.count))
            stream += bytes
            sum.update(bytes)
        }
        stream.append(bigEndian: sum.value)
        return stream
    }

    private static func chunk(_ type: String, _ data: [UInt8]) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.append(bigEndian: UInt32(data.count))
        let covered = Array(type.utf8) + data
        bytes += covered
        bytes.append(bigEndian: CRC32.of(covered))
        return bytes
    }
}

/// A grey picture as uncompressed TIFF 6.0: 4096 x 3072 pixels of one byte, 12 MiB, in one strip.
enum TIFSample {
    private static let (width, height) = (4096, 3072)

    static func write(to file: inout SampleFile) throws {
        let dataOffset: UInt32 = 8 + 2 + 8 * 12 + 4
        let tags: [(UInt16, UInt32)] = [
            (256, UInt32(width)), (257, UInt32(height)), (258, 8), (259, 1), (262, 1), (273, dataOffset),
            (278, UInt32(height)), (279, UInt32(width * height)),
        ]
        var head = Array("II".utf8)
        head.append(littleEndian: UInt16(42))
        head.append(littleEndian: UInt32(8))
        head.append(littleEndian: UInt16(tags.count))
        for (tag, value) in tags {
            head.append(littleEndian: tag)
            head.append(littleEndian: UInt16(4))
            head.append(littleEndian: UInt32(1))
            head.append(littleEndian: value)
        }
        head.append(littleEndian: UInt32(0))
        try file.write(head)
        for y in 0..<height {
            try file.write([UInt8](repeating: UInt8(y * 255 / height), count: width))
        }
    }
}

/// The checksum of zlib streams (RFC 1950, section 8.2).
struct Adler32 {
    private var (low, high): (UInt32, UInt32) = (1, 0)
    var value: UInt32 { high << 16 | low }

    mutating func update(_ bytes: [UInt8]) {
        for byte in bytes {
            low = (low + UInt32(byte)) % 65_521
            high = (high + low) % 65_521
        }
    }
}

/// The checksum of PNG chunks (ISO/IEC 15948, annex D).
enum CRC32 {
    private static let table: [UInt32] = (0..<256).map { index in
        (0..<8).reduce(UInt32(index)) { value, _ in value & 1 == 1 ? 0xEDB8_8320 ^ (value >> 1) : value >> 1 }
    }

    static func of(_ bytes: [UInt8]) -> UInt32 {
        ~bytes.reduce(UInt32.max) { table[Int(UInt8(truncatingIfNeeded: $0) ^ $1)] ^ ($0 >> 8) }
    }
}
