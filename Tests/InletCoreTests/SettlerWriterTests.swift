import InletCore
import InletTestSupport
import SystemPackage
import Testing

/// Writers as they are: they pause, reopen, rewrite what they have written, and their clocks jump.
struct SettlerWriterTests: SettlerTimes {
    /// A file that is written at the given seconds, for `open` seconds each, and closed in between; the kernel tells of every close.
    /// - Returns: when it was taken, with what size.
    private func take(_ writes: [Double], open: Double = 0.1, settle: Duration) -> (second: Double, size: Int64)? {
        var settler = Settler(settle: settle)
        var next = 0
        var now = 0.0
        while now < 200 {
            while next < writes.count, writes[next] + open <= now {
                #expect(settler.observe("page.pdf", at: at(writes[next] + open)) == true)
                next += 1
            }
            for path in settler.due(at: at(now)) {
                let last = writes.lastIndex { $0 <= now } ?? 0
                let isOpen = writes[last] + open > now
                let found = identity(min(writes[last] + open, now), size: Int64(last + 1))
                let verdict = settler.judge(path, .file(found, busy: isOpen), at: at(now), wall: wall(now))
                if case .settled(let taken) = verdict { return (now, taken.size) }
            }
            now += 0.05
        }
        return nil
    }

    @Test(
        arguments: [
            [0], [0, 0.2, 0.4], [0, 4, 8, 12], [0, 4.8, 9.6, 14.4], [0, 1, 5.5, 9.9, 14.5],
        ] as [[Double]])
    func `a writer that reopens within the settle time is waited for, to its last page`(writes: [Double]) throws {
        let taken = try #require(take(writes, settle: .seconds(5)))
        #expect(taken.size == Int64(writes.count))
        #expect(taken.second >= (writes.last ?? 0) + 5)
    }

    @Test func `a gap longer than the settle time ends the file; the rest is a new arrival`() throws {
        let taken = try #require(take([0, 9], settle: .seconds(5)))
        #expect(taken.size == 1)
    }

    @Test func `a second pass that holds the file open is waited for, however long it is silent`() throws {
        // ffmpeg -movflags +faststart: the file is closed, opened again, and rewritten.
        let taken = try #require(take([0, 3], open: 60, settle: .seconds(1)))
        #expect(taken.size == 2 && taken.second >= 63)
    }

    @Test func `changes are counted, so that one who waits sees why`() {
        var settler = Settler(settle: .seconds(1))
        #expect(settler.observe("a", at: at(0)) == true)
        for turn in 1...4 {
            let now = Double(turn)
            #expect(settler.due(at: at(now)) == ["a"])
            let look = file(now, size: Int64(turn))
            #expect(settler.judge("a", look, at: at(now), wall: wall(now)) == .waiting)
        }
        #expect(settler.oldest().map(\.changes) == [3])
        #expect(settler.oldest().map(\.reason) == ["it keeps changing: 3 times so far"])
    }

    @Test func `a writer that never leaves a file quiet is seen, though it is never looked at`() {
        var settler = Settler(settle: .seconds(5))
        for turn in 0..<400 {
            // Two events of one writing.
            #expect(settler.observe("log", at: at(Double(turn) * 3)) == true)
            #expect(settler.observe("log", at: at(Double(turn) * 3 + 0.1)) == true)
            #expect(settler.due(at: at(Double(turn) * 3 + 2.9)).isEmpty)
        }
        #expect(settler.oldest().map(\.changes) == [399])
        #expect(settler.overdue(settler.oldest(), after: .seconds(900), at: at(1200)).map(\.path) == ["log"])
        #expect(settler.oldest().map(\.reason) == ["it keeps changing: 399 times so far"])
    }

