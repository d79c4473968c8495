import InletCore
import NIOCore
import Synchronization

/// The switchboard of faults: tests add and clear while the sandbox runs.
package final class Faults<Operation: SandboxOperation>: Sendable {
    private struct State {
        var waiting: [OperationFault<Operation>]
        var injected: [OperationFault<Operation>] = []
        var random: SeededGenerator
        /// Connections that a fault keeps open or slow. The end of the fault or of the sandbox closes them.
        var held: [ObjectIdentifier: any Channel] = [:]
        var isClosing = false
    }

    private let state: Mutex<State>

    init(_ plan: FaultPlan<Operation>) {
        state = Mutex(State(waiting: plan.faults, random: SeededGenerator(seed: plan.seed)))
    }

    /// Faults are tried in the order of their addition; a request meets at most one.
    package func add(_ faults: OperationFault<Operation>...) {
        state.withLock { $0.waiting += faults }
    }

    /// Removes all faults, and closes connections that a fault holds at this moment.
    package func clear() {
        let held = state.withLock { state in
            state.waiting = []
            return Array(state.held.values)
        }
        for channel in held { channel.close(promise: nil) }
    }

    /// How many requests met a fault.
    package var injected: Int { state.withLock { $0.injected.count } }

    /// How many requests met a fault at `operation`, whatever it was registered for.
    package func injected(at operation: Operation) -> Int {
        state.withLock { $0.injected.count { $0.operation == operation } }
    }

    /// Closes held connections, and later ones at once.
    func closeForGood() {
        let held = state.withLock { state in
            state.isClosing = true
            return Array(state.held.values)
        }
        for channel in held { channel.close(promise: nil) }
    }

    /// Lets others close `channel`, until `release`.
    func hold(_ channel: any Channel) {
        let isClosing = state.withLock { state in
            state.held[ObjectIdentifier(channel)] = channel
            return state.isClosing
        }
        if isClosing { channel.close(promise: nil) }
    }

    func release(_ channel: any Channel) {
        state.withLock { $0.held[ObjectIdentifier(channel)] = nil }
    }

    /// Takes the fault that a request on `channel` meets, counts it and holds the channel. Call `release` when the
    /// request has ended.
    func next(at operation: Operation, part: Int?, on channel: any Channel) -> FaultAction? {
        let (action, isClosing) = state.withLock { state -> (FaultAction?, Bool) in
            let index = state.waiting.indices.first { index in
                let fault = state.waiting[index]
                return (fault.operation ?? operation) == operation && (fault.part == nil || fault.part == part)
                    && (fault.probability >= 1 || state.random.fraction() < fault.probability)
            }
            guard let index else { return (nil, false) }
            let fault = state.waiting[index]
            if let times = fault.times {
                state.waiting[index].times = times - 1
                if times <= 1 { state.waiting.remove(at: index) }
            }
            state.injected.append(OperationFault(fault.action, at: operation, part: part))
            // In the same step, because `clear` closes every connection that has met a fault.
            state.held[ObjectIdentifier(channel)] = channel
            return (fault.action, state.isClosing)
        }
        if isClosing { channel.close(promise: nil) }
        return action
    }

    func randomBytes(_ count: Int) -> [UInt8] {
        state.withLock { state in (0..<count).map { _ in UInt8(truncatingIfNeeded: state.random.next()) } }
    }
}
