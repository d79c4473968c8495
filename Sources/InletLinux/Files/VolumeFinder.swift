import CLinux
import Glibc
package import InletCore
package import SystemPackage

/// Finds the file system of a path.
package struct VolumeFinder: Sendable {
    /// Where udev names devices.
    private let disks: FilePath
    /// Where udev keeps its knowledge of devices.
    private let udev: FilePath
    private let mountinfo: FilePath

    package init(
        disks: FilePath = "/dev/disk", udev: FilePath = "/run/udev/data", mountinfo: FilePath = "/proc/self/mountinfo"
    ) {
        self.disks = disks
        self.udev = udev
        self.mountinfo = mountinfo
    }

    /// The file system of `path`, which must exist. Blocks; reads nothing on it.
    package func identity(of path: FilePath) throws(SystemError) -> VolumeIdentity { try place(of: path).volume }

    /// The file system of `path`, which must exist, and the folder of it that `path` is, counted from the file system's
    /// top. That holds wherever the file system, or only a folder of it, is mounted. Blocks; reads nothing on it.
    package func place(of path: FilePath) throws(SystemError) -> (volume: VolumeIdentity, folder: String) {
        let device = UInt64(try SystemCall.status(of: path).st_dev)
        let statistics = try FreeSpace.statistics(path)
        let kind = FileSystemKind(magic: statistics.f_type)
        var identity = VolumeIdentity(kind: kind.name)
        if Self.makesIDFromUUID.contains(identity.kind) {
            let (high, low) = statistics.f_fsid.__val
            let number = UInt64(UInt32(bitPattern: high)) << 32 | UInt64(UInt32(bitPattern: low))
            if number != 0 { identity.fsid = String(number, radix: 16) }
        }
        let real = path.resolved
        let table = try Self.ifKnown { () throws(SystemError) in try DurableFile.read(mountinfo, limit: 64 << 20) }
        let mount = MountTable(parsing: table ?? []).mount(of: real)
        identity.source = mount?.source.string ?? ""
        let block = Self.isAnonymous(device) ? Self.blockDevice(identity.source) : device
        if let block { (identity.uuid, identity.label) = try names(of: block) }
        if !kind.isNetwork, identity.uuid == nil || identity.label == nil {
            let names = try Self.kernelNames(of: path)
            identity.uuid = identity.uuid ?? names.uuid
            identity.label = identity.label ?? names.label
        }
        // If something was mounted or unmounted meanwhile, these would be the names of two file systems.
        guard UInt64(try SystemCall.status(of: path).st_dev) == device else {
            throw SystemError(call: "stat", path: path, code: .noSuchFileOrDirectory)
        }
        return (identity, Self.folder(real, on: mount))
    }

    /// The folder of the file system that `path` is, without the first slash.
    private static func folder(_ path: FilePath, on mount: MountTable.Mount?) -> String {
        guard let mount else { return String(path.string.drop { $0 == "/" }) }
        var below = path
        _ = below.removePrefix(mount.point)
        return String(mount.root.pushing(below).string.drop { $0 == "/" })
    }

    /// udev's names for the file system on the block device `number`.
    private func names(of number: UInt64) throws(SystemError) -> (uuid: String?, label: String?) {
        let names = (uuid: try name(of: number, in: "by-uuid"), label: try name(of: number, in: "by-label"))
        if names.uuid != nil, names.label != nil { return names }
        // Unlike `/dev/disk`, udev's own record needs no device node. So it is also there for a service with its own
        // `/dev`, and in a container that is given `/run/udev`.
        let name = "b\(BlockDevice.major(number)):\(BlockDevice.minor(number))"
        let text = try Self.ifKnown { () throws(SystemError) in
            try DurableFile.read(udev.appending(name), limit: 1 << 20)
        }
        let record = Self.udevNames(in: text ?? [])
        return (names.uuid ?? record.uuid, names.label ?? record.label)
    }

    /// The name in a folder of udev's whose link leads to the block device `number`.
    private func name(of number: UInt64, in folder: String) throws(SystemError) -> String? {
        let path = disks.appending(folder)
        let name = try Self.ifKnown { () throws(SystemError) -> String? in
            var links = try DirectoryStream(path)
            while let link = try links.next() {
                if Self.blockDevice(path.appending(link.name).string) == number { return link.name.string }
            }
            return nil
        }
        return name?.map(Self.unescaped)
    }

    /// Reads a fact; nil where there is nothing, or nothing that this user may see. Throws any other error: a card
    /// whose name is unreadable for a moment must not look like another card.
    static func ifKnown<Found>(_ body: () throws(SystemError) -> Found) throws(SystemError) -> Found? {
        do throws(SystemError) {
            return try body()
        } catch {
            if error.isMissing || error.isPermission { return nil }
            throw error
        }
    }

    /// The number of the block device that `path` leads to, links followed.
    private static func blockDevice(_ path: String) -> UInt64? {
        guard path.hasPrefix("/") else { return nil }
        var status = stat()
        guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFBLK else { return nil }
        return UInt64(status.st_rdev)
    }

    /// udev writes special characters as `\x20`.
    static func unescaped(_ name: String) -> String {
        String(decoding: [UInt8](escaped: Array(name.utf8)[...], by: "\\x", digits: 2, radix: 16), as: UTF8.self)
    }

    /// File systems that do not put a device number there, which tells where a card is rather than which card it is.
    private static let makesIDFromUUID: Set<String> = ["ext4", "btrfs", "bcachefs", "zfs", "tmpfs"]

    /// Assigned to file systems without their own block device, and to btrfs: a new one at each mount.
    private static func isAnonymous(_ device: UInt64) -> Bool { BlockDevice.major(device) == 0 }
}

