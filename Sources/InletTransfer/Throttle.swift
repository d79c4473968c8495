internal import InletCore
internal import InletLinux
internal import Synchronization

/// Bytes a second that may be sent: by all destinations together, and by each.
///
/// Held are the bodies of requests, shared out fairly (`BandwidthShare`), whatever threads and clients they run on. Not
/// counted are headers, what TLS and TCP add, and answers: downloads are not limited. Nor are requests that outlive
/// their task's cancellation: they are small, and a wait could not be ended.
///
/// A request begins when there are bytes for it; at a rate of 0 no connection is made for one. One that has begun goes
/// on with what curl and the kernel have taken and then waits for its turn with an open connection. Waiting is neither
/// standstill nor silence, and ends at once when the task is cancelled. A server may close such a connection. This is
/// noticed when the request continues, at the latest, and reported as a lost connection, which costs no attempt.
package final class Throttle: Sendable {
    typealias Instant = ContinuousClock.Instant

    private struct State {
        var share = BandwidthShare()
        var isLimited = false
        var limited: Set<String> = []
        var flags: [String: LimitFlag] = [:]
        /// Of those who ask: wakes the thread that they run on.
        var wakes: [BandwidthFlow: @Sendable () -> Void] = [:]
        var flows: UInt64 = 0
        /// The waiters for a change of a limit.
        var watchers: [(destination: String, waiter: Waiter<Void>)] = []

        func refreshFlags() {
            for (name, flag) in flags { flag.isSet.store(isLimited || limited.contains(name), ordering: .relaxed) }
        }
    }

    private let state = Mutex(State())

    package init() {}

    /// Limits one destination, or all together. Takes effect at once, also for what is under way.
    ///
    /// - Parameters:
    ///   - rate: nil = no limit; 0 = nothing is sent until it is raised.
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

    /// Whether something for `destination` waits for a limit at this moment.
    package func isHolding(_ destination: String) -> Bool {
        state.withLock { state in
            state.share.isWaiting(destination) || state.watchers.contains { $0.destination == destination }
        }
    }

    /// The throttle for requests of a destination (`HTTPClient.limited`).
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

    /// Waits for a change of any limit, or the task's cancellation, where nothing may be sent; false where something
    /// may.
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

/// The limit of one destination, and of all together, as its requests meet it.
package struct ThrottleLane: Sendable {
    let destination: String
    let throttle: Throttle
    fileprivate let flag: LimitFlag

    /// Whether any limit is set that holds here. Costs no lock: without limits it is all that is asked.
    var isLimited: Bool { flag.isSet.load(ordering: .relaxed) }

    /// Waits while the limit, its own or that for all, is 0, and notes that; returns at once when the task is
    /// cancelled.
    func untilOpen() async {
        guard isLimited else { return }
        let note = ThrottleWaits.current
        note?.begin()
        defer { note?.end() }
        while isLimited, !Task.isCancelled, await throttle.change(ifClosed: destination) {}
    }
}

/// Whether a limit holds for a destination: one for all its lanes.
private final class LimitFlag: Sendable {
    let isSet = Atomic<Bool>(false)
}

/// Whether anything that a task does waits for its bytes under a limit: its own requests, and those of its child tasks.
///
/// A limit of 0 can hold for hours. Shows whether a worker that was assigned to a task is useful.
package final class ThrottleWaits: Sendable {
    /// The flag of the running task; nil if nothing observes it.
    @TaskLocal package static var current: ThrottleWaits?

    private let count = Atomic<Int>(0)

    package init() {}

    package var isHeld: Bool { count.load(ordering: .relaxed) > 0 }

    /// Something begins to wait; each is followed by an `end`.
    package func begin() { count.add(1, ordering: .relaxed) }
    package func end() { count.subtract(1, ordering: .relaxed) }
}
