import InletCore
import InletTestSupport
import Testing

/// Refusals that do not say for whose sake, and answers that are not the service's own.
struct RefusalTests {
    private func time(_ seconds: Int64) -> WallTime { WallTime(milliseconds: seconds * 1000) }

    private func refused(_ file: Int64, _ code: ErrorCode = .badRequest) -> CircuitBreaker.Event {
        .refused(file: file, code: code, ends: true)
    }

    @Test func `a lone refusal has the destination probed, and ends the file when it comes again while all is well`() {
        var breaker = CircuitBreaker()
        #expect(breaker.event(refused(1), at: time(0)) == .askFirst(until: time(1)))
        #expect(breaker.isOpen && breaker.probeIsDue(at: time(0)) && breaker.nextLook == time(0))
        #expect(breaker.event(refused(1), at: time(0)) == .askFirst(until: time(1)), "nobody has answered yet")
        _ = breaker.event(.probeBegan, at: time(0))
        #expect(!breaker.probeIsDue(at: time(0)) && breaker.nextLook == nil)
        #expect(breaker.event(refused(1), at: time(0)) == .askFirst(until: time(1)))
        #expect(breaker.event(.probeSucceeded, at: time(1)) == .none)
        #expect(breaker.event(refused(1), at: time(2)) == .blameFile)
        #expect(breaker.state == .up)
    }

    @Test func `a delivery says that all is well too, and no probe is needed`() {
        var breaker = CircuitBreaker()
        _ = breaker.event(refused(1), at: time(0))
        _ = breaker.event(.delivered(file: 2), at: time(0))
        #expect(!breaker.probeIsDue(at: time(9)))
        #expect(breaker.event(refused(1), at: time(1)) == .blameFile)
    }

    @Test func `one refusal and a failed probe are an outage, after which it begins anew`() {
        var breaker = CircuitBreaker()
        _ = breaker.event(refused(1), at: time(0))
        _ = breaker.event(.probeBegan, at: time(0))
        #expect(breaker.event(.probeFailed(credentials: false), at: time(1)) == .pause(until: time(60)))
        #expect(breaker.event(refused(2), at: time(1)) == .none)
        _ = breaker.event(.probeBegan, at: time(60))
        #expect(breaker.event(.probeSucceeded, at: time(61)) == .resume)
        #expect(breaker.state == .trial)
        #expect(breaker.event(refused(1), at: time(62)) == .askFirst(until: time(121)), "nothing is held against it")
    }

    @Test
    func `two files in a row with the same refusal are an outage, and each ends with the second while all is well`() {
        var breaker = CircuitBreaker()
        _ = breaker.event(refused(1), at: time(0))
        #expect(breaker.event(refused(2), at: time(0)) == .pause(until: time(5)))
        #expect(breaker.event(refused(3), at: time(0)) == .none)
        _ = breaker.event(.probeBegan, at: time(5))
        #expect(breaker.event(.probeSucceeded, at: time(5)) == .resume)
        #expect(breaker.state == .trial)
        for file in 1...3 as ClosedRange<Int64> { #expect(breaker.event(refused(file), at: time(6)) == .blameFile) }
        #expect(breaker.event(refused(4), at: time(7)) == .askFirst(until: time(66)), "its first")
    }

    @Test func `different refusals are not the destination's, and neither are the same with a delivery in between`() {
        var breaker = CircuitBreaker()
        _ = breaker.event(refused(1), at: time(0))
        #expect(breaker.event(refused(2, .conflict), at: time(0)) == .askFirst(until: time(1)))
        _ = breaker.event(.delivered(file: 3), at: time(0))
        #expect(breaker.event(refused(4, .conflict), at: time(0)) != .pause(until: time(5)))
    }

    @Test func `refusals that count as attempts pause when two files in a row hear them`() {
        var breaker = CircuitBreaker()
        #expect(breaker.event(.refused(file: 1, code: .urlExpired, ends: false), at: time(0)) == .none)
        #expect(breaker.event(.refused(file: 1, code: .urlExpired, ends: false), at: time(0)) == .none)
        #expect(breaker.event(.refused(file: 2, code: .urlExpired, ends: false), at: time(0)) == .pause(until: time(5)))
    }

    @Test func `a stranger's answer is an outage until something is delivered, whatever a probe says`() {
        var breaker = CircuitBreaker()
        #expect(breaker.event(.stranger(file: 1), at: time(0)) == .pause(until: time(5)))
        _ = breaker.event(.probeBegan, at: time(5))
        _ = breaker.event(.probeSucceeded, at: time(5))
        #expect(breaker.event(.stranger(file: 1), at: time(6)) == .pause(until: time(65)))
        _ = breaker.event(.probeBegan, at: time(65))
        _ = breaker.event(.probeSucceeded, at: time(65))
        _ = breaker.event(.delivered(file: 2), at: time(66))
        #expect(breaker.event(.stranger(file: 1), at: time(67)) == .blameFile, "others need not wait for it")
        #expect(breaker.state == .up)
    }
}
