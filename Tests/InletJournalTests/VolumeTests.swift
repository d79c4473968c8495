import InletCore
import InletJournal
import InletJournalSupport
import SystemPackage
import Testing

/// Files of removable volumes: the same card is known at every mount point, and another one at the same is not it.
@Suite(.seated) struct VolumeTests {
    private let bench: Bench
    init() throws { bench = try Bench() }

    private static let card = "uuid:1234-ABCD/DCIM"
    private static let other = "uuid:9999-0000/DCIM"
    private static let volume = Volume(name: "EOS", key: card)

    private func admission(
        _ path: FilePath, on volume: String, at root: FilePath, expire: Duration? = nil
    ) -> FileAdmission {
        let plan = Plan(
            route: "all", category: "images", key: path.string, mediaType: "image/jpeg", destinations: ["r2"],
            retry: RetryPolicy(expire: expire))
        let arrival = FoundFile(root: root, path: path, identity: .test(), volume: Volume(name: "EOS", key: volume))
        return FileAdmission(arrival, plan: plan, lanes: ["r2": .big], uptimes: ["r2": 0])
    }

    @Test func `a card is known at another mount point, and another card at the same is not it`() async throws {
        let first = admission("a.jpg", on: Self.card, at: "/media/A")
        let id = try await bench.admit(first)
        let moved = admission("a.jpg", on: Self.card, at: "/media/B")
        #expect(try await bench.recall([moved.arrival]) == [.known])
        #expect(try await bench.offer(moved) == .known(id: id))
        let stranger = admission("a.jpg", on: Self.other, at: "/media/A")
        #expect(try await bench.recall([stranger.arrival]) == [.new])
        let second = try await bench.admit(stranger)
        // Neither took the other's place, and their keys do not meet.
        #expect(try await bench.job(id).file.state == .pending)
        #expect(try await bench.job(second).deliveries.first?.key == "a_2.jpg")
        #expect(try await bench.job(second).file.volume == Self.other)
    }

    @Test func `what waits of a card is where the card is, and of an absent one nowhere`() async throws {
        try await bench.offer(admission("a.jpg", on: Self.card, at: "/media/A"))
        try await bench.journal.volumeArrived(Self.other, at: "/media/A")
        let away = try #require(try await bench.journal.unfinished(of: Self.card, after: 0, limit: 10).first)
        #expect(away.root != "/media/A")
        try await bench.journal.volumeArrived(Self.card, at: "/media/B")
        let back = try #require(try await bench.journal.unfinished(of: Self.card, after: 0, limit: 10).first)
        #expect(back.fullPath == "/media/B/a.jpg")
        #expect(try await bench.journal.unfinished(of: Self.card, after: back.id, limit: 10).isEmpty)
    }

    @Test func `what waits for its card does not expire, and goes at once when that is back`() async throws {
        let wanted = admission("a.jpg", on: Self.card, at: "/media/A", expire: .seconds(5))
        try await bench.offer(wanted)
        let later = Bench.start + .seconds(3600)
        try await bench.settle(.again(at: later, countsAttempt: false, code: .sourceGone, reason: "it is not mounted"))
        #expect(try await bench.setUptime("r2", 6000).isEmpty)
        #expect(try await bench.journal.nextExpiries(of: ["r2"]).isEmpty)
        // Where it was is told, also when another one is there now.
        for _ in 0..<2 {
            let away = try await bench.journal.awayVolumes()
            #expect(away.map(\.volume) == [Self.card] && away.map(\.root) == ["/media/A"] && away.map(\.files) == [1])
            try await bench.journal.volumeArrived(Self.other, at: "/media/A")
        }
        try await bench.journal.volumeIsBack(Self.card, at: Bench.start)
        let delivery = try #require(try await bench.job(1).deliveries.first)
        #expect(delivery.nextAt == Bench.start && delivery.code == nil)
        #expect(try await bench.journal.awayVolumes().isEmpty)
        #expect(delivery.expiresAt == 11_000)
    }

    @Test func `a card stands whole once all of it has ended`() async throws {
        try await bench.offer(admission("a.jpg", on: Self.card, at: "/media/A"))
        #expect(try await bench.journal.standing(of: Self.card) == nil)
        try await bench.settle(.delivered(.test()))
        #expect(try await bench.journal.standing(of: Self.card) == nil)
        try await bench.finishAll()
        let standing = try #require(try await bench.journal.standing(of: Self.card))
        #expect(standing.proved == 1 && standing.bytes == 10 && standing.unproved.isEmpty)
        #expect(try await bench.journal.standing(of: Self.other)?.proved == 0)
    }

