import Foundation
import InletCore
import InletLinux
import SystemPackage

/// The sample files of `inlet demo`: small real ones of several kinds, one large enough for parallel parts, and some
/// that routes must reject. Code makes them all, the same bytes on every machine.
enum DemoSamples {
    /// A sample's path below the drop folder, and whether the demo's routes must reject it.
    typealias Sample = (path: FilePath, isRefused: Bool)

    /// Writes every sample below `folder`, and the folders in between. A watcher sees only complete files.
    static func write(into folder: FilePath) throws -> [Sample] {
        try all.map { path, isRefused, content in
            let file = folder.pushing(path)
            try DurableFile.makeDirectories(file.removingLastComponent(), mode: 0o755)
            try DurableFile.write(content(), to: file, mode: 0o644)
            return (path, isRefused)
        }
    }

    private static var all: [(FilePath, isRefused: Bool, () -> [UInt8])] {
        [
            ("photos/sunset.png", false, { png(640, 400, from: [38, 22, 84], to: [255, 150, 60]) }),
            // A name with a space.
            ("photos/two words.png", false, { png(320, 480, from: sky, to: sea) }),
            ("models/spaceship.glb", false, glb),
            ("documents/manual.pdf", false, pdf),
            ("audio/tone.wav", false, { wav(seconds: 36) }),
            // Over 20 MiB: parts go in parallel.
            ("videos/interview.mov", false, mov),
            // One by tus, one as a form.
            ("gigs/The Loopbacks/Blue Moon.mp4", false, SampleVideo.mp4),
            ("gigs/The Loopbacks/Soundcheck.wav", false, { wav(seconds: 9) }),
            // VOPI makes pictures from it.
            ("products/kettle.mp4", false, SampleVideo.mp4),
            // A space's preview, shown until its model is loaded, and the model, which is registered there.
            ("spaces/atrium/spaceship.png", false, { png(320, 200, from: sky, to: sea) }),
            ("spaces/atrium/spaceship.glb", false, glb),
            // No bytes at all.
            ("notes/empty.txt", false, { [] }),
            // Its route rejects the extension, and the size.
            ("documents/setup.exe", true, { Array("MZ".utf8) + [UInt8](repeating: 0, count: 510) }),
            ("photos/huge.tif", true, tif),
        ]
    }

    // MARK: - Pictures

    private static let (sky, sea) = ([190, 230, 250], [0, 60, 110])

    /// A gradient as PNG (ISO/IEC 15948): 8-bit RGB, one stored-deflate block per row, real checksums.
    private static func png(_ width: Int, _ height: Int, from top: [Int], to bottom: [Int]) -> [UInt8] {
        // Filter type 0, then the pixels; a slight slope to the right keeps rows from being a single colour.
        let rows = (0..<height).map { y in
            (0..<width).reduce(into: [UInt8(0)]) { bytes, x in
                let share = (y * 4 + x * height / width) * 1000 / (5 * height)
                for (top, bottom) in zip(top, bottom) { bytes.append(UInt8(top + (bottom - top) * share / 1000)) }
            }
        }
        return [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]
            + chunk("IHDR", .big(width, height) + [8, 2, 0, 0, 0]) + chunk("IDAT", zlib(rows)) + chunk("IEND", [])
    }

    /// A zlib stream (RFC 1950) of stored blocks (RFC 1951, section 3.2.4).
    private static func zlib(_ rows: [[UInt8]]) -> [UInt8] {
        var stream: [UInt8] = [0x78, 0x01]
        var (low, high): (UInt32, UInt32) = (1, 0)
        for (index, bytes) in rows.enumerated() {
            stream += [index == rows.count - 1 ? 1 : 0] + .little16(bytes.count, ~bytes.count & 0xFFFF) + bytes
            for byte in bytes {
                low = (low + UInt32(byte)) % 65_521
                high = (high + low) % 65_521
            }
        }
        return stream + .big(Int(high << 16 | low))
    }

