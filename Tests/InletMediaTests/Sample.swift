import InletCore
import InletLinux

@testable import InletMedia

/// Files written byte by byte.
enum Sample {
    /// 2026-11-21T00:00:00Z, the day on which all tests take place.
    static let today = WallTime(milliseconds: 1_795_219_200_000)

    static func bytes(_ number: Int64, _ width: Int, isBig: Bool = true) -> [UInt8] {
        let little = (0..<width).map { UInt8(truncatingIfNeeded: number >> Int64(8 * $0)) }
        return isBig ? little.reversed() : little
    }

    // MARK: EXIF

    /// A TIFF file of two directories with texts: the main one and, where `exif` is not nil, EXIF's. All places grow by
    /// `shift`.
    static func tiff(
        _ main: [(UInt16, String)] = [], exif: [(UInt16, String)]? = nil, isBig: Bool = false, mark: [UInt8]? = nil,
        shift: Int = 0
    ) -> [UInt8] {
        let start = 8 + shift
        let pointerSize = exif == nil ? 0 : 12
        let mainSize = 2 + 12 * main.count + pointerSize + 4
        let mainData = main.reduce(0) { $0 + data($1.1).count }
        let exifStart = start + mainSize + mainData
        let order = Array((isBig ? "MM" : "II").utf8)
        var result = (mark ?? order + bytes(42, 2, isBig: isBig)) + bytes(Int64(start), 4, isBig: isBig)
        result += directory(main, pointer: exif == nil ? nil : exifStart, at: start, isBig)
        if let exif { result += directory(exif, pointer: nil, at: exifStart, isBig) }
        return result
    }

    /// A text longer than four bytes stands behind its directory.
    private static func data(_ text: String) -> [UInt8] { text.utf8.count < 4 ? [] : Array(text.utf8) + [0] }

    private static func directory(
        _ texts: [(UInt16, String)], pointer: Int?, at start: Int, _ isBig: Bool
    ) -> [UInt8] {
        let count = texts.count + (pointer == nil ? 0 : 1)
        var entries: [UInt8] = []
        var behind: [UInt8] = []
        for (tag, text) in texts {
            let place = start + 2 + 12 * count + 4 + behind.count
            entries += bytes(Int64(tag), 2, isBig: isBig) + bytes(2, 2, isBig: isBig)
            entries += bytes(Int64(text.utf8.count + 1), 4, isBig: isBig)
            let isShort = text.utf8.count < 4
            entries +=
                isShort
                ? Array((Array(text.utf8) + [0, 0, 0, 0]).prefix(4)) : bytes(Int64(place), 4, isBig: isBig)
            behind += data(text)
        }
        if let pointer {
            entries += bytes(0x8769, 2, isBig: isBig) + bytes(4, 2, isBig: isBig) + bytes(1, 4, isBig: isBig)
            entries += bytes(Int64(pointer), 4, isBig: isBig)
        }
        return bytes(Int64(count), 2, isBig: isBig) + entries + [0, 0, 0, 0] + behind
    }

    /// A JPEG of the segments `before`, the EXIF block, and a picture that is none.
    static func jpeg(_ block: [UInt8], before: [[UInt8]] = []) -> [UInt8] {
        let exif = Array("Exif\0\0".utf8) + block
        return [0xFF, 0xD8] + before.joined() + segment(0xE1, exif) + [0xFF, 0xDA, 0, 2, 1, 2, 3, 0xFF, 0xD9]
    }

    static func segment(_ marker: UInt8, _ content: [UInt8]) -> [UInt8] {
        [0xFF, marker] + bytes(Int64(content.count + 2), 2) + content
    }

    // MARK: Boxes

    static func box(_ type: String, _ content: [UInt8] = []) -> [UInt8] {
        bytes(Int64(content.count + 8), 4) + Array(type.utf8) + content
    }

    static func box(_ type: String, _ boxes: [[UInt8]]) -> [UInt8] { box(type, Array(boxes.joined())) }

    /// With a size of 64 bits; `size` instead of the right one.
    static func wideBox(_ type: String, _ content: [UInt8], size: Int64? = nil) -> [UInt8] {
        bytes(1, 4) + Array(type.utf8) + bytes(size ?? Int64(content.count + 16), 8) + content
    }

    static let fileType = box("ftyp", Array("mp42\0\0\0\0mp42isom".utf8))

    /// `mvhd` with seconds since 1904.
    static func movieHeader(_ seconds: Int64, version: UInt8 = 0) -> [UInt8] {
        let width = version == 1 ? 8 : 4
        return box("mvhd", [version, 0, 0, 0] + bytes(seconds, width) + bytes(seconds, width) + bytes(600, 4))
    }

    /// Seconds since 1904 of a day's beginning, which is given in days since 1970.
    static func since1904(day: Int64, second: Int64 = 0) -> Int64 { 2_082_844_800 + day * 86_400 + second }

    /// Apple's `meta` with these keys; with `isFull` as MPEG writes it.
    static func appleMeta(_ pairs: [(String, String)], isFull: Bool = false) -> [UInt8] {
        let keys = pairs.map { box("mdta", Array($0.0.utf8)) }
        let items = pairs.enumerated().map { index, pair in
            let data = box("data", bytes(1, 4) + bytes(0, 4) + Array(pair.1.utf8))
            return bytes(Int64(data.count + 8), 4) + bytes(Int64(index + 1), 4) + data
        }
        let handler = box("hdlr", [UInt8](repeating: 0, count: 24))
        let content = [
            handler, box("keys", bytes(0, 4) + bytes(Int64(pairs.count), 4) + Array(keys.joined())), box("ilst", items),
        ]
        return box("meta", (isFull ? [0, 0, 0, 0] : []) + Array(content.joined()))
    }