    @Test func `with a number, a card stands whole once as many destinations have proved each file`() async throws {
        for (name, destinations) in [("a.jpg", ["r2", "nas", "tape"]), ("b.jpg", ["r2"])] {
            let arrival = FoundFile(root: "/media/A", path: FilePath(name), identity: .test(), volume: Self.volume)
            let plan = Plan(
                route: "all", category: "images", key: name, mediaType: "image/jpeg", destinations: destinations)
            let lanes = Dictionary(uniqueKeysWithValues: destinations.map { ($0, Lane.big) })
            try await bench.offer(FileAdmission(arrival, plan: plan, lanes: lanes, uptimes: [:]))
        }
        func standing(_ proofs: Int?) async throws -> VolumeStanding? {
            try await bench.journal.standing(of: Self.card, proofs: proofs)
        }
        try await bench.settle(.delivered(.test()))
        #expect(try await standing(1) == nil)
        try await bench.settleAndFinish(.delivered(.test()))
        // One needs two, the other has no more than one.
        #expect(try await standing(1)?.proved == 2)
        #expect(try await standing(2) == nil)
        try await bench.settle(.delivered(.test()), of: "nas")
        let two = try #require(try await standing(2))
        #expect(two.proved == 2 && two.unproved.isEmpty)
        #expect(try await standing(3) == nil)
        #expect(try await standing(nil) == nil)
        // The third fails for good: two have it.
        try await bench.settle(.test(.failed), of: "tape")
        #expect(try await standing(2) == nil)
        try await bench.finishAll()
        #expect(try await standing(2)?.proved == 2)
        for proofs in [3, nil] { #expect(try await standing(proofs)?.unproved == ["a.jpg"]) }
    }

    @Test func `a card that is mounted anew is not read again to know its files`() async throws {
        try await bench.offer(admission("a.jpg", on: Self.card, at: "/media/A"))
        func recall(_ identity: FileIdentity, tolerance: Int64) async throws -> KnownFile? {
            let arrival = FoundFile(root: "/media/B", path: "a.jpg", identity: identity, volume: Self.volume)
            return try await bench.journal.recall([arrival], tolerance: tolerance).first
        }
        #expect(try await recall(.test(inode: 7, device: 9), tolerance: 0) == .known)
        // FAT makes up inodes and ctime, and knows every second second.
        let second: Int64 = 1_000_000_000
        #expect(try await recall(.test(modified: second, changed: 5, inode: 7), tolerance: 2 * second) == .known)
        #expect(try await recall(.test(modified: 3 * second), tolerance: 2 * second) == .new)
        #expect(try await recall(.test(size: 11), tolerance: 2 * second) == .new)
        // Elsewhere ctime tells that somebody has touched it.
        guard case .touched = try await recall(.test(changed: 5), tolerance: 0) else {
            Issue.record("a touched file was believed")
            return
        }
    }

    @Test func `a card that gets a better name keeps its files, and its first day`() async throws {
        let (label, stranger) = ("label:EOS/DCIM", "label:OTHER/DCIM")
        for (path, volume) in [("a.jpg", label), ("b.jpg", stranger), ("c.jpg", label), ("c.jpg", Self.card)] {
            try await bench.offer(admission(FilePath(path), on: volume, at: "/media/A"))
        }
        // From a time when the folder was watched by its path; and one of another folder.
        for (root, path) in [("/media/A", "d.jpg"), ("/media/B", "e.jpg")] as [(FilePath, FilePath)] {
            var fixed = admission(path, on: label, at: root)
            fixed.arrival.volume = Volume(name: "EOS")
            try await bench.offer(fixed)
        }
        _ = try await bench.journal.firstSeen(root: FilePath(label), now: Bench.start)
        _ = try await bench.journal.firstSeen(root: FilePath(Self.card), now: Bench.start + .seconds(9))
        try await bench.journal.setListed(label, at: Bench.start)
        #expect(try await !bench.journal.wasListed(Self.card))
        func inheritance(after last: FilePath, limit: Int = 10) async throws -> [FileRow] {
            try await bench.journal.inheritance(of: Self.card, from: [label], at: "/media/A", after: last, limit: limit)
        }
        // What is known by the better name already needs no other.
        let files = try await inheritance(after: "")
        #expect(files.map(\.path) == ["a.jpg", "d.jpg"])
        #expect(try await inheritance(after: "a.jpg").map(\.path) == ["d.jpg"])
        #expect(try await inheritance(after: "", limit: 1).map(\.path) == ["a.jpg"])
        try await bench.journal.inherit(files, by: Self.card)
        #expect(try await bench.journal.wasListed(Self.card))
        #expect(try await inheritance(after: "").isEmpty)
        for path in ["a.jpg", "d.jpg"] as [FilePath] {
            #expect(try await bench.recall([admission(path, on: Self.card, at: "/media/B").arrival]) == [.known])
        }
        #expect(
            try await bench.journal.firstSeen(root: FilePath(Self.card), now: Bench.start + .seconds(9)) == Bench.start)
    }

