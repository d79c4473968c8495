import Synchronization

/// Thrown to those who wait for a port that will never be bound.
package struct SandboxStopped: Error, CustomStringConvertible {
    package var description: String {
        "The sandbox ended before it was listening; the error that its run() threw says why."
    }
}

/// The port of a server that is about to start, for any number of waiters.
final class BoundPort: Sendable {
    private enum State {
        case starting([Int: CheckedContinuation<Int, any Error>])
        case bound(Int)
        case stopped
    }

    private let state = Mutex(State.starting([:]))
    private let tickets = Atomic<Int>(0)

    /// Waits until the server listens. Throws `SandboxStopped` when it ended, `CancellationError` when cancelled.
    func value() async throws -> Int {
        let ticket = tickets.add(1, ordering: .relaxed).newValue
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { wait(ticket, $0) }
        } onCancel: {
            forget(ticket)?.resume(throwing: CancellationError())
        }
    }

    func bind(_ port: Int) { settle(.bound(port), with: .success(port)) }
    func stop() { settle(.stopped, with: .failure(SandboxStopped())) }

    private func wait(_ ticket: Int, _ continuation: CheckedContinuation<Int, any Error>) {
        let known = state.withLock { state -> Result<Int, any Error>? in
            switch state {
            case .bound(let port): return .success(port)
            case .stopped: return .failure(SandboxStopped())
            case .starting where Task.isCancelled: return .failure(CancellationError())
            case .starting(var waiters):
                waiters[ticket] = continuation
                state = .starting(waiters)
                return nil
            }
        }
        if let known { continuation.resume(with: known) }
    }

    private func forget(_ ticket: Int) -> CheckedContinuation<Int, any Error>? {
        state.withLock { state in
            guard case .starting(var waiters) = state else { return nil }
            let continuation = waiters.removeValue(forKey: ticket)
            state = .starting(waiters)
            return continuation
        }
    }

    private func settle(_ new: State, with result: Result<Int, any Error>) {
        let waiters = state.withLock { state -> [CheckedContinuation<Int, any Error>] in
            defer { state = new }
            guard case .starting(let waiters) = state else { return [] }
            return Array(waiters.values)
        }
        for waiter in waiters { waiter.resume(with: result) }
    }
}
