internal import InletLinux

/// The EXIF item of a HEIF picture (ISO/IEC 23008-12, Annex A): `iinf` says which item it is, `iloc` where it lies
/// (ISO/IEC 14496-12, 8.11).
enum HEIFItems {
    private static let maximumTable = 64 << 10

    /// The block of EXIF that `meta` leads to; nil when there is none.
    static func exif(in meta: Box, _ bytes: BoundedBytes) throws(SystemError) -> [UInt8]? {
        let inside = try QuickTimeMetadata.children(of: meta, bytes)
        guard let infos = try bytes.first("iinf", in: inside), let item = try exifItem(in: infos, bytes),
            let places = try bytes.first("iloc", in: inside),
            let table = try bytes.content(of: places, limit: maximumTable),
            let place = ItemPlaces(table).place(of: item),
            // The item begins with the length of what stands before TIFF's header: usually `Exif` and two NULs.
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
private struct ItemPlaces {
    private var rest: ArraySlice<UInt8>

    init(_ table: [UInt8]) { rest = table[...] }

    /// The first piece of an item that lies in the file itself; nil when it is not there.
    consuming func place(of wanted: UInt64) -> Range<Int64>? {
        guard let version = number(1), version <= 2, number(3) != nil, let sizes = number(1), let more = number(1),
            let count = number(version < 2 ? 2 : 4)
        else { return nil }
        let widths = [sizes >> 4, sizes & 15, more >> 4, version == 0 ? 0 : more & 15].map { Int($0) }
        // A length of no bytes would mean the whole file, and a table that can name any number of pieces.
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

    /// The next `width` bytes as a number; without any 0.
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