    @Test func `what was taken away from a folder is not inherited by a card`() async throws {
        try await bench.offer(admission("a.jpg", on: "label:EOS/DCIM", at: "/media/A"))
        try await bench.settleAndFinish(.delivered(.test()), Disposition.deleted)
        let files = try await bench.journal.inheritance(
            of: Self.card, from: ["label:EOS/DCIM"], at: "/media/A", after: "", limit: 10)
        #expect(files.isEmpty)
    }

    @Test func `an open unit goes with its card, also when all that has come of it has ended`() async throws {
        var refused = FileAdmission(
            FoundFile(root: "/media/A", path: "gigs/X/a", identity: .test(), volume: Self.volume),
            rejectedBy: Route(name: "all", to: ["r2"]), reason: "too large")
        refused.unit = "gigs/X"
        try await bench.offer(refused)
        try await bench.finishAll()
        try await bench.journal.volumeArrived(Self.other, at: "/media/A")
        #expect(try await bench.journal.openUnits("/media/A").isEmpty)
        try await bench.journal.volumeArrived(Self.card, at: "/media/B")
        #expect(try await bench.journal.openUnits("/media/B").map(\.unit) == ["gigs/X"])
    }

    @Test func `by what a folder was recognised is remembered, and whether it holds files`() async throws {
        #expect(try await bench.journal.mark(of: "/in") == nil)
        let mark = RootMark(volume: VolumeIdentity(kind: "ext4", uuid: "u", source: "/dev/sda1"))
        try await bench.journal.setMark(mark, of: "/in", at: Bench.start)
        #expect(try await bench.journal.mark(of: "/in") == mark)
        #expect(try await bench.journal.firstSeen(root: "/in", now: Bench.start + .seconds(9)) == Bench.start)
        #expect(try await !bench.journal.holdsFiles(of: "/in"))
        try await bench.admit("a.txt")
        #expect(try await bench.journal.holdsFiles(of: "/in"))
        // What we were about to take away ourselves need not be there.
        try await bench.settle(.delivered(.test()))
        #expect(try await bench.journal.holdsFiles(of: "/in"))
        try await bench.journal.intend(1, [1])
        #expect(try await !bench.journal.holdsFiles(of: "/in"))
        try await bench.journal.intend(1, nil)
        try await bench.finishAll(Disposition.deleted)
        #expect(try await !bench.journal.holdsFiles(of: "/in"))
    }
}

/// The same inode under another path; a rename changes ctime.
@Suite(.seated) struct RenameTests {
    private let bench: Bench
    init() throws { bench = try Bench() }

    private static let moved = FileIdentity.test(changed: 2)

    private func renamed(to identity: FileIdentity = moved, _ path: String = "b.txt") async throws -> RenamedFile? {
        try await bench.journal.renamed(from: "a.txt", to: .test(path, identity))
    }

    private func plan(_ key: String) -> Plan {
        var plan = Plan(
            route: "all", category: "images", key: key, mediaType: "image/png", with: ["label": key],
            destinations: ["r2"])
        plan.labels = ["event": key]
        return plan
    }