    /// A HEIF picture whose item 2 is EXIF; `version` is that of `iloc`.
    static func heif(_ block: [UInt8], version: UInt8 = 1, method: Int64 = 0) -> [UInt8] {
        let item = bytes(6, 4) + Array("Exif\0\0".utf8) + block
        let start = fileType.count + heifMeta(at: 0, length: 0, version, method).count + 8
        return fileType + heifMeta(at: Int64(start), length: Int64(item.count), version, method) + box("mdat", item)
    }

    private static func heifMeta(at offset: Int64, length: Int64, _ version: UInt8, _ method: Int64) -> [UInt8] {
        let infos = [
            box("infe", [2, 0, 0, 0] + bytes(1, 2) + bytes(0, 2) + Array("hvc1\0".utf8)),
            box("infe", [2, 0, 0, 0] + bytes(2, 2) + bytes(0, 2) + Array("Exif\0".utf8)),
        ]
        var table: [UInt8] = [version, 0, 0, 0, 0x44, 0x00] + bytes(2, version == 2 ? 4 : 2)
        for (id, place) in [(1, (9, 9)), (2, (offset, length))] as [(Int64, (Int64, Int64))] {
            table += bytes(id, version == 2 ? 4 : 2) + (version == 0 ? [] : bytes(method, 2)) + bytes(0, 2)
            table += bytes(1, 2) + bytes(place.0, 4) + bytes(place.1, 4)
        }
        return box(
            "meta",
            [0, 0, 0, 0] + box("hdlr", [UInt8](repeating: 0, count: 24))
                + box("iinf", [0, 0, 0, 0] + bytes(2, 2) + Array(infos.joined())) + box("iloc", table))
    }
}

extension Sample {
    /// Canon's own box in a CR3: 85c0b687-820f-11e0-8111-f4ce462b6a48.
    static let canonID: [UInt8] = [
        0x85, 0xC0, 0xB6, 0x87, 0x82, 0x0F, 0x11, 0xE0, 0x81, 0x11, 0xF4, 0xCE, 0x46, 0x2B, 0x6A, 0x48,
    ]

    /// A CR3 whose `CMT2` is `block`, and whose header says 2026-11-13.
    static func canonRaw(_ block: [UInt8], id: [UInt8] = canonID) -> [UInt8] {
        let canon = [box("CNCV", [1, 2, 3]), box("CMT1", tiff()), box("CMT2", block)]
        let header = movieHeader(since1904(day: 20_770))
        return fileType + box("moov", [box("uuid", id + Array(canon.joined())), header])
    }

    /// A PNG whose `eXIf` is `block`.
    static func png(_ block: [UInt8]) -> [UInt8] {
        func chunk(_ name: String, _ content: [UInt8]) -> [UInt8] {
            bytes(Int64(content.count), 4) + Array(name.utf8) + content + [1, 2, 3, 4]
        }
        return ExifBlock.png + chunk("IHDR", [9, 9, 9]) + chunk("eXIf", block) + chunk("IEND", [])
    }

    /// A WebP whose `EXIF` is `block`.
    static func webP(_ block: [UInt8]) -> [UInt8] {
        func riff(_ name: String, _ content: [UInt8]) -> [UInt8] {
            let even = content.count.isMultiple(of: 2) ? [] : [0] as [UInt8]
            return Array(name.utf8) + bytes(Int64(content.count), 4, isBig: false) + content + even
        }
        return riff("RIFF", Array("WEBP".utf8) + riff("VP8 ", [9, 9, 9]) + riff("EXIF", block))
    }

    /// A Fujifilm raw file that leads to `jpeg`.
    static func fujifilmRaw(_ jpeg: [UInt8]) -> [UInt8] {
        let head = Array("FUJIFILMCCD-RAW 0201FF".utf8)
        let place = head + [UInt8](repeating: 0, count: 84 - head.count) + bytes(200, 4) + bytes(9, 4)
        return place + [UInt8](repeating: 0, count: 200 - place.count) + jpeg
    }
}

/// A file in memory that counts what is read of it. Where no piece lies, it holds zeros.
final class SparseFile {
    let size: Int64
    private let pieces: [(offset: Int64, bytes: [UInt8])]
    private(set) var reads = 0
    private(set) var bytesRead = 0

    init(_ bytes: [UInt8]) {
        size = Int64(bytes.count)
        pieces = [(0, bytes)]
    }

    init(size: Int64, _ pieces: [(offset: Int64, bytes: [UInt8])]) {
        self.size = size
        self.pieces = pieces
    }

    var bounded: BoundedBytes {
        BoundedBytes(size: size) { offset, count throws(SystemError) in self.read(offset, count) }
    }

    /// The date by all of the reader's rules, on the day of the tests.
    func date() throws -> CaptureDate? { try CaptureDate.read(bounded, at: Sample.today) }

    private func read(_ offset: Int64, _ count: Int) -> [UInt8] {
        reads += 1
        bytesRead += count
        var result = [UInt8](repeating: 0, count: Int(min(Int64(count), max(0, size - offset))))
        for piece in pieces {
            let first = max(offset, piece.offset)
            let last = min(offset + Int64(result.count), piece.offset + Int64(piece.bytes.count))
            guard first < last else { continue }
            let part = piece.bytes[Int(first - piece.offset)..<Int(last - piece.offset)]
            result.replaceSubrange(Int(first - offset)..<Int(last - offset), with: part)
        }
        return result
    }
}

func date(_ bytes: [UInt8]) throws -> CaptureDate? { try SparseFile(bytes).date() }

/// The date as `2026-11-21T07:08:09.000+01:00 EXIF DateTimeOriginal`; nil for none.
func text(_ bytes: [UInt8]) throws -> String? { try date(bytes).map { "\($0.time.display) \($0.origin)" } }
