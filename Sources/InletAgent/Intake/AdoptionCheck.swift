internal import InletCore
internal import InletPipelines

/// Asks destinations whether they have what is to be adopted (`adopt_check`), and leaves those alone that do not answer.
struct AdoptionCheck: Sendable {
    enum Answer: Sendable, Equatable {
        /// Every destination that can be asked has it.
        case there
        /// One has not, or has something else; why.
        case notThere(String)
        /// Nothing is known, so nothing is believed and nothing sent.
        case silence(destination: String, reason: String)
    }

    let board: DestinationRegistry
    private var pauses: [String: AskingPause] = [:]

    init(_ board: DestinationRegistry) { self.board = board }

    /// Whether all of them have it. A service whose records are found by numbers of its own is believed to.
    func ask(_ arrival: Arrival, _ plan: Plan) async -> Answer {
        let proof = Proof(key: plan.key, size: arrival.identity.size, method: .adopted)
        for name in plan.destinations {
            guard let verifier = verifier(name) else { continue }
            do throws(DeliveryError) {
                switch try await verifier.verify(VerifyOrder(proof: proof, digests: plan.digests)) {
                case .same: continue
                case .differs(let reason), .missing(let reason): return .notThere("\(name): \(reason)")
                case .cannotTell(let reason): return .silence(destination: name, reason: reason)
                }
            } catch {
                return .silence(destination: name, reason: "\(error)")
            }
        }
        return .there
    }

    private func verifier(_ name: String) -> (any DeliveryVerifying)? {
        guard let verifier = board[name]?.pipeline as? any DeliveryVerifying, verifier.findsByKey else { return nil }
        return verifier
    }

    /// Of `destinations` one that is not asked now, and how long not.
    func silent(_ destinations: [String], at now: ContinuousClock.Instant) -> (name: String, wait: Duration)? {
        for name in destinations {
            if let wait = pauses[name]?.remaining(at: now) { return (name, wait) }
        }
        return nil
    }

    /// - Returns: whether it had answered before, or was not asked.
    mutating func gaveNoAnswer(_ name: String, at now: ContinuousClock.Instant) -> Bool {
        let isFirst = pauses[name] == nil
        pauses[name, default: AskingPause()].begin(at: now)
        return isFirst
    }

    mutating func answered(_ destinations: [String]) {
        for name in destinations { pauses[name] = nil }
    }
}

/// How long a destination is left alone that gives no answer: a second, and twice as long each time, up to a minute.
struct AskingPause: Sendable, Equatable {
    private static let shortest = Duration.seconds(1)
    private static let longest = Duration.seconds(60)

    private var length = Duration.zero
    private var until: ContinuousClock.Instant?

    /// Files that were asked about together are one try.
    mutating func begin(at now: ContinuousClock.Instant) {
        if remaining(at: now) != nil { return }
        length = min(max(length * 2, Self.shortest), Self.longest)
        until = now.advanced(by: length)
    }

    /// nil when it is over.
    func remaining(at now: ContinuousClock.Instant) -> Duration? {
        guard let until, now < until else { return nil }
        return now.duration(to: until)
    }
}
