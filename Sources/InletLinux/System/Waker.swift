import CLinux
import Glibc

/// Ends the blocking wait of a loop on another thread (eventfd(2)). Wake-ups that nobody waited for are kept as one.
package final class Waker: Sendable {
    private let descriptor: Descriptor

    package init() throws(SystemError) {
        descriptor = Descriptor(
            owning: try SystemCall.result("eventfd") { eventfd(0, CInt(EFD_NONBLOCK | EFD_CLOEXEC)) })
    }

    var number: CInt { descriptor.number }

    /// Ends the wait that is going on, or else the next one. Never blocks; for any thread.
    package func wake() {
        var one: UInt64 = 1
        // EAGAIN means that the counter is full, and so that a wake-up waits already.
        _ = write(descriptor.number, &one, 8)
    }

    /// Forgets a wake-up that waits.
    package func drain() {
        var count: UInt64 = 0
        _ = read(descriptor.number, &count, 8)
    }

    /// Blocks until woken (true) or `deadline` has passed (false); nil: no deadline. The wake-up is taken.
    package func wait(until deadline: ContinuousClock.Instant?) throws(SystemError) -> Bool {
        let isWoken = try Poll.wait([descriptor.number], until: deadline)[0]
        if isWoken { drain() }
        return isWoken
    }

    /// The same for loops that look again afterwards. Where the machine has no memory for a wait, it is a short pause.
    package func rest(until deadline: ContinuousClock.Instant?) {
        do throws(SystemError) { _ = try wait(until: deadline) } catch { poll(nil, 0, 100) }
    }
}

/// `poll(2)` with a deadline of the continuous clock.
enum Poll {
    /// Which of them can be read, one answer each in their order; none when the deadline passed. A negative number is left out.
    static func wait(_ numbers: [CInt], until deadline: ContinuousClock.Instant?) throws(SystemError) -> [Bool] {
        var requests = numbers.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
        try wait(for: &requests, until: deadline)
        return requests.map { $0.revents != 0 }
    }

    /// The same for what is asked of each.
    static func wait(for requests: inout [pollfd], until deadline: ContinuousClock.Instant?) throws(SystemError) {
        while true {
            let ready = poll(&requests, nfds_t(requests.count), timeout(until: deadline))
            if ready > 0 || (ready == 0 && deadline.map { ContinuousClock.now >= $0 } == true) { return }
            if ready < 0, errno != EINTR { throw SystemError.last("poll") }
        }
    }

    // Rounded up, or the last millisecond would be spent spinning. One wait is an hour at most: `poll` does not count
    // the time of a suspend, the clock does.
    static func timeout(until deadline: ContinuousClock.Instant?) -> CInt {
        guard let deadline else { return -1 }
        let left = ContinuousClock.now.duration(to: deadline)
        if left <= .zero { return 0 }
        if left >= .seconds(3600) { return 3_600_000 }
        let (seconds, attoseconds) = left.components
        return CInt(seconds * 1000 + (attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000)
    }
}
