/// When one running request has waited long enough. Decides only; the loop tells it what happened and acts on it.
struct Deadlines {
    typealias Instant = ContinuousClock.Instant

    enum Verdict: Equatable {
        /// Nothing moved for `stallTimeout`.
        case stalled
        /// The answer was not whole within `answerDeadline`.
        case timedOut
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

    /// `silence` takes the place of `stall` between the end of the body and the beginning of the answer.
    init(stall: Duration, silence: Duration? = nil, answer: Duration, sendsBody: Bool, now: Instant) {
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

    /// The last byte of the body was handed over, or the rest is not wanted.
    mutating func bodyEnded(at now: Instant) {
        isHeld = false
        guard bodyEnd == nil else { return }
        bodyEnd = now
        lastMove = now
    }

    /// The body may not go on before its turn.
    mutating func held() { isHeld = true }

    /// The body's turn has come; standing still counts from here.
    mutating func released(at now: Instant) {
        guard isHeld else { return }
        isHeld = false
        lastMove = now
    }

    /// curl starts the body anew on another connection.
    mutating func bodyRestarted(at now: Instant) {
        bodyEnd = nil
        lastMove = now
    }

    /// Answer bytes came. While the body is being sent they do not count: a dripping answer would hide a stalled upload.
    mutating func answerMoved(at now: Instant) {
        guard !isSending else { return }
        hasAnswer = true
        lastMove = now
    }

    /// There is no connection yet; connecting has a limit of its own.
    mutating func notConnected(at now: Instant) {
        lastMove = now
        if bodyEnd != nil { bodyEnd = now }
    }

    private var patience: Duration { isSending || hasAnswer ? stall : silence }

    /// The next moment at which there can be a verdict; nil while the body is held.
    var next: Instant? {
        if isHeld { return nil }
        let stalled = lastMove.advanced(by: patience)
        return bodyEnd.map { min(stalled, $0.advanced(by: answer)) } ?? stalled
    }

    func verdict(at now: Instant) -> Verdict? {
        if isHeld { return nil }
        if let bodyEnd, now >= bodyEnd.advanced(by: answer) { return .timedOut }
        return now >= lastMove.advanced(by: patience) ? .stalled : nil
    }
}
