internal import InletCore
internal import InletJournal
internal import InletLinux
internal import Synchronization

/// The lane of small files: one feeder exchanges what has ended for what is due, many in one transaction, and the loops that
/// deliver take from its stock, so that a connection never waits for the disk.
final class SmallLane: Sendable {
    private struct Ended {
        let claim: Claim
        let settlement: Settlement
        /// nil for a claim that goes back untried.
        let report: DeliverOne.Report?

        /// Whether it waits in the queue again.
        var isBack: Bool {
            switch settlement {
            case .again, .waiting: true
            case .delivered, .ended: false
            }
        }
    }

    private struct State {
        var stock = ClaimStock()
        var ended: [Ended] = []
        /// What the journal refuses while it takes others, tried again now and then.
        var refused: [Ended] = []
        var refusedUntil = ContinuousClock.now
        var isClosed = false

        /// Claims that the journal does not know the end of.
        var open: Int { stock.count + ended.count + refused.count }
        /// When the feeder must look again for the sake of what was refused.
        var nextTry: ContinuousClock.Instant? { refused.isEmpty ? nil : refusedUntil }
    }

    private let journal: Journal
    private let board: DestinationBoard
    private let deliverOne: DeliverOne
    private let bells: WorkBells
    private let ends: DeliveryEnds
    private let heartbeat: Heartbeat
    private let isStopping: StopFlag
    private let loops: Int
    private let loopBell: Doorbell
    private let state = Mutex(State())

    /// With more than this under way, exchanges are this far apart: each is a sync of the disk.
    private static let crowd = 8
    private static let pause = Duration.milliseconds(2)
    /// With as many ended, the next exchange comes at once.
    private static let batch = 16
    /// How many claims a destination may have, those that wait here among them: where many run, each has successors at hand,
    /// enough for the time that an exchange takes. Where few run, the next ones wait in the journal, where they can expire and
    /// are seen to wait.
    private static func most(_ connections: Int) -> Int { connections < crowd ? connections : 4 * connections }
    private static let journalPause = Duration.seconds(2)

