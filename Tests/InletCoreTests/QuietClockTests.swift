import InletCore
import Testing

/// When a watched folder is quiet.
@Suite struct QuietClockTests {
    private static let start = WallTime(milliseconds: 1_800_000_000_000)
    private static let day = Duration.seconds(86_400)

    private static func at(_ hours: Int) -> WallTime { start + .seconds(hours * 3600) }

    @Test func `a folder is quiet once nothing came for so long, counted from its last file`() {
        var clock = QuietClock(lastFile: Self.at(0), start: Self.at(-99))
        #expect(clock.decide(expect: Self.day, at: Self.at(23)) == (nil, Self.at(24)))
        #expect(clock.decide(expect: Self.day, at: Self.at(24)) == (.quiet(since: Self.at(0)), nil))
        #expect(clock.quietSince == Self.at(0))
        #expect(clock.decide(expect: Self.day, at: Self.at(99)) == (nil, nil), "it is reported once")
    }

    @Test func `a folder without a file counts from when it was first watched`() {
        var clock = QuietClock(start: Self.at(0))
        #expect(clock.decide(expect: Self.day, at: Self.at(1)) == (nil, Self.at(24)))
        #expect(clock.decide(expect: Self.day, at: Self.at(25)) == (.quiet(since: Self.at(0)), nil))
    }

    @Test func `a file moves the time, and ends a quiet one`() {
        var clock = QuietClock(lastFile: Self.at(0), start: Self.at(0))
        let first = clock.fileCame(at: Self.at(20))
        #expect(!first && clock.decide(expect: Self.day, at: Self.at(24)) == (nil, Self.at(44)))
        #expect(clock.decide(expect: Self.day, at: Self.at(44)).news == .quiet(since: Self.at(20)))
        let second = clock.fileCame(at: Self.at(50))
        #expect(second && clock.decide(expect: Self.day, at: Self.at(50)).news == .recovered(since: Self.at(20)))
        #expect(clock.quietSince == nil && clock.lastFile == Self.at(50))
        #expect(clock.decide(expect: Self.day, at: Self.at(50)) == (nil, Self.at(74)))
    }

    @Test func `after a restart what was reported is not reported again, and a file that came meanwhile ends it`() {
        var same = QuietClock(lastFile: Self.at(0), quietSince: Self.at(0), start: Self.at(0))
        #expect(same.decide(expect: Self.day, at: Self.at(48)) == (nil, nil))
        var other = QuietClock(lastFile: Self.at(30), quietSince: Self.at(0), start: Self.at(0))
        #expect(other.decide(expect: Self.day, at: Self.at(48)).news == .recovered(since: Self.at(0)))
    }

    @Test func `nothing is reported before the files that waited at a start are admitted`() {
        var clock = QuietClock(lastFile: Self.at(0), start: Self.at(0), followedSince: Self.at(48))
        #expect(clock.decide(expect: Self.day, at: Self.at(48)) == (nil, Self.at(48) + .seconds(60)))
        clock.isListed(at: Self.at(49))
        #expect(clock.decide(expect: Self.day, at: Self.at(49)) == (nil, Self.at(49) + .seconds(60)))
        let end = Self.at(49) + .seconds(5)
        #expect(clock.decide(expect: .seconds(5), at: Self.at(49)) == (nil, end), "it never waits for longer than that")
        #expect(clock.decide(expect: .seconds(5), at: end).news == .quiet(since: Self.at(0)))
    }

    @Test func `while another agent has the folder nobody misses a file here`() {
        var clock = QuietClock(lastFile: Self.at(0), start: Self.at(0))
        clock.startAgain(at: Self.at(30))
        #expect(clock.decide(expect: Self.day, at: Self.at(30)) == (nil, Self.at(54)))
        #expect(clock.decide(expect: Self.day, at: Self.at(54)).news == .quiet(since: Self.at(30)))
    }

    @Test func `a configuration that expects less, or nothing, ends a quiet time without a file`() {
        for expect in [nil, Self.day * 7] {
            var clock = QuietClock(lastFile: Self.at(0), quietSince: Self.at(0), start: Self.at(0))
            #expect(clock.decide(expect: expect, at: Self.at(48)).news == .withdrawn)
            #expect(clock.quietSince == nil)
        }
        var never = QuietClock(lastFile: Self.at(0), start: Self.at(0))
        #expect(never.decide(expect: nil, at: Self.at(999)) == (nil, nil))
    }

    @Test func `a time in the future, by a clock that was set, is looked at again in time`() {
        var clock = QuietClock(lastFile: Self.at(99_999), start: Self.at(0))
        #expect(clock.decide(expect: Self.day, at: Self.at(0)) == (nil, Self.at(24)))
    }
}