    private static func chunk(_ type: String, _ data: [UInt8]) -> [UInt8] {
        let covered = Array(type.utf8) + data
        let sum = ~covered.reduce(UInt32.max) { crcTable[Int(UInt8(truncatingIfNeeded: $0) ^ $1)] ^ ($0 >> 8) }
        return .big(data.count) + covered + .big(Int(sum))
    }

    /// The checksum of PNG chunks (ISO/IEC 15948, annex D).
    private static let crcTable: [UInt32] = (0..<256).map { index in
        (0..<8).reduce(UInt32(index)) { value, _ in value & 1 == 1 ? 0xEDB8_8320 ^ (value >> 1) : value >> 1 }
    }

    /// A grey picture as uncompressed TIFF 6.0: 4096 x 3072 pixels of one byte, 12 MiB, in one strip.
    private static func tif() -> [UInt8] {
        let (width, height) = (4096, 3072)
        let tags = [
            (256, width), (257, height), (258, 8), (259, 1), (262, 1), (273, 8 + 2 + 8 * 12 + 4), (278, height),
            (279, width * height),
        ]
        let head =
            Array("II".utf8) + .little16(42) + .little(8) + .little16(tags.count)
            + tags.flatMap { tag, value in .little16(tag, 4) + [UInt8].little(1, value) } + .little(0)
        return (0..<height).reduce(into: head) { bytes, y in
            bytes += [UInt8](repeating: UInt8(y * 255 / height), count: width)
        }
    }

    // MARK: - Others

    /// One triangle as binary glTF 2.0 (Khronos, section "GLB File Format"): a JSON chunk and a binary chunk.
    private static func glb() -> [UInt8] {
        let corners: [Float] = [-0.5, 0, 0, 0.5, 0, 0, 0, 1, 0]
        let positions = corners.flatMap { [UInt8].little(Int($0.bitPattern)) }
        let scene = """
            {"asset":{"version":"2.0","generator":"inlet demo"},"scene":0,"scenes":[{"nodes":[0]}],\
            "nodes":[{"name":"spaceship","mesh":0}],"meshes":[{"primitives":[{"attributes":{"POSITION":0}}]}],\
            "buffers":[{"byteLength":\(positions.count)}],\
            "bufferViews":[{"buffer":0,"byteLength":\(positions.count),"target":34962}],\
            "accessors":[{"bufferView":0,"componentType":5126,"count":3,"type":"VEC3",\
            "min":[-0.5,0,0],"max":[0.5,1,0]}]}
            """
        let json = Array(scene.utf8) + [UInt8](repeating: 0x20, count: (4 - scene.utf8.count % 4) % 4)
        let chunks =
            .little(json.count) + Array("JSON".utf8) + json
            + .little(positions.count) + Array("BIN\0".utf8) + positions
        return Array("glTF".utf8) + .little(2, 12 + chunks.count) + chunks
    }

