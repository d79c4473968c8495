import CCurl
import InletCore

/// Runs transfers on one thread, with its own connections.
final class TransferLoop {
    private let mailbox: TransferMailbox
    private let multi: CurlMulti
    private let options: ClientOptions
    private let connectionsPerHost: Int
    private var handles: CurlHandles
    private var running: [UnsafeMutableRawPointer: Transfer] = [:]
    /// Requests whose host has no free connection, or whose lane has no bytes yet, in their order.
    private var waiting: [Pending] = []
    private var connections: [String: Int] = [:]
    /// How many requests, waiting or running, may have to wait for bytes under a limit.
    private var places = 0
    /// Batches with answers that are not told yet.
    private var untold: [AnswerBatch] = []
    /// How many requests were answered since the mailbox heard of it.
    private var answered = 0
    /// Whether anything changed since the loop last decided who may start.
    private var hasNews = true
    private let clock = ContinuousClock()
    private let time = LoopTime()
    /// When time alone may decide about a running transfer; nil while there is none, or all wait for their turn.
    private var nextLook: ContinuousClock.Instant?

    private typealias Pending = (submission: Submission, place: ThrottledRequest?)

    /// How often running transfers and the kernel's send queues are checked: not at every event, of which there are
    /// thousands a second. A time limit that comes nearer, because a body has ended, is noticed at most this much
    /// later.
    private static let tick = Duration.seconds(1)
    /// A longer body can take so long that others must not wait for its end.
    static let large: Int64 = 1 << 20
    private static let keptHandles = 128
    /// Open connections that are kept whatever happens, and how many are kept now: as many as were used at once.
    private static let leastKept = 32
    private var kept = leastKept

    init(_ mailbox: TransferMailbox, options: ClientOptions, connectionsPerHost: Int) {
        self.mailbox = mailbox
        multi = mailbox.multi
        self.options = options
        self.connectionsPerHost = connectionsPerHost
        handles = CurlHandles(most: min(connectionsPerHost, Self.keptHandles))
        multi.keep(connections: kept)
    }

    /// Returns when the mailbox is closed and every request is answered.
    func run() {
        while true {
            time.turn()
            let (added, cancelled, isClosed) = mailbox.take()
            if !added.isEmpty || !cancelled.isEmpty { hasNews = true }
            for submission in added {
                let place = place(of: submission)
                if place != nil { places += 1 }
                waiting.append((submission, place))
            }
            for ticket in cancelled { cancel { $0.ticket === ticket } }
            if isClosed {
                cancel { _ in true }
                return tell()
            }
            goOnWithPaused()
            settleEnded()
            settleOverdue()
            // An ended request has left its connection: nothing else would end the wait.
            startWaiting()
            // Also those that could not even start: nothing else may end the wait.
            tell()
            multi.wait(atMost: [nextLook, nextTurn].compactMap { $0 }.min().map { clock.now.duration(to: $0) })
        }
    }

    /// nil where the request is not held back: small ones of a batch are sent at once or not at all.
    private func place(of submission: Submission) -> ThrottledRequest? {
        if submission.batch != nil, submission.lane?.isLimited != true { return nil }
        return ThrottledRequest(submission) { [multi] in multi.wakeUp() }
    }

    /// Ensures that `transfer` is checked in time.
    private func watch(_ transfer: Transfer, from now: ContinuousClock.Instant) {
        guard let verdict = transfer.deadlines.next else { return }
        let time = min(verdict, now.advanced(by: Self.tick))
        nextLook = min(nextLook ?? time, time)
    }

    /// When a lane has bytes for a request that waits for them.
    private var nextTurn: ContinuousClock.Instant? {
        if places == 0 { return nil }
        var (next, last): (ContinuousClock.Instant?, ThrottledRequest?) = (nil, nil)
        func look(at place: ThrottledRequest?) {
            guard let place, place.isWaiting, !place.sharesLimits(with: last) else { return }
            last = place
            if let time = place.next(at: clock.now) { next = min(next ?? time, time) }
        }
        for pending in waiting { look(at: pending.place) }
        for transfer in running.values { look(at: transfer.place) }
        return next
    }

