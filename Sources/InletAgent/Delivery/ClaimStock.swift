internal import InletCore
internal import InletJournal

/// Claims that wait for a loop, and how many run: a destination never has more running than its connections.
struct ClaimStock: Sendable {
    private var claims: [Claim] = []
    private var running: [String: Int] = [:]
    private var limits: [String: Int] = [:]

    /// Waiting and running.
    var count: Int { claims.count + running.values.reduce(0, +) }

    /// Not begun, of all destinations.
    var waitingCount: Int { claims.count }

    /// Of one destination, waiting and running.
    func count(of destination: String) -> Int {
        claims.count { $0.delivery.destination == destination } + running[destination, default: 0]
    }

    /// What waits, by destination.
    var waiting: [String: Int] { claims.reduce(into: [:]) { $0[$1.delivery.destination, default: 0] += 1 } }

    /// Whether any must wait for another to end.
    var hasSurplus: Bool {
        waiting.contains { destination, count in
            count + running[destination, default: 0] > limits[destination, default: 0]
        }
    }

    /// Puts each behind those that are as urgent.
    mutating func add(_ new: [Claim]) {
        for claim in new {
            let rank = claim.delivery.priority.rank
            let place = claims.lastIndex { $0.delivery.priority.rank <= rank }.map { $0 + 1 } ?? 0
            claims.insert(claim, at: place)
        }
    }

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
        return takeOut { limits[$0.delivery.destination, default: 0] == 0 }
    }

    /// Takes out what has waited for longer than it may.
    ///
    /// - Parameter uptimes: the expiry clocks that run, in milliseconds.
    mutating func takeExpired(_ uptimes: [String: Int64]) -> [Claim] {
        takeOut { claim in Self.timeLeft(claim.delivery, uptimes).map { $0 <= .zero } ?? false }
    }

    /// How long until the first has waited for too long; nil when none can.
    func nextExpiry(_ uptimes: [String: Int64]) -> Duration? {
        claims.compactMap { Self.timeLeft($0.delivery, uptimes) }.min()
    }

    /// nil for what does not expire now.
    private static func timeLeft(_ delivery: DeliveryRow, _ uptimes: [String: Int64]) -> Duration? {
        guard !delivery.isBeingWorkedOn, let expiry = delivery.expiresAt, let uptime = uptimes[delivery.destination]
        else { return nil }
        return .milliseconds(expiry - uptime)
    }

    func isWaiting(_ delivery: Int64) -> Bool { claims.contains { $0.delivery.id == delivery } }

    /// Takes one out; nil when it does not wait here.
    mutating func remove(_ delivery: Int64) -> Claim? { takeOut { $0.delivery.id == delivery }.first }

    private mutating func takeOut(_ isMeant: (Claim) -> Bool) -> [Claim] {
        let taken = claims.filter(isMeant)
        if !taken.isEmpty { claims.removeAll(where: isMeant) }
        return taken
    }
}
