internal import Synchronization

/// Who has passed its loop lately: the watchdog's evidence that the agent does more than exist.
package final class Heartbeat: Sendable {
    /// The loops that must live.
    package enum Part: Int, CaseIterable, Sendable {
        case intake
        case journal
        case workers
    }

    private let passes = Mutex([Int](repeating: 0, count: Part.allCases.count))

    package init() {}

    package func beat(_ part: Part) { passes.withLock { $0[part.rawValue] += 1 } }

    func counts() -> [Int] { passes.withLock { $0 } }
}
