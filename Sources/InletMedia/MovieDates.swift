internal import InletCore
internal import InletLinux

/// The dates in a file made of boxes: QuickTime and MP4 (ISO/IEC 14496-12, Apple's "QuickTime File Format"), HEIF, CR3.
enum MovieDates {
    /// The best first. Apple's own date comes before the header's, because it contains the zone and is the date that
    /// the phone showed; the header's is UTC.
    static func read(_ bytes: BoundedBytes) throws(SystemError) -> [CaptureDate] {
        var dates: [CaptureDate] = []
        var walk = BoxIterator(bytes, in: 0..<bytes.size)
        while let box = try walk.next() {
            switch box.type {
            case "meta": dates += try exif(inItemsOf: box, bytes).flatMap(ExifFields.init(block:))?.dates ?? []
            // It may be behind gigabytes of `mdat`, which are skipped.
            case "moov": return dates + (try inMovie(box, bytes))
            default: continue
            }
        }
        return dates
    }

    private static func inMovie(_ movie: Box, _ bytes: BoundedBytes) throws(SystemError) -> [CaptureDate] {
        var dates: [CaptureDate] = []
        var header: [CaptureDate] = []
        var walk = BoxIterator(bytes, in: movie.content)
        while let box = try walk.next() {
            switch box.type {
            case "mvhd": header += try inHeader(box, bytes)
            case "meta": dates += try inMetadata(box, bytes)
            // Where FFmpeg writes it.
            case "udta":
                if let meta = try bytes.first("meta", in: box.content) {
                    dates += try inMetadata(meta, bytes)
                }
            case "uuid": dates += try inCanonRaw(box, bytes)
            default: continue
            }
        }
        return dates + header
    }

    /// `mvhd`: seconds since 1904 UTC, of 32 bits in version 0 and 64 in version 1; zero means unknown.
    private static func inHeader(_ box: Box, _ bytes: BoundedBytes) throws(SystemError) -> [CaptureDate] {
        let content = try bytes.read(upTo: Int(min(box.length, 12)), at: box.content.lowerBound)
        guard let version = content.first, version <= 1 else { return [] }
        let width = version == 0 ? 4 : 8
        guard content.count >= 4 + width else { return [] }
        let seconds = content.bigEndian(width, at: 4)
        // A larger value is no date, and would overflow.
        guard seconds > 0, seconds < 1 << 40 else { return [] }
        let instant = WallTime(milliseconds: (Int64(seconds) - secondsFrom1904) * 1000)
        return [CaptureDate(time: CaptureTime(instant: instant), origin: "MP4 creation time")]
    }

    /// From 1904-01-01 to 1970-01-01.
    private static let secondsFrom1904: Int64 = 2_082_844_800

    /// CR3: Canon's own box holds the EXIF directory as a TIFF file, `CMT2`.
    private static func inCanonRaw(_ box: Box, _ bytes: BoundedBytes) throws(SystemError) -> [CaptureDate] {
        try canonBlock("CMT2", in: box, bytes).flatMap(ExifFields.init(block:))?.dates ?? []
    }

    /// A TIFF file in Canon's own box; nil if `box` is another one.
    static func canonBlock(_ name: BoxType, in box: Box, _ bytes: BoundedBytes) throws(SystemError) -> [UInt8]? {
        let length = Int64(canonID.count)
        guard box.length >= length, try bytes.read(canonID.count, at: box.content.lowerBound) == canonID else {
            return nil
        }
        let inside = (box.content.lowerBound + length)..<box.content.upperBound
        guard let block = try bytes.first(name, in: inside) else { return nil }
        return try ExifBlock.at(block.content.lowerBound, count: block.length, bytes)
    }

    /// 85c0b687-820f-11e0-8111-f4ce462b6a48
    private static let canonID: [UInt8] = [
        0x85, 0xC0, 0xB6, 0x87, 0x82, 0x0F, 0x11, 0xE0, 0x81, 0x11, 0xF4, 0xCE, 0x46, 0x2B, 0x6A, 0x48,
    ]
}

/// The metadata of `moov/meta`: `keys` names them, `ilst` holds a value under each key's number (Apple, "QuickTime File
/// Format": Metadata Atoms and Types).
extension MovieDates {
    private static let creationDate = "com.apple.quicktime.creationdate"
    /// The longest text of a value that counts.
    private static let longestValue = 64
    /// A key's length that no valid file reaches; keys behind a longer one are ignored.
    private static let longestKey = 1024
    private static let maximumKeys = 256

    private static func inMetadata(_ meta: Box, _ bytes: BoundedBytes) throws(SystemError) -> [CaptureDate] {
        guard let text = try value(of: creationDate, in: meta, bytes), let time = DateText.time(text) else { return [] }
        return [CaptureDate(time: time, origin: "QuickTime creationdate")]
    }

