import InletCore
import InletLinux
import Synchronization
import SystemPackage

/// The loop's interface for other threads: submit a request, cancel one, and wake the loop.
final class TransferMailbox: Sendable {
    let multi: CurlMulti
    /// Connections that the loop has for each host.
    let share: Int
    /// The messages since the loop last looked; `load` counts unanswered submissions.
    private let state = Mutex<(added: [Submission], cancelled: [CancellationToken], isClosed: Bool, load: Int)>(
        ([], [], false, 0))

    init(_ multi: CurlMulti, share: Int) {
        self.multi = multi
        self.share = share
    }

    var load: Int { state.withLock { $0.load } }

    /// Hands a request to the loop; after `close` it fails at once.
    func add(_ submission: Submission) {
        let isFirst = state.withLock { state -> Bool? in
            guard !state.isClosed else { return nil }
            state.added.append(submission)
            state.load += 1
            return state.added.count == 1
        }
        guard let isFirst else { return submission.fail(submission.cancellation) }
        // For the first of several the loop is woken, and it takes all.
        if isFirst { multi.wakeUp() }
    }

    /// Gives up the request with this ticket, if it is there.
    func cancel(_ ticket: CancellationToken) {
        state.withLock { $0.cancelled.append(ticket) }
        multi.wakeUp()
    }

    /// Makes the loop fail what it has with `.cancelled`, and end.
    func close() {
        state.withLock { $0.isClosed = true }
        multi.wakeUp()
    }

    /// For the loop: what has come in.
    func take() -> (added: [Submission], cancelled: [CancellationToken], isClosed: Bool) {
        state.withLock { state in
            defer { (state.added, state.cancelled) = ([], []) }
            return (state.added, state.cancelled, state.isClosed)
        }
    }

    /// For the loop: one submission has been answered.
    func settled() { state.withLock { $0.load -= 1 } }
}

/// A caller's submission to a loop: the request, and the continuation to resume once.
struct Submission: Sendable {
    let request: HTTPRequest
    let meter: TransferMeter?
    /// The lane that grants its body's bytes; nil for no limit.
    let lane: ThrottleLane?
    /// Of the task that sends it: told while it waits for them.
    let note = ThrottleWaits.current
    /// The sink of the answer's body; nil keeps it in memory.
    let sink: (any ResponseSink)?
    let ticket: CancellationToken
    /// The proxy; nil for a direct connection.
    let proxy: ProxyServer?
    let continuation: CheckedContinuation<Result<HTTPResponse, TransferError>, Never>
    /// The same for requests that can share connections.
    var destination: String { request.unixSocket.map { "unix:\($0.display)" } ?? request.url.origin }

    /// The request, and the proxy if there is one, for error texts.
    var label: String { proxy.map { "\(request.label) through the proxy \($0)" } ?? request.label }

    func fail(_ error: TransferError) { continuation.resume(returning: .failure(error)) }

    var cancellation: TransferError {
        TransferError(.cancelled, "\(request.label) was cancelled", isOutage: false)
    }
}

/// Names one request to the loop, and remembers a cancellation that comes before the request does.
final class CancellationToken: Sendable {
    private let cancelled = Atomic<Bool>(false)

    var isCancelled: Bool { cancelled.load(ordering: .acquiring) }

    func cancel() { cancelled.store(true, ordering: .releasing) }
}

/// The threads of a client and of those made from it (`HTTPClient.limited`). They end with the last of them.
final class TransferThreads: Sendable {
    private typealias Running = (mailboxes: [TransferMailbox], threads: [LoopThread], isShut: Bool)

    private let state: Mutex<Running>
    private let shares: [Int]
    private let options: ClientOptions

    init(_ wanted: Int, connectionsPerHost: Int, options: ClientOptions) {
        shares = Self.shares(of: connectionsPerHost, among: max(1, min(wanted, connectionsPerHost)))
        self.options = options
        state = Mutex(Self.started(shares, options))
    }

    deinit { shutdown() }

    /// As many as can be had: one is enough, and with none the next request tries again.
    private static func started(_ shares: [Int], _ options: ClientOptions) -> Running {
        var state: Running = ([], [], false)
        for (index, share) in shares.enumerated() {
            guard let multi = CurlMulti(idleConnections: share * 2) else { continue }
            let mailbox = TransferMailbox(multi, share: share)
            // One that cannot be started is done without.
            let thread = try? LoopThread(name: "transfer-\(index)") {
                TransferLoop(mailbox, options: options, connectionsPerHost: share).run()
            }
            guard let thread else { continue }
            state.mailboxes.append(mailbox)
            state.threads.append(thread)
        }
        return state
    }

    /// How many connections each thread has: 28 and 4 of the usual 32.
    ///
    /// Most of a small request's cost is waking the thread, on both sides of the socket. Requests on one thread share
    /// it: the thread wakes for several answers at a time, and starts several new requests. Two threads would each wake
    /// up for half as many. A few large bodies want all threads instead, because copying and TLS fill one. So the first
    /// thread has most of the connections, if there are enough, and the others an eighth each. Large bodies go there
    /// while the first is busy with small ones.
    static func shares(of connections: Int, among threads: Int) -> [Int] {
        let few = max(1, connections / (connections < 8 ? threads : 8))
        return [max(1, connections - few * (threads - 1))] + Array(repeating: few, count: threads - 1)
    }

    /// The thread for a request; nil when none could be started.
    func mailbox(for request: HTTPRequest) -> TransferMailbox? {
        let mailboxes = state.withLock { state in
            if state.mailboxes.isEmpty, !state.isShut { state = Self.started(shares, options) }
            return state.mailboxes
        }
        let loads = mailboxes.map { ($0.load, $0.share) }
        return Self.choice(among: loads, length: request.body.length).map { mailboxes[$0] }
    }

    /// The thread for a body of `length` bytes. A small body goes to the first thread with a free connection, so the
    /// second gets none before the first is full. A larger body goes to the least busy. Where all are busy, the request
    /// waits where the queue is shortest for its connections.
    ///
    /// - Parameter threads: what each has to answer, and its connections.
    static func choice(among threads: [(load: Int, share: Int)], length: Int64) -> Int? {
        func load(_ index: Int) -> Int { threads[index].load }
        let isLarge = length > TransferLoop.large
        let free = threads.indices.filter { load($0) < TransferLoop.room(threads[$0].share, isLarge: isLarge) }
        if length <= small, let first = free.first { return first }
        return free.isEmpty
            ? threads.indices.min { load($0) * threads[$1].share < load($1) * threads[$0].share }
            : free.min { load($0) < load($1) }
    }

    private static let small: Int64 = 64 << 10

    func shutdown() {
        let (mailboxes, threads) = state.withLock { state in
            state.isShut = true
            return (state.mailboxes, state.threads)
        }
        for mailbox in mailboxes { mailbox.close() }
        for thread in threads { thread.join() }
    }
}
