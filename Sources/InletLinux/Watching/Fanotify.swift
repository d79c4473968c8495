import CLinux
import Glibc
package import InletCore
package import SystemPackage

/// The kernel's news about whole file systems: an owner of one fanotify descriptor. One mark stands for every folder there
/// is and will be, so that a tree of millions costs no watches; it also tells of what nobody asked for. For one thread at a
/// time. Linux 5.9, with `CAP_SYS_ADMIN` and, for the names of folders, `CAP_DAC_READ_SEARCH`.
package struct Fanotify: ~Copyable, Sendable {
    private let descriptor: Descriptor

    /// The queue has the kernel's limit (`fs.fanotify.max_queued_events`): whoever may write to the file system could fill the
    /// memory otherwise, while nobody reads. Throws `EPERM`, `ENOSYS`, `EINVAL` (before Linux 5.9) or `EMFILE`, with what can be
    /// done about it.
    package init() throws(SystemError) {
        descriptor = Descriptor(owning: try SystemCall.result("fanotify_init") { inlet_fanotify_init() })
    }

    /// Has everything reported that happens in the file system of `directory`, by whatever mount; the mark ends when it is
    /// unmounted, and does not stand in the way of that. Marking it again is no error.
    ///
    /// Throws `EPERM`, `EXDEV` (a btrfs subvolume), `ENODEV`, `EOPNOTSUPP` (no numbers or handles that stay), and `isMissing`
    /// for a path that is no folder.
    package func mark(_ directory: FilePath) throws(SystemError) {
        do throws(SystemError) {
            try mark(directory, Self.basic | Self.rename)
        } catch {
            // Before Linux 5.17 the two halves of a rename come by themselves.
            guard error.code == .invalidArgument else { throw error }
            try mark(directory, Self.basic | UInt64(InotifyRecord.Mask([.movedFrom, .movedTo]).rawValue))
        }
    }

    private func mark(_ directory: FilePath, _ mask: UInt64) throws(SystemError) {
        _ = try SystemCall.result("fanotify_mark", directory) {
            directory.withPlatformString { inlet_fanotify_mark(descriptor.number, mask, $0) }
        }
    }

    /// What inotify is asked for too; folders included.
    private static let basic = UInt64(
        InotifyRecord.Mask([.attributes, .closedAfterWriting, .created, .deleted, .isDirectory]).rawValue)
    /// `FAN_RENAME`
    private static let rename: UInt64 = 0x1000_0000

    /// The records that wait, up to 64 KiB of them; empty when there are none. Does not block.
    package func read() throws(SystemError) -> [FanotifyRecord] {
        try descriptor.readRecords(Self.parse)
    }

    /// Whether all records have been read that the kernel has queued until now.
    package var isDrained: Bool {
        get throws(SystemError) { try !Poll.wait([descriptor.number], until: .now)[0] }
    }

    /// The descriptor, which can be read when records come.
    package var number: CInt { descriptor.number }
}

/// What the kernel calls a folder that it does not name by path (`struct file_handle`, open_by_handle_at(2)): stays the same
/// while the folder is renamed, and does not come again once it is gone.
package struct FileHandle: Sendable, Hashable {
    /// The file system's `f_fsid`, as statfs(2) has it.
    package var fileSystem: UInt64
    /// Which form the bytes have; each file system has its own.
    package var type: Int32
    package var bytes: [UInt8]

    package init(fileSystem: UInt64, type: Int32, bytes: [UInt8]) {
        (self.fileSystem, self.type, self.bytes) = (fileSystem, type, bytes)
    }
}

