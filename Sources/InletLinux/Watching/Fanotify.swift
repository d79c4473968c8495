import CLinux
import Glibc
package import InletCore
package import SystemPackage

/// Events of whole file systems: the owner of one fanotify descriptor. One mark covers every folder, now and later, so
/// a tree of millions costs no watches; it also reports unwanted events. For one thread at a time. Needs Linux 5.9,
/// `CAP_SYS_ADMIN` and, for the names of folders, `CAP_DAC_READ_SEARCH`.
package struct Fanotify: ~Copyable, Sendable {
    private let descriptor: Descriptor

    /// The queue has the kernel's limit (`fs.fanotify.max_queued_events`): otherwise anyone who may write to the file
    /// system could fill the memory while nobody reads. Throws `EPERM`, `ENOSYS`, `EINVAL` (before Linux 5.9) or
    /// `EMFILE`, with the remedy.
    package init() throws(SystemError) {
        descriptor = Descriptor(owning: try SystemCall.result("fanotify_init") { inlet_fanotify_init() })
    }

    /// Reports everything that happens in the file system of `directory`, through any mount. The mark ends when it is
    /// unmounted, and does not prevent that. Marking it again is not an error.
    ///
    /// Throws `EPERM`, `EXDEV` (a btrfs subvolume), `ENODEV`, `EOPNOTSUPP` (no stable numbers or handles), and
    /// `isMissing` for a path that is not a folder.
    package func mark(_ directory: FilePath) throws(SystemError) {
        do throws(SystemError) {
            try mark(directory, Self.basic | Self.rename)
        } catch {
            // Before Linux 5.17 the two halves of a rename arrive separately.
            guard error.code == .invalidArgument else { throw error }
            try mark(directory, Self.basic | UInt64(InotifyRecord.Mask([.movedFrom, .movedTo]).rawValue))
        }
    }

    private func mark(_ directory: FilePath, _ mask: UInt64) throws(SystemError) {
        _ = try SystemCall.result("fanotify_mark", directory) {
            directory.withPlatformString { inlet_fanotify_mark(descriptor.number, mask, $0) }
        }
    }

    /// The same events as with inotify; folders included.
    private static let basic = UInt64(
        InotifyRecord.Mask([.attributes, .closedAfterWriting, .created, .deleted, .isDirectory]).rawValue)
    /// `FAN_RENAME`
    private static let rename: UInt64 = 0x1000_0000

    /// The waiting records, up to 64 KiB of them; empty when there are none. Does not block.
    package func read() throws(SystemError) -> [FanotifyRecord] {
        try descriptor.readRecords(Self.parse)
    }

    /// Whether all records queued until now have been read.
    package var isDrained: Bool {
        get throws(SystemError) { try !Poll.wait([descriptor.number], until: .now)[0] }
    }

    /// The descriptor, readable when records come.
    package var number: CInt { descriptor.number }
}

/// The kernel's handle for a folder (`struct file_handle`, open_by_handle_at(2)). It stays the same while the folder is
/// renamed, and is not reused once the folder is gone.
package struct FileHandle: Sendable, Hashable {
    /// The file system's `f_fsid` (statfs(2)).
    package var fileSystem: UInt64
    /// The format of the bytes; each file system has its own.
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

    /// The `FAN_*` bits that inotify shares, with the same values. Several records about one name may arrive as one,
    /// without the order of events.
    package var mask: InotifyRecord.Mask
    /// nil: the record's name was unreadable, so it may concern any.
    package var place: Place?
    /// The new place of a renamed file or folder.
    package var target: Place?

    /// Whether other records were lost.
    package var isOverflow: Bool { mask.contains(.overflow) }

    /// The equivalent inotify records: a rename is two, with a shared `cookie`.
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
    /// Reads `struct fanotify_event_metadata` records with their `fanotify_event_info_fid`. Accepts any bytes: a record
    /// that is cut short, or of another version, ends the list; unknown additions to a record are skipped.
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

/// Finds the folders of a mount that the kernel names by handle. Holds the mount open, which then cannot be unmounted:
/// drop it soon. Blocks on the disk.
package struct HandleReader: ~Copyable {
    /// A folder, and its path according to the kernel: absolute, without symlinks. For a folder outside the mount's
    /// view, or one that is gone, it may name another: compare the identity of the folder there.
    package typealias Found = (path: FilePath, identity: FileIdentity)

    private let mount: Descriptor

    /// - Parameter directory: any folder on the mount.
    package init(_ directory: FilePath) throws(SystemError) {
        mount = try Descriptor(readingQuietly: directory, O_DIRECTORY | O_NOFOLLOW)
    }

    /// The place of the opened folder.
    package func own() throws(SystemError) -> Found { try Self.found(mount) }

    /// Its handle; `fileSystem` is its `f_fsid`. Throws `EOPNOTSUPP` where a file system has none.
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

    /// The place of the folder with that handle; nil when it is gone. Throws `EPERM` without `CAP_DAC_READ_SEARCH`.
    package func find(_ handle: FileHandle) throws(SystemError) -> Found? {
        do throws(SystemError) {
            return try Self.found(try open(handle))
        } catch {
            if error.code == .staleNFSFileHandle || error.isMissing { return nil }
            throw error
        }
    }

    /// `path` below `root`, both in the kernel's spelling; nil when it is not.
    package static func path(of path: FilePath, below root: FilePath) -> FilePath? {
        // Called for each folder of a busy file system: the kernel's own spelling need not be parsed.
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
    /// The number of a path's mount in `/proc/self/mountinfo` (`STATX_MNT_ID`, Linux 5.8), or 0; two mounts of one file
    /// system have two. It may be reused once the mount is gone. Does not follow symlinks.
    package static func number(of path: FilePath) throws(SystemError) -> UInt64 {
        var number: UInt64 = 0
        _ = try SystemCall.result("statx", path) {
            path.withPlatformString { inlet_mount_number($0, &number) }
        }
        return number
    }
}
