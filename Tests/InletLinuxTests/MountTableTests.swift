import InletCore
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

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

    @Test(arguments: 0..<200)
    func `no bytes harm the reader, and no table holds up the search`(_ seed: UInt64) {
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
