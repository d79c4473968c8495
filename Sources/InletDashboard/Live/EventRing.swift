internal import InletAgent
internal import InletCore

/// The newest events, each under a number of its own; older ones are forgotten.
struct EventRing: Sendable {
    struct Entry: Sendable {
        var seq: Int64
        var at: WallTime
        var event: AgentEvent
    }

    static let most = 2000

    private var entries: [Entry] = []
    /// Where the oldest is, once the ring is full.
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

    /// When the oldest that is remembered was said.
    var since: WallTime? { entries.isEmpty ? nil : entries[oldest].at }

    /// Those after a number, oldest first, at most `limit`; of a number that is not remembered, and of one that never was, all
    /// that are.
    func after(_ seq: Int64, limit: Int) -> [Entry] {
        let first = last - Int64(entries.count) + 1
        let skipped = seq < first || seq > last ? 0 : Int(seq - first) + 1
        return (skipped..<min(entries.count, skipped + limit)).map { self[$0] }
    }

    /// Those before a number, oldest first; nil = all.
    func before(_ seq: Int64?) -> [Entry] {
        entries.indices.map { self[$0] }.filter { $0.seq < seq ?? .max }
    }

    /// By age, the oldest first.
    private subscript(_ index: Int) -> Entry { entries[(oldest + index) % entries.count] }
}
