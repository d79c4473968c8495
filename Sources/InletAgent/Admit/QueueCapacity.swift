internal import InletCore
internal import InletJournal
internal import InletLinux
internal import Synchronization
internal import SystemPackage

/// How many more files the queue accepts, which roots wait for room, and how they are woken. Without limits it never
/// asks the journal. While it is held, as if the queue were full, nothing is admitted but the files of open units.
final class QueueCapacity: Sendable {
    private let limits: Mutex<(configured: QueueLimit, isHeld: Bool)>
    private let journal: Journal
    private let log: EventLog
    /// The roots that found no room, how to wake each, and whether it was logged that the queue is full.
    private let waiting = Mutex<(roots: [FilePath: @Sendable () -> Void], isSaid: Bool)>(([:], false))
    /// Whether any root waits: asked at the end of every delivery.
    private let isFull = Atomic<Bool>(false)

    init(_ limit: QueueLimit, isHeld: Bool = false, journal: Journal, log: EventLog) {
        limits = Mutex((limit, isHeld))
        (self.journal, self.log) = (journal, log)
    }

    var limit: QueueLimit { limits.withLock { $0.isHeld ? .closed : $0.configured } }
    var isHeld: Bool { limits.withLock(\.isHeld) }

    /// Takes another limit, and wakes the roots that wait for room.
    func set(_ limit: QueueLimit) {
        limits.withLock { $0.configured = limit }
        wakeAll()
    }

    /// Files that come stay in their folders from now on, or are admitted again.
    func hold(_ isHeld: Bool) {
        limits.withLock { $0.isHeld = isHeld }
        wakeAll()
    }

    /// How many files of any size fit now; nil is any number. A journal that does not answer sets no limit here.
    func places() async -> Int? {
        let limit = limit
        if limit.isOff { return nil }
        if limit == .closed { return 0 }
        return await journal.pendingIfKnown().flatMap { limit.room(besides: $0) }
    }

    /// A root has files without room; logged for the first root, unless it is held: its holder says that.
    func refuse(_ root: FilePath, wake: @escaping @Sendable () -> Void) async {
        let limit = limit
        let isFull = limit != .closed && !limit.isOff
        let isNews = waiting.withLock { waiting in
            defer { waiting.isSaid = waiting.isSaid || isFull }
            waiting.roots[root] = wake
            return isFull && !waiting.isSaid
        }
        self.isFull.store(true, ordering: .releasing)
        guard isNews else { return }
        let pending = await journal.pendingIfKnown() ?? (files: 0, bytes: 0)
        log.emit(.queueFull(files: pending.files, bytes: pending.bytes))
    }

    /// A root has admitted all its ready files; logged when it was the last that waited.
    func release(_ root: FilePath) {
        if !isFull.load(ordering: .acquiring) { return }
        let (isLast, wasSaid) = waiting.withLock { waiting in
            let isLast = waiting.roots.removeValue(forKey: root) != nil && waiting.roots.isEmpty
            defer { if isLast { waiting.isSaid = false } }
            return (isLast, waiting.isSaid)
        }
        guard isLast else { return }
        isFull.store(false, ordering: .releasing)
        if wasSaid { log.emit(.queueRecovered) }
    }

    /// A file has left the queue.
    func left() {
        if isFull.load(ordering: .acquiring) { wakeAll() }
    }

    private func wakeAll() { for wake in waiting.withLock({ Array($0.roots.values) }) { wake() } }
}

extension Journal {
    /// The size of the queue; nil when the journal does not answer. Such a journal accepts no file and reports that
    /// itself, so a limit refuses nothing, and a warning has no figures.
    func pendingIfKnown() async -> (files: Int, bytes: Int64)? {
        // Such a journal accepts no file either, and reports that itself.
        try? await pending()
    }

    /// A file's present row; nil also when the journal does not answer. For log lines, and where an older row serves as
    /// well.
    func fileIfKnown(_ id: Int64) async -> FileRow? {
        // No decision depends on it: a log line lacks the file, or an older row serves.
        try? await job(id)?.file
    }
}

/// Files without room in the queue stay in their folder, and keep their place in the order.
extension RootLoop {
    /// The pause of files that unit files overtake.
    private static let overtakenPause = Duration.seconds(5)
    /// A loop without room waits a little after a file has left the queue: otherwise each file would be a transaction.
    private static let shortestPause = Duration.milliseconds(20)
    /// Some departures from the queue wake nobody.
    private static let longestPause = Duration.seconds(1)
    /// A queue that is held wakes all roots at the end.
    private static let heldPause = Duration.seconds(600)

    /// Ready files, no more than there is room for.
    mutating func dueNow() async -> [FilePath] {
        if let earliest = pressure.notBefore, .now < earliest {
            // Looks again as soon as that time has come.
            pressure.notAfter = earliest
            return []
        }
        guard let places = await shared.room.places() else { return settler.due(at: .now) }
        if places == 0, units.isEmpty {
            // Files that are not ready do not count as files without room.
            if let next = settler.nextDeadline, next <= .now { await refuse() } else { release() }
            return []
        }
        let due = settler.due(at: .now, most: units.isEmpty ? places : .max)
        pressure.hasRoomLeft = due.count < places
        if due.isEmpty { release() }
        return due
    }

    /// Files without room come first the next time, but behind the files of an open unit: otherwise that unit would
    /// never complete.
    mutating func putBack(_ refused: [FilePath]) async {
        if refused.isEmpty {
            if pressure.hasRoomLeft { release() }
            return
        }
        for path in refused {
            let isTracked =
                units.isEmpty
                ? settler.discover(path, settle: settle(for: path), at: started)
                : settler.observe(path, settle: Self.overtakenPause, at: .now)
            if !isTracked { listing.ask() }
        }
        await refuse()
    }

    private mutating func refuse() async {
        let now = ContinuousClock.now
        await shared.room.refuse(settings.path) { [mailbox] in mailbox.waker.wake() }
        pressure.notBefore = now.advanced(by: Self.shortestPause)
        // Asked last: from here on the end of the hold wakes this root.
        pressure.notAfter = now.advanced(by: shared.room.isHeld ? Self.heldPause : Self.longestPause)
    }

    private mutating func release() {
        (pressure.notBefore, pressure.notAfter) = (nil, nil)
        shared.room.release(settings.path)
    }
}
