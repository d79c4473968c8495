internal import InletLinux
internal import Synchronization

/// Wakes loops that wait for work. One that is raised while nobody waits is kept, so that work announced between a loop's look at
/// the queue and its wait is not slept through.
package final class WakeSignal: Sendable {
    private struct State {
        var waiting: [UInt64: CheckedContinuation<Void, Never>] = [:]
        var order: [UInt64] = []
        var next: UInt64 = 0
        var kept = 0
    }

    private static let clocklessPause = Duration.milliseconds(100)
    private let state = Mutex(State())
    /// More than there are loops would only make them spin.
    private let mostKept: Int

    /// - Parameter loops: how many loops wait at this signal.
    package init(loops: Int = 1) { mostKept = loops }

    /// Wakes up to `count` of the waiting loops; those not waiting yet will not wait next time.
    package func raise(_ count: Int = 1) {
        let woken = state.withLock { state -> [CheckedContinuation<Void, Never>] in
            var woken: [CheckedContinuation<Void, Never>] = []
            while woken.count < count, let id = state.order.first {
                state.order.removeFirst()
                if let continuation = state.waiting.removeValue(forKey: id) { woken.append(continuation) }
            }
            state.kept = min(mostKept, state.kept + count - woken.count)
            return woken
        }
        for continuation in woken { continuation.resume() }
    }

    package func raiseAll() { raise(mostKept) }

    /// Returns when it is raised, at `deadline`, or when the task is cancelled.
    package func wait(until deadline: ContinuousClock.Instant?) async {
        let id = state.withLock { state in
            state.next += 1
            return state.next
        }
        var alarm: UInt64?
        var isClockless = false
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isRaised = state.withLock { state -> Bool in
                    if state.kept > 0 || Task.isCancelled {
                        state.kept = max(0, state.kept - 1)
                        return true
                    }
                    state.waiting[id] = continuation
                    state.order.append(id)
                    return false
                }
                if isRaised { return continuation.resume() }
                guard let deadline else { return }
                alarm = AlarmClock.shared.set(deadline) { self.wake(id) }
                if alarm == nil {
                    isClockless = true
                    wake(id)
                }
            }
        } onCancel: {
            wake(id)
        }
        if let alarm { AlarmClock.shared.remove(alarm) }
        // The machine is short of everything: the loop looks again soon, and does not spin.
        if isClockless { try? await Task.sleep(for: Self.clocklessPause) }
    }

    private func wake(_ id: UInt64) {
        let continuation = state.withLock { state in
            state.order.removeAll { $0 == id }
            return state.waiting.removeValue(forKey: id)
        }
        continuation?.resume()
    }
}
