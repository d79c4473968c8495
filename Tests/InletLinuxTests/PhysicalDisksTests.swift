import Foundation
import Glibc
import InletCore
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

/// A machine's disks, as sysfs shows them.
struct PhysicalDisksTests {
    private let folder: TemporaryDirectory
    private let system: FilePath

    init() throws {
        folder = try TemporaryDirectory()
        system = try folder.makeDirectory("sys")
        for (name, model) in [
            ("sda", "WDC  WD40EFRX \n"), ("sdb", "Ultra Fit"), ("sdc", ""), ("nvme0n1", "Samsung"),
            ("nvme0n2", "Samsung"), ("mmcblk0", ""), ("zram0", ""),
        ] {
            let device = try folder.makeDirectory(FilePath("sys/devices/block/\(name)"))
            if !model.isEmpty { try folder.write(model.utf8, to: place(device.pushing("device/model"))) }
        }
        try folder.write("SD64G\n".utf8, to: "sys/devices/block/mmcblk0/device/name")
        for (disk, part) in [("sda", "sda1"), ("sda", "sda2"), ("sdb", "sdb1"), ("nvme0n1", "nvme0n1p1")] {
            try folder.write("1\n".utf8, to: FilePath("sys/devices/block/\(disk)/\(part)/partition"))
        }
        try link("sys/devices/block/dm-0/slaves/sda2", "block/sda/sda2")
        try link("sys/devices/block/dm-0/slaves/sdb1", "block/sdb/sdb1")
        try link("sys/devices/block/dm-1/slaves/dm-0", "block/dm-0")
        try link("sys/devices/block/md0/slaves/sdb1", "block/sdb/sdb1")
        try link("sys/devices/block/md0/slaves/sdc", "block/sdc")
        // One that is its own slave, as no kernel has it.
        try link("sys/devices/block/dm-9/slaves/dm-9", "block/dm-9")
        try folder.write("/srv/images/card.img\n".utf8, to: "sys/devices/block/loop0/loop/backing_file")
        try folder.write("/here/itself.img\n".utf8, to: "sys/devices/block/loop1/loop/backing_file")
        for (number, device) in [
            ("8:1", "sda/sda1"), ("8:16", "sdb"), ("8:17", "sdb/sdb1"), ("8:32", "sdc"), ("253:0", "dm-0"),
            ("253:1", "dm-1"),
            ("253:9", "dm-9"), ("9:0", "md0"), ("7:0", "loop0"), ("7:1", "loop1"), ("259:1", "nvme0n1/nvme0n1p1"),
            ("259:2", "nvme0n2"), ("179:0", "mmcblk0"), ("252:0", "zram0"),
        ] {
            try link(FilePath("sys/dev/block/\(number)"), FilePath("block/\(device)"))
            let name = String(device.split(separator: "/").last ?? "")
            try link(FilePath("sys/class/block/\(name)"), FilePath("block/\(device)"))
        }
        for name in ["sdb1", "sdc"] {
            try link(FilePath("sys/fs/btrfs/1234-ABCD/devices/\(name)"), FilePath("class/block/\(name)"))
        }
    }

    private func place(_ path: FilePath) -> FilePath {
        var path = path
        _ = path.removePrefix(folder.path)
        return path
    }

    private func link(_ name: FilePath, _ device: FilePath) throws {
        let link = folder.path.pushing(name)
        try FileManager.default.createDirectory(
            atPath: link.removingLastComponent().string, withIntermediateDirectories: true)
        let target = system.pushing("devices").pushing(device)
        try #require(symlink(target.string, link.string) == 0)
    }

