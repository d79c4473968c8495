import Foundation
import InletCore
import InletJournal
import InletJournalSupport
import InletLinux
import InletTestSupport
import Synchronization
import SystemPackage
import Testing

@testable import InletAgent
@testable import InletPipelines

/// Which volumes are one, by numbers and names.
@Suite struct RootPlaceTests {
    private static let card = VolumeIdentity(kind: "vfat", label: "Untitled", source: "/dev/sdb1")

    private func place(
        _ identity: VolumeIdentity = card, device: UInt64 = 1, folder: String = "DCIM", isVolume: Bool = true
    ) -> VolumeMount {
        let numbers = FileIdentity(size: 0, modified: 0, changed: 0, inode: 1, device: device)
        return VolumeMount(place: FolderIdentity(numbers), identity: identity, folder: folder, isVolume: isVolume)
    }

    @Test func `a file system that is mounted twice is watched once, and a copy of it is another`() {
        let others: [FilePath: VolumeMount] = ["/media/A": place(), "/media/B": place(device: 2)]
        let twins: [(VolumeMount, root: FilePath?, isSame: Bool?)] = [
            (place(), "/media/A", true), (place(device: 2), "/media/B", true), (place(device: 3), "/media/A", false),
            (place(folder: "PRIVATE"), nil, nil), (place(VolumeIdentity(kind: "vfat", label: "EOS")), nil, nil),
            (place(isVolume: false), nil, nil),
        ]
        for (new, root, isSame) in twins {
            let twin = new.twin(among: others)
            #expect(twin?.root == root && twin?.isSame == isSame)
        }
        #expect(place().twin(among: [:]) == nil)
    }

    @Test func `a volume is taken up anew under a better name, and not because it has lost one`() {
        let kinds: [VolumeIdentity] = [
            .init(kind: "ext4", source: "/dev/sdb1"), .init(kind: "ext4", label: "EOS", source: "/dev/sdb1"),
            .init(kind: "ext4", uuid: "1", label: "EOS", source: "/dev/sdb1"),
            .init(kind: "ext4", uuid: "1", label: "EOS", fsid: "f", source: "/dev/sdb1"),
        ]
        for (before, old) in kinds.enumerated() {
            for (after, new) in kinds.enumerated() {
                #expect(place(old).isStill(new) == (after <= before), "\(old) \(new)")
            }
            #expect(place(old).weakerKeys == kinds[..<before].reversed().map { "\($0.key)/DCIM" })
            #expect(old.isWeak == (before < 2))
        }
        #expect(!place().isStill(VolumeIdentity(kind: "vfat", label: "EOS", source: "/dev/sdb1")))
        // Which of two was meant by the weaker name is not known.
        var double = place(kinds[3])
        double.distinguish()
        #expect(double.weakerKeys.isEmpty && place(kinds[3], isVolume: false).weakerKeys.isEmpty)
    }

    @Test func `of what was known by a weaker name, a volume keeps what is on it, by size and time`() async throws {
        let directory = try TemporaryDirectory()
        let root = try directory.makeDirectory("media/A/DCIM")
        let journal = try Journal(path: directory.path.appending("journal.sqlite"), now: .now)
        defer { journal.close() }
        for name in ["same.jpg", "other.jpg", "gone.jpg"] as [FilePath] {
            let file = try directory.write([1], to: FilePath("media/A/DCIM").pushing(name))
            let identity = try #require(try FileLook.look(at: file).identity)
            let arrival = FoundFile(
                root: root, path: name, identity: identity, volume: Volume(name: "X", key: "label:Untitled/DCIM"))
            let plan = Plan(
                route: "all", category: "images", key: name.string, mediaType: "image/jpeg", destinations: ["here"])
            _ = try await journal.admit(
                FileAdmission(arrival, plan: plan, lanes: ["here": .small], uptimes: ["here": 0]), at: .now)
        }
        try directory.write([1, 2], to: "media/A/DCIM/other.jpg")
        try remove(root.appending("gone.jpg"))
        var named = Self.card
        named.uuid = "1234-ABCD"
        var place = place(named)
        try await Shared.test(journal, try EventLog(nil)).volumeArrived(
            &place, at: root, WatchSettings(path: root), isNew: false)
        let key = try #require(place.volume.key)
        #expect(key.hasPrefix("uuid:"))
        let kept = try await journal.jobs(FileFilter(limit: 10)).filter { $0.file.volume == key }
        #expect(kept.map(\.file.path) == ["same.jpg"])
    }

