internal import InletJournal
internal import Synchronization

/// Deliveries that an earlier process began: their first attempt in this one goes on from its notes, and is told as resumed.
final class EarlierNotes: Sendable {
    /// Of more, the newest are not told apart.
    static let most = 10_000

    private let deliveries: Mutex<Set<Int64>>

    init(_ deliveries: [Int64]) { self.deliveries = Mutex(Set(deliveries)) }

    /// Whether `delivery` is one of them; from then on it is not.
    func take(_ delivery: Int64) -> Bool { deliveries.withLock { $0.remove(delivery) != nil } }
}
