internal import InletCore
internal import InletLinux
internal import Synchronization

/// Limits the bytes sent a second: by all destinations together, and by each.
///
/// It limits the bodies of requests, shared fairly (`BandwidthShare`) across threads and clients. It does not count
/// headers, TLS and TCP overhead, or answers: downloads are not limited. Nor does it hold requests that outlive their
/// task's cancellation: they are small, and their wait could not be ended.
///
/// A request begins when there are bytes for it; at a rate of 0 it does not even connect. A started one first uses the
/// bytes that curl and the kernel have taken, then waits for its turn with an open connection. Waiting is neither
/// standstill nor silence, and ends at once when the task is cancelled. A server may lose patience and close the
/// connection. That is noticed at the latest when the request continues, and reported like any lost connection, which
/// costs a delivery no attempt.
package final class Throttle: Sendable {
    typealias Instant = ContinuousClock.Instant

    private struct State {
        var share = BandwidthShare()
        var isLimited = false
        var limited: Set<String> = []
        var flags: [String: LimitFlag] = [:]
        /// Wakes the threads of those who ask.
        var wakes: [BandwidthFlow: @Sendable () -> Void] = [:]
        var flows: UInt64 = 0
        /// Tasks that wait for a limit to change.
        var watchers: [(destination: String, waiter: Waiter<Void>)] = []

        func refreshFlags() {
            for (name, flag) in flags { flag.isSet.store(isLimited || limited.contains(name), ordering: .relaxed) }
        }
    }

    private let state = Mutex(State())

    package init() {}

    /// Limits one destination, or all together. Takes effect at once, even for running transfers.
    ///
    /// - Parameters:
    ///   - rate: nil = no limit; 0 = a pause until it is raised.
    ///   - destination: nil = all together.
    package func set(_ rate: Int64?, for destination: String? = nil) {
        let wakes = state.withLock { state in
            if let destination {
                state.share.limit(rate, of: destination, at: .now)
                if rate == nil { state.limited.remove(destination) } else { state.limited.insert(destination) }
            } else {
                state.share.limit(rate, at: .now)
                state.isLimited = rate != nil
            }
            state.refreshFlags()
            let watching = state.watchers.compactMap { $0.waiter.take(()) }
            state.watchers = []
            return watching + state.wakes.values
        }
        for wake in wakes { wake() }
    }

    /// Whether any request for `destination` waits for a limit now.
    package func isHolding(_ destination: String) -> Bool {
        state.withLock { state in
            state.share.isWaiting(destination) || state.watchers.contains { $0.destination == destination }
        }
    }

    /// The lane for a destination's requests (`HTTPClient.limited`).
    package func lane(_ destination: String) -> ThrottleLane {
        let flag = state.withLock { state in
            if let known = state.flags[destination] { return known }
            let flag = LimitFlag()
            state.flags[destination] = flag
            state.refreshFlags()
            return flag
        }
        return ThrottleLane(destination: destination, throttle: self, flag: flag)
    }

    /// Waits for any limit to change, or the task's cancellation, where nothing may be sent; false where something may.
    fileprivate func change(ifClosed destination: String) async -> Bool {
        let waiter = Waiter<Void>()
        let isClosed = state.withLock { state in
            guard state.share.isClosed(destination) else { return false }
            state.watchers.append((destination, waiter))
            return true
        }
        guard isClosed else { return false }
        _ = await waiter.wait()
        state.withLock { $0.watchers.removeAll { $0.waiter === waiter } }
        return true
    }

    /// A new request, whose thread `wake` wakes when a limit changes.
    func join(waking wake: @escaping @Sendable () -> Void) -> BandwidthFlow {
        state.withLock { state in
            state.flows += 1
            let flow = BandwidthFlow(state.flows)
            state.wakes[flow] = wake
            return flow
        }
    }

    /// As `BandwidthShare.ask`.
    func ask(_ flow: BandwidthFlow, of destination: String, wanted: Int64, isSmall: Bool, at time: Instant) -> Int64 {
        state.withLock { $0.share.ask(flow, of: destination, wanted: wanted, isSmall: isSmall, at: time) }
    }

    func leave(_ flow: BandwidthFlow, unused: Int64) {
        state.withLock { state in
            state.share.leave(flow, unused: unused)
            state.wakes[flow] = nil
        }
    }

    /// As `BandwidthShare.next`.
    func next(at time: Instant) -> Instant? { state.withLock { $0.share.next(at: time) } }
}

/// The limits of one destination and of all together, as its requests meet them.
package struct ThrottleLane: Sendable {
    let destination: String
    let throttle: Throttle
    fileprivate let flag: LimitFlag

    /// Whether any limit applies here. Takes no lock: without limits nothing else is asked.
    var isLimited: Bool { flag.isSet.load(ordering: .relaxed) }

    /// Waits while its own or the common limit is 0, and records that; returns at once when the task is cancelled.
    func untilOpen() async {
        guard isLimited else { return }
        let note = ThrottleWaits.current
        note?.begin()
        defer { note?.end() }
        while isLimited, !Task.isCancelled, await throttle.change(ifClosed: destination) {}
    }
}

/// Whether a limit applies to a destination: one for all its lanes.
private final class LimitFlag: Sendable {
    let isSet = Atomic<Bool>(false)
}

/// Whether any request of a task waits for bytes under a limit: its own, and those of its child tasks.
///
/// A limit of 0 can last for hours. The giver of a worker sees here whether the worker is busy.
package final class ThrottleWaits: Sendable {
    /// The running task's; nil where nobody asks.
    @TaskLocal package static var current: ThrottleWaits?

    private let count = Atomic<Int>(0)

    package init() {}

    package var isHeld: Bool { count.load(ordering: .relaxed) > 0 }

    /// A wait begins; each is followed by an `end`.
    package func begin() { count.add(1, ordering: .relaxed) }
    package func end() { count.subtract(1, ordering: .relaxed) }
}
