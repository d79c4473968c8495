package import InletCore
internal import InletPipelines
internal import Synchronization

/// The deliveries that run now: their progress for whoever looks, and a way to end one.
package final class InFlight: Sendable {
    package struct Snapshot: Sendable {
        package var ref: AgentEvent.JobRef
        package var sent: Int64
        package var size: Int64
        package var since: WallTime
    }

    private struct Entry {
        let ref: AgentEvent.JobRef
        let size: Int64
        let since: WallTime
        let attempt: Attempt
        let cancel: Doorbell
    }

    private let entries = Mutex<[Int64: Entry]>([:])

    /// Lists a delivery until `remove`. - Returns: the bell that rings when somebody cancels it.
    func add(_ ref: AgentEvent.JobRef, size: Int64, since: WallTime, attempt: Attempt) -> Doorbell {
        let cancel = Doorbell()
        entries.withLock {
            $0[ref.delivery] = Entry(ref: ref, size: size, since: since, attempt: attempt, cancel: cancel)
        }
        return cancel
    }

    func remove(_ delivery: Int64) { entries.withLock { $0[delivery] = nil } }

    /// Ends a running delivery; nothing happens when it does not run.
    func cancel(_ delivery: Int64) { entries.withLock { $0[delivery]?.cancel }?.ring() }

    func cancelAll() { for entry in entries.withLock({ Array($0.values) }) { entry.cancel.ring() } }

    package func snapshots() -> [Snapshot] {
        entries.withLock { Array($0.values) }
            .map { Snapshot(ref: $0.ref, sent: $0.attempt.bytesSent, size: $0.size, since: $0.since) }
            .sorted { $0.ref.delivery < $1.ref.delivery }
    }
}
