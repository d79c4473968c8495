import Foundation
import InletCore
import InletTestSupport
import Testing

struct RetryPolicyTests {
    @Test(arguments: 1...70) func `waits stay within their bounds`(attempt: Int) {
        var generator = SeededGenerator(seed: UInt64(attempt))
        let policy = RetryPolicy()
        let ceiling = min(300.0, pow(2, Double(attempt - 1)))
        let waits = (0..<200).map { _ in policy.delay(afterAttempt: attempt, asked: nil, using: &generator) }
        #expect(waits.allSatisfy { $0 >= .milliseconds(100) && $0 <= .seconds(ceiling) })
        #expect(waits.contains { $0 > .seconds(ceiling * 0.8) } && waits.contains { $0 < .seconds(ceiling * 0.2) })
    }

    @Test func `the server's wish is a lower bound, up to an hour`() {
        var generator = SeededGenerator(seed: 1)
        let policy = RetryPolicy(backoff: .zero)
        #expect(policy.delay(afterAttempt: 1, asked: nil, using: &generator) == .milliseconds(100))
        #expect(policy.delay(afterAttempt: 1, asked: .seconds(7), using: &generator) == .seconds(7))
        #expect(policy.delay(afterAttempt: 1, asked: .seconds(-7), using: &generator) == .milliseconds(100))
        #expect(policy.delay(afterAttempt: 0, asked: .seconds(86_400), using: &generator) == .seconds(3600))
        let endless = RetryPolicy(backoff: .seconds(Int64.max / 2000), maxBackoff: .seconds(Int64.max / 2000))
        #expect(endless.delay(afterAttempt: .max, asked: nil, using: &generator) >= .milliseconds(100))
    }

    @Test func `the journal's form is milliseconds and comes back the same`() throws {
        for policy in [RetryPolicy(), RetryPolicy(attempts: 1, backoff: .milliseconds(250), expire: nil)] {
            let data = try JSONEncoder().encode(policy)
            #expect(try JSONDecoder().decode(RetryPolicy.self, from: data) == policy)
        }
        let text = String(decoding: try JSONEncoder().encode(RetryPolicy()), as: UTF8.self)
        #expect(text.contains("\"backoff_ms\":1000") && text.contains("\"expire_ms\":86400000"))
        #expect(throws: DecodingError.self) { try JSONDecoder().decode(RetryPolicy.self, from: Data("{}".utf8)) }
    }
}

struct CircuitBreakerTests {
    private func time(_ seconds: Int64) -> WallTime { WallTime(milliseconds: seconds * 1000) }

    @Test func `an outage pauses at once and is probed ever less often`() {
        var breaker = CircuitBreaker()
        #expect(breaker.event(.outage(after: nil), at: time(0)) == .pause(until: time(1)))
        #expect(!breaker.isUp && !breaker.probeIsDue(at: time(0)) && breaker.probeIsDue(at: time(1)))
        var now: Int64 = 1
        for wait in [5, 15, 30, 60, 60, 60] as [Int64] {
            #expect(breaker.event(.probeFailed(credentials: false), at: time(now)) == .pause(until: time(now + wait)))
            now += wait
        }
        #expect(breaker.state == .down(since: time(0), probeAt: time(now)))
        #expect(breaker.event(.probeSucceeded, at: time(now)) == .resume)
        #expect(breaker.isUp && !breaker.probeIsDue(at: time(now + 1000)))
    }

    @Test func `others that report the same outage change nothing, unless the server names a time`() {
        var breaker = CircuitBreaker()
        _ = breaker.event(.outage(after: nil), at: time(0))
        #expect(breaker.event(.outage(after: nil), at: time(0)) == .none)
        #expect(breaker.event(.serverFault(file: 1), at: time(0)) == .none)
        #expect(breaker.event(.outage(after: .seconds(90)), at: time(0)) == .pause(until: time(90)))
        #expect(breaker.event(.outage(after: .seconds(9_999_999)), at: time(0)) == .pause(until: time(3600)))
    }

