import CLinux
import Glibc
package import InletCore
package import SystemPackage

/// Finds where the folders of a mount are that the kernel names by handle. Holds the mount open, which then cannot be
/// unmounted: to be dropped soon. Blocks on the disk.
package struct HandleReader: ~Copyable {
    /// A folder, and where the kernel says that it is.
    package struct Found: Sendable, Hashable {
        /// Absolute, without symlinks. Of a folder beyond what the mount shows, or one that is gone, it may name another:
        /// compare the identity of what is there.
        package var path: FilePath
        package var identity: FileIdentity
    }

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
        let limit = Int(PATH_MAX)
        var room = [CChar](repeating: 0, count: limit)
        let length = try SystemCall.result("readlink", link) { link.withPlatformString { readlink($0, &room, limit) } }
        return Found(path: FilePath(bytes: room.prefix(length).map(UInt8.init(bitPattern:))), identity: identity)
    }
}

/// Which mount a path is on.
package enum MountNumber {
    /// Its number in `/proc/self/mountinfo` (`STATX_MNT_ID`, Linux 5.8), or 0; two mounts of one file system have two. It may
    /// come again once the mount is gone. Symlinks are not followed.
    package static func of(_ path: FilePath) throws(SystemError) -> UInt64 {
        var number: UInt64 = 0
        _ = try SystemCall.result("statx", path) {
            path.withPlatformString { inlet_mount_number($0, &number) }
        }
        return number
    }
}
