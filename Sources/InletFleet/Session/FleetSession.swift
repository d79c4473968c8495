package import InletCore

/// The lease of this agent in its fleet: events in, actions out; the time is a parameter.
///
/// The caller carries out `next(at:)`, gives the outcome to `apply(_:at:)`, and repeats. Two promises: nobody acts by a
/// session past its own deadline, and no hello has a number that the server may have taken before.
package struct FleetSession: Sendable, Equatable {
    /// It goes on while the machine sleeps (CLOCK_BOOTTIME), as the server's does.
    package typealias Time = ContinuousClock.Instant

    package enum State: Sendable, Equatable {
        /// Not a member of a fleet.
        case alone
        /// No session; trying to get one.
        case connecting
        /// A session after a restart of the server: nothing is granted before the others are back.
        case confirming
        /// A session until then, unless it is renewed.
        case live(until: Time)
        /// A session while the fleet asks who has what. Nothing is granted; `owesReport` says whether it waits for us.
        case reporting(since: Time)
        /// No session, and it takes a person to get one.
        case refused(FleetError.Code)
    }

    package enum Action: Sendable, Equatable {
        /// Read the identity: it may be new.
        case identify
        case connect
        /// Count hellos up, durably.
        case count
        case hello(number: Int64)
        case beat(session: Int64, isDurable: Bool)
        /// Nothing is to do before `until`, except for an event.
        case rest(until: Time)
    }

    package enum Event: Sendable, Equatable {
        /// - Parameters:
        ///   - isNew: the identity is another one than before.
        ///   - isUsedTwice: the server has refused it as a copy's. It is not asked again.
        case identified(isMember: Bool, isNew: Bool, isUsedTwice: Bool = false)
        /// Read the identity, and ask at once: a person may have changed something.
        case lookAgain
        case connected
        case counted(Int64)
        /// - Parameter asked: when the question was sent, from which the lease is counted.
        case welcomed(FleetWelcome, asked: Time)
        case beaten(FleetBeat, session: Int64, asked: Time)
        /// Everything of this epoch was reported in this session, and the fleet is in this phase.
        case reported(FleetPhase, epoch: Int32, session: Int64)
        case failed(FleetFailure)
    }

    private static let rareLook = Duration.seconds(60)
    private static let durableEvery = Duration.seconds(60)
    private static let backoff = (least: 0.2, most: 10.0)

    package private(set) var isMember: Bool
    package private(set) var isConnected = false
    private var session: Int64?
    private var deadline: Time?
    package private(set) var ttl = Duration.seconds(15)
    package private(set) var phase = FleetPhase.open
    package private(set) var epoch: Int32 = 0
    private var ownEpoch: Int32 = 0
    private var reportingSince: Time?
    /// The mark that the database has: a report begins after it.
    package private(set) var reportFrom: Int64 = 0
    private var refusal: FleetError.Code?
    /// Since the last beat that was answered.
    private var failures = 0
    private var mustIdentify: Bool
    /// The connection is new: the session is asked for anew, and counts until then.
    private var mustHello = true
    /// Counted, and not said as far as the server is concerned.
    private var number: Int64?
    /// The number of the hello under way.
    private var said: Int64?
    private var highest: Int64 = 0
    private var due: Time
    private var durableAt: Time

    package init(isMember: Bool, isUsedTwice: Bool = false, at now: Time) {
        (self.isMember, mustIdentify, due, durableAt) = (isMember, !isMember || isUsedTwice, now, now)
        if isUsedTwice { refusal = .usedTwice }
    }

    package func state(at now: Time) -> State {
        guard isMember else { return .alone }
        guard let deadline, liveSession(at: now) != nil else { return refusal.map { .refused($0) } ?? .connecting }
        if let reportingSince { return .reporting(since: reportingSince) }
        return phase == .confirming ? .confirming : .live(until: deadline)
    }

    /// The session by which calls may be made now; nil past its deadline.
    package func liveSession(at now: Time) -> Int64? {
        guard let session, let deadline, now < deadline else { return nil }
        return session
    }

    /// How long it lasts without another beat; nil without a live one.
    package func left(at now: Time) -> Duration? {
        guard let deadline, liveSession(at: now) != nil else { return nil }
        return deadline - now
    }

    /// Whether the fleet waits for this agent's report.
    package var owesReport: Bool { session != nil && ownEpoch < epoch }

    // MARK: - Actions

    /// The next thing to do. A hello that is returned counts as said.
    package mutating func next(at now: Time) -> Action {
        guard due <= now else { return .rest(until: [due, deadline ?? due].filter { $0 > now }.min() ?? due) }
        if mustIdentify { return .identify }
        guard isConnected else { return .connect }
        if let session, !mustHello {
            return .beat(session: session, isDurable: now >= durableAt + Self.durableEvery)
        }
        guard let number else { return .count }
        (said, self.number) = (number, nil)
        return .hello(number: number)
    }

    // MARK: - Events

    package mutating func apply(_ event: Event, at now: Time) {
        switch event {
        case .identified(let isMember, let isNew, let isUsedTwice): identified(isMember, isNew, isUsedTwice, now)
        case .lookAgain: (mustIdentify, due) = (true, now)
        case .connected: (isConnected, mustHello) = (true, true)
        case .counted(let count): counted(count, now)
        case .welcomed(let welcome, let asked): welcomed(welcome, asked, now)
        case .beaten(let beat, let session, let asked):
            if session == self.session { beaten(beat, asked, now) }
        case .reported(let phase, let epoch, let session):
            guard session == self.session else { return }
            // A later epoch needs a report of its own.
            (ownEpoch, self.phase) = (max(ownEpoch, epoch), phase)
            judgeReport(now)
        case .failed(let failure): failed(failure, now)
        }
    }

    private mutating func identified(_ isMember: Bool, _ isNew: Bool, _ isUsedTwice: Bool, _ now: Time) {
        if isNew {
            // Numbers are counted anew for another identity.
            (number, said, highest, refusal, failures) = (nil, nil, 0, nil, 0)
        }
        if isNew || !isMember || isUsedTwice { endSession() }
        if isUsedTwice { refusal = .usedTwice }
        self.isMember = isMember
        mustIdentify = !isMember || isUsedTwice
        due = mustIdentify ? now + Self.rareLook : now
    }

    /// A memory that counts backwards, or not at all, would say a number twice.
    private mutating func counted(_ count: Int64, _ now: Time) {
        guard count > highest else {
            (refusal, due) = (.fault, now + Self.rareLook)
            return
        }
        (number, highest) = (count, count)
    }

    private mutating func welcomed(_ welcome: FleetWelcome, _ asked: Time, _ now: Time) {
        (said, refusal, mustHello, session) = (nil, nil, false, welcome.session)
        (epoch, ownEpoch, phase, durableAt) = (welcome.epoch, welcome.ownEpoch, welcome.phase, asked)
        renew(welcome.ttl, asked)
        if welcome.phase == .confirming { due = min(due, asked + welcome.wait + .milliseconds(50)) }
        if ownEpoch < epoch { reportFrom = welcome.mark }
        judgeReport(now)
    }

    private mutating func beaten(_ beat: FleetBeat, _ asked: Time, _ now: Time) {
        // The first beat after a loss has the mark that is left: it does not move before the report.
        if beat.epoch > epoch, ownEpoch < beat.epoch { reportFrom = beat.mark }
        if asked >= durableAt + Self.durableEvery { durableAt = asked }
        (failures, epoch, phase) = (0, beat.epoch, beat.phase)
        renew(beat.ttl, asked)
        judgeReport(now)
    }

    /// Counted from before the question, less a margin: the server never sees the lease end before we do.
    private mutating func renew(_ ttl: Duration, _ asked: Time) {
        self.ttl = ttl
        deadline = asked + ttl - max(ttl / 10, .milliseconds(300))
        due = asked + ttl / 3
    }

    private mutating func judgeReport(_ now: Time) {
        let isReporting = session != nil && (ownEpoch < epoch || phase == .recovering)
        reportingSince = isReporting ? reportingSince ?? now : nil
    }

    // MARK: - Failures

    private mutating func failed(_ failure: FleetFailure, _ now: Time) {
        // An answer to a call of an earlier session says nothing about this one.
        if let session = failure.session, session != self.session { return }
        if failure.isDisconnected { (isConnected, mustHello) = (false, true) }
        let isOwn = failure.session == nil
        switch failure.code {
        case .nothingGranted, .reportFirst:
            // The phase has changed: the next beat says to which.
            if case .live = state(at: now) { due = min(due, now) }
        case .schema, .unknownAgent, .isAlive, .usedTwice:
            // The server has not taken the number. A copy of a journal that counted on would pass for the original.
            if isOwn { number = number ?? said }
            endSession()
            refuse(failure, now)
        case .untrusted, .refused, .library: if isOwn { refuse(failure, now) }
        case .sessionOver, .wentBack:
            endSession()
            retry(failure, now, isAtOnce: failures == 0)
        case .away:
            if isOwn {
                if !isElsewhere { refusal = nil }
                retry(failure, now)
            }
        case .journal:
            // It may work again at any moment. The server was not asked, and has not taken the number.
            number = number ?? said
            if liveSession(at: now) == nil, !isElsewhere { (refusal, mustIdentify) = (.journal, true) }
            retry(failure, now)
        case .fenced, .notMember, .argument, .fault:
            // Of a call: its caller's concern.
            if isOwn, session == nil { refuse(failure, now) } else if isOwn { retry(failure, now) }
        }
        if isOwn { said = nil }
    }

    /// Another process has the identity, and its tag, until the server says otherwise: that it is away says nothing.
    private var isElsewhere: Bool { refusal == .usedTwice || refusal == .isAlive }

    private mutating func refuse(_ failure: FleetFailure, _ now: Time) {
        failures += 1
        if !isElsewhere || failure.code.rawValue.hasPrefix("IN") { refusal = failure.code }
        mustIdentify = true
        let wait = failure.code == .isAlive ? failure.wait.map { max(.seconds(1), $0 + .milliseconds(100)) } : nil
        due = now + min(wait ?? Self.rareLook, Self.rareLook)
    }

    /// Full jitter, so that a thousand agents do not come back at once.
    private mutating func retry(_ failure: FleetFailure, _ now: Time, isAtOnce: Bool = false) {
        let most = min(Self.backoff.most, Self.backoff.least * Double(1 << min(failures, 10)))
        failures += 1
        let pause = Self.backoff.least + failure.jitter * (most - Self.backoff.least)
        due = isAtOnce ? now : now + .milliseconds(Int64((pause * 1000).rounded()))
    }

    private mutating func endSession() {
        (session, deadline, reportingSince, mustHello) = (nil, nil, nil, true)
    }
}

