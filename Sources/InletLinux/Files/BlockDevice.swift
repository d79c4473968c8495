import CLinux
import Glibc
import InletCore
package import SystemPackage

/// A block device that is plugged in now, as the kernel describes it in `/sys` (sysfs(5)).
package struct BlockDevice: Sendable, Hashable {
    /// `st_rdev` of its node, `st_dev` of most file systems on it.
    package let number: UInt64
    /// Its folder in `/sys`, without symlinks: `…/usb1/1-2/…/block/sdb/sdb1`.
    private let folder: FilePath
    private let sysfs: FilePath

    /// - Returns: nil when no such device is plugged in, or the kernel does not show it.
    package init?(number: UInt64, sysfs: FilePath = "/sys") {
        let link = sysfs.appending("dev/block/\(Self.major(number)):\(Self.minor(number))")
        guard let folder = link.realPath else { return nil }
        (self.number, self.folder, self.sysfs) = (number, folder, sysfs)
    }

    /// The device of a mounted file system; nil for one without a device, and after its device was unplugged.
    package init?(of mount: MountTable.Mount, sysfs: FilePath = "/sys") {
        if mount.major != 0 {
            self.init(number: inlet_device(mount.major, mount.minor), sysfs: sysfs)
        } else {
            // btrfs has a number of its own at each mount. A service may lack the node, but not its name.
            guard mount.source.starts(with: "/dev"), let name = mount.source.lastComponent else { return nil }
            self.init(folder: sysfs.appending("class/block").appending(name), sysfs)
        }
    }

    /// - Throws: `ENOTBLK` where `node` is no block device, `ENODEV` where the kernel does not show it.
    package init(at node: FilePath, sysfs: FilePath = "/sys") throws(SystemError) {
        let status = try SystemCall.status(of: node, following: true)
        guard status.st_mode & S_IFMT == S_IFBLK else {
            throw SystemError(call: "stat", path: node, code: .notBlockDevice)
        }
        guard let found = BlockDevice(number: UInt64(status.st_rdev), sysfs: sysfs) else {
            throw SystemError(call: "stat", path: node, code: .noDevice)
        }
        self = found
    }

    private init?(folder: FilePath, _ sysfs: FilePath) {
        let numbers = Self.text(folder.appending("dev")).split(separator: ":").compactMap { UInt32($0) }
        guard numbers.count == 2, let real = folder.realPath else { return nil }
        (number, self.folder, self.sysfs) = (inlet_device(numbers[0], numbers[1]), real, sysfs)
    }

    /// In `/dev`: the kernel writes a slash of its name as an exclamation mark.
    package var node: FilePath {
        FilePath("/dev/" + (folder.lastComponent?.string ?? "").replacing("!", with: "/"))
    }

    package var isPartition: Bool { Self.isThere(folder.appending("partition")) }

    /// The file behind a loop device (loop(4)); empty for others.
    var backingFile: String { Self.text(folder.appending("loop/backing_file")) }

    /// Whether it is a disk that turns. Sticks and card readers often say so, too; nothing in them does.
    package var isRotating: Bool {
        Self.text(folder.appending("queue/rotational")).hasPrefix("1") && !hasRemovableMedium
    }

    /// The whole disk that it is, or is a part of.
    package var disk: BlockDevice {
        isPartition ? BlockDevice(folder: folder.removingLastComponent(), sysfs) ?? self : self
    }

    /// The partitions of a whole disk.
    package var partitions: [BlockDevice] {
        Self.names(in: folder).map { folder.appending($0) }.filter { Self.isThere($0.appending("partition")) }
            .compactMap { BlockDevice(folder: $0, sysfs) }
    }

    /// Whether its disk is a reader whose cards are changed while it stays plugged in, or a stick that says so.
    package var hasRemovableMedium: Bool {
        let disk = disk.folder
        // A slot on a host controller has no such flag; its cards do.
        return Self.text(disk.appending("removable")) == "1" || Self.text(disk.appending("device/type")) == "SD"
    }

    /// Whether its disk can be taken from the machine: a card, or a disk at a port for people.
    package var isRemovable: Bool {
        hasRemovableMedium || usbPort != nil
            || above.contains { Self.text($0.appending("removable")) == "removable" }
    }

    /// The USB device that it is a part of, with all that share its plug; nil at another bus.
    package var usbPort: FilePath? { above.first { Self.isThere($0.appending("idVendor")) } }

    /// All partitions and whole disks that go when the USB device goes.
    package var sharingPort: [BlockDevice] {
        guard let usbPort else { return [self] }
        return Self.names(in: sysfs.appending("class/block"))
            .compactMap { BlockDevice(folder: sysfs.appending("class/block").appending($0), sysfs) }
            .filter { $0.folder.isWithin(usbPort) }
    }

    /// The folders of the devices and buses above it, the nearest first.
    private var above: [FilePath] {
        var (folder, found) = (disk.folder, [FilePath]())
        while folder.removeLastComponent(), folder != sysfs, folder != "/" { found.append(folder) }
        return found
    }

    private static func isThere(_ path: FilePath) -> Bool { path.withPlatformString { access($0, F_OK) } == 0 }

    /// An attribute; empty where there is none.
    private static func text(_ path: FilePath) -> String {
        String(decoding: DurableFile.readIfPossible(path, limit: 4096) ?? [], as: UTF8.self)
            .filter { !$0.isWhitespace }
    }

    private static func names(in folder: FilePath) -> [FilePath.Component] {
        var names: [FilePath.Component] = []
        do throws(SystemError) {
            var entries = try DirectoryStream(folder)
            while let entry = try entries.next() { names.append(entry.name) }
        } catch {
            // The device has gone meanwhile.
        }
        return names.sorted { $0.string < $1.string }
    }

    /// The parts of a device number, as `inlet_device` joins them (makedev(3)).
    static func major(_ device: UInt64) -> UInt64 { (device >> 8 & 0xFFF) | (device >> 32 & ~0xFFF) }
    static func minor(_ device: UInt64) -> UInt64 { (device & 0xFF) | (device >> 12 & 0xFFFF_FF00) }
}

extension Errno {
    static let notBlockDevice = Errno(rawValue: Glibc.ENOTBLK)
    fileprivate static let noDevice = Errno(rawValue: Glibc.ENODEV)
}