    private func startWaiting() {
        guard hasNews || places > 0 && waiting.contains(where: { $0.place?.isWaiting == true }) else { return }
        hasNews = false
        var kept: [Pending] = []
        for pending in waiting {
            let submission = pending.submission
            if submission.ticket.isCancelled {
                answer(pending, submission.cancellation)
            } else if !hasConnection(for: submission) || !isTurn(of: pending) {
                kept.append(pending)
            } else {
                start(pending)
            }
        }
        waiting = kept
    }

    private func hasConnection(for submission: Submission) -> Bool {
        let isLarge = submission.request.body.length > Self.large
        let room = min(Self.room(connectionsPerHost, isLarge: isLarge), submission.batch?.most ?? .max)
        return connections[submission.destination, default: 0] < room
    }

    /// The share of a host's connections for such bodies. Large ones leave some to the others, which would otherwise
    /// wait for one to end.
    static func room(_ connections: Int, isLarge: Bool) -> Int {
        isLarge && connections > 1 ? connections - max(1, connections / 8) : connections
    }

    private func isTurn(of pending: Pending) -> Bool {
        guard let place = pending.place else { return true }
        return place.allowance(of: pending.submission.request.body.length, at: clock.now) > 0
    }

    /// After `wait`, which may have brought a refusal: a resumed body ends the next wait at once.
    private func goOnWithPaused() {
        if places == 0 { return }
        for transfer in running.values where transfer.isPaused {
            let now = clock.now
            guard transfer.mayGoOn(at: now) else { continue }
            transfer.goOn(at: now)
            watch(transfer, from: now)
        }
    }

    private func start(_ pending: Pending) {
        let submission = pending.submission
        guard let easy = handles.take(for: submission) else {
            let why = "\(submission.request.label): out of memory"
            return answer(pending, TransferError(.internalFault, why, isOutage: false))
        }
        let transfer = Transfer(submission, place: pending.place, easy: easy, time)
        transfer.configure(options)
        transfer.shareSessions(of: multi)
        guard easy.setUp == CURLE_OK, multi.add(easy) else {
            let code = easy.setUp == CURLE_OK ? CURLE_FAILED_INIT : easy.setUp
            let label = submission.request.label
            return answer(pending, TransferError(code, label, detail: easy.detail(code), answered: false))
        }
        running[easy.handle] = transfer
        if running.count > kept { keep(running.count + Self.leastKept) }
        connections[submission.destination, default: 0] += 1
        watch(transfer, from: time.now)
    }

    private func settleEnded() {
        while let (handle, code) = multi.nextEnded() {
            guard let transfer = running[handle] else { continue }
            let outcome = transfer.outcome(code)
            remove(transfer)
            handles.giveBack(
                transfer.easy, of: transfer.submission, isWell: code == CURLE_OK && transfer.failure == nil)
            answer(transfer.submission) { transfer.settle(outcome) }
        }
    }

    /// Answers one submission, once it has left its connection.
    private func answer(_ submission: Submission, _ settle: () -> Void) {
        answered += 1
        if let batch = submission.batch {
            settle()
            if !untold.contains(where: { $0 === batch }) { untold.append(batch) }
        } else {
            // Before the caller continues: its next request must find this loop, and its open connection, free.
            settled()
            settle()
        }
    }

    private func settled() {
        if answered > 0 { mailbox.settled(answered) }
        answered = 0
    }

    /// Tells batches the answers of this turn.
    private func tell() {
        settled()
        for batch in untold { batch.flush() }
        untold = []
    }

    private func settleOverdue() {
        let now = clock.now
        guard let look = nextLook, now >= look else { return }
        nextLook = nil
        for transfer in Array(running.values) {
            if let error = transfer.overdue(at: now) { abandon(transfer, error) } else { watch(transfer, from: now) }
        }
    }

