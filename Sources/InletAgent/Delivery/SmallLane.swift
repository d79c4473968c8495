internal import InletCore
internal import InletJournal
internal import InletLinux
internal import Synchronization

/// The lane of small files: one feeder exchanges what has ended for what is due, many in one transaction, and the loops that
/// deliver take from its stock, so that a connection never waits for the disk.
final class SmallLane: Sendable {
    private typealias Ended = SmallWork.Ended

    private let journal: Journal
    private let board: DestinationBoard
    private let deliverOne: DeliverOne
    private let bells: WorkBells
    private let ends: DeliveryEnds
    private let heartbeat: Heartbeat
    private let isStopping: StopFlag
    private let loops: Int
    private let loopBell: Doorbell
    private let shared: SmallWork
    private let health: JournalHealth

    /// With more than this under way, exchanges are this far apart: each is a sync of the disk.
    private static let crowd = 8
    private static let pause = Duration.milliseconds(2)
    /// With as many ended, the next exchange comes at once.
    private static let batch = 16
    /// How many claims a destination may have: where many run, each has successors at hand, enough for the time that an
    /// exchange takes; where few run, the next ones wait in the journal.
    private static func most(_ connections: Int) -> Int { connections < crowd ? connections : 4 * connections }
    private static let journalPause = Duration.seconds(2)

    init(
        journal: Journal, work: SmallWork, board: DestinationBoard, deliverOne: DeliverOne, bells: WorkBells,
        ends: DeliveryEnds, health: JournalHealth, heartbeat: Heartbeat, isStopping: StopFlag
    ) {
        (self.journal, self.health) = (journal, health)
        shared = work
        self.board = board
        self.deliverOne = deliverOne
        self.bells = bells
        self.ends = ends
        self.heartbeat = heartbeat
        self.isStopping = isStopping
        loops = bells.loops(.small)
        loopBell = Doorbell(loops: loops)
    }

    /// Returns when the agent is stopping and every claim has been given back, or when the task is cancelled: then the journal
    /// is asked once more to take what has ended.
    func run() async {
        await withDiscardingTaskGroup { group in
            for _ in 0..<loops { group.addTask { await self.work() } }
            await feed()
            shared.state.withLock { $0.isClosed = true }
            loopBell.ringAll()
        }
        // A cancelled feeder waits for no loop: what they were in the middle of has ended since.
        let ended = shared.state.withLock { state in
            defer { (state.ended, state.refused) = ([], []) }
            return state.refused + state.ended
        }
        if !ended.isEmpty { _ = await exchange(ended, [], 0) }
    }

    // MARK: - The loops

    private func work() async {
        while let claim = await next() {
            heartbeat.beat(.workers)
            let ended = await end(claim)
            let isAwaited = shared.state.withLock { state in
                state.stock.end(claim.delivery.destination)
                state.ended.append(ended)
                return state.ended.count == 1
            }
            if isAwaited { bells.ring(.small) }
        }
    }

    /// Delivers, unless that may no longer be begun: while the claim waited, its destination may have gone down.
    private func end(_ claim: Claim) async -> Ended {
        if isStopping.isSet || Task.isCancelled || !board.takes(claim.delivery) { return .back(claim) }
        Failpoint.claimed.reached()
        let (settlement, report) = await deliverOne.deliver(claim)
        return Ended(claim: claim, settlement: settlement, report: report)
    }

    /// Waits for a claim; nil when there will be none.
    private func next() async -> Claim? {
        while true {
            let (claim, isClosed) = shared.state.withLock { ($0.stock.take(), $0.isClosed) }
            if let claim { return claim }
            if isClosed || Task.isCancelled { return nil }
            await loopBell.wait(until: nil)
        }
    }

    // MARK: - The feeder

    private func feed() async {
        var patience = JournalPatience()
        while true {
            heartbeat.beat(.workers)
            let isLast = Task.isCancelled
            let rooms = isLast || isStopping.isSet ? [] : board.rooms()
            await settleRefused()
            let (ended, places) = takeEnded(rooms)
            guard let exchange = await exchange(ended, rooms, places) else {
                // A proof waits here until it can be written.
                if await patience.wait(isStopping) { continue }
                return
            }
            let (open, refused) = shared.state.withLock { ($0.open, $0.refused.count) }
            if isLast || isStopping.isSet && open == 0 { return }
            if refused == 0 { patience = JournalPatience() }
            if isStopping.isSet, open == refused {
                if await patience.wait(isStopping) { continue }
                return
            }
            if exchange.claims.count < places || places == 0 { await bells.wait(.small, until: nextLook(exchange)) }
            let isCalm = shared.state.withLock { $0.open > Self.crowd && $0.ended.count < Self.batch }
            if isCalm { try? await Task.sleep(for: Self.pause) }
        }
    }

    /// When there is something to do that rings no bell.
    private func nextLook(_ exchange: Exchange) -> ContinuousClock.Instant? {
        let uptimes = board.runningUptimes()
        let (expiry, nextTry) = shared.state.withLock { ($0.stock.nextExpiry(uptimes), $0.nextTry) }
        let due = [exchange.nextDue.map { $0 - .now }, expiry].compactMap(\.self).min()
        let next = due.map { ContinuousClock.now.advanced(by: max($0, .milliseconds(10))) }
        return [next, nextTry].compactMap(\.self).min()
    }

