/// Whether one destination is worth trying: when it goes down its deliveries wait and lose no attempts, until a probe is
/// good and one delivery after it proves that it is back. There are never two probes within a minute, but for those that
/// people ask for: where deliveries arrived since the last one, a delivery is tried without.
///
/// The caller feeds it every outcome and obeys the action; time is a parameter.
package struct CircuitBreaker: Sendable, Equatable {
    package enum State: Sendable, Equatable {
        /// Nobody has asked it yet; a probe is due.
        case unproved
        case up
        /// Its probe was good: one delivery at a time, until one arrives.
        case trial
        /// It is there, and asks for time.
        case slowed(since: WallTime, until: WallTime)
        /// Unreachable or failing since then; the next probe is due at `probeAt`.
        case down(since: WallTime, probeAt: WallTime)
        /// Refuses our credentials; the probe also reads changed secrets.
        case credentialsRefused(since: WallTime, probeAt: WallTime)
    }

    private static let longestAsked = Duration.seconds(3600)
    /// The longest that it is left alone beyond what it asks for, when it asks again and again.
    private static let longestSlowed = Duration.seconds(60)
    /// How long a file that was refused waits for the answer to a probe.
    private static let patience = Duration.seconds(1)

    package private(set) var state: State
    private let pace: ProbePace
    /// When the last probe began: there are never two within `pace.interval`.
    private var lastProbe: WallTime?
    private var isProbing = false
    /// A delivery arrived since the last probe.
    private var hasDelivered = false
    /// While down: a delivery is tried instead of a probe, which would come too soon after the last one.
    private var triesDelivery = false
    /// When a file's refusal calls for a probe while it is up.
    private var doubtedAt: WallTime?
    /// How often in a row it has asked for time, with nothing delivered in between.
    private var slowings = 0
    private var suspicion = SuspectFiles()
    private var refusals = Refusals()

    /// - Parameter isProved: false where a probe shall come before the first delivery.
    package init(isProved: Bool = true, pace: ProbePace = ProbePace()) {
        state = isProved ? .up : .unproved
        self.pace = pace
    }

    /// Whether deliveries may be tried: all, or one at a time.
    package var isOpen: Bool { state == .up || state == .trial }

    package var isDown: Bool {
        switch state {
        case .down, .credentialsRefused: true
        case .unproved, .up, .trial, .slowed: false
        }
    }

    /// Whether a probe should be made now. A clock that was set back makes one due rather than far away.
    package func probeIsDue(at time: WallTime) -> Bool {
        if isProbing || triesDelivery { return false }
        return switch state {
        case .slowed: false
        case .up, .trial: doubtedAt.map { time >= $0 || $0 > time + pace.interval } ?? false
        case .unproved: true
        case .down(let since, let probeAt), .credentialsRefused(let since, let probeAt): time >= probeAt || time < since
        }
    }

    /// A person wants to know now whether it is back. - Returns: whether a probe is due then that was not.
    package mutating func probeNow(at time: WallTime) -> Bool {
        if isProbing || probeIsDue(at: time) { return false }
        switch state {
        case .unproved, .up, .trial, .slowed: return false
        case .down(let since, _): state = .down(since: since, probeAt: time)
        case .credentialsRefused(let since, _): state = .credentialsRefused(since: since, probeAt: time)
        }
        triesDelivery = false
        return true
    }

    /// When there is something to do that no delivery tells of: a probe, or the end of the time it asked for.
    package var nextLook: WallTime? {
        switch state {
        case .up, .trial: isProbing ? nil : doubtedAt
        case .slowed(_, let until): until
        case .unproved: isProbing ? nil : WallTime(milliseconds: 0)
        case .down(_, let probeAt), .credentialsRefused(_, let probeAt): isProbing ? nil : probeAt
        }
    }

    package mutating func event(_ event: Event, at time: WallTime) -> Action {
        switch event {
        case .delivered(let file): return delivered(file)
        case .answered:
            slowings = 0
            if state == .trial { state = .up }
        case .outage(let after): return outage(after, time)
        case .brokenOff(let file): return brokenOff(file, isForeign: false, time)
        case .stranger(let file): return brokenOff(file, isForeign: true, time)
        case .refused(let file, let code, let ends): return refused(file, code, ends, time)
        case .throttled(let after, let file): return throttled(after, file, time)
        case .credentials: return refuse(time)
        case .probeBegan: (lastProbe, isProbing, hasDelivered, doubtedAt) = (time, true, false, nil)
        case .probeSucceeded:
            isProbing = false
            suspicion.probeSucceeded()
            refusals.isWell()
            return resume()
        case .probeFailed(let credentials): return probeFailed(credentials, time)
        case .secretsChanged: if case .credentialsRefused = state { return resume() }
        case .timePassed: return timePassed(time)
        }
        return .none
    }

    private mutating func timePassed(_ time: WallTime) -> Action {
        switch state {
        case .slowed(let since, let until) where time >= until || time < since: state = .trial
        case .down(let since, let probeAt) where triesDelivery && (time >= probeAt || time < since):
            hasDelivered = false
            return resume()
        default: break
        }
        return .none
    }

    /// Takes back that it is down, so that a new cause counts from now on.
    package mutating func forgetOutage() { (state, hasDelivered, triesDelivery) = (.up, false, false) }

    /// A delivery that was under way when credentials were refused says nothing about new requests.
    private mutating func delivered(_ file: Int64) -> Action {
        (doubtedAt, slowings) = (nil, 0)
        (hasDelivered, triesDelivery) = (true, false)
        suspicion.delivered(file)
        refusals.delivered(file)
        switch state {
        case .credentialsRefused, .slowed, .up: return .none
        case .unproved, .trial, .down:
            defer { state = .up }
            return isDown ? .resume : .none
        }
    }

    /// A start's first probe opens at once; after an outage one delivery goes first.
    private mutating func resume() -> Action {
        if state == .unproved { state = .up }
        guard isDown else { return .none }
        (state, triesDelivery) = (.trial, false)
        return .resume
    }

    private mutating func refused(_ file: Int64, _ code: ErrorCode, _ ends: Bool, _ time: WallTime) -> Action {
        guard isOpen || state == .unproved else {
            // Those under way when it went down are told one by one.
            if ends { refusals.wait(file) }
            return .none
        }
        if ends {
            if refusals.isBlamed(file) { return .blameFile }
            refusals.wait(file)
        }
        if refusals.isShared(file, code) { return goDown(since: time, asked: nil, time) }
        return ends ? .askFirst(until: ask(time)) : .none
    }

    /// Has it probed while it stays up. - Returns: when the answer should be there.
    private mutating func ask(_ time: WallTime) -> WallTime {
        if isProbing { return time + Self.patience }
        let soonest = max(time, earliestProbe(time))
        let probeAt = min(doubtedAt ?? soonest, soonest)
        doubtedAt = probeAt
        return probeAt + Self.patience
    }

    /// - Parameter isForeign: not the service's own answer. A good probe says little of it then: a host can answer one question
    ///   itself, and pass on the next.
    private mutating func brokenOff(_ file: Int64, isForeign: Bool, _ time: WallTime) -> Action {
        if isDown {
            suspicion.shared(by: file)
            return .none
        }
        return suspicion.blames(file, byDeliveriesOnly: isForeign)
            ? .blameFile : goDown(since: time, asked: nil, time)
    }

    private mutating func throttled(_ asked: Duration, _ file: Int64, _ time: WallTime) -> Action {
        if isDown { return .none }
        if case .slowed(let since, let until) = state {
            // Deliveries under way when it asked are told one by one.
            suspicion.shared(by: file)
            state = .slowed(since: min(since, time), until: max(until, time + Self.bounded(asked)))
            return .none
        }
        if suspicion.blames(file) { return .blameFile }
        // One that asks for a second each time, and takes nothing, is not asked every second.
        let backoff = min(Self.longestSlowed, .seconds(1 << min(slowings, 6)))
        slowings += 1
        let until = time + max(Self.bounded(asked), backoff)
        state = .slowed(since: time, until: until)
        return .slow(until: until)
    }

    private static func bounded(_ asked: Duration) -> Duration { min(max(asked, .seconds(1)), longestAsked) }

    private mutating func outage(_ asked: Duration?, _ time: WallTime) -> Action {
        suspicion.clear()
        refusals.clear()
        switch state {
        case .unproved, .up, .trial, .slowed: return goDown(since: time, asked: asked, time)
        case .credentialsRefused: return .none
        case .down(let since, let probeAt):
            // Deliveries under way when it went down report one by one; only a Retry-After changes anything.
            guard let asked else { return .none }
            let later = time + Self.bounded(asked)
            guard later > probeAt else { return .none }
            state = .down(since: since, probeAt: later)
            return .pause(until: later)
        }
    }

    private mutating func refuse(_ time: WallTime) -> Action {
        if case .credentialsRefused = state { return .none }
        return refuse(since: time, time)
    }

    private mutating func probeFailed(_ credentials: Bool, _ time: WallTime) -> Action {
        isProbing = false
        suspicion.clear()
        refusals.clear()
        let since =
            switch state {
            case .unproved, .up, .trial, .slowed: time
            case .down(let since, _), .credentialsRefused(let since, _): since
            }
        return credentials ? refuse(since: since, time) : goDown(since: since, asked: nil, time)
    }

    private mutating func goDown(since: WallTime, asked: Duration?, _ time: WallTime) -> Action {
        doubtedAt = nil
        let soonest = time + max(pace.first, min(asked ?? .zero, Self.longestAsked))
        let earliest = earliestProbe(time)
        // One that works but for a moment now and then must not stand still for a minute each time.
        triesDelivery = hasDelivered && earliest > soonest
        let probeAt = triesDelivery ? soonest : max(soonest, earliest)
        state = .down(since: min(since, time), probeAt: probeAt)
        return .pause(until: probeAt)
    }

    private mutating func refuse(since: WallTime, _ time: WallTime) -> Action {
        let probeAt = max(time + pace.interval, earliestProbe(time))
        triesDelivery = false
        state = .credentialsRefused(since: min(since, time), probeAt: probeAt)
        return .pause(until: probeAt)
    }

    /// A clock that was set back counts from now.
    private func earliestProbe(_ time: WallTime) -> WallTime {
        guard let lastProbe, lastProbe <= time else { return time }
        return lastProbe + pace.interval
    }
}

