import CLinux
import Glibc
package import InletCore
package import SystemPackage

/// Finds out which file system a path is on.
package struct VolumeFinder: Sendable {
    /// Where udev names devices.
    private let disks: FilePath
    private let mountinfo: FilePath

    package init(disks: FilePath = "/dev/disk", mountinfo: FilePath = "/proc/self/mountinfo") {
        self.disks = disks
        self.mountinfo = mountinfo
    }

    /// The file system of `path`, which must exist. Blocks; nothing of it is read.
    package func identity(of path: FilePath) throws(SystemError) -> VolumeIdentity {
        let device = UInt64(try SystemCall.status(of: path).st_dev)
        let statistics = try FreeSpace.statistics(path)
        var identity = VolumeIdentity(kind: FileSystemKind(magic: statistics.f_type).name)
        if Self.makesIDFromUUID.contains(identity.kind) {
            let (high, low) = statistics.f_fsid.__val
            let number = UInt64(UInt32(bitPattern: high)) << 32 | UInt64(UInt32(bitPattern: low))
            if number != 0 { identity.fsid = String(number, radix: 16) }
        }
        let mounts = (try? DurableFile.read(mountinfo, limit: 8 << 20)) ?? []
        identity.source = MountSource.find(Self.text(device), in: mounts) ?? ""
        let block = Self.isAnonymous(device) ? Self.blockDevice(identity.source) : device
        if let block {
            identity.uuid = name(of: block, in: "by-uuid")
            identity.label = name(of: block, in: "by-label")
        }
        return identity
    }

    /// Where the file system of `path` is mounted, as far as device numbers tell; and what of `path` lies below that.
    package static func mountPoint(of path: FilePath) throws(SystemError) -> (point: FilePath, folder: String) {
        let device = try SystemCall.status(of: path).st_dev
        var point = path
        while point.lastComponent != nil {
            let parent = point.removingLastComponent()
            guard try SystemCall.status(of: parent).st_dev == device else { break }
            point = parent
        }
        var folder = path
        _ = folder.removePrefix(point)
        return (point, folder.string)
    }

    /// The name in a folder of udev's whose link leads to the block device `number`.
    private func name(of number: UInt64, in folder: String) -> String? {
        let path = disks.appending(folder)
        guard var links = try? DirectoryStream(path) else { return nil }
        while let link = try? links.next() {
            if Self.blockDevice(path.appending(link.name).string) == number { return Self.unescaped(link.name.string) }
        }
        return nil
    }

    /// The number of the block device that `path` leads to, links followed.
    private static func blockDevice(_ path: String) -> UInt64? {
        guard path.hasPrefix("/") else { return nil }
        var status = stat()
        guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFBLK else { return nil }
        return UInt64(status.st_rdev)
    }

    /// udev writes what is not plain as `\x20`.
    static func unescaped(_ name: String) -> String {
        var result: [UInt8] = []
        var rest = Array(name.utf8)[...]
        while let byte = rest.popFirst() {
            let code = rest.prefix(3)
            if byte == UInt8(ascii: "\\"), code.count == 3, code.first == UInt8(ascii: "x"),
                let value = UInt8(String(decoding: code.dropFirst(), as: UTF8.self), radix: 16)
            {
                result.append(value)
                rest = rest.dropFirst(3)
            } else {
                result.append(byte)
            }
        }
        return String(decoding: result, as: UTF8.self)
    }

    /// Those that do not put a device number there, which says where a card is rather than which.
    private static let makesIDFromUUID: Set<String> = ["ext4", "btrfs", "bcachefs", "zfs", "tmpfs"]

    private static func major(_ device: UInt64) -> UInt64 { (device >> 8 & 0xFFF) | (device >> 32 & ~0xFFF) }

    private static func minor(_ device: UInt64) -> UInt64 { (device & 0xFF) | (device >> 12 & 0xFFFF_FF00) }

    /// Given to file systems without a block device of their own, and to btrfs: another one at each mount.
    private static func isAnonymous(_ device: UInt64) -> Bool { major(device) == 0 }

    private static func text(_ device: UInt64) -> String { "\(major(device)):\(minor(device))" }
}
