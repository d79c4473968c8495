internal import InletCore
internal import InletJournal
internal import InletLinux
internal import Synchronization

/// Hears what the agent says: wakes the receivers' loops when something was put in the outbox, and keeps what is still to be put
/// there. Whoever emits an event never waits for it.
final class NoticeDesk: Sendable {
    struct Post: Sendable {
        var event: NoticeEvent
        var payload: [UInt8]
        var at: WallTime
        /// Where the same is not told twice.
        var word: LastWord?
    }

    /// One for each receiver.
    let signals: [WakeSignal]
    /// Raised when there is something to put in the outbox.
    let signal = WakeSignal()
    private let posts = Mutex<[Post]>([])
    /// While the journal takes nothing, the oldest are forgotten beyond this.
    private static let mostKept = 1000

    init(receivers: Int) { signals = (0..<receivers).map { _ in WakeSignal() } }

    func hear(_ event: AgentEvent) {
        switch event {
        case .jobFinished, .batchEnded: wake()
        case .destinationDown(let name, let reason, let probe):
            add(
                Post(
                    event: .destinationDown,
                    payload: NoticeText.destination(name, state: "down", reason: reason, nextProbe: probe), at: .now))
        case .destinationUp(let name):
            add(
                Post(
                    event: .destinationUp,
                    payload: NoticeText.destination(name, state: "up", reason: nil, nextProbe: nil), at: .now))
        case .volumeDone(let end) where end.isDone:
            add(Post(event: .volumeDone, payload: NoticeText.volume(end), at: .now, word: end.word))
        case .watchGuard(let root, let reason):
            add(Post(event: .rootPaused, payload: NoticeText.pausedRoot(root, reason: reason), at: .now))
        default: break
        }
    }

    func wake() { for signal in signals { signal.raise() } }

    func add(_ post: Post) {
        posts.withLock { posts in
            if posts.count >= Self.mostKept { posts.removeFirst() }
            posts.append(post)
        }
        signal.raise()
    }

    /// Puts what is kept in the outbox. - Returns: false when the journal takes nothing now.
    func flush(_ journal: Journal) async -> Bool {
        while let post = posts.withLock({ $0.first }) {
            Failpoint.posting.reached()
            // It stays, and is posted with the next one or at the next look.
            guard (try? await journal.post(post.event, post.payload, at: post.at, once: post.word)) != nil else {
                return false
            }
            Failpoint.posted.reached()
            posts.withLock { if !$0.isEmpty { $0.removeFirst() } }
            wake()
        }
        return true
    }
}
