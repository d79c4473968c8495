internal import InletCore
internal import InletLinux

/// An MXF file (SMPTE ST 377-1): packets of a key, a length and a value; partitions, each of which begins with a pack.
enum MXFFile {
    private struct Packet {
        var key: [UInt8]
        var content: Range<Int64>
    }

    /// ST 377-1, 7.1: the key of every partition pack up to the byte of its kind.
    private static let partition: [UInt8] = [
        0x06, 0x0E, 0x2B, 0x34, 0x02, 0x05, 0x01, 0x01, 0x0D, 0x01, 0x02, 0x01, 0x01,
    ]
    private static let (headerKind, footerKind, indexKind): (UInt8, UInt8, UInt8) = (0x02, 0x04, 0x11)
    /// ST 377-1, 6.5: other bytes that may stand before the header.
    private static let longestRunIn = 64 << 10
    private static let mostSets = 400
    private static let longestSet = 4096

    static func begins(_ head: [UInt8]) -> Bool { head.starts(with: partition) }

    // MARK: - Whether it is whole

    /// Why no player opens it: the header names its footer, or the random index at the end stands for that.
    static func fault(_ bytes: BoundedBytes) throws(SystemError) -> String? {
        guard let (start, _, pack) = try header(bytes) else { return "its beginning is not that of an MXF file" }
        let footer = Int64(clamping: pack.bigEndian(8, at: 24))
        if footer == 0 {
            let end = try bytes.read(4, at: bytes.size - 4).map { Int64($0.bigEndian(4, at: 0)) } ?? 0
            if end <= bytes.size, try packet(at: bytes.size - end, bytes)?.key[13] == indexKind { return nil }
            return "it has no footer: the recording was not closed"
        }
        guard footer < bytes.size - start else {
            let missing = footer - (bytes.size - start)
            return "it is cut off: at least \(ByteText.format(max(missing, 1))) short"
        }
        let found = try packet(at: start + footer, bytes)
        guard let found, found.key.starts(with: partition), found.key[13] == footerKind else {
            return bytes.isSpent ? nil : "its footer is damaged"
        }
        return found.content.upperBound > bytes.size ? "it is cut off in its footer" : nil
    }

    // MARK: - Facts in its header

    /// The duration and the time code of its first frame, from the sets of the header.
    static func facts(_ bytes: BoundedBytes) throws(SystemError) -> ClipFacts {
        var facts = ClipFacts()
        guard let (_, first, pack) = try header(bytes) else { return facts }
        // A damaged length reaches to the end of the file.
        let (sum, isTooFar) = first.addingReportingOverflow(Int64(clamping: pack.bigEndian(8, at: 32)))
        let end = isTooFar ? Int64.max : sum
        var (offset, rate): (Int64, (frames: UInt64, seconds: UInt64)?) = (first, nil)
        var component: [UInt64: ArraySlice<UInt8>]?
        for _ in 0..<mostSets where offset < end {
            guard let found = try packet(at: offset, bytes) else { break }
            offset = found.content.upperBound
            guard let kind = set(found.key), kind == track || kind == timecode, component == nil || rate == nil,
                found.content.count <= longestSet,
                let content = try bytes.read(found.content.count, at: found.content.lowerBound)
            else { continue }
            let items = items(content)
            if kind == timecode { component = component ?? items }
            if let value = items[editRate], value.count == 8 {
                let (frames, seconds) = (value.bigEndian(4, at: 0), value.bigEndian(4, at: 4))
                // A sound track counts samples.
                if rate == nil, seconds > 0, frames / seconds <= 300 { rate = (frames, seconds) }
            }
        }
        guard let component, let base = component[roundedBase], base.count == 2 else { return facts }
        let frames = base.bigEndian(2, at: 0)
        if let length = component[duration], length.count == 8, let rate, rate.frames > 0 {
            facts.duration = ClipFacts.duration(length.bigEndian(8, at: 0), rate.frames, per: rate.seconds)
        }
        if let start = component[startTimecode], start.count == 8 {
            facts.timecode = ClipFacts.timecode(
                start.bigEndian(8, at: 0), base: frames, isDropFrame: component[dropFrame]?.first == 1)
        }
        return facts
    }

    /// ST 377-1, Annex B: the sets, by the last but one byte of their keys, and the local tags of their items.
    private static let (timecode, track): (UInt8, UInt8) = (0x14, 0x3B)
    private static let editRate: UInt64 = 0x4B01
    private static let duration: UInt64 = 0x0202
    private static let startTimecode: UInt64 = 0x1501
    private static let roundedBase: UInt64 = 0x1502
    private static let dropFrame: UInt64 = 0x1503

    private static func set(_ key: [UInt8]) -> UInt8? {
        let start: [UInt8] = [0x06, 0x0E, 0x2B, 0x34, 0x02, 0x53, 0x01, 0x01, 0x0D, 0x01, 0x01, 0x01, 0x01, 0x01]
        return key.starts(with: start) ? key[14] : nil
    }

    private static func items(_ content: [UInt8]) -> [UInt64: ArraySlice<UInt8>] {
        var items: [UInt64: ArraySlice<UInt8>] = [:]
        var rest = content[...]
        while rest.count >= 4 {
            let (tag, length) = (rest.bigEndian(2, at: 0), Int(rest.bigEndian(2, at: 2)))
            items[tag] = rest.dropFirst(4).prefix(length)
            rest = rest.dropFirst(4 + length)
        }
        return items
    }

    // MARK: - Packets

    /// The header partition: its place, the place behind its pack, and the pack's first bytes.
    private static func header(
        _ bytes: BoundedBytes
    ) throws(SystemError) -> (start: Int64, end: Int64, pack: [UInt8])? {
        var start: Int64 = 0
        if !begins(try bytes.read(upTo: 16, at: 0)) {
            let runIn = try bytes.read(upTo: longestRunIn + 16, at: 0)
            guard let found = runIn.firstRange(of: partition)?.lowerBound else { return nil }
            start = Int64(found)
        }
        guard let found = try packet(at: start, bytes), found.key[13] == headerKind, found.content.count >= 40,
            let pack = try bytes.read(40, at: found.content.lowerBound)
        else { return nil }
        return (start, found.content.upperBound, pack)
    }

    /// ST 336: a key of 16 bytes, and a length of one byte or, from 0x81 to 0x88, of as many bytes behind it.
    private static func packet(at offset: Int64, _ bytes: BoundedBytes) throws(SystemError) -> Packet? {
        let head = try bytes.read(upTo: 25, at: offset)
        guard head.count >= 17 else { return nil }
        let width = head[16] < 0x80 ? 0 : Int(head[16] & 0x7F)
        guard width <= 8, head.count >= 17 + width else { return nil }
        let length = width == 0 ? Int64(head[16]) : Int64(clamping: head.bigEndian(width, at: 17))
        let start = offset + 17 + Int64(width)
        let (end, isTooFar) = start.addingReportingOverflow(length)
        return isTooFar ? nil : Packet(key: Array(head.prefix(16)), content: start..<end)
    }
}