/// What a breaker is told, and what it wants done.
extension CircuitBreaker {
    package enum Event: Sendable, Equatable {
        case delivered(file: Int64)
        /// It has taken a delivery and works on it.
        case answered
        /// Refused, unknown name, no connection: nothing that a file could cause. `after` is the server's Retry-After.
        case outage(after: Duration?)
        /// 502 to 504, a stall or a lost connection while it was about this file: an outage, unless it is the file's doing.
        case brokenOff(file: Int64)
        /// An answer for this file that is not the service's own: an outage for as long as nothing is delivered.
        case stranger(file: Int64)
        /// A refusal of this file that may be meant for all, or a 5xx other than 502 to 504: two files in a row decide.
        /// `ends` = the file would fail of it; else its attempt counts.
        case refused(file: Int64, code: ErrorCode, ends: Bool)
        /// 429 with a Retry-After, for this file: it asks everybody for time.
        case throttled(after: Duration, file: Int64)
        case credentials
        case probeBegan
        case probeSucceeded
        case probeFailed(credentials: Bool)
        /// The configuration's secrets have new values.
        case secretsChanged
        /// Nothing happened; the time for which it asked may be over.
        case timePassed
    }

    package enum Action: Sendable, Equatable {
        case none
        /// Claim nothing for the destination; the next probe is due then.
        case pause(until: WallTime)
        /// Claim nothing for the destination until then.
        case slow(until: WallTime)
        case resume
        /// It is to be probed before the refused file is tried again, then; all others go on.
        case askFirst(until: WallTime)
        /// It was the file's own fault: the attempt counts, and nobody else has to wait.
        case blameFile
    }
}

