internal import InletCore
internal import InletJournal
internal import InletPipelines
internal import Synchronization

/// The small or the big deliveries to one destination: they have a lane of their own.
struct LaneID: Hashable, Sendable {
    var destination: String
    var lane: Lane
}

/// The claims of one lane: those at hand, how many run, which ended, and which ends the journal refuses. The journal
/// records all of them as claimed; only this knows which have not started. Every claim that enters by `add` leaves by
/// `takeEnded`.
struct LaneSlots: Sendable {
    typealias Instant = ContinuousClock.Instant

    struct Ended: Sendable {
        let claim: Claim
        let settlement: ClaimOutcome
        /// nil for a claim that never started.
        let report: DeliveryReport?
        /// Why the journal refused it last.
        var refusal: String?

        /// Whether it is in the queue again.
        var isBack: Bool {
            switch settlement {
            case .again, .waiting, .renamed: true
            case .delivered, .ended, .expired: false
            }
        }

        /// Back to its place in the queue, untried.
        static func back(_ claim: Claim) -> Ended {
            let settlement = ClaimOutcome.again(at: claim.delivery.nextAt, countsAttempt: false, code: nil, reason: nil)
            return Ended(claim: claim, settlement: settlement, report: nil)
        }
    }

    /// With at most this many running, each end is written at once.
    static let crowd = 8
    /// With so many ended, the next exchange comes at once.
    static let batch = 128
    /// With fewer claims at hand it comes soon: connections would idle during the write.
    static let reserve = 64

    /// Fewer are not sent together while others are on their way.
    private static let leastBurst = 16

    /// The most claims of a lane of small files. With many running, each connection has enough claims in reserve for
    /// the time of an exchange; with few, the next ones wait in the journal.
    static func most(_ connections: Int) -> Int { connections < crowd ? connections : 8 * connections }

    /// Not started, in the order in which they start.
    private(set) var atHand: [Claim] = []
    private(set) var running = 0
    /// Of these, those that were sent with others and now need an attempt of their own, in their order.
    private var alone: [DeliveryBurst.Alone] = []
    /// Of these, attempts.
    private var attempts = 0
    /// Whether a task starts bursts, and keeps starting them while claims are at hand.
    private(set) var isBursting = false
    /// Resumed when no claim runs any more that was sent with others.
    private var awaiting: CheckedContinuation<Void, Never>?
    /// The most that may run at once; 0 before that is known.
    private(set) var limit = 0
    private(set) var ended: [Ended] = []
    /// Ends that the journal refuses while it accepts others; offered again now and then.
    private(set) var refused: [Ended] = []
    private var refusedUntil: Instant?

    /// At hand and running.
    var held: Int { atHand.count + running }
    /// Claims whose end is not in the journal.
    var open: Int { held + ended.count + refused.count }
    /// Whether a claim at hand must wait for another to end.
    var hasSurplus: Bool { !atHand.isEmpty && held > limit }

    // MARK: - From claim to end

    /// Puts each behind the equally urgent ones.
    mutating func add(_ new: [Claim]) {
        for claim in new {
            let rank = claim.delivery.priority.rank
            let place = atHand.lastIndex { $0.delivery.priority.rank <= rank }.map { $0 + 1 } ?? 0
            atHand.insert(claim, at: place)
        }
    }

    /// The first claim that may start an attempt now: one that continues, or one that is not sent with others.
    mutating func begin(besides burst: DeliveryBurst? = nil) -> DeliveryBurst.Alone? {
        if !alone.isEmpty, attempts < max(1, limit) {
            attempts += 1
            return alone.removeFirst()
        }
        // Bursts have places of their own: a special file does not wait for the end of thousands of usual ones.
        guard attempts < limit, let index = atHand.firstIndex(where: { burst?.takes($0) != true }) else { return nil }
        running += 1
        attempts += 1
        return (atHand.remove(at: index), nil)
    }

    /// Whether somebody should start bursts from now on, who then asks `beginBurst`.
    mutating func beginBursting(_ burst: DeliveryBurst?) -> Bool {
        guard !isBursting, let burst, atHand.contains(where: burst.takes) else { return false }
        isBursting = true
        return true
    }

    /// Claims to be sent together, while there is room. Their connections are used by some while the others wait, so more
    /// of them run than may be sent at once.
    ///
    /// - Returns: the claims, none when there is no room, and whether too few are left at hand; nil when there are
    ///   none, and nobody starts bursts any more.
    mutating func beginBurst(_ burst: DeliveryBurst?) -> (claims: [Claim], isRunningOut: Bool)? {
        var taken: [Claim] = []
        if let burst, limit > 0 {
            let room = burst.room(besides: sent)
            guard room >= min(Self.leastBurst, max(1, sent)) else { return ([], false) }
            atHand.removeAll { claim in
                guard taken.count < room, burst.takes(claim) else { return false }
                taken.append(claim)
                return true
            }
        }
        isBursting = !taken.isEmpty
        running += taken.count
        return taken.isEmpty ? nil : (taken, atHand.count < enough)
    }

    /// A started attempt has ended.
    mutating func end(_ one: Ended) {
        running -= 1
        attempts -= 1
        ended.append(one)
    }

    /// Claims of a burst have ended, or need attempts.
    ///
    /// - Returns: whether there is room for another burst, whether the exchange should run now, and who waits for the
    ///   last ones to come back.
    mutating func end(
        _ burst: [Ended], _ alone: [DeliveryBurst.Alone]
    ) -> (hasRoom: Bool, isAwaited: Bool, waiter: CheckedContinuation<Void, Never>?) {
        let before = ended.count
        running -= burst.count
        ended += burst
        self.alone += alone
        let isAwaited = before == 0 || !alone.isEmpty || before < Self.batch && ended.count >= Self.batch
        defer { if sent == 0 { awaiting = nil } }
        return (isBursting, isAwaited, sent == 0 ? awaiting : nil)
    }

