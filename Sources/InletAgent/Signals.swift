internal import InletLinux
internal import ServiceLifecycle
internal import Synchronization

/// How the parts of the agent wake each other. A signal carries nothing: the woken part asks the journal, or the
/// destinations, for its work. A signal that is raised while nobody waits is kept.
final class Signals: Sendable {
    enum Signal: Hashable, Sendable {
        /// A delivery of this lane may be due, or there may be room for one.
        case deliverable(LaneID)
        /// A destination may have come or gone.
        case lanes
        /// A delivery with an expiry waits.
        case expirable
        /// A file has ended, and its source needs finishing.
        case finishable
        /// A person has ordered the removal of a file.
        case removable
        /// A delivery has ended that may have left parts at its destination.
        case leftover
        /// A destination went down, asked for a pause, or needs a check now.
        case destination
        /// A bandwidth limit became 0, or was lifted.
        case limit
        /// A batch has ended.
        case batch
        /// A part of the fleet has work, or the session has changed.
        case fleet(FleetPart)
    }

    /// The parts of an agent that wait for the fleet.
    enum FleetPart: Hashable, Sendable, CaseIterable {
        case keys
        case contents
        case shares
        case receipts
        case recovery
        case report
        /// Shares: who holds them, and whether they are there.
        case places
        /// Their work: to claim, to settle, to give back.
        case work
    }

    /// The signals that were awaited or raised.
    private let signals = Mutex<[Signal: WakeSignal]>([:])

    subscript(_ signal: Signal) -> WakeSignal {
        signals.withLock { signals in
            let wake = signals[signal] ?? WakeSignal()
            signals[signal] = wake
            return wake
        }
    }

    /// Wakes one who waits for each of them.
    func raise(_ signals: Signal...) { for signal in signals { raise(signal, times: 1) } }

    /// As often as that.
    func raise(_ signal: Signal, times count: Int) {
        self[signal].raise(count)
        if case .deliverable = signal { self[.expirable].raise(count) }
    }

    /// Wakes all lanes, their starter, and those that ask the fleet for what the lanes may do.
    func raiseDeliverable() {
        raiseLanes()
        raise(.fleet(.keys), .fleet(.shares))
    }

    func raiseLanes() {
        for (signal, wake) in signals.withLock(\.self) { if case .deliverable = signal { wake.raise() } }
        raise(.lanes, .expirable)
    }
}

/// Wakes loops that wait for work. One that is raised while nobody waits is kept, so that work announced between a loop's look at
/// the queue and its wait is not slept through.
package final class WakeSignal: Sendable {
    private static let clocklessPause = Duration.milliseconds(100)
    /// The waiting loops, in the order in which they came.
    private let state = Mutex<(waiting: [Waiter<Void>], kept: Int)>(([], 0))
    /// More than there are loops would only make them spin.
    private let mostKept: Int

    /// - Parameter loops: how many loops wait at this signal.
    package init(loops: Int = 1) { mostKept = loops }

    /// Wakes up to `count` of the waiting loops; those not waiting yet will not wait next time.
    package func raise(_ count: Int = 1) {
        let woken = state.withLock { state in
            var woken: [@Sendable () -> Void] = []
            while woken.count < count, !state.waiting.isEmpty {
                if let goOn = state.waiting.removeFirst().take(()) { woken.append(goOn) }
            }
            state.kept = min(mostKept, state.kept + count - woken.count)
            return woken
        }
        for goOn in woken { goOn() }
    }

    package func raiseAll() { raise(mostKept) }

    /// Returns when it is raised, at `deadline`, or when the task is cancelled.
    package func wait(until deadline: ContinuousClock.Instant?) async {
        let waiter = Waiter<Void>()
        let isRaised = state.withLock { state in
            if state.kept > 0 || Task.isCancelled {
                state.kept = max(0, state.kept - 1)
                return true
            }
            state.waiting.append(waiter)
            return false
        }
        if isRaised { return }
        let alarm = deadline.flatMap { TimerThread.shared.set($0) { waiter.resume(with: ()) } }
        let isClockless = deadline != nil && alarm == nil
        if !isClockless { _ = await waiter.wait() }
        if let alarm { TimerThread.shared.remove(alarm) }
        state.withLock { $0.waiting.removeAll { $0 === waiter } }
        // The machine is short of resources: the loop looks again soon, without spinning.
        if isClockless { await Task.rest(for: Self.clocklessPause) }
    }

    /// The loop of nearly every service: do what is due, else wait for the earliest time or for a signal. Runs until
    /// the task is cancelled.
    ///
    /// A service asks the journal for due work, does a part of it, and says when to look again. A signal between the
    /// look and the wait is kept, so its work is not slept through. A pause that no signal may shorten, such as a
    /// receiver's, is slept inside `doDue`. Work at fixed intervals is a job of the `Scheduler`.
    ///
    /// - Parameter doDue: returns the time of the next work: now if there may be more; nil to wait for the signal.
    package func loop(_ doDue: () async -> ContinuousClock.Instant?) async {
        while !Task.isCancelled {
            let next = await doDue()
            if let next, next <= .now { continue }
            await wait(until: next)
        }
    }
}

/// A flag that is set once, at a request to stop, and never unset.
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
    /// As `rest`; a graceful shutdown ends it too.
    @discardableResult
    static func restUntilStop(for time: Duration) async -> Bool {
        await cancelWhenGracefulShutdown { await rest(for: time) }
    }

    /// Returns at a request to stop, for a service without work until then: a service that returns by itself ends the
    /// agent.
    static func waitForStop() async {
        // It throws when the task is cancelled, which ends the wait as well.
        try? await gracefulShutdown()
    }
}
