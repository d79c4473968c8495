import InletCore
import Synchronization

@testable import InletAgent

/// Both clocks of an agent, turned by hand.
final class VirtualTime: Sendable {
    static let start = WallTime(milliseconds: 1_900_000_000_000)
    private let passed = Mutex<Duration>(.zero)
    private let first = SuspendingClock.now

    var now: WallTime { passed.withLock { Self.start + $0 } }
    var clock: AgentClock {
        AgentClock(now: { self.now }, instant: { self.first.advanced(by: self.passed.withLock(\.self)) })
    }

    func advance(to time: WallTime) { passed.withLock { $0 = max($0, time - Self.start) } }
}

/// Moments, and the most of them that any 60 s had within one run of the agent.
struct MinuteCount {
    private(set) var count = 0
    private(set) var most = 0
    private var times: [WallTime] = []

    mutating func add(_ time: WallTime) {
        count += 1
        times.append(time)
        most = max(most, times.reversed().prefix { time - $0 < .seconds(60) }.count)
    }

    mutating func forgetTimes() { times = [] }
}
