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

    /// - Parameter roots: the watched folders, each with a loop of its own.
    init(roots: [FilePath]) {
        let parts = roots.map(Part.intake) + [.journal, .workers]
        passes = Mutex(Dictionary(parts.map { ($0, 0) }, uniquingKeysWith: { first, _ in first }))
    }

    func beat(_ part: Part) { passes.withLock { $0[part, default: 0] += 1 } }

    /// One that has ended, as it should.
    func forget(_ part: Part) { passes.withLock { $0[part] = nil } }

    /// Whether every part has passed since `last`, which is brought up to date if so.
    func haveAllPassed(since last: inout [Part: Int]) -> Bool {
        let now = passes.withLock { $0 }
        guard now.allSatisfy({ $0.value > last[$0.key] ?? 0 }) else { return false }
        last = now
        return true
    }
}
