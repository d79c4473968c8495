internal import InletCore
internal import InletJournal
internal import InletLinux
internal import Synchronization

/// The lane of small files: one feeder exchanges what has ended for what is due, many in one transaction, and the loops that
/// deliver take from its stock, so that a connection never waits for the disk.
final class SmallLane: Sendable {
    typealias Ended = SmallWork.Ended

    let journal: Journal
    private let board: DestinationBoard
    private let deliverOne: DeliveryAttempts
    let signals: Signals
    let ends: DeliveryEnds
    private let heartbeat: Heartbeat
    let isStopping: StopFlag
    private let loops: Int
    let loopSignal: WakeSignal
    let shared: SmallWork
    let health: JournalHealth

    /// How many claims a destination may have: where many run, each has successors at hand, enough for the time that an
    /// exchange takes; where few run, the next ones wait in the journal.
    static func most(_ connections: Int) -> Int {
        connections < SmallWork.crowd ? connections : 8 * connections
    }
    static let journalPause = Duration.seconds(2)

    init(
        journal: Journal, work: SmallWork, board: DestinationBoard, deliverOne: DeliveryAttempts, loops: Int,
        signals: Signals, ends: DeliveryEnds, health: JournalHealth, heartbeat: Heartbeat, isStopping: StopFlag
    ) {
        (self.journal, self.health) = (journal, health)
        shared = work
        self.board = board
        self.deliverOne = deliverOne
        self.signals = signals
        self.ends = ends
        self.heartbeat = heartbeat
        self.isStopping = isStopping
        self.loops = loops
        loopSignal = WakeSignal(loops: loops)
    }

    /// Returns when the agent is stopping and every claim has been given back, or when the task is cancelled: then the journal
    /// is asked once more to take what has ended.
    func run() async {
        await withDiscardingTaskGroup { group in
            for _ in 0..<loops { group.addTask { await self.work() } }
            await feed()
            shared.state.withLock { $0.isClosed = true }
            loopSignal.raiseAll()
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
                return state.ended.count == 1 || state.ended.count == SmallWork.batch
            }
            if isAwaited { signals.raise(.deliverable(.small)) }
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
            let (claim, isClosed, isLow) = shared.state.withLock { state in
                (state.stock.take(), state.isClosed, state.stock.waitingCount == state.reserve - 1)
            }
            if let claim {
                if isLow { signals.raise(.deliverable(.small)) }
                return claim
            }
            if isClosed || Task.isCancelled { return nil }
            await loopSignal.wait(until: nil)
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
            if exchange.claims.count < places || places == 0 {
                await signals.wait(for: .deliverable(.small), until: nextLook(exchange))
            }
            await gather()
        }
    }

    /// Lets ends gather for one exchange while nobody waits for it.
    private func gather() async {
        let start = ContinuousClock.now
        while !isStopping.isSet, !Task.isCancelled, let pause = shared.state.withLock(\.pause),
            start.duration(to: .now) < pause
        {
            await signals.wait(for: .deliverable(.small), until: start.advanced(by: pause))
        }
    }

    /// When there is something to do for which no signal is raised.
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
}
