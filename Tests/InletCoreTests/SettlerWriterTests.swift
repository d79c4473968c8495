import InletCore
import SystemPackage
import Testing

/// Writers as they are: they pause, reopen, rewrite what they have written, and their clocks jump.
struct SettlerWriterTests {
    private static let start = ContinuousClock.now
    private static let epoch = WallTime(milliseconds: 1_800_000_000_000)

    private func at(_ seconds: Double) -> ContinuousClock.Instant { Self.start.advanced(by: .seconds(seconds)) }
    private func wall(_ seconds: Double) -> WallTime { Self.epoch + .seconds(seconds) }

    private func identity(_ seconds: Double, size: Int64) -> FileIdentity {
        let time = wall(seconds).milliseconds * 1_000_000
        return FileIdentity(size: size, modified: time, changed: time, inode: 1, device: 1)
    }

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
            let look = Settler.Look.file(identity(now, size: Int64(turn)), busy: false)
            #expect(settler.judge("a", look, at: at(now), wall: wall(now)) == .waiting)
        }
        #expect(settler.oldest().map(\.changes) == [3])
        #expect(settler.oldest().map(\.reason) == ["it keeps changing: 3 times since it was seen"])
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
        var watch = UnsettledWatch(after: .seconds(900))
        #expect(watch.overdue(settler.oldest(), at: at(1200)).map(\.path) == ["log"])
        #expect(settler.oldest().map(\.reason) == ["it keeps changing: 399 times since it was seen"])
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
        let look = Settler.Look.file(identity(0, size: 1), busy: true)
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
        let look = Settler.Look.file(identity(0, size: 1), busy: false)
        var verdict = settler.judge("a", look, at: at(5), wall: wall(5 + jump))
        if complete > 5 {
            #expect(verdict == .waiting)
            #expect(settler.nextDeadline == at(complete))
            #expect(settler.due(at: at(complete)) == ["a"])
            verdict = settler.judge("a", look, at: at(complete), wall: wall(complete + jump))
        }
        #expect(verdict == .settled(identity(0, size: 1)))
    }

    @Test func `a clock that is put forward makes no new file old`() {
        var settler = Settler(settle: .seconds(5))
        settler.note(at(99), wall: wall(99))
        // A listing finds what was written a second before, when the clock was still an hour behind.
        #expect(settler.discover("new", at: at(100)) == true)
        #expect(settler.due(at: at(100)) == ["new"])
        let look = Settler.Look.file(identity(99, size: 1), busy: false)
        #expect(settler.judge("new", look, at: at(100), wall: wall(3700)) == .waiting)
        #expect(settler.nextDeadline == at(105) && settler.due(at: at(105)) == ["new"])
        #expect(settler.judge("new", look, at: at(105), wall: wall(3705)) == .settled(identity(99, size: 1)))
        // By then the times of files can be believed again.
        #expect(settler.discover("old", at: at(106)) == true)
        #expect(settler.due(at: at(106)) == ["old"])
        let old = Settler.Look.file(identity(3690, size: 1), busy: false)
        #expect(settler.judge("old", old, at: at(106), wall: wall(3706)) == .settled(identity(3690, size: 1)))
    }

    @Test func `a clock that runs as it should, or a little faster, is believed at once`() {
        var settler = Settler(settle: .seconds(5))
        for second in stride(from: 0.0, through: 3600, by: 60) {
            settler.note(at(second), wall: wall(second * 1.01))
        }
        #expect(settler.discover("a", at: at(3600)) == true)
        #expect(settler.due(at: at(3600)) == ["a"])
        let look = Settler.Look.file(identity(3600, size: 1), busy: false)
        #expect(settler.judge("a", look, at: at(3600), wall: wall(3636)) == .settled(identity(3600, size: 1)))
    }

    @Test func `what another machine wrote of late is seen twice, whatever times its server gives`() {
        var settler = Settler(settle: .seconds(5))
        let look = Settler.Look.file(identity(-3500, size: 1), busy: false)
        #expect(settler.complete(look, settle: nil, isForeign: false, at: at(0), wall: wall(0)) != nil)
        #expect(settler.complete(look, settle: nil, isForeign: true, at: at(0), wall: wall(0)) == nil)
        let old = Settler.Look.file(identity(-3700, size: 1), busy: false)
        #expect(settler.complete(old, settle: nil, isForeign: true, at: at(0), wall: wall(0)) != nil)
        #expect(settler.discover("a", at: at(0)) && settler.due(at: at(0)) == ["a"])
        #expect(settler.judge("a", look, isForeign: true, at: at(0), wall: wall(0)) == .waiting)
        #expect(settler.due(at: at(4.9)).isEmpty && settler.due(at: at(5)) == ["a"])
        #expect(
            settler.judge("a", look, isForeign: true, at: at(5), wall: wall(5)) == .settled(identity(-3500, size: 1)))
    }

    @Test func `a first look takes a file at its word only where clock, writer and time allow`() {
        var settler = Settler(settle: .seconds(5))
        let quiet = identity(-6, size: 1)
        func complete(_ look: Settler.Look, _ settle: Duration? = nil, _ clock: Double = 0) -> FileIdentity? {
            settler.complete(look, settle: settle, isForeign: false, at: at(0), wall: wall(clock))
        }
        #expect(complete(.file(quiet, busy: false)) == quiet)
        #expect(complete(.file(quiet, busy: true)) == nil)
        #expect(complete(.file(quiet, busy: false), .seconds(7)) == nil)
        #expect(complete(.file(quiet, busy: false, quiet: .seconds(7), why: "x")) == nil)
        #expect(complete(.file(identity(1, size: 1), busy: false), .zero) == nil)
        #expect(complete(.gone) == nil && complete(.waiting(for: .zero, why: "x")) == nil)
        // The clock is put forward now: nothing is as old as it looks.
        #expect(complete(.file(quiet, busy: false), nil, 3600) == nil)
    }

    @Test func `a file from the future settles by what is seen, though its clock never comes true`() {
        var settler = Settler(settle: .seconds(5))
        let look = Settler.Look.file(identity(1e8, size: 1), busy: false)
        #expect(settler.discover("a", at: at(0)) == true)
        #expect(settler.due(at: at(0)) == ["a"])
        #expect(settler.judge("a", look, at: at(0), wall: wall(0)) == .waiting)
        #expect(settler.due(at: at(5)) == ["a"])
        #expect(settler.judge("a", look, at: at(5), wall: wall(5)) == .settled(identity(1e8, size: 1)))
    }
}
