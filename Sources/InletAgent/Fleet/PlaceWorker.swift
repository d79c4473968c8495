internal import InletCore
internal import InletFleet
internal import InletJournal
internal import InletLinux
internal import ServiceLifecycle
internal import Synchronization
internal import SystemPackage

/// Claims work of shares for this agent, and gives back what it cannot do. `PlaceSettler` says how the rest ended.
///
/// Work belongs to a session. When that is over the queue holds the work back; the next session first claims it again,
/// and what does not come back is another's, or done.
struct PlaceWorker: Sendable {
    let places: FleetPlaces
    let shared: Shared
    let view: FleetView

    private let intake: PlaceIntake
    private let settler: PlaceSettler
    /// The session whose work the queue has; 0 while it has none.
    private var session: Int64 = 0
    /// The one before it, whose work is held back; nil at the start of the process.
    private var last: Int64?
    /// The shares whose work of earlier sessions is back, by marker.
    private var reclaimed: Set<String> = []
    /// How many are claimed at once.
    private var batch = Self.first
    /// Until then nothing is claimed: this agent could do nothing of what it was given.
    private var rest: (until: ContinuousClock.Instant, pause: Duration)?
    /// How many in a row it has left to others since it could do something, or rested.
    private var swept = 0
    /// Since when nothing can be sent to these destinations.
    private var closed: [String: ContinuousClock.Instant] = [:]
    /// When there was work last, and when work that cannot be sent was last looked for.
    private var busyAt: ContinuousClock.Instant?
    private var lookedAt: ContinuousClock.Instant?

    private static let first = 8
    /// The most that is open here, and claimed at once.
    static let most = 500
    /// The most sources that wait here for their disposal: other programs may have them open for a day.
    private static let mostFinishings = 20_000
    /// The most bytes of open work besides its biggest file.
    static let mostBytes: Int64 = 256 << 20
    /// How long the first signal waits for others: files end by hundreds.
    private static let gathering = Duration.milliseconds(20)
    private static let second = Duration.seconds(1)
    /// For so long after the last work, the fleet is asked every second.
    private static let busy = Duration.seconds(30)
    /// Work that cannot be sent for so long goes back.
    static let patience = Duration.seconds(30)
    /// The last is longer than work that it cannot do is put off: others come to that first.
    private static let rests = (first: Duration.seconds(2), most: Duration.seconds(60))
    private static let mostSwept = 10_000

    init(_ places: FleetPlaces, _ shared: Shared, _ view: FleetView) {
        (self.places, self.shared, self.view) = (places, shared, view)
        let shares = ShareLook()
        (intake, settler) = (
            PlaceIntake(places, shared, shares, view), PlaceSettler(places, shared, shares)
        )
        places.state.withLock { $0.destinations = shared.destinations }
    }

    private var member: FleetMember { places.member }
    private var journal: Journal { shared.journal }

    func run() async {
        let (notes, link, signal) = (places.notes, member.link, member.signals[.fleet(.work)])
        await withDiscardingTaskGroup { group in
            group.addTask { await cancelWhenGracefulShutdown { await notes.run(link) } }
            group.addTask {
                let worker = await cancelWhenGracefulShutdown { () -> PlaceWorker in
                    var worker = self
                    await signal.loop {
                        guard await Task.rest(for: Self.gathering) else { return nil }
                        return await worker.turn(at: .now)
                    }
                    return worker
                }
                await worker.settleLast()
            }
        }
    }

    /// Says the ends since the last pass: with the end of the session they would be another's work, and sent again.
    private func settleLast() async {
        guard session != 0, member.grants, session == member.session else { return }
        // An end without an answer is said after the next start.
        try? await settler.settle(in: session)
    }

    /// - Returns: when to look again; nil waits for a change of the session.
    private mutating func turn(at now: ContinuousClock.Instant) async -> ContinuousClock.Instant? {
        do {
            return try await pass(at: now)
        } catch let error as FleetError {
            // An answer that was lost may have changed whose work is whose: it comes back with the next session.
            if [.away, .fault].contains(error.code) { member.link.renew() }
            if error.code == .fault || error.code == .argument {
                member.log.emit(.agentError(reason: "fleet: the work of shares: \(error)"))
            }
            return .now.advanced(by: error.code == .away ? Self.second : FleetMember.pause)
        } catch {
            // The fleet may have an end that the journal has not. The lanes, which use it all the time, report its
            // failure.
            member.link.renew()
            return .now.advanced(by: FleetMember.pause)
        }
    }

