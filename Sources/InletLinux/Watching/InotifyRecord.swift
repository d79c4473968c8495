import Glibc

/// One record that the kernel wrote to an inotify descriptor (inotify(7)).
package struct InotifyRecord: Sendable, Hashable {
    /// What happened, and how a watch is set: the `IN_*` bits.
    package struct Mask: OptionSet, Sendable, Hashable {
        package let rawValue: UInt32
        package init(rawValue: UInt32) { self.rawValue = rawValue }

        package static let attributes = Mask(rawValue: 0x4)
        package static let closedAfterWriting = Mask(rawValue: 0x8)
        package static let movedFrom = Mask(rawValue: 0x40)
        package static let movedTo = Mask(rawValue: 0x80)
        package static let created = Mask(rawValue: 0x100)
        package static let deleted = Mask(rawValue: 0x200)
        /// The watched folder itself is gone.
        package static let selfDeleted = Mask(rawValue: 0x400)
        /// The watched folder itself has another name now.
        package static let selfMoved = Mask(rawValue: 0x800)
        /// The watched folder's file system was unmounted.
        package static let unmounted = Mask(rawValue: 0x2000)
        /// Records were lost: everything must be looked at again. Comes with watch -1.
        package static let overflow = Mask(rawValue: 0x4000)
        /// The watch is gone; its number will not come again in this process's life-time of the descriptor.
        package static let watchRemoved = Mask(rawValue: 0x8000)
        /// The name is a folder's.
        package static let isDirectory = Mask(rawValue: 0x4000_0000)

        /// What a watched folder reports. `IN_MODIFY` is left out: it comes once per write, and quiet is judged by a stat.
        static let watched: Mask = [
            .attributes, .closedAfterWriting, .movedFrom, .movedTo, .created, .deleted, .selfDeleted, .selfMoved,
        ]
        /// What becomes of a watched folder itself; its unmounting is always reported.
        static let itself: Mask = [.selfDeleted, .selfMoved]
        /// `IN_DONT_FOLLOW`.
        static let notFollowed = Mask(rawValue: 0x0200_0000)
        /// `IN_ONLYDIR | IN_DONT_FOLLOW | IN_EXCL_UNLINK`.
        static let manners = Mask(rawValue: 0x0100_0000 | 0x0200_0000 | 0x0400_0000)
    }

    /// The number that `Inotify.add` returned; -1 for an overflow.
    package var watch: Int32
    package var mask: Mask
    /// Equal in the two halves of a rename, else 0.
    package var cookie: UInt32
    /// The name within the watched folder; empty for records about the folder itself. Shares its storage with the other
    /// records of one reading: no memory is taken for each of thousands, most of which are looked at and dropped.
    package var nameBytes: ArraySlice<UInt8>

    package init(watch: Int32, mask: Mask, cookie: UInt32 = 0, name: [UInt8] = []) {
        self.init(watch: watch, mask: mask, cookie: cookie, nameBytes: name[...])
    }

    init(watch: Int32, mask: Mask, cookie: UInt32, nameBytes: ArraySlice<UInt8>) {
        self.watch = watch
        self.mask = mask
        self.cookie = cookie
        self.nameBytes = nameBytes
    }

    /// `nameBytes` with storage of its own.
    package var name: [UInt8] { Array(nameBytes) }

    /// The record says that others were lost.
    package var isOverflow: Bool { mask.contains(.overflow) }
}

extension Inotify {
    /// As many as one reading of short names has.
    private static let usualRecords = 2048

    /// Reads `struct inotify_event` records: `wd`, `mask`, `cookie` and `len` of four bytes each, then `len` bytes of name
    /// padded with NUL. Total on any bytes: a record that is cut short ends the list, a foreign length reads nothing
    /// beyond `bytes`.
    package static func parse(_ bytes: UnsafeRawBufferPointer) -> [InotifyRecord] {
        let header = 16
        var records: [InotifyRecord] = []
        var offset = 0
        // One copy of all names, so that records can outlive the buffer they were read into.
        let copy = Array(bytes)
        records.reserveCapacity(min(bytes.count / (2 * header), Self.usualRecords))
        while bytes.count - offset >= header {
            let length = Int(bytes.loadUnaligned(fromByteOffset: offset + 12, as: UInt32.self))
            guard length <= bytes.count - offset - header else { break }
            let name = copy[(offset + header)..<(offset + header + length)].prefix { $0 != 0 }
            records.append(
                InotifyRecord(
                    watch: bytes.loadUnaligned(fromByteOffset: offset, as: Int32.self),
                    mask: .init(rawValue: bytes.loadUnaligned(fromByteOffset: offset + 4, as: UInt32.self)),
                    cookie: bytes.loadUnaligned(fromByteOffset: offset + 8, as: UInt32.self), nameBytes: name))
            offset += header + length
        }
        return records
    }
}