    @Test func `a server fault pauses only when two files in a row get it`() {
        var breaker = CircuitBreaker()
        #expect(breaker.event(.serverFault(file: 1), at: time(0)) == .none)
        #expect(breaker.event(.serverFault(file: 1), at: time(1)) == .none)
        #expect(breaker.event(.delivered, at: time(2)) == .none)
        #expect(breaker.event(.serverFault(file: 2), at: time(3)) == .none)
        #expect(breaker.event(.serverFault(file: 3), at: time(4)) == .pause(until: time(5)))
    }

    @Test func `a probe that answers while deliveries fail does not bring back a probe a second`() {
        var breaker = CircuitBreaker()
        var waits: [Int64] = []
        var now: Int64 = 0
        for _ in 0..<6 {
            guard case .pause(let until) = breaker.event(.outage(after: nil), at: time(now)) else { continue }
            waits.append(until.milliseconds / 1000 - now)
            now = until.milliseconds / 1000
            #expect(breaker.event(.probeSucceeded, at: time(now)) == .resume)
        }
        #expect(waits == [1, 5, 15, 30, 60, 60])
        #expect(breaker.event(.delivered, at: time(now)) == .none)
        #expect(breaker.event(.outage(after: nil), at: time(now)) == .pause(until: time(now + 1)))
        #expect(breaker.event(.delivered, at: time(now)) == .resume)
    }

    @Test func `refused credentials wait for a probe a minute or for new ones`() {
        var breaker = CircuitBreaker()
        #expect(breaker.event(.secretsChanged, at: time(0)) == .none)
        #expect(breaker.event(.credentials, at: time(0)) == .pause(until: time(60)))
        #expect(breaker.event(.credentials, at: time(1)) == .none)
        #expect(breaker.event(.outage(after: .seconds(5)), at: time(1)) == .none)
        #expect(breaker.event(.delivered, at: time(2)) == .none)
        #expect(breaker.event(.probeFailed(credentials: true), at: time(60)) == .pause(until: time(120)))
        #expect(breaker.state == .credentialsRefused(since: time(0), probeAt: time(120)))
        #expect(breaker.event(.probeFailed(credentials: false), at: time(120)) == .pause(until: time(121)))
        #expect(breaker.event(.credentials, at: time(121)) == .pause(until: time(181)))
        #expect(breaker.event(.secretsChanged, at: time(122)) == .resume)
    }

    @Test func `a clock set back makes a probe due, not far away`() {
        var breaker = CircuitBreaker()
        _ = breaker.event(.outage(after: nil), at: time(100_000))
        #expect(breaker.probeIsDue(at: time(10)))
    }

    @Test func `pauses are at most an hour and end in the future, whatever happens`() {
        var generator = SeededGenerator(seed: 3)
        var breaker = CircuitBreaker()
        for second in 0..<5000 {
            let events: [CircuitBreaker.Event] = [
                .delivered, .serverFault(file: .random(in: 0...2, using: &generator)), .credentials, .probeSucceeded,
                .outage(after: .seconds(Int64.random(in: 0...100_000, using: &generator))), .outage(after: nil),
                .probeFailed(credentials: Bool.random(using: &generator)), .secretsChanged,
            ]
            let wasUp = breaker.isUp
            let now = time(Int64(second))
            guard let event = events.randomElement(using: &generator) else { continue }
            switch breaker.event(event, at: now) {
            case .none: #expect(breaker.isUp == wasUp)
            case .resume: #expect(breaker.isUp && !wasUp)
            case .pause(let until):
                #expect(!breaker.isUp && until >= now + .seconds(1) && until <= now + .seconds(3600))
            }
        }
    }
}

struct JobStateTests {
    @Test func `a file is as bad as its worst delivery, once all have ended`() {
        let worstFirst: [DeliveryState] = [.failed, .expired, .cancelled, .superseded, .gone, .delivered]
        for (index, worst) in worstFirst.enumerated() {
            #expect(FileState.combined(Array(worstFirst[index...].reversed())).rawValue == worst.rawValue)
        }
        for open in [DeliveryState.ready, .claimed, .parked] {
            #expect(FileState.combined([.failed, open]) == .pending)
        }
        #expect(FileState.combined([]) == .pending)
        #expect(DeliveryState.allCases.filter { !$0.isFinal } == [.ready, .claimed, .parked])
        #expect(FileState.allCases.filter { !$0.isFinal } == [.pending])
    }
}