    private mutating func pass(at now: ContinuousClock.Instant) async throws -> ContinuousClock.Instant? {
        try await settler.removeLeaving()
        guard try await hasSession() else { return member.grants ? now.advanced(by: Self.second) : nil }
        let shares = places.usable
        for share in shares where !reclaimed.contains(share.marker ?? "") {
            try await reclaim(share)
            reclaimed.insert(share.marker ?? "")
        }
        try await settler.settle(in: session)
        noteClosed(at: now)
        try await giveBack(at: now)
        if !shares.isEmpty, !member.isDraining, try await claim(of: shares, at: now) { return .now }
        if places.state.withLock({ !$0.work.isEmpty }) { busyAt = now }
        let isBusy = busyAt.map { now - $0 < Self.busy } ?? false
        return .now.advanced(by: (isBusy ? Self.second : member.beat) * Double.random(in: 0.75..<1.25))
    }

    // MARK: - Sessions

    /// Whether the queue has the work of the present session.
    private mutating func hasSession() async throws(JournalError) -> Bool {
        let live = member.grants ? member.session : 0
        if session != 0, session == live { return true }
        if session != 0 || last == nil {
            try await journal.holdPlaceWork()
            places.state.withLock { $0.work = [:] }
            (last, session, reclaimed, rest) = (session, 0, [], nil)
        }
        guard live != 0 else { return false }
        if live == last {
            // The session lasted after all; its work comes back with the next one.
            member.link.renew()
            return false
        }
        session = live
        return true
    }

    /// Claims what this agent had in earlier sessions; what does not come back leaves the queue.
    private mutating func reclaim(_ share: FleetPlaces.Share) async throws {
        guard let number = share.number, let marker = share.marker else { return }
        var left = Set(try await held(back: marker).map(\.number))
        while !member.isDraining {
            let most = min(1000, max(Self.first, left.count + Self.first))
            let claims = try await claim([number], most)
            // New work waits for its turn.
            try await take(claims, of: [share], known: left)
            let back = left.intersection(claims.map(\.work))
            left.subtract(back)
            // Those of earlier sessions come first.
            if claims.count < most || back.isEmpty { break }
        }
        // The end of a delivery may have come back as the finishing of its source, under another number.
        try await settler.drop(try await held(back: marker), isNews: last != 0 && !member.isDraining)
    }

    /// The work of a share that an earlier session had. Work that was let go already has a negative session.
    private func held(back marker: String) async throws(JournalError) -> [PlaceWorkRow] {
        try await journal.placeWork().filter { $0.place == marker && $0.session >= 0 && $0.session != session }
    }

    // MARK: - Claiming

    /// - Throws: where the session ended meanwhile, too: nobody knows to which one the claims belong.
    private func claim(_ numbers: [Int32], _ most: Int) async throws(FleetError) -> [FleetClaim] {
        let claims = try await member.link.claim(numbers, most: most)
        guard member.session == session else { throw FleetError(.away, "the session ended during a claim") }
        return claims
    }

    /// - Returns: whether there may be more.
    private mutating func claim(of shares: [FleetPlaces.Share], at now: ContinuousClock.Instant) async throws -> Bool {
        let open = places.state.withLock { Array($0.work.values) }
        let finishings = open.count(where: \.isFinishing)
        let most = min(batch, Self.most - (open.count - finishings), Self.mostFinishings - finishings)
        guard most > 0, PlaceIntake.room(besides: open) > 0, rest.map({ $0.until <= now }) ?? true else {
            return false
        }
        let claims = try await claim(shares.compactMap(\.number), most)
        if claims.isEmpty { return false }
        let (taken, putOff) = try await take(claims, of: shares)
        let areSmall = claims.allSatisfy { $0.size <= Self.mostBytes / Int64(Self.most) }
        if taken + putOff == most {
            batch = min(2 * batch, areSmall ? Self.most : max(batch, Self.first))
        } else if taken + putOff < claims.count {
            batch = max(1, min(batch, taken + putOff))
        }
        if taken > 0 { (rest, swept) = (nil, 0) } else { swept += putOff }
        // Behind work that only others can do there may be some for this agent.
        if taken + putOff > 0, claims.count == most, swept < Self.mostSwept { return true }
        if taken > 0 { return false }
        let pause = rest.map { min($0.pause * 2, Self.rests.most) } ?? Self.rests.first
        (rest, swept) = ((.now.advanced(by: pause), pause), 0)
        return false
    }

