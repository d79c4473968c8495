/// Whether to try a destination. While it is down, its deliveries wait and lose no attempts, until a probe succeeds and
/// one delivery proves that it is back. Probes are at least a minute apart, except those that people ask for. If
/// deliveries have arrived since the last probe, the breaker tries a delivery instead.
///
/// The caller reports every outcome and follows the action; time is a parameter.
package struct CircuitBreaker: Sendable, Equatable {
    package enum State: Sendable, Equatable {
        /// Not asked yet; a probe is due.
        case unproved
        case up
        /// The probe succeeded: one delivery at a time, until one arrives.
        case trial
        /// Reachable, but asks for time.
        case slowed(since: WallTime, until: WallTime)
        /// Unreachable or failing since then; the next probe is due at `probeAt`.
        case down(since: WallTime, probeAt: WallTime)
        /// Refuses our credentials; the probe also reads changed secrets.
        case credentialsRefused(since: WallTime, probeAt: WallTime)
    }

    private static let longestAsked = Duration.seconds(3600)
    /// The longest pause beyond the requested one, when it asks for time again and again.
    private static let longestSlowed = Duration.seconds(60)
    /// How long a refused file waits for the result of a probe.
    private static let patience = Duration.seconds(1)

    package private(set) var state: State
    private let pace: ProbePace
    /// When the last probe began; probes are at least `pace.interval` apart.
    private var lastProbe: WallTime?
    private var isProbing = false
    /// Whether a delivery arrived since the last probe.
    private var hasDelivered = false
    /// While down: try a delivery, because a probe would come too soon after the last one.
    private var triesDelivery = false
    /// When a file's refusal calls for a probe while the destination is up.
    private var doubtedAt: WallTime?
    /// How often in a row it asked for time, without a delivery in between.
    private var slowings = 0
    private var suspicion = SuspectFiles()
    private var refusals = Refusals()

    /// - Parameter isProved: false to probe before the first delivery.
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

    /// Whether to probe now. After a clock was set back, a probe is due rather than far away.
    package func probeIsDue(at time: WallTime) -> Bool {
        if isProbing || triesDelivery { return false }
        return switch state {
        case .slowed: false
        case .up, .trial: doubtedAt.map { time >= $0 || $0 > time + pace.interval } ?? false
        case .unproved: true
        case .down(let since, let probeAt), .credentialsRefused(let since, let probeAt): time >= probeAt || time < since
        }
    }

    /// A person wants to know now whether it is back. - Returns: whether this made a probe due.
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

    /// When to look again without a delivery: a probe, or the end of the requested pause.
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

    /// Forgets the outage, so that a new cause counts from now.
    package mutating func forgetOutage() { (state, hasDelivered, triesDelivery) = (.up, false, false) }

    /// A delivery under way when credentials were refused says nothing about new requests.
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

    /// At a start, the first probe opens at once; after an outage, one delivery goes first.
    private mutating func resume() -> Action {
        if state == .unproved { state = .up }
        guard isDown else { return .none }
        (state, triesDelivery) = (.trial, false)
        return .resume
    }

    private mutating func refused(_ file: Int64, _ code: ErrorCode, _ ends: Bool, _ time: WallTime) -> Action {
        guard isOpen || state == .unproved else {
            // Deliveries under way when it went down report one by one.
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

    /// Requests a probe while it stays up. - Returns: when the result should be known.
    private mutating func ask(_ time: WallTime) -> WallTime {
        if isProbing { return time + Self.patience }
        let soonest = max(time, earliestProbe(time))
        let probeAt = min(doubtedAt ?? soonest, soonest)
        doubtedAt = probeAt
        return probeAt + Self.patience
    }

    /// - Parameter isForeign: the answer is not the service's own. A successful probe then says little: a host can
    ///   answer one question itself, and pass on the next.
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
            // Deliveries under way when it asked report one by one.
            suspicion.shared(by: file)
            state = .slowed(since: min(since, time), until: max(until, time + Self.bounded(asked)))
            return .none
        }
        if suspicion.blames(file) { return .blameFile }
        // Back off from a server that asks for one second each time and accepts nothing.
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
        // A destination that fails now and then, but otherwise works, must not pause for a minute each time.
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

    /// After a clock was set back, counts from now.
    private func earliestProbe(_ time: WallTime) -> WallTime {
        guard let lastProbe, lastProbe <= time else { return time }
        return lastProbe + pace.interval
    }
}

/// The breaker's events and actions.
extension CircuitBreaker {
    package enum Event: Sendable, Equatable {
        case delivered(file: Int64)
        /// It has accepted a delivery and works on it.
        case answered
        /// Refused, unknown name, no connection: nothing that a file could cause. `after` is the server's Retry-After.
        case outage(after: Duration?)
        /// 502 to 504, a stall or a lost connection during this file: an outage, unless the file causes it.
        case brokenOff(file: Int64)
        /// An answer for this file that is not the service's own: an outage until something is delivered.
        case stranger(file: Int64)
        /// A refusal of this file that may concern all files, or a 5xx other than 502 to 504; two files in a row
        /// decide. With `ends` the file would fail; otherwise its attempt counts.
        case refused(file: Int64, code: ErrorCode, ends: Bool)
        /// 429 with a Retry-After for this file: the server asks everyone for time.
        case throttled(after: Duration, file: Int64)
        case credentials
        case probeBegan
        case probeSucceeded
        case probeFailed(credentials: Bool)
        /// The configuration's secrets have new values.
        case secretsChanged
        /// Nothing happened; a requested pause may be over.
        case timePassed
    }

    package enum Action: Sendable, Equatable {
        case none
        /// Claim nothing for the destination; the next probe is due then.
        case pause(until: WallTime)
        /// Claim nothing for the destination until then.
        case slow(until: WallTime)
        case resume
        /// Probe before the refused file is tried again, then; all others continue.
        case askFirst(until: WallTime)
        /// The file's own fault: the attempt counts, and no other file waits.
        case blameFile
    }
}

/// Refusals that are a file's own fault, or the destination's.
///
/// Two files in a row with the same refusal: it is the destination's. A file is to blame only if it is refused again
/// after the destination proved to work, by delivering another file or by a successful probe.
struct Refusals: Sendable, Equatable {
    /// Refused, with no success since.
    private var waiting: Set<Int64> = []
    /// Refused once before the destination proved to work.
    private var warned: Set<Int64> = []
    /// The last refused file, and its code.
    private var (lastFile, lastCode): (Int64?, ErrorCode?)

    /// More files than this start over.
    private static let most = 1000

    /// Whether the file was refused before, and the destination works.
    func isBlamed(_ file: Int64) -> Bool { warned.contains(file) }

    /// Notes a refusal. - Returns: whether another file was just refused with the same code.
    mutating func isShared(_ file: Int64, _ code: ErrorCode) -> Bool {
        defer { (lastFile, lastCode) = (file, code) }
        return lastCode == code && lastFile != file
    }

    /// Another delivery that was under way when the destination went down was refused.
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

    /// A probe or a delivery succeeded.
    mutating func isWell() {
        (lastFile, lastCode) = (nil, nil)
        warned.formUnion(waiting)
        waiting = []
    }

    /// The destination itself was away: earlier refusals say nothing about the files.
    mutating func clear() { self = Refusals() }
}

/// Files that may cause apparent outages: only their deliveries got such answers.
///
/// The first such answer counts against the destination. If the same file gets another one, the file may be to blame.
/// It is if another file was delivered in between, or if a probe succeeded and no other file got such an answer.
struct SuspectFiles: Sendable, Equatable {
    private var files: Set<Int64> = []
    /// Whether another file was delivered since the last answer that counted against the destination.
    private var othersWereDelivered = false
    /// The only file with the last answer of this kind; nil if several got one.
    private var last: Int64?
    /// The suspect when a probe succeeded since: the destination works, except for this file.
    private var probed: Int64?

    /// More suspects than this start over.
    private static let most = 1000

    /// Notes an answer to `file` that is its own fault or the destination's. - Returns: whether it is its own.
    ///
    /// - Parameter byDeliveriesOnly: a successful probe does not clear the destination.
    mutating func blames(_ file: Int64, byDeliveriesOnly: Bool = false) -> Bool {
        if files.contains(file), othersWereDelivered || probed == file && !byDeliveriesOnly { return true }
        if files.count >= Self.most { files = [] }
        files.insert(file)
        (othersWereDelivered, probed, last) = (false, nil, file)
        return false
    }

    /// A delivery under way got such an answer too.
    mutating func shared(by file: Int64) { if file != last { last = nil } }

    mutating func delivered(_ file: Int64) {
        if files.isEmpty { return }
        files.remove(file)
        othersWereDelivered = true
    }

    mutating func probeSucceeded() { probed = last }

    /// The destination itself was away: earlier answers say nothing about the files.
    mutating func clear() { self = SuspectFiles() }
}
