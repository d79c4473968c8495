import InletCore
import InletTestSupport
import Testing

private func time(_ seconds: Int64) -> WallTime { WallTime(milliseconds: seconds * 1000) }

struct CircuitBreakerTests {
    /// A probe that fails, with the moment of its beginning.
    private func failProbe(_ breaker: inout CircuitBreaker, at seconds: Int64) -> CircuitBreaker.Action {
        _ = breaker.event(.probeBegan, at: time(seconds))
        return breaker.event(.probeFailed(credentials: false), at: time(seconds))
    }

    @Test func `an outage pauses at once and is probed after five seconds, then once a minute`() {
        var breaker = CircuitBreaker()
        #expect(breaker.event(.outage(after: nil), at: time(0)) == .pause(until: time(5)))
        #expect(!breaker.isOpen && !breaker.probeIsDue(at: time(4)) && breaker.probeIsDue(at: time(5)))
        for now in [5, 65, 125, 185] as [Int64] {
            #expect(breaker.nextLook == time(now))
            #expect(failProbe(&breaker, at: now) == .pause(until: time(now + 60)))
        }
        #expect(breaker.state == .down(since: time(0), probeAt: time(245)))
        _ = breaker.event(.probeBegan, at: time(245))
        #expect(!breaker.probeIsDue(at: time(245)) && breaker.nextLook == nil, "one that is under way is enough")
        #expect(breaker.event(.probeSucceeded, at: time(250)) == .resume)
        #expect(breaker.isOpen && !breaker.probeIsDue(at: time(1000)) && breaker.nextLook == nil)
    }

    @Test func `after a good probe one delivery goes first, and when it arrives all the others`() {
        var breaker = CircuitBreaker()
        _ = breaker.event(.outage(after: nil), at: time(0))
        #expect(breaker.event(.probeSucceeded, at: time(5)) == .resume)
        #expect(breaker.state == .trial)
        #expect(breaker.event(.refused(file: 1, code: .serverError, ends: false), at: time(6)) == .none)
        #expect(breaker.state == .trial)
        #expect(breaker.event(.delivered(file: 2), at: time(7)) == .none)
        #expect(breaker.state == .up)
        _ = breaker.event(.outage(after: nil), at: time(8))
        _ = breaker.event(.probeSucceeded, at: time(9))
        #expect(breaker.event(.answered, at: time(10)) == .none)
        #expect(breaker.state == .up)
        _ = breaker.event(.outage(after: nil), at: time(11))
        #expect(breaker.event(.answered, at: time(12)) == .none)
        #expect(breaker.isDown)
        #expect(breaker.event(.delivered(file: 3), at: time(13)) == .resume)
        #expect(breaker.state == .up, "what was under way has proved it")
    }

    @Test func `others that report the same outage change nothing, unless the server names a time`() {
        var breaker = CircuitBreaker()
        _ = breaker.event(.outage(after: nil), at: time(0))
        #expect(breaker.event(.outage(after: nil), at: time(0)) == .none)
        #expect(breaker.event(.refused(file: 1, code: .serverError, ends: false), at: time(0)) == .none)
        #expect(breaker.event(.brokenOff(file: 1), at: time(0)) == .none)
        #expect(breaker.event(.throttled(after: .seconds(9), file: 1), at: time(0)) == .none)
        #expect(breaker.event(.outage(after: .seconds(90)), at: time(0)) == .pause(until: time(90)))
        #expect(breaker.event(.outage(after: .seconds(9_999_999)), at: time(0)) == .pause(until: time(3600)))
    }

