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

    // MARK: - Clocks

    @Test(arguments: [86_400, -86_400, 3600, -1] as [Double])
    func `a clock that jumps neither hurries a file that is being watched nor keeps it`(jump: Double) {
        var settler = Settler(settle: .seconds(5))
        #expect(settler.observe("a", at: at(0)) == true)
        #expect(settler.due(at: at(4.9)).isEmpty)
        #expect(settler.due(at: at(5)) == ["a"])
        let look = Settler.Look.file(identity(0, size: 1), busy: false)
        var verdict = settler.judge("a", look, at: at(5), wall: wall(5 + jump))
        if jump > 0 {
            #expect(verdict == .settled(identity(0, size: 1)))
            return
        }
        // Its time is in the future now: only what is seen counts.
        #expect(verdict == .waiting)
        #expect(settler.nextDeadline == at(10))
        #expect(settler.due(at: at(10)) == ["a"])
        verdict = settler.judge("a", look, at: at(10), wall: wall(10 + jump))
        #expect(verdict == .settled(identity(0, size: 1)))
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