    @Test func `files that wait for others or for room do not hide one that somebody holds`() {
        var settler = Settler(settle: .seconds(1))
        for number in 0..<200 { #expect(settler.discover(FilePath("waits\(number)"), at: at(0)) == true) }
        for path in settler.due(at: at(0)) {
            #expect(settler.judge(path, .waiting(for: .seconds(600), why: "x"), at: at(0), wall: wall(0)) == .waiting)
        }
        #expect(settler.observe("held", at: at(1)) && settler.discover("room", at: at(1)))
        let due = settler.due(at: at(2))
        #expect(Set(due) == ["held", "room"])
        let look = file(0, busy: true)
        #expect(settler.judge("held", look, at: at(2), wall: wall(2)) == .waiting)
        #expect(settler.oldest(1).map(\.path) == ["held"])
        #expect(settler.oldest(3).dropFirst().allSatisfy { $0.why == "x" })
    }

    // MARK: - Clocks

    /// Written at 0 and told of then; the clock jumps before the first look, at 5.
    @Test(arguments: [(86_400.0, 5.0), (3600, 5), (-1, 6), (-4, 9), (-6, 10), (-3600, 10), (-86_400, 10)])
    func `a clock that jumps never keeps a file longer than it was to be quiet once more`(
        jump: Double, complete: Double
    ) {
        var settler = Settler(settle: .seconds(5))
        #expect(settler.observe("a", at: at(0)) == true)
        #expect(settler.due(at: at(4.9)).isEmpty)
        #expect(settler.due(at: at(5)) == ["a"])
        let look = file(0)
        var verdict = settler.judge("a", look, at: at(5), wall: wall(5 + jump))
        if complete > 5 {
            #expect(verdict == .waiting)
            #expect(settler.nextDeadline == at(complete))
            #expect(settler.due(at: at(complete)) == ["a"])
            verdict = settler.judge("a", look, at: at(complete), wall: wall(complete + jump))
        }
        #expect(verdict == .settled(identity(0)))
    }

    @Test func `a clock that is put forward makes no new file old`() {
        var settler = Settler(settle: .seconds(5))
        settler.note(at(99), wall: wall(99))
        // A listing finds what was written a second before, when the clock was still an hour behind.
        #expect(settler.discover("new", at: at(100)) == true)
        #expect(settler.due(at: at(100)) == ["new"])
        let look = file(99)
        #expect(settler.judge("new", look, at: at(100), wall: wall(3700)) == .waiting)
        #expect(settler.nextDeadline == at(105) && settler.due(at: at(105)) == ["new"])
        #expect(settler.judge("new", look, at: at(105), wall: wall(3705)) == .settled(identity(99)))
        // By then the times of files can be believed again.
        #expect(settler.discover("old", at: at(106)) == true)
        #expect(settler.due(at: at(106)) == ["old"])
        let old = file(3690)
        #expect(settler.judge("old", old, at: at(106), wall: wall(3706)) == .settled(identity(3690)))
    }

    @Test func `a clock that runs as it should, or a little faster, is believed at once`() {
        var settler = Settler(settle: .seconds(5))
        for second in stride(from: 0.0, through: 3600, by: 60) { settler.note(at(second), wall: wall(second * 1.01)) }
        #expect(settler.discover("a", at: at(3600)) == true)
        #expect(settler.due(at: at(3600)) == ["a"])
        let look = file(3600)
        #expect(settler.judge("a", look, at: at(3600), wall: wall(3636)) == .settled(identity(3600)))
    }

    @Test func `what another machine wrote of late is seen twice, whatever times its server gives`() {
        var settler = Settler(settle: .seconds(5))
        let look = file(-3500)
        #expect(settler.complete(look, settle: nil, isForeign: false, at: at(0), wall: wall(0)) != nil)
        #expect(settler.complete(look, settle: nil, isForeign: true, at: at(0), wall: wall(0)) == nil)
        let old = file(-3700)
        #expect(settler.complete(old, settle: nil, isForeign: true, at: at(0), wall: wall(0)) != nil)
        #expect(settler.discover("a", at: at(0)) && settler.due(at: at(0)) == ["a"])
        #expect(settler.judge("a", look, isForeign: true, at: at(0), wall: wall(0)) == .waiting)
        #expect(settler.due(at: at(4.9)).isEmpty && settler.due(at: at(5)) == ["a"])
        #expect(
            settler.judge("a", look, isForeign: true, at: at(5), wall: wall(5)) == .settled(identity(-3500)))
    }

