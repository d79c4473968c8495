import CLinux
import Glibc
package import SystemPackage

/// Events of watched folders: the owner of one inotify descriptor. For one thread at a time.
package struct Inotify: ~Copyable, Sendable {
    private let descriptor: Descriptor
    /// It reports nothing.
    package let isSilent: Bool
    /// Why the kernel gave no instance.
    package let refusal: SystemError?

    var number: CInt { descriptor.number }

    /// Throws `EMFILE` with the sysctl to raise when this user has too many instances.
    package init() throws(SystemError) {
        descriptor = Descriptor(
            owning: try SystemCall.result("inotify_init1") { inotify_init1(CInt(IN_NONBLOCK | IN_CLOEXEC)) })
        (isSilent, refusal) = (false, nil)
    }

    /// An instance without events, for a tree that is polled: it takes none of the user's instances, and every `add`
    /// throws `isWatchLimit`.
    package init(silentFor refusal: SystemError? = nil) throws(SystemError) {
        descriptor = Descriptor(
            owning: try SystemCall.result("eventfd") { eventfd(0, CInt(EFD_NONBLOCK | EFD_CLOEXEC)) })
        isSilent = true
        self.refusal = refusal
    }

    /// An instance without events where this user has no instances left.
    package static func orSilent() throws(SystemError) -> Inotify {
        do throws(SystemError) {
            return try Inotify()
        } catch  where error.code == .tooManyOpenFiles {
            return try Inotify(silentFor: error)
        }
    }

    /// Watches a folder (not its sub-folders) and returns the watch's number. A folder that is already watched, under
    /// any name, gives the same number. Follows no symlinks. Throws `isWatchLimit` when the user has no watches left,
    /// `isMissing` for a path that is not a folder.
    ///
    /// - Parameter onlyItself: reports changes of the folder itself, not of its content.
    package func add(_ directory: FilePath, onlyItself: Bool = false) throws(SystemError) -> Int32 {
        if isSilent { throw SystemError(call: "inotify_add_watch", path: directory, code: .noSpace) }
        let mask: InotifyRecord.Mask = onlyItself ? [.itself, .manners] : [.watched, .manners]
        return try SystemCall.result("inotify_add_watch", directory) {
            directory.withPlatformString { inotify_add_watch(descriptor.number, $0, mask.rawValue) }
        }
    }

    /// The same for an open folder: the watch covers exactly the folder that is read.
    package func add(_ folder: Folder, onlyItself: Bool = false) throws(SystemError) -> Int32 {
        do throws(SystemError) {
            return try folder.itself { (path) throws(SystemError) in try add(path, onlyItself: onlyItself) }
        } catch {
            throw SystemError(call: error.call, path: folder.path, code: error.code)
        }
    }

    /// Watches one file for a change of its owner or of its number of names, wherever these are: the folder of one name
    /// gets no event when another name goes.
    package func add(file name: FilePath.Component, in folder: Folder) throws(SystemError) -> Int32 {
        let path = folder.path.appending(name)
        if isSilent { throw SystemError(call: "inotify_add_watch", path: path, code: .noSpace) }
        let mask: InotifyRecord.Mask = [.attributes, .notFollowed]
        let number = descriptor.number
        return try folder.at(name) { (way) throws(SystemError) in
            try SystemCall.result("inotify_add_watch", way) {
                way.withPlatformString { inotify_add_watch(number, $0, mask.rawValue) }
            }
        }
    }

    /// Ends a watch; a watch that the kernel has ended is not an error. Waiting records may still name it.
    package func remove(_ watch: Int32) { inotify_rm_watch(descriptor.number, watch) }

    /// The waiting records, up to 64 KiB of them; empty when there are none. Does not block.
    package func read() throws(SystemError) -> [InotifyRecord] {
        try descriptor.readRecords(Self.parse)
    }

    /// Whether all records queued until now have been read.
    package var isDrained: Bool {
        get throws(SystemError) { try !Poll.wait([descriptor.number], until: .now)[0] }
    }

    /// Blocks until records wait, `waker` is woken or `deadline` has passed (nil: no deadline). Consumes a wake-up: the
    /// next wait blocks again.
    ///
    /// - Parameter other: another descriptor that ends the wait when it is readable.
    /// - Returns: why it ended; neither is set when the deadline passed.
    package func wait(
        until deadline: ContinuousClock.Instant?, waker: Waker, other: CInt? = nil
    ) throws(SystemError) -> (isReadable: Bool, isWoken: Bool) {
        let ready = try Poll.wait([descriptor.number, waker.number, other ?? -1], until: deadline)
        if ready[1] { waker.drain() }
        return (ready[0] || ready[2], ready[1])
    }
}

