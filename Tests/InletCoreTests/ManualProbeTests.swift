import InletCore
import Testing

/// What a person asks for beside the schedule.
@Suite struct ManualProbeTests {
    @Test func `a person makes the probe of a destination that is down due at once`() {
        let start = WallTime(milliseconds: 1_700_000_000_000)
        var breaker = CircuitBreaker()
        let isNeeded = breaker.probeNow(at: start)
        #expect(!isNeeded)
        _ = breaker.event(.outage(after: .seconds(600)), at: start)
        #expect(!breaker.probeIsDue(at: start + .seconds(9)))
        let isEarlier = breaker.probeNow(at: start + .seconds(9))
        #expect(isEarlier)
        #expect(breaker.probeIsDue(at: start + .seconds(9)))
        let isEarlierStill = breaker.probeNow(at: start + .seconds(10))
        #expect(!isEarlierStill)
    }

    @Test func `a limit takes what fits, and anything into an empty queue`() {
        let limit = QueueLimit(files: 3, bytes: 100)
        #expect(limit.takes(files: 9, bytes: 900, besides: (0, 0)))
        #expect(limit.takes(files: 1, bytes: 50, besides: (2, 50)))
        #expect(!limit.takes(files: 2, bytes: 0, besides: (2, 50)))
        #expect(!limit.takes(files: 1, bytes: 51, besides: (2, 50)))
        #expect(limit.room(besides: (1, 10)) == 2)
        #expect(limit.room(besides: (1, 100)) == 0)
        #expect(limit.room(besides: (0, 0)) == 3)
        #expect(QueueLimit().room(besides: (9, 9)) == nil)
    }
}
