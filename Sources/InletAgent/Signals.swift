internal import InletLinux
internal import ServiceLifecycle
internal import Synchronization

/// How the parts of the agent wake each other. A signal carries nothing: whoever is woken asks the journal, or the destinations,
/// what there is to do. One that is raised while nobody waits for it is kept.
final class Signals: Sendable {
    enum Signal: Hashable, Sendable {
        /// A delivery of this lane may be due, or there may be room for one.
        case deliverable(LaneID)
        /// A destination may have come or gone.
        case lanes
        /// A delivery waits that may expire.
        case expirable
        /// A file has ended, and its source is to be seen to.
        case finishable
        /// A delivery has ended that may have left something at its destination.
        case leftover
        /// A destination went down, asks for time, or shall be asked now.
        case destination
        /// A limit of bandwidth became 0, or is no more.
        case limit
        /// A batch has ended.
        case batch
    }

    /// Those that were waited for or raised.
    private let signals = Mutex<[Signal: WakeSignal]>([:])

    subscript(_ signal: Signal) -> WakeSignal {
        signals.withLock { signals in
            let wake = signals[signal] ?? WakeSignal()
            signals[signal] = wake
            return wake
        }
    }

    /// Wakes one who waits for each of them.
    func raise(_ signals: Signal...) {
        for signal in signals {
            self[signal].raise()
            if case .deliverable = signal { self[.expirable].raise() }
        }
    }

    /// Wakes all lanes, and whoever begins them.
    func raiseDeliverable() {
        for (signal, wake) in signals.withLock(\.self) { if case .deliverable = signal { wake.raise() } }
        raise(.lanes, .expirable)
    }
}

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
        if isClockless { await Task.pause(for: Self.clocklessPause) }
    }

    /// The loop of nearly every service: do what is due; else wait for the earliest time or for a signal. Goes on until the task
    /// is cancelled.
    ///
    /// A service asks the journal what is due, does a part of it, and says when to look again. What a signal announces between
    /// the look and the wait is not slept through, because a signal is kept. Pauses that nothing is to shorten, as those of a
    /// receiver that wants to be left alone, are slept inside `doDue`. Things that are done every so often whatever happens are
    /// jobs of the `Scheduler`.
    ///
    /// - Parameter doDue: returns when something is due next: now, where there may be more; nil = not before the signal is raised.
    func loop(_ doDue: () async -> ContinuousClock.Instant?) async {
        while !Task.isCancelled {
            let next = await doDue()
            if let next, next <= .now { continue }
            await wait(until: next)
        }
    }

    private func wake(_ id: UInt64) {
        let continuation = state.withLock { state in
            state.order.removeAll { $0 == id }
            return state.waiting.removeValue(forKey: id)
        }
        continuation?.resume()
    }
}

/// Set once, when somebody is asked to stop, and never unset.
package final class StopFlag: Sendable {
    private let flag = Atomic<Bool>(false)
    /// More than ever wait.
    private let signal = WakeSignal(loops: 10_000)

    package init() {}
    package var isSet: Bool { flag.load(ordering: .acquiring) }

    package func set() {
        flag.store(true, ordering: .releasing)
        signal.raiseAll()
    }

    /// Returns when the flag is set, at `deadline`, or when the task is cancelled.
    package func wait(until deadline: ContinuousClock.Instant? = nil) async {
        if !isSet { await signal.wait(until: deadline) }
    }
}

extension Task where Success == Never, Failure == Never {
    /// Sleeps, for a loop that does the same however its pause ended: it looks itself whether it is to go on.
    ///
    /// - Returns: whether the time is over; false when the task was cancelled before.
    @discardableResult
    static func pause(for time: Duration, tolerance: Duration? = nil) async -> Bool {
        do {
            try await Task.sleep(for: time, tolerance: tolerance)
            return true
        } catch {
            // It throws only when the task is cancelled.
            return false
        }
    }

    /// As `pause`; a graceful shutdown ends it too.
    @discardableResult
    static func pauseUntilStop(for time: Duration) async -> Bool {
        await cancelWhenGracefulShutdown { await pause(for: time) }
    }

    /// Returns when the agent is asked to stop: for a service that has nothing to do until then, because one that returns by
    /// itself ends the agent.
    static func waitForStop() async {
        // It throws when the task is cancelled, which is an end as well.
        try? await gracefulShutdown()
    }
}
