import Foundation
import InletCore
import InletTestSupport
import SystemPackage
import Testing

@Suite struct RootGuardTests {
    private static let disk = VolumeIdentity(kind: "ext4", uuid: "disk", source: "/dev/sdb1")
    private static let system = VolumeIdentity(kind: "ext4", uuid: "system", source: "/dev/sda1")
    private static let layer = VolumeIdentity(kind: "overlay", source: "overlay")

    private func judge(_ before: RootMark?, _ now: RootMark, isEmpty: Bool = false, holdsFiles: Bool = true) -> Bool {
        RootMark.pauseReason(before: before, now: now, isEmpty: isEmpty, holdsFiles: holdsFiles) == nil
    }

    @Test func `another file system in the place of a known one is not watched, whatever is in it`() {
        let before = RootMark(volume: Self.disk)
        for isEmpty in [false, true] {
            #expect(!judge(before, RootMark(volume: Self.system), isEmpty: isEmpty))
            #expect(!judge(before, RootMark(volume: Self.layer), isEmpty: isEmpty))
        }
        #expect(judge(before, RootMark(volume: Self.disk)))
    }

    @Test func `a folder that was seen to be emptied is still that folder, one that is empty at once is suspicious`() {
        var elsewhere = Self.disk
        elsewhere.source = "/dev/sdz1"
        for (before, now) in [(Self.disk, Self.disk), (Self.disk, elsewhere), (Self.layer, Self.layer)] {
            let mark = RootMark(volume: before, folder: "drop")
            let empty = RootMark(volume: now, folder: "drop")
            #expect(!judge(mark, empty, isEmpty: true))
            #expect(judge(mark, empty, isEmpty: true, holdsFiles: false))
            #expect(judge(mark, empty))
            #expect(judge(RootMark(volume: before, folder: "drop", wasEmptied: true), empty, isEmpty: true))
            #expect(judge(RootMark(volume: before, wasEmptied: true), empty, isEmpty: true))
        }
    }

    @Test func `an empty folder under one of the same file system that is not mounted is not taken for it`() {
        let before = RootMark(volume: Self.disk, folder: "data/photos", wasEmptied: true)
        #expect(!judge(before, RootMark(volume: Self.disk, folder: "srv/photos"), isEmpty: true))
        #expect(judge(before, RootMark(volume: Self.disk, folder: "srv/photos")))
    }

    @Test func `what was written down before folders were asked for is read`() throws {
        let old = Array(#"{"volume":{"kind":"ext4","uuid":"disk","source":"/dev/sdb1"}}"#.utf8)
        #expect(try JSONDecoder().decode(RootMark.self, from: Data(old)) == RootMark(volume: Self.disk))
    }

    @Test func `another subvolume of a file system is another folder`() {
        var (before, now) = (Self.disk, Self.disk)
        (before.fsid, now.fsid) = ("a1", "a2")
        #expect(!judge(RootMark(volume: before), RootMark(volume: now)))
    }

    @Test func `where nothing tells file systems apart only an empty folder is suspicious`() {
        let memory = RootMark(volume: VolumeIdentity(kind: "tmpfs", fsid: "1", source: "tmpfs"))
        let now = RootMark(volume: VolumeIdentity(kind: "tmpfs", fsid: "2", source: "tmpfs"))
        for before in [nil, memory] {
            #expect(judge(before, now))
            #expect(!judge(before, now, isEmpty: true))
        }
    }

    @Test func `nothing is guarded of which the journal has no files`() {
        let before = RootMark(volume: Self.disk)
        #expect(judge(before, RootMark(volume: Self.system), isEmpty: true, holdsFiles: false))
        #expect(judge(nil, RootMark(volume: Self.layer), isEmpty: true, holdsFiles: false))
    }

    @Test func `volumes are told apart by the best that both have`() {
        let card = VolumeIdentity(kind: "vfat", uuid: "1234-ABCD", label: "EOS_DIGITAL", source: "/dev/sdb1")
        var other = card
        other.uuid = "9999-0000"
        #expect(card.isSame(as: other) == false)
        other.uuid = nil
        #expect(card.isSame(as: other) == nil)
        other.label = "ZOOM"
        #expect(card.isSame(as: other) == false)
        let share = VolumeIdentity(kind: "nfs", source: "nas:/photos")
        #expect(share.isSame(as: VolumeIdentity(kind: "nfs", source: "nas:/films")) == false)
        #expect(share.isSame(as: share) == true)
        let moved = VolumeIdentity(kind: "vfat", uuid: "1234-ABCD", label: "EOS_DIGITAL", source: "/dev/sdc1")
        #expect(card.isSame(as: moved) == true)
        #expect(card.key == moved.key)
    }

    @Test func `a volume is called by its label, else its UUID, else what is mounted`() {
        var volume = VolumeIdentity(kind: "vfat", uuid: "1234-ABCD", label: "EOS", fsid: "ff", source: "/dev/sdb1")
        #expect((volume.name, volume.key) == ("EOS", "fsid:ff"))
        volume.label = nil
        #expect(volume.name == "1234-ABCD")
        volume.uuid = nil
        #expect((volume.name, volume.key) == ("ff", "fsid:ff"))
        (volume.uuid, volume.fsid) = ("1234-ABCD", nil)
        #expect(volume.key == "uuid:1234-ABCD")
        (volume.uuid, volume.label) = (nil, "EOS")
        #expect(volume.key == "label:EOS")
        volume.label = nil
        #expect((volume.name, volume.key) == ("sdb1", "device:/dev/sdb1"))
        #expect(Volume(volume, folder: "DCIM").key == "device:/dev/sdb1/DCIM")
    }
}

@Suite struct PollBookTests {
    private let start = ContinuousClock.now
    /// Long before anything here.
    private let old: Int64 = 1_000_000_000_000_000_000
    private let today: Int64 = 2_000_000_000_000_000_000
    private var wall: WallTime { WallTime(nanoseconds: today) }

