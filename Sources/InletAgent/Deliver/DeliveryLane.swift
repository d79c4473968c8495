internal import InletCore
internal import InletJournal
internal import InletLinux

/// The small or the big deliveries to one destination. One loop exchanges finished claims for due ones, many in one
/// transaction, and starts them; no delivery waits for a batch, and no lane for another.
///
/// A lane of small files holds claims in reserve, so that no connection waits for the disk. A lane of big files claims
/// only what it starts: after a crash all its claims count as begun.
struct DeliveryLane: Sendable {
    typealias Ended = LaneSlots.Ended

    let id: LaneID
    let stage: DeliveryStage
    /// Raised when there is room for another burst, or none is to come.
    private let room = WakeSignal()

    private static let journalPause = Duration.seconds(2)

    private var shared: Shared { stage.shared }
    private var none: ClaimRequest { .none(id.lane) }

    init(id: LaneID, stage: DeliveryStage) { (self.id, self.stage) = (id, stage) }

    /// How usual small files are sent now; nil where each needs an attempt.
    private var bursts: DeliveryBurst? {
        id.lane == .small ? DeliveryBurst(shared.destinations[id.destination], stage) : nil
    }

    /// How much more may be claimed; nil while nothing may.
    private var capacity: ClaimCapacity? {
        shared.destinations.room(of: id.destination).map(shared.fleet.shares.bounded)
    }

    private func slots<Value: Sendable>(_ body: (inout LaneSlots) -> Value) -> Value { shared.lanes.with(id, body) }

    /// Returns when the destination is gone, or the agent is stopping, and every claim has been returned. When the task
    /// is cancelled, it offers the ended claims to the journal once more.
    func run() async {
        // From here on `raiseDeliverable` is kept for it, even before it waits.
        _ = shared.signals[.deliverable(id)]
        await withDiscardingTaskGroup { group in
            var patience = JournalBackoff()
            while true {
                shared.health.heartbeat.beat(.workers)
                let (isLast, isStopping) = (Task.isCancelled, stage.isStopping.isSet)
                let room = isLast || isStopping ? nil : capacity
                await offerRefused()
                if let turn = await exchange(room) {
                    begin(in: &group)
                    let (open, refused) = slots { ($0.open, $0.refused.count) }
                    let isGone = room == nil && shared.destinations[id.destination] == nil
                    if isLast || open == 0 && (isStopping || isGone) { break }
                    if refused == 0 { patience = JournalBackoff() }
                    if !isStopping || open > refused {
                        let signal = shared.signals[.deliverable(id)]
                        if !turn.hasMore { await signal.wait(until: nextLook(turn.nextDue)) }
                        await gather()
                        continue
                    }
                }
                // A proof waits here until it can be written. The last tries come when nothing runs any more.
                if isStopping, !isLast, slots(\.running) > 0 {
                    await shared.signals[.deliverable(id)].wait(until: .now.advanced(by: .seconds(1)))
                } else if await !patience.wait(stage.isStopping) {
                    break
                }
            }
            if Task.isCancelled {
                await burstsEnded()
                // It goes on with all that came back and was not started.
                if let alone = slots({ $0.begin() }) { group.addTask { await self.work(alone) } }
            }
        }
        // A cancelled loop waits for no running delivery: those have ended since.
        slots { $0.putBack($0.takeRefused(at: nil)) }
        _ = await exchange(nil)
    }

    /// Starts what may start.
    private func begin(in group: inout DiscardingTaskGroup) {
        let bursts = bursts
        while let alone = slots({ $0.begin(besides: bursts) }) { group.addTask { await self.work(alone) } }
        if slots({ $0.beginBursting(bursts) }) { group.addTask { await self.burst() } }
    }

    /// Delivers one claim after the other, until none is at hand. A claim goes back if its destination went down while
    /// it waited.
    private func work(_ first: DeliveryBurst.Alone) async {
        var next: DeliveryBurst.Alone? = first
        while let (claim, first) = next {
            shared.health.heartbeat.beat(.workers)
            var ended = Ended.back(claim)
            let mayStart = !stage.isStopping.isSet && !Task.isCancelled && shared.destinations.takes(claim.delivery)
            // A request that has been sent has begun.
            if mayStart || first != nil {
                Failpoint.claimed.reached()
                let (settlement, report) = await DeliveryAttempt(claim, stage, continuing: first).run()
                ended = Ended(claim: claim, settlement: settlement, report: report)
            }
            let (isAwaited, hasRoom): (Bool, Bool)
            let bursts = bursts
            (next, isAwaited, hasRoom) = slots { slots in
                slots.end(ended)
                return (slots.begin(besides: bursts), slots.isAwaited, slots.isBursting)
            }
            if hasRoom { room.raise() }
            if isAwaited { shared.signals.raise(.deliverable(id)) }
        }
    }

