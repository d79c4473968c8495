import InletSandbox

/// What goes wrong at loopback servers, now and then: an error after the body, a connection that ends in the midst of it, an
/// answer that is lost after the work was done, and one that comes late.
struct SandboxTrouble: Sendable {
    /// How likely a request meets any of them, 0...1.
    var share = 0.0
    /// Decides which, with the order of the requests.
    var seed: UInt64 = 1

    /// - Parameter number: of the server, so that not all of them have the same bad luck.
    func plan<Operation: SandboxOperation>(_ number: UInt64) -> FaultPlan<Operation> {
        guard share > 0 else { return .none }
        let actions: [FaultAction] = [
            .status(503), .reset(afterBytes: 20_000), .loseAnswer, .delay(.milliseconds(300)),
        ]
        let each = share / Double(actions.count)
        return FaultPlan(
            actions.map { OperationFault($0, times: nil, probability: each) }, seed: seed &+ number)
    }
}