    /// What has ended, and how many claims there is room for. What waits for a destination that may not be tried now is
    /// given back, and what has waited for too long ends so.
    private func takeEnded(_ rooms: [ClaimRoom]) -> ([Ended], places: Int) {
        let limits = Dictionary(uniqueKeysWithValues: rooms.map { ($0.destination, $0.limits[.small] ?? 0) })
        let uptimes = board.runningUptimes()
        return shared.state.withLock { state in
            state.ended += state.stock.setLimits(limits).map(Ended.back)
            state.ended += state.stock.takeExpired(uptimes).map(Ended.expired)
            defer { state.ended = [] }
            // What still runs for one that may not be tried now takes no place of the others.
            return (state.ended, limits.reduce(0) { $0 + max(0, Self.most($1.value) - state.stock.count(of: $1.key)) })
        }
    }

    /// - Returns: nil when the journal took nothing; what had ended is then kept for the next time.
    private func exchange(_ ended: [Ended], _ rooms: [ClaimRoom], _ places: Int) async -> Exchange? {
        if ended.isEmpty, places == 0 { return Exchange(settled: [], claims: [], nextDue: nil) }
        let rooms = rooms.map { room in
            var room = room
            room.limits = room.limits.mapValues(Self.most)
            return room
        }
        let wish = ClaimWish(lane: .small, rooms: rooms, most: places, owner: "\(Lane.small)")
        let error: JournalError
        switch await commit(ended, wish) {
        case .success(let exchange): return exchange
        case .failure(let refusal): error = refusal
        }
        // One that the journal refuses must keep neither the others from their proofs nor the lane from its work.
        let refused = await settleSingly(ended, error)
        let exchange = ended.isEmpty ? nil : try? await commit([], wish).get()
        if exchange != nil || refused.count < ended.count {
            keep(refused)
        } else {
            health.fails(error)
            shared.state.withLock { $0.ended.insert(contentsOf: refused, at: 0) }
        }
        return exchange
    }

    private func commit(_ ended: [Ended], _ wish: ClaimWish) async -> Result<Exchange, JournalError> {
        let claims = ended.map { EndedClaim($0.claim, $0.settlement) }
        do throws(JournalError) {
            if !claims.isEmpty { Failpoint.settling.reached() }
            let exchange = try await journal.exchange(claims, for: wish, ending: Receipt.atOnce, at: .now)
            follow(ended, exchange)
            return .success(exchange)
        } catch {
            return .failure(error)
        }
    }

    private func follow(_ ended: [Ended], _ exchange: Exchange) {
        // One that only looked has written nothing.
        if ended.count + exchange.claims.count > 0 { health.works() }
        let hasSurplus = shared.state.withLock { state in
            state.stock.add(exchange.claims)
            return state.stock.hasSurplus
        }
        loopBell.ring(exchange.claims.count)
        tell(zip(ended, exchange.settled).map { ($0, $1) })
        ends.tell(exchange.damaged)
        // Only now it is known to wait: whoever keeps the expiry clocks may have looked in vain.
        if hasSurplus || ended.contains(where: \.isBack) { bells.ringAny() }
    }

    /// - Parameter error: what came of settling them together.
    /// - Returns: what the journal did not take.
    private func settleSingly(_ ended: [Ended], _ error: JournalError) async -> [Ended] {
        var refused: [(Ended, JournalError)] = []
        if ended.count == 1 {
            refused = [(ended[0], error)]
        } else {
            let wish = ClaimWish(lane: .small, rooms: [], most: 0, owner: "")
            for one in ended {
                if case .failure(let error) = await commit([one], wish) { refused.append((one, error)) }
            }
        }
        return refused.map { one, error in
            var one = one
            one.refusal = ends.refused(one.claim.file, error, saidLast: one.refusal, health)
            return one
        }
    }

    private func settleRefused() async {
        let due = shared.state.withLock { state -> [Ended] in
            guard let time = state.nextTry, time <= .now || isStopping.isSet else { return [] }
            defer { state.refused = [] }
            return state.refused
        }
        let wish = ClaimWish(lane: .small, rooms: [], most: 0, owner: "")
        guard !due.isEmpty, case .failure(let error) = await commit(due, wish) else { return }
        keep(await settleSingly(due, error))
    }

    /// Tries again in a while what the journal refused.
    private func keep(_ refused: [Ended]) {
        shared.state.withLock { state in
            state.refused += refused
            state.refusedUntil = .now.advanced(by: Self.journalPause)
        }
    }

    /// All their lines in one write.
    private func tell(_ ends: [(ended: Ended, settled: SettledFile)]) {
        for (ended, _) in ends {
            if case .expired = ended.settlement {
                self.ends.log.emit(.expired(ended.claim.file, ended.claim.delivery.destination))
            }
        }
        self.ends.log.emit(ends.flatMap { DeliveryEnds.events($0.report, $0.claim.file, $1) })
        for (ended, settled) in ends { self.ends.pass(ended.report, ended.claim.file, settled, .small) }
    }
}