    // MARK: - Bursts

    /// Sends claims together as long as there are some at hand; they go back if the destination went down meanwhile.
    private func burst() async {
        while true {
            let bursts = bursts
            guard let (claims, isRunningOut) = slots({ $0.beginBurst(bursts) }) else { break }
            shared.health.heartbeat.beat(.workers)
            if isRunningOut { shared.signals.raise(.deliverable(id)) }
            if claims.isEmpty {
                await room.wait(until: nil)
                if Task.isCancelled { return }
                continue
            }
            let mayStart = !stage.isStopping.isSet && !Task.isCancelled
            let open = claims.filter { mayStart && shared.destinations.takes($0.delivery) }
            if open.count < claims.count {
                let started = Set(open.map(\.delivery.id))
                end(claims.filter { !started.contains($0.delivery.id) }.map(Ended.back), [])
            }
            guard let bursts, !open.isEmpty else {
                end([], open.map { ($0, nil) })
                continue
            }
            bursts.start(open) { end($0, $1) }
        }
        // The claims left at hand need attempts.
        if slots({ !$0.atHand.isEmpty }) { shared.signals.raise(.deliverable(id)) }
    }

    /// Takes back what was sent together, from any thread.
    private func end(_ ended: [Ended], _ alone: [DeliveryBurst.Alone]) {
        let (hasRoom, isAwaited, waiter) = slots { $0.end(ended, alone) }
        if hasRoom { room.raise() }
        if isAwaited { shared.signals.raise(.deliverable(id)) }
        waiter?.resume()
    }

    /// Ends what was sent together, and returns when it has come back.
    private func burstsEnded() async {
        shared.transfers.cancelAll()
        await withCheckedContinuation { continuation in
            if slots({ $0.await(continuation) }) { continuation.resume() }
        }
    }

    // MARK: - When to exchange

    /// Lets ends gather for one exchange while nobody waits for it.
    private func gather() async {
        let start = ContinuousClock.now
        while !stage.isStopping.isSet, !Task.isCancelled, let pause = slots({ $0.pause }),
            start.duration(to: .now) < pause
        {
            await shared.signals[.deliverable(id)].wait(until: start.advanced(by: pause))
        }
    }

    /// The time of work that no signal announces.
    private func nextLook(_ nextDue: WallTime?) -> ContinuousClock.Instant? {
        let uptime = shared.destinations.runningUptime(of: id.destination)
        let (expiry, nextOffer) = slots { ($0.nextExpiry(uptime), $0.nextOffer) }
        let due = [nextDue.map { $0 - .now }, expiry].compactMap(\.self).min()
        let next = due.map { ContinuousClock.now.advanced(by: max($0, .milliseconds(10))) }
        return [next, nextOffer].compactMap(\.self).min()
    }

    /// Claims that are sent together are read before their turn.
    private func most(_ limit: Int) -> Int {
        guard id.lane == .small else { return limit }
        return limit == 0
            ? 0 : max(LaneSlots.most(limit), bursts.map { 2 * $0.connections + 2 * LaneSlots.reserve } ?? 0)
    }

    // MARK: - The exchange

    /// Gives the journal the ended claims, and takes as many new ones as there are places. Where no delivery may start
    /// now, claims at hand go back, and expired ones end.
    ///
    /// - Returns: now if all places were filled and there may be more, else the time when more is due. nil when the
    ///   journal refused everything, which keeps the ended claims.
    private func exchange(_ room: ClaimCapacity?) async -> (hasMore: Bool, nextDue: WallTime?)? {
        let limit = room?.limits[id.lane] ?? 0
        let uptime = shared.destinations.runningUptime(of: id.destination)
        var (ended, places, isNews) = slots { slots in
            let isNews = slots.setLimit(limit)
            slots.endExpired(uptime)
            return (slots.takeEnded(), max(0, most(limit) - slots.held), isNews)
        }
        if isNews { self.room.raise() }
        if id.lane == .big {
            if !ended.isEmpty { stage.freePlaces(ended.map(\.claim.delivery.id)) }
            places = stage.takePlaces(places, for: id)
        }
        if ended.isEmpty, places == 0 { return (false, nil) }
        var request = none
        if var room {
            room.limits = room.limits.mapValues(most)
            request = ClaimRequest(lane: id.lane, room: room, most: places)
        }
        let exchange: Exchange?
        do throws(JournalError) {
            exchange = try await commit(ended, request)
        } catch {
            exchange = await exchangeSingly(ended, request, error)
        }
        if id.lane == .big {
            stage.keepPlaces(exchange?.claims.map(\.delivery.id) ?? [], of: places, in: id)
        }
        return exchange.map { (places > 0 && $0.claims.count == places, $0.nextDue) }
    }

