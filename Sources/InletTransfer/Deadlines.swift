/// When one running request has waited long enough. Decides only; the loop reports events and acts.
struct Deadlines {
    typealias Instant = ContinuousClock.Instant

    enum Verdict: Equatable {
        /// Nothing moved for `stallTimeout`.
        case stalled
        /// The answer was not complete within `answerDeadline`.
        case timedOut
        /// Bytes move, but more slowly than the lowest acceptable pace.
        case tooSlow
    }

    private let stall: Duration
    private let silence: Duration
    private let answer: Duration
    private var hasAnswer = false
    private var lastMove: Instant
    /// Since when only the answer is awaited; nil while the body is being sent.
    private var bodyEnd: Instant?
    /// Whether the body waits for its turn, which is up to us: no verdict then.
    private var isHeld = false
    /// The pace of the body, and of an answer without any other time limit.
    private var (sending, receiving): (Pace, Pace)

    /// `silence` replaces `stall` between the end of the body and the start of the answer.
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
        // Bytes that were still in the kernel when the last one was passed on.
        if bodyEnd != nil { bodyEnd = now }
    }

    /// `count` of the body's `total` bytes have reached the peer; nil = all of them.
    mutating func sent(_ count: Int64, of total: Int64?, at now: Instant) {
        if let total { sending.moved(to: count, of: total, at: now) } else { sending.stop() }
    }

    /// `count` bytes have arrived of an answer that may take as long as they move; `total` nil = unknown.
    mutating func received(_ count: Int64, of total: Int64?, at now: Instant) {
        receiving.moved(to: count, of: total, at: now)
    }

    /// The last byte of the body was passed on, or the rest is not wanted.
    mutating func bodyEnded(at now: Instant) {
        isHeld = false
        sending.released(at: now)
        guard bodyEnd == nil else { return }
        bodyEnd = now
        lastMove = now
    }

    /// The body must wait for its turn.
    mutating func held(at now: Instant) {
        isHeld = true
        sending.held(at: now)
    }

    /// The body's turn has come; a standstill counts from here.
    mutating func released(at now: Instant) {
        guard isHeld else { return }
        isHeld = false
        lastMove = now
        sending.released(at: now)
    }

    /// curl sends the body again on another connection.
    mutating func bodyRestarted(at now: Instant) {
        sending.stop()
        bodyEnd = nil
        lastMove = now
    }

    /// Answer bytes arrived. While the body is being sent they do not count: a dripping answer would hide a stalled
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

    /// The next moment at which a verdict is possible; nil while the body is held.
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

/// Whether moving bytes are fast enough to be worth a worker: one byte a minute is not a standstill and never ends.
/// Decides only.
///
/// The floor is 16 KiB in each five minutes, 55 bytes a second. That is the share of each of 32 connections on a line
/// of 16 kbit/s, so parts that share a bad uplink all stay above it. Time in which the bytes wait for our own throttle
/// does not count. A shorter rest also has five minutes.
struct Pace {
    typealias Instant = ContinuousClock.Instant

    static let least: Int64 = 16 << 10
    static let usualWindow = Duration.seconds(300)

    private let window: Duration
    /// The running window, without the time held; nil = nothing is measured.
    private var start: Instant?
    private var base: Int64 = 0
    /// Bytes that must move before the window ends.
    private var needed: Int64 = 0
    private var heldSince: Instant?

    init(window: Duration) { self.window = window }

    /// `count` bytes have moved so far. Ignores a falling count, which a sum of two counts can show.
    ///
    /// - Parameter total: bytes to move; nil = unknown.
    mutating func moved(to count: Int64, of total: Int64?, at now: Instant) {
        if start != nil, count < base + needed { return }
        let rest = total.map { $0 - count } ?? Self.least
        guard rest > 0 else { return stop() }
        (start, base, needed) = (now, count, min(rest, Self.least))
        if heldSince != nil { heldSince = now }
    }

    /// Nothing needs to move for now.
    mutating func stop() { start = nil }

    mutating func held(at now: Instant) { heldSince = heldSince ?? now }

    mutating func released(at now: Instant) {
        guard let since = heldSince else { return }
        heldSince = nil
        start = start?.advanced(by: since.duration(to: now))
    }

    /// When too few bytes will have moved if none move until then; nil while there is nothing to judge.
    var next: Instant? { heldSince == nil ? start?.advanced(by: window) : nil }
}
