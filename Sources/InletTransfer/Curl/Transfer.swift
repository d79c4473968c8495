import CCurl
import InletCore
import InletLinux

/// One running request: curl's handle and the results of its callbacks. Belongs to its loop's thread.
final class Transfer {
    typealias Instant = ContinuousClock.Instant

    let submission: Submission
    let easy: CurlHandle
    /// Its loop's.
    let time: LoopTime
    private let start: Instant
    /// nil for requests without a limit.
    let place: ThrottledRequest?
    /// The whole body, if it is sent with the header.
    let inlineBody: [UInt8]?
    var answer: ResponseBuffer
    var deadlines: Deadlines
    /// Why a callback made curl abort.
    var failure: TransferError?
    /// The next byte of the body to read, counted from the body's start.
    var position: Int64 = 0
    /// Bytes of the body that the socket has taken, as counted by the meter.
    private(set) var counted: Int64 = 0
    private var received: Int64 = 0
    /// The length of the answer's body, if announced.
    private var expected: Int64?
    /// From here on curl's callbacks, which continue until the handle is removed, have no effect.
    private(set) var isSettled = false
    /// Whether curl waits for the body's next bytes.
    var isPaused = false
    /// Whether a refusal has been passed to a paused body.
    private var isRefused = false
    /// Whether the sink has accepted the answer.
    private(set) var isSunk = false
    private var unacknowledged = 0
    /// Whether any address was allowed, and the last forbidden one (`setAddressGuard`).
    var hasSocket = false
    var refused: (address: String, scope: HostScope)?
    /// The size of libcurl's buffer for the body.
    var buffer = 0

    var request: HTTPRequest { submission.request }

    init(_ submission: Submission, place: ThrottledRequest?, easy: CurlHandle, _ time: LoopTime) {
        let now = time.now
        (self.submission, self.time, start) = (submission, time, now)
        self.place = place
        self.easy = easy
        inlineBody = Self.inlineBody(submission.request, place, now)
        answer = ResponseBuffer(limit: submission.request.answerLimit)
        deadlines = Deadlines(
            stall: submission.request.stallTimeout, silence: submission.request.silenceTimeout,
            answer: submission.request.answerDeadline, paceWindow: submission.request.paceWindow,
            sendsBody: submission.request.body.length > 0, now: now)
    }

    deinit { UploadBuffers.shared.giveBack(buffer) }

    /// Offers the answer to the sink once its header is complete; false after a failure, which is kept.
    func offerToSink() -> Bool {
        guard let sink = submission.sink, answer.hasFields, !isSettled else { return true }
        return sunk { () throws(TransferError) in isSunk = try sink.begins(answer.response(status: answer.status)) }
    }

    /// Keeps a piece of the body, or passes it to the sink; false after a failure, which is kept.
    func take(_ piece: UnsafeRawBufferPointer) -> Bool {
        // The rest of an aborted answer is not for the sink.
        if isSettled { return false }
        if let sink = submission.sink, isSunk {
            return sunk { () throws(TransferError) in try sink.take(piece) }
        }
        if answer.take(body: piece) { return true }
        refuseAnswer("its body is larger than \(request.answerLimit) bytes")
        return false
    }

    private func sunk(_ body: () throws(TransferError) -> Void) -> Bool {
        do throws(TransferError) {
            try body()
            return true
        } catch {
            failure = error
            return false
        }
    }

    /// Whether a paused body may continue: its turn has come, or the server has refused the rest, which curl handles
    /// only then.
    func mayGoOn(at now: Instant) -> Bool {
        if !isRefused, answer.hasFields, answer.status >= 300 {
            isRefused = true
            return true
        }
        return (place?.allowance(of: request.body.length - position, at: now) ?? 1) > 0
    }

    func goOn(at now: Instant) {
        isPaused = false
        deadlines.released(at: now)
        easy.goOn()
    }

    /// Records curl's running totals.
    func progress(sent: Int64, received: Int64, of expected: Int64?) {
        guard !isSettled, sent != counted || received != self.received || expected != self.expected else { return }
        self.expected = expected
        let now = time.now
        if sent != counted {
            submission.meter?.add(request.body.payload(in: sent) - request.body.payload(in: counted))
            sent < counted ? deadlines.bodyRestarted(at: now) : deadlines.bodyMoved(at: now)
            counted = sent
            if sent >= request.body.length { deadlines.bodyEnded(at: now) }
        }
        if received != self.received {
            self.received = received
            deadlines.answerMoved(at: now)
        }
    }

