internal import InletCore
internal import InletJournal
internal import InletLinux
internal import SystemPackage

/// The life of one watched folder that exists: its events, its listings, its incomplete files and their admission, in
/// one loop that owns all of their state. Blocking calls run on the root's own thread.
struct RootLoop: ~Copyable {
    let settings: WatchSettings
    let shared: Shared
    let mailbox: RootMailbox
    let ignore: IgnoreList
    let routes: RouteTable
    /// The folder that the root's path led to when the loop was made.
    let place: FolderIdentity
    /// When the loop began, before any file was ready.
    let started = ContinuousClock.now

    /// Its events.
    var watch: RootWatch
    /// Its content.
    var listing: Listing
    /// Its incomplete files.
    var settler: Settler
    /// Units (folders delivered as one), and those of them that had their marker at the last look.
    var units = UnitClock()
    var markersFound: Set<FilePath> = []
    /// From the end of a quiet time to a place in the journal.
    var stage: AdmissionStage
    /// Whether the last round took every ready file; and without room in the queue, the time of the next look. It is
    /// not before one time, and not after the other because of ready files.
    var pressure: (hasRoomLeft: Bool, notBefore: ContinuousClock.Instant?, notAfter: ContinuousClock.Instant?) = (
        true, nil, nil
    )
    /// Whether a file of the root was seen, admitted or proved since the last report to its card.
    var hasVolumeNews = true
    /// When the status was shown, and its remembered parts.
    var lastShown: ContinuousClock.Instant?
    /// The writers of waiting files, and when to look for them again.
    var writers: (known: [FilePath: OpenWriters.WriterProcess], next: ContinuousClock.Instant?) = ([:], nil)
    var isLost = false
    /// When to check whether the root is still there, and since when its lock's folder is gone.
    private var lockCheck: (due: ContinuousClock.Instant, since: ContinuousClock.Instant)?

    init(
        _ stage: AdmissionStage, _ mailbox: RootMailbox, openUnits: [Batch], places: Settler.Places
    ) throws(SystemError) {
        (shared, settings) = (stage.admission.shared, stage.settings)
        (self.mailbox, self.stage) = (mailbox, stage)
        (ignore, routes) = (IgnoreList(user: settings.ignore), stage.admission.routes)
        watch = try RootWatch(settings, ignore: ignore, log: shared.log)
        listing = Listing(root: settings.path, isRecursive: settings.recursive, pause: settings.rescan)
        settler = Settler(settle: settings.settle, places: places)
        place = FolderIdentity(settings.path)
        for batch in openUnits { if let joined = stage.rule(batch) { join(joined) } }
    }

    var log: EventLog { shared.log }

    mutating func run() async throws(SystemError) {
        watch.begin()
        startListing()
        while !mailbox.isStopped, !isLost {
            shared.health.heartbeat.beat(.intake(settings.path))
            settler.note(.now, wall: .now)
            apply(mailbox.take())
            if let why = shared.fleet.places.objection(to: settings.path) { loseRoot(why) }
            if isLost { return }
            for event in try watch.read() { apply(event) }
            checkLock()
            listStuck()
            try await advanceListing()
            let turn = ContinuousClock.now
            advancePass()
            stage.checker.looking = turn.duration(to: .now)
            await admitDue()
            followRefused()
            // A finding is not part of the cost of looking: reading and committing it makes no pause longer.
            watch.polls.turnEnded(
                took: stage.checker.looking, hasMore: settler.nextDeadline.map { $0 <= .now } ?? false)
            // A root that is gone has no more events: waiting here would miss its return.
            if isLost { return }
            try await closeUnits()
            await reportVolume()
            if let due = listing.next, due <= .now { listing.ask() }
            if listing.mayBegin { startListing() }
            let deadline = deadline
            publish(beforeWaiting: deadline)
            try watch.wait(until: deadline, or: mailbox.waker)
        }
    }

    private var deadline: ContinuousClock.Instant? {
        mutating get {
            if listing.held.isEmpty, listing.isAsked || !listing.isIdle || watch.polls.isLooking { return .now }
            let ready = settler.nextDeadline.map { max($0, pressure.notAfter ?? $0) }
            return [
                ready, listing.isDone ? settler.stuckFolders.nextListing : nil,
                listing.next, nextPass, lockCheck?.due, listing.isComplete ? units.nextDeadline : nil,
            ].compactMap(\.self).min()
        }
    }

    // MARK: - Requests and events