    /// One end that the journal refuses must not keep the others from their proofs, nor the lane from its work.
    private func exchangeSingly(_ ended: [Ended], _ request: ClaimRequest, _ error: JournalError) async -> Exchange? {
        let refused = await settleSingly(ended, error, hadClaims: request.most > 0)
        // If it refuses these too, the first refusal is reported below.
        let exchange = ended.isEmpty ? nil : try? await commit([], request)
        if exchange != nil || refused.count < ended.count {
            slots { $0.keep(refused, until: .now.advanced(by: Self.journalPause)) }
        } else {
            shared.health.journal.fails(error)
            slots { $0.putBack(refused) }
        }
        return exchange
    }

    /// Commits the exchange, then informs the services concerned.
    private func commit(_ ended: [Ended], _ request: ClaimRequest) async throws(JournalError) -> Exchange {
        if !ended.isEmpty { Failpoint.settling.reached() }
        let exchange = try await shared.journal.exchange(
            ended.map { ($0.claim.delivery.id, $0.settlement) }, for: request, ending: Receipt.atOnce, at: .now)
        // A look alone writes nothing.
        if ended.count + exchange.claims.count > 0 { shared.health.journal.works() }
        let hasSurplus = slots { slots in
            slots.add(exchange.claims)
            return slots.hasSurplus
        }
        // In one write, with deliveries that are unreadable and therefore not sent.
        let told = zip(ended, exchange.settled).flatMap { Self.events($0, $1) }
        shared.log.emit(told + exchange.damaged.map { .fileError(path: $0.path, reason: $0.reason) })
        for (one, settled) in zip(ended, exchange.settled) { pass(one, settled) }
        // Only now it is known to wait: the expiry clocks may have looked in vain.
        if hasSurplus || ended.contains(where: \.isBack) { shared.signals.raise(.expirable) }
        await freeReturned(ended.filter { $0.report?.awaitsSource == true }.map(\.claim.file))
        return exchange
    }

    /// - Parameters:
    ///   - error: the result of settling them together.
    ///   - hadClaims: whether claims were to be taken with them, which the journal may have refused.
    /// - Returns: the ends that the journal refused.
    private func settleSingly(_ ended: [Ended], _ error: JournalError, hadClaims: Bool) async -> [Ended] {
        var refused: [Ended] = []
        for var one in ended {
            var refusal = error
            if ended.count > 1 || hadClaims {
                do throws(JournalError) {
                    _ = try await commit([one], none)
                    continue
                } catch {
                    refusal = error
                }
            }
            one.refusal = tellRefused(one.claim.file, refusal, saidLast: one.refusal)
            refused.append(one)
        }
        return refused
    }

    /// Offers refused ends again when it is time; at once when the agent is stopping.
    private func offerRefused() async {
        let isStopping = stage.isStopping.isSet
        let due = slots { $0.takeRefused(at: isStopping ? nil : .now) }
        if due.isEmpty { return }
        do throws(JournalError) {
            _ = try await commit(due, none)
        } catch {
            let refused = await settleSingly(due, error, hadClaims: false)
            slots { $0.keep(refused, until: .now.advanced(by: Self.journalPause)) }
        }
    }
}

/// Log lines and signals for deliveries that have ended, once their end is durable.
extension DeliveryLane {
    /// Logs that the journal refuses the end of a delivery, once per cause.
    /// - Returns: the cause.
    private func tellRefused(_ file: FileRow, _ error: JournalError, saidLast: String?) -> String {
        if error.isFull {
            shared.health.journal.fails(error)
        } else if error.description != saidLast {
            let reason = "its result cannot be recorded; retrying: \(error)"
            shared.log.emit(.fileError(path: file.fullPath, reason: reason))
        }
        return error.description
    }