    /// One page as PDF 1.4 (ISO 32000-1, section 7.5), its cross-reference table made from the real offsets.
    private static func pdf() -> [UInt8] {
        let text = "BT /F1 24 Tf 72 720 Td (How to drop a file) Tj 0 -40 Td /F1 12 Tf (Put it in the folder.) Tj ET"
        let objects = [
            "<< /Type /Catalog /Pages 2 0 R >>",
            "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R "
                + "/Resources << /Font << /F1 5 0 R >> >> >>",
            "<< /Length \(text.utf8.count) >>\nstream\n\(text)\nendstream",
            "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        ]
        var (body, table) = ("%PDF-1.4\n", "xref\n0 \(objects.count + 1)\n0000000000 65535 f \n")
        for (index, object) in objects.enumerated() {
            let offset = String(body.utf8.count)
            table += String(repeating: "0", count: 10 - offset.count) + offset + " 00000 n \n"
            body += "\(index + 1) 0 obj\n\(object)\nendobj\n"
        }
        let end = "trailer\n<< /Size \(objects.count + 1) /Root 1 0 R >>\nstartxref\n\(body.utf8.count)\n%%EOF\n"
        return Array((body + table + end).utf8)
    }

    /// A 440 Hz sine as WAVE: 44.1 kHz, 16 bit, one channel; 88,200 bytes a second.
    private static func wav(seconds: Int) -> [UInt8] {
        let rate = 44_100
        let length = seconds * rate * 2
        let head =
            Array("RIFF".utf8) + .little(36 + length) + Array("WAVEfmt ".utf8) + .little(16) + .little16(1, 1)
            + .little(rate, rate * 2) + .little16(2, 16) + Array("data".utf8) + .little(length)
        // 440 periods fill a second exactly, so that one second repeated has no clicks.
        let second = (0..<rate).reduce(into: [UInt8]()) { bytes, index in
            let value = Int16(sin(2 * Double.pi * 440 * Double(index) / Double(rate)) * 12_000)
            bytes.append(contentsOf: [UInt8(truncatingIfNeeded: value), UInt8(truncatingIfNeeded: value >> 8)])
        }
        return (0..<seconds).reduce(into: head) { bytes, _ in bytes += second }
    }

    /// The frame of a QuickTime movie (`ftyp`, then 26 MiB of `mdat`): the right structure and size, no picture in it.
    private static func mov() -> [UInt8] {
        let length = 26 << 20
        var bytes =
            .big(20) + Array("ftypqt  ".utf8) + .big(0x2005_0300) + Array("qt  ".utf8) + .big(8 + length)
            + Array("mdat".utf8)
        bytes.reserveCapacity(bytes.count + length)
        // Pseudo-random bytes (xorshift64, Marsaglia 2003).
        var state: UInt64 = 0x1E7_CAFE
        for _ in 0..<length / 8 {
            state ^= state << 13
            state ^= state >> 7
            state ^= state << 17
            withUnsafeBytes(of: state.littleEndian) { bytes.append(contentsOf: $0) }
        }
        return bytes
    }
}

/// Numbers in the byte order of file formats; 32 bits each unless noted.
extension [UInt8] {
    static func big(_ values: Int...) -> [UInt8] {
        values.flatMap { Swift.withUnsafeBytes(of: UInt32($0).bigEndian, Array.init) }
    }

    static func little(_ values: Int...) -> [UInt8] {
        values.flatMap { Swift.withUnsafeBytes(of: UInt32($0).littleEndian, Array.init) }
    }

    static func little16(_ values: Int...) -> [UInt8] {
        values.flatMap { Swift.withUnsafeBytes(of: UInt16($0).littleEndian, Array.init) }
    }
}

/// A video that every player plays: H.264 in MP4 (ISO/IEC 14496-10, 14496-14), a mosaic whose colours move.
///
/// Each macroblock is uncompressed (`I_PCM`), so that it needs no encoder and a few seconds have a useful size.
enum SampleVideo {
    private static let (columns, rows) = (20, 15)
    private static let frames = 80
    private static let framesPerSecond = 24
    /// 2026-05-02 20:00 UTC, in the seconds since 1904 that MP4 counts.
    private static let created: UInt32 = 1_777_752_000 + 2_082_844_800

    static func mp4() -> [UInt8] {
        let size = frame(0).count
        let type = box("ftyp", Array("isom".utf8) + [0, 0, 2, 0] + Array("isomiso2avc1mp41".utf8))
        let start = type.count + movie(frameSize: size, dataAt: 0).count + 8
        return type + movie(frameSize: size, dataAt: start) + box("mdat", (0..<frames).flatMap { frame($0) })
    }

    // MARK: Pictures

    /// One picture: its length, then a slice of type I (IDR), as `avc1` keeps it.
    private static func frame(_ index: Int) -> [UInt8] {
        // Successive pictures have different values of idr_pic_id.
        let head = code(0) + code(7) + code(0) + "0000" + code(index % 2) + "00" + code(0)
        // mb_type 25 is I_PCM.
        let (first, others) = (packed(head + code(25)), packed(code(25)))
        var slice: [UInt8] = [0x65]
        for block in 0..<columns * rows {
            let (x, y) = (block % columns, block / columns)
            slice += block == 0 ? first : others
            slice += [UInt8](repeating: level(x * 9 + y * 4 + index * 3), count: 256)
            slice += [UInt8](repeating: level(x * 5 + index), count: 64)
            slice += [UInt8](repeating: level(y * 7 + index * 2), count: 64)
        }
        slice += packed("1")
        return .big(slice.count) + slice
    }

