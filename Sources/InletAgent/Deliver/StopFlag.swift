internal import Synchronization

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