/// Refusals that are some file's own fault, or everybody's.
///
/// Two files in a row with the same one: it is the destination's. A file is to blame for one only when it hears it again after
/// the destination has shown that it is well, because another file was delivered, or a probe was good.
struct Refusals: Sendable, Equatable {
    /// Refused, and nothing good was heard since.
    private var waiting: Set<Int64> = []
    /// Refused once, before the destination has shown that it is well.
    private var warned: Set<Int64> = []
    /// Who was refused last, and with what.
    private var (lastFile, lastCode): (Int64?, ErrorCode?)

    /// More files than this begin anew.
    private static let most = 1000

    /// Whether it is a file that hears its refusal again, while the destination is well.
    func isBlamed(_ file: Int64) -> Bool { warned.contains(file) }

    /// Takes note of a refusal. - Returns: whether another file has just heard the same.
    mutating func isShared(_ file: Int64, _ code: ErrorCode) -> Bool {
        defer { (lastFile, lastCode) = (file, code) }
        return lastCode == code && lastFile != file
    }

    /// A delivery that was under way when the destination went down was refused too.
    mutating func wait(_ file: Int64) {
        if waiting.count + warned.count >= Self.most { clear() }
        waiting.insert(file)
    }

    mutating func delivered(_ file: Int64) {
        (lastFile, lastCode) = (nil, nil)
        if waiting.isEmpty, warned.isEmpty { return }
        waiting.remove(file)
        warned.remove(file)
        isWell()
    }

