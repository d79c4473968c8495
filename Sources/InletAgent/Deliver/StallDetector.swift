internal import InletCore
internal import InletLinux
internal import Synchronization

/// Which big transfers may start. Each lane has one place of its own; more come from a pool that all lanes share, so
/// that memory stays bounded for any number of destinations. A transfer that has not moved a byte for a while holds no
/// place of the pool: a destination that never answers delays no other.
///
/// It raises no destination's own limit.
struct StallDetector: Sendable {
    typealias Instant = ContinuousClock.Instant

    /// Places beyond one per worker: slow destinations leave as many to the others.
    static let spare = 32

    private let places: Int
    private let patience: Duration
    /// How much each has sent, and since when.
    private var running: [Int64: (lane: LaneID, sent: Int64, since: Instant)] = [:]
    /// Places that were taken for transfers that have not started.
    private var reserved: [LaneID: Int] = [:]

    /// - Parameter patience: a transfer without a byte for so long counts as stalled.
    init(workers: Int, patience: Duration) {
        places = workers + Self.spare
        self.patience = patience
    }

    /// Takes up to `most` places for transfers that are about to begin. - Returns: how many.
    mutating func take(_ most: Int, for lane: LaneID, at now: Instant) -> Int {
        let moving = moving(at: now)
        let own = moving[lane] ?? 0 > 0 ? 0 : 1
        let taken = moving.values.reduce(0) { $0 + $1 - 1 }
        let count = min(most, own + max(0, places - taken))
        reserved[lane, default: 0] += count
        return count
    }

    /// The moving and starting transfers of each lane that has any.
    private func moving(at now: Instant) -> [LaneID: Int] {
        var moving = reserved.filter { $0.value > 0 }
        for one in running.values where !hangs(since: one.since, at: now) { moving[one.lane, default: 0] += 1 }
        return moving
    }

    private func hangs(since: Instant, at now: Instant) -> Bool { since.duration(to: now) >= patience }

    /// Of `count` places that were taken, these transfers keep theirs.
    mutating func begin(_ deliveries: [Int64], of count: Int, in lane: LaneID, at now: Instant) {
        reserved[lane, default: 0] -= count
        if reserved[lane] == 0 { reserved[lane] = nil }
        for delivery in deliveries { running[delivery] = (lane, 0, now) }
    }

    mutating func end(_ delivery: Int64) { running[delivery] = nil }

    /// Records how much each has sent.
    mutating func note(_ sent: [Int64: Int64], at now: Instant) {
        for (delivery, bytes) in sent where running[delivery].map({ $0.sent != bytes }) ?? false {
            running[delivery]?.sent = bytes
            running[delivery]?.since = now
        }
    }

    /// When the next transfer may count as stalled, or a stalled one may have moved.
    func nextLook(at now: Instant) -> Instant {
        let later = now.advanced(by: patience)
        return running.values.map { $0.since.advanced(by: patience) }.filter { $0 > now }.min().map { min($0, later) }
            ?? later
    }
}

/// Since when the limits of destinations are 0. Decides when to check their running deliveries.
struct ZeroLimitClock: Sendable {
    typealias Instant = ContinuousClock.Instant

    let patience: Duration
    private(set) var since: [String: Instant] = [:]

    /// Records the limits that are 0 now. - Returns: where deliveries are held too long.
    mutating func due(_ shut: Set<String>, at now: Instant) -> [String] {
        since = Dictionary(uniqueKeysWithValues: shut.map { ($0, since[$0] ?? now) })
        return since.filter { $0.value.duration(to: now) >= patience }.keys.sorted()
    }

    /// When to check again; nil is not before another limit becomes 0.
    ///
    /// - Parameter busy: destinations with running deliveries, which may still want to send.
    func nextLook(_ busy: [String], at now: Instant) -> Instant? {
        let waiting = since.values.filter { $0.duration(to: now) < patience }.map { $0.advanced(by: patience) }
        return (waiting + (busy.isEmpty ? [] : [now.advanced(by: max(patience, .milliseconds(10)))])).min()
    }
}
