package import InletAgent
internal import InletCore
internal import InletLinux
internal import Synchronization

/// What has happened lately, and how fast bytes went: for people who look. Nothing of it outlives the process, and nothing
/// wakes up for it: it hears what is said anyway, and looks at what runs only when somebody asks.
package final class Pulse: Sendable {
    private struct State {
        var ring: EventRing
        var rates: RateHistory
        var sent = SentBytes()
        var ears: [UInt64: WakeSignal] = [:]
        var nextEar: UInt64 = 0
        /// Commands that may have changed something without an event.
        var changes: UInt64 = 0

        mutating func count(_ share: SentBytes.Share, _ now: WallTime) {
            rates.add(share.count, to: share.destination, from: share.since, until: now)
        }
    }

    private let state: Mutex<State>

    /// Hears everything that `log` says from now on.
    package init(_ log: EventLog) {
        let now = WallTime.now
        // Numbers go on growing from one process to the next, so that a reader who was away knows what is new to him.
        let ring = EventRing(after: now.milliseconds * 1000)
        state = Mutex(State(ring: ring, rates: RateHistory(from: now)))
        log.listen { [weak self] in self?.hear($0) }
    }

    private func hear(_ event: AgentEvent) {
        let now = WallTime.now
        let ears = state.withLock { state in
            state.ring.append(event, at: now)
            if let share = state.sent.heard(event, at: now) { state.count(share, now) }
            return state.ears.isEmpty ? [] : Array(state.ears.values)
        }
        for ear in ears { ear.raise() }
    }

    /// Somebody has changed something; what is shown of it may have no event.
    func stir() {
        let ears = state.withLock { state in
            state.changes += 1
            return Array(state.ears.values)
        }
        for ear in ears { ear.raise() }
    }

    /// Grows with each `stir`.
    var changes: UInt64 { state.withLock { $0.changes } }

    /// Counts what running deliveries have sent since the last look.
    func look(_ inFlight: [Transfers.Snapshot]) {
        let now = WallTime.now
        state.withLock { state in
            for snapshot in inFlight {
                let ref = snapshot.ref
                let share = state.sent.seen(snapshot.sent, of: ref.delivery, to: ref.destination, at: now)
                if let share { state.count(share, now) }
            }
        }
    }

    func rates(_ inFlight: [Transfers.Snapshot]) -> RatesReport {
        look(inFlight)
        return state.withLock { $0.rates.series(at: .now) }
    }

    /// The number of the newest event.
    var last: Int64 { state.withLock { $0.ring.last } }

    /// Since when everything is remembered.
    var since: WallTime? { state.withLock { $0.ring.since } }

    /// See `EventRing.after`.
    func events(after seq: Int64, limit: Int) -> [EventReport] {
        state.withLock { $0.ring.after(seq, limit: limit) }.map { EventReport($0) }
    }

    /// The newest of a level and above, oldest first; of one job if it is named.
    func newest(_ limit: Int, level: LogSettings.Level, job: Int64? = nil, before seq: Int64? = nil) -> [EventReport] {
        // What an event says is made of it outside of the lock: those who say something wait for that.
        let entries = state.withLock { $0.ring.before(seq) }
        var found: [EventReport] = []
        for entry in entries.reversed() {
            if found.count == limit { break }
            let report = EventReport(entry)
            if report.level >= level, job == nil || report.job == job { found.append(report) }
        }
        return found.reversed()
    }

    /// Raised when something happens, until `end`.
    func attend() -> (signal: WakeSignal, end: @Sendable () -> Void) {
        let signal = WakeSignal()
        let id = state.withLock { state in
            state.nextEar += 1
            state.ears[state.nextEar] = signal
            return state.nextEar
        }
        return (signal, { [weak self] in self?.state.withLock { $0.ears[id] = nil } })
    }
}
