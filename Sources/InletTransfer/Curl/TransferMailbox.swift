import InletCore
import InletLinux
import Synchronization
import SystemPackage

/// Other threads' access to a loop: leave a request, cancel one, wake it.
final class TransferMailbox: Sendable {
    let multi: CurlMulti
    /// Connections that the loop has for each host.
    let share: Int
    /// Submissions since the loop last looked; `load` counts unanswered ones.
    private let state = Mutex<(added: [Submission], cancelled: [CancellationToken], isClosed: Bool, load: Int)>(
        ([], [], false, 0))

    init(_ multi: CurlMulti, share: Int) {
        self.multi = multi
        self.share = share
    }

    var load: Int { state.withLock { $0.load } }

    /// Passes requests to the loop; after `close` they fail at once.
    func add(_ submissions: [Submission]) {
        let isFirst = state.withLock { state -> Bool? in
            guard !state.isClosed else { return nil }
            let isFirst = state.added.isEmpty
            state.added += submissions
            state.load += submissions.count
            return isFirst
        }
        guard let isFirst else {
            for submission in submissions { submission.end(.failure(submission.cancellation)) }
            return submissions.forEach { $0.batch?.flush() }
        }
        // The first of several wakes the loop, which takes all.
        if isFirst { multi.wakeUp() }
    }

    /// Cancels the requests with these tickets, as far as they are there.
    func cancel(_ tickets: [CancellationToken]) {
        for ticket in tickets { ticket.cancel() }
        state.withLock { $0.cancelled += tickets }
        multi.wakeUp()
    }

    /// Makes the loop fail its requests with `.cancelled`, and end.
    func close() {
        state.withLock { $0.isClosed = true }
        multi.wakeUp()
    }

    /// For the loop: the new submissions.
    func take() -> (added: [Submission], cancelled: [CancellationToken], isClosed: Bool) {
        state.withLock { state in
            defer { (state.added, state.cancelled) = ([], []) }
            return (state.added, state.cancelled, state.isClosed)
        }
    }

    /// For the loop: so many submissions have been answered.
    func settled(_ count: Int = 1) { state.withLock { $0.load -= count } }
}

/// A caller's submission to a loop: the request, and the promise to answer it once. A class: the loop moves it several
/// times, and a request has many parts.
final class Submission: Sendable {
    let request: HTTPRequest
    let meter: TransferMeter?
    /// The source of its body's bytes; nil = without a limit.
    let lane: ThrottleLane?
    /// The sending task's: marked while it waits for them.
    let note = ThrottleWaits.current
    /// The receiver of the answer's body; nil keeps it in memory.
    let sink: (any ResponseSink)?
    let ticket: CancellationToken
    /// The proxy; nil = a direct connection.
    let proxy: ProxyServer?
    /// Equal for requests that can share connections.
    let destination: String
    private let receiver: Receiver

    private enum Receiver: Sendable {
        case one(CheckedContinuation<Result<HTTPResponse, TransferError>, Never>)
        case batch(AnswerBatch, index: Int)
    }

    init(
        _ request: HTTPRequest, meter: TransferMeter? = nil, lane: ThrottleLane?, sink: (any ResponseSink)? = nil,
        proxy: ProxyServer?, _ ticket: CancellationToken,
        _ continuation: CheckedContinuation<Result<HTTPResponse, TransferError>, Never>
    ) {
        (self.request, self.meter, self.lane, self.sink, self.proxy) = (request, meter, lane, sink, proxy)
        self.ticket = ticket
        destination = Self.destination(request)
        receiver = .one(continuation)
    }

    /// One of a batch to one server.
    init(
        _ request: HTTPRequest, meter: TransferMeter, lane: ThrottleLane?, proxy: ProxyServer?, destination: String,
        _ batch: AnswerBatch, _ index: Int
    ) {
        (self.request, self.meter, self.lane, sink, self.proxy) = (request, meter, lane, nil, proxy)
        ticket = CancellationToken()
        self.destination = destination
        receiver = .batch(batch, index: index)
    }

    static func destination(_ request: HTTPRequest) -> String {
        request.unixSocket.map { "unix:\($0.display)" } ?? request.url.origin
    }

    var batch: AnswerBatch? { if case .batch(let batch, _) = receiver { batch } else { nil } }

    /// The request and its proxy, if any, for error texts.
    var label: String { proxy.map { "\(request.label) through the proxy \($0)" } ?? request.label }

    /// Answers it, once. A batch tells its answers when it is flushed.
    func end(_ result: Result<HTTPResponse, TransferError>) {
        let result = result.map { answer in
            var answer = answer
            answer.sentCredentials = SentCredentials(request, proxy: proxy)
            return answer
        }
        switch receiver {
        case .one(let continuation): continuation.resume(returning: result)
        case .batch(let batch, let index): batch.add(index, result)
        }
    }

    var cancellation: TransferError {
        TransferError(.cancelled, "\(request.label) was cancelled", isOutage: false)
    }
}

/// The answers to requests that were sent together: those that come at the same time are reported in one call, on the
/// loop's thread.
final class AnswerBatch: Sendable {
    typealias Answers = [(index: Int, result: Result<HTTPResponse, TransferError>)]

    /// Connections that its requests may use at once.
    let most: Int
    private let collected = Mutex<Answers>([])
    private let tell: @Sendable (Answers) -> Void

    init(most: Int, _ tell: @escaping @Sendable (Answers) -> Void) { (self.most, self.tell) = (most, tell) }

    func add(_ index: Int, _ result: Result<HTTPResponse, TransferError>) {
        collected.withLock { $0.append((index, result)) }
    }

    /// Tells what has come since the last call.
    func flush() {
        let answers = collected.withLock { answers in
            defer { answers = [] }
            return answers
        }
        if !answers.isEmpty { tell(answers) }
    }
}

/// Identifies one request to the loop, and remembers a cancellation that comes before the request does.
final class CancellationToken: Sendable {
    private let cancelled = Atomic<Bool>(false)

    var isCancelled: Bool { cancelled.load(ordering: .acquiring) }

    func cancel() { cancelled.store(true, ordering: .releasing) }
}

/// The threads of a client and of those derived from it (`HTTPClient.limited`). They end with the last of these.
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

    /// As many as possible: one is enough, and with none the next request tries again.
    private static func started(_ shares: [Int], _ options: ClientOptions) -> Running {
        var state: Running = ([], [], false)
        for (index, share) in shares.enumerated() {
            guard let multi = CurlMulti() else { continue }
            let mailbox = TransferMailbox(multi, share: share)
            // Continues without a thread that cannot be started.
            let thread = try? LoopThread(name: "transfer-\(index)") {
                TransferLoop(mailbox, options: options, connectionsPerHost: share).run()
            }
            guard let thread else { continue }
            state.mailboxes.append(mailbox)
            state.threads.append(thread)
        }
        return state
    }

    /// The connections of each thread: 28 and 4 of the usual 32.
    ///
    /// A small request mostly costs waking the thread on either side of the socket. Requests on one thread share that:
    /// it wakes up for several answers at a time, and submits several new requests meanwhile. Two threads would each
    /// wake up for half as many. A few large bodies need all threads instead, because copying and TLS fill one. So the
    /// first has most of the connections, where there are enough, and the others an eighth each, for large bodies while
    /// the first is busy with small ones.
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

    /// The thread for a body of `length` bytes. A small one takes the first with a free connection, so that the second
    /// stays empty until all of the first's are busy; a larger one takes the least busy. Where all are busy, the
    /// request waits where the queue is shortest for its connections.
    ///
    /// - Parameter threads: the unanswered requests of each, and its connections.
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