    /// How many that were sent with others have not come back.
    private var sent: Int { running - attempts - alone.count }

    /// Resumes `continuation` when all have come back. - Returns: whether they have already.
    mutating func await(_ continuation: CheckedContinuation<Void, Never>) -> Bool {
        if sent > 0 { awaiting = continuation }
        return sent == 0
    }

    /// Sets how many may run. With none, the claims at hand go back.
    ///
    /// - Returns: whether somebody who waits for room for a burst must look again: no end may tell.
    @discardableResult
    mutating func setLimit(_ limit: Int) -> Bool {
        defer { self.limit = limit }
        if limit == 0 { endAtHand(Ended.back) { _ in true } }
        return isBursting && limit != self.limit
    }

    /// Ends claims that waited at hand past their expiry.
    ///
    /// - Parameter uptime: the destination's expiry clock in milliseconds; nil while it is stopped.
    mutating func endExpired(_ uptime: Int64?) {
        guard let uptime else { return }
        let isOver = { (claim: Claim) in Self.timeLeft(claim.delivery, uptime).map { $0 <= .zero } ?? false }
        endAtHand({ Ended(claim: $0, settlement: .expired, report: nil) }, isOver)
    }

    /// How long until the first claim at hand expires; nil when none can.
    func nextExpiry(_ uptime: Int64?) -> Duration? {
        uptime.flatMap { uptime in atHand.compactMap { Self.timeLeft($0.delivery, uptime) }.min() }
    }

    private static func timeLeft(_ delivery: DeliveryRow, _ uptime: Int64) -> Duration? {
        guard !delivery.isBeingWorkedOn, let expiry = delivery.expiresAt else { return nil }
        return .milliseconds(expiry - uptime)
    }

    /// Drops a delivery that a person cancelled. - Returns: false when it is not at hand here.
    mutating func letGo(of delivery: Int64) -> Bool {
        endAtHand(Ended.back) { $0.delivery.id == delivery }
    }

    @discardableResult
    private mutating func endAtHand(_ end: (Claim) -> Ended, _ isMeant: (Claim) -> Bool) -> Bool {
        let taken = atHand.filter(isMeant)
        if !taken.isEmpty { atHand.removeAll(where: isMeant) }
        ended += taken.map(end)
        return !taken.isEmpty
    }

    // MARK: - From end to journal

    /// The ended claims for the journal; the caller commits them, or puts them back.
    mutating func takeEnded() -> [Ended] {
        defer { ended = [] }
        return ended
    }

    /// The journal accepted nothing: the next exchange offers these first.
    mutating func putBack(_ untold: [Ended]) { ended.insert(contentsOf: untold, at: 0) }

    /// The journal accepts others, but not these.
    mutating func keep(_ refused: [Ended], until time: Instant) {
        self.refused += refused
        refusedUntil = time
    }

    /// Refused ends, once it is time to offer them again; nil is at any time.
    mutating func takeRefused(at now: Instant?) -> [Ended] {
        guard let next = nextOffer, now.map({ next <= $0 }) ?? true else { return [] }
        defer { refused = [] }
        return refused
    }

    /// When to offer again what was refused.
    var nextOffer: Instant? { refused.isEmpty ? nil : refusedUntil }

    // MARK: - When to exchange

    /// Whether the exchange that waits for ends should run now.
    var isAwaited: Bool { ended.count == 1 || ended.count == Self.batch || isRunningOut }

    /// Whether the last claim that was taken left too few at hand.
    private var isRunningOut: Bool { atHand.count == enough - 1 }

    /// How long the next exchange may wait for more ends. Each end costs a sync of the disk, and writes the pages that
    /// it touches. nil while few run, and when enough have ended. Longer while there are claims at hand.
    var pause: Duration? {
        guard open > Self.crowd, ended.count < Self.batch else { return nil }
        if atHand.count >= enough { return .milliseconds(10) }
        return ended.count < Self.batch / 4 ? .milliseconds(2) : nil
    }

    /// How many claims at hand are enough for as many as run now.
    private var enough: Int { running == 0 ? Self.reserve : min(Self.reserve, 2 * running) }
}

/// The claims at hand of all lanes, to show or cancel them.
final class Lanes: Sendable {
    private let slots = Mutex<[LaneID: LaneSlots]>([:])

    func with<Value: Sendable>(_ lane: LaneID, _ body: (inout LaneSlots) -> Value) -> Value {
        slots.withLock { body(&$0[lane, default: LaneSlots()]) }
    }

    /// Forgets a lane without claims.
    func remove(_ lane: LaneID) { slots.withLock { slots in if slots[lane]?.open == 0 { slots[lane] = nil } } }

    /// Claims that have not started, by destination.
    var waiting: [String: Int] {
        slots.withLock { slots in
            slots.reduce(into: [:]) { waiting, lane in
                let count = lane.value.atHand.count
                if count > 0 { waiting[lane.key.destination, default: 0] += count }
            }
        }
    }

    func isWaiting(_ delivery: Int64) -> Bool {
        slots.withLock { $0.values.contains { $0.atHand.contains { $0.delivery.id == delivery } } }
    }

    /// Drops a delivery that a person cancelled. - Returns: false when it is at hand in no lane.
    func letGo(of delivery: Int64) -> Bool {
        slots.withLock { slots in slots.keys.contains { slots[$0]?.letGo(of: delivery) ?? false } }
    }
}
