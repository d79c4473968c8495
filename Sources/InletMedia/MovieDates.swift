internal import InletCore
internal import InletLinux

/// The dates in a file made of boxes: QuickTime and MP4 (ISO/IEC 14496-12, Apple's "QuickTime File Format"), HEIF, CR3.
enum MovieDates {
    /// The best first. Apple's own date comes before the header's, because it holds the zone and is what the phone
    /// showed; the header's is UTC.
    static func read(_ bytes: BoundedBytes) throws(SystemError) -> [CaptureDate] {
        var dates: [CaptureDate] = []
        var walk = BoxWalk(bytes, in: 0..<bytes.size)
        while let box = try walk.next() {
            switch box.type {
            case "meta": dates += try HEIFItems.exif(in: box, bytes).map(ExifDates.read) ?? []
            // It may stand behind gigabytes of `mdat`, which is stepped over.
            case "moov": return dates + (try inMovie(box, bytes))
            default: continue
            }
        }
        return dates
    }

    private static func inMovie(_ movie: Box, _ bytes: BoundedBytes) throws(SystemError) -> [CaptureDate] {
        var dates: [CaptureDate] = []
        var header: [CaptureDate] = []
        var walk = BoxWalk(bytes, in: movie.content)
        while let box = try walk.next() {
            switch box.type {
            case "mvhd": header += try inHeader(box, bytes)
            case "meta": dates += try AppleMetadata.dates(in: box, bytes)
            // Where FFmpeg writes it.
            case "udta":
                if let meta = try bytes.first("meta", in: box.content) {
                    dates += try AppleMetadata.dates(in: meta, bytes)
                }
            case "uuid": dates += try inCanonRaw(box, bytes)
            default: continue
            }
        }
        return dates + header
    }

    /// `mvhd`: seconds since 1904 UTC, of 32 bits in version 0 and 64 in version 1; zero means not known.
    private static func inHeader(_ box: Box, _ bytes: BoundedBytes) throws(SystemError) -> [CaptureDate] {
        let content = try bytes.read(upTo: Int(min(box.length, 12)), at: box.content.lowerBound)
        guard let version = content.first, version <= 1 else { return [] }
        let width = version == 0 ? 4 : 8
        guard content.count >= 4 + width else { return [] }
        let seconds = content.bigEndian(width, at: 4)
        // What is beyond is no date at all, and would overflow.
        guard seconds > 0, seconds < 1 << 40 else { return [] }
        let instant = WallTime(milliseconds: (Int64(seconds) - secondsFrom1904) * 1000)
        return [CaptureDate(time: CaptureTime(instant: instant), origin: "MP4 creation time")]
    }

    /// From 1904-01-01 to 1970-01-01.
    private static let secondsFrom1904: Int64 = 2_082_844_800

    /// CR3: Canon's own box holds the EXIF directory as a TIFF file, `CMT2`.
    private static func inCanonRaw(_ box: Box, _ bytes: BoundedBytes) throws(SystemError) -> [CaptureDate] {
        let length = Int64(canonID.count)
        guard box.length >= length, try bytes.read(canonID.count, at: box.content.lowerBound) == canonID else {
            return []
        }
        let inside = (box.content.lowerBound + length)..<box.content.upperBound
        guard let block = try bytes.first("CMT2", in: inside) else { return [] }
        return try ExifBlock.at(block.content.lowerBound, count: block.length, bytes).map(ExifDates.read) ?? []
    }

    /// 85c0b687-820f-11e0-8111-f4ce462b6a48
    private static let canonID: [UInt8] = [
        0x85, 0xC0, 0xB6, 0x87, 0x82, 0x0F, 0x11, 0xE0, 0x81, 0x11, 0xF4, 0xCE, 0x46, 0x2B, 0x6A, 0x48,
    ]
}