extension VolumeFinder {
    /// udev's record of a block device, as `/dev/disk` writes it.
    ///
    /// - Parameter record: a file of `/run/udev/data`; its properties are the lines `E:NAME=value`.
    static func udevNames(in record: some Collection<UInt8>) -> (uuid: String?, label: String?) {
        var names: (uuid: String?, label: String?)
        for line in record.split(separator: UInt8(ascii: "\n")) {
            let line = String(decoding: line, as: UTF8.self)
            names.uuid = value(of: "E:ID_FS_UUID_ENC=", in: line) ?? names.uuid
            names.label = value(of: "E:ID_FS_LABEL_ENC=", in: line) ?? names.label
        }
        return names
    }

    private static func value(of name: String, in line: String) -> String? {
        guard line.hasPrefix(name), line.count > name.count else { return nil }
        return unescaped(String(line.dropFirst(name.count)))
    }

    /// A mounted file system's description of itself, where the kernel can be asked: also in containers without
    /// `/dev/disk`. nil where it does not know; reads nothing on the disk.
    ///
    /// - Parameter folder: any folder of it.
    private static func kernelNames(of folder: FilePath) throws(SystemError) -> (uuid: String?, label: String?) {
        let descriptor: Descriptor
        do throws(SystemError) {
            descriptor = try Descriptor(opening: folder, O_RDONLY | O_DIRECTORY | O_NONBLOCK)
        } catch  where error.isPermission {
            return (nil, nil)
        }
        var names: (uuid: String?, label: String?)
        var number: UInt32 = 0
        var answer = [UInt8](repeating: 0, count: 17)
        if inlet_fat_volume(descriptor.number, &number) == 0 {
            names.uuid = short(number)
        } else if inlet_file_system_uuid(descriptor.number, &answer) == 0 {
            names.uuid = uuid(answer.dropFirst().prefix(Int(answer[0])))
        }
        var label = [CChar](repeating: 0, count: 257)
        if inlet_file_system_label(descriptor.number, &label) == 0 {
            let bytes = label.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
            names.label = bytes.isEmpty ? nil : String(decoding: bytes, as: UTF8.self)
        }
        return names
    }

    /// Sixteen bytes as RFC 9562 writes them, the four of FAT and exFAT as their tools do; nil for other lengths.
    static func uuid(_ bytes: some Collection<UInt8>) -> String? {
        guard bytes.contains(where: { $0 != 0 }) else { return nil }
        let bytes = Array(bytes)
        if bytes.count == 4 { return short(bytes.reversed().reduce(0) { $0 << 8 | UInt32($1) }) }
        guard bytes.count == 16 else { return nil }
        let digits = bytes.map(hexadecimal)
        return [0..<4, 4..<6, 6..<8, 8..<10, 10..<16].map { digits[$0].joined() }.joined(separator: "-")
    }

    private static func short(_ number: UInt32) -> String? {
        guard number != 0 else { return nil }
        let digits = [24, 16, 8, 0].map { hexadecimal(UInt8(truncatingIfNeeded: number >> $0)).uppercased() }
        return digits[0] + digits[1] + "-" + digits[2] + digits[3]
    }

    private static func hexadecimal(_ byte: UInt8) -> String {
        (byte < 16 ? "0" : "") + String(byte, radix: 16)
    }
}

extension VolumeIdentity {
    /// The file system of `path`; nil where that is unknown now. Blocks.
    package static func known(at path: FilePath) -> VolumeIdentity? {
        // The caller continues with its earlier knowledge.
        try? VolumeFinder().identity(of: path)
    }
}