    @Test func `what was edited while its card was out, and was to be deleted, is not deleted`() async throws {
        var named = Self.card
        named.uuid = "1234-ABCD"
        var place = place(named)
        let bench = try await DisposalBench(.delete, volume: Volume(name: "X", key: place.volume.key))
        defer { bench.journal.close() }
        try edit(bench.file, "CONTENT")
        try await Shared.test(bench.journal, try EventLog(nil)).volumeArrived(
            &place, at: bench.root, WatchSettings(path: bench.root), isNew: false)
        #expect(try await bench.dispose().disposition?.contains("no checksum shows") == true)
        #expect(try text(bench.file) == "CONTENT")
    }

    @Test func `where no time of change is kept, age counts until a volume has been listed once`() async throws {
        let directory = try TemporaryDirectory()
        let journal = try Journal(path: directory.path.appending("journal.sqlite"), now: .now)
        defer { journal.close() }
        for key in ["uuid:1/DCIM", "uuid:2/DCIM"] { _ = try await journal.firstSeen(root: FilePath(key), now: .now) }
        let card = Volume(name: "X", key: "uuid:1/DCIM")
        let fat = try #require(card.firstListing(2_000_000_000))
        #expect(try await !journal.wasListed(fat))
        try await journal.setListed(fat, at: .now)
        #expect(try await journal.wasListed(fat))
        #expect(try await !journal.wasListed("uuid:2/DCIM"))
        // Others tell by themselves what came later, and a folder that stays is told of what comes.
        #expect(card.firstListing(0) == nil && Volume(name: "X").firstListing(2_000_000_000) == nil)
    }

    @Test func `volumes of one name that are there together are known apart`() {
        var (first, second) = (place(device: 2), place(device: 3))
        let plain = first.volume
        first.distinguish()
        second.distinguish()
        #expect(Set([plain.key, first.volume.key, second.volume.key]).count == 3)
        // In keys of files they have their name.
        #expect(first.volume.name == "Untitled" && second.volume.name == "Untitled")
        // It stays known whose copy it is: the third is like the second.
        #expect(place(device: 4).twin(among: ["/media/B": first])?.isSame == false)
        #expect(place(device: 2).twin(among: ["/media/B": first])?.isSame == true)
    }
}

/// What is told of a watched folder to those who wonder why a file is not there.
@Suite struct RootStatusTests {
    @Test func `a watched folder says how it is watched, with how many watches, and when it heard last`() async throws {
        let scene = try Scene()
        try scene.drop("early/a")
        try await scene.run { stage in
            try await stage.finished("early/a")
            try await eventually("it is watched") { stage.rootStatus?.state == .watching }
            #expect(
                stage.rootStatus?.mode == .inotify && stage.rootStatus?.watches == 2 && stage.rootStatus?.polled == 0)
            let before = WallTime.now
            try scene.drop("b")
            try await eventually("it has heard of it") { stage.rootStatus?.lastEvent.map { $0 >= before } ?? false }
        }
    }

    @Test
    func `a watched folder that is a symlink says where that leads, and is watched once a folder is there`()
        async throws
    {
        var scene = try Scene()
        let link = scene.directory.path.appending("link")
        try makeSymlink(link, to: scene.root)
        let target = scene.root
        scene.watch[0].path = link
        try await scene.run { stage in
            func state() -> RootStatus.State? { stage.rootStatus?.state }
            let reason =
                "a symlink to \(target.display); name its target in 'path', because Inlet does not follow it"
            try await eventually("it is said") { state() == .failing(reason) }
            try remove(link)
            try await eventually("nothing is there") { state() == .missing }
            try scene.directory.makeDirectory("link")
            try await eventually("it is watched") { state() == .watching }
            #expect(stage.events.count("watch.lost") == 2)
        }
    }

    @Test func `a polled folder has no watches, and hears of what its passes find`() async throws {
        let scene = try Scene.polled()
        try await scene.run { stage in
            try await eventually("it is polled") { stage.rootStatus?.mode == .poll }
            #expect(stage.rootStatus?.watches == 0 && stage.rootStatus?.lastEvent == nil)
            try await stage.process("a")
            try await eventually("it has heard of it") { stage.rootStatus?.lastEvent != nil }
            let heard = stage.rootStatus?.lastEvent
            try await eventually("another pass has ended") { stage.rootStatus?.settling == 0 }
            #expect(stage.rootStatus?.lastEvent == heard)
        }
    }

    /// More than are listed between two looks at the events, so that the status is shown in the middle of the listing.
    @Test func `a folder is starting until its first listing has ended`() async throws {
        var scene = try Scene()
        for number in 0..<4500 { try scene.drop(FilePath("\(number)"), "") }
        scene.watch[0].existing = .skip
        let view = Mutex<AgentControl?>(nil)
        let states = Mutex<[RootStatus.State]>([])
        scene.onEvent = { event in
            guard case .watchAdded = event, let root = view.withLock({ $0?.live?.roots.first }) else { return }
            states.withLock { $0.append(root.state) }
        }
        let stage = try await Stage(scene)
        defer { stage.journal.close() }
        view.withLock { $0 = stage.agent.control }
        try await whileRunning(stage.agent.services) {
            try await eventually("it is watched") { stage.rootStatus?.state == .watching }
            #expect(states.withLock { $0 } == [.starting])
        }
    }
}

