import CLinux
import Glibc

/// Ends the blocking wait of a loop on another thread (eventfd(2)). Wake-ups that nobody awaits are kept as one.
package final class Waker: Sendable {
    private let descriptor: Descriptor

    package init() throws(SystemError) {
        descriptor = Descriptor(
            owning: try SystemCall.result("eventfd") { eventfd(0, CInt(EFD_NONBLOCK | EFD_CLOEXEC)) })
    }

    var number: CInt { descriptor.number }

    /// Ends the current wait, or else the next one. Never blocks; for any thread.
    package func wake() {
        var one: UInt64 = 1
        // EAGAIN means that the counter is full, so a wake-up is waiting already.
        _ = write(descriptor.number, &one, 8)
    }

    /// Forgets a pending wake-up.
    package func drain() {
        var count: UInt64 = 0
        _ = read(descriptor.number, &count, 8)
    }

    /// Blocks until woken (true) or until `deadline` (false); nil: no deadline. Consumes the wake-up.
    package func wait(until deadline: ContinuousClock.Instant?) throws(SystemError) -> Bool {
        let isWoken = try Poll.wait([descriptor.number], until: deadline)[0]
        if isWoken { drain() }
        return isWoken
    }

    /// The same for loops that look again afterwards. Where the machine has no memory for a wait, it pauses briefly.
    package func rest(until deadline: ContinuousClock.Instant?) {
        do throws(SystemError) { _ = try wait(until: deadline) } catch { poll(nil, 0, 100) }
    }
}

/// `poll(2)` with a deadline of the continuous clock.
package enum Poll {
    /// Blocks until `number` has bytes to read or, `toWrite`, room for some: true. False at the deadline. A negative number
    /// only waits.
    package static func wait(
        _ number: CInt, toWrite: Bool = false, until deadline: ContinuousClock.Instant
    ) throws(SystemError) -> Bool {
        var request = [pollfd(fd: number, events: Int16(toWrite ? POLLIN | POLLOUT : POLLIN), revents: 0)]
        try wait(for: &request, until: deadline)
        return request[0].revents != 0
    }

    /// Which descriptors are readable, in their order; none when the deadline passed. Negative numbers are skipped.
    static func wait(_ numbers: [CInt], until deadline: ContinuousClock.Instant?) throws(SystemError) -> [Bool] {
        var requests = numbers.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
        try wait(for: &requests, until: deadline)
        return requests.map { $0.revents != 0 }
    }

    /// The same, with the events to wait for given for each.
    static func wait(for requests: inout [pollfd], until deadline: ContinuousClock.Instant?) throws(SystemError) {
        while true {
            let ready = poll(&requests, nfds_t(requests.count), timeout(until: deadline))
            if ready > 0 || (ready == 0 && deadline.map { ContinuousClock.now >= $0 } == true) { return }
            if ready < 0, errno != EINTR { throw SystemError.last("poll") }
        }
    }

    // Rounded up: otherwise the last millisecond would be spent spinning. One wait lasts an hour at most: `poll` does
    // not count time in suspend, the clock does.
    static func timeout(until deadline: ContinuousClock.Instant?) -> CInt {
        guard let deadline else { return -1 }
        let left = ContinuousClock.now.duration(to: deadline)
        if left <= .zero { return 0 }
        if left >= .seconds(3600) { return 3_600_000 }
        let (seconds, attoseconds) = left.components
        return CInt(seconds * 1000 + (attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000)
    }
}
