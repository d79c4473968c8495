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
