internal import InletLinux

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
    /// Where its content lies in the file; never beyond what it stands in.
    var content: Range<Int64>

    var length: Int64 { content.upperBound - content.lowerBound }
}

/// The boxes of one level, one after the other. Each step goes forward and costs one read of the budget, so that a walk
/// ends whatever sizes the boxes claim.
struct BoxWalk {
    private let bytes: BoundedBytes
    private var offset: Int64
    private let end: Int64

    /// The boxes in `range` of the file.
    init(_ bytes: BoundedBytes, in range: Range<Int64>) {
        self.bytes = bytes
        offset = range.lowerBound
        end = min(range.upperBound, bytes.size)
    }

    /// The next box; nil at the end, and where no box can be.
    mutating func next() throws(SystemError) -> Box? {
        guard end - offset >= 8 else { return nil }
        let head = try bytes.read(upTo: Int(min(16, end - offset)), at: offset)
        guard head.count >= 8, let (header, size) = Self.measure(head, available: end - offset) else {
            offset = end
            return nil
        }
        let content = (offset + header)..<(offset + size)
        offset += size
        return Box(type: BoxType(code: UInt32(head.bigEndian(4, at: 4))), content: content)
    }

    /// The header's length, and the box's with it, cut to what is there. A size of 1 means that 64 bits follow, 0 that
    /// the box goes to the end.
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
        return (header, min(Int64(clamping: size), available))
    }
}

extension BoundedBytes {
    /// The first box of the type in `range`.
    func first(_ type: BoxType, in range: Range<Int64>) throws(SystemError) -> Box? {
        var walk = BoxWalk(self, in: range)
        while let box = try walk.next() {
            if box.type == type { return box }
        }
        return nil
    }

    /// A box's whole content; nil when it is longer than `limit`.
    func content(of box: Box, limit: Int) throws(SystemError) -> [UInt8]? {
        guard box.length <= Int64(limit) else { return nil }
        return try read(Int(box.length), at: box.content.lowerBound)
    }
}