    /// The error that has become certain by time alone, if any. Checks the socket's send queue too: the peer does not
    /// have the kernel's bytes yet.
    func overdue(at now: Instant) -> TransferError? {
        guard easy.isConnected else {
            deadlines.notConnected(at: now)
            return nil
        }
        let queued = counted > 0 ? easy.unacknowledged : 0
        if queued < unacknowledged { deadlines.bodyMoved(at: now) }
        unacknowledged = queued
        judgePace(queued: Int64(queued), at: now)
        return deadlines.verdict(at: now).map(error)
    }

    /// Bytes in the kernel do not count as moved. Answers kept in memory have a deadline, and those of a server that
    /// works for minutes are a few spaces until then. Events from another process of this machine have no pace.
    private func judgePace(queued: Int64, at now: Instant) {
        let toSend = deadlines.isSending ? request.body.length : queued > 0 ? counted : nil
        deadlines.sent(counted - queued, of: toSend, at: now)
        if isSunk, request.unixSocket == nil { deadlines.received(received, of: expected, at: now) }
    }

    /// The result of `code`, curl's final status, and the answer collected so far.
    func outcome(_ code: CURLcode) -> Result<HTTPResponse, TransferError> {
        noteHost()
        if let failure { return .failure(failure) }
        if code == CURLE_COULDNT_CONNECT, let refusal = addressRefusal { return .failure(refusal) }
        let status = easy.status
        let isWhole = counted >= request.body.length
        switch code {
        // libcurl accepts an answer that ends within its head as complete (7.88).
        case CURLE_OK where !answer.hasFields && !request.readsCertificate:
            return .failure(
                TransferError(
                    CURLE_PARTIAL_FILE, request.label, detail: "the answer ended within its header",
                    answered: answer.hasBegun))
        case CURLE_OK where status >= 300 || isWhole:
            if let refusal = proxyRefusal(status) { return .failure(refusal) }
            var response = answer.response(status: status)
            response.delay = start.duration(to: time.now)
            if request.readsCertificate { (response.certificate, response.peer) = (easy.certificate, easy.peer) }
            return .success(response)
        case CURLE_OK:
            let what = "status \(status) came after \(counted) of \(request.body.length) bytes of the body"
            return .failure(TransferError(.badAnswer, "\(request.label): \(what)", isOutage: false))
        // A server that refused the body early and hung up: its answer says more than the broken pipe.
        case CURLE_SEND_ERROR where status >= 300 && answer.hasFields,
            CURLE_RECV_ERROR where status >= 300 && answer.hasFields && !isWhole:
            return proxyRefusal(status).map { .failure($0) } ?? .success(answer.response(status: status))
        default:
            return .failure(
                proxyFailure(code)
                    ?? TransferError(code, submission.label, detail: easy.detail(code), answered: answer.hasBegun))
        }
    }

    /// Answers the caller; called once, when the transfer has left the loop's records.
    func settle(_ result: Result<HTTPResponse, TransferError>) {
        if case .success(let response) = result, (200..<300).contains(response.status) {
            submission.meter?.add(request.body.payload(in: request.body.length) - request.body.payload(in: counted))
        } else {
            submission.meter?.add(-request.body.payload(in: counted))
        }
        isSettled = true
        submission.end(result)
    }

    private func error(_ verdict: Deadlines.Verdict) -> TransferError {
        let sent = "\(counted) of \(request.body.length) bytes of the body were sent"
        switch verdict {
        case .stalled:
            return TransferError(
                .stalled, "\(request.label): no byte moved for \(request.stallTimeout); \(sent)", isOutage: true)
        case .tooSlow:
            let pace = "fewer than \(Pace.least) bytes moved within \(request.paceWindow)"
            return TransferError(.stalled, "\(request.label): \(pace), which would never end; \(sent)", isOutage: true)
        case .timedOut:
            return TransferError(
                .timedOut, "\(request.label): no whole answer within \(request.answerDeadline); \(sent)",
                isOutage: !answer.hasBegun)
        }
    }
}

/// The time of a loop's present turn: curl calls back several times for each request, and turns are short.
final class LoopTime {
    private(set) var now = ContinuousClock.now

    func turn() { now = .now }
}