    /// The bytes of the value under a key; nil if it is missing or too long.
    static func value(of key: String, in meta: Box, _ bytes: BoundedBytes) throws(SystemError) -> [UInt8]? {
        let inside = try children(of: meta, bytes)
        guard let keys = try bytes.first("keys", in: inside), let list = try bytes.first("ilst", in: inside),
            let number = try number(ofKey: Array(key.utf8), in: keys, bytes),
            let item = try bytes.first(BoxType(code: number), in: list.content),
            let data = try bytes.first("data", in: item.content),
            // The value's type and locale, then the value.
            let content = try bytes.content(of: data, limit: 8 + longestValue), content.count > 8
        else { return nil }
        return Array(content.dropFirst(8))
    }

    /// QuickTime's `meta` begins with boxes, MPEG's with four bytes of version and flags. The first box of both is
    /// `hdlr`.
    static func children(of meta: Box, _ bytes: BoundedBytes) throws(SystemError) -> Range<Int64> {
        let start = meta.content.lowerBound
        let head = try bytes.read(upTo: Int(min(meta.length, 8)), at: start)
        let isPlain = head.count == 8 && head.dropFirst(4).elementsEqual("hdlr".utf8)
        return (isPlain ? start : min(start + 4, meta.content.upperBound))..<meta.content.upperBound
    }

    /// Keys count from 1; each is its length, a namespace and the name.
    private static func number(
        ofKey name: [UInt8], in keys: Box, _ bytes: BoundedBytes
    ) throws(SystemError) -> UInt32? {
        var offset = keys.content.lowerBound + 8
        for number in 1...UInt32(maximumKeys) {
            guard offset + 8 <= keys.content.upperBound, let head = try bytes.read(8, at: offset) else { return nil }
            let length = Int(head.bigEndian(4, at: 0))
            guard (8...longestKey).contains(length), offset + Int64(length) <= keys.content.upperBound else {
                return nil
            }
            if length == 8 + name.count, try bytes.read(name.count, at: offset + 8) == name { return number }
            offset += Int64(length)
        }
        return nil
    }
}

/// The EXIF item of a HEIF picture (ISO/IEC 23008-12, Annex A): `iinf` says which item it is, `iloc` where it lies
/// (ISO/IEC 14496-12, 8.11).
extension MovieDates {
    private static let maximumTable = 64 << 10

    /// The EXIF block that `meta` refers to; nil if there is none.
    static func exif(inItemsOf meta: Box, _ bytes: BoundedBytes) throws(SystemError) -> [UInt8]? {
        let inside = try children(of: meta, bytes)
        guard let infos = try bytes.first("iinf", in: inside), let item = try exifItem(in: infos, bytes),
            let places = try bytes.first("iloc", in: inside),
            let table = try bytes.content(of: places, limit: maximumTable),
            let place = ItemLocations(table).place(of: item),
            // The item begins with the length of the bytes before TIFF's header: usually `Exif` and two NULs.
            let head = try bytes.read(4, at: place.lowerBound)
        else { return nil }
        let start = place.lowerBound + 4 + Int64(head.bigEndian(4, at: 0))
        guard start < place.upperBound else { return nil }
        return try ExifBlock.at(start, count: place.upperBound - start, bytes)
    }

    /// The number of the item of type `Exif`.
    private static func exifItem(in infos: Box, _ bytes: BoundedBytes) throws(SystemError) -> UInt64? {
        guard let version = try bytes.read(1, at: infos.content.lowerBound)?.first else { return nil }
        let start = infos.content.lowerBound + (version == 0 ? 6 : 8)
        guard start <= infos.content.upperBound else { return nil }
        var walk = BoxIterator(bytes, in: start..<infos.content.upperBound)
        while let box = try walk.next() {
            guard box.type == "infe" else { continue }
            let entry = try bytes.read(upTo: Int(min(box.length, 14)), at: box.content.lowerBound)
            // Version 2 has numbers of 16 bits, version 3 of 32; older ones have no types.
            let width = entry.first == 2 ? 2 : entry.first == 3 ? 4 : 0
            guard width > 0, entry.count >= 10 + width else { continue }
            if entry[(6 + width)..<(10 + width)].elementsEqual("Exif".utf8) { return entry.bigEndian(width, at: 4) }
        }
        return nil
    }
}

/// The table `iloc`, read from left to right.
private struct ItemLocations {
    private var rest: ArraySlice<UInt8>

    init(_ table: [UInt8]) { rest = table[...] }

