internal import Synchronization

/// Files that were touched while they were on their way, and of which nothing tells whether they are still what is being sent:
/// they are looked at again when a delivery of theirs ends, which may leave a checksum to compare with.
final class KeptLooks: Sendable {
    /// Many times what is on its way at one moment.
    private static let most = 100_000
    private let files = Mutex<Set<Int64>>([])

    func keep(_ file: Int64) {
        files.withLock { if $0.count < Self.most { $0.insert(file) } }
    }

    /// - Returns: whether it was kept.
    @discardableResult
    func take(_ file: Int64) -> Bool { files.withLock { $0.remove(file) != nil } }
}
