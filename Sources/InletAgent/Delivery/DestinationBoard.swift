package import InletCore
package import InletJournal
internal import InletLinux
package import InletPipelines
internal import Synchronization
internal import SystemPackage

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
        var destination: Destination
        var breaker = CircuitBreaker()
        var isPaused: Bool
        var lastError: String?
        /// Milliseconds on the expiry clock when `runningSince` was set, or now if that is nil.
        var uptime: Int64
        var runningSince: ContinuousClock.Instant?

        /// It is down because the account there has no credits left, and for nothing else.
        var lacksCredits = false

        var isOpen: Bool { breaker.isUp && !isPaused }
        /// Whether what it has begun goes on: that costs nothing any more, and may end, though nothing new may begin.
        var goesOn: Bool { isOpen || lacksCredits && !isPaused }

        /// - Returns: what is to be said of it.
        mutating func take(
            _ event: CircuitBreaker.Event, _ reason: String?, _ code: ErrorCode?
        ) -> CircuitBreaker.Action {
            let wasUp = breaker.isUp
            if lacksCredits {
                switch event {
                case .delivered: return .none
                // Said already; and the probe comes no later for each delivery that finds nothing either.
                case .outage where code == .outOfCredits: return .none
                // Now it is away as well: a probe shall tell soon when what has begun can go on.
                case .outage: breaker = CircuitBreaker()
                default: break
                }
            }
            if let reason { lastError = reason }
            let action = breaker.event(event, at: .now)
            switch event {
            case .outage, .credentials, .probeFailed:
                if case .down = breaker.state { lacksCredits = code == .outOfCredits } else { lacksCredits = false }
            case .probeSucceeded, .secretsChanged, .delivered, .serverFault: if breaker.isUp { lacksCredits = false }
            }
            updateClock(at: .now)
            // A probe that fails again only moves the next probe: said once, not every minute.
            if case .pause = action, !wasUp { return .none }
            if action == .resume { lastError = nil }
            return action
        }

        mutating func updateClock(at now: ContinuousClock.Instant) {
            if let since = runningSince { uptime += since.duration(to: now).milliseconds }
            runningSince = isOpen ? now : nil
        }
    }

    private let entries: Mutex<[String: Entry]>
    private let log: EventLog
    private let workers: Int

    package init(
        _ destinations: [Destination], paused: Set<String>, uptimes: [String: Int64], workers: Int, log: EventLog
    ) {
        self.log = log
        self.workers = workers
        var entries: [String: Entry] = [:]
        for destination in destinations {
            var entry = Entry(
                destination: destination, isPaused: paused.contains(destination.name),
                uptime: uptimes[destination.name] ?? 0)
            entry.updateClock(at: .now)
            entries[destination.name] = entry
        }
        self.entries = Mutex(entries)
    }

    /// The room of every destination that is up and not paused; of those without credits, for what they have begun.
    package func rooms() -> [ClaimRoom] {
        entries.withLock { entries in
            entries.compactMap { name, entry in
                guard entry.goesOn else { return nil }
                let destination = entry.destination
                let big = min(destination.maxInFlight ?? workers, workers)
                return ClaimRoom(
                    destination: name, limits: [.small: destination.connections, .big: big],
                    isForBegunOnly: !entry.isOpen)
            }
        }
    }

    package subscript(_ name: String) -> Destination? { entries.withLock { $0[name]?.destination } }

    package var names: [String] { entries.withLock { $0.keys.sorted() } }
    var count: Int { entries.withLock { $0.count } }

    /// Small files that all destinations together take at once.
    var connections: Int { entries.withLock { $0.values.reduce(0) { $0 + $1.destination.connections } } }

    /// Puts a destination made from changed settings in the place of the old one; running deliveries keep theirs.
    func replace(_ destination: Destination) {
        entries.withLock { $0[destination.name]?.destination = destination }
    }

    package func lane(of size: Int64, to destination: String) -> Lane {
        size > self[destination]?.smallLimit ?? 0 ? .big : .small
    }

    /// The destinations that can store a companion of `size`, with its lane there.
    func sidecarLanes(of size: Int64) -> [String: Lane] {
        entries.withLock { entries in
            entries.compactMapValues { entry in
                guard entry.destination.takesSidecars, entry.destination.storage == nil else { return nil }
                return size > entry.destination.smallLimit ? .big : .small
            }
        }
    }

    /// Of `destinations`, those that only register the file at `path` below its root, with the one that must have it first.
    ///
    /// - Parameter fields: the file's own, rendered.
    func storages(_ destinations: [String], path: FilePath, fields: [String: String]) -> [String: String] {
        let needs = entries.withLock { entries in
            destinations.compactMap { name in entries[name]?.destination.storage.map { (name, $0) } }
        }
        return Dictionary(
            uniqueKeysWithValues: needs.filter { $0.1.isNeeded(path, fields: fields) }.map { ($0.0, $0.1.destination) })
    }

    /// The destinations that are told when all of a unit has been sent.
    var closers: [String] {
        entries.withLock { entries in entries.filter { $0.value.destination.closesBatches }.keys.sorted() }
    }

    /// The destinations whose credentials end when they are not used.
    func perishable() -> [Destination] {
        entries.withLock { entries in entries.values.map(\.destination).filter { $0.keepAlive != nil } }
            .sorted { $0.name < $1.name }
    }

    /// Tells the breaker what came of a delivery or a probe.
    ///
    /// - Parameter code: what the event was about. Of `outOfCredits` a probe alone can tell that it is over: jobs that were paid
    ///   for end meanwhile.
    /// - Returns: true when more may be claimed for the destination than before.
    @discardableResult
    package func report(
        _ name: String, _ event: CircuitBreaker.Event, reason: String? = nil, code: ErrorCode? = nil
    ) -> Bool {
        let (action, mayGoOn) = entries.withLock { entries -> (CircuitBreaker.Action, Bool) in
            guard var entry = entries[name] else { return (.none, false) }
            defer { entries[name] = entry }
            let wentOn = entry.goesOn
            let action = entry.take(event, reason, code)
            return (action, !wentOn && entry.goesOn)
        }
        switch action {
        case .none: return mayGoOn
        case .pause(let until):
            log.emit(.destinationDown(destination: name, reason: reason ?? "not reachable", probe: until))
            return mayGoOn
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

    /// Makes the probe of a destination that is down due now; nil = of all.
    func probeNow(_ name: String?) {
        entries.withLock { for key in $0.keys where name ?? key == key { _ = $0[key]?.breaker.probeNow(at: .now) } }
    }

    /// Destinations whose probe is due now.
    package func dueProbes() -> [Destination] {
        entries.withLock { $0.values.filter { $0.breaker.probeIsDue(at: .now) }.map(\.destination) }
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

    func refusesCredentials(_ name: String) -> Bool {
        if case .credentialsRefused? = entries.withLock({ $0[name]?.breaker.state }) { true } else { false }
    }

    /// Whether a delivery may be tried now.
    func takes(_ delivery: DeliveryRow) -> Bool {
        entries.withLock { entries in
            guard let entry = entries[delivery.destination] else { return false }
            return entry.isOpen || entry.goesOn && delivery.hasBegun
        }
    }

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
                    name: name, type: entry.destination.type, state: entry.breaker.state,
                    isPaused: entry.isPaused, lastError: entry.lastError)
            }
        }.sorted { $0.name < $1.name }
    }
}
