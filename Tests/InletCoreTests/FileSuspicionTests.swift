import InletCore
import Testing

/// Whose fault an answer is that looks like an outage.
struct FileSuspicionTests {
    private func time(_ seconds: Int64) -> WallTime { WallTime(milliseconds: seconds * 1000) }

    /// Brings a breaker back that is down.
    private func probe(_ breaker: inout CircuitBreaker, at seconds: Int64) {
        #expect(breaker.event(.probeSucceeded, at: time(seconds)) == .resume)
    }

    @Test func `the same answer again for the same file, while others are delivered, is the file's`() {
        var breaker = CircuitBreaker()
        #expect(breaker.event(.brokenOff(file: 1), at: time(0)) == .pause(until: time(5)))
        probe(&breaker, at: 5)
        _ = breaker.event(.delivered(file: 2), at: time(6))
        for second in 7..<20 as Range<Int64> {
            #expect(breaker.event(.brokenOff(file: 1), at: time(second)) == .blameFile)
            #expect(breaker.state == .up)
        }
        #expect(breaker.event(.brokenOff(file: 3), at: time(30)) == .pause(until: time(35)))
        #expect(breaker.event(.brokenOff(file: 1), at: time(31)) == .none, "the destination is down for everybody")
    }

    @Test func `a file that is alone is to blame after a good probe`() {
        var breaker = CircuitBreaker()
        _ = breaker.event(.brokenOff(file: 1), at: time(0))
        probe(&breaker, at: 5)
        #expect(breaker.event(.brokenOff(file: 1), at: time(6)) == .blameFile)
        #expect(breaker.state == .trial)
    }

    @Test func `a server whose probe answers while every file fails is down for each of them`() {
        var breaker = CircuitBreaker()
        var now: Int64 = 0
        for round in 0..<30 {
            let file = Int64(round % 3)
            #expect(breaker.event(.brokenOff(file: file), at: time(now)) != .blameFile)
            #expect(breaker.isDown)
            now += 60
            probe(&breaker, at: now)
        }
    }

    @Test func `when several are broken off at once, none of them is to blame for it`() {
        var breaker = CircuitBreaker()
        _ = breaker.event(.brokenOff(file: 1), at: time(0))
        #expect(breaker.event(.brokenOff(file: 2), at: time(0)) == .none)
        probe(&breaker, at: 5)
        #expect(breaker.event(.brokenOff(file: 1), at: time(6)) == .pause(until: time(11)))
    }

    @Test func `two bad files end too, as soon as a third is delivered`() {
        var breaker = CircuitBreaker()
        for (file, second) in [(1, 0), (2, 60)] as [(Int64, Int64)] {
            #expect(breaker.event(.brokenOff(file: file), at: time(second)) != .blameFile)
            probe(&breaker, at: second + 30)
        }
        _ = breaker.event(.delivered(file: 3), at: time(100))
        #expect(breaker.event(.brokenOff(file: 1), at: time(101)) == .blameFile)
        #expect(breaker.event(.brokenOff(file: 2), at: time(102)) == .blameFile)
        _ = breaker.event(.delivered(file: 1), at: time(103))
        #expect(breaker.event(.brokenOff(file: 1), at: time(104)) == .pause(until: time(109)), "it was forgotten")
    }

    @Test func `a real outage makes everybody innocent`() {
        for real in [CircuitBreaker.Event.outage(after: nil), .probeFailed(credentials: false)] {
            var breaker = CircuitBreaker()
            _ = breaker.event(.brokenOff(file: 1), at: time(0))
            _ = breaker.event(real, at: time(5))
            probe(&breaker, at: 70)
            _ = breaker.event(.delivered(file: 2), at: time(71))
            #expect(breaker.event(.brokenOff(file: 1), at: time(72)) == .pause(until: time(77)))
        }
    }

    @Test func `one file for which the server always asks for time does not stop the others for ever`() {
        var breaker = CircuitBreaker()
        #expect(breaker.event(.throttled(after: .seconds(5), file: 1), at: time(0)) == .slow(until: time(5)))
        _ = breaker.event(.timePassed, at: time(5))
        _ = breaker.event(.delivered(file: 2), at: time(6))
        #expect(breaker.event(.throttled(after: .seconds(5), file: 1), at: time(7)) == .blameFile)
        #expect(breaker.state == .up)
    }

    @Test func `deliveries that crash wait at different times, a minute at most`() {
        for id in 1...50 as ClosedRange<Int64> {
            #expect((0...2).allSatisfy { CrashRule.delay(after: $0, of: id) == .zero })
            for crashes in 3...20 {
                let delay = CrashRule.delay(after: crashes, of: id)
                let span = Duration.seconds(min(60, 1 << (crashes - 3)))
                #expect(delay >= span / 2 && delay <= span)
            }
        }
        #expect(Set((1...50).map { CrashRule.delay(after: 9, of: $0) }).count > 40)
    }
}
