/// How many workers stand in for those whose deliveries do not get on: a destination that never answers would otherwise keep
/// all of them from the others. What moves no byte for a while is no transfer at once, so `workers` still bounds those.
///
/// No destination gets more than its own limit by it: the stand-ins serve those that still have room.
package struct WorkerRelief: Sendable {
    package typealias Instant = ContinuousClock.Instant

    private struct Running: Sendable {
        var isStandIn: Bool
        var sent: Int64 = 0
        /// When that was so for the first time.
        var since: Instant
    }

    /// Stand-ins at once: this many workers can hang before others have to wait for them.
    package static let most = 32

    private let workers: Int
    private let patience: Duration
    private var running: [Int64: Running] = [:]

    /// - Parameter patience: after so long without a byte a worker is taken for one that hangs.
    package init(workers: Int, patience: Duration) {
        self.workers = workers
        self.patience = patience
    }

    package mutating func begin(_ delivery: Int64, byStandIn isStandIn: Bool, at now: Instant) {
        running[delivery] = Running(isStandIn: isStandIn, since: now)
    }

    package mutating func end(_ delivery: Int64) { running[delivery] = nil }

    /// Takes note of how much of each has been sent.
    package mutating func note(_ sent: [Int64: Int64], at now: Instant) {
        for (delivery, bytes) in sent where running[delivery].map({ $0.sent != bytes }) ?? false {
            running[delivery]?.sent = bytes
            running[delivery]?.since = now
        }
    }

    /// Whether no worker is free.
    package var isFull: Bool { running.values.count { !$0.isStandIn } >= workers }

    /// How many stand-ins may be at work.
    package func standIns(at now: Instant) -> Int {
        isFull ? min(Self.most, running.values.count { $0.since.duration(to: now) >= patience }) : 0
    }

    /// When to take note again: when the next may be found to hang, and now and then whether those that do go on; nil while a
    /// worker is free.
    package func nextLook(at now: Instant) -> Instant? {
        guard isFull else { return nil }
        let next = running.values.map { $0.since.advanced(by: patience) }.filter { $0 > now }.min()
        let later = now.advanced(by: patience)
        return min(next ?? later, later)
    }
}