    private func list(
        _ book: inout PollState, _ modified: Int64, names: UInt64, after seconds: Double
    ) -> Bool? {
        let now = start.advanced(by: .seconds(seconds))
        book.begin("a", modified: modified, at: now)
        return book.listed("a", modified: modified, names: names, from: now)
    }

    private func act(
        _ book: PollState, _ modified: Int64, _ times: PollState.Times = .always, after seconds: Double
    ) -> PollState.ScanAction {
        book.act(
            on: "a", modified: modified, times: times, at: start.advanced(by: .seconds(seconds)),
            wall: wall + .seconds(seconds))
    }

    @Test func `an unchanged folder is listed until it is known, then skipped where its time can be trusted`() {
        var book = PollState()
        book.enter("a", modified: old, at: start)
        #expect(act(book, old, after: 1) == .files)
        #expect(list(&book, old, names: 7, after: 1) == nil)
        #expect(act(book, old, after: 1.5) == .files, "a second name may have come in the same tick of a coarse clock")
        #expect(list(&book, old, names: 7, after: 2) == nil)
        #expect(act(book, old, .always, after: 3) == .skip)
        #expect(act(book, old, .whenSeen, after: 3) == .names)
        #expect(act(book, old, .never, after: 3) == .names)
        #expect(act(book, old + 1, after: 3) == .files)
        #expect(book.names(in: "a") == 7)
    }

    @Test func `the files of a young folder are looked at every time, whatever the server's clock says`() {
        var book = PollState()
        let young = today
        book.enter("a", modified: young, at: start)
        _ = list(&book, young, names: 7, after: 10)
        #expect(act(book, young, after: 20) == .files)
        #expect(act(book, young, after: 601) == .skip)
        // A change that was witnessed is young, even where the server's clock is years behind.
        _ = list(&book, old, names: 8, after: 610)
        _ = list(&book, old, names: 8, after: 620)
        #expect(act(book, old, after: 630) == .files)
        #expect(act(book, old, after: 1211) == .skip)
        // A time in the future makes it young for ten minutes, not for ever.
        var other = PollState()
        let future = today + 86_400_000_000_000
        other.enter("a", modified: future, at: start)
        _ = list(&other, future, names: 7, after: 10)
        #expect(act(other, future, after: 20) == .files)
        #expect(act(other, future, after: 601) == .skip)
    }