    /// Back and forth within what video allows; never 0, which would need escapes.
    private static func level(_ value: Int) -> UInt8 { UInt8(40 + abs(value % 352 - 176)) }

    /// Baseline profile, level 4. Then the id, frame numbers of 4 bits, display order as sent, no references, no gaps.
    /// Then the size, frames only, no 8x8 inference, no cropping, no VUI, and the end.
    private static var sequenceParameters: [UInt8] {
        [0x67, 66, 0, 40]
            + packed(code(0) + code(0) + code(2) + code(0) + "0" + code(columns - 1) + code(rows - 1) + "1000" + "1")
    }

    /// All values are the usual ones, which are 0.
    private static var pictureParameters: [UInt8] {
        let zeros = code(0) + code(0) + code(0)
        return [0x68] + packed(code(0) + code(0) + "00" + zeros + "000" + zeros + "000" + "1")
    }

    /// An Exp-Golomb code, `ue(v)` (ISO/IEC 14496-10, clause 9.1), in binary digits; 0 has the same code as `se(v)`.
    private static func code(_ value: Int) -> String {
        let digits = String(value + 1, radix: 2)
        return String(repeating: "0", count: digits.count - 1) + digits
    }

    /// Binary digits as bytes, the last one filled up with zeros.
    private static func packed(_ digits: String) -> [UInt8] {
        Array(digits).groups(of: 8).map {
            UInt8(String($0).padding(toLength: 8, withPad: "0", startingAt: 0), radix: 2) ?? 0
        }
    }

    // MARK: Boxes (ISO/IEC 14496-12)

    private static func movie(frameSize: Int, dataAt offset: Int) -> [UInt8] {
        let duration: [UInt8] = .big(frames * 1000 / framesPerSecond)
        let times: [UInt8] = .big(Int(created), Int(created))
        let header = box(
            "mvhd",
            .big(0) + times + .big(1000) + duration + .big(0x10000, 0x0100_0000, 0, 0) + matrix
                + [UInt8](repeating: 0, count: 24) + .big(2))
        let track = box(
            "tkhd",
            .big(3) + times + .big(1, 0) + duration + .big(0, 0, 0, 0) + matrix
                + .big(columns * 16 << 16, rows * 16 << 16))
        let media =
            box("mdhd", .big(0) + times + .big(framesPerSecond, frames, 0x55C4_0000))
            + box("hdlr", .big(0, 0) + Array("vide".utf8) + .big(0, 0, 0) + Array("video\0".utf8))
            + box(
                "minf",
                box("vmhd", .big(1, 0, 0)) + box("dinf", box("dref", .big(0, 1) + box("url ", .big(1))))
                    + box("stbl", table(frameSize: frameSize, dataAt: offset)))
        return box("moov", header + box("trak", track + box("mdia", media)))
    }

    /// Where the pictures are: one run of equal length, each lasting one tick.
    private static func table(frameSize: Int, dataAt offset: Int) -> [UInt8] {
        let (sequence, picture) = (sequenceParameters, pictureParameters)
        let parameters =
            [1, 66, 0, 40, 0xFF, 0xE1, 0, UInt8(sequence.count)] + sequence + [1, 0, UInt8(picture.count)] + picture
        let entry = box(
            "avc1",
            .big(0, 1, 0, 0, 0, 0) + .big(columns * 16 << 16 | rows * 16, 0x48_0000, 0x48_0000, 0)
                + [0, 1] + [UInt8](repeating: 0, count: 32) + [0, 24, 0xFF, 0xFF] + box("avcC", parameters))
        return box("stsd", .big(0, 1) + entry) + box("stts", .big(0, 1, frames, 1))
            + box("stsc", .big(0, 1, 1, frames, 1)) + box("stsz", .big(0, frameSize, frames))
            + box("stco", .big(0, 1, offset))
    }

    private static let matrix: [UInt8] = .big(0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x4000_0000)

    private static func box(_ type: String, _ content: [UInt8]) -> [UInt8] {
        .big(8 + content.count) + Array(type.utf8) + content
    }
}