    private mutating func apply(_ requests: RootMailbox.Requests) {
        for path in requests.looks { notice(path, isAsked: true) }
        for path in requests.derived { lookNow(path) }
        if requests.wantsListing { listing.ask() }
        if requests.hasEnded { hasVolumeNews = true }
        guard requests.hasMountChange else { return }
        if FolderIdentity(settings.path) != place { loseRoot() } else { followMounts() }
    }

    mutating func apply(_ event: FileEvent) {
        if let path = event.name {
            hasVolumeNews = true
            units.touch(path, at: .now)
        }
        switch event {
        case .created(let path, let isFolder):
            stage.renames.forget(path)
            if isFolder { list(path) } else { notice(path) }
        case .changed(let path, let isFolder): if !isFolder { notice(path) }
        case .left(let path, let isFolder, let rename):
            noteLock(path)
            if let rename { leaves(path, isFolder: isFolder, rename) }
            if isFolder { forget(below: path) } else if settler.isTracked(path) { lookNow(path) } else { forget(path) }
        case .reached(let path, let isFolder, let rename):
            stage.renames.reaches(path, cookie: rename, isFolder: isFolder)
            if isFolder { list(path) } else { notice(path) }
        case .removed(let path, let isFolder):
            noteLock(path)
            if !isFolder { forget(path) }
        case .folder(let path):
            hasVolumeNews = true
            list(path)
        case .linked(let path): lookNow(path)
        case .lost(let reason): loseRoot(reason)
        case .overflow:
            hasVolumeNews = true
            log.emit(.watchOverflow(root: settings.path))
            listing.ask()
        }
    }

    /// Copy programs end each file by a rename; no journal knows its earlier name.
    private mutating func leaves(_ path: FilePath, isFolder: Bool, _ rename: UInt32) {
        // In a share a file of another name is another file: the other agents know it by its path.
        if settings.place != nil { return }
        if ignore.ignores(path, isDirectory: isFolder), stage.renames.origins(of: path).isEmpty { return }
        stage.renames.leaves(path, cookie: rename)
    }

    private mutating func list(_ folder: FilePath) {
        if settings.recursive, !ignore.ignores(folder, isDirectory: true) { listing.add(folder) }
    }

    private mutating func forget(_ path: FilePath) {
        settler.forget(path)
        stage.checker.refused.forget(path)
        stage.admission.deriver?.close(path, kept: [])
    }

    private mutating func forget(below folder: FilePath) {
        settler.forget(below: folder)
        stage.admission.deriver?.close(below: folder)
    }

    private mutating func noteLock(_ path: FilePath) {
        if path == WatchLock.folder { lockCheck = (.now.advanced(by: Self.lockPause), lockCheck?.since ?? .now) }
    }

    /// The kernel reports the end of a folder once nothing in it is open, and the agent has the lock open, with or
    /// without a name. If only the lock's folder is gone, it takes another lock once all is quiet: a person who removes
    /// the whole folder must find it empty. But soon: without a lock another agent would take the same files.
    private mutating func checkLock() {
        guard let (due, since) = lockCheck, due <= .now else { return }
        lockCheck = nil
        if FolderIdentity(settings.path) != place { return loseRoot() }
        let isBusy = watch.lastEvent.map { WallTime.now - $0 < Self.quietRoot } ?? false
        if isBusy, since.duration(to: .now) < Self.longestUnlocked {
            lockCheck = (.now.advanced(by: Self.lockPause), since)
        } else if RootOwnership.isLocked(settings) {
            loseRoot("the folder of its lock (.inlet) was removed")
        }
    }

    private static let lockPause = Duration.seconds(1)
    private static let quietRoot = Duration.seconds(5)
    private static let longestUnlocked = Duration.seconds(60)

    mutating func loseRoot(_ reason: String = "removed, renamed or unmounted") {
        if isLost { return }
        isLost = true
        listing.stop()
        log.emit(.watchLost(root: settings.path, reason: reason))
    }

    /// A sign of life of a file; a marker's is one of its file or unit.
    ///
    /// - Parameter isAsked: whether somebody requested a check, whatever its name.
    private mutating func notice(_ path: FilePath, isAsked: Bool = false) {
        if !isAsked, ignore.ignores(path, isDirectory: false) { return }
        if let unit = routes.unitMarked(by: path) { return units.markerSeen(in: unit, at: .now) }
        let path = routes.fileMarked(by: path) ?? path
        if !settler.observe(path, settle: settle(for: path), at: .now) {
            listing.add(path.removingLastComponent())
        }
    }

