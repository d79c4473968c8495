package import InletCore
package import InletJournal
package import InletPipelines
internal import InletLinux
internal import Synchronization

/// Which destinations may be tried now: breakers, pauses and expiry clocks, in one place. Services report and ask.
package final class DestinationBoard: Sendable {
    /// How a destination stands.
    package struct Status: Sendable {
        package var name: String
        package var type: String
        package var state: CircuitBreaker.State
        package var isPaused: Bool
        package var lastError: String?
    }

    private struct Entry {
        var breaker = CircuitBreaker()
        var isPaused: Bool
        var lastError: String?
        /// Milliseconds on the expiry clock when `runningSince` was set, or now if that is nil.
        var uptime: Int64
        var runningSince: ContinuousClock.Instant?

        mutating func updateClock(at now: ContinuousClock.Instant) {
            if let since = runningSince { uptime += since.duration(to: now).milliseconds }
            runningSince = breaker.isUp && !isPaused ? now : nil
        }
    }

    package let destinations: [String: Destination]
    private let entries: Mutex<[String: Entry]>
    private let log: EventLog
    private let workers: Int

    package init(
        _ destinations: [Destination], paused: Set<String>, uptimes: [String: Int64], workers: Int, log: EventLog
    ) {
        self.destinations = Dictionary(destinations.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
        self.log = log
        self.workers = workers
        var entries: [String: Entry] = [:]
        for destination in destinations {
            var entry = Entry(isPaused: paused.contains(destination.name), uptime: uptimes[destination.name] ?? 0)
            entry.updateClock(at: .now)
            entries[destination.name] = entry
        }
        self.entries = Mutex(entries)
    }

    /// The room of every destination that is up and not paused.
    package func rooms() -> [ClaimRoom] {
        entries.withLock { entries in
            entries.compactMap { name, entry in
                guard entry.breaker.isUp, !entry.isPaused, let destination = destinations[name] else { return nil }
                let big = min(destination.maxInFlight ?? workers, workers)
                return ClaimRoom(destination: name, limits: [.small: destination.connections, .big: big])
            }
        }
    }

    package func lane(of size: Int64, to destination: String) -> Lane {
        size > destinations[destination]?.smallLimit ?? 0 ? .big : .small
    }

    /// Tells the breaker what came of a delivery or a probe. - Returns: true when the destination came back.
    @discardableResult
    package func report(_ name: String, _ event: CircuitBreaker.Event, reason: String? = nil) -> Bool {
        let action = entries.withLock { entries -> CircuitBreaker.Action in
            guard var entry = entries[name] else { return .none }
            defer { entries[name] = entry }
            if let reason { entry.lastError = reason }
            let wasUp = entry.breaker.isUp
            let action = entry.breaker.event(event, at: .now)
            entry.updateClock(at: .now)
            // A probe that fails again only moves the next probe: said once, not every minute.
            if case .pause = action, !wasUp { return .none }
            if action == .resume { entry.lastError = nil }
            return action
        }
        switch action {
        case .none: return false
        case .pause(let until):
            log.emit(.destinationDown(destination: name, reason: reason ?? "not reachable", probe: until))
            return false
        case .resume:
            log.emit(.destinationUp(destination: name))
            return true
        }
    }

    package func setPaused(_ name: String, _ paused: Bool) -> Bool {
        entries.withLock { entries in
            guard entries[name] != nil else { return false }
            entries[name]?.isPaused = paused
            entries[name]?.updateClock(at: .now)
            return true
        }
    }

    /// Destinations whose probe is due now.
    package func dueProbes() -> [Destination] {
        let names = entries.withLock { entries in
            entries.filter { $0.value.breaker.probeIsDue(at: .now) }.map(\.key)
        }
        return names.compactMap { destinations[$0] }
    }

    /// When the next probe is due; nil while everything is up.
    package func nextProbe() -> WallTime? {
        entries.withLock { entries in
            entries.values.compactMap { entry in
                switch entry.breaker.state {
                case .up: nil
                case .down(_, let probeAt), .credentialsRefused(_, let probeAt): probeAt
                }
            }.min()
        }
    }

    /// The expiry clocks now, in milliseconds.
    package func uptimes() -> [String: Int64] {
        entries.withLock { entries in
            for name in entries.keys { entries[name]?.updateClock(at: .now) }
            return entries.mapValues(\.uptime)
        }
    }

    func isUp(_ name: String) -> Bool { entries.withLock { $0[name]?.breaker.isUp ?? false } }

    /// The clocks that run now: those of destinations that are up and not paused.
    func runningUptimes() -> [String: Int64] {
        let all = uptimes()
        return entries.withLock { entries in all.filter { entries[$0.key]?.runningSince != nil } }
    }

    /// Whether the destination's expiry clock has anything to write down.
    func hasRun(_ name: String) -> Bool { entries.withLock { $0[name]?.uptime ?? 0 > 0 } }

    package func statuses() -> [Status] {
        entries.withLock { entries in
            entries.map { name, entry in
                Status(
                    name: name, type: destinations[name]?.type ?? "", state: entry.breaker.state,
                    isPaused: entry.isPaused, lastError: entry.lastError)
            }
        }.sorted { $0.name < $1.name }
    }
}
