package import InletCore
import InletLinux
import Synchronization

/// Sends requests on a few threads of its own, each with a libcurl multi handle and its connections.
///
/// Nothing runs while nothing is sent. Cancelling a task ends its request within milliseconds, even when no byte moves.
package final class HTTPClient: Sendable {
    private let threads: TransferThreads
    private let longestStall: Duration?
    private let proxies: ProxyRules
    /// The source of the bytes of sent bodies; nil = no limit.
    private let lane: ThrottleLane?
    /// The client that owns the threads, if another does: it lives as long.
    private let origin: HTTPClient?

    /// Certificates are checked when the first connection is made, not here.
    ///
    /// - Parameters:
    ///   - threads: at least one.
    ///   - connectionsPerHost: further requests wait, in their order.
    ///   - proxies: the proxies for requests; the environment has no effect by itself.
    ///   - longestStall: the upper bound of any request's standstill limits; nil = as each asks.
    package convenience init(
        trust: Trust = .system, threads: Int = 2, connectionsPerHost: Int = 32, userAgent: String,
        proxies: ProxyRules = .none, longestStall: Duration? = nil
    ) {
        self.init(
            ClientOptions(trust: trust, userAgent: userAgent), threads: threads, connectionsPerHost: connectionsPerHost,
            proxies: proxies, longestStall: longestStall)
    }

    init(
        _ options: ClientOptions, threads: Int = 2, connectionsPerHost: Int = 32, proxies: ProxyRules = .none,
        longestStall: Duration? = nil
    ) {
        self.longestStall = longestStall
        self.proxies = proxies
        lane = nil
        origin = nil
        self.threads = TransferThreads(threads, connectionsPerHost: connectionsPerHost, options: options)
    }

    private init(_ client: HTTPClient, lane: ThrottleLane?) {
        threads = client.threads
        longestStall = client.longestStall
        proxies = client.proxies
        self.lane = lane
        origin = client.origin ?? client
    }

    /// The same client, with the same threads and connections, for requests whose bodies go through `lane`; nil =
    /// without a limit.
    package func limited(by lane: ThrottleLane?) -> HTTPClient { HTTPClient(self, lane: lane) }

    /// Waits while the lane's limit is 0; returns at once when the task is cancelled. For requests that age: one signed
    /// or requested after it is sent soon.
    package func untilOpen() async { await lane?.untilOpen() }

    /// Sends `request` and returns the whole answer, whatever its status; only the head of one that `sink` has
    /// accepted.
    ///
    /// - Parameter sink: receives the answer once its head has arrived; its calls have ended when this returns.
    /// - Throws: `.cancelled` when the task is cancelled or the client shut down, and `.badRequest` when the request
    ///   cannot be sent as written. `.sourceChanged` and `.sourceUnreadable` for a body's file; otherwise the fault of
    ///   the network or the answer.
    package func send(
        _ request: HTTPRequest, meter: TransferMeter? = nil, into sink: (any ResponseSink)? = nil
    ) async throws(TransferError) -> HTTPResponse {
        try request.validate()
        let proxy = try proxy(for: request)
        let mailbox = try mailbox(for: request)
        let ticket = CancellationToken()
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                mailbox.add([
                    Submission(
                        request.stalling(atMost: longestStall), meter: meter, lane: lane, sink: sink, proxy: proxy,
                        ticket, continuation)
                ])
            }
        } onCancel: {
            if !request.outlivesCancellation { mailbox.cancel([ticket]) }
        }
        return try result.get()
    }

    /// Prepares small requests to one server that are sent together: one thread has all of them.
    ///
    /// - Parameters:
    ///   - requests: each with its own meter.
    ///   - most: how many connections to the server they may use at once.
    ///   - ended: gets each answer once, with its request's index, several where they come together; as `send` returns
    ///     it, or throws. Called on the transfer's thread: it must return within milliseconds.
    /// - Throws: as `send`, before anything is sent.
    package func batch(
        _ requests: [(request: HTTPRequest, meter: TransferMeter)], most: Int,
        ended: @escaping @Sendable ([(index: Int, result: Result<HTTPResponse, TransferError>)]) -> Void
    ) throws(TransferError) -> TransferBatch {
        for (request, _) in requests { try request.validate() }
        guard let first = requests.first?.request else { return TransferBatch(nil, []) }
        let proxy = try proxy(for: first)
        let (batch, destination) = (AnswerBatch(most: most, ended), Submission.destination(first))
        let submissions = requests.enumerated().map { index, one in
            Submission(
                one.request.stalling(atMost: longestStall), meter: one.meter, lane: lane, proxy: proxy,
                destination: destination, batch, index)
        }
        return TransferBatch(try mailbox(for: first), submissions)
    }

    private func mailbox(for request: HTTPRequest) throws(TransferError) -> TransferMailbox {
        if let mailbox = threads.mailbox(for: request) { return mailbox }
        throw TransferError(
            .outOfResources, "\(request.label): cannot start a thread: out of memory or descriptors", isOutage: true)
    }

    /// Whether bodies wait for bytes under a limit now.
    package var isLimited: Bool { lane?.isLimited ?? false }

    /// How a request to `url` gets there, and why.
    package func choice(for url: HTTPURL) -> ProxyChoice {
        proxies.choice(scheme: url.scheme, host: url.host, port: url.port)
    }

    private func proxy(for request: HTTPRequest) throws(TransferError) -> ProxyServer? {
        if request.unixSocket != nil { return nil }
        if case .unusable(let why) = choice(for: request.url) {
            throw TransferError(.proxyRefused, "\(request.label) was not sent: \(why)", isOutage: true)
        }
        return choice(for: request.url).server
    }

    /// Connects to `api` once, if this process has not yet: its address decides which URLs, sent to an earlier process,
    /// may be used (`URLRules.sentByServer`). Behind a proxy the address is unknown.
    ///
    /// - Throws: as `send`.
    package func acquaint(with api: HTTPURL) async throws(TransferError) {
        guard !HostScopeCache.shared.knows(api.host), choice(for: api).server == nil else { return }
        _ = try await send(HTTPRequest("HEAD", api))
    }

    /// Connects to `url`, through the proxy where there is one, and sends nothing. Through an http proxy, it connects
    /// only to the proxy for a URL without TLS.
    ///
    /// - Throws: as `send`.
    package func connect(to url: HTTPURL) async throws(TransferError) {
        var request = HTTPRequest("GET", url)
        request.readsCertificate = true
        _ = try await send(request)
    }

    /// The pin of the current public key of the server at `url`, whatever its certificate is worth; nil without TLS.
    /// Nothing is sent to the server.
    ///
    /// - Throws: as `send`; `.tlsFailed` for a certificate that cannot be read.
    package func pin(of url: HTTPURL) async throws(TransferError) -> PublicKeyPin? {
        guard url.scheme == "https" else { return nil }
        var request = HTTPRequest("GET", url)
        request.readsCertificate = true
        let certificate = try await send(request).certificate
        guard let pin = certificate.flatMap(PublicKeyPin.init(certificatePEM:)) else {
            throw TransferError(.tlsFailed, "\(request.label): cannot read its certificate", isOutage: false)
        }
        return pin
    }

    /// Fails running requests with `.cancelled`, here and on all clients that share the threads, and waits for them to
    /// end. Further requests fail. Blocks for milliseconds.
    package func shutdown() { threads.shutdown() }
}

