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

    private struct State {
        var entries: [Int64: Entry] = [:]
        /// Cancelled while they were not listed: claimed a moment ago, or ended.
        var missed: Set<Int64> = []
    }

    private let state = Mutex(State())

    /// Lists a delivery until `remove`.
    /// - Returns: the bell that rings when somebody cancels it, and whether somebody may have done so before it was listed.
    func add(
        _ ref: AgentEvent.JobRef, size: Int64, since: WallTime, attempt: Attempt
    ) -> (cancel: Doorbell, mayBeCancelled: Bool) {
        let entry = Entry(ref: ref, size: size, since: since, attempt: attempt, cancel: Doorbell())
        return state.withLock { state in
            state.entries[ref.delivery] = entry
            return (entry.cancel, state.missed.remove(ref.delivery) != nil)
        }
    }

    func remove(_ delivery: Int64) { state.withLock { $0.entries[delivery] = nil } }

    /// Ends a running delivery.
    func cancel(_ delivery: Int64) {
        let entry = state.withLock { state -> Entry? in
            if state.entries[delivery] == nil { state.missed.insert(delivery) }
            return state.entries[delivery]
        }
        entry?.cancel.ring()
    }

    func cancelAll() { for entry in state.withLock({ Array($0.entries.values) }) { entry.cancel.ring() } }

    package func snapshots() -> [Snapshot] {
        state.withLock { Array($0.entries.values) }
            .map { Snapshot(ref: $0.ref, sent: $0.attempt.bytesSent, size: $0.size, since: $0.since) }
            .sorted { $0.ref.delivery < $1.ref.delivery }
    }
}