    @Test func `a file that waits goes on under its new path, and with its new key`() async throws {
        let id = try await bench.admit("a.txt", to: ["r2", "s3"])
        let found = try #require(try await renamed())
        #expect(found.file.id == id && found.isUntold)
        #expect(try await bench.journal.rename(found, to: .test("b.txt", Self.moved), plan: plan("b.txt")))
        let job = try await bench.job(id)
        #expect(job.file.path == "b.txt" && job.file.identity == Self.moved && job.file.state == .pending)
        #expect(job.file.category == "images" && job.file.mediaType == "image/png")
        #expect(job.file.labels == ["event": "b.txt"] && job.deliveries.map(\.key) == ["b.txt", "b.txt"])
        #expect(job.deliveries.map(\.fields) == [["label": "b.txt"], ["label": "b.txt"]])
        #expect(try await bench.recall([.test("b.txt", Self.moved), .test("a.txt")]) == [.known, .new])
        #expect(try await bench.settle(.test(.delivered))?.key == "b.txt")
    }

    @Test func `the key that it gave up is free, and one that is taken gets a number`() async throws {
        try await bench.admit("a.txt")
        try await bench.admit("c.txt", .test(inode: 3), key: "b.txt")
        let found = try #require(try await renamed())
        #expect(try await bench.journal.rename(found, to: .test("b.txt", Self.moved), plan: plan("b.txt")))
        #expect(try await bench.job(found.file.id).deliveries.map(\.key) == ["b_2.txt"])
        let next = try await bench.admit("d.txt", .test(inode: 4), key: "a.txt")
        #expect(try await bench.job(next).deliveries.map(\.key) == ["a.txt"])
    }

    @Test func `one that a destination has heard of keeps its key, but not while it is being sent`() async throws {
        let id = try await bench.admit("a.txt")
        try await bench.hold { _ in
            let found = try #require(try await renamed())
            #expect(!found.isUntold)
            #expect(try await !bench.journal.rename(found, to: .test("b.txt", Self.moved), plan: nil))
            return .again()
        }
        let found = try #require(try await renamed())
        #expect(!found.isUntold)
        #expect(try await bench.journal.rename(found, to: .test("b.txt", Self.moved), plan: plan("b.txt")))
        let job = try await bench.job(id)
        #expect(job.file.path == "b.txt" && job.deliveries.map(\.key) == ["a.txt"])
    }

    @Test func `one that has arrived is known under its new path`() async throws {
        let id = try await bench.settled("a.txt", .delivered, finishes: true)
        let found = try #require(try await renamed())
        #expect(try await bench.journal.rename(found, to: .test("b.txt", Self.moved), plan: nil))
        let job = try await bench.job(id)
        #expect(job.file.path == "b.txt" && job.file.state == .delivered && job.deliveries.map(\.key) == ["a.txt"])
        #expect(try await bench.recall([.test("b.txt", Self.moved)]) == [.known])
    }

    @Test(arguments: [
        FileIdentity.test(size: 11, changed: 2), .test(modified: 2, changed: 2), .test(changed: 2, inode: 2),
        .test(changed: 2, device: 2),
    ])
    func `an inode that was used again is another file`(identity: FileIdentity) async throws {
        try await bench.admit("a.txt")
        #expect(try await renamed(to: identity) == nil)
    }

    @Test(arguments: [DeliveryState.failed, .expired, .cancelled, .gone, .superseded])
    func `what did not arrive is tried anew under its new name`(end: DeliveryState) async throws {
        try await bench.settled("a.txt", end)
        #expect(try await renamed() == nil)
    }

    @Test func `what we took away ourselves is new wherever it is put`() async throws {
        try await bench.settled("a.txt", .delivered)
        try await bench.finishAll(Disposition.archived("/in/.inlet/done/a.txt"))
        #expect(try await renamed() == nil)
    }

    @Test func `a path that the journal knows is judged by what it knows of it`() async throws {
        try await bench.admit("a.txt")
        try await bench.admit("b.txt", .test(inode: 2))
        #expect(try await renamed() == nil)
    }

    @Test func `a file that changed hands meanwhile is not renamed`() async throws {
        try await bench.admit("a.txt")
        let found = try #require(try await renamed())
        try await bench.settle(.test(.delivered))
        #expect(try await !bench.journal.rename(found, to: .test("b.txt", Self.moved), plan: plan("b.txt")))
        #expect(try await bench.job(found.file.id).file.path == "a.txt")
    }
}