@Suite struct FoundRootsTests {
    /// A mount that is only said to be: nothing is asked of it.
    private func table(_ mounts: [(point: FilePath, type: String)]) -> MountTable {
        let text = mounts.enumerated().map { number, mount in
            "\(number + 2) 1 0:\(number + 40) / \(mount.point.string) rw - \(mount.type) x:/y rw"
        }
        return MountTable(parsing: Array(text.joined(separator: "\n").utf8))
    }

    @Test func `a pattern does not reach into other machines' folders, at any of its levels`() throws {
        let directory = try TemporaryDirectory()
        for folder in ["media/card/DCIM", "media/nas/DCIM", "media/disk/DCIM", "media/old/DCIM"] as [FilePath] {
            try directory.makeDirectory(folder)
        }
        let media = directory.path.appending("media")
        let mounts = table([
            (media.appending("card"), "vfat"), (media.appending("nas"), "nfs4"), (media.appending("disk"), "fuseblk"),
            (media.pushing("old/DCIM"), "cifs"),
        ])
        let found = FoundRoots(try RootPattern(media.pushing("*/DCIM")), mounts: mounts)
        #expect(Set(found.roots.keys) == [media.pushing("card/DCIM"), media.pushing("disk/DCIM")])
        #expect(found.servers == [media.appending("nas"), media.pushing("old/DCIM")])
        // Nor is it asked to tell of what comes there.
        #expect(!found.parents.contains(media.appending("nas")) && found.parents.contains(media.appending("card")))
        let whole = FoundRoots(try RootPattern(media.appending("*")), mounts: mounts)
        #expect(Set(whole.roots.keys) == Set(["card", "disk", "old"].map { media.pushing(FilePath($0)) }))
    }

    @Test func `a pattern that begins on another machine's folder is followed there`() throws {
        let directory = try TemporaryDirectory()
        let slot = try directory.makeDirectory("share/A/DCIM")
        let share = directory.path.appending("share")
        let found = FoundRoots(try RootPattern(share.pushing("*/DCIM")), mounts: table([(share, "nfs4")]))
        #expect(Set(found.roots.keys) == [slot] && found.servers.isEmpty)
    }

    @Test func `a folder that cannot be looked at for the moment is not gone`() throws {
        let directory = try TemporaryDirectory()
        for card in ["A", "B"] { try directory.makeDirectory(FilePath("media/\(card)/DCIM")) }
        let media = directory.path.appending("media")
        let pattern = try RootPattern(media.pushing("*/DCIM"))
        let lame = media.pushing("A/DCIM")
        var hidden = 0
        for seed in 0..<8 as Range<UInt64> {
            let number = KernelFaults.begin(KernelFaultPlan(below: [lame], seed: seed, count: 1, every: 1))
            let found = FoundRoots(pattern, mounts: table([]))
            let code = try #require(KernelFaults.end(number)?.injected.first?.code)
            #expect(found.roots[media.pushing("B/DCIM")] != nil)
            // A folder that this user may not see is none of his.
            if code == .permissionDenied { continue }
            #expect(found.isUnanswered(lame) && !found.isUnanswered(media.pushing("B/DCIM")), "\(code)")
            hidden += 1
        }
        #expect(hidden > 0)
    }
}