/// One record that the kernel wrote to a fanotify descriptor (fanotify(7)).
package struct FanotifyRecord: Sendable, Hashable {
    /// A name in a folder; `.` is the folder itself.
    package struct Place: Sendable, Hashable {
        package var directory: FileHandle
        package var name: [UInt8]
    }

    /// The `FAN_*` bits that inotify has too, under the same values. Those of several records about one name may come as one,
    /// in which the order of what happened is lost.
    package var mask: InotifyRecord.Mask
    /// nil: the name that the record is about could not be read, so that it stands for anything.
    package var place: Place?
    /// Where a renamed file or folder went from `place`.
    package var target: Place?

    /// The record says that others were lost.
    package var isOverflow: Bool { mask.contains(.overflow) }

    /// What inotify would have said: a rename is two records, with a `cookie` that they share.
    package func parts(cookie: UInt32) -> [(place: Place, record: InotifyRecord)] {
        guard let place else { return [] }
        guard let target else { return [(place, InotifyRecord(watch: -1, mask: mask, name: place.name))] }
        let kind = mask.intersection(.isDirectory)
        return [
            (place, InotifyRecord(watch: -1, mask: kind.union(.movedFrom), cookie: cookie, name: place.name)),
            (target, InotifyRecord(watch: -1, mask: kind.union(.movedTo), cookie: cookie, name: target.name)),
        ]
    }
}

extension Fanotify {
    /// Reads `struct fanotify_event_metadata` records with their `fanotify_event_info_fid`. Total on any bytes: a record that
    /// is cut short, or of another version, ends the list; what a record adds that is not known here is passed over.
    package static func parse(_ bytes: UnsafeRawBufferPointer) -> [FanotifyRecord] {
        var records: [FanotifyRecord] = []
        var rest = bytes[...]
        while rest.count >= metadataLength {
            let record = UnsafeRawBufferPointer(rebasing: rest)
            let length = Int(record.number(at: 0) as UInt32)
            let start = Int(record.number(at: 6) as UInt16)
            guard record[4] == metadataVersion, length <= record.count, start >= metadataLength, start <= length else {
                break
            }
            let mask: UInt64 = record.number(at: 8)
            var found = FanotifyRecord(mask: .init(rawValue: UInt32(truncatingIfNeeded: mask)))
            addPlaces(to: &found, UnsafeRawBufferPointer(rebasing: record[start..<length]))
            records.append(found)
            rest = rest.dropFirst(length)
        }
        return records
    }

    private static let metadataLength = 24
    private static let metadataVersion: UInt8 = 3

    private static func addPlaces(to record: inout FanotifyRecord, _ bytes: UnsafeRawBufferPointer) {
        var rest = bytes[...]
        while rest.count >= 4 {
            let info = UnsafeRawBufferPointer(rebasing: rest)
            let length = Int(info.number(at: 2) as UInt16)
            guard length >= 4, length <= info.count else { return }
            let body = UnsafeRawBufferPointer(rebasing: info[4..<length])
            // `FAN_EVENT_INFO_TYPE_*` of a folder and a name in it.
            switch info[0] {
            case 2, 10: record.place = place(body)
            case 12: record.target = place(body)
            default: break
            }
            rest = rest.dropFirst(length)
        }
    }

    /// The file system's number, length and type of the handle, the handle, and a name that ends with NUL.
    private static func place(_ bytes: UnsafeRawBufferPointer) -> FanotifyRecord.Place? {
        let header = 16
        guard bytes.count >= header else { return nil }
        let length = Int(bytes.number(at: 8) as UInt32)
        guard length <= bytes.count - header else { return nil }
        let handle = FileHandle(
            fileSystem: bytes.number(at: 0), type: bytes.number(at: 12), bytes: Array(bytes[header..<(header + length)])
        )
        let name = bytes[(header + length)...].prefix { $0 != 0 }
        return name.isEmpty ? nil : FanotifyRecord.Place(directory: handle, name: Array(name))
    }
}

extension UnsafeRawBufferPointer {
    fileprivate func number<Number: FixedWidthInteger & BitwiseCopyable>(at offset: Int) -> Number {
        loadUnaligned(fromByteOffset: offset, as: Number.self)
    }
}

