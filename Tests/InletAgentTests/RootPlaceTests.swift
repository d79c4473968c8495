import InletCore
import InletJournal
import InletJournalSupport
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

@testable import InletAgent

/// Which volumes are one, by numbers and names.
@Suite struct RootPlaceTests {
    private static let card = VolumeIdentity(kind: "vfat", label: "Untitled", source: "/dev/sdb1")

    private func place(
        _ identity: VolumeIdentity = card, device: UInt64 = 1, folder: String = "DCIM", isVolume: Bool = true
    ) -> VolumePlace {
        let numbers = FileIdentity(size: 0, modified: 0, changed: 0, inode: 1, device: device)
        return VolumePlace(place: FolderPlace(numbers), identity: identity, folder: folder, isVolume: isVolume)
    }

    @Test func `a file system that is mounted twice is watched once, and a copy of it is another`() {
        let others: [FilePath: VolumePlace] = ["/media/A": place(), "/media/B": place(device: 2)]
        let claims: [(VolumePlace, VolumePlace.Claim)] = [
            (place(), .twice(other: "/media/A")), (place(device: 2), .twice(other: "/media/B")),
            (place(device: 3), .alike(other: "/media/A")), (place(folder: "PRIVATE"), .free),
            (place(VolumeIdentity(kind: "vfat", label: "EOS")), .free), (place(isVolume: false), .free),
        ]
        for (new, claim) in claims { #expect(new.claim(among: others) == claim) }
        #expect(place().claim(among: [:]) == .free)
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
            let arrival = Arrival(
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
        let place = place(named)
        let arrivals = VolumeArrivals(shared: .test(journal, try EventLog(nil)))
        try await arrivals.arrived(place, at: root, isNew: false)
        let key = try #require(place.volume.key)
        #expect(key.hasPrefix("uuid:"))
        let kept = try await journal.jobs(FileFilter(limit: 10)).filter { $0.file.volume == key }
        #expect(kept.map(\.file.path) == ["same.jpg"])
    }

    @Test func `what was edited while its card was out, and was to be deleted, is not deleted`() async throws {
        var named = Self.card
        named.uuid = "1234-ABCD"
        let place = place(named)
        let bench = try await DisposalBench(.delete, volume: Volume(name: "X", key: place.volume.key))
        defer { bench.journal.close() }
        try edit(bench.file, "CONTENT")
        let arrivals = VolumeArrivals(shared: .test(bench.journal, try EventLog(nil)))
        try await arrivals.arrived(place, at: bench.root, isNew: false)
        #expect(try await bench.dispose().disposition?.contains("no checksum tells") == true)
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
        #expect(place(device: 4).claim(among: ["/media/B": first]) == .alike(other: "/media/B"))
        #expect(place(device: 2).claim(among: ["/media/B": first]) == .twice(other: "/media/B"))
    }
}