    @Test func `a server fault pauses only when two files in a row get it`() {
        var breaker = CircuitBreaker()
        #expect(breaker.event(.refused(file: 1, code: .serverError, ends: false), at: time(0)) == .none)
        #expect(breaker.event(.refused(file: 1, code: .serverError, ends: false), at: time(1)) == .none)
        #expect(breaker.event(.delivered(file: 1), at: time(2)) == .none)
        #expect(breaker.event(.refused(file: 2, code: .serverError, ends: false), at: time(3)) == .none)
        #expect(
            breaker.event(.refused(file: 3, code: .serverError, ends: false), at: time(4)) == .pause(until: time(9)))
    }

    @Test func `a probe that answers while deliveries fail is asked once a minute all the same`() {
        var breaker = CircuitBreaker()
        var probes: [Int64] = []
        var now: Int64 = 0
        for _ in 0..<4 {
            guard case .pause(let until) = breaker.event(.outage(after: nil), at: time(now)) else { continue }
            now = until.milliseconds / 1000
            probes.append(now)
            _ = breaker.event(.probeBegan, at: time(now))
            #expect(breaker.event(.probeSucceeded, at: time(now)) == .resume)
        }
        #expect(probes == [5, 65, 125, 185])
    }

    @Test func `one that works but for moments is tried with a delivery while a probe would come too soon`() {
        var breaker = CircuitBreaker()
        _ = breaker.event(.outage(after: nil), at: time(0))
        _ = breaker.event(.probeBegan, at: time(5))
        _ = breaker.event(.probeSucceeded, at: time(5))
        _ = breaker.event(.delivered(file: 1), at: time(6))
        #expect(breaker.event(.outage(after: nil), at: time(10)) == .pause(until: time(15)))
        #expect(breaker.nextLook == time(15) && !breaker.probeIsDue(at: time(15)))
        #expect(breaker.event(.timePassed, at: time(14)) == .none)
        #expect(breaker.event(.timePassed, at: time(15)) == .resume)
        #expect(breaker.state == .trial)
        // It failed: nothing has arrived since, so that only a probe can tell.
        #expect(breaker.event(.outage(after: nil), at: time(16)) == .pause(until: time(65)))
        #expect(breaker.event(.timePassed, at: time(65)) == .none)
        #expect(breaker.isDown && breaker.probeIsDue(at: time(65)))
        _ = breaker.event(.probeBegan, at: time(65))
        _ = breaker.event(.probeSucceeded, at: time(65))
        _ = breaker.event(.delivered(file: 1), at: time(66))
        #expect(breaker.event(.outage(after: .seconds(3600)), at: time(67)) == .pause(until: time(3667)))
        #expect(breaker.probeIsDue(at: time(3667)), "a time that it named is waited for, and it is probed then")
    }

    @Test func `a person who asks gets a probe, not a delivery that is tried`() {
        var breaker = CircuitBreaker()
        _ = breaker.event(.probeBegan, at: time(0))
        _ = breaker.event(.probeSucceeded, at: time(0))
        _ = breaker.event(.delivered(file: 1), at: time(1))
        _ = breaker.event(.outage(after: nil), at: time(2))
        let isEarlier = breaker.probeNow(at: time(3))
        #expect(isEarlier && breaker.probeIsDue(at: time(3)) && breaker.nextLook == time(3))
        #expect(breaker.event(.timePassed, at: time(7)) == .none)
        #expect(breaker.isDown)
    }

    @Test func `refused credentials wait for a probe a minute or for new ones`() {
        var breaker = CircuitBreaker()
        #expect(breaker.event(.secretsChanged, at: time(0)) == .none)
        #expect(breaker.event(.credentials, at: time(0)) == .pause(until: time(60)))
        #expect(breaker.event(.credentials, at: time(1)) == .none)
        #expect(breaker.event(.outage(after: .seconds(5)), at: time(1)) == .none)
        #expect(breaker.event(.delivered(file: 1), at: time(2)) == .none)
        #expect(breaker.event(.probeFailed(credentials: true), at: time(60)) == .pause(until: time(120)))
        #expect(breaker.state == .credentialsRefused(since: time(0), probeAt: time(120)))
        #expect(breaker.event(.probeFailed(credentials: false), at: time(120)) == .pause(until: time(125)))
        #expect(breaker.event(.credentials, at: time(121)) == .pause(until: time(181)))
        #expect(breaker.event(.secretsChanged, at: time(122)) == .resume)
        #expect(breaker.state == .trial)
    }

    @Test func `a clock set back makes a probe due, not far away`() {
        var breaker = CircuitBreaker()
        _ = breaker.event(.probeBegan, at: time(100_000))
        _ = breaker.event(.probeFailed(credentials: false), at: time(100_000))
        #expect(breaker.probeIsDue(at: time(10)))
        #expect(failProbe(&breaker, at: 10) == .pause(until: time(70)))
        _ = breaker.event(.probeSucceeded, at: time(70))
        _ = breaker.event(.throttled(after: .seconds(3600), file: 1), at: time(100_000))
        #expect(breaker.event(.timePassed, at: time(20)) == .none)
        #expect(breaker.state == .trial)
    }

    @Test func `who was not asked yet is asked at once, and opens for all when it answers`() {
        var breaker = CircuitBreaker(isProved: false)
        #expect(!breaker.isOpen && !breaker.isDown && breaker.probeIsDue(at: time(0)))
        #expect(breaker.nextLook == WallTime(milliseconds: 0))
        _ = breaker.event(.probeBegan, at: time(1))
        #expect(!breaker.probeIsDue(at: time(1)) && breaker.nextLook == nil)
        #expect(breaker.event(.probeSucceeded, at: time(2)) == .none)
        #expect(breaker.state == .up)
        breaker = CircuitBreaker(isProved: false)
        #expect(failProbe(&breaker, at: 1) == .pause(until: time(61)))
        #expect(breaker.state == .down(since: time(1), probeAt: time(61)))
    }

    @Test func `a server that asks for time gets nothing until then, and one delivery first afterwards`() {
        var breaker = CircuitBreaker()
        #expect(breaker.event(.throttled(after: .seconds(30), file: 1), at: time(0)) == .slow(until: time(30)))
        #expect(!breaker.isOpen && !breaker.isDown && !breaker.probeIsDue(at: time(100)))
        #expect(breaker.event(.throttled(after: .seconds(40), file: 2), at: time(1)) == .none)
        #expect(breaker.event(.delivered(file: 3), at: time(2)) == .none)
        #expect(breaker.nextLook == time(41))
        _ = breaker.event(.timePassed, at: time(40))
        #expect(!breaker.isOpen)
        _ = breaker.event(.timePassed, at: time(41))
        #expect(breaker.state == .trial)
        #expect(breaker.event(.throttled(after: .seconds(86_400), file: 4), at: time(41)) == .slow(until: time(3641)))
        #expect(breaker.event(.outage(after: nil), at: time(42)) == .pause(until: time(47)))
    }

    @Test func `a server that is always busy is asked less and less, until it takes something`() {
        var breaker = CircuitBreaker()
        var now: Int64 = 0
        var pauses: [Int64] = []
        for _ in 0..<9 {
            guard case .slow(let until) = breaker.event(.throttled(after: .seconds(1), file: 1), at: time(now)) else {
                break
            }
            pauses.append((until - time(now)).milliseconds / 1000)
            now += pauses[pauses.count - 1]
            _ = breaker.event(.timePassed, at: time(now))
        }
        #expect(pauses == [1, 2, 4, 8, 16, 32, 60, 60, 60])
        _ = breaker.event(.delivered(file: 2), at: time(now))
        #expect(breaker.event(.throttled(after: .seconds(1), file: 3), at: time(now)) == .slow(until: time(now + 1)))
    }

    @Test(arguments: 1...20 as ClosedRange<UInt64>)
    func `no minute has two probes, and pauses are at most an hour, whatever happens`(_ seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var breaker = CircuitBreaker(isProved: Bool.random(using: &generator))
        var lastProbe: WallTime?
        for second in 0..<20_000 {
            let now = time(Int64(second))
            if breaker.probeIsDue(at: now) {
                if let lastProbe { #expect(now - lastProbe >= .seconds(60)) }
                lastProbe = now
                _ = breaker.event(.probeBegan, at: now)
            }
            let file = Int64.random(in: 0...3, using: &generator)
            let asked = Duration.seconds(Int64.random(in: 0...100_000, using: &generator))
            let events: [CircuitBreaker.Event] = [
                .delivered(file: file), .answered, .refused(file: file, code: .serverError, ends: false), .credentials,
                .probeSucceeded,
                .brokenOff(file: file), .throttled(after: asked, file: file), .outage(after: asked),
                .outage(after: nil), .probeFailed(credentials: Bool.random(using: &generator)), .secretsChanged,
                .timePassed, .stranger(file: file), .refused(file: file, code: .badRequest, ends: true),
                .refused(file: file, code: .urlExpired, ends: false),
            ]
            let wasDown = breaker.isDown
            guard let event = events.randomElement(using: &generator) else { continue }
            switch breaker.event(event, at: now) {
            case .none, .blameFile: #expect(breaker.isDown == wasDown)
            case .resume: #expect(breaker.isOpen && wasDown)
            case .askFirst(let until):
                #expect(!breaker.isDown && until > now && until <= now + .seconds(61))
            case .slow(let until): #expect(until > now && until <= now + .seconds(3600) && !breaker.isOpen)
            case .pause(let until):
                #expect(breaker.isDown && until >= now + .seconds(1) && until <= now + .seconds(3600))
            }
        }
    }
}

/// Whose fault an answer is that looks like an outage.
struct FileSuspicionTests {
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
            #expect((0...2).allSatisfy { RetryPolicy.delay(afterCrashes: $0, of: id) == .zero })
            for crashes in 3...20 {
                let delay = RetryPolicy.delay(afterCrashes: crashes, of: id)
                let span = Duration.seconds(min(60, 1 << (crashes - 3)))
                #expect(delay >= span / 2 && delay <= span)
            }
        }
        #expect(Set((1...50).map { RetryPolicy.delay(afterCrashes: 9, of: $0) }).count > 40)
    }
}

/// Refusals that do not say for whose sake, and answers that are not the service's own.
struct RefusalTests {
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

    @Test func `a closed queue takes nothing, though it is empty`() {
        #expect(!QueueLimit.closed.takes(files: 1, bytes: 0, besides: (0, 0)))
        #expect(QueueLimit.closed.room(besides: (0, 0)) == 0)
    }
}