/// Whether the fleet grants anything now.
package enum FleetPhase: String, Sendable, Codable, CaseIterable {
    case open
    /// The server was restarted: nothing is granted before all agents have said hello, at most for one lease.
    case confirming
    /// Commits were lost: nothing is granted before all agents have reported.
    case recovering
}

/// The answer to a hello.
package struct FleetWelcome: Sendable, Equatable {
    package var session: Int64
    package var ttl: Duration
    package var mark: Int64
    package var epoch: Int32
    /// The one in which this agent has reported.
    package var ownEpoch: Int32
    package var phase: FleetPhase
    /// How long `confirming` lasts at most.
    package var wait: Duration
    /// The last receipt that the server has.
    package var receipts: Int64

    package init(
        session: Int64, ttl: Duration, mark: Int64, epoch: Int32, ownEpoch: Int32, phase: FleetPhase,
        wait: Duration = .zero, receipts: Int64 = 0
    ) {
        (self.session, self.ttl, self.mark, self.epoch) = (session, ttl, mark, epoch)
        (self.ownEpoch, self.phase, self.wait, self.receipts) = (ownEpoch, phase, wait, receipts)
    }
}

/// The answer to a beat.
package struct FleetBeat: Sendable, Equatable {
    package var ttl: Duration
    package var mark: Int64
    package var epoch: Int32
    package var phase: FleetPhase

    package init(ttl: Duration, mark: Int64, epoch: Int32, phase: FleetPhase) {
        (self.ttl, self.mark, self.epoch, self.phase) = (ttl, mark, epoch, phase)
    }
}

/// A failure of an action, or of a call.
package struct FleetFailure: Sendable, Equatable {
    package var code: FleetError.Code
    /// The session of the call that failed; nil for the session's own actions.
    package var session: Int64?
    /// How long the other process's lease lasts (`isAlive`).
    package var wait: Duration?
    /// The connection for beats is lost.
    package var isDisconnected: Bool
    /// In 0..<1: where in its range the pause is.
    package var jitter: Double

    package init(
        _ code: FleetError.Code, session: Int64? = nil, wait: Duration? = nil, isDisconnected: Bool = false,
        jitter: Double
    ) {
        (self.code, self.session, self.wait) = (code, session, wait)
        (self.isDisconnected, self.jitter) = (isDisconnected, jitter)
    }
}
