internal import InletCore
internal import InletJournal
internal import Synchronization
internal import SystemPackage

/// How many more files the queue takes, which root waits for room, and who is told. Without limits nobody asks the journal.
final class QueueRoom: Sendable {
    private let limits: Mutex<QueueLimit>
    private let journal: Journal
    private let log: EventLog
    /// The roots that were refused something, and how each is woken.
    private let waiting = Mutex<[FilePath: @Sendable () -> Void]>([:])
    /// Whether any root waits: asked at the end of every delivery.
    private let isFull = Atomic<Bool>(false)

    init(_ limit: QueueLimit, journal: Journal, log: EventLog) {
        limits = Mutex(limit)
        self.journal = journal
        self.log = log
    }

    var limit: QueueLimit { limits.withLock(\.self) }

    /// Takes another limit, and has those look again who wait for room.
    func set(_ limit: QueueLimit) {
        limits.withLock { $0 = limit }
        left()
    }

    /// How many files of any size fit now; nil = any number. A journal that does not answer takes what it takes.
    func places() async -> Int? {
        let limit = limit
        if limit.isOff { return nil }
        // A journal that does not answer takes no file either, and says so there.
        guard let pending = try? await journal.pending() else { return nil }
        return limit.room(besides: pending)
    }

    /// A root has files for which there is no room; said when it is the first.
    func refuse(_ root: FilePath, wake: @escaping @Sendable () -> Void) async {
        let isFirst = waiting.withLock { waiting in
            defer { waiting[root] = wake }
            return waiting.isEmpty
        }
        isFull.store(true, ordering: .releasing)
        guard isFirst else { return }
        // Figures beside a warning, which is given in any case.
        let pending = (try? await journal.pending()) ?? (files: 0, bytes: 0)
        log.emit(.queueFull(files: pending.files, bytes: pending.bytes))
    }

    /// Everything that was ready in a root has been taken; said when it was the last that waited.
    func release(_ root: FilePath) {
        if !isFull.load(ordering: .acquiring) { return }
        let isLast = waiting.withLock { waiting in
            waiting.removeValue(forKey: root) != nil && waiting.isEmpty
        }
        guard isLast else { return }
        isFull.store(false, ordering: .releasing)
        log.emit(.queueFree)
    }

    /// A file has left the queue.
    func left() {
        if !isFull.load(ordering: .acquiring) { return }
        for wake in waiting.withLock({ Array($0.values) }) { wake() }
    }
}
