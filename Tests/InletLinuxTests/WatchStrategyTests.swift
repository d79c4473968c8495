import InletCore
import InletTestSupport
import SystemPackage
import Testing

@testable import InletLinux

@Suite struct WatchStrategyTests {
    private func way(
        _ type: String, _ options: String = "rw", mode: WatchSettings.Mode = .auto, magic: Int64? = nil
    ) throws -> WatchStrategy {
        let text =
            """
            1 0 8:1 / / rw - ext4 /dev/sda1 rw
            2 1 0:1 / /nas rw - nfs4 nas:/x rw
            3 1 0:2 / /m rw - \(type) source \(options)
            4 1 0:3 / /merged rw - overlay overlay rw,lowerdir=/nas/low,upperdir=/up,workdir=/work
            """
        let table = MountTable(parsing: Array(text.utf8))
        let mount = try #require(table.mount(of: "/m"))
        return WatchStrategy.decide(mount, in: table, mode: mode, kind: { magic.map { FileSystemKind(magic: $0) } })
    }

    @Test(arguments: [
        "ext4", "xfs", "btrfs", "zfs", "tmpfs", "vfat", "exfat", "ntfs3", "fuseblk", "hfsplus", "iso9660", "somenewfs",
    ])
    func `file systems that only this machine writes to are watched by events`(_ type: String) throws {
        let way = try way(type)
        #expect(!way.isPolled && way.reason == type)
    }

    @Test(arguments: [
        "nfs", "nfs4", "cifs", "smb3", "9p", "virtiofs", "ceph", "fuse", "fuse.sshfs", "fuse.rclone", "fuse.mergerfs",
        "fuse.glusterfs", "lustre", "vboxsf",
    ])
    func `file systems that others write to are polled, and the type is said`(_ type: String) throws {
        let way = try way(type)
        #expect(way.isPolled && way.reason.hasPrefix(type + ": "))
    }

    @Test func `a type with an unknown name is judged by its magic number`() throws {
        #expect(try way("mynfs", magic: 0x6969).isPolled)
        #expect(try !way("mynfs", magic: 0xEF53).isPolled)
        // ntfs-3g has FUSE's number, and its disk is this machine's.
        #expect(try !way("fuseblk", magic: 0x6573_5546).isPolled)
    }

    @Test(arguments: [
        ("ro,lowerdir=/a:/b", true), ("rw,lowerdir=/a:/b,upperdir=/c,workdir=/w", false),
        ("rw,lowerdir=/a:/nas/b,upperdir=/c,workdir=/w", true), ("rw,lowerdir=/a\\134:/nas,upperdir=/c", false),
        ("rw,lowerdir+=/a,lowerdir+=/nas,upperdir=/c", true), ("rw,lowerdir=/a,upperdir=/nas/c", true),
        ("rw,lowerdir=/merged,upperdir=/c", true), ("rw,lowerdir=/m/a,upperdir=/c", false),
        ("rw,lowerdir=a:b,upperdir=c", false), ("rw,lowerdir=/a::/nas,upperdir=/c", true),
    ])
    func `an overlay is polled when changes can be made behind it`(_ options: String, _ isPolled: Bool) throws {
        let way = try way("overlay", options)
        #expect(way.isPolled == isPolled, "\(way.reason)")
        #expect(way.times == .never)
    }

    @Test func `mode forces one way for all`() throws {
        #expect(try way("ext4", mode: .poll).isPolled)
        #expect(try way("ext4", mode: .poll).reason == "mode: poll, on ext4")
        #expect(try !way("nfs4", mode: .inotify).isPolled)
    }

    @Test(arguments: [
        ("ext4", PollBook.Times.always), ("nfs", .always), ("nfs4", .always), ("vfat", .never), ("exfat", .never),
        ("cifs", .whenSeen), ("fuse.sshfs", .whenSeen), ("9p", .whenSeen),
    ])
    func `folders' times are trusted where the file system is known to keep them`(
        _ type: String, _ times: PollBook.Times
    ) throws {
        #expect(try way(type).times == times)
    }

    @Test func `without a table the magic number of the folder decides`() {
        #expect(WatchStrategy.decide(FileSystemKind(magic: 0x6969), mode: .auto).isPolled)
        #expect(!WatchStrategy.decide(FileSystemKind(magic: 0xEF53), mode: .auto).isPolled)
        #expect(!WatchStrategy.decide(nil, mode: .auto).isPolled)
        #expect(WatchStrategy.decide(nil, mode: .poll).isPolled)
    }

    @Test func `each mount below a root has its own way, but for ignored ones`() throws {
        var watch = WatchSettings(path: "/srv/drop", ignore: [try GlobPattern("off/")])
        let text =
            MountTableTests.text + "\n40 30 0:70 / /srv/drop/off rw - nfs nas:/off rw"
            + "\n41 31 8:33 / /srv/drop/nas/disk rw - ext4 /dev/sdc1 rw"
        let table = MountTable(parsing: Array(text.utf8))
        let mount = try #require(table.mount(of: watch.path))
        let modes = WatchModes(table, mount, watch.path, watch, kind: { _ in nil })
        #expect(modes.sorted.map(\.place) == ["", "nas", "nas/My Pictures\t\\", "nas/disk"])
        #expect(modes.sorted.map(\.way.isPolled) == [false, true, true, false])
        for (folder, place) in [
            ("", ""), ("a/b", ""), ("nas", "nas"), ("nas/x/y", "nas"), ("nasty", ""), ("nas/disk/1", "nas/disk"),
        ] as [(FilePath, FilePath)] {
            #expect(modes.way(for: folder).place == place)
        }
        #expect(modes.isPolled(inOrBelow: "") && modes.isPolled(inOrBelow: "nas/x"))
        #expect(!modes.isPolled(inOrBelow: "nas/disk") && !modes.isPolled(inOrBelow: "other"))
        #expect(modes.isMixed(below: "nas") && !modes.isMixed(below: "nas/disk"))
        #expect(modes.changes(since: modes).isEmpty)
        watch.recursive = false
        #expect(WatchModes(table, mount, watch.path, watch, kind: { _ in nil }).sorted.map(\.place) == [""])
    }

