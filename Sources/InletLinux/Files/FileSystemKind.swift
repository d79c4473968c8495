import CLinux
import Glibc
package import SystemPackage

/// The kind of a path's file system, as far as the agent behaves differently (statfs(2)).
package struct FileSystemKind: Sendable, Hashable {
    /// Its usual name, such as `ext4`, or the magic number in hexadecimal.
    package var name: String
    /// Other hosts, or a program in user space, may change files behind the kernel's back. inotify and leases then miss
    /// changes, and a journal does not belong there. FUSE counts.
    package var isNetwork: Bool
    /// The possible difference between two readings of an unchanged file's mtime, in nanoseconds: 2 s on FAT, otherwise
    /// 0.
    package var modifiedTolerance: Int64

    /// The kernel generates its files as they are read; reading some has effects.
    package var isPseudo = false

    package init(name: String, isNetwork: Bool = false, modifiedTolerance: Int64 = 0) {
        self.name = name
        self.isNetwork = isNetwork
        self.modifiedTolerance = modifiedTolerance
    }

    /// The kind of the file system that `path` (which must exist) is on. Blocks while a network server does not answer.
    package static func of(_ path: FilePath) throws(SystemError) -> FileSystemKind {
        FileSystemKind(magic: try FreeSpace.statistics(path).f_type)
    }

    /// The same; nil where the kernel cannot tell.
    package static func known(of path: FilePath) -> FileSystemKind? {
        // Silent here: a caller that needs the files gets the error.
        try? of(path)
    }

    /// nil where the kernel does not say.
    init?(of descriptor: CInt) {
        var statistics = statfs()
        guard fstatfs(descriptor, &statistics) == 0 else { return nil }
        self.init(magic: statistics.f_type)
    }

    /// `f_type` is signed, with its upper half set on some architectures; magic numbers have 32 bits.
    package init(magic: some BinaryInteger) {
        let number = UInt32(truncatingIfNeeded: magic)
        self = Self.known[number] ?? FileSystemKind(name: "0x" + String(number, radix: 16))
    }

    /// By number: each new file is asked for its kind.
    private static let known = names.merging(pseudo) { $1 }.reduce(into: [UInt32: FileSystemKind]()) { known, entry in
        let (number, name) = entry
        var kind = FileSystemKind(
            name: name, isNetwork: networks.contains(name),
            modifiedTolerance: name == "vfat" || name == "exfat" ? 2_000_000_000 : 0)
        kind.isPseudo = pseudo[number] != nil
        known[number] = kind
    }

    var isFUSE: Bool { name == "fuse" }

    // Not autofs, which only waits for another file system. devtmpfs has tmpfs's number, and devices are never read.
    private static let pseudo: [UInt32: String] = [
        0x9FA0: "proc", 0x6265_6572: "sysfs", 0x0027_E0EB: "cgroup", 0x6367_7270: "cgroup2", 0x1CD1: "devpts",
        0x6462_6720: "debugfs", 0x7472_6163: "tracefs", 0x7363_6673: "securityfs", 0xCAFE_4A11: "bpf",
        0x6265_6570: "configfs", 0x6573_5543: "fusectl", 0x1980_0202: "mqueue", 0x6165_676C: "pstore",
        0xF97C_FF8C: "selinuxfs", 0x4341_5D53: "smackfs", 0x5A3C_69F0: "apparmorfs", 0xDE5E_81E4: "efivarfs",
        0x4249_4E4D: "binfmt_misc", 0x6E73_6673: "nsfs", 0x6759_6969: "rpc_pipefs", 0x6E66_7364: "nfsd",
        0x0765_5821: "resctrl", 0x9FA1: "openpromfs", 0x9FA2: "usbdevfs", 0x6C6F_6F70: "binder", 0xABBA_1974: "xenfs",
        0x6F70_726F: "oprofilefs", 0x9584_58F6: "hugetlbfs",
    ]

    // linux/magic.h, and the sources of the file systems that are not in it.
    private static let names: [UInt32: String] = [
        0xEF53: "ext4", 0x5846_5342: "xfs", 0x9123_683E: "btrfs", 0xCA45_1A4E: "bcachefs", 0x2FC1_2FC1: "zfs",
        0xF2F5_2010: "f2fs", 0x0102_1994: "tmpfs", 0x8584_58F6: "ramfs", 0x794C_7630: "overlay", 0x5346_544E: "ntfs",
        0x7366_746E: "ntfs3", 0x482B: "hfsplus", 0x3153_464A: "jfs", 0x5265_4973: "reiserfs", 0x3434: "nilfs2",
        0x9660: "iso9660", 0x1501_3346: "udf", 0x7371_7368: "squashfs", 0xF15F: "ecryptfs", 0x4D44: "vfat",
        0x2011_BAB0: "exfat", 0x6969: "nfs", 0x517B: "smb", 0xFF53_4D42: "cifs", 0xFE53_4D42: "smb2",
        0x6573_5546: "fuse", 0x0102_1997: "9p", 0x00C3_6400: "ceph", 0x5346_414F: "afs", 0x6B41_4653: "afs",
        0x7375_7245: "coda", 0x0116_1970: "gfs2", 0x7461_636F: "ocfs2", 0x0BD0_0BD0: "lustre", 0x786F_4256: "vboxsf",
        0xBACB_ACBC: "vmhgfs",
    ]

    private static let networks: Set<String> = [
        "nfs", "smb", "cifs", "smb2", "fuse", "9p", "ceph", "afs", "coda", "gfs2", "ocfs2", "lustre", "vboxsf",
        "vmhgfs",
    ]
}

/// Space on a file system.
package enum FreeSpace {
    /// Bytes that this user may still write to the file system of `path`, which must exist. May block like `of`.
    package static func available(at path: FilePath) throws(SystemError) -> Int64 {
        let statistics = try statistics(path)
        return Int64(clamping: UInt64(statistics.f_bavail).multipliedReportingOverflow(by: UInt64(statistics.f_bsize)))
    }

    /// Total bytes of the file system of `path`.
    package static func total(at path: FilePath) throws(SystemError) -> Int64 {
        let statistics = try statistics(path)
        return Int64(clamping: UInt64(statistics.f_blocks).multipliedReportingOverflow(by: UInt64(statistics.f_bsize)))
    }

    /// Files that may still be made on the file system of `path`, and the most; nil where it has no such limit.
    package static func inodes(at path: FilePath) throws(SystemError) -> (free: Int64, total: Int64)? {
        let statistics = try statistics(path)
        guard statistics.f_files > 0 else { return nil }
        return (Int64(clamping: statistics.f_ffree), Int64(clamping: statistics.f_files))
    }

    /// A number that changes when files of the file system come, go or grow.
    package static func fingerprint(_ path: FilePath) throws(SystemError) -> UInt64 {
        let statistics = try statistics(path)
        return UInt64(statistics.f_bfree) &* 0x9E37_79B9_7F4A_7C15 ^ UInt64(statistics.f_ffree)
    }

    static func statistics(_ path: FilePath) throws(SystemError) -> statfs {
        var statistics = statfs()
        _ = try SystemCall.result("statfs", path) { path.withPlatformString { statfs($0, &statistics) } }
        return statistics
    }
}

extension Int64 {
    fileprivate init(clamping product: (partialValue: UInt64, overflow: Bool)) {
        self = product.overflow ? .max : Int64(clamping: product.partialValue)
    }
}
