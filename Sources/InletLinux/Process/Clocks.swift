import CLinux
import Glibc
package import InletCore
import Synchronization
import SystemPackage

/// Calls back at given times, on its own thread, and forgets withdrawn alarms at once.
///
/// `Task.sleep` keeps half a kilobyte of a cancelled sleep until its time comes. A loop that waits up to an hour, and
/// is woken a thousand times a second, would fill the memory with them.
package final class TimerThread: Sendable {
    private struct State {
        /// Few: one for each loop that waits.
        var alarms: [UInt64: (time: ContinuousClock.Instant, body: @Sendable () -> Void)] = [:]
        var last: UInt64 = 0
        /// The time for which the thread waits; nil while no alarm is set.
        var next: ContinuousClock.Instant?
        /// nil until it is started, and where that failed.
        var waker: Waker?
    }

    package static let shared = TimerThread()

    private let state = Mutex(State())

    private init() {}

    /// Calls `body` at `time`, which may be past. It must be quick and must not block.
    ///
    /// - Returns: the handle for `remove`; nil when there is no thread or descriptor for the clock now.
    package func set(_ time: ContinuousClock.Instant, _ body: @escaping @Sendable () -> Void) -> UInt64? {
        state.withLock { state in
            guard let waker = state.waker ?? start(&state) else { return nil }
            state.last += 1
            state.alarms[state.last] = (time, body)
            if state.next.map({ time < $0 }) ?? true {
                state.next = time
                waker.wake()
            }
            return state.last
        }
    }

    /// Withdraws an alarm. Its body may be running.
    package func remove(_ alarm: UInt64) { state.withLock { $0.alarms[alarm] = nil } }

    /// How many are set.
    package var count: Int { state.withLock { $0.alarms.count } }

    private func start(_ state: inout State) -> Waker? {
        do throws(SystemError) {
            let waker = try Waker()
            _ = try LoopThread(name: "alarms") { self.run(waker) }
            state.waker = waker
            return waker
        } catch {
            // The caller waits in another way, and the next alarm tries again.
            return nil
        }
    }

    private func run(_ waker: Waker) {
        while true {
            let now = ContinuousClock.now
            let (due, next) = state.withLock { state in
                let due = state.alarms.filter { $0.value.time <= now }
                for number in due.keys { state.alarms[number] = nil }
                state.next = state.alarms.values.map(\.time).min()
                return (due.values.sorted { $0.time < $1.time }, state.next)
            }
            for alarm in due { alarm.body() }
            waker.rest(until: next)
        }
    }
}

extension WallTime {
    /// The civil clock's time now (`clock_gettime(2)`, CLOCK_REALTIME).
    package static var now: WallTime {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return WallTime(milliseconds: Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000)
    }

    /// The UTC time that the whole of `text` gives in the first matching format of `formats` (strptime(3)); nil for
    /// other text.
    package init?(_ text: String, formats: [String]) {
        for format in formats {
            var date = tm()
            guard inlet_read_date(text, format, &date) == 1 else { continue }
            self.init(milliseconds: Int64(timegm(&date)) * 1000)
            return
        }
        return nil
    }
}

/// The run of the machine since it was switched on or restarted.
extension ProcessSetup {
    /// Unique to this run: `/proc/sys/kernel/random/boot_id` (random(4)), which containers share with their host; nil
    /// where it cannot be read.
    package static func bootID() -> String? {
        DurableFile.readIfPossible("/proc/sys/kernel/random/boot_id", limit: 64).map {
            String(decoding: $0, as: UTF8.self).filter { !$0.isWhitespace }
        }
    }

    /// The first half of `bootID` as a number.
    package static func bootNumber() -> Int64? {
        bootID().flatMap { UInt64($0.filter(\.isHexDigit).prefix(16), radix: 16) }.map(Int64.init(bitPattern:))
    }
}
