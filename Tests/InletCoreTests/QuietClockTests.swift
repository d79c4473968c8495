import InletCore
import Testing

/// When a watched folder is quiet.
@Suite struct QuietClockTests {
    private typealias Decision = (news: QuietClock.News?, next: ContinuousClock.Instant?)

    private static let start = WallTime(milliseconds: 1_800_000_000_000)
    private static let begin = ContinuousClock.now
    private static let day = Duration.seconds(86_400)

    private static func at(_ hours: Int) -> WallTime { start + .seconds(hours * 3600) }
    /// The same time on the clock that nobody sets.
    private static func on(_ hours: Int) -> ContinuousClock.Instant { begin.advanced(by: .seconds(hours * 3600)) }

    private static func clock(
        lastFile: Int? = 0, quietSince: Int? = nil, start: Int = 0, from hours: Int = 0
    ) -> QuietClock {
        QuietClock(
            lastFile: lastFile.map(at), quietSince: quietSince.map(at), start: at(start), at: at(hours), on(hours))
    }

    private static func decide(_ clock: inout QuietClock, _ hours: Int, _ expect: Duration? = day) -> Decision {
        clock.decide(expect: expect, at: at(hours), on(hours))
    }

    @Test func `a folder is quiet once nothing came for so long, counted from its last file`() {
        var clock = Self.clock(start: -99)
        #expect(Self.decide(&clock, 23) == (nil, Self.on(24)))
        #expect(Self.decide(&clock, 24) == (.quiet(since: Self.at(0)), nil))
        #expect(clock.quietSince == Self.at(0))
        #expect(Self.decide(&clock, 99) == (nil, nil), "it is reported once")
    }

    @Test func `a folder without a file counts from when it was first watched`() {
        var clock = Self.clock(lastFile: nil)
        #expect(Self.decide(&clock, 1) == (nil, Self.on(24)))
        #expect(Self.decide(&clock, 25) == (.quiet(since: Self.at(0)), nil))
    }

    @Test func `a file moves the time, and ends a quiet one`() {
        var clock = Self.clock()
        let first = clock.fileCame(at: Self.at(20), Self.on(20))
        #expect(!first && Self.decide(&clock, 24) == (nil, Self.on(44)))
        #expect(Self.decide(&clock, 44).news == .quiet(since: Self.at(20)))
        let second = clock.fileCame(at: Self.at(50), Self.on(50))
        #expect(second && Self.decide(&clock, 50).news == .recovered(since: Self.at(20)))
        #expect(clock.quietSince == nil && clock.lastFile == Self.at(50))
        #expect(Self.decide(&clock, 50) == (nil, Self.on(74)))
    }

    @Test func `after a restart what was reported is not reported again, and a file that came meanwhile ends it`() {
        var same = Self.clock(quietSince: 0, from: 48)
        #expect(Self.decide(&same, 48) == (nil, nil))
        var other = Self.clock(lastFile: 30, quietSince: 0, from: 48)
        #expect(Self.decide(&other, 48).news == .recovered(since: Self.at(0)))
    }

    @Test func `nothing is reported before the files that waited at a start are admitted`() {
        var clock = Self.clock(from: 48)
        #expect(Self.decide(&clock, 48) == (nil, Self.on(48).advanced(by: .seconds(60))))
        clock.see(.listed, at: Self.at(49), Self.on(49))
        #expect(Self.decide(&clock, 49) == (nil, Self.on(49).advanced(by: .seconds(60))))
        let end = Self.on(49).advanced(by: .seconds(5))
        #expect(Self.decide(&clock, 49, .seconds(5)) == (nil, end), "it never waits for longer than that")
        #expect(clock.decide(expect: .seconds(5), at: Self.at(49) + .seconds(5), end).news == .quiet(since: Self.at(0)))
    }

    @Test func `nor before those of a folder that was away`() {
        var clock = Self.clock()
        clock.see(.away, at: Self.at(1), Self.on(1))
        #expect(Self.decide(&clock, 1) == (nil, Self.on(24)))
        clock.see(.watched, at: Self.at(24), Self.on(24))
        #expect(Self.decide(&clock, 24) == (nil, Self.on(24).advanced(by: .seconds(60))))
        clock.see(.watched, at: Self.at(25), Self.on(25))
        #expect(Self.decide(&clock, 25).news == .quiet(since: Self.at(0)))
        var missing = Self.clock()
        missing.see(.away, at: Self.at(25), Self.on(25))
        #expect(Self.decide(&missing, 25).news == .quiet(since: Self.at(0)), "a folder that stays away is quiet")
    }

    @Test func `while another agent has the folder nobody misses a file here, nor when it comes back`() {
        var clock = Self.clock()
        clock.see(.elsewhere, at: Self.at(30), Self.on(30))
        #expect(Self.decide(&clock, 30) == (nil, Self.on(54)))
        clock.see(.listed, at: Self.at(40), Self.on(40))
        #expect(Self.decide(&clock, 40) == (nil, Self.on(64)))
        clock.see(.watched, at: Self.at(41), Self.on(41))
        #expect(Self.decide(&clock, 64).news == .quiet(since: Self.at(40)))
    }

    @Test func `a configuration that expects less, or nothing, ends a quiet time without a file`() {
        for expect in [nil, Self.day * 7] {
            var clock = Self.clock(quietSince: 0, from: 48)
            #expect(Self.decide(&clock, 48, expect).news == .withdrawn)
            #expect(clock.quietSince == nil)
        }
        var never = Self.clock()
        #expect(Self.decide(&never, 999, nil) == (nil, nil))
    }

    @Test func `a clock that is set ahead makes no folder quiet, and one that is set back hides none`() {
        var ahead = Self.clock()
        #expect(ahead.decide(expect: Self.day, at: Self.at(9999), Self.on(1)) == (nil, Self.on(24)))
        var back = Self.clock()
        let since = Self.at(-500)
        #expect(back.decide(expect: Self.day, at: since, Self.on(24)) == (.quiet(since: since), nil))
        let hasCome = back.fileCame(at: Self.at(-600), Self.on(25))
        #expect(hasCome, "by that clock it came before the quiet time")
        #expect(back.decide(expect: Self.day, at: Self.at(-600), Self.on(25)).news == .recovered(since: since))
    }

    @Test func `a last file in the future, by a clock that was ahead, counts as one of now`() {
        var clock = Self.clock(lastFile: 99_999)
        #expect(clock.lastFile == Self.at(0))
        #expect(Self.decide(&clock, 0) == (nil, Self.on(24)))
    }
}
