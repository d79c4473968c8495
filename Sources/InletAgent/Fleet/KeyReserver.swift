internal import InletCore
internal import InletFleet
internal import InletJournal
internal import InletLinux
internal import InletPipelines
internal import Synchronization

/// Keys that other agents may want too: new deliveries wait in the journal until the fleet has granted theirs.
final class FleetKeyReservation: KeyReservation {
    private let member: FleetMember
    private let shares: FleetShares
    /// How often each delivery lost its key to something at the destination.
    private let losses = Mutex<[Int64: Int]>([:])

    /// A store that has something under so many names in a row refuses them for another reason.
    private static let mostLosses = 20
    private static let mostRemembered = 10_000

    init(member: FleetMember, shares: FleetShares) { (self.member, self.shares) = (member, shares) }

    /// A prefix counts as this agent's own once the fleet has said so. Until then its keys are asked for.
    func begin(at destinations: [Destination], _ settings: Settings) async throws(JournalError) {
        let known = try await member.journal.ownPrefixes()
        member.take(destinations, settings)
        try await member.reserveKeys(besides: known)
        member.endsPrefixes()
        shares.begin()
        member.signals.raise(.fleet(.recovery))
    }

    func lost(_ claim: Claim, _ error: DeliveryError) async -> ClaimOutcome? {
        guard error.code == .destinationExists, claim.delivery.key != nil, claim.delivery.state == .claimed,
            member.places[claim.delivery.destination] != nil
        else { return nil }
        let count = losses.withLock { losses in
            if losses.count >= Self.mostRemembered { losses = [:] }
            losses[claim.delivery.id, default: 0] += 1
            return losses[claim.delivery.id] ?? 0
        }
        if count > Self.mostLosses { return nil }
        member.count { $0.lost += 1 }
        return .renamed(reason: error.reason)
    }
}

/// Asks the fleet for the keys of waiting deliveries, many in one call. While it grants none for longer than
/// `patience`, files get this agent's tag, or wait.
struct KeyReserver: Sendable {
    let member: FleetMember
    let signals: Signals

    /// Since when each destination's keys are not granted.
    private var failing: [String: ContinuousClock.Instant] = [:]
    /// How often each waiting delivery was refused a key.
    private var refusals: [Int64: Int] = [:]
    /// Deliveries that were refused too often, and when they are asked for again.
    private var resting: [Int64: ContinuousClock.Instant] = [:]
    /// While nothing is granted: the rows up to this delivery say why they wait.
    private var explainedTo: Int64 = 0
    /// When keys were last given back.
    private var returnedAt: ContinuousClock.Instant?

    static let batch = 200
    /// How long the first waits for others.
    private static let gathering = Duration.milliseconds(20)
    /// Names double their distance, so that so many refusals mean something else than equal names.
    static let mostRefusals = 40
    private static let rest = Duration.seconds(600)
    private static let mostResting = 1000
    private static let pause = Duration.seconds(5)

    init(_ member: FleetMember) { (self.member, signals) = (member, member.signals) }

    func run() async {
        var reserver = self
        await signals[.fleet(.keys)].loop {
            // Files come by thousands: they share a look.
            guard await Task.rest(for: Self.gathering) else { return nil }
            do throws(JournalError) {
                return try await reserver.pass(at: .now)
            } catch {
                // The lanes, which use the journal all the time, report its failure.
                return .now.advanced(by: Self.pause)
            }
        }
    }

    /// - Returns: when to look again; nil waits for a new delivery, or for a change of the session.
    mutating func pass(at now: ContinuousClock.Instant) async throws(JournalError) -> ContinuousClock.Instant? {
        let nextReturn = try await returnKeys(at: now)
        resting = resting.filter { $0.value > now }
        let requests = try await waiting()
        // A failure from before nothing waited says nothing of the next outage.
        if requests.count < Self.batch {
            failing = failing.filter { name, _ in requests.contains { $0.destination == name } }
        }
        if requests.isEmpty { return [nextReturn, resting.values.min()].compactMap(\.self).min() }
        var answers: [(KeyRequest, KeyAnswer)] = []
        var failure: FleetError?
        for (name, group) in Dictionary(grouping: requests, by: \.destination) {
            do throws(FleetError) {
                answers += try await ask(name, group)
                failing[name] = nil
            } catch {
                failure = error
                failing[name] = failing[name] ?? member.failingSince ?? now
                answers += withoutAnswer(group, error, since: failing[name] ?? now, at: now)
            }
        }
        let end = try await member.journal.answerKeys(answers, at: .now)
        note(answers)
        if end.released > 0 { signals.raiseDeliverable() }
        if failure != nil {
            // The next ones get their tag too, or say why they wait.
            let goesOn = !member.grants && !answers.isEmpty && requests.count == Self.batch
            return goesOn ? now : nextLook(at: now)
        }
        if end.again > 0 || requests.count == Self.batch { return .now }
        return [nextReturn, resting.values.min()].compactMap(\.self).min()
    }

