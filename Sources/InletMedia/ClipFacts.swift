internal import InletCore
package import InletLinux
internal import SystemPackage

/// Facts about a recording or a picture from its own headers, for a report: each is nil where the file does not say.
///
/// Reads MOV and MP4, MXF, and EXIF, within the budget of `BoundedBytes`.
package struct ClipFacts: Sendable, Equatable {
    package var duration: Duration?
    /// Of the first frame: `01:02:03:04`; `01:02:03;04` where frames are dropped.
    package var timecode: String?
    /// The camera's make and model.
    package var camera: String?

    package init() {}

    /// Blocks.
    package static func read(from source: SourceFile) throws(SystemError) -> ClipFacts {
        try read(BoundedBytes(source))
    }

    static func read(_ bytes: BoundedBytes) throws(SystemError) -> ClipFacts {
        let head = try bytes.read(upTo: 16, at: 0)
        if MXFFile.begins(head) { return try MXFFile.facts(bytes) }
        var facts = BoxType.opensFile(head) ? try movie(bytes) : ClipFacts()
        facts.camera = name(try CameraTags.read(bytes))
        return facts
    }

    /// The model where it begins with the make, as most do; else both.
    private static func name(_ tags: CameraTags) -> String? {
        let texts = [tags.make, tags.model].map { text in
            DisplayText.escape(text ?? "").split(separator: " ").joined(separator: " ")
        }
        let make = texts[0].split(separator: " ").first.map { $0.lowercased() } ?? ""
        let isWhole = !texts[1].isEmpty && texts[1].lowercased().hasPrefix(make)
        let name = isWhole ? texts[1] : texts.filter { !$0.isEmpty }.joined(separator: " ")
        return name.isEmpty ? nil : name
    }

    // MARK: - Frames and seconds

    /// A hundred days: no recording is longer, and a larger number is damage.
    private static let longest: Double = 100 * 86_400

    static func duration(_ units: UInt64, _ rate: UInt64, per seconds: UInt64 = 1) -> Duration? {
        guard units > 0, units < .max >> 1, rate > 0 else { return nil }
        let length = Double(units) * Double(seconds) / Double(rate)
        return length > longest ? nil : .milliseconds(Int64((length * 1000).rounded()))
    }

    /// SMPTE ST 12-1. Where frames are dropped, numbers are: two (or four of 60) at each minute but every tenth.
    static func timecode(_ frame: UInt64, base: UInt64, isDropFrame: Bool) -> String? {
        guard (1...240).contains(base), frame < 48 * 3600 * base else { return nil }
        var frame = frame
        if isDropFrame {
            let dropped = base / 15
            let (minute, ten) = (base * 60 - dropped, base * 600 - dropped * 9)
            let (tens, rest) = frame.quotientAndRemainder(dividingBy: ten)
            frame += tens * dropped * 9 + (rest > dropped ? (rest - dropped) / minute * dropped : 0)
        }
        let seconds = frame / base
        let parts = [seconds / 3600 % 24, seconds / 60 % 60, seconds % 60, frame % base].map {
            $0 < 10 ? "0\($0)" : "\($0)"
        }
        return parts.prefix(3).joined(separator: ":") + (isDropFrame ? ";" : ":") + parts[3]
    }
}

/// MOV and MP4 (ISO/IEC 14496-12; Apple, "QuickTime File Format").
extension ClipFacts {
    private static func movie(_ bytes: BoundedBytes) throws(SystemError) -> ClipFacts {
        var facts = ClipFacts()
        guard let movie = try bytes.first("moov", in: 0..<bytes.size) else { return facts }
        var walk = BoxIterator(bytes, in: movie.content)
        while let box = try walk.next() {
            switch box.type {
            case "mvhd": facts.duration = try length(box, bytes)
            case "trak": if facts.timecode == nil { facts.timecode = try timecode(inTrack: box, bytes) }
            default: continue
            }
        }
        return facts
    }

    /// `mvhd`: behind the two dates the units of a second, and the length in these.
    private static func length(_ header: Box, _ bytes: BoundedBytes) throws(SystemError) -> Duration? {
        let content = try bytes.read(upTo: Int(min(header.length, 32)), at: header.content.lowerBound)
        let width = content.first == 1 ? 8 : 4
        let place = 4 + 2 * width
        guard content.count >= place + 4 + width else { return nil }
        // All ones mean that the length is unknown.
        let units = content.bigEndian(width, at: place + 4)
        return units == (width == 4 ? 0xFFFF_FFFF : .max) ? nil : duration(units, content.bigEndian(4, at: place))
    }

    /// A track of time codes: its description says how frames count, its first sample which one is the first.
    private static func timecode(inTrack track: Box, _ bytes: BoundedBytes) throws(SystemError) -> String? {
        guard let media = try bytes.first("mdia", in: track.content),
            let handler = try bytes.first("hdlr", in: media.content),
            try bytes.read(4, at: handler.content.lowerBound + 8) == Array("tmcd".utf8),
            let info = try bytes.first("minf", in: media.content),
            let table = try bytes.first("stbl", in: info.content),
            let described = try bytes.first("stsd", in: table.content),
            // The version and the number of entries; the entry's size, name, reserved bytes and reference; its fields.
            let entry = try bytes.read(41, at: described.content.lowerBound), entry[12..<16].elementsEqual("tmcd".utf8),
            let place = try firstSample(table, bytes), let sample = try bytes.read(4, at: place)
        else { return nil }
        let isDropFrame = entry.bigEndian(4, at: 28) & 1 == 1
        return timecode(sample.bigEndian(4, at: 0), base: UInt64(entry[40]), isDropFrame: isDropFrame)
    }

    private static func firstSample(_ table: Box, _ bytes: BoundedBytes) throws(SystemError) -> Int64? {
        for (type, width) in [("stco", 4), ("co64", 8)] as [(BoxType, Int)] {
            guard let chunks = try bytes.first(type, in: table.content),
                let content = try bytes.read(8 + width, at: chunks.content.lowerBound),
                content.bigEndian(4, at: 4) > 0
            else { continue }
            return Int64(clamping: content.bigEndian(width, at: 8))
        }
        return nil
    }
}