/// Requests that are sent together.
package struct TransferBatch: Sendable {
    /// Sends them; once.
    package let start: @Sendable () -> Void
    /// Ends the request with this index, which is then reported as cancelled; also before the start. Keeping this until
    /// the last answer keeps no bodies.
    package let cancel: @Sendable (Int) -> Void

    init(_ mailbox: TransferMailbox?, _ submissions: [Submission]) {
        let tickets = submissions.map(\.ticket)
        start = { mailbox?.add(submissions) }
        cancel = { mailbox?.cancel([tickets[$0]]) }
    }
}

/// The bytes of one delivery that its sockets have taken, summed over all its parts.
///
/// `HTTPClient` adds while it sends. It takes a request's bytes back when the request does not end with a 2xx answer or
/// curl repeats it, so the sum never counts a byte twice.
package final class TransferMeter: Sendable {
    private let sent = Atomic<Int64>(0)
    private let started = Atomic<Bool>(false)

    package init() {}

    package var bytesSent: Int64 { sent.load(ordering: .relaxed) }

    /// Adds `count` bytes, such as those of parts that an earlier run has proved; negative takes back.
    package func add(_ count: Int64) {
        if count > 0 { started.store(true, ordering: .relaxed) }
        sent.add(count, ordering: .relaxed)
    }

    /// Whether any byte was ever counted, even if taken back.
    package var hasStarted: Bool { started.load(ordering: .relaxed) }
}
