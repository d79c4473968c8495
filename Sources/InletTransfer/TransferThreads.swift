import InletLinux
import Synchronization

/// The threads of a client and of those made from it (`HTTPClient.limited`). They end with the last of them.
final class TransferThreads: Sendable {
    private struct State {
        var mailboxes: [TransferMailbox] = []
        var threads: [LoopThread] = []
        var isShut = false
    }

    private let state: Mutex<State>
    private let shares: [Int]
    private let options: ClientOptions

    init(_ wanted: Int, connectionsPerHost: Int, options: ClientOptions) {
        shares = Self.shares(of: connectionsPerHost, among: max(1, min(wanted, connectionsPerHost)))
        self.options = options
        state = Mutex(Self.started(shares, options))
    }

    deinit { shutdown() }

    /// As many as can be had: one is enough, and with none the next request tries again.
    private static func started(_ shares: [Int], _ options: ClientOptions) -> State {
        var state = State()
        for (index, share) in shares.enumerated() {
            guard let multi = CurlMulti(idleConnections: share * 2) else { continue }
            let mailbox = TransferMailbox(multi, share: share)
            // As above.
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
    /// A small request's cost is mostly that of waking the thread, on both sides of the socket, which requests share that are
    /// on one thread: it wakes up for several answers at a time, and hands over several new requests meanwhile. Two threads
    /// would each wake up for half as many. A few large bodies want all threads instead, because copying and TLS fill one. So
    /// the first has most of the connections, where there are enough, and the others an eighth each, which is where large
    /// bodies go while the first is busy with small ones.
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

    /// Which of the threads takes a body of `length` bytes: a small one the first that has a connection free, so that the
    /// second has none before all of the first's are busy; a larger one the least busy. Where all are busy, the request waits
    /// where the queue is shortest for its connections.
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
