import InletTestSupport
import Synchronization
import Testing

@testable import InletLinux

@Suite struct AlarmClockTests {
    @Test func `alarms ring at their times, in the order of these, and not when they are taken back`() async throws {
        let rung = Rung()
        // All are set before the first is due.
        let start = ContinuousClock.now.advanced(by: .seconds(1))
        let clock = AlarmClock.shared
        for number in [3, 1, 2, 9, 0] {
            let alarm = try #require(
                clock.set(start.advanced(by: .milliseconds(20 * number))) { rung.add(number, at: .now) })
            if number == 9 { clock.remove(alarm) }
        }
        try await eventually("all have rung") { rung.numbers.count == 4 }
        #expect(rung.numbers == [0, 1, 2, 3])
        for (number, time) in rung.all { #expect(start.duration(to: time) >= .milliseconds(20 * number)) }
    }

    @Test func `one that is set while a later one waits is not kept waiting`() async throws {
        let rung = Rung()
        let later = try #require(AlarmClock.shared.set(.now.advanced(by: .seconds(3600))) { rung.add(1, at: .now) })
        _ = AlarmClock.shared.set(.now.advanced(by: .milliseconds(5))) { rung.add(2, at: .now) }
        _ = AlarmClock.shared.set(.now.advanced(by: .seconds(-5))) { rung.add(3, at: .now) }
        try await eventually("both have rung") { rung.numbers.count == 2 }
        AlarmClock.shared.remove(later)
        #expect(Set(rung.numbers) == [2, 3])
    }

    /// Which alarms have rung, and when.
    private final class Rung: Sendable {
        private let state = Mutex<[(Int, ContinuousClock.Instant)]>([])

        var all: [(Int, ContinuousClock.Instant)] { state.withLock { $0 } }
        var numbers: [Int] { all.map(\.0) }

        func add(_ number: Int, at time: ContinuousClock.Instant) { state.withLock { $0.append((number, time)) } }
    }
}