    @Test(arguments: [
        ("40 30 0:70 / /srv/drop/new rw - nfs nas:/new rw", ["new"]),
        // The next disk at the same place.
        ("31 30 8:33 / /srv/drop/nas rw - ext4 /dev/sdc1 rw", ["nas"]),
        ("40 30 8:33 / /srv/other rw - ext4 /dev/sdc1 rw", []),
    ])
    func `a mount that comes or takes another's place is a change where it is`(line: String, places: [String]) throws {
        let watch = WatchSettings(path: "/srv/drop")
        func modes(_ text: String) throws -> WatchModes {
            let table = MountTable(parsing: Array(text.utf8))
            return WatchModes(
                table, try #require(table.mount(of: watch.path)), watch.path, watch, kind: { _ in nil })
        }
        let before = try modes(MountTableTests.text)
        let after = try modes(
            MountTableTests.text.split(separator: "\n").filter { !$0.hasPrefix(line.prefix(3)) }.joined(separator: "\n")
                + "\n" + line)
        #expect(after.changes(since: before).map(\.string) == places)
        #expect(before.changes(since: after).map(\.string) == places)
    }

    @Test(arguments: [
        (3, 8192, true, 524_288), (300_000, 524_288, true, 1_048_576), (9000, 8192, false, 524_288),
        // Others have used them up.
        (100, 1_048_576, true, 2_097_152),
    ])
    func `the line for sysctl makes room for twice as many`(
        _ directories: Int, _ limit: Int, _ isMet: Bool, _ suggestion: Int
    ) {
        let need = WatchNeed(directories: directories, limit: limit)
        #expect(need.isMet == isMet)
        #expect(need.remedy == "sysctl fs.inotify.max_user_watches=\(suggestion)")
        #expect(WatchNeed(directories: directories, limit: nil).isMet)
    }

    @Test func `a silent inotify has no watch for anybody, and reports nothing`() throws {
        let folder = try TemporaryDirectory()
        let inotify = try Inotify(silentFor: nil)
        var refused: SystemError?
        do throws(SystemError) { _ = try inotify.add(folder.path) } catch { refused = error }
        #expect(refused?.isWatchLimit == true)
        let waker = try Waker()
        waker.wake()
        let outcome = try inotify.wait(until: nil, waker: waker)
        let (records, isDrained) = (try inotify.read(), try inotify.isDrained)
        #expect(outcome == WaitOutcome(isReadable: false, isWoken: true))
        #expect(records.isEmpty && isDrained)
    }
}

@Suite struct WatchNeedTests {
    private func lines(
        _ directories: Int, of limit: Int?, _ instances: Int, of instanceLimit: Int?
    ) -> [(isMet: Bool, text: String)] {
        WatchNeed(directories: directories, limit: limit).findings(instances: instances, instanceLimit: instanceLimit)
    }

    @Test func `what there is room for is counted, up to the last one`() {
        let found = lines(8192, of: 8192, 128, of: 128)
        #expect(found.map(\.isMet) == [true, true])
        #expect(
            found.map(\.text) == [
                "8192 of 8192 needed (fs.inotify.max_user_watches)",
                "128 of 128 inotify instances needed (fs.inotify.max_user_instances)",
            ])
    }

    @Test func `too few watches are said with the line that raises the limit, and so are too few instances`() {
        let watches = lines(8193, of: 8192, 1, of: 128)
        #expect(watches.map(\.isMet) == [false, true])
        let remedy = WatchNeed(directories: 8193, limit: 8192).remedy
        #expect(
            watches[0].text
                == "8193 of 8192 needed (fs.inotify.max_user_watches); the rest is polled. Raise it with '\(remedy)'")
        let instances = lines(1, of: 8192, 129, of: 128)
        #expect(instances.map(\.isMet) == [true, false])
        #expect(
            instances[1].text
                == "129 of 128 inotify instances needed (fs.inotify.max_user_instances); the rest is polled. "
                + "Raise it with 'sysctl fs.inotify.max_user_instances=1024'")
    }

    @Test(arguments: [(129, 128), (1024, 1023), (5001, 5000), (1_000_000, 999_999)])
    func `the limit that is asked for has room for all, and is above the present one`(needed: Int, limit: Int) throws {
        let text = try #require(lines(0, of: nil, needed, of: limit).first).text
        let asked = try #require(text.split(separator: "=").last.flatMap { Int($0.dropLast()) })
        #expect(asked > limit && asked >= needed)
    }

    @Test func `where the kernel names no limit nothing is said`() {
        #expect(lines(1_000_000, of: nil, 1_000_000, of: nil).isEmpty)
        #expect(lines(1, of: nil, 1, of: 128).map(\.isMet) == [true])
    }
}
