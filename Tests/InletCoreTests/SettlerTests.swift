import InletTestSupport
import SystemPackage
import Testing

@testable import InletCore

/// Seconds by both clocks, and files as they are at them.
protocol SettlerTimes {}

private let start = ContinuousClock.now
private let epoch = WallTime(milliseconds: 1_800_000_000_000)

extension SettlerTimes {
    func at(_ seconds: Double) -> ContinuousClock.Instant { start.advanced(by: .seconds(seconds)) }
    func wall(_ seconds: Double) -> WallTime { epoch + .seconds(seconds) }
    func wall(_ instant: ContinuousClock.Instant) -> WallTime { epoch + start.duration(to: instant) }

    /// A file last written at `seconds`.
    func identity(_ seconds: Double, size: Int64 = 1) -> FileIdentity {
        let time = wall(seconds).milliseconds * 1_000_000
        return FileIdentity(size: size, modified: time, changed: time, inode: 1, device: 1)
    }

    func file(_ seconds: Double = -1000, size: Int64 = 1, busy: Bool = false) -> Settler.Look {
        .file(identity(seconds, size: size), busy: busy)
    }
}

struct SettlerTests: SettlerTimes {
    private func identity(_ look: Settler.Look) -> FileIdentity? {
        if case .file(let identity, _, _, _) = look { identity } else { nil }
    }

    private func expectSettled(_ verdict: Settler.Verdict, _ look: Settler.Look) {
        #expect(verdict == identity(look).map { .settled($0) })
    }

    @Test func `a quiet file settles once`() {
        var settler = Settler(settle: .seconds(5))
        #expect(settler.observe("a", at: at(0)) == true)
        #expect(settler.nextDeadline == at(5))
        #expect(settler.due(at: at(4.9)).isEmpty)
        #expect(settler.due(at: at(5)) == ["a"])
        expectSettled(settler.judge("a", file(0), at: at(5), wall: wall(5)), file(0))
        #expect(settler.count == 0 && settler.due(at: at(100)).isEmpty && settler.nextDeadline == nil)
        #expect(settler.judge("a", file(0), at: at(100), wall: wall(100)) == .dropped)
    }

