internal import InletCore
internal import Synchronization

/// Lets one task at a time work on each name; the others wait in the order in which they came.
///
/// For what is looked for first, and made where there is none: two at once would both make it.
final class KeyedMutex: Sendable {
    /// For what is made at servers, in the whole process: several destinations, and the ones of a configuration that was just
    /// replaced, may lead to one server.
    static let shared = KeyedMutex()

    private struct Waiting {
        var ticket: Int
        var continuation: CheckedContinuation<Bool, Never>
    }

    private struct State {
        /// The names that somebody has, with those who wait for them.
        var lines: [String: [Waiting]] = [:]
        var tickets = 0
    }

    private let state = Mutex(State())

    /// - Throws: `.cancelled` when the task is cancelled before its turn; what `body` throws.
    func alone<Value>(
        _ name: String, _ body: () async throws(DeliveryError) -> Value
    ) async throws(DeliveryError) -> Value {
        guard await take(name) else { throw DeliveryError.stopping }
        defer { leave(name) }
        return try await body()
    }

    func waiting(for name: String) -> Int { state.withLock { $0.lines[name]?.count ?? 0 } }

    func isTaken(_ name: String) -> Bool { state.withLock { $0.lines[name] != nil } }

    private func take(_ name: String) async -> Bool {
        let ticket = state.withLock { state in
            state.tickets += 1
            return state.tickets
        }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                // A cancellation before this look shows in the task, a later one finds the waiter.
                let now: Bool? = state.withLock { state in
                    if Task.isCancelled { return false }
                    guard state.lines[name] != nil else {
                        state.lines[name] = []
                        return true
                    }
                    state.lines[name]?.append(Waiting(ticket: ticket, continuation: continuation))
                    return nil
                }
                if let now { continuation.resume(returning: now) }
            }
        } onCancel: {
            cancel(ticket, name)
        }
    }

    private func cancel(_ ticket: Int, _ name: String) {
        let waiting = state.withLock { state -> Waiting? in
            let index = state.lines[name]?.firstIndex { $0.ticket == ticket }
            return index.flatMap { state.lines[name]?.remove(at: $0) }
        }
        waiting?.continuation.resume(returning: false)
    }

    private func leave(_ name: String) {
        let next = state.withLock { state -> Waiting? in
            guard let line = state.lines[name], !line.isEmpty else {
                state.lines[name] = nil
                return nil
            }
            return state.lines[name]?.removeFirst()
        }
        next?.continuation.resume(returning: true)
    }
}