/// A watched folder that is empty although files of it are known. No mounts are needed: it looks the same where a share's
/// server has lost its disk.
@Suite struct EmptyRootTests {
    @Test func `a folder that somebody empties while it is watched is no alarm, then or later`() async throws {
        let scene = try Scene()
        try await scene.run { stage in
            let file = try await stage.process("a").file.fullPath
            try remove(file)
        }
        try await scene.run { stage in
            try await stage.process("b")
            #expect(stage.events.count("watch.paused") == 0)
        }
    }

    @Test func `one that is empty at the start is paused with an alarm until the first file comes`() async throws {
        let scene = try Scene()
        try await scene.run { stage in try await stage.process("a") }
        try remove(scene.root.appending("a"))
        try await scene.run { stage in
            try await eventually("it is guarded") { stage.isGuarded }
            #expect(stage.events.count("watch.paused") == 1)
            try await stage.process("b")
            try await eventually("it is not guarded") { !stage.isGuarded }
            #expect(stage.events.count("watch.paused") == 1)
        }
    }

    @Test func `what waits of an empty folder is not lost, and goes when it is back`() async throws {
        let scene = try Scene()
        scene.here.always(.stall)
        try await scene.run { stage in
            for name in ["a", "b"] as [FilePath] { try scene.drop(name) }
            try await eventually("both are on their way") { scene.here.record.running == 2 }
        }
        scene.here.always(.deliver)
        let away = scene.directory.path.appending("away")
        try move(scene.root, to: away)
        try scene.directory.makeDirectory("drop")
        try await scene.run { stage in
            for name in ["a", "b"] as [FilePath] {
                try await stage.job(name, "put off") { $0.deliveries[0].code == .sourceGone }
            }
            try await eventually("it is paused") { stage.isGuarded }
            #expect(try await stage.jobs().allSatisfy { $0.file.state == .pending && $0.deliveries[0].state == .ready })
        }
        try remove(scene.root)
        try move(away, to: scene.root)
        try await scene.run { stage in
            try await eventually("it is watched") { stage.events.count("watch.added") == 1 }
            // Not after half a minute.
            _ = try await stage.agent.control.setPaused(false, "here", by: "test")
            for name in ["a", "b"] as [FilePath] { try await stage.finished(name) }
            #expect(try await stage.jobs().count == 2)
            #expect(stage.events.count("watch.paused") == 0)
        }
    }

    @Test func `a person can say that it is right to be empty`() async throws {
        let scene = try Scene()
        try await scene.run { stage in try await stage.process("a") }
        try remove(scene.root.appending("a"))
        try await scene.run { stage in
            try await eventually("it is guarded") { stage.isGuarded }
            #expect(try await stage.agent.control.resume(root: stage.root, by: "test"))
            try await eventually("it is watched") { stage.events.count("watch.added") == 1 && !stage.isGuarded }
        }
    }

    @Test func `a polled folder that is empty at once is paused, and goes on with what it has again`() async throws {
        let scene = try Scene.polled()
        try await scene.run { stage in
            _ = try await stage.agent.control.setPaused(true, "here", by: "test")
            try await stage.admit("a")
            // Found by a pass that began when the first was there.
            try await stage.admit("b")
            let away = try scene.directory.makeDirectory("away")
            for name in ["a", "b"] as [FilePath.Component] {
                try move(stage.root.appending(name), to: away.appending(name))
            }
            try await eventually("it is guarded") { stage.isGuarded }
            for name in ["a", "b"] as [FilePath.Component] {
                try move(away.appending(name), to: stage.root.appending(name))
            }
            // Renaming has changed their ctime.
            try await eventually("both are known") { stage.events.count("job.unchanged") == 2 }
            _ = try await stage.agent.control.setPaused(false, "here", by: "test")
            for name in ["a", "b"] as [FilePath] { try await stage.finished(name) }
            #expect(scene.here.record.orders.count == 2)
        }
    }
}
