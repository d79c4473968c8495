import InletLinux

/// The threads of a client and of those made from it (`HTTPClient.limited`). They end with the last of them.
final class TransferThreads: Sendable {
    private let mailboxes: [TransferMailbox]
    private let threads: [LoopThread]

    init(_ wanted: Int, connectionsPerHost: Int, options: ClientOptions) {
        let count = max(1, min(wanted, connectionsPerHost))
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
        threads = started.map { $0.1 }
    }

    deinit { shutdown() }

    /// Many small requests are cheapest on one thread, which then wakes up for several at a time; a few large ones want all
    /// threads. So the first has most of the connections, where there are enough.
    static func shares(of connections: Int, among threads: Int) -> [Int] {
        let few = max(1, connections / (connections < 8 ? threads : 8))
        return [max(1, connections - few * (threads - 1))] + Array(repeating: few, count: threads - 1)
    }

    /// The thread for a request: for a small one the first that has a connection free, for a large one the least busy; nil
    /// when none could be started.
    func mailbox(for request: HTTPRequest) -> TransferMailbox? {
        let loads = mailboxes.map { ($0, load: $0.load) }
        let isLarge = request.body.length > TransferLoop.large
        let free = loads.filter { $0.load < TransferLoop.room($0.0.share, isLarge: isLarge) }
        if request.body.length <= Self.small, let first = free.first { return first.0 }
        // Where all are busy, the request waits where the queue is shortest for its connections.
        return free.isEmpty
            ? loads.min { $0.load * $1.0.share < $1.load * $0.0.share }?.0 : free.min { $0.load < $1.load }?.0
    }

    private static let small: Int64 = 64 << 10

    func shutdown() {
        for mailbox in mailboxes { mailbox.close() }
        for thread in threads { thread.join() }
    }
}