    private func cancel(where isMeant: (Submission) -> Bool) {
        for transfer in Array(running.values) where isMeant(transfer.submission) {
            abandon(transfer, transfer.submission.cancellation)
        }
        let meant = waiting.filter { isMeant($0.submission) }
        waiting.removeAll { isMeant($0.submission) }
        for pending in meant { answer(pending, pending.submission.cancellation) }
    }

    /// Answers first: before 7.87 removing a handle may wait for a name look-up to end.
    private func abandon(_ transfer: Transfer, _ error: TransferError) {
        answer(transfer.submission) { transfer.settle(.failure(error)) }
        remove(transfer)
    }

    private func remove(_ transfer: Transfer) {
        running[transfer.easy.handle] = nil
        multi.remove(transfer.easy)
        transfer.place?.leave()
        if transfer.place != nil { places -= 1 }
        let destination = transfer.submission.destination
        let left = connections[destination, default: 1] - 1
        connections[destination] = left > 0 ? left : nil
        hasNews = true
        if running.isEmpty {
            nextLook = nil
            if kept > Self.leastKept { keep(Self.leastKept) }
        }
    }

    private func keep(_ count: Int) {
        kept = count
        multi.keep(connections: count)
    }

    /// Answers one that was not started.
    private func answer(_ pending: Pending, _ error: TransferError) {
        if pending.place != nil { places -= 1 }
        answer(pending.submission) { pending.submission.end(.failure(error)) }
    }
}

/// One request's place in its lane, and its bytes there. Belongs to its loop's thread.
final class ThrottledRequest {
    typealias Instant = ContinuousClock.Instant

    private let lane: ThrottleLane
    private let isSmall: Bool
    private let wake: @Sendable () -> Void
    /// Marked while it waits.
    private let note: ThrottleWaits?
    /// nil until a limit has been met.
    private var flow: BandwidthFlow?
    private var credit: Int64 = 0
    /// Whether the last request for bytes got none.
    private(set) var isWaiting = false

    /// nil for requests without a limit.
    ///
    /// - Parameter wake: ends the wait of the loop's thread; from any thread.
    init?(_ submission: Submission, waking wake: @escaping @Sendable () -> Void) {
        let (request, length) = (submission.request, submission.request.body.length)
        guard let lane = submission.lane, length > 0, !request.outlivesCancellation else { return nil }
        self.lane = lane
        isSmall = length <= BandwidthShare.smallBody
        self.wake = wake
        note = submission.note
    }

    deinit { leave() }

    /// The number of bytes of the body that may be read now, of the `left` remaining; 0 = not yet.
    func allowance(of left: Int64, at now: Instant) -> Int64 {
        guard lane.isLimited else {
            leave()
            return left
        }
        if credit > 0 { return min(credit, left) }
        let flow = self.flow ?? lane.throttle.join(waking: wake)
        self.flow = flow
        credit = lane.throttle.ask(flow, of: lane.destination, wanted: left, isSmall: isSmall, at: now)
        wait(credit == 0)
        return min(credit, left)
    }

    /// `count` bytes were read.
    func use(_ count: Int64) { credit = max(0, credit - count) }

    /// When to ask again; nil when only a raised limit can help, which wakes the loop.
    func next(at now: Instant) -> Instant? { lane.throttle.next(at: now) }

    /// Whether `next` has the same value for both.
    func sharesLimits(with other: ThrottledRequest?) -> Bool { lane.throttle === other?.lane.throttle }

    /// The request has nothing left to send.
    func leave() {
        wait(false)
        guard let flow else { return }
        lane.throttle.leave(flow, unused: credit)
        self.flow = nil
        credit = 0
    }

    private func wait(_ waits: Bool) {
        guard waits != isWaiting else { return }
        isWaiting = waits
        if waits { note?.begin() } else { note?.end() }
    }
}