    @Test func `every event starts the quiet time anew`() {
        var settler = Settler(settle: .seconds(5))
        for second in 0..<10 { #expect(settler.observe("a", at: at(Double(second))) == true) }
        #expect(settler.due(at: at(13.9)).isEmpty)
        #expect(settler.due(at: at(14)) == ["a"])
        #expect(settler.observe("a", at: at(14.1)) == true)
        #expect(settler.judge("a", file(0), at: at(14.2), wall: wall(14.2)) == .waiting)
        #expect(settler.due(at: at(19)).isEmpty)
        #expect(settler.due(at: at(19.1)) == ["a"])
    }

    @Test func `a busy file is never given up, however old it looks`() throws {
        var settler = Settler(settle: .seconds(1))
        #expect(settler.observe("a", at: at(0)) == true)
        var now = at(1)
        var looks = 0
        while now < at(86_400), looks < 20_000 {
            #expect(settler.due(at: now) == ["a"])
            #expect(settler.judge("a", file(-1000, busy: true), at: now, wall: wall(now)) == .waiting)
            let next = try #require(settler.nextDeadline)
            #expect(next >= now.advanced(by: .milliseconds(50)) && next <= now.advanced(by: .seconds(5)))
            now = next
            looks += 1
        }
        #expect((17_000..<20_000).contains(looks))
        #expect(settler.oldest() == [Settler.Waiting(path: "a", since: at(0), isBusy: true)])
        #expect(settler.due(at: now) == ["a"])
        expectSettled(settler.judge("a", file(-1000), at: now, wall: wall(now)), file(-1000))
    }

    @Test func `a file that grows without events settles when it stops`() {
        var settler = Settler(settle: .seconds(2))
        #expect(settler.observe("a", at: at(0)) == true)
        for turn in 1...5 {
            let now = Double(turn) * 2
            #expect(settler.due(at: at(now)) == ["a"])
            #expect(settler.judge("a", file(now, size: Int64(turn)), at: at(now), wall: wall(now)) == .waiting)
        }
        #expect(settler.due(at: at(12)) == ["a"])
        expectSettled(settler.judge("a", file(10, size: 5), at: at(12), wall: wall(12)), file(10, size: 5))
    }

    @Test func `a time in the future is not believed, but what we see is`() {
        var settler = Settler(settle: .seconds(2))
        #expect(settler.observe("a", at: at(0)) == true)
        #expect(settler.due(at: at(2)) == ["a"])
        #expect(settler.judge("a", file(9999), at: at(2), wall: wall(2)) == .waiting)
        #expect(settler.due(at: at(3.9)).isEmpty)
        #expect(settler.due(at: at(4)) == ["a"])
        expectSettled(settler.judge("a", file(9999), at: at(4), wall: wall(4)), file(9999))
    }

    @Test func `a settle time of zero admits at once, and looks twice at a time in the future`() {
        var settler = Settler(settle: .zero)
        #expect(settler.observe("a", at: at(0)) && settler.observe("b", at: at(0)))
        #expect(settler.due(at: at(0)) == ["a", "b"])
        expectSettled(settler.judge("a", file(0), at: at(0), wall: wall(0)), file(0))
        #expect(settler.judge("b", file(9), at: at(0), wall: wall(0)) == .waiting)
        #expect(settler.due(at: at(0.001)) == ["b"])
        expectSettled(settler.judge("b", file(9), at: at(0.001), wall: wall(0)), file(9))
    }

    @Test func `a listing finds old files at once and leaves tracked ones their time`() {
        var settler = Settler(settle: .seconds(5))
        #expect(settler.discover("old", at: at(0)) && settler.discover("new", at: at(0)))
        #expect(settler.observe("tracked", at: at(0)) && settler.discover("tracked", at: at(0)))
        #expect(settler.due(at: at(0)) == ["old", "new"])
        expectSettled(settler.judge("old", file(-60), at: at(0), wall: wall(0)), file(-60))
        #expect(settler.judge("new", file(-1), at: at(0), wall: wall(0)) == .waiting)
        #expect(settler.due(at: at(3.9)).isEmpty)
        #expect(settler.due(at: at(4)) == ["new"])
    }

    @Test func `what is not a file is dropped`() {
        var settler = Settler(settle: .zero)
        for (path, look) in [("gone", Settler.Look.gone), ("fifo", .notRegular)] as [(FilePath, Settler.Look)] {
            #expect(settler.observe(path, at: at(0)) == true)
            #expect(settler.due(at: at(0)) == [path])
            #expect(settler.judge(path, look, at: at(0), wall: wall(0)) == .dropped)
            #expect(!settler.isTracked(path))
        }
    }

    @Test func `memory is bounded`() {
        var settler = Settler(settle: .seconds(3600), places: Settler.Places(settling: 2))
        #expect(settler.observe("a", at: at(0)) && settler.observe("b", at: at(0)))
        #expect(!settler.observe("c", at: at(0)) && !settler.discover("c", at: at(0)))
        #expect(settler.observe("a", at: at(1)) == true)
        settler.forget("a")
        #expect(settler.observe("c", at: at(0)) == true)
        #expect(settler.count == 2)
    }

    @Test func `all places of a folder fit in 32,768 slots of at most 96 bytes`() {
        let places = Settler.Places()
        let most = [FilePath: Settler.Entry](minimumCapacity: places.settling + places.stuck).capacity
        #expect(most <= 32_768 * 3 / 4 && MemoryLayout<Settler.Entry>.stride <= 96)
    }

    @Test func `the memory of a burst is returned once its files are gone`() {
        var settler = Settler(settle: .zero)
        for number in 0..<10_000 { #expect(settler.observe(FilePath("f\(number)"), at: at(0)) == true) }
        for number in 0..<9990 { settler.forget(FilePath("f\(number)")) }
        #expect(settler.entries.capacity <= 2048)
        // Those that are left keep their turns.
        #expect(settler.due(at: at(0)).count == 10)
    }

    @Test func `a file that goes on being written is counted, however seldom it was looked at`() {
        var settler = Settler(settle: .seconds(5))
        for second in 0...3 { #expect(settler.observe("a", at: at(Double(second))) == true) }
        #expect(settler.oldest().map(\.changes) == [3])
    }

    @Test func `a folder is forgotten with all below it, and nothing else`() {
        var settler = Settler(settle: .zero)
        for path in ["a/b", "a/b/c", "a/bc", "a"] as [FilePath] { #expect(settler.observe(path, at: at(0)) == true) }
        settler.forget(below: "a/b")
        #expect(Set(settler.due(at: at(1))) == ["a/bc", "a"])
    }

    @Test func `a burst is handed out in pieces`() {
        var settler = Settler(settle: .zero)
        for number in 0..<600 { #expect(settler.observe(FilePath("f\(number)"), at: at(0)) == true) }
        for expected in [256, 256, 88, 0] { #expect(settler.due(at: at(0)).count == expected) }
    }

    @Test func `a route's own settle time holds, longer or shorter`() {
        var settler = Settler(settle: .seconds(5))
        #expect(
            settler.observe("slow", settle: .seconds(60), at: at(0))
                && settler.observe("fast", settle: .zero, at: at(0)))
        #expect(
            settler.observe("back", settle: .seconds(60), at: at(0))
                && settler.observe("back", settle: .seconds(1), at: at(0)))
        #expect(settler.due(at: at(0)) == ["fast"])
        #expect(settler.due(at: at(1)) == ["back"])
        #expect(settler.due(at: at(59)).isEmpty)
        #expect(settler.due(at: at(60)) == ["slow"])
    }

    @Test(arguments: 0..<40) func `random histories agree with a naive model`(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var world = SettlerWorld(settle: [0, 1, 4].randomElement(using: &generator) ?? 1)
        for _ in 0..<600 { world.step(&generator) }
        #expect(world.complaints == [])
    }
}

/// Three files written at random, a settler, and a model that remembers every event and look. Time goes in whole seconds.
private struct SettlerWorld {
    private struct Model {
        var quietSince: Int
        var looks: [(identity: FileIdentity, time: Int)] = []
    }

    private let start = ContinuousClock.now
    private let settle: Int
    private var settler: Settler
    private var now = 0
    private var files: [FilePath: FileIdentity] = [:]
    private var busy: Set<FilePath> = []
    private var models: [FilePath: Model] = [:]
    private(set) var complaints: [String] = []

    init(settle: Int) {
        self.settle = settle
        settler = Settler(settle: .seconds(settle))
    }

    private var instant: ContinuousClock.Instant { start.advanced(by: .seconds(now)) }

    mutating func step(_ generator: inout SeededGenerator) {
        let path: FilePath = ["a", "b", "c"].randomElement(using: &generator) ?? "a"
        switch Int.random(in: 0..<8, using: &generator) {
        case 0...1: write(path, seen: true, &generator)
        case 2: write(path, seen: false, &generator)
        case 3: if busy.remove(path) == nil { busy.insert(path) }
        case 4 where Int.random(in: 0..<4, using: &generator) == 0:
            files[path] = nil
            models[path] = nil
            settler.forget(path)
        default:
            now += Int.random(in: 0...3, using: &generator)
            look()
        }
        if let next = settler.nextDeadline, next > instant.advanced(by: .seconds(max(settle, 5))) {
            complaints.append("\(now): sleeps too long")
        }
        if settler.count != models.count { complaints.append("\(now): tracks \(settler.count), not \(models.count)") }
    }

    private mutating func write(_ path: FilePath, seen: Bool, _ generator: inout SeededGenerator) {
        let skew = [0, 0, 0, 50, -50].randomElement(using: &generator) ?? 0
        let time = Int64(1000 + now + skew) * 1_000_000_000
        let size = Int64.random(in: 0...1000, using: &generator)
        files[path] = FileIdentity(size: size, modified: time, changed: time, inode: 1, device: 1)
        guard seen else { return }
        models[path, default: Model(quietSince: now)].quietSince = now
        if !settler.observe(path, at: instant) { complaints.append("\(now): refused \(path)") }
    }

    private mutating func look() {
        for path in settler.due(at: instant) {
            guard let identity = files[path], var model = models[path] else { continue }
            let time = WallTime(milliseconds: Int64(1000 + now) * 1000)
            let verdict = settler.judge(path, .file(identity, busy: busy.contains(path)), at: instant, wall: time)
            if now < model.quietSince + settle { complaints.append("\(now): \(path) is due too early") }
            let seen = model.looks.reversed().prefix { $0.identity == identity }.last.map { now - $0.time }
            let age = now + 1000 - Int(identity.changed / 1_000_000_000)
            let isComplete = age >= max(settle, 0) || seen.map { $0 >= settle && $0 > 0 } ?? false
            let expected = isComplete && !busy.contains(path) ? Settler.Verdict.settled(identity) : .waiting
            if verdict != expected { complaints.append("\(now): \(path) is \(verdict), not \(expected)") }
            model.looks.append((identity, now))
            models[path] = verdict == .waiting ? model : nil
        }
    }
}

/// Files that wait for others before they are complete.
struct SettlerSetTests: SettlerTimes {
    @Test func `a file that is bound to others is complete after their quiet time, by sight or by its own times`() {
        for (written, complete) in [(0.0, 10.0), (-4.0, 6.0), (-60.0, 1.0)] {
            var settler = Settler(settle: .seconds(1))
            #expect(settler.observe("a", at: at(0)) == true)
            #expect(settler.due(at: at(1)) == ["a"])
            let identity = identity(written)
            let look = Settler.Look.file(identity, busy: false, quiet: .seconds(10), why: "sidecars")
            let verdict = settler.judge("a", look, at: at(1), wall: wall(1))
            if complete <= 1 {
                #expect(verdict == .settled(identity))
                continue
            }
            #expect(verdict == .waiting && settler.oldest().map(\.why) == ["sidecars"])
            #expect(settler.nextDeadline == at(complete) && settler.due(at: at(complete)) == ["a"])
            #expect(settler.judge("a", look, at: at(complete), wall: wall(complete)) == .settled(identity))
        }
    }

    @Test func `a file that waits for others is woken by them, and its quiet time goes on`() {
        var settler = Settler(settle: .seconds(1))
        #expect(settler.observe("a", at: at(0)) == true)
        // Not looked at yet: nothing to wake.
        settler.wake("a", at: at(0.5))
        #expect(settler.due(at: at(0.5)).isEmpty)
        #expect(settler.due(at: at(1)) == ["a"])
        #expect(settler.judge("a", .waiting(for: .seconds(30), why: "b"), at: at(1), wall: wall(1)) == .waiting)
        #expect(settler.nextDeadline == at(31))
        settler.wake("a", at: at(2))
        #expect(settler.due(at: at(2)) == ["a"])
        let verdict = settler.judge("a", file(0), at: at(2), wall: wall(2))
        #expect(verdict == .settled(identity(0)))
        settler.wake("a", at: at(3))
        #expect(settler.count == 0)
    }

    @Test func `a file takes its companion's place where there is no room, so that companions never keep it out`() {
        var settler = Settler(settle: .seconds(1), places: Settler.Places(settling: 2))
        for name in ["a.xmp", "b.xmp"] as [FilePath] { #expect(settler.observe(name, at: at(0)) == true) }
        #expect(settler.due(at: at(1)).count == 2)
        #expect(settler.wake("a.mp4", for: "a.xmp", at: at(1)) == false)
        #expect(settler.isTracked("a.mp4") && !settler.isTracked("a.xmp") && settler.isTracked("b.xmp"))
        #expect(settler.due(at: at(1)) == ["a.mp4"])
        // What was handed out and has lost its place is nothing to judge.
        let look = Settler.Look.waiting(for: .seconds(10), why: "its file")
        #expect(settler.judge("a.xmp", look, at: at(1), wall: wall(1)) == .dropped)
        #expect(
            settler.judge("a.mp4", file(0), at: at(1), wall: wall(1)) == .settled(identity(0)))
        #expect(settler.wake("b.mp4", for: "b.xmp", at: at(2)) == true)
        #expect(settler.isTracked("b.mp4") && settler.isTracked("b.xmp"))
    }

    @Test func `folders with files that are not complete are known`() {
        var settler = Settler(settle: .seconds(1))
        #expect(settler.tracked(below: ["gigs/X"]).isEmpty)
        for path in ["gigs/X/a", "gigs/Z/raw/b", "gigs/Z/c"] as [FilePath] {
            #expect(settler.observe(path, at: at(0)) == true)
        }
        let folders: Set<FilePath> = ["gigs", "gigs/X", "gigs/X/b", "gigs/Y", "gigs/Z", "gigs/Z/raw", "gig"]
        #expect(settler.tracked(below: folders) == ["gigs", "gigs/X", "gigs/Z", "gigs/Z/raw"])
        #expect(settler.tracked(below: []).isEmpty)
    }
}

struct UnsettledWatchTests: SettlerTimes {
    private func file(
        _ path: FilePath, since seconds: Double = 0, busy: Bool = false, why: String? = nil, changes: Int = 0
    ) -> Settler.Waiting {
        Settler.Waiting(path: path, since: at(seconds), isBusy: busy, why: why, changes: changes)
    }

    @Test func `a file is told of once, when it has waited long enough`() {
        var settler = Settler(settle: .seconds(5))
        let waiting = [file("a", busy: true), file("b", since: 600, changes: 3)]
        #expect(settler.overdue(waiting, after: .seconds(900), at: at(899)).isEmpty)
        #expect(settler.overdue(waiting, after: .seconds(900), at: at(900)).map(\.path) == ["a"])
        #expect(settler.overdue(waiting, after: .seconds(900), at: at(1500)).map(\.path) == ["b"])
        #expect(settler.overdue(waiting, after: .seconds(900), at: at(90_000)).isEmpty)
    }

    @Test func `one that is done and comes again is told of again`() {
        var settler = Settler(settle: .seconds(5))
        #expect(settler.overdue([file("a", busy: true)], after: .seconds(10), at: at(10)).count == 1)
        #expect(settler.overdue([], after: .seconds(10), at: at(20)).isEmpty)
        #expect(settler.overdue([file("a", since: 30, busy: true)], after: .seconds(10), at: at(40)).count == 1)
    }

    @Test func `what waits for others, or for room in the queue, is not told of`() {
        var settler = Settler(settle: .seconds(5))
        let waiting = [file("a", why: "waiting for its file", changes: 2), file("b")]
        #expect(settler.overdue(waiting, after: .zero, at: at(1)).isEmpty)
    }

    @Test func `the reason says what keeps a file`() {
        #expect(file("a", busy: true, why: "x", changes: 9).reason == "open for writing")
        #expect(file("a", why: "waiting for its file", changes: 9).reason == "waiting for its file")
        #expect(file("a", changes: 9).reason == "it keeps changing: 9 times so far")
        #expect(file("a", changes: 1).reason == nil)
    }
}
