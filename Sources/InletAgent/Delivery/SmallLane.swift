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
    }

    private struct State {
        var stock = ClaimStock()
        var ended: [Ended] = []
        var isClosed = false

        /// Claims that the journal does not know the end of.
        var open: Int { stock.count + ended.count }
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

    /// Returns when the agent is stopping and every claim has been given back, or when the task is cancelled.
    func run() async {
        await withDiscardingTaskGroup { group in
            for _ in 0..<loops { group.addTask { await self.work() } }
            await feed()
            state.withLock { $0.isClosed = true }
            loopBell.ringAll()
        }
    }

    // MARK: - The loops

    private func work() async {
        while let claim = await next() {
            heartbeat.beat(.workers)
            Failpoint.claimed.reached()
            let (settlement, report) = await deliverOne.deliver(claim)
            let isAwaited = state.withLock { state in
                state.stock.end(claim.delivery.destination)
                state.ended.append(Ended(claim: claim, settlement: settlement, report: report))
                return state.ended.count == 1
            }
            if isAwaited { bells.ring(.small) }
        }
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
            let rooms = isStopping.isSet ? [] : board.rooms()
            let (ended, places) = takeEnded(rooms)
            guard let exchange = await exchange(ended, rooms, places) else {
                if isLast { return }
                // The journal is full or failing; whoever admits says so. A proof waits here until it can be written.
                try? await Task.sleep(for: Self.journalPause)
                continue
            }
            let open = state.withLock { $0.open }
            if isLast || isStopping.isSet && open == 0 { return }
            if exchange.claims.count < places || places == 0 {
                await bells.wait(
                    .small, until: exchange.nextDue.map { .now.advanced(by: max($0 - .now, .milliseconds(10))) })
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
            for claim in state.stock.setLimits(limits) {
                let back = Settlement.again(at: .now, countsAttempt: false, code: nil, reason: nil)
                state.ended.append(Ended(claim: claim, settlement: back, report: nil))
            }
            defer { state.ended = [] }
            return (state.ended, max(0, limits.values.reduce(0) { $0 + Self.most($1) } - state.stock.count))
        }
    }

    /// - Returns: nil when the journal did not take it; what had ended is then kept for the next time.
    private func exchange(_ ended: [Ended], _ rooms: [ClaimRoom], _ places: Int) async -> Exchange? {
        if ended.isEmpty, places == 0 { return Exchange(settled: [], claims: [], nextDue: nil) }
        let rooms = rooms.map { room in
            ClaimRoom(destination: room.destination, limits: room.limits.mapValues(Self.most))
        }
        let wish = ClaimWish(lane: .small, rooms: rooms, most: places, owner: "\(Lane.small)")
        do {
            let claims = ended.map { EndedClaim($0.claim, $0.settlement) }
            let exchange = try await journal.exchange(claims, for: wish, ending: Receipt.atOnce, at: .now)
            state.withLock { $0.stock.add(exchange.claims) }
            loopBell.ring(exchange.claims.count)
            follow(zip(ended, exchange.settled).map { ($0, $1) })
            return exchange
        } catch {
            // One that the journal refuses must not keep the others from their proofs.
            var refused = ended
            if ended.count > 1 { refused = await settleSingly(ended) }
            state.withLock { $0.ended.insert(contentsOf: refused, at: 0) }
            return nil
        }
    }

    /// - Returns: what the journal did not take.
    private func settleSingly(_ ended: [Ended]) async -> [Ended] {
        var refused: [Ended] = []
        for one in ended {
            let wish = ClaimWish(lane: .small, rooms: [], most: 0, owner: "")
            let claim = EndedClaim(one.claim, one.settlement)
            if let settled = try? await journal.exchange([claim], for: wish, ending: Receipt.atOnce, at: .now).settled
                .first
            {
                follow([(one, settled)])
            } else {
                refused.append(one)
            }
        }
        return refused
    }

    /// All their lines in one write.
    private func follow(_ ends: [(ended: Ended, settled: SettledFile)]) {
        let told = ends.compactMap { one in one.ended.report.map { (report: $0, one.ended.claim.file, one.settled) } }
        self.ends.log.emit(told.flatMap { DeliveryEnds.events($0.report, $0.1, $0.2) })
        for (report, file, settled) in told { self.ends.pass(report, file, settled, .small) }
    }
}

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
