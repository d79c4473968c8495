import CLinux
import Glibc
package import SystemPackage

/// The kernel's news about watched folders: an owner of one inotify descriptor. For one thread at a time.
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

    /// One that reports nothing, for a tree that is polled: it takes none of the user's instances, and every `add` throws
    /// `isWatchLimit`.
    package init(silentFor refusal: SystemError? = nil) throws(SystemError) {
        descriptor = Descriptor(
            owning: try SystemCall.result("eventfd") { eventfd(0, CInt(EFD_NONBLOCK | EFD_CLOEXEC)) })
        isSilent = true
        self.refusal = refusal
    }

    /// A silent one where this user has no instances left.
    package static func orSilent() throws(SystemError) -> Inotify {
        do throws(SystemError) {
            return try Inotify()
        } catch  where error.code == .tooManyOpenFiles {
            return try Inotify(silentFor: error)
        }
    }

    /// Watches a folder (not what is below it) and returns the watch's number; a folder that is watched already, under
    /// whatever name, gives the same number again. Symlinks are not followed. Throws `isWatchLimit` when the user has no
    /// watches left, `isMissing` for a path that is no folder.
    ///
    /// - Parameter onlyItself: what becomes of the folder is told, what happens in it is not.
    package func add(_ directory: FilePath, onlyItself: Bool = false) throws(SystemError) -> Int32 {
        if isSilent { throw SystemError(call: "inotify_add_watch", path: directory, code: .noSpace) }
        let mask: InotifyRecord.Mask = onlyItself ? [.itself, .manners] : [.watched, .manners]
        return try SystemCall.result("inotify_add_watch", directory) {
            directory.withPlatformString { inotify_add_watch(descriptor.number, $0, mask.rawValue) }
        }
    }

    /// The same of an open folder: what is watched is what is read through it.
    package func add(_ folder: Folder, onlyItself: Bool = false) throws(SystemError) -> Int32 {
        do throws(SystemError) {
            return try folder.itself { (path) throws(SystemError) in try add(path, onlyItself: onlyItself) }
        } catch {
            throw SystemError(call: error.call, path: folder.path, code: error.code)
        }
    }

    /// Watches one file for a change of its owner or of the number of its names, wherever these are: the folder of a name
    /// is not told that another one has gone.
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

    /// Ends a watch; one that the kernel ended already is no error. Records that wait may still name it.
    package func remove(_ watch: Int32) { inotify_rm_watch(descriptor.number, watch) }

    /// The records that wait, up to 64 KiB of them; empty when there are none. Does not block.
    package func read() throws(SystemError) -> [InotifyRecord] {
        try descriptor.readRecords(Self.parse)
    }

    /// Whether all records have been read that the kernel has queued until now.
    package var isDrained: Bool {
        get throws(SystemError) { try !Poll.wait([descriptor.number], until: .now)[0] }
    }

    /// Blocks until records wait, `waker` is woken or `deadline` has passed (nil: no deadline). A wake-up is taken: the
    /// next wait blocks again.
    ///
    /// - Parameter other: the descriptor of something else that ends the wait when it can be read.
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

    /// `nameBytes` with storage of its own.
    package var name: [UInt8] { Array(nameBytes) }

    /// The record says that others were lost.
    package var isOverflow: Bool { mask.contains(.overflow) }
}

extension InotifyRecord {
    package init(watch: Int32, mask: Mask, cookie: UInt32 = 0, name: [UInt8] = []) {
        self.init(watch: watch, mask: mask, cookie: cookie, nameBytes: name[...])
    }
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

extension Descriptor {
    /// The records that wait in the queue of inotify(7) or fanotify(7), as `parse` understands them: whole ones, as many as fit in
    /// 64 KiB; empty when there are none. Does not block.
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
