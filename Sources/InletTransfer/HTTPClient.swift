internal import Foundation
import InletCore
import InletLinux

/// Sends requests on a few threads of its own, each with a libcurl multi handle and its connections.
///
/// Nothing runs while nothing is sent. A task's cancellation ends its request within milliseconds, also when no byte
/// moves.
package final class HTTPClient: Sendable {
    private let mailboxes: [TransferMailbox]
    private let threads: [LoopThread]

    /// Certificates are checked when the first connection is made, not here.
    ///
    /// - Parameters:
    ///   - threads: at least one; requests go to the one that has the fewest. One can keep a processor busy, and two of them
    ///     leave none to those who hash.
    ///   - connectionsPerHost: more requests than that wait, in their order.
    package init(
        trust: Trust = .system, threads: Int = max(1, min(2, ProcessInfo.processInfo.activeProcessorCount / 2)),
        connectionsPerHost: Int = 32, userAgent: String
    ) {
        let options = ClientOptions(trust: trust, userAgent: userAgent)
        let count = max(1, min(threads, connectionsPerHost))
        let share = max(1, connectionsPerHost / count)
        var started: [(TransferMailbox, LoopThread)] = []
        for index in 0..<count {
            guard let multi = CurlMulti(idleConnections: share * 2) else { continue }
            let mailbox = TransferMailbox(multi)
            let thread = try? LoopThread(name: "transfer-\(index)") {
                TransferLoop(mailbox, options: options, connectionsPerHost: share).run()
            }
            if let thread { started.append((mailbox, thread)) }
        }
        mailboxes = started.map { $0.0 }
        self.threads = started.map { $0.1 }
    }

    deinit { shutdown() }

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
        guard let mailbox = mailboxes.min(by: { $0.load < $1.load }) else {
            throw TransferError(.internalFault, "\(request.label): no thread could be started", isOutage: false)
        }
        let ticket = Ticket()
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                mailbox.add(
                    Submission(
                        request: request, meter: meter, sink: sink, ticket: ticket, continuation: continuation))
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
