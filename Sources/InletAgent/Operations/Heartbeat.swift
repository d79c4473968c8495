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

    /// When each part passed last, as one count for all of them: it never goes back, so that a part that is forgotten and
    /// expected again is not behind what was seen of it.
    private struct State {
        var passes: [Part: Int]
        var total = 0
    }

    private let state: Mutex<State>

    /// - Parameter roots: the watched folders that do not come and go, each with a loop of its own. A card that does not answer
    ///   for minutes is no reason to end what goes on elsewhere.
    init(roots: [FilePath]) {
        let parts = roots.map(Part.intake) + [.journal, .workers]
        state = Mutex(State(passes: Dictionary(parts.map { ($0, 0) }, uniquingKeysWith: { first, _ in first })))
    }

    /// One that must live from now on.
    func expect(_ part: Part) { state.withLock { $0.passes[part] = $0.passes[part] ?? $0.total } }

    /// One that has ended in order.
    func forget(_ part: Part) { state.withLock { $0.passes[part] = nil } }

    /// Others than those that must live are not counted.
    func beat(_ part: Part) {
        state.withLock { state in
            guard state.passes[part] != nil else { return }
            state.total += 1
            state.passes[part] = state.total
        }
    }

    /// Whether every part has passed since `last`, which is brought up to date if so.
    func haveAllPassed(since last: inout [Part: Int]) -> Bool {
        let now = state.withLock(\.passes)
        guard now.allSatisfy({ $0.value > last[$0.key] ?? 0 }) else { return false }
        last = now
        return true
    }
}