    /// Puts claims into the queue, and settles those that are not for it.
    ///
    /// - Parameter known: the numbers that came back, which are taken in any case.
    /// - Returns: how many are in the queue or have ended, and how many are left to others for a while.
    @discardableResult
    private func take(
        _ claims: [FleetClaim], of shares: [FleetPlaces.Share], known: Set<Int64> = []
    ) async throws -> (taken: Int, putOff: Int) {
        if claims.isEmpty { return (0, 0) }
        do {
            let (taken, back) = try await intake.take(claims, of: shares, in: session, known: known)
            tell(taken)
            let finishes = try await member.link.settleAll(back).compactMap(\.finish)
            // Of sources that are not there.
            _ = try await member.link.settleAll(
                finishes.map { FleetSettlement(work: $0, fence: 1, .finished) })
            let ended = back.count { $0.outcome != .retry }
            return (taken.count + ended, back.count { $0.outcome == .retry && $0.after >= PlaceIntake.soon })
        } catch let error as JournalError {
            // Nobody works on them before they come again.
            member.link.renew()
            throw error
        }
    }

    private func tell(_ taken: [PlaceIntake.Taken]) {
        var (events, destinations): ([AgentEvent], Set<String>) = ([], [])
        for one in taken {
            let (file, arrival) = (one.file, one.work.admission.arrival)
            let path = arrival.root.pushing(arrival.path)
            let steps = one.work.admission.steps.destinations
            if let from = one.from {
                let name = view.last?.numbers.first { $0.value == Int64(from) }?.key ?? "agent \(from)"
                events.append(.fleetTookOver(place: one.share, path: path, from: name))
            }
            guard one.isNew, !one.work.isFinishing else { continue }
            shared.arrivals.note(Arrival(job: file, path: path, at: .now), in: arrival.root)
            events.append(
                .jobAdmitted(
                    job: file, path: path, route: one.work.admission.route, size: arrival.identity.size,
                    deliveries: steps, labels: one.work.admission.plan?.labels ?? [:]))
            destinations.formUnion(steps)
        }
        let count = taken.count { $0.from != nil }
        if count > 0 { member.count { $0.takeovers += count } }
        member.log.emit(events)
        if taken.contains(where: { !$0.work.isFinishing }) { shared.signals.raiseDeliverable() }
        if taken.contains(where: \.work.isFinishing) { shared.signals.raise(.finishable) }
        shared.destinations.admitted(for: destinations.sorted())
    }

    /// A destination that takes something again ends the rest.
    private mutating func noteClosed(at now: ContinuousClock.Instant) {
        let names = shared.destinations.names.filter { shared.destinations.state(of: $0)?.goesOn == false }
        if closed.keys.contains(where: { !names.contains($0) }) { rest = nil }
        closed = names.reduce(into: [:]) { $0[$1] = closed[$1] ?? now }
    }

    // MARK: - Giving back

    /// Gives back work that this agent cannot send soon. While it is drained, it gives back all that does not run.
    private mutating func giveBack(at now: ContinuousClock.Instant) async throws {
        let isDraining = member.isDraining
        guard isDraining || lookedAt.map({ now - $0 >= Self.patience / 6 }) ?? true else { return }
        lookedAt = now
        let time = isDraining ? WallTime(nanoseconds: 0) : .now + Self.patience
        let rows = try await journal.waitingPlaceWork(session: session, beyond: time, limit: Self.most)
        var due: [PlaceWorkRow] = []
        for row in rows {
            if isDraining { due.append(row) } else if try await isStuck(row) { due.append(row) }
        }
        try await settler.giveBack(due, beyond: time, in: session)
        if isDraining { try await settler.giveBackFinishings(in: session) } else { try await giveBackClosed(at: now) }
    }

    /// The same for work that is due, and that its destination does not take now.
    private func giveBackClosed(at now: ContinuousClock.Instant) async throws {
        let names = Set(closed.filter { now - $0.value >= Self.patience }.keys)
        if names.isEmpty { return }
        let always = WallTime(nanoseconds: 0)
        let rows = try await journal.waitingPlaceWork(session: session, beyond: always, limit: Self.most)
        var due: [PlaceWorkRow] = []
        for row in rows {
            let deliveries = try await journal.job(row.file)?.deliveries ?? []
            if deliveries.contains(where: { !$0.state.isFinal && names.contains($0.destination) }) { due.append(row) }
        }
        try await settler.giveBack(due, beyond: always, after: PlaceIntake.soon, in: session)
    }

    /// Whether others may do it sooner: its destination is down here, or this machine fails. A file that its destination
    /// refuses keeps its pauses and its attempts here.
    private func isStuck(_ row: PlaceWorkRow) async throws(JournalError) -> Bool {
        if let code = row.code, Self.own.contains(code) { return true }
        guard let job = try await journal.job(row.file) else { return false }
        return job.deliveries.contains { delivery in
            !delivery.state.isFinal && shared.destinations.state(of: delivery.destination)?.isOpen != true
        }
    }

    private static let own: [ErrorCode] = [
        .notConfigured, .internalFault, .outOfResources, .sourceUnreadable, .sourceForbidden,
    ]
}