/// One record that the kernel wrote to an inotify descriptor (inotify(7)).
package struct InotifyRecord: Sendable, Hashable {
    /// The event, and the options of a watch: the `IN_*` bits.
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
        /// The watched folder itself was renamed.
        package static let selfMoved = Mask(rawValue: 0x800)
        /// The watched folder's file system was unmounted.
        package static let unmounted = Mask(rawValue: 0x2000)
        /// Records were lost: list everything again. Comes with watch -1.
        package static let overflow = Mask(rawValue: 0x4000)
        /// The watch is gone; its number is not reused during the descriptor's life.
        package static let watchRemoved = Mask(rawValue: 0x8000)
        /// The name is a folder's.
        package static let isDirectory = Mask(rawValue: 0x4000_0000)

        /// The events of a watched folder. `IN_MODIFY` is left out: it comes once per write, and a stat judges quiet.
        static let watched: Mask = [
            .attributes, .closedAfterWriting, .movedFrom, .movedTo, .created, .deleted, .selfDeleted, .selfMoved,
        ]
        /// Changes of a watched folder itself; its unmounting is always reported.
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
    /// records of one reading, so thousands of records, most of them dropped at once, take no memory each.
    package var nameBytes: ArraySlice<UInt8>

    /// `nameBytes` with its own storage.
    package var name: [UInt8] { Array(nameBytes) }

    /// Whether other records were lost.
    package var isOverflow: Bool { mask.contains(.overflow) }
}

extension InotifyRecord {
    package init(watch: Int32, mask: Mask, cookie: UInt32 = 0, name: [UInt8] = []) {
        self.init(watch: watch, mask: mask, cookie: cookie, nameBytes: name[...])
    }
}

extension Inotify {
    /// As many as one reading of short names returns.
    private static let usualRecords = 2048

    /// Reads `struct inotify_event` records: `wd`, `mask`, `cookie` and `len` of four bytes each, then `len` bytes of
    /// name padded with NUL. Accepts any bytes: a record that is cut short ends the list, and a wrong length reads
    /// nothing beyond `bytes`.
    package static func parse(_ bytes: UnsafeRawBufferPointer) -> [InotifyRecord] {
        let header = 16
        var records: [InotifyRecord] = []
        var offset = 0
        // One copy of all names, so that records can outlive their buffer.
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

extension Descriptor {
    /// The complete records that wait in the queue of inotify(7) or fanotify(7), read by `parse`; as many as fit in 64
    /// KiB, empty when there are none. Does not block.
    func readRecords<Record>(_ parse: (UnsafeRawBufferPointer) -> [Record]) throws(SystemError) -> [Record] {
        let number = number
        return try withUnsafeTemporaryAllocation(byteCount: 64 << 10, alignment: 8) { (buffer) throws(SystemError) in
            do throws(SystemError) {
                let count = try SystemCall.result("read") { Glibc.read(number, buffer.baseAddress, buffer.count) }
                return parse(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
            } catch  where error.code == .resourceTemporarilyUnavailable {
                return []
            }
        }
    }
}
