/// When one running request has waited long enough. Decides only; the loop tells it what happened and acts on it.
struct Deadlines {
    typealias Instant = ContinuousClock.Instant

    enum Verdict: Equatable {
        /// Nothing moved for `stallTimeout`.
        case stalled
        /// The answer was not whole within `answerDeadline`.
        case timedOut
        /// Bytes move, but fewer than the least pace asks for.
        case tooSlow
    }

    private let stall: Duration
    private let silence: Duration
    private let answer: Duration
    private var hasAnswer = false
    private var lastMove: Instant
    /// Since when only the answer is waited for; nil while the body is being sent.
    private var bodyEnd: Instant?
    /// Whether the body waits for its turn, which is ours to give: no verdict is passed on that.
    private var isHeld = false
    /// Of the body, and of an answer that has no other limit of time than this.
    private var (sending, receiving): (Pace, Pace)

    /// `silence` takes the place of `stall` between the end of the body and the beginning of the answer.
    init(
        stall: Duration, silence: Duration? = nil, answer: Duration, paceWindow: Duration = Pace.usualWindow,
        sendsBody: Bool, now: Instant
    ) {
        (sending, receiving) = (Pace(window: paceWindow), Pace(window: paceWindow))
        self.stall = stall
        self.silence = silence ?? stall
        self.answer = answer
        lastMove = now
        bodyEnd = sendsBody ? nil : now
    }

    var isSending: Bool { bodyEnd == nil }

    /// The peer has taken bytes of the body.
    mutating func bodyMoved(at now: Instant) {
        lastMove = now
        // Bytes that were still in the kernel when the last one was handed over.
        if bodyEnd != nil { bodyEnd = now }
    }

    /// The peer has `count` of the body's `total` bytes; a nil `total` means that all were sent.
    mutating func sent(_ count: Int64, of total: Int64?, at now: Instant) {
        if let total { sending.moved(to: count, of: total, at: now) } else { sending.stop() }
    }

    /// `count` bytes of an answer have arrived; it may take any time while bytes move. `total` is nil if unknown.
    mutating func received(_ count: Int64, of total: Int64?, at now: Instant) {
        receiving.moved(to: count, of: total, at: now)
    }

    /// The last byte of the body was handed over, or the rest is not wanted.
    mutating func bodyEnded(at now: Instant) {
        isHeld = false
        sending.released(at: now)
        guard bodyEnd == nil else { return }
        bodyEnd = now
        lastMove = now
    }

    /// The body may not go on before its turn.
    mutating func held(at now: Instant) {
        isHeld = true
        sending.held(at: now)
    }

    /// The body's turn has come; standing still counts from here.
    mutating func released(at now: Instant) {
        guard isHeld else { return }
        isHeld = false
        lastMove = now
        sending.released(at: now)
    }

    /// curl restarts the body on another connection.
    mutating func bodyRestarted(at now: Instant) {
        sending.stop()
        bodyEnd = nil
        lastMove = now
    }

    /// Answer bytes came. While the body is being sent they do not count: a dripping answer would hide a stalled
    /// upload.
    mutating func answerMoved(at now: Instant) {
        guard !isSending else { return }
        hasAnswer = true
        lastMove = now
    }

    /// There is no connection yet; connecting has its own limit.
    mutating func notConnected(at now: Instant) {
        lastMove = now
        if bodyEnd != nil { bodyEnd = now }
    }

    private var patience: Duration { isSending || hasAnswer ? stall : silence }

    /// The next moment at which there can be a verdict; nil while the body is held.
    var next: Instant? {
        if isHeld { return nil }
        return [lastMove.advanced(by: patience), bodyEnd?.advanced(by: answer), sending.next, receiving.next]
            .compactMap { $0 }.min()
    }

    func verdict(at now: Instant) -> Verdict? {
        if isHeld { return nil }
        if let bodyEnd, now >= bodyEnd.advanced(by: answer) { return .timedOut }
        if now >= lastMove.advanced(by: patience) { return .stalled }
        return [sending, receiving].contains { $0.next.map { now >= $0 } ?? false } ? .tooSlow : nil
    }
}

/// Whether bytes move fast enough to be worth a worker: a byte per minute never stalls and never ends. Decides only.
///
/// The floor is 16 KiB in five minutes, 55 bytes per second. On a line of 16 kbit/s, each of 32 connections still has
/// that, so many parts can share a bad uplink. Time in which the bytes wait for our own throttle does not count. A rest
/// that is shorter has the five minutes as well.
struct Pace {
    typealias Instant = ContinuousClock.Instant

    static let least: Int64 = 16 << 10
    static let usualWindow = Duration.seconds(300)

    private let window: Duration
    /// Of the window that runs, without the time held; nil = nothing is measured.
    private var start: Instant?
    private var base: Int64 = 0
    /// Bytes that are to move before the window ends.
    private var needed: Int64 = 0
    private var heldSince: Instant?

    init(window: Duration) { self.window = window }

    /// `count` bytes have moved so far. Ignores a smaller count, which a sum of two counters may give.
    ///
    /// - Parameter total: the bytes to move; nil if unknown.
    mutating func moved(to count: Int64, of total: Int64?, at now: Instant) {
        if start != nil, count < base + needed { return }
        let rest = total.map { $0 - count } ?? Self.least
        guard rest > 0 else { return stop() }
        (start, base, needed) = (now, count, min(rest, Self.least))
        if heldSince != nil { heldSince = now }
    }

    /// Nothing is to move for now.
    mutating func stop() { start = nil }

    mutating func held(at now: Instant) { heldSince = heldSince ?? now }

    mutating func released(at now: Instant) {
        guard let since = heldSince else { return }
        heldSince = nil
        start = start?.advanced(by: since.duration(to: now))
    }

    /// When too few bytes will have moved, if none do until then; nil while there is nothing to judge.
    var next: Instant? { heldSince == nil ? start?.advanced(by: window) : nil }
}
