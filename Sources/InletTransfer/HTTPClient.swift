package import InletCore
import InletLinux
import Synchronization

/// Sends requests on a few threads of its own, each with a libcurl multi handle and its connections.
///
/// Nothing runs while nothing is sent. A task's cancellation ends its request within milliseconds, also when no byte
/// moves.
package final class HTTPClient: Sendable {
    private let threads: TransferThreads
    private let longestStall: Duration?
    private let proxies: ProxyRules
    /// The throttle for sent bodies; nil for no limit.
    private let lane: ThrottleLane?
    /// Whose threads these are, where those are another client's: it is there as long.
    private let origin: HTTPClient?

    /// Certificates are checked when the first connection is made, not here.
    ///
    /// - Parameters:
    ///   - threads: at least one.
    ///   - connectionsPerHost: more requests than that wait, in their order.
    ///   - proxies: the proxies for requests; none by default, whatever the environment says.
    ///   - longestStall: what no request's limits of standstill exceed, whatever it asks for; nil = as they ask.
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

    /// The same client, with the same threads and connections, for requests whose bodies go through `lane`; nil = whose
    /// bodies no limit holds.
    package func limited(by lane: ThrottleLane?) -> HTTPClient { HTTPClient(self, lane: lane) }

    /// Waits while the lane's limit is 0; returns at once when the task is cancelled. For requests that grow old: what
    /// is signed or asked for after it is sent soon.
    package func untilOpen() async { await lane?.untilOpen() }

    /// Sends `request` and returns the whole answer, whatever its status; of one that `sink` has taken on, the head.
    ///
    /// - Parameter sink: offered the answer when its head is there; its calls have ended when this returns.
    /// - Throws: `.cancelled` if the task is cancelled or the client is shut down; `.badRequest` for an invalid
    ///   request; `.sourceChanged` and `.sourceUnreadable` for a body's file. Otherwise the error of the network or the
    ///   answer.
    package func send(
        _ request: HTTPRequest, meter: TransferMeter? = nil, into sink: (any ResponseSink)? = nil
    ) async throws(TransferError) -> HTTPResponse {
        try request.validate()
        let proxy = try proxy(for: request)
        guard let mailbox = threads.mailbox(for: request) else {
            throw TransferError(
                .outOfResources, "\(request.label): cannot start a thread: out of memory or descriptors",
                isOutage: true)
        }
        let ticket = CancellationToken()
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                mailbox.add(
                    Submission(
                        request: request.stalling(atMost: longestStall), meter: meter, lane: lane, sink: sink,
                        ticket: ticket, proxy: proxy, continuation: continuation))
            }
        } onCancel: {
            guard !request.outlivesCancellation else { return }
            ticket.cancel()
            mailbox.cancel(ticket)
        }
        var answer = try result.get()
        answer.sentCredentials = SentCredentials(request, proxy: proxy)
        return answer
    }

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

    /// Looks up the scope of `api` if this process has sent it no request yet. The allowed targets of URLs that it sent
    /// to an earlier process depend on that (`URLRules.sentByServer`). Behind a proxy the scope is unknown.
    ///
    /// - Throws: as `send`.
    package func acquaint(with api: HTTPURL) async throws(TransferError) {
        guard !HostScopeCache.shared.knows(api.host), choice(for: api).server == nil else { return }
        _ = try await send(HTTPRequest("HEAD", api))
    }

    /// Connects to `url`, through the proxy if there is one, and sends nothing. With an http proxy and a URL without
    /// TLS, connects only to the proxy.
    ///
    /// - Throws: as `send`.
    package func connect(to url: HTTPURL) async throws(TransferError) {
        var request = HTTPRequest("GET", url)
        request.readsCertificate = true
        _ = try await send(request)
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
            throw TransferError(.tlsFailed, "\(request.label): cannot read its certificate", isOutage: false)
        }
        return pin
    }

    /// Fails what runs with `.cancelled`, here and on all clients that share the threads, and waits for these to end.
    /// Further requests fail. Blocks for milliseconds.
    package func shutdown() { threads.shutdown() }
}

/// Bytes of one delivery that its sockets have taken, summed over all its parts.
///
/// `HTTPClient` adds bytes while it sends. It subtracts them if the request does not end with a 2xx answer, or curl
/// restarts it, so no byte counts twice.
package final class TransferMeter: Sendable {
    private let sent = Atomic<Int64>(0)
    private let started = Atomic<Bool>(false)

    package init() {}

    package var bytesSent: Int64 { sent.load(ordering: .relaxed) }

    /// Adds `count` bytes, e.g. those of parts that an earlier run has proved; negative takes back.
    package func add(_ count: Int64) {
        if count > 0 { started.store(true, ordering: .relaxed) }
        sent.add(count, ordering: .relaxed)
    }

    /// Whether any byte has ever been counted, also one that was taken back.
    package var hasStarted: Bool { started.load(ordering: .relaxed) }
}
