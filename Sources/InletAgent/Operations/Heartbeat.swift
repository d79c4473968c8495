internal import Synchronization
internal import SystemPackage

/// Who has passed its loop lately: the watchdog's evidence that the agent does more than exist.
final class Heartbeat: Sendable {
    /// The loops that must live.
    enum Part: Hashable, Sendable {
        case intake(FilePath)
        case journal
        case workers
    }

    private let passes: Mutex<[Part: Int]>

    /// - Parameter roots: the watched folders that do not come and go, each with a loop of its own. A card that does not answer
    ///   for minutes is no reason to end what goes on elsewhere.
    init(roots: [FilePath]) {
        let parts = roots.map(Part.intake) + [.journal, .workers]
        passes = Mutex(Dictionary(parts.map { ($0, 0) }, uniquingKeysWith: { first, _ in first }))
    }

    /// One that must live from now on.
    func expect(_ part: Part) { passes.withLock { $0[part] = $0[part] ?? 0 } }

    /// One that has ended in order.
    func forget(_ part: Part) { passes.withLock { $0[part] = nil } }

    /// Others than those that must live are not counted.
    func beat(_ part: Part) { passes.withLock { $0[part]? += 1 } }

    /// Whether every part has passed since `last`, which is brought up to date if so.
    func haveAllPassed(since last: inout [Part: Int]) -> Bool {
        let now = passes.withLock { $0 }
        guard now.allSatisfy({ $0.value > last[$0.key] ?? 0 }) else { return false }
        last = now
        return true
    }
}
