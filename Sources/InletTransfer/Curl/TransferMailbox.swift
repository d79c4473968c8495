import InletCore
import InletLinux
import Synchronization
import SystemPackage

/// What other threads may do with a loop: leave a command and wake it.
final class TransferMailbox: Sendable {
    enum Command: Sendable {
        case add(Submission)
        case cancel(Ticket)
    }

    private struct State {
        var commands: [Command] = []
        var isClosed = false
        /// Submissions that have not been answered.
        var load = 0
    }

    let multi: CurlMulti
    /// Connections that the loop has for each host.
    let share: Int
    private let state = Mutex(State())

    init(_ multi: CurlMulti, share: Int) {
        self.multi = multi
        self.share = share
    }

    var load: Int { state.withLock { $0.load } }

    /// Hands a request to the loop; after `close` it fails at once.
    func add(_ submission: Submission) {
        enum Taken { case no, first, behindOthers }
        let taken = state.withLock { state -> Taken in
            guard !state.isClosed else { return .no }
            state.commands.append(.add(submission))
            state.load += 1
            return state.commands.count == 1 ? .first : .behindOthers
        }
        switch taken {
        case .no: submission.fail(submission.cancellation)
        case .first: multi.wakeUp()
        // The loop has been woken for the first of them, and takes all.
        case .behindOthers: break
        }
    }

    /// Gives up the request with this ticket, if it is there.
    func cancel(_ ticket: Ticket) {
        state.withLock { $0.commands.append(.cancel(ticket)) }
        multi.wakeUp()
    }

    /// Makes the loop fail what it has with `.cancelled`, and end.
    func close() {
        state.withLock { $0.isClosed = true }
        multi.wakeUp()
    }

    /// For the loop: what has come in.
    func take() -> (commands: [Command], isClosed: Bool) {
        state.withLock { state in
            defer { state.commands = [] }
            return (state.commands, state.isClosed)
        }
    }

    /// For the loop: one submission has been answered.
    func settled() { state.withLock { $0.load -= 1 } }
}

/// What a caller hands to a loop: the request, and the promise to resume it once.
struct Submission: Sendable {
    let request: HTTPRequest
    let meter: TransferMeter?
    /// Where its body's bytes are asked for; nil = they need not be.
    let lane: ThrottleLane?
    /// Told while it waits for them.
    let note: HoldRecord?
    /// Where the body of the answer goes; nil keeps it in memory.
    let sink: (any AnswerSink)?
    let ticket: Ticket
    /// What it goes through; nil = the direct way.
    let proxy: ProxyServer?
    let continuation: CheckedContinuation<Result<HTTPResponse, TransferError>, Never>
    /// The same for requests that can share connections.
    let destination: String

    init(
        request: HTTPRequest, meter: TransferMeter?, lane: ThrottleLane?, sink: (any AnswerSink)?, ticket: Ticket,
        proxy: ProxyServer?, continuation: CheckedContinuation<Result<HTTPResponse, TransferError>, Never>
    ) {
        self.request = request
        self.meter = meter
        self.lane = lane
        note = lane == nil ? nil : HoldRecord.current
        self.sink = sink
        self.ticket = ticket
        self.proxy = proxy
        self.continuation = continuation
        destination = request.unixSocket.map { "unix:\($0.display)" } ?? request.url.origin
    }

    /// The request and, where there is one, the proxy, for error texts.
    var label: String { proxy.map { "\(request.label) through the proxy \($0)" } ?? request.label }

    func fail(_ error: TransferError) { continuation.resume(returning: .failure(error)) }

    var cancellation: TransferError {
        TransferError(.cancelled, "\(request.label) was cancelled", isOutage: false)
    }
}

/// Names one request to the loop, and remembers a cancellation that comes before the request does.
final class Ticket: Sendable {
    private let cancelled = Atomic<Bool>(false)

    var isCancelled: Bool { cancelled.load(ordering: .acquiring) }

    func cancel() { cancelled.store(true, ordering: .releasing) }
}
