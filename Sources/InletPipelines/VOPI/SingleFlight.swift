internal import InletCore
internal import Synchronization

/// Work that many want done and one does: who comes while it runs gets its result.
final class SingleFlight<Value: Sendable>: Sendable {
    private typealias Outcome = Result<Value, DeliveryError>

    private struct State {
        var isFlying = false
        var count = 0
        var waiting: [Int: CheckedContinuation<Outcome?, Never>] = [:]
    }

    private let state = Mutex(State())

    /// Runs `body`, or waits for the one that runs. A task that is cancelled while it waits leaves at once; where the task
    /// that does the work was cancelled, one of the others does it again.
    func run(
        _ body: @Sendable () async throws(DeliveryError) -> Value
    ) async throws(DeliveryError) -> Value {
        while true {
            if Task.isCancelled { throw DeliveryError.stopping }
            if begin() { return try await lead(body).get() }
            guard let outcome = await follow() else { continue }
            if case .failure(let error) = outcome, error.verdict == .cancelled { continue }
            return try outcome.get()
        }
    }

    private func begin() -> Bool {
        state.withLock { state in
            defer { state.isFlying = true }
            return !state.isFlying
        }
    }

    private func lead(_ body: @Sendable () async throws(DeliveryError) -> Value) async -> Outcome {
        let outcome = await Outcome(of: try await body())
        let waiting = state.withLock { state in
            defer { state = State(count: state.count) }
            return state.waiting.values.map { $0 }
        }
        for one in waiting { one.resume(returning: outcome) }
        return outcome
    }

    /// The outcome of what runs; nil when it has ended by now, or this task was cancelled.
    private func follow() async -> Outcome? {
        let number = state.withLock { state in
            state.count += 1
            return state.count
        }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isWaiting = state.withLock { state in
                    guard state.isFlying, !Task.isCancelled else { return false }
                    state.waiting[number] = continuation
                    return true
                }
                if !isWaiting { continuation.resume(returning: nil) }
            }
        } onCancel: {
            state.withLock { $0.waiting.removeValue(forKey: number) }?.resume(returning: nil)
        }
    }
}
