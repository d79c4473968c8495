internal import InletCore
internal import InletLinux
internal import InletPipelines
internal import ServiceLifecycle
internal import Synchronization

/// Sets the rates at which may be sent: those that hold at the start, others at each edge of the timetable, and what a person
/// says meanwhile. Without a timetable it sleeps until somebody says something.
final class BandwidthControl: Service {
    private let policy: Mutex<BandwidthPolicy>
    private let valve: BandwidthValve
    private let shared: Shared
    private let signal = WakeSignal()

    /// The clock on the wall may be set, and the machine may sleep: with a timetable it is looked at as often as this.
    private static let longest = Duration.seconds(60)

    /// The rates hold when it returns. Folders have no limits.
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

    /// Looks now: for tests that turn the clock.
    func lookNow() { signal.raise() }

    /// - Returns: when to look again; nil: only when somebody asks for it.
    @discardableResult
    private func look(cause: LimitCause) -> ContinuousClock.Instant? {
        let now = shared.clock.now()
        let seen = update(cause, at: now) { policy in (policy.hasSchedule, policy.nextChange(after: now)) }
        guard let (hasSchedule, next) = seen, hasSchedule else { return nil }
        // A little later than the edge, so that it has passed by every clock.
        let wait = next.map { max($0 - now, .zero) + .milliseconds(10) } ?? Self.longest
        return .now.advanced(by: min(wait, Self.longest))
    }

    /// Changes the policy, then sets and says the rates that are others by that or by the time. Under the lock, so that of two
    /// that do so at once the later one has the last word.
    ///
    /// - Parameter change: returns nil where there is nothing to change.
    private func update<Result>(
        _ cause: LimitCause, at now: WallTime, _ change: (inout BandwidthPolicy) -> Result?
    ) -> Result? {
        let (result, changes) = policy.withLock { policy -> (Result?, [BandwidthPolicy.Status]) in
            guard let result = change(&policy) else { return (nil, []) }
            let changes = policy.changes(at: now)
            for change in changes { valve(change.rate, change.destination) }
            // Those that a reload brings have not been told.
            if !changes.isEmpty || cause == .reload {
                // Nothing begins where the limit is 0.
                let shut = policy.statuses(at: now).filter { $0.rate == 0 }
                shared.destinations.setShut(Set(shut.map(\.destination)))
                shared.signals.raiseDeliverable()
                shared.signals.raise(.limit)
            }
            return (result, changes)
        }
        shared.log.emit(
            changes.map {
                .limitChanged(destination: $0.destination, rate: $0.rate, cause: cause, until: $0.until)
            })
        return result
    }

    /// Takes a person's word, for one destination or all together. - Returns: what holds there now; nil for an unknown one.
    func take(_ order: BandwidthPolicy.Order, for destination: String?) -> BandwidthPolicy.Status? {
        let taken = update(.command, at: shared.clock.now()) { $0.take(order, for: destination) ? true : nil }
        guard taken != nil else { return nil }
        signal.raise()
        return statuses().first { $0.destination == destination }
    }

    /// Takes the limits of another configuration, for these destinations. What a person has said goes on holding.
    func replace(_ limits: BandwidthLimits, destinations: [String]) {
        _ = update(.reload, at: shared.clock.now()) { policy in
            // Who goes has its limit lifted: it would hold whoever comes back under its name, unseen.
            for name in policy.replace(limits, destinations: destinations) { valve(nil, name) }
            return true
        }
        signal.raise()
    }

    /// What holds, all together first.
    func statuses() -> [BandwidthPolicy.Status] {
        let now = shared.clock.now()
        return policy.withLock { $0.statuses(at: now) }
    }
}

/// Why a limit is another than before, in log lines.
package enum LimitCause: String, Sendable {
    case start
    case schedule
    case command
    case reload
}