    @Test func `a first look takes a file at its word only where clock, writer and time allow`() {
        var settler = Settler(settle: .seconds(5))
        let quiet = identity(-6)
        func complete(_ look: Settler.Look, _ settle: Duration? = nil, _ clock: Double = 0) -> FileIdentity? {
            settler.complete(look, settle: settle, isForeign: false, at: at(0), wall: wall(clock))
        }
        #expect(complete(.file(quiet, busy: false)) == quiet)
        #expect(complete(.file(quiet, busy: true)) == nil)
        #expect(complete(.file(quiet, busy: false), .seconds(7)) == nil)
        #expect(complete(.file(quiet, busy: false, quiet: .seconds(7), why: "x")) == nil)
        #expect(complete(.file(identity(1), busy: false), .zero) == nil)
        #expect(complete(.gone) == nil && complete(.waiting(for: .zero, why: "x")) == nil)
        // The clock is put forward now: nothing is as old as it looks.
        #expect(complete(.file(quiet, busy: false), nil, 3600) == nil)
    }

    @Test func `a file from the future settles by what is seen, though its clock never comes true`() {
        var settler = Settler(settle: .seconds(5))
        let look = file(1e8)
        #expect(settler.discover("a", at: at(0)) == true)
        #expect(settler.due(at: at(0)) == ["a"])
        #expect(settler.judge("a", look, at: at(0), wall: wall(0)) == .waiting)
        #expect(settler.due(at: at(5)) == ["a"])
        #expect(settler.judge("a", look, at: at(5), wall: wall(5)) == .settled(identity(1e8)))
    }
}

/// Files that never get complete, and those that must not wait for them.
struct StuckFileTests: SettlerTimes {
    /// Looks at what is due until `end`; `look` says what is found. - Returns: when each look was.
    @discardableResult
    private func run(
        _ settler: inout Settler, from begin: Double, to end: Double, _ look: (FilePath, Double) -> Settler.Look
    ) -> [Double] {
        var times: [Double] = []
        var now = begin
        while now <= end {
            for path in settler.due(at: at(now)) {
                times.append(now)
                _ = settler.judge(path, look(path, now), at: at(now), wall: wall(now))
            }
            now += 0.25
        }
        return times
    }

    @Test func `a file that cannot be looked at is looked at after 5 seconds, then more and more seldom`() {
        var settler = Settler(settle: .zero)
        #expect(settler.discover("a", at: at(0)) == true)
        let looks = run(&settler, from: 0, to: 3600) { _, _ in .failing(why: "refused") }
        let waits = zip(looks.dropFirst(), looks).map { $0 - $1 }
        #expect(waits.prefix(3) == [5, 5, 5] && waits.last == 300)
        #expect(zip(waits.dropFirst(), waits).allSatisfy { $0 >= $1 } && waits.count < 30)
        // A sign of life is heeded at once.
        #expect(settler.observe("a", at: at(3601)) && settler.due(at: at(3601)) == ["a"])
        let verdict = settler.judge("a", file(), at: at(3601), wall: wall(3601))
        if case .settled = verdict {} else { Issue.record("\(verdict)") }
        #expect(settler.count == 0)
    }

    @Test func `a folder that cannot be listed is listed again, later and later, until it can be`() {
        var settler = Settler(settle: .zero)
        var listings: [Double] = []
        let isFirst = settler.stuckFolders.leave(folder: "card", "no descriptors", at: at(0))
        #expect(isFirst)
        #expect(settler.stuckFolders.most(5).map(\.reason) == ["it cannot be listed now: no descriptors"])
        var now = 0.0
        while now < 100 {
            for folder in settler.stuckFolders.due(at: at(now)) {
                listings.append(now)
                #expect(folder == "card")
                // The same again is no news.
                if now < 40 {
                    let isNews = settler.stuckFolders.leave(folder: folder, "no descriptors", at: at(now))
                    #expect(!isNews)
                } else {
                    settler.stuckFolders.entered(folder)
                }
            }
            now += 0.25
        }
        #expect(listings.prefix(3) == [5, 10, 15] && listings.last ?? 0 >= 40 && listings.count < 10, "\(listings)")
        #expect(settler.stuckFolders.nextListing == nil && settler.stuckFolders.most(5).isEmpty)
    }

