internal import InletCore
internal import InletLinux
internal import InletPipelines
internal import ServiceLifecycle
internal import Synchronization

/// Sets the bandwidth limits: the configured ones at the start, others at each edge of the timetable, and a person's in
/// between. Without a timetable it sleeps until a person changes something.
final class BandwidthControl: Service {
    private let policy: Mutex<BandwidthPolicy>
    private let valve: BandwidthValve
    private let shared: Shared
    private let signal = WakeSignal()

    /// The wall clock may be set, and the machine may sleep: with a timetable it checks this often.
    private static let longest = Duration.seconds(60)

    /// The limits apply when it returns. Folders have no limits.
    init(_ shared: Shared, _ valve: @escaping BandwidthValve = { _, _ in }) {
        let names = shared.destinations.names.filter { shared.destinations[$0]?.folder == nil }
        policy = Mutex(BandwidthPolicy(shared.settings.settings.bandwidth, destinations: names))
        (self.shared, self.valve) = (shared, valve)
        look(cause: .start)
    }

    func run() async throws {
        await cancelWhenGracefulShutdown {
            await self.signal.loop { self.look(cause: .schedule) }
        }
    }

    /// Checks now, for tests that turn the clock.
    func lookNow() { signal.raise() }

    /// - Returns: the time of the next check; nil waits for a request.
    @discardableResult
    private func look(cause: LimitCause) -> ContinuousClock.Instant? {
        let now = shared.clock.now()
        let seen = update(cause, at: now) { policy in (policy.hasSchedule, policy.nextChange(after: now)) }
        guard let (hasSchedule, next) = seen, hasSchedule else { return nil }
        // A little later than the edge, so that it has passed by every clock.
        let wait = next.map { max($0 - now, .zero) + .milliseconds(10) } ?? Self.longest
        return .now.advanced(by: min(wait, Self.longest))
    }

    /// Changes the policy, then sets and logs the limits that changed. Under the lock: of two simultaneous changes the
    /// later one wins.
    ///
    /// - Parameter change: returns nil if there is nothing to change.
    private func update<Result>(
        _ cause: LimitCause, at now: WallTime, _ change: (inout BandwidthPolicy) -> Result?
    ) -> Result? {
        let (result, changes) = policy.withLock { policy -> (Result?, [BandwidthPolicy.Status]) in
            guard let result = change(&policy) else { return (nil, []) }
            let changes = policy.changes(at: now)
            for change in changes { valve(change.rate, change.destination) }
            // Limits of a reload have not been logged.
            if !changes.isEmpty || cause == .reload {
                // Nothing starts while the limit is 0.
                let shut = policy.statuses(at: now).filter { $0.rate == 0 }
                shared.destinations.setShut(Set(shut.map(\.destination)))
                shared.signals.raiseDeliverable()
                shared.signals.raise(.limit)
            }
            return (result, changes)
        }
        // The fleet's parts change all the time.
        if cause == .fleet { return result }
        shared.log.emit(
            changes.map {
                .limitChanged(destination: $0.destination, rate: $0.rate, cause: cause, until: $0.until)
            })
        return result
    }

    /// Applies a person's limit, for one destination or all together. - Returns: the limit in effect; nil for an
    /// unknown destination.
    func take(_ order: BandwidthPolicy.Order, for destination: String?) -> BandwidthPolicy.Status? {
        let taken = update(.command, at: shared.clock.now()) { $0.take(order, for: destination) ? true : nil }
        guard taken != nil else { return nil }
        signal.raise()
        return statuses().first { $0.destination == destination }
    }

    /// Bounds a destination's rate by this agent's part of a limit of its fleet; nil lifts that.
    func bound(_ destination: String, to rate: Int64?) {
        _ = update(.fleet, at: shared.clock.now()) { $0.bound(destination, to: rate) }
    }

    /// Applies the limits of another configuration, for these destinations. A person's limits stay.
    func replace(_ limits: BandwidthLimits, destinations: [String]) {
        _ = update(.reload, at: shared.clock.now()) { policy in
            // A removed destination's limit is lifted: it would silently apply to a new one of the same name.
            for name in policy.replace(limits, destinations: destinations) { valve(nil, name) }
            return true
        }
        signal.raise()
    }

    /// The limits in effect, the common one first.
    func statuses() -> [BandwidthPolicy.Status] {
        let now = shared.clock.now()
        return policy.withLock { $0.statuses(at: now) }
    }
}

/// Why a limit changed, for log lines.
package enum LimitCause: String, Sendable {
    case start
    case schedule
    case command
    case reload
    case fleet
}