    private mutating func waiting() async throws(JournalError) -> [KeyRequest] {
        if member.grants || mayTag { explainedTo = 0 }
        let all = try await member.journal.keyRequests(limit: Self.batch + resting.count, after: explainedTo)
        return Array(
            all.filter { resting[$0.delivery] == nil && member.places[$0.destination] != nil }.prefix(Self.batch))
    }

    /// Soon where a patience ends, otherwise when the session may have changed.
    private func nextLook(at now: ContinuousClock.Instant) -> ContinuousClock.Instant {
        let ends = failing.values.map { $0.advanced(by: member.settings.patience) }.filter { $0 > now }
        return (ends + [now.advanced(by: Self.pause)]).min() ?? now
    }

    // MARK: - Asking

    private mutating func ask(
        _ name: String, _ group: [KeyRequest]
    ) async throws(FleetError) -> [(KeyRequest, KeyAnswer)] {
        let answer = try await member.link.reserve(
            try await member.number(of: name), group.map(\.key), group.map(\.ref))
        return zip(group, answer.granted).map { request, isGranted in
            if isGranted { return (request, .granted(mark: answer.mark)) }
            refusals[request.delivery, default: 0] += 1
            guard refusals[request.delivery, default: 0] >= Self.mostRefusals, resting.count < Self.mostResting else {
                return (request, .taken)
            }
            resting[request.delivery] = .now.advanced(by: Self.rest)
            refusals[request.delivery] = nil
            let folder = DisplayText.escape(request.key)
            return (
                request,
                .waits(
                    code: .fleetKeyTaken,
                    reason: "the fleet refuses \(folder) and \(Self.mostRefusals) other names: the folder may be "
                        + "another agent's prefix; change the key of the route, or that prefix")
            )
        }
    }

    /// A tag needs an identity that nobody else uses.
    private var mayTag: Bool {
        member.settings.whenAway == .tag && member.identity != nil && !member.isUsedTwice
    }

    /// The answers while there is none.
    private mutating func withoutAnswer(
        _ group: [KeyRequest], _ error: FleetError, since: ContinuousClock.Instant, at now: ContinuousClock.Instant
    ) -> [(KeyRequest, KeyAnswer)] {
        let identity = member.identity
        if now < since.advanced(by: member.settings.patience), identity != nil { return [] }
        if mayTag, let identity { return group.map { ($0, .tagged(tag: identity.tag)) } }
        let reason = member.sentence(error)
        explainedTo = max(explainedTo, group.map(\.delivery).max() ?? 0)
        return group.map { ($0, .waits(code: .fleetAway, reason: reason)) }
    }

    // MARK: - Afterwards

    private mutating func note(_ answers: [(KeyRequest, KeyAnswer)]) {
        var (granted, lost, tagged) = (0, 0, 0)
        for (request, answer) in answers {
            switch answer {
            case .granted: granted += 1
            case .taken: lost += 1
            case .tagged(let tag):
                tagged += 1
                member.log.emit(
                    .fleetKeyTagged(
                        job: request.job, path: request.path, destination: request.destination,
                        key: KeyTemplate.tagged(request.key, tag: tag)))
            case .waits: continue
            }
            if case .taken = answer { continue }
            refusals[request.delivery] = nil
        }
        member.count { [granted, lost, tagged] figures in
            figures.reserved += granted
            figures.lost += lost
            figures.tagged += tagged
        }
    }

    /// Gives back keys under which nothing was sent, at most once a second. They wait in the journal while PostgreSQL
    /// is away.
    ///
    /// - Returns: when to look again, where it is too early.
    private mutating func returnKeys(
        at now: ContinuousClock.Instant
    ) async throws(JournalError) -> ContinuousClock.Instant? {
        guard member.grants else { return nil }
        if let next = returnedAt?.advanced(by: .seconds(1)), now < next { return next }
        returnedAt = now
        try await returnNow()
        return nil
    }

    private func returnNow() async throws(JournalError) {
        while true {
            let freed = try await member.journal.keysToReturn(limit: Self.batch)
            for (name, group) in Dictionary(grouping: freed, by: \.destination) where member.places[name] != nil {
                do throws(FleetError) {
                    let number = try await member.number(of: name)
                    _ = try await member.link.unreserve(number, group.map(\.key), group.map(\.ref))
                } catch {
                    // They wait in the journal for the next look.
                    return
                }
                try await member.journal.keysReturned(group)
            }
            if freed.count < Self.batch || freed.contains(where: { member.places[$0.destination] == nil }) { return }
        }
    }
}