    /// A file is there, or may be: it is due at once, like a finding of a listing.
    private mutating func lookNow(_ path: FilePath) {
        settler.forget(path)
        if !discover(path) { listing.add(path.removingLastComponent()) }
    }

    /// The quiet time before it is checked; nil is the root's own.
    func settle(for path: FilePath) -> Duration? { stage.checker.settle(for: path) }

    /// A file that no event reported. False means there is no room for it.
    mutating func discover(_ path: FilePath) -> Bool {
        settler.discover(path, settle: settle(for: path), at: .now)
    }

    // MARK: - Settling

    mutating func admitDue() async {
        let due = await dueNow()
        guard !due.isEmpty else { return }
        hasVolumeNews = true
        let looks = stage.checker.look(due)
        let known = await stage.admission.recall(looks.arrivals, tolerance: stage.tolerance)
        let considered = await stage.consider(looks, known)
        if losesPassing() { return }
        for (companion, main) in stage.takeWakes() {
            let settle = settle(for: main)
            if !settler.wake(main, for: companion, settle: settle, at: .now) { listing.ask() }
        }
        var complete: [Candidate] = []
        for (path, verdict) in considered {
            switch verdict {
            case .look(let look):
                if case .settled(let identity) = settler.judge(
                    path, look, isForeign: watch.isForeign(path), at: .now, wall: .now)
                {
                    watch.noteSettled()
                    complete.append(stage.candidate(path, identity))
                }
            case .known: settler.forget(path)
            }
        }
        await apply(stage.admission.admit(complete, .found, stage.hashing))
    }

    /// The results of admissions, in the order in which the files were ready.
    mutating func apply(_ results: [AdmissionResult]) async {
        var refused: [FilePath] = []
        for path in results.flatMap(\.companions) {
            settler.forget(path)
            stage.awaited.remove(path)
        }
        for result in results {
            let path = result.arrival.path
            stage.remember(result)
            switch result.outcome {
            case .journal(.busy), .later: settler.putBack(path, settle: settle(for: path), at: .now)
            case .unreadable(let why): settler.putBack(path, settle: settle(for: path), why: why, at: .now)
            case .journal(.full): refused.append(path)
            case .journal, .gone: for unit in stage.joined(result.arrival) { join(unit) }
            case .unmatched:
                stage.checker.leaveAlone(path, "no route matches it; 'inlet route FILE' shows why")
            }
        }
        await putBack(refused)
    }

    /// Lists folders with stuck files again, once earlier requests are listed: their results decide how soon.
    private mutating func listStuck() {
        if listing.isDone { for folder in settler.stuckFolders.due(at: .now) { listing.add(folder) } }
    }

    /// Files that the root's rule refuses, until they change.
    mutating func followRefused() {
        for path in stage.checker.refused.takeLinked() { watch.follow(linked: path) }
        guard listing.isIdle else { return }
        for news in stage.checker.refused.takeNews() {
            log.emit(
                .fileIgnored(path: settings.path.pushing(news.path), reason: news.refusal.reason(files: news.files)))
        }
    }
}

/// A change of a name below a watched folder, or of that folder.
///
/// A rename arrives as two halves, an exchange as four. The second half never arrives for a file that left the root, so
/// nothing waits for it. Both names are checked.
enum FileEvent: Sendable, Equatable {
    /// Something new has this name.
    case created(FilePath, isFolder: Bool)
    /// The file of this name was written to, or touched.
    case changed(FilePath, isFolder: Bool)
    case removed(FilePath, isFolder: Bool)
    /// The first half of a rename; `rename` is nil where the kernel does not link the halves (fanotify before Linux
    /// 5.17).
    case left(FilePath, isFolder: Bool, rename: UInt32?)
    /// The second half, with the number of the first.
    case reached(FilePath, isFolder: Bool, rename: UInt32)
    /// A folder to list: its mount went and uncovered it, or it has the name of one that left.
    case folder(FilePath)
    /// A file that `follow(linked:)` was asked to follow has lost a name, or has another owner.
    case linked(FilePath)
    /// The root itself is gone, with the reason.
    case lost(String)
    /// Events were lost: everything needs another listing.
    case overflow

    /// The name that changed.
    var name: FilePath? {
        switch self {
        case .created(let path, _), .changed(let path, _), .removed(let path, _), .left(let path, _, _),
            .reached(let path, _, _):
            path
        case .folder, .linked, .lost, .overflow: nil
        }
    }
}