    init(
        journal: Journal, board: DestinationBoard, deliverOne: DeliverOne, bells: WorkBells, ends: DeliveryEnds,
        heartbeat: Heartbeat, isStopping: StopFlag
    ) {
        self.journal = journal
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
            state.withLock { $0.isClosed = true }
            loopBell.ringAll()
        }
        // A cancelled feeder does not wait for the loops: what they were in the middle of has ended since.
        let ended = state.withLock { state in
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
            let isAwaited = state.withLock { state in
                state.stock.end(claim.delivery.destination)
                state.ended.append(ended)
                return state.ended.count == 1
            }
            if isAwaited { bells.ring(.small) }
        }
    }

    /// Delivers, unless that may no longer be begun: while the claim waited, its destination may have gone down.
    private func end(_ claim: Claim) async -> Ended {
        if isStopping.isSet || Task.isCancelled || !board.takes(claim.delivery) { return Self.back(claim) }
        Failpoint.claimed.reached()
        let (settlement, report) = await deliverOne.deliver(claim)
        return Ended(claim: claim, settlement: settlement, report: report)
    }

    /// Back to its place in the queue, untried.
    private static func back(_ claim: Claim) -> Ended {
        let settlement = Settlement.again(at: claim.delivery.nextAt, countsAttempt: false, code: nil, reason: nil)
        return Ended(claim: claim, settlement: settlement, report: nil)
    }

    /// Waits for a claim; nil when there will be none.
    private func next() async -> Claim? {
        while true {
            let (claim, isClosed) = state.withLock { ($0.stock.take(), $0.isClosed) }
            if let claim { return claim }
            if isClosed || Task.isCancelled { return nil }
            await loopBell.wait(until: nil)
        }
    }

    // MARK: - The feeder

    private func feed() async {
        while true {
            heartbeat.beat(.workers)
            let isLast = Task.isCancelled
            let rooms = isLast || isStopping.isSet ? [] : board.rooms()
            await settleRefused()
            let (ended, places) = takeEnded(rooms)
            guard let exchange = await exchange(ended, rooms, places) else {
                if isLast { return }
                // The journal is full or failing; whoever admits says so. A proof waits here until it can be written.
                try? await Task.sleep(for: Self.journalPause)
                continue
            }
            let (open, nextTry) = state.withLock { ($0.open, $0.nextTry) }
            if isLast || isStopping.isSet && open == 0 { return }
            if exchange.claims.count < places || places == 0 {
                let due = exchange.nextDue.map { ContinuousClock.now.advanced(by: max($0 - .now, .milliseconds(10))) }
                await bells.wait(.small, until: [due, nextTry].compactMap(\.self).min())
            }
            let isCalm = state.withLock { $0.open > Self.crowd && $0.ended.count < Self.batch }
            if isCalm { try? await Task.sleep(for: Self.pause) }
        }
    }

    /// What has ended, and how many claims there is room for. What waits for a destination that may not be tried now is
    /// given back.
    private func takeEnded(_ rooms: [ClaimRoom]) -> ([Ended], places: Int) {
        let limits = Dictionary(uniqueKeysWithValues: rooms.map { ($0.destination, $0.limits[.small] ?? 0) })
        return state.withLock { state in
            state.ended += state.stock.setLimits(limits).map(Self.back)
            defer { state.ended = [] }
            return (state.ended, max(0, limits.values.reduce(0) { $0 + Self.most($1) } - state.stock.count))
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
        if let exchange = await commit(ended, wish) { return exchange }
        // One that the journal refuses must keep neither the others from their proofs nor the lane from its work.
        let refused = ended.count > 1 ? await settleSingly(ended) : ended
        let exchange = ended.isEmpty ? nil : await commit([], wish)
        state.withLock { state in
            if exchange == nil, refused.count == ended.count {
                state.ended.insert(contentsOf: refused, at: 0)
            } else {
                state.refused += refused
                state.refusedUntil = .now.advanced(by: Self.journalPause)
            }
        }
        return exchange
    }

    private func commit(_ ended: [Ended], _ wish: ClaimWish) async -> Exchange? {
        let claims = ended.map { EndedClaim($0.claim, $0.settlement) }
        guard let exchange = try? await journal.exchange(claims, for: wish, ending: Receipt.atOnce, at: .now) else {
            return nil
        }
        state.withLock { $0.stock.add(exchange.claims) }
        loopBell.ring(exchange.claims.count)
        follow(zip(ended, exchange.settled).map { ($0, $1) })
        // Only now the journal says that it waits: whoever keeps the expiry clocks may have looked in vain.
        if ended.contains(where: \.isBack) { bells.ringAny() }
        return exchange
    }

    /// - Returns: what the journal did not take.
    private func settleSingly(_ ended: [Ended]) async -> [Ended] {
        let wish = ClaimWish(lane: .small, rooms: [], most: 0, owner: "")
        var refused: [Ended] = []
        for one in ended where await commit([one], wish) == nil { refused.append(one) }
        return refused
    }

    private func settleRefused() async {
        let due = state.withLock { state -> [Ended] in
            guard let time = state.nextTry, time <= .now else { return [] }
            defer { state.refused = [] }
            return state.refused
        }
        if due.isEmpty { return }
        let refused = await settleSingly(due)
        state.withLock { state in
            state.refused += refused
            state.refusedUntil = .now.advanced(by: Self.journalPause)
        }
    }

    /// All their lines in one write.
    private func follow(_ ends: [(ended: Ended, settled: SettledFile)]) {
        let told = ends.compactMap { one in one.ended.report.map { (report: $0, one.ended.claim.file, one.settled) } }
        self.ends.log.emit(told.flatMap { DeliveryEnds.events($0.report, $0.1, $0.2) })
        for (report, file, settled) in told { self.ends.pass(report, file, settled, .small) }
    }
}