    /// A probe was good, or a delivery.
    mutating func isWell() {
        (lastFile, lastCode) = (nil, nil)
        warned.formUnion(waiting)
        waiting = []
    }

    /// The destination itself was away: what the files heard says nothing about them.
    mutating func clear() { self = Refusals() }
}

/// Which files may be the cause of what looks like an outage: answers that came to their deliveries and to nobody else's.
///
/// The first such answer is the destination's. When the same file gets one again, and in between either another file was
/// delivered, or a probe was good and no other file got such an answer, then it is that file's.
struct SuspectFiles: Sendable, Equatable {
    private var files: Set<Int64> = []
    /// Another file was delivered since the last answer that was held against the destination.
    private var othersWereDelivered = false
    /// Who alone got the last answer of this kind; nil when several did.
    private var last: Int64?
    /// The one for whom a probe since then speaks: the destination is fine, but for it.
    private var probed: Int64?

    /// More suspects than this begin anew.
    private static let most = 1000

    /// Takes note of an answer to `file` that could be its own fault or the destination's. - Returns: whether it is its own.
    ///
    /// - Parameter byDeliveriesOnly: a probe does not speak for the destination.
    mutating func blames(_ file: Int64, byDeliveriesOnly: Bool = false) -> Bool {
        if files.contains(file), othersWereDelivered || probed == file && !byDeliveriesOnly { return true }
        if files.count >= Self.most { files = [] }
        files.insert(file)
        (othersWereDelivered, probed, last) = (false, nil, file)
        return false
    }

    /// A delivery that was under way got such an answer too.
    mutating func shared(by file: Int64) { if file != last { last = nil } }

    mutating func delivered(_ file: Int64) {
        if files.isEmpty { return }
        files.remove(file)
        othersWereDelivered = true
    }

    mutating func probeSucceeded() { probed = last }

    /// The destination itself was away: what the files got says nothing about them.
    mutating func clear() { self = SuspectFiles() }
}
