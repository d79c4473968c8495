internal import InletJournal

/// Claims that wait for a loop, and how many run: a destination never has more running than its connections.
struct ClaimStock: Sendable {
    private var claims: [Claim] = []
    private var running: [String: Int] = [:]
    private var limits: [String: Int] = [:]

    /// Waiting and running.
    var count: Int { claims.count + running.values.reduce(0, +) }

    mutating func add(_ new: [Claim]) { claims += new }

    /// The first claim that may start now.
    mutating func take() -> Claim? {
        let index = claims.firstIndex { claim in
            let destination = claim.delivery.destination
            return running[destination, default: 0] < limits[destination, default: 0]
        }
        guard let index else { return nil }
        let claim = claims.remove(at: index)
        running[claim.delivery.destination, default: 0] += 1
        return claim
    }

    mutating func end(_ destination: String) {
        let left = running[destination, default: 1] - 1
        running[destination] = left > 0 ? left : nil
    }

    /// Takes note of who may be tried now. - Returns: the claims that wait for somebody else.
    mutating func setLimits(_ limits: [String: Int]) -> [Claim] {
        self.limits = limits
        let closed = claims.filter { limits[$0.delivery.destination, default: 0] == 0 }
        if !closed.isEmpty { claims.removeAll { limits[$0.delivery.destination, default: 0] == 0 } }
        return closed
    }
}
