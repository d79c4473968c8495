internal import InletCore
internal import InletJournal
internal import InletLinux
internal import Synchronization
internal import SystemPackage

/// How many more files the queue takes, which root waits for room, and who is told. Without limits nobody asks the journal.
final class QueueCapacity: Sendable {
    private let limits: Mutex<QueueLimit>
    private let journal: Journal
    private let log: EventLog
    /// The roots that were refused something, and how each is woken.
    private let waiting = Mutex<[FilePath: @Sendable () -> Void]>([:])
    /// Whether any root waits: asked at the end of every delivery.
    private let isFull = Atomic<Bool>(false)

    init(_ limit: QueueLimit, journal: Journal, log: EventLog) {
        limits = Mutex(limit)
        (self.journal, self.log) = (journal, log)
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
        return await journal.pendingIfKnown().flatMap { limit.room(besides: $0) }
    }

    /// A root has files for which there is no room; said when it is the first.
    func refuse(_ root: FilePath, wake: @escaping @Sendable () -> Void) async {
        let isFirst = waiting.withLock { waiting in
            defer { waiting[root] = wake }
            return waiting.isEmpty
        }
        isFull.store(true, ordering: .releasing)
        guard isFirst else { return }
        let pending = await journal.pendingIfKnown() ?? (files: 0, bytes: 0)
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
        log.emit(.queueRecovered)
    }

    /// A file has left the queue.
    func left() {
        if !isFull.load(ordering: .acquiring) { return }
        for wake in waiting.withLock({ Array($0.values) }) { wake() }
    }
}

extension Journal {
    /// How much waits in the queue; nil when the journal does not answer. A limit then refuses nothing, as such a journal takes no
    /// file either, and says so there; a warning is given without figures.
    func pendingIfKnown() async -> (files: Int, bytes: Int64)? {
        // Such a journal takes no file either, and says so there.
        try? await pending()
    }

    /// A file as the journal has it now; nil also when the journal does not answer: for lines of the log, and where what was known
    /// before serves as well.
    func fileIfKnown(_ id: Int64) async -> FileRow? {
        // Nothing is decided by it: a line of the log lacks the file, or what was known before serves.
        try? await job(id)?.file
    }
}

/// Files for which there is no room in the queue stay in their folder, and their place in the order is kept.
extension RootLoop {
    /// The pause of those that unit files overtake.
    private static let overtakenPause = Duration.seconds(5)
    /// Woken whenever a file leaves the queue, a loop without room lets some more leave before it looks: one by one, each file would
    /// be a transaction.
    private static let shortestPause = Duration.milliseconds(20)
    /// Not everything that leaves the queue wakes it.
    private static let longestPause = Duration.seconds(1)

    /// Files that are ready, no more than there is room for.
    mutating func dueNow() async -> [FilePath] {
        if let earliest = pressure.notBefore, .now < earliest {
            // It is looked as soon as that has come.
            pressure.notAfter = earliest
            return []
        }
        guard let places = await shared.room.places() else { return settler.due(at: .now) }
        if places == 0, units.isEmpty {
            // What is not ready yet is no reason to say that there is no room.
            if let next = settler.nextDeadline, next <= .now { await refuse() } else { release() }
            return []
        }
        let due = settler.due(at: .now, most: units.isEmpty ? places : .max)
        pressure.hasRoomLeft = due.count < places
        if due.isEmpty { release() }
        return due
    }

    /// Those that were refused come first the next time. While a unit is open they wait behind its files instead: the unit would
    /// never be complete.
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
        pressure.notBefore = now.advanced(by: Self.shortestPause)
        pressure.notAfter = now.advanced(by: Self.longestPause)
        await shared.room.refuse(settings.path) { [mailbox] in mailbox.waker.wake() }
    }

    private mutating func release() {
        (pressure.notBefore, pressure.notAfter) = (nil, nil)
        shared.room.release(settings.path)
    }
}