    private static let mounts = """
        1 0 8:1 / / rw - ext4 /dev/sda1 rw
        2 1 0:30 / /none/tmp rw - tmpfs tmpfs rw
        3 1 8:17 / /none/card rw - vfat /dev/sdb1 rw
        4 1 253:1 / /none/lvm rw - xfs /dev/mapper/vg-lib rw
        5 1 9:0 / /none/raid rw - ext4 /dev/md0 rw
        6 1 7:0 / /none/image rw - ext4 /dev/loop0 rw
        7 1 8:32 / /srv/images rw - ext4 /dev/sdc rw
        8 1 259:1 / /none/fast rw - ext4 /dev/nvme0n1p1 rw
        9 1 259:2 / /none/fast2 rw - ext4 /dev/nvme0n2 rw
        10 1 0:50 /@lib /none/btrfs rw - btrfs /none/dev/sdb1 rw,subvol=/@lib
        11 1 0:51 / /none/nas rw - nfs4 nas:/volume1/photo rw,addr=10.0.0.2
        12 1 0:52 / /none/smb rw - cifs //NAS/share rw,addr=10.0.0.2
        13 1 0:53 / /none/ssh rw - fuse.sshfs user@host:/x rw
        14 1 0:54 / /none/six rw - nfs4 [fd00::1]:/x rw
        15 1 0:55 / /none/self rw - nfs4 localhost:/x rw
        16 1 0:56 / /none/tank rw - zfs tank/photo rw
        17 1 0:57 / /none/over rw - overlay overlay rw,lowerdir=/a,upperdir=/nowhere/upper
        18 1 0:58 / /none/shfs rw - fuse.shfs shfs rw
        19 1 0:59 / /none/union rw - fuse.mergerfs 1:2 rw
        20 1 179:0 / /none/sd rw - exfat /dev/mmcblk0 rw
        21 1 252:0 / /none/zram rw - ext4 /dev/zram0 rw
        22 1 253:9 / /none/loopy rw - ext4 /dev/dm-9 rw
        23 1 7:1 / /here rw - ext4 /dev/loop1 rw
        24 1 8:77 / /none/unknown rw - ext4 /dev/sdz rw
        """

    @Test(
        arguments: [
            ("/none/lib", ["disk sda (WDC WD40EFRX)"]), ("/none/tmp/x", ["memory"]),
            ("/none/card/DCIM", ["disk sdb (Ultra Fit)"]),
            ("/none/lvm", ["disk sda (WDC WD40EFRX)", "disk sdb (Ultra Fit)"]),
            ("/none/raid", ["disk sdb (Ultra Fit)", "disk sdc"]), ("/none/image", ["disk sdc"]),
            ("/none/fast", ["disk nvme0 (Samsung)"]), ("/none/fast2", ["disk nvme0 (Samsung)"]),
            ("/none/btrfs", ["disk sdb (Ultra Fit)", "disk sdc"]), ("/none/nas/a", ["server nas", "server 10.0.0.2"]),
            ("/none/smb", ["server nas", "server 10.0.0.2"]), ("/none/ssh", ["server host"]),
            ("/none/six", ["server fd00::1"]),
            ("/none/self", []), ("/none/tank", ["pool tank"]), ("/none/over", []), ("/none/shfs", []),
            ("/none/union", []),
            ("/none/sd", ["disk mmcblk0 (SD64G)"]), ("/none/zram", ["memory"]), ("/none/loopy", []), ("/here", []),
            ("/none/unknown", []),
        ] as [(FilePath, Set<String>)])
    func `a folder is on the disks below its file system`(_ path: FilePath, _ disks: Set<String>) {
        let found = PhysicalDisks(system: system, mounts: MountTable(parsing: Array(Self.mounts.utf8)))
        #expect(found.disks(of: path) == disks)
    }

    @Test func `a file system in user space is on the disks of the folders that it shows`() throws {
        let upper = try folder.makeDirectory("upper")
        let text = """
            1 0 8:1 / / rw - ext4 /dev/sda1 rw
            2 1 8:17 / \(folder.path.resolved) rw - ext4 /dev/sdb1 rw
            3 1 0:40 / /none/bind rw - fuse \(upper.resolved) rw
            4 1 0:41 / /none/union rw - fuse.mergerfs \(upper.resolved):/etc rw
            5 1 0:42 / /none/over rw - overlay overlay rw,upperdir=\(upper.resolved)
            """
        let found = PhysicalDisks(system: system, mounts: MountTable(parsing: Array(text.utf8)))
        #expect(found.disks(of: "/none/bind") == ["disk sdb (Ultra Fit)"])
        #expect(found.disks(of: "/none/union") == ["disk sda (WDC WD40EFRX)", "disk sdb (Ultra Fit)"])
        #expect(found.disks(of: "/none/over/x") == ["disk sdb (Ultra Fit)"])
    }

    @Test(.enabled(if: DiskImage.isAvailable, "needs the right to mount, a loop device and mkfs.ext4"))
    func `an image is on the disk of its file`() throws {
        let (disk, folder) = (try DiskImage(label: "EOS"), try TemporaryDirectory())
        try disk.mount(at: folder.path)
        let disks = try PhysicalDisks.current()
        #expect(disks.disks(of: folder.path.appending("later")) == disks.disks(of: disk.folder))
        let device = try #require(try MountTable.current().mount(of: disk.folder.resolved))
        if device.major != 0 { #expect(!disks.disks(of: folder.path).isEmpty) }
    }
}
