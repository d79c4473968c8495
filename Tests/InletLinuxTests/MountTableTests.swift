import Foundation
import InletCore
import InletTestSupport
import SystemPackage
import Testing

@testable import InletLinux

@Suite struct MountTableTests {
    static let text = #"""
        22 27 0:21 / /proc rw,relatime - proc proc rw
        27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard
        30 27 8:17 /export/in /srv/drop rw,noatime master:2 propagate_from:3 - xfs /dev/sdb1 rw,attr2
        31 30 0:50 / /srv/drop/nas rw,relatime shared:9 - nfs4 nas:/volume1/photo rw,vers=4.2,addr=10.0.0.2
        32 31 0:51 / /srv/drop/nas/My\040Pictures\011\134 rw - fuse.sshfs user@host:/x rw,user_id=0
        33 27 0:60 / /mnt/hidden rw - tmpfs tmpfs rw
        34 33 0:61 / /mnt/hidden rw - tmpfs tmpfs rw,size=4k
        35 33 0:62 / /mnt/hidden/below rw - nfs nas:/old rw
        36 34 0:63 / /mnt/hidden/below rw - cifs //nas/new rw
        """#

    static let table = MountTable(parsing: Array(text.utf8))

    @Test(arguments: [
        ("/", 27), ("/srv", 27), ("/srv/drop", 30), ("/srv/dropped", 27), ("/srv/drop/x/y", 30),
        ("/srv/drop/nas", 31), ("/srv/drop/nas/a", 31), ("/srv/drop/nas/My Pictures\t\\/b", 32), ("/proc/1", 22),
        ("/mnt/hidden", 34), ("/mnt/hidden/below/x", 36),
    ])
    func `a path is on the mount that is seen there`(_ path: String, _ id: Int) {
        #expect(Self.table.mount(of: FilePath(path))?.id == id)
    }

    @Test(arguments: [
        ("cifs", "rw,vers=3.1.1,serverino,mapposix", false), ("cifs", "rw,vers=3.1.1,mapposix", true),
        ("smb3", "rw,serverino", false), ("smb3", "rw", true), ("nfs4", "rw,vers=4.2", false),
        ("fuse.sshfs", "rw", false),
    ])
    func `SMB without serverino has inode numbers of its own`(_ type: String, _ options: String, _ invents: Bool) {
        let table = MountTable(parsing: Array("36 1 0:63 / /mnt/nas rw - \(type) //nas/media \(options)".utf8))
        #expect(table.mount(of: "/mnt/nas/a.mov")?.inventsInodes == invents)
    }

    @Test func `the points of fstab are read, and what is no line of it is left out`() {
        let text = """
            # /dev/sdz1 /commented ext4 defaults 0 0
            UUID=1 / ext4 errors=remount-ro 0 1
            nas:/share\t/mnt/my\\040nas  nfs4 noauto,x-systemd.automount 0 0
            UUID=2 none swap sw 0 0
            /dev/sdb1 /media/card
            /dev/sdb1 relative ext4 defaults
            """
        #expect(MountTable.plannedPoints(in: Array(text.utf8)) == ["/mnt/my nas"])
        #expect(MountTable.plannedPoints(in: [0xFF, 0x20, 0x0A, 0x20]) == [])
    }

    @Test func `the mounts below a folder are those that can be seen`() {
        #expect(Self.table.below("/srv/drop").map(\.id) == [31, 32])
        #expect(Self.table.below("/mnt").map(\.id) == [34, 36])
        #expect(Self.table.below("/srv/drop/nas").map(\.id) == [32])
        #expect(Self.table.below("/srv/drop/nas/My Pictures\t\\").isEmpty)
    }

    @Test func `all fields are read, with what is escaped in them`() throws {
        #expect(Self.table.mounts.count == 9)
        let bind = try #require(Self.table.mount(of: "/srv/drop"))
        #expect(bind.parent == 27 && bind.major == 8 && bind.minor == 17)
        #expect(bind.root == "/export/in" && bind.type == "xfs" && bind.source == "/dev/sdb1")
        #expect(bind.options.map(\.name) == ["rw", "attr2"])
        let share = try #require(Self.table.mount(of: "/srv/drop/nas"))
        #expect(share.source == "nas:/volume1/photo" && share.options.last?.value == Array("10.0.0.2".utf8))
    }

    @Test(arguments: [
        "", "36", "36 35 98:0 / /mnt rw", "x 35 98:0 / /mnt rw - ext4 /dev/x rw", "36 35 98 / /mnt rw - ext4 /dev/x rw",
        "36 35 98:0 / mnt rw - ext4 /dev/x rw", "36 35 98:0 / /mnt rw shared:1 ext4 /dev/x rw",
    ])
    func `a line that is not understood is left out`(_ line: String) {
        #expect(MountTable(parsing: Array((line + "\n" + Self.text).utf8)).mounts.count == 9)
    }

    @Test func `a mount without source or options is one`() throws {
        let table = MountTable(parsing: Array("36 35 0:9 / /mnt rw - none\n37 36 0:9 / /mnt/x rw - tmpfs  rw".utf8))
        #expect(table.mounts.map(\.type) == ["none", "tmpfs"])
        #expect(table.mount(of: "/mnt/x")?.options.map(\.name) == ["rw"])
        #expect(table.mount(of: "/elsewhere") == nil)
    }

    @Test(arguments: 0..<200) func `no bytes harm the reader, and no table holds up the search`(_ seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var bytes = Array(Self.text.utf8)
        for _ in 0..<Int.random(in: 1...40, using: &random) {
            let place = Int.random(in: bytes.indices, using: &random)
            switch Int.random(in: 0..<3, using: &random) {
            case 0: bytes[place] = UInt8.random(in: .min ... .max, using: &random)
            case 1: bytes[place] = Array("0123456789 /\\\n-".utf8).randomElement(using: &random) ?? 0
            default: bytes.remove(at: place)
            }
        }
        let table = MountTable(parsing: bytes)
        for mount in table.mounts {
            #expect(mount.point.isAbsolute)
            _ = table.mount(of: mount.point)
            for below in table.below(mount.point) { #expect(below.point != mount.point) }
        }
        let loop = (0..<5).map { number in
            var mount = MountTableTests.table.mounts[1]
            (mount.id, mount.parent) = (number, (number + 1) % 5)
            return mount
        }
        #expect(MountTable(loop).mount(of: "/x") == nil)
    }

    @Test func `this machine's table names the mount of the test's folder`() throws {
        let folder = try TemporaryDirectory()
        let mount = try #require(try MountTable.current().mount(of: folder.path))
        #expect(folder.path.starts(with: mount.point) && !mount.type.isEmpty)
    }
}

@Suite struct VolumeFinderTests {
    @Test(
        arguments: [
            (
                [0x28, 0x7a, 0x1e, 0xe7, 0xf0, 0x69, 0x47, 0xb4, 0xb0, 0x60, 0xd2, 0x09, 0xbb, 0xd7, 0xd0, 0x32],
                "287a1ee7-f069-47b4-b060-d209bbd7d032"
            ),
            // As in a boot sector: the lowest byte first.
            ([0xcd, 0xab, 0x34, 0x12], "1234-ABCD"), ([0x01, 0, 0, 0], "0000-0001"),
            ([], nil), ([0, 0, 0, 0], nil), ([UInt8](repeating: 0, count: 16), nil), ([1, 2, 3], nil),
        ] as [([UInt8], String?)])
    func `a UUID is written as blkid writes it`(bytes: [UInt8], text: String?) {
        #expect(VolumeFinder.uuid(bytes) == text)
    }

    @Test func `names of udev are read as they were written`() {
        #expect(VolumeFinder.unescaped(#"MY\x20CARD"#) == "MY CARD")
        #expect(VolumeFinder.unescaped(#"odd\x2"#) == #"odd\x2"#)
    }

    @Test func `a record of udev is read as it is in /run/udev/data`() {
        let record = VolumeFinder.udevNames(
            in: """
                S:disk/by-uuid/64A5-F009
                I:2812345678
                E:ID_FS_TYPE=exfat
                E:ID_FS_UUID=64A5-F008
                E:ID_FS_UUID_ENC=64A5-F009
                E:ID_FS_LABEL=EOS_1
                E:ID_FS_LABEL_ENC=EOS\\x201\\x2f2
                G:systemd

