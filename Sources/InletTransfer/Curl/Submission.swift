import InletCore
import InletLinux
import Synchronization
import SystemPackage

/// What a caller hands to a loop: the request, and the promise to resume it once.
struct Submission: Sendable {
    let request: HTTPRequest
    let meter: TransferMeter?
    /// Where its body's bytes are asked for; nil = they need not be.
    let lane: ThrottleLane?
    /// Told while it waits for them.
    let note: HoldNote?
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
        note = lane == nil ? nil : HoldNote.current
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