/// Finds where the folders of a mount are that the kernel names by handle. Holds the mount open, which then cannot be
/// unmounted: to be dropped soon. Blocks on the disk.
package struct HandleReader: ~Copyable {
    /// A folder, and where the kernel says that it is: an absolute path without symlinks. Of a folder beyond what the mount
    /// shows, or one that is gone, it may name another: compare the identity of what is there.
    package typealias Found = (path: FilePath, identity: FileIdentity)

    private let mount: Descriptor

    /// - Parameter directory: any folder on the mount.
    package init(_ directory: FilePath) throws(SystemError) {
        mount = try Descriptor(readingQuietly: directory, O_DIRECTORY | O_NOFOLLOW)
    }

    /// Where the folder is that was opened.
    package func own() throws(SystemError) -> Found { try Self.found(mount) }

    /// Its handle; `fileSystem` is that of `f_fsid`. Throws `EOPNOTSUPP` where a file system has none.
    package func ownHandle() throws(SystemError) -> FileHandle {
        var status = statfs()
        _ = try SystemCall.result("fstatfs") { fstatfs(mount.number, &status) }
        let fileSystem = withUnsafeBytes(of: status.f_fsid) { $0.loadUnaligned(as: UInt64.self) }
        var room = [UInt8](repeating: 0, count: 8 + Self.longest)
        room.withUnsafeMutableBytes { $0.storeBytes(of: UInt32(Self.longest), as: UInt32.self) }
        let number = mount.number
        _ = try SystemCall.result("name_to_handle_at") { inlet_handle_of(number, &room) }
        let (length, type) = room.withUnsafeBytes {
            ($0.load(as: UInt32.self), $0.load(fromByteOffset: 4, as: Int32.self))
        }
        return FileHandle(
            fileSystem: fileSystem, type: type, bytes: Array(room.dropFirst(8).prefix(Int(length))))
    }

    /// Where the folder with that handle is; nil when it is gone. Throws `EPERM` without `CAP_DAC_READ_SEARCH`.
    package func find(_ handle: FileHandle) throws(SystemError) -> Found? {
        do throws(SystemError) {
            return try Self.found(try open(handle))
        } catch {
            if error.code == .staleNFSFileHandle || error.isMissing { return nil }
            throw error
        }
    }

    /// `path` below `root`, both as the kernel says them; nil when it is not.
    package static func path(of path: FilePath, below root: FilePath) -> FilePath? {
        // Asked for each folder of a busy file system: the kernel's own spelling need not be taken apart.
        path.withPlatformString { path in
            root.withPlatformString { root in
                let length = strlen(root)
                guard strncmp(path, root, length) == 0 else { return nil }
                let rest = path + length
                if rest.pointee == 0 || root[length - 1] == separator { return FilePath(platformString: rest) }
                return rest.pointee == separator ? FilePath(platformString: rest + 1) : nil
            }
        }
    }

    private static let separator = CChar(UInt8(ascii: "/"))

    private func open(_ handle: FileHandle) throws(SystemError) -> Descriptor {
        let bytes = handle.bytes.prefix(Self.longest)
        var room = withUnsafeBytes(of: UInt32(bytes.count)) { Array($0) }
        room += withUnsafeBytes(of: handle.type) { Array($0) } + bytes
        let number = mount.number
        return Descriptor(
            owning: try SystemCall.result("open_by_handle_at") { inlet_open_by_handle(number, &room) })
    }

    // `MAX_HANDLE_SZ`
    private static let longest = 128

    private static func found(_ folder: borrowing Descriptor) throws(SystemError) -> Found {
        let identity = try folder.status(nil).identity
        let link = FilePath("/proc/self/fd/\(folder.number)")
        return (try SystemCall.target(ofLink: link), identity)
    }
}

extension MountTable {
    /// The number of the mount that a path is on, in `/proc/self/mountinfo` (`STATX_MNT_ID`, Linux 5.8), or 0; two mounts of
    /// one file system have two. It may come again once the mount is gone. Symlinks are not followed.
    package static func number(of path: FilePath) throws(SystemError) -> UInt64 {
        var number: UInt64 = 0
        _ = try SystemCall.result("statx", path) {
            path.withPlatformString { inlet_mount_number($0, &number) }
        }
        return number
    }
}