                """.utf8)
        #expect(record.uuid == "64A5-F009" && record.label == "EOS 1/2")
        let none = VolumeFinder.udevNames(in: "E:ID_FS_UUID_ENC=\nE:ID_FS_LABEL_ENC\nxE:ID_FS_UUID_ENC=1".utf8)
        #expect(none.uuid == nil && none.label == nil)
    }

    @Test func `the file system of a folder has a name, and the same one at each look`() throws {
        let directory = try TemporaryDirectory()
        let first = try VolumeFinder().place(of: directory.path)
        #expect(!first.volume.name.isEmpty)
        #expect(try VolumeFinder().place(of: directory.path) == first)
        #expect(("/" + first.folder).hasSuffix(directory.path.lastComponent?.string ?? "/"))
        #expect(throws: SystemError.self) { try VolumeFinder().place(of: directory.path.appending("missing")) }
    }

    @Test func `what is mounted is found in the table, by the way that leads there`() throws {
        let directory = try TemporaryDirectory()
        let real = directory.path.resolved
        let table = """
            22 1 8:2 / / rw - ext4 /dev/sda2 rw
            97 22 0:61 /cards/one \(real.string) rw - nfs4 nas:/my\\040photos rw
            """
        let file = try directory.write(Array(table.utf8), to: "mountinfo")
        try directory.makeDirectory("DCIM")
        try FileManager.default.createSymbolicLink(
            atPath: directory.path.appending("link").string,
            withDestinationPath: directory.path.appending("DCIM").string)
        let finder = VolumeFinder(mountinfo: file)
        #expect(try finder.place(of: directory.path.appending("DCIM")).volume.source == "nas:/my photos")
        #expect(try finder.place(of: directory.path.appending("DCIM")).folder == "cards/one/DCIM")
        #expect(try finder.place(of: directory.path).folder == "cards/one")
        // Without a table the path must do.
        let blind = VolumeFinder(mountinfo: directory.path.appending("none"))
        #expect(try blind.place(of: directory.path).folder == String(real.string.dropFirst()))
    }

    @Test func `a watch of mounts tells of a folder that comes, and not of a file`() throws {
        let directory = try TemporaryDirectory()
        let waker = try Waker()
        var watch = try MountWatch()
        watch.watch([directory.path])
        try directory.write([1], to: "file")
        try directory.makeDirectory("folder")
        #expect(try watch.wait(until: .now.advanced(by: .seconds(10)), waker: waker))
        waker.wake()
        #expect(try !watch.wait(until: nil, waker: waker))
    }
}

/// Real disks in files.
@Suite(.enabled(if: DiskImage.isAvailable, "needs the right to mount, a loop device and mkfs.ext4"))
struct MountedVolumeTests {
    private let directory: TemporaryDirectory
    private let point: FilePath

    init() throws {
        directory = try TemporaryDirectory()
        point = try directory.makeDirectory("point")
    }

    /// What the folder `DCIM` of a disk is. Which loop device it got is chance.
    private func place(_ disk: DiskImage) throws -> (volume: VolumeIdentity, folder: String) {
        try disk.mount(at: point)
        defer { try? disk.unmount(point) }
        var place = try VolumeFinder().place(of: point.appending("DCIM"))
        place.volume.source = ""
        return place
    }

    @Test func `a disk is the same each time it is mounted, and another of the same name is another`() throws {
        let disks = try (0..<2).map { _ in try DiskImage(label: "EOS 1/2") }
        for disk in disks { try disk.write([1], to: "DCIM/a") }
        let places = try disks.map(place)
        #expect(places.allSatisfy { $0.volume.label == "EOS 1/2" && $0.folder == "DCIM" })
        #expect(places[0].volume.isSame(as: places[1].volume) == false)
        #expect(places[0].volume.key != places[1].volume.key)
        #expect(try place(disks[0]) == places[0])
    }

    @Test func `udev's names are found by the device, and change nothing for the journal`() throws {
        let disk = try DiskImage(label: "EOS")
        try disk.mount(at: point)
        defer { try? disk.unmount(point) }
        let plain = try VolumeFinder().identity(of: point)
        let disks = try directory.makeDirectory("disk")
        for (kind, name) in [("by-uuid", "9999-0000"), ("by-label", "MY\\x20CARD")] {
            let links = try directory.makeDirectory(FilePath("disk/\(kind)"))
            try FileManager.default.createSymbolicLink(
                atPath: links.appending(name).string, withDestinationPath: plain.source)
        }
        let named = try VolumeFinder(disks: disks).identity(of: point)
        #expect(named.uuid == "9999-0000" && named.label == "MY CARD")
        #expect(named.key == plain.key)
    }

    @Test func `a disk whose names cannot be read for the moment is none without a name`() throws {
        let disk = try DiskImage(label: "EOS")
        try disk.mount(at: point)
        defer { try? disk.unmount(point) }
        let links = try directory.makeDirectory("disk/by-uuid")
        try FileManager.default.createSymbolicLink(
            atPath: links.appending("9999-0000").string,
            withDestinationPath: try VolumeFinder().identity(of: point).source)
        let finder = VolumeFinder(disks: directory.path.appending("disk"))
        var failures = 0
        for seed in 0..<8 as Range<UInt64> {
            let number = KernelFaults.begin(KernelFaultPlan(below: [links], seed: seed, count: 1, every: 1))
            let found = Result { try finder.identity(of: point) }
            let code = try #require(KernelFaults.end(number)?.injected.first?.code)
            // What this user may not see at all is not there for him.
            if code == .permissionDenied { continue }
            #expect(throws: SystemError.self, "\(code)") { try found.get() }
            failures += 1
        }
        #expect(failures > 0)
        #expect(try finder.identity(of: point).uuid == "9999-0000")
    }

    @Test func `udev's record of the device is enough where there is no device node`() throws {
        let disk = try DiskImage(label: "EOS")
        try disk.mount(at: point)
        defer { try? disk.unmount(point) }
        var status = stat()
        try #require(stat(point.string, &status) == 0)
        // A loop device: makedev(3) with the major number 7.
        try #require(status.st_dev & ~0xFFF_FFF0_00FF == 0x700)
        let minor = status.st_dev & 0xFF | status.st_dev >> 12 & 0xFFFF_FF00
        let records = try directory.makeDirectory("data")
        let text = "E:ID_FS_UUID_ENC=9999-0000\nE:ID_FS_LABEL_ENC=MY\\x20CARD\n"
        try directory.write(Array(text.utf8), to: FilePath("data/b7:\(minor)"))
        let none = directory.path.appending("none")
        let named = try VolumeFinder(disks: none, udev: records).identity(of: point)
        #expect(named.uuid == "9999-0000" && named.label == "MY CARD")
        // Without either the kernel is asked, which never knows these names.
        let plain = try VolumeFinder(disks: none, udev: none).identity(of: point)
        #expect(plain.uuid != "9999-0000" && plain.label == "EOS")
        #expect(named.key == plain.key)
    }
}
