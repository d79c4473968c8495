import Foundation
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
        ("ext4", PollState.Times.always), ("nfs", .always), ("nfs4", .always), ("vfat", .never), ("exfat", .never),
        ("cifs", .whenSeen), ("fuse.sshfs", .whenSeen), ("9p", .whenSeen),
    ])
    func `folders' times are trusted where the file system is known to keep them`(
        _ type: String, _ times: PollState.Times
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
        #expect(outcome == (false, true))
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

private struct NoMoreRecords: Error { let seen: [InotifyRecord] }

struct InotifyTests {
    let folder: TemporaryDirectory

    init() throws { folder = try TemporaryDirectory() }

    private func collect(
        _ inotify: borrowing Inotify, _ waker: Waker, until done: ([InotifyRecord]) -> Bool
    ) throws -> [InotifyRecord] {
        var records: [InotifyRecord] = []
        let end = ContinuousClock.now.advanced(by: .seconds(120))
        while !done(records) {
            guard try inotify.wait(until: end, waker: waker).isReadable else { throw NoMoreRecords(seen: records) }
            records += try inotify.read()
        }
        return records
    }

    @Test func `a path that is no folder, or not there, is refused`() throws {
        let inotify = try Inotify()
        let file = try folder.write([1], to: "file")
        let link = folder.path.appending("link")
        try FileManager.default.createSymbolicLink(atPath: link.string, withDestinationPath: folder.path.string)
        for path in [file, link, folder.path.appending("none")] {
            var caught: SystemError?
            do throws(SystemError) { _ = try inotify.add(path) } catch { caught = error }
            #expect(caught?.isMissing == true, "\(path): \(String(describing: caught))")
        }
    }

    @Test func `creating, writing, renaming and deleting are seen, in nested folders of their own watch`() throws {
        let inotify = try Inotify()
        let waker = try Waker()
        let outer = try inotify.add(folder.path)
        let inner = try inotify.add(folder.makeDirectory("in"))
        let file = folder.path.appending("in").pushing(FilePath(bytes: [0xFF, 0x0A]))
        let writer = try FileDescriptor.open(
            file, .writeOnly, options: [.create, .closeOnExec], permissions: .ownerReadWrite)
        try writer.closeAfter { _ = try writer.writeAll([1, 2, 3]) }
        try DurableFile.rename(file, to: folder.path.appending("b"))
        try DurableFile.remove(folder.path.appending("b"))
        let records = try collect(inotify, waker) { $0.contains { $0.mask.contains(.deleted) } }
        func named(_ name: [UInt8]) -> [InotifyRecord] { records.filter { $0.name == name } }
        #expect(named(Array("in".utf8)).map(\.mask) == [[.created, .isDirectory]])
        #expect(named([0xFF, 0x0A]).map(\.mask) == [.created, .closedAfterWriting, .movedFrom])
        #expect(named([0xFF, 0x0A]).allSatisfy { $0.watch == inner })
        #expect(named([0x62]).map(\.mask) == [.movedTo, .deleted])
        #expect(named([0x62]).allSatisfy { $0.watch == outer })
        #expect(named([0x62])[0].cookie == named([0xFF, 0x0A])[2].cookie)
        #expect(named([0x62])[0].cookie != 0)
    }

    @Test func `writing without closing is not reported`() throws {
        let inotify = try Inotify()
        let path = try folder.write([1], to: "a")
        _ = try inotify.add(folder.path)
        let file = try FileDescriptor.open(path, .writeOnly, options: .closeOnExec)
        _ = try file.writeAll([1, 2, 3])
        #expect(try inotify.read().isEmpty)
        try file.close()
        #expect(try inotify.read().map(\.mask) == [.closedAfterWriting])
    }

    @Test func `a watched folder that goes says so, and its watch ends`() throws {
        let inotify = try Inotify()
        let inner = try folder.makeDirectory("in")
        let watch = try inotify.add(inner)
        try FileManager.default.removeItem(atPath: inner.string)
        let masks = try inotify.read().filter { $0.watch == watch }.map(\.mask)
        #expect(masks.contains(.selfDeleted))
        #expect(masks.contains(.watchRemoved))
        inotify.remove(watch)
    }

    @Test func `an overflow is a record with watch -1`() throws {
        let limit = try #require(
            Int(
                String(
                    decoding: try DurableFile.read("/proc/sys/fs/inotify/max_queued_events", limit: 64), as: UTF8.self
                )
                .trimmingCharacters(in: .whitespacesAndNewlines)))
        try #require(limit <= 100_000, "the queue of this machine is too long for a test")
        let inotify = try Inotify()
        _ = try inotify.add(folder.path)
        let names = [folder.path.appending("a"), folder.path.appending("b")]
        try folder.write([1], to: "a")
        for number in 0...(limit / 2 + 8) { try DurableFile.rename(names[number % 2], to: names[(number + 1) % 2]) }
        var overflow: InotifyRecord?
        while overflow == nil {
            let records = try inotify.read()
            try #require(!records.isEmpty)
            overflow = records.first { $0.isOverflow }
        }
        #expect(overflow == InotifyRecord(watch: -1, mask: .overflow))
    }

    @Test func `random bytes never break the parser`() {
        for seed in 0..<2000 as Range<UInt64> {
            var generator = SeededGenerator(seed: seed)
            let bytes = (0..<Int.random(in: 0...200, using: &generator)).map { _ in
                UInt8.random(in: 0...255, using: &generator) & (seed % 2 == 0 ? 0xFF : 0x13)
            }
            let records = bytes.withUnsafeBytes { Inotify.parse($0) }
            #expect(records.count <= bytes.count / 16, "seed \(seed)")
            #expect(records.allSatisfy { !$0.name.contains(0) }, "seed \(seed)")
        }
    }

    @Test func `whole records are read back, and a cut one ends the list`() {
        for seed in 0..<300 as Range<UInt64> {
            var generator = SeededGenerator(seed: seed)
            let records = (0..<Int.random(in: 1...6, using: &generator)).map { _ in
                InotifyRecord(
                    watch: .random(in: -1...9, using: &generator),
                    mask: .init(rawValue: .random(in: 0 ... .max, using: &generator)),
                    cookie: .random(in: 0 ... .max, using: &generator),
                    name: (0..<Int.random(in: 0...255, using: &generator)).map { _ in
                        .random(in: 1...255, using: &generator)
                    })
            }
            let bytes = records.flatMap { record -> [UInt8] in
                let padded =
                    record.name.isEmpty ? [] : record.name + [UInt8](repeating: 0, count: 16 - record.name.count % 16)
                return little(UInt32(bitPattern: record.watch)) + little(record.mask.rawValue) + little(record.cookie)
                    + little(UInt32(padded.count)) + padded
            }
            #expect(bytes.withUnsafeBytes { Inotify.parse($0) } == records, "seed \(seed)")
            #expect(bytes.dropLast().withUnsafeBytes { Inotify.parse($0) } == records.dropLast(), "seed \(seed)")
        }
    }

    /// No memory for each event: all names are in the one copy of what was read, as far apart as they were there.
    @Test func `names of one reading share their storage`() {
        let event =
            little(1) + little(0x100) + little(0) + little(16) + Array("name".utf8) + Array(repeating: 0, count: 12)
        let bytes = (0..<100).flatMap { _ in event }
        let records = bytes.withUnsafeBytes { Inotify.parse($0) }
        let places = records.map { $0.nameBytes.withUnsafeBytes { UInt(bitPattern: $0.baseAddress) } }
        #expect(records.count == 100 && records.allSatisfy { $0.name == Array("name".utf8) })
        #expect(zip(places, places.dropFirst()).allSatisfy { $1 == $0 + UInt(event.count) })
    }

    private func little(_ number: UInt32) -> [UInt8] { withUnsafeBytes(of: number) { Array($0) } }

    @Test func `a wait ends by deadline, by waker and by records, each told apart`() async throws {
        let inotify = try Inotify()
        let waker = try Waker()
        let start = ContinuousClock.now
        #expect(try inotify.wait(until: start.advanced(by: .milliseconds(20)), waker: waker) == (false, false))
        #expect(ContinuousClock.now >= start.advanced(by: .milliseconds(20)))

        waker.wake()
        waker.wake()
        #expect(try inotify.wait(until: nil, waker: waker) == (false, true))
        #expect(try inotify.wait(until: .now, waker: waker) == (false, false), "a wake-up is taken by the wait it ends")

        _ = try inotify.add(folder.path)
        try folder.write([1], to: "a")
        #expect(try inotify.wait(until: nil, waker: waker) == (true, false))
    }

    @Test func `a waker ends a wait that is going on, on another thread`() async throws {
        let waker = try Waker()
        let pool = BlockingPool(name: "waits", threads: 1)
        async let woken = pool.run { () throws(SystemError) in
            try waker.wait(until: ContinuousClock.now.advanced(by: .seconds(120)))
        }
        waker.wake()
        #expect(try await woken)
        #expect(try !waker.wait(until: .now))
        pool.shutdown()
    }

    @Test func `a loop on a pool of one thread waits for records and goes on awaiting`() async throws {
        let pool = BlockingPool(name: "intake", threads: 1)
        let waker = try Waker()
        let path = folder.path
        async let names = withTaskExecutorPreference(pool) { () async throws -> [[UInt8]] in
            let inotify = try Inotify()
            _ = try inotify.add(path)
            var names: [[UInt8]] = []
            while true {
                let outcome = try inotify.wait(until: .now.advanced(by: .seconds(60)), waker: waker)
                if !outcome.isReadable || outcome.isWoken { return names }
                names += try inotify.read().filter { $0.mask.contains(.closedAfterWriting) }.map(\.name)
                await Task.yield()
                if names.count == 3 { waker.wake() }
            }
        }
        try await eventually("the watch is set") { try hasWatch() }
        for name in ["a", "b", "c"] as [FilePath] { try folder.write([1], to: name) }
        #expect(try await names.count == 3)
        pool.shutdown()
    }

    // The watched folder's inode is in the descriptor's entry in /proc.
    private func hasWatch() throws -> Bool {
        guard case .directory(let identity) = try FileLook.look(at: folder.path) else { return false }
        let inode = "ino:" + String(identity.inode, radix: 16) + " "
        return try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fdinfo").contains { name in
            (try? String(contentsOfFile: "/proc/self/fdinfo/" + name, encoding: .utf8))?.contains(inode) == true
        }
    }
}