    @Test(arguments: ["failing", "busy", "growing", "refused"])
    func `after some looks it takes the place of no other`(kind: String) {
        var settler = Settler(settle: .zero, places: Settler.Places(settling: 2, stuck: 2, folders: 1))
        #expect(settler.discover("a", at: at(0)) && settler.discover("b", at: at(0)))
        #expect(settler.discover("c", at: at(0)) == false)
        var now = 0.0
        while now < 70 {
            for path in settler.due(at: at(now)) {
                let look: Settler.Look =
                    switch kind {
                    case "failing": .failing(why: "refused")
                    case "busy": file(busy: true)
                    case "growing": file(now, size: Int64(now * 100))
                    default: file()
                    }
                if case .settled = settler.judge(path, look, at: at(now), wall: wall(now)) {
                    settler.putBack(path, at: at(now))
                }
            }
            now += 0.25
        }
        #expect(settler.isTracked("a") && settler.isTracked("b") && settler.count == 2)
        #expect(settler.discover("c", at: at(now)) && settler.discover("d", at: at(now)))
        #expect(settler.discover("e", at: at(now)) == false)
    }

    @Test func `those for which there is no room are left to their folder, which is listed again`() {
        var settler = Settler(settle: .zero, places: Settler.Places(settling: 2, stuck: 1, folders: 1))
        func fail(_ paths: [FilePath], at time: Double) {
            for path in paths { #expect(settler.discover(path, at: at(time)) == true) }
            run(&settler, from: time, to: time) { _, _ in .failing(why: "refused") }
        }
        fail(["x/a", "x/b"], at: 0)
        run(&settler, from: 1, to: 10) { _, _ in .failing(why: "refused") }
        #expect(settler.count == 2 && settler.stuckFolders.nextListing == at(15))
        let listed = [14.9, 15, 15].map { settler.stuckFolders.due(at: at($0)) }
        #expect(listed == [[], ["x"], []])
        // What the listing shows is known for what it is at the first look.
        let left: FilePath = settler.isTracked("x/a") ? "x/b" : "x/a"
        fail([left], at: 15)
        #expect(!settler.isTracked(left) && settler.count == 2)
        // Other folders than there is room for are listed with the root.
        for path in ["y/a", "z/b"] as [FilePath] { #expect(settler.discover(path, at: at(16)) == true) }
        run(&settler, from: 16, to: 27) { _, _ in .failing(why: "refused") }
        let both = Set(settler.stuckFolders.due(at: at(400)))
        #expect(both == ["x", ""])
        // A folder in which the listing found nothing of the kind is done with.
        let none = settler.stuckFolders.due(at: at(1000))
        #expect(none.isEmpty && settler.stuckFolders.nextListing == nil)
    }

    @Test func `a folder is told of once, with the number of its files, until none is left`() {
        var settler = Settler(settle: .zero, places: Settler.Places(settling: 10, stuck: 3, folders: 4))
        for number in 0..<5 { #expect(settler.discover(FilePath("x/\(number)"), at: at(0)) == true) }
        run(&settler, from: 0, to: 14) { _, _ in .failing(why: "refused") }
        let early = settler.stuckFolders.untold(at: at(14))
        #expect(early.isEmpty)
        let told = settler.stuckFolders.untold(at: at(15))
        #expect(told.map(\.folder) == ["x"] && told.map(\.files) == [5])
        #expect(told.first?.reason == "5 files in it cannot be taken now: refused")
        let again = settler.stuckFolders.untold(at: at(900))
        #expect(again.isEmpty && settler.stuckFolders.most(3) == told)
        settler.forget(below: "x")
        #expect(settler.stuckFolders.most(3).isEmpty && settler.count == 0)
    }

    @Test func `a unit with files that are left to a listing is not complete`() {
        var settler = Settler(settle: .zero, places: Settler.Places(settling: 2, stuck: 0, folders: 1))
        #expect(settler.discover("unit/sub/a", at: at(0)) == true)
        run(&settler, from: 0, to: 10) { _, _ in .failing(why: "refused") }
        #expect(!settler.isTracked("unit/sub/a"))
        #expect(settler.tracked(below: ["unit", "other"]) == ["unit"])
    }

    @Test(arguments: 1...40)
    func `each file settles within the longest wait of the time from which it can`(seed: UInt64) {
        var flock = Flock(seed: seed)
        flock.run()
        #expect(flock.complaints.isEmpty, "\(flock.complaints.prefix(5))")
    }
}

/// Many more files than there are places, each hindered in its own way until its own time; the loop around the settler in small.
private struct Flock {
    private enum Kind: CaseIterable { case failing, busy, refused, free }

    private let start = ContinuousClock.now
    private var settler: Settler
    private var kinds: [FilePath: (kind: Kind, until: Int)] = [:]
    private var left: Set<FilePath>
    private var listing: [FilePath]
    private(set) var complaints: [String] = []
    private let places: Settler.Places
    private static let end = 2400
    /// A listing ends when everything in it had a place: for four looks, a second apart; others may hold half of the places.
    private var pass: Int { 4 * kinds.count / (places.settling - places.settling / 2) }

    init(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        places = Settler.Places(
            settling: .random(in: 2...8, using: &generator), stuck: .random(in: 0...6, using: &generator),
            folders: .random(in: 0...3, using: &generator))
        settler = Settler(settle: .seconds(1), places: places)
        for number in 0..<Int.random(in: 1...60, using: &generator) {
            let path = FilePath("d\(Int.random(in: 0..<6, using: &generator))/\(number)")
            let kind = Kind.allCases.randomElement(using: &generator) ?? .free
            kinds[path] = (kind, kind == .free ? 0 : .random(in: 400...1200, using: &generator))
        }
        left = Set(kinds.keys)
        listing = kinds.keys.sorted { $0.string < $1.string }
    }

    mutating func run() {
        for now in 0...Self.end {
            let instant = start.advanced(by: .seconds(now))
            if listing.isEmpty {
                // In an order of their own, so that a seed is the same run each time.
                for folder in settler.stuckFolders.due(at: instant).sorted(by: { $0.string < $1.string }) {
                    let found = left.filter { $0.starts(with: folder) && !listing.contains($0) }
                    listing += found.sorted { $0.string < $1.string }
                }
            }
            // As often as files come due within a second.
            for _ in 0..<8 {
                while let path = listing.last, !left.contains(path) || settler.discover(path, at: instant) {
                    listing.removeLast()
                }
                look(now, instant)
            }
            let tracked = kinds.keys.count(where: settler.isTracked)
            if tracked > places.settling + places.stuck { complaints.append("\(now): \(tracked) are tracked") }
        }
        if !left.isEmpty { complaints.append("never settled: \(left)") }
    }

    private mutating func look(_ now: Int, _ instant: ContinuousClock.Instant) {
        let wall = WallTime(milliseconds: Int64(1_000_000 + now) * 1000)
        let identity = FileIdentity(size: 1, modified: 1, changed: 1, inode: 1, device: 1)
        for path in settler.due(at: instant) {
            guard let (kind, until) = kinds[path] else { continue }
            let isHindered = now < until
            let look: Settler.Look =
                isHindered && kind == .failing
                ? .failing(why: "x") : .file(identity, busy: isHindered && kind == .busy)
            guard case .settled = settler.judge(path, look, at: instant, wall: wall) else { continue }
            if isHindered {
                settler.putBack(path, at: instant)
            } else {
                left.remove(path)
                if kind != .free, now > until + 300 + pass { complaints.append("\(path): \(now - until) late") }
            }
        }
    }
}
