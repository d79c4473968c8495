package import InletAgent
internal import InletCore
internal import InletLinux
internal import Synchronization

/// The newest events and the rates of the last hour, for the page and for `inlet tail`. Costs little: it listens to
/// events that are emitted anyway, counts running transfers only when asked, and keeps nothing on disk.
package final class ActivityFeed: Sendable {
    private struct State {
        var ring: EventRing
        var rates: RateHistory
        /// The subscribers' signals, by a number each.
        var readers: [UInt64: WakeSignal] = [:]
        var nextReader: UInt64 = 0
        /// Counts orders that may have changed something without an event.
        var changes: UInt64 = 0
    }

    private let state: Mutex<State>

    /// Listens to `log` from now on.
    package init(_ log: EventLog) {
        let now = WallTime.now
        // Numbers keep growing from one process to the next, so that a returning reader recognises new ones.
        let ring = EventRing(after: now.milliseconds * 1000)
        state = Mutex(State(ring: ring, rates: RateHistory(from: now)))
        log.listen { [weak self] in self?.hear($0) }
        log.listen(hearsRepeats: false) { [weak self] in self?.keep($0) }
    }

    private func hear(_ event: AgentEvent) {
        let now = WallTime.now
        change { _ = $0.rates.hear(event, at: now) }
    }

    private func keep(_ event: AgentEvent) {
        let now = WallTime.now
        change { $0.ring.append(event, at: now) }
    }

    /// Wakes the subscribers after an order that may have changed something without an event.
    func noteChange() { change { $0.changes += 1 } }

    private func change(_ body: (inout State) -> Void) {
        let readers = state.withLock { state in
            body(&state)
            return Array(state.readers.values)
        }
        for reader in readers { reader.raise() }
    }

    /// Grows with each `noteChange`.
    var changes: UInt64 { state.withLock { $0.changes } }

    /// Counts the bytes that running deliveries have sent since the last look.
    func count(_ inFlight: [Transfers.RunningTransfer]) {
        let now = WallTime.now
        state.withLock { state in
            for transfer in inFlight {
                let ref = transfer.ref
                state.rates.look(transfer.sent, of: ref.delivery, to: ref.destination, at: now)
            }
        }
    }

    func rates(_ inFlight: [Transfers.RunningTransfer]) -> RatesReport {
        count(inFlight)
        return state.withLock { $0.rates.series(at: .now) }
    }

    /// The number of the newest event.
    var last: Int64 { state.withLock { $0.ring.last } }

    /// The time of the oldest event that is remembered.
    var since: WallTime? { state.withLock { $0.ring.since } }

    /// See `EventRing.after`.
    func events(after seq: Int64, limit: Int) -> [EventReport] {
        state.withLock { $0.ring.after(seq, limit: limit) }.map { EventReport($0) }
    }

    /// The newest events of a level and above, oldest first; of one job if it is named.
    func newest(_ limit: Int, level: LogSettings.Level, job: Int64? = nil, before seq: Int64? = nil) -> [EventReport] {
        // Reports are made outside the lock: `emit` waits for it.
        let entries = state.withLock { $0.ring.before(seq) }
        var found: [EventReport] = []
        for entry in entries.reversed() {
            if found.count == limit { break }
            let report = EventReport(entry)
            if report.level >= level, job == nil || report.job == job { found.append(report) }
        }
        return found.reversed()
    }

    /// A signal that is raised at each event, until `end` is called.
    func subscribe() -> (signal: WakeSignal, end: @Sendable () -> Void) {
        let signal = WakeSignal()
        let id = state.withLock { state in
            state.nextReader += 1
            state.readers[state.nextReader] = signal
            return state.nextReader
        }
        return (signal, { [weak self] in self?.state.withLock { $0.readers[id] = nil } })
    }
}

/// The newest events, each with its own number; older ones are forgotten.
struct EventRing: Sendable {
    struct Entry: Sendable {
        var seq: Int64
        var at: WallTime
        var event: AgentEvent
    }

    static let most = 2000

    private var entries: [Entry] = []
    /// The position of the oldest, once the ring is full.
    private var oldest = 0
    private let capacity: Int
    private(set) var last: Int64

    /// - Parameter last: the number before the first.
    init(after last: Int64, capacity: Int = Self.most) {
        self.last = last
        self.capacity = capacity
    }

    mutating func append(_ event: AgentEvent, at time: WallTime) {
        last += 1
        let entry = Entry(seq: last, at: time, event: event)
        if entries.count < capacity {
            entries.append(entry)
        } else {
            entries[oldest] = entry
            oldest = (oldest + 1) % capacity
        }
    }

    /// The time of the oldest event kept.
    var since: WallTime? { entries.isEmpty ? nil : entries[oldest].at }

    /// Events after a number, oldest first, at most `limit`; for an unknown or forgotten number, all of them.
    func after(_ seq: Int64, limit: Int) -> [Entry] {
        let first = last - Int64(entries.count) + 1
        let skipped = seq < first || seq > last ? 0 : Int(seq - first) + 1
        return (skipped..<min(entries.count, skipped + limit)).map { self[$0] }
    }

    /// Events before a number, oldest first; nil = all.
    func before(_ seq: Int64?) -> [Entry] {
        entries.indices.map { self[$0] }.filter { $0.seq < seq ?? .max }
    }

    /// By age, the oldest first.
    private subscript(_ index: Int) -> Entry { entries[(oldest + index) % entries.count] }
}

/// One event with its number, as in a line of the log.
package struct EventReport: Encodable, Sendable {
    let seq: Int64
    let level: LogSettings.Level
    private let json: JSONValue

    init(_ entry: EventRing.Entry) {
        let line = entry.event.line
        seq = entry.seq
        level = line.level
        var object: [String: JSONValue] = [:]
        for (name, value) in line.fields {
            object[name] =
                switch value {
                case .text(let text): .string(text)
                case .number(let number): .number(String(number))
                case .list(let items): .array(items.map { .string($0) })
                case .flag(let flag): .boolean(flag)
                }
        }
        object["seq"] = .number(String(entry.seq))
        object["ts"] = .string(entry.at.rfc3339)
        object["level"] = .string(line.level.rawValue)
        object["event"] = .string(line.name)
        json = .object(object)
    }

    /// Its job; nil where it concerns none.
    var job: Int64? { json["job"]?.integer }

    package func encode(to encoder: any Encoder) throws { try json.encode(to: encoder) }
}

extension EventReport: NamedSchema {
    static var schemaName: String { "Event" }
    static var schema: Schema {
        .object(
            [
                .must("seq", .integer), .must("ts", .time),
                .must("level", .level),
                .must("event", .text, "As in the log: job.delivered, destination.down …"),
                .may("was", .text, "The former name of an event that 0.9 renamed; removed with 0.10."),
            ], more: .anything)
    }
}
