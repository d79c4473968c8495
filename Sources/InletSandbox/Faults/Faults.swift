import InletCore
import NIOCore
import Synchronization

/// The switchboard of faults: tests add and clear while the sandbox runs.
package final class Faults<Operation: SandboxOperation>: Sendable {
    private struct State {
        var waiting: [OperationFault<Operation>]
        var injected: [OperationFault<Operation>] = []
        var random: SeededGenerator
    }

    private let state: Mutex<State>
    let held = HeldConnections()

    init(_ plan: FaultPlan<Operation>) {
        state = Mutex(State(waiting: plan.faults, random: SeededGenerator(seed: plan.seed)))
    }

    /// Faults are tried in the order in which they were added; one request meets one of them.
    package func add(_ faults: OperationFault<Operation>...) {
        state.withLock { $0.waiting += faults }
    }

    /// Nothing goes wrong from here on; connections that meet a fault at this moment are closed.
    package func clear() {
        state.withLock { $0.waiting = [] }
        held.closeAll()
    }

    /// How many requests met a fault.
    package var injected: Int { state.withLock { $0.injected.count } }

    /// How many requests met a fault at `operation`, whatever it was registered for.
    package func injected(at operation: Operation) -> Int {
        state.withLock { $0.injected.count { $0.operation == operation } }
    }

    /// Takes the fault that a request on `channel` meets, and counts it; `held.remove` when the request has ended.
    func next(at operation: Operation, part: Int?, on channel: any Channel) -> FaultAction? {
        state.withLock { state in
            for index in state.waiting.indices {
                let fault = state.waiting[index]
                guard fault.operation ?? operation == operation, fault.part == nil || fault.part == part else {
                    continue
                }
                guard fault.probability >= 1 || state.random.fraction() < fault.probability else { continue }
                if let times = fault.times {
                    state.waiting[index].times = times - 1
                    if times <= 1 { state.waiting.remove(at: index) }
                }
                state.injected.append(OperationFault(fault.action, at: operation, part: part))
                held.add(channel)
                return fault.action
            }
            return nil
        }
    }

    func randomBytes(_ count: Int) -> [UInt8] {
        state.withLock { state in (0..<count).map { _ in UInt8(truncatingIfNeeded: state.random.next()) } }
    }
}