    /// The first piece of an item that is in the file itself; nil if it is not there.
    consuming func place(of wanted: UInt64) -> Range<Int64>? {
        guard let version = number(1), version <= 2, number(3) != nil, let sizes = number(1), let more = number(1),
            let count = number(version < 2 ? 2 : 4)
        else { return nil }
        let widths = [sizes >> 4, sizes & 15, more >> 4, version == 0 ? 0 : more & 15].map { Int($0) }
        // A length of no bytes would mean the whole file, and a table can name any number of pieces.
        guard widths.allSatisfy({ [0, 4, 8].contains($0) }), widths[1] > 0 else { return nil }
        for _ in 0..<count {
            guard let id = number(version < 2 ? 2 : 4), let method = version == 0 ? 0 : number(2), number(2) != nil,
                let base = number(widths[2]), let pieces = number(2)
            else { return nil }
            var first: Range<Int64>?
            for index in 0..<pieces {
                guard number(widths[3]) != nil, let offset = number(widths[0]), let length = number(widths[1]) else {
                    return nil
                }
                if index == 0 { first = Self.range(base, offset, length) }
            }
            if id == wanted { return method & 15 == 0 ? first : nil }
        }
        return nil
    }

    /// The next `width` bytes as a number; 0 if `width` is 0.
    private mutating func number(_ width: Int) -> UInt64? {
        guard rest.count >= width else { return nil }
        defer { rest = rest.dropFirst(width) }
        return rest.bigEndian(width, at: 0)
    }

    private static func range(_ base: UInt64, _ offset: UInt64, _ length: UInt64) -> Range<Int64>? {
        let (start, isTooFar) = base.addingReportingOverflow(offset)
        let (end, isTooLong) = start.addingReportingOverflow(length)
        guard !isTooFar, !isTooLong, end <= UInt64(Int64.max) else { return nil }
        return Int64(start)..<Int64(end)
    }
}

/// The four characters that name a box (ISO/IEC 14496-12, 4.2).
struct BoxType: Hashable, ExpressibleByStringLiteral {
    let code: UInt32

    init(code: UInt32) { self.code = code }

    init(stringLiteral text: StaticString) {
        code = text.withUTF8Buffer { $0.reduce(0) { $0 << 8 | UInt32($1) } }
    }

    /// Whether a file whose first bytes are `head` is made of boxes. Old QuickTime files begin without `ftyp`.
    static func opensFile(_ head: [UInt8]) -> Bool {
        guard head.count >= 8 else { return false }
        let first = BoxType(code: UInt32(head.bigEndian(4, at: 4)))
        let known: Set<BoxType> = ["ftyp", "moov", "mdat", "wide", "free", "skip", "pnot"]
        return known.contains(first)
    }
}

/// A box, or an atom as QuickTime calls it.
struct Box {
    var type: BoxType
    /// The place of its content in the file; never beyond its parent's.
    var content: Range<Int64>
    /// The bytes that it claims beyond its parent's end.
    var missing: Int64 = 0

    var length: Int64 { content.upperBound - content.lowerBound }
}

/// The boxes of one level, one after the other. Each step moves forward and costs one read of the budget, so a walk
/// ends whatever sizes the boxes claim.
struct BoxIterator {
    private let bytes: BoundedBytes
    private var offset: Int64
    private let end: Int64

    /// The boxes in `range` of the file.
    init(_ bytes: BoundedBytes, in range: Range<Int64>) {
        self.bytes = bytes
        offset = range.lowerBound
        end = min(range.upperBound, bytes.size)
    }

    /// The next box; nil at the end, and where no box is possible.
    mutating func next() throws(SystemError) -> Box? {
        guard end - offset >= 8 else { return nil }
        let head = try bytes.read(upTo: Int(min(16, end - offset)), at: offset)
        guard head.count >= 8, let (header, claimed) = Self.measure(head, available: end - offset) else {
            offset = end
            return nil
        }
        let size = min(claimed, end - offset)
        let content = (offset + header)..<(offset + size)
        offset += size
        return Box(type: BoxType(code: UInt32(head.bigEndian(4, at: 4))), content: content, missing: claimed - size)
    }

    /// The header's length, and the box's including it as it claims. A size of 1 means that 64 bits follow, 0 that the
    /// box extends to the end.
    private static func measure(_ head: [UInt8], available: Int64) -> (header: Int64, size: Int64)? {
        var header: Int64 = 8
        var size = head.bigEndian(4, at: 0)
        if size == 0 { return (header, available) }
        if size == 1 {
            guard head.count == 16 else { return nil }
            header = 16
            size = head.bigEndian(8, at: 8)
        }
        guard size >= UInt64(header) else { return nil }
        return (header, Int64(clamping: size))
    }
}

extension BoundedBytes {
    /// The first box of the type in `range`.
    func first(_ type: BoxType, in range: Range<Int64>) throws(SystemError) -> Box? {
        var walk = BoxIterator(self, in: range)
        while let box = try walk.next() {
            if box.type == type { return box }
        }
        return nil
    }

    /// A box's whole content; nil if it is longer than `limit`.
    func content(of box: Box, limit: Int) throws(SystemError) -> [UInt8]? {
        guard box.length <= Int64(limit) else { return nil }
        return try read(Int(box.length), at: box.content.lowerBound)
    }
}
