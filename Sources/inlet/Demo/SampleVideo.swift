/// A video that every player plays: H.264 in MP4 (ISO/IEC 14496-10, 14496-14), a mosaic whose colours move.
///
/// Each macroblock is sent as it is (`I_PCM`), so that no compression is needed and a few seconds have a useful size.
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
        var bits = BitWriter([0x65])
        bits.unsigned(0)
        bits.unsigned(7)
        bits.unsigned(0)
        bits.bits(0, count: 4)
        // Pictures that follow each other have different idr_pic_id.
        bits.unsigned(index % 2)
        bits.bits(0, count: 2)
        bits.unsigned(0)
        for block in 0..<columns * rows {
            // mb_type 25 is I_PCM.
            bits.unsigned(25)
            bits.align()
            let (x, y) = (block % columns, block / columns)
            bits.append(level(x * 9 + y * 4 + index * 3), count: 256)
            bits.append(level(x * 5 + index), count: 64)
            bits.append(level(y * 7 + index * 2), count: 64)
        }
        bits.end()
        return .big(bits.bytes.count) + bits.bytes
    }

    /// Back and forth within what video allows; never 0, which would need escapes.
    private static func level(_ value: Int) -> UInt8 { UInt8(40 + abs(value % 352 - 176)) }

    private static var sequenceParameters: [UInt8] {
        // Baseline profile, level 4.
        var bits = BitWriter([0x67, 66, 0, 40])
        // Id, frame numbers of 4 bits, display order as sent, no references, no gaps.
        bits.unsigned(0)
        bits.unsigned(0)
        bits.unsigned(2)
        bits.unsigned(0)
        bits.bits(0, count: 1)
        bits.unsigned(columns - 1)
        bits.unsigned(rows - 1)
        // Frames only, no 8x8 inference, no cropping, no VUI.
        bits.bits(0b1000, count: 4)
        bits.end()
        return bits.bytes
    }

    private static var pictureParameters: [UInt8] {
        var bits = BitWriter([0x68])
        bits.unsigned(0)
        bits.unsigned(0)
        bits.bits(0, count: 2)
        for _ in 0..<3 { bits.unsigned(0) }
        bits.bits(0, count: 3)
        for _ in 0..<3 { bits.unsigned(0) }
        bits.bits(0, count: 3)
        bits.end()
        return bits.bytes
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

/// Writes the syntax elements of H.264 (ISO/IEC 14496-10, clauses 7.2 and 9.1).
private struct BitWriter {
    private(set) var bytes: [UInt8]
    private var pending: UInt8 = 0
    private var count = 0

    init(_ head: [UInt8]) { bytes = head }

    mutating func bits(_ value: Int, count: Int) {
        for shift in (0..<count).reversed() {
            pending = pending << 1 | UInt8(value >> shift & 1)
            self.count += 1
            if self.count == 8 {
                bytes.append(pending)
                (pending, self.count) = (0, 0)
            }
        }
    }

    /// An Exp-Golomb code, `ue(v)`; 0 has the same code as `se(v)`.
    mutating func unsigned(_ value: Int) {
        let width = Int.bitWidth - (value + 1).leadingZeroBitCount
        bits(0, count: width - 1)
        bits(value + 1, count: width)
    }

    /// Zero bits up to the next byte.
    mutating func align() { if count > 0 { bits(0, count: 8 - count) } }

    /// Whole bytes; the writer must be aligned.
    mutating func append(_ value: UInt8, count: Int) { bytes.append(contentsOf: repeatElement(value, count: count)) }

    /// The stop bit, and zero bits up to the next byte.
    mutating func end() {
        bits(1, count: 1)
        align()
    }
}