    private static func events(_ one: LaneSlots.Ended, _ settled: SettledFile) -> [AgentEvent] {
        let file = one.claim.file
        if one.report != nil { Failpoint.delivered.reached() }
        var told = one.report.map { [$0.event] } ?? []
        if case .expired = one.settlement { told = [.expired(file, one.claim.delivery.destination)] }
        guard let finish = settled.finish else { return told }
        Failpoint.finished.reached()
        let finished = AgentEvent.jobFinished(
            job: file.id, path: file.fullPath, state: settled.state, disposition: finish.disposition,
            route: file.route ?? "")
        return told + [finished] + (finish.endedBatch.map { [.batchEnded($0)] } ?? [])
    }

    /// The file came back while its absence was written: it continues at once, as its volume's return did not see it
    /// waiting.
    private func freeReturned(_ files: [FileRow]) async {
        let roots = shared.roots
        let returned = Set(
            files.filter { $0.volume != nil && (roots.hasMoved($0) || !roots.isAway($0)) }.compactMap(\.volume))
        do {
            for volume in returned { try await shared.journal.volumeIsBack(volume, at: .now) }
        } catch {
            shared.health.journal.fails(error)
        }
        if !returned.isEmpty { shared.signals.raiseDeliverable() }
    }

    /// Wakes the services concerned.
    private func pass(_ one: LaneSlots.Ended, _ settled: SettledFile) {
        let (report, claim, settlement) = (one.report, one.claim, one.settlement)
        let file = claim.file
        if settled.isFinal { shared.room.left() }
        shared.destinations.deliveryEnded()
        // A companion or a unit's marker that ended with it still needs finishing.
        if settled.isFinal, settled.finish == nil || file.batchID != nil || settled.hasReleased {
            shared.signals.raise(.finishable)
        }
        if settled.finish?.endedBatch != nil { shared.signals.raise(.batch) }
        // A key is asked for, or goes back.
        if settlement.changesKey { shared.signals.raise(.fleet(.keys)) }
        shared.fleet.contents.ended(claim, settlement)
        shared.fleet.places.ended(file)
        // A delivery that its destination still processes has no checksum to compare with.
        let isWorkedOn = if case .jobWaiting = report?.event { true } else { false }
        let isKept = !isWorkedOn && shared.transfers.takeTouched(file.id)
        // One attempt found the source gone while another still had it: a file that came back unchanged counts as
        // known.
        let mayBeBack = settled.isFinal && settled.state == .gone
        switch report?.event {
        case .jobDelivered, .jobWaiting: break
        case nil where !settled.isFinal: break
        default:
            shared.signals.raise(.leftover, .destination)
        }
        if let changed = report?.wantsLook ?? (isKept || mayBeBack ? file : nil) { shared.roots.look(again: changed) }
        shared.roots.ended(file)
        // More may be tried than before, in any lane. This lane looks anyway.
        if report?.destinationIsBack == true || settled.hasReleased { shared.signals.raiseDeliverable() }
    }
}

extension ClaimOutcome {
    /// Whether the delivery may have another key afterwards, or none.
    fileprivate var changesKey: Bool {
        switch self {
        case .renamed, .ended, .expired: true
        case .delivered(let proof): proof.isLink
        case .again, .waiting: false
        }
    }
}

/// The pauses before the journal is offered ended claims again: longer and longer while the agent runs. During a stop
/// it gets a few more tries; the rest is left to the next start.
struct JournalBackoff: Sendable {
    private var refusals = 0
    private var lastTries = 3

    /// Short enough for the watchdog, which sees each try.
    private static let longest = Duration.seconds(8)
    private static let last = Duration.seconds(1)

    /// - Returns: nil after enough tries.
    mutating func pause(isStopping: Bool) -> Duration? {
        if isStopping {
            lastTries -= 1
            return lastTries < 0 ? nil : Self.last
        }
        refusals += 1
        return .backoff(.seconds(1), upTo: Self.longest, after: refusals)
    }

    /// Waits until the journal may be asked again; at once when the agent is asked to stop meanwhile.
    ///
    /// - Returns: false after enough tries, or when the task is cancelled.
    mutating func wait(_ isStopping: StopFlag) async -> Bool {
        if Task.isCancelled { return false }
        let isLast = isStopping.isSet
        guard let pause = pause(isStopping: isLast) else { return false }
        if isLast {
            await Task.rest(for: pause)
        } else {
            await isStopping.wait(until: .now.advanced(by: pause))
        }
        return true
    }
}
