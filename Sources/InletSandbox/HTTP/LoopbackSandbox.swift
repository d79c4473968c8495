/// What every sandbox has, whatever it speaks: a server on 127.0.0.1, faults, and counters.
package protocol LoopbackSandbox: Sendable {
    associatedtype Operation: SandboxOperation

    var front: SandboxFront<Operation> { get }
}

extension LoopbackSandbox {
    /// What goes wrong; may be changed at any time.
    package var faults: Faults<Operation> { front.faults }

    /// The port on 127.0.0.1, once it is bound.
    ///
    /// - Throws: `SandboxStopped` when `run()` ended before, `CancellationError` when the waiting task is cancelled.
    package func port() async throws -> Int { try await front.server.port() }

    /// Requests, bytes and parts so far.
    package var traffic: Traffic<Operation> { front.log.traffic }

    /// Requests so far, by the operation's `rawValue`; 0 where none came.
    package func counts() -> [String: Int] { front.log.counts() }

    /// Bytes of request bodies so far, by the operation's `rawValue`; only where there were any.
    package func bytes() -> [String: Int64] {
        Dictionary(uniqueKeysWithValues: traffic.bytes.map { ($0.key.rawValue, $0.value) })
    }
}

/// The side of a sandbox that its clients come to.
package struct SandboxFront<Operation: SandboxOperation>: Sendable {
    let faults: Faults<Operation>
    let log = TrafficLog<Operation>()
    let server: LoopbackServer

    /// - Parameter port: 0 = one that the system chooses.
    init(_ plan: FaultPlan<Operation>, port: Int) {
        faults = Faults(plan)
        server = LoopbackServer(port: port, held: faults.held)
    }

    /// What each request goes through first.
    var gate: FaultGate<Operation> { FaultGate(faults: faults, traffic: log) }
}
