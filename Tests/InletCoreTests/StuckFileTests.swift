import InletCore
import InletTestSupport
import SystemPackage
import Testing

/// Files that never get complete, and those that must not wait for them.
struct StuckFileTests {
    private static let start = ContinuousClock.now

    private func at(_ seconds: Double) -> ContinuousClock.Instant { Self.start.advanced(by: .seconds(seconds)) }
    private func wall(_ seconds: Double) -> WallTime { WallTime(milliseconds: 1_800_000_000_000) + .seconds(seconds) }

    private func file(_ seconds: Double = -1000, size: Int64 = 1, busy: Bool = false) -> Settler.Look {
        let time = wall(seconds).milliseconds * 1_000_000
        return .file(FileIdentity(size: size, modified: time, changed: time, inode: 1, device: 1), busy: busy)
    }

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
