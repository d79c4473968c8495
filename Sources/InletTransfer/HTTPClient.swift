import InletCore
import InletLinux

/// Sends requests on a few threads of its own, each with a libcurl multi handle and its connections.
///
/// Nothing runs while nothing is sent. A task's cancellation ends its request within milliseconds, also when no byte
/// moves.
package final class HTTPClient: Sendable {
    private let mailboxes: [TransferMailbox]
    private let threads: [LoopThread]
    private let longestStall: Duration?

    /// Certificates are checked when the first connection is made, not here.
    ///
    /// - Parameters:
    ///   - threads: at least one.
    ///   - connectionsPerHost: more requests than that wait, in their order.
    ///   - longestStall: what no request's limits of standstill exceed, whatever it asks for; nil = as they ask.
    package init(
        trust: Trust = .system, threads: Int = 2, connectionsPerHost: Int = 32, userAgent: String,
        longestStall: Duration? = nil
    ) {
        self.longestStall = longestStall
        let options = ClientOptions(trust: trust, userAgent: userAgent)
        let count = max(1, min(threads, connectionsPerHost))
        var started: [(TransferMailbox, LoopThread)] = []
        for (index, share) in Self.shares(of: connectionsPerHost, among: count).enumerated() {
            guard let multi = CurlMulti(idleConnections: share * 2) else { continue }
            let mailbox = TransferMailbox(multi, share: share)
            let thread = try? LoopThread(name: "transfer-\(index)") {
                TransferLoop(mailbox, options: options, connectionsPerHost: share).run()
            }
            if let thread { started.append((mailbox, thread)) }
        }
        mailboxes = started.map { $0.0 }
        self.threads = started.map { $0.1 }
    }

    deinit { shutdown() }

    /// Many small requests are cheapest on one thread, which then wakes up for several at a time; a few large ones want all
    /// threads. So the first has most of the connections, where there are enough.
    static func shares(of connections: Int, among threads: Int) -> [Int] {
        let few = max(1, connections / (connections < 8 ? threads : 8))
        return [max(1, connections - few * (threads - 1))] + Array(repeating: few, count: threads - 1)
    }

    /// The thread for a request: for a small one the first that has a connection free, for a large one the least busy.
    private func mailbox(for request: HTTPRequest) -> TransferMailbox? {
        let loads = mailboxes.map { ($0, load: $0.load) }
        let free = loads.filter { $0.load < $0.0.share }
        if request.body.length <= Self.small, let first = free.first { return first.0 }
        // Where all are busy, the request waits where the queue is shortest for its connections.
        return free.isEmpty
            ? loads.min { $0.load * $1.0.share < $1.load * $0.0.share }?.0 : free.min { $0.load < $1.load }?.0
    }

    private static let small: Int64 = 64 << 10

    /// Sends `request` and returns the whole answer, whatever its status; of one that `sink` has taken on, the head.
    ///
    /// - Parameter sink: offered the answer when its head is there; its calls have ended when this returns.
    /// - Throws: `.cancelled` when the task is cancelled or the client shut down; `.badRequest` when the request cannot
    ///   be put on the wire as it is; `.sourceChanged` and `.sourceUnreadable` for a body's file; otherwise what went
    ///   wrong with the network or the answer.
    package func send(
        _ request: HTTPRequest, meter: TransferMeter? = nil, into sink: (any AnswerSink)? = nil
    ) async throws(TransferError) -> HTTPResponse {
        try request.validate()
        guard let mailbox = mailbox(for: request) else {
            throw TransferError(.internalFault, "\(request.label): no thread could be started", isOutage: false)
        }
        let ticket = Ticket()
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                mailbox.add(
                    Submission(
                        request: request.stalling(atMost: longestStall), meter: meter, sink: sink, ticket: ticket,
                        continuation: continuation))
            }
        } onCancel: {
            guard !request.outlivesCancellation else { return }
            ticket.cancel()
            mailbox.cancel(ticket)
        }
        return try result.get()
    }

    /// The pin of the public key that the server at `url` has now, whatever its certificate is worth; nil without TLS.
    /// Nothing is asked of the server, and nothing told to it.
    ///
    /// - Throws: as `send`; `.tlsFailed` for a certificate that cannot be read.
    package func pin(of url: HTTPURL) async throws(TransferError) -> PublicKeyPin? {
        guard url.scheme == "https" else { return nil }
        var request = HTTPRequest("GET", url)
        request.readsCertificate = true
        let certificate = try await send(request).certificate
        guard let pin = certificate.flatMap(PublicKeyPin.init(certificatePEM:)) else {
            throw TransferError(.tlsFailed, "\(request.label): its certificate cannot be read", isOutage: false)
        }
        return pin
    }

    /// Fails what runs with `.cancelled` and waits for the threads to end. Further requests fail. Blocks for
    /// milliseconds.
    package func shutdown() {
        for mailbox in mailboxes { mailbox.close() }
        for thread in threads { thread.join() }
    }
}