    @Test func `listings show whether a file system keeps its folders' times`() {
        var book = PollState()
        book.enter("a", modified: old, at: start)
        #expect(list(&book, old, names: 1, after: 3) == nil)
        #expect(list(&book, old, names: 1, after: 6) == nil, "nothing changed, so nothing is shown")
        #expect(list(&book, old + 5, names: 2, after: 9) == true)
        #expect(list(&book, old + 5, names: 3, after: 9.5) == nil, "within one tick of a coarse clock")
        #expect(list(&book, old + 5, names: 3, after: 12) == nil)
        #expect(list(&book, old + 5, names: 4, after: 15) == false)
    }

    @Test func `a listing during which the folder was entered anew shows nothing`() {
        var book = PollState()
        book.enter("a", modified: old, at: start)
        book.begin("a", modified: old, at: start.advanced(by: .seconds(5)))
        book.enter("a", modified: old + 1, at: start.advanced(by: .seconds(6)))
        #expect(book.listed("a", modified: old, names: 1, from: start.advanced(by: .seconds(5))) == nil)
        #expect(act(book, old + 1, after: 7) == .files)
    }

    @Test func `removing a folder removes all below it, and no neighbour with a longer name`() {
        var book = PollState()
        for path in ["", "a", "a/b", "ab", "a/b/c"] as [FilePath] { book.enter(path, modified: old, at: start) }
        book.remove(below: "a")
        #expect(Set(book.directories) == ["", "ab"])
        book.remove("")
        #expect(book.directories == ["ab"] && book.count == 1 && !book.contains("a"))
    }

    @Test func `sums of names do not depend on their order, and tell one name from another`() {
        func sum(_ names: [String]) -> UInt64 {
            names.reduce(0) { $0 &+ PollState.sum(of: $1.utf8) }
        }
        #expect(sum(["a", "b", "c"]) == sum(["c", "a", "b"]))
        #expect(Set([sum([]), sum([""]), sum(["a"]), sum(["b"]), sum(["a", "a"]), sum(["ab"])]).count == 6)
    }

    @Test(arguments: [
        (0.0, 10.0, 10.0), (0.1, 10.0, 10.0), (1.0, 10.0, 49.0), (60.0, 10.0, 300.0), (60.0, 600.0, 600.0),
    ])
    func `the pause grows with the cost, to five minutes or what is asked for`(
        _ cost: Double, _ least: Double, _ pause: Double
    ) {
        #expect(PollState.pause(after: .seconds(cost), least: .seconds(least)) == .seconds(pause))
    }

    /// Names are added to a folder at random moments, on file systems with clocks of all kinds; passes come at random too.
    @Test(arguments: 0..<100)
    func `no name stays unseen, whatever the clock of the file system`(_ seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let tick = [1, 1_000_000, 1_000_000_000, 2_000_000_000].randomElement(using: &random) ?? 1
        let skew = Int64.random(in: -100_000...100_000, using: &random) * 1_000_000_000
        let keepsTime = Bool.random(using: &random)
        var (book, names, seen) = (PollState(), Set<UInt64>(), Set<UInt64>())
        var (milliseconds, modified): (Int64, Int64) = (0, old)
        var now: ContinuousClock.Instant { start.advanced(by: .milliseconds(milliseconds)) }
        func look() {
            let act = book.act(
                on: "", modified: modified, times: keepsTime ? .never : .always, at: now,
                wall: wall + .milliseconds(milliseconds))
            let sum = names.reduce(0) { $0 &+ PollState.sum(of: String($1).utf8) }
            if act == .skip || (act == .names && book.names(in: "") == sum) { return }
            book.begin("", modified: modified, at: now)
            seen = names
            _ = book.listed("", modified: modified, names: sum, from: now)
        }
        book.enter("", modified: modified, at: now)
        for _ in 0..<200 {
            milliseconds += Int64.random(in: 1...3000, using: &random)
            if Bool.random(using: &random) {
                names.insert(random.next())
                let time = today + skew + milliseconds * 1_000_000
                if !keepsTime { modified = time - time % Int64(tick) }
            } else {
                look()
            }
        }
        for _ in 0..<2 {
            milliseconds += 2001
            look()
        }
        #expect(seen == names)
    }
}
