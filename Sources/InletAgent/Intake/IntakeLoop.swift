internal import InletCore
internal import InletJournal
internal import InletLinux
internal import SystemPackage

/// The life of one present root: events, scans and settling, in one loop that owns all of their state. Its blocking calls
/// are on the root's own thread.
struct IntakeLoop: ~Copyable {
    let settings: WatchSettings
    let log: EventLog
    let heartbeat: Heartbeat
    let inbox: RootMailbox
    var admission: SettledFiles

    var watch: RootWatch
    let ignore: IgnoreList
    let place: FolderPlace
    /// What was said of the removable volume last.
    var saidOfVolume: VolumeEnd?
    var volumeQuestion = VolumeQuestion()
    var earlier: EarlierFiles
    /// Folders that could not be listed since the last listing began.
    var unread = 0
    /// Mounts of the kernel's own file systems that were said.
    var passedOver: Set<FilePath> = []
    var scan: TreeScan
    var settler: Settler
    var units = UnitClock()
    /// Units whose marker was there at the last look.
    var markersFound: Set<FilePath> = []
    var nextRescan: ContinuousClock.Instant?
    var isLost = false
    var isAnnounced = false
    /// When to look whether the root is still there, and since when the folder of its lock is gone.
    var rootCheck: (due: ContinuousClock.Instant, since: ContinuousClock.Instant)?
    var mustRescan = false
    /// Files that the listing has shown, and for which the settler has no room.
    var held: [FilePath] = []
    var lastPublished: ContinuousClock.Instant?
    var pressure = IntakePressure()
    var holders = FileHolders()
    var unsettledWatch: UnsettledWatch
    /// Before any file was ready.
    let started = ContinuousClock.now

    /// Before a unit that could not be closed is looked at again.
    static let retryPause = Duration.seconds(1)

    init(
        _ settings: WatchSettings, admitter: Admitter, journal: Journal, log: EventLog, heartbeat: Heartbeat,
        hashing: BlockingPool, inbox: RootMailbox, tolerance: Int64, skipBefore: WallTime?, adoptBefore: WallTime?,
        openUnits: [Batch], places: Settler.Places, volume: Volume? = nil
    ) throws(SystemError) {
        self.settings = settings
        self.log = log
        self.heartbeat = heartbeat
        self.inbox = inbox
        ignore = IgnoreList(user: settings.ignore)
        watch = try RootWatch(settings, ignore: ignore, log: log)
        scan = TreeScan(root: settings.path, isRecursive: settings.recursive)
        settler = Settler(settle: settings.settle, places: places)
        unsettledWatch = UnsettledWatch(after: settings.unsettledAfter)
        admission = SettledFiles(
            root: settings.path, admitter: admitter, journal: journal, log: log, heartbeat: heartbeat, hashing: hashing,
            tolerance: tolerance, skipBefore: skipBefore, settle: settings.settle,
            settleEmpty: settings.settleEmpty, volume: volume,
            adoptBefore: adoptBefore, adoptCheck: settings.adoptCheck, rule: settings.sources)
        earlier = EarlierFiles(before: .now, admitter.board)
        place = FolderPlace(settings.path)
        for batch in openUnits { if let joined = admission.rule(batch) { join(joined) } }
    }

    mutating func run() async throws(SystemError) {
        watch.begin()
        startScan()
        while !inbox.isStopped, !isLost {
            heartbeat.beat(.intake(settings.path))
            settler.note(.now, wall: .now)
            for path in inbox.takeLooks() { notice(path) }
            for path in inbox.takeDerived() { lookNow(path) }
            if inbox.takeRescan() { requestScan() }
            if inbox.takeEnded() { volumeQuestion.reopen() }
            if inbox.takeMountChange() {
                if FolderPlace(settings.path) != place { return loseRoot() }
                followMounts()
            }
            try readEvents()
            if let check = rootCheck, check.due <= .now { checkRoot(since: check.since) }
            if canListStuck { for folder in settler.stuckFolders.due(at: .now) { scan.add(folder) } }
            try await advanceScan()
            let turn = ContinuousClock.now
            advancePoll()
            admission.looking = turn.duration(to: .now)
            await admitDue()
            followRefused()
            // What is found is not what looking costs: reading and committing it makes no pause longer.
            watch.turnEnded(took: admission.looking, hasMore: settler.nextDeadline.map { $0 <= .now } ?? false)
            // Nothing more comes from a root that has gone: waiting here would miss its return.
            if isLost { return }
            try await closeUnits()
            await tellVolume()
            if let due = nextRescan, due <= .now { requestScan() }
            if mustRescan, scan.isIdle, held.isEmpty { startScan() }
            let deadline = deadline
            publish(beforeWaiting: deadline)
            try watch.wait(until: deadline, or: inbox.waker)
        }
    }

    var deadline: ContinuousClock.Instant? {
        if held.isEmpty, mustRescan || !scan.isIdle || watch.isPolling { return .now }
        return [
            pressure.deadline(settler.nextDeadline), canListStuck ? settler.stuckFolders.nextListing : nil, nextRescan,
            nextPass, rootCheck?.due,
            canCloseUnits ? units.nextDeadline : nil,
            volumeDeadline,
        ].compactMap(\.self).min()
    }

    // MARK: - Events

    mutating func readEvents() throws(SystemError) {
        for event in try watch.read() { apply(event) }
    }

    private mutating func apply(_ event: FileEvent) {
        if let path = event.name {
            volumeQuestion.reopen()
            units.touch(path, at: .now)
        }
        switch event {
        case .created(let path, let isFolder):
            admission.renames.forget(path)
            if isFolder { list(path) } else { noticeUnlessIgnored(path) }
        case .changed(let path, let isFolder):
            if !isFolder { noticeUnlessIgnored(path) }
        case .left(let path, let isFolder, let rename):
            noticeEnd(of: path)
            if let rename { leaves(path, isFolder: isFolder, rename) }
            if isFolder { forget(below: path) } else if settler.isTracked(path) { lookNow(path) } else { forget(path) }
        case .reached(let path, let isFolder, let rename):
            admission.renames.reaches(path, cookie: rename, isFolder: isFolder)
            if isFolder { list(path) } else { noticeUnlessIgnored(path) }
        case .removed(let path, let isFolder):
            noticeEnd(of: path)
            if !isFolder { forget(path) }
        case .folder(let path):
            volumeQuestion.reopen()
            list(path)
        case .linked(let path): lookNow(path)
        case .lost(let reason): loseRoot(reason)
        case .overflow:
            volumeQuestion.reopen()
            log.emit(.watchOverflow(root: settings.path))
            requestScan()
        }
    }

    /// Copy programs end each file by a rename; no journal knows what it was called before.
    private mutating func leaves(_ path: FilePath, isFolder: Bool, _ rename: UInt32) {
        if ignore.ignores(path, isDirectory: isFolder), admission.renames.origins(of: path).isEmpty { return }
        admission.renames.leaves(path, cookie: rename)
    }

    private mutating func list(_ folder: FilePath) {
        if settings.recursive, !ignore.ignores(folder, isDirectory: true) { scan.add(folder) }
    }

    private mutating func noticeUnlessIgnored(_ path: FilePath) {
        if !ignore.ignores(path, isDirectory: false) { notice(path) }
    }

    private mutating func forget(_ path: FilePath) {
        settler.forget(path)
        admission.refused.forget(path)
        admission.admitter.deriver?.close(path, kept: [])
    }

    private mutating func forget(below folder: FilePath) {
        settler.forget(below: folder)
        admission.admitter.deriver?.close(below: folder)
    }

    private mutating func noticeEnd(of path: FilePath) {
        if path == WatchLock.folder { rootCheck = (.now.advanced(by: Self.rootPause), rootCheck?.since ?? .now) }
    }

    /// The kernel tells of the end of a folder when nobody has anything in it open any more, and we have the lock, with or
    /// without a name. Where only that is gone, another is taken, once nothing more happens there: whoever removes the whole
    /// folder must find it empty. But not for long: without it another agent would take the same files.
    private mutating func checkRoot(since: ContinuousClock.Instant) {
        rootCheck = nil
        if FolderPlace(settings.path) != place { return loseRoot() }
        let isBusy = watch.lastEvent.map { WallTime.now - $0 < Self.quietRoot } ?? false
        if isBusy, since.duration(to: .now) < Self.longestUnlocked {
            rootCheck = (.now.advanced(by: Self.rootPause), since)
        } else if RootHold.isLocked(settings) {
            loseRoot("the folder of its lock (.inlet) was removed")
        }
    }

    private static let rootPause = Duration.seconds(1)
    private static let quietRoot = Duration.seconds(5)
    private static let longestUnlocked = Duration.seconds(60)

    mutating func loseRoot(_ reason: String = "removed, renamed or unmounted") {
        if isLost { return }
        isLost = true
        scan.stop()
        log.emit(.watchLost(root: settings.path, reason: reason))
    }

    /// A sign of life of a file; a marker is one of the file or unit that it is for.
    mutating func notice(_ path: FilePath) {
        if let unit = admission.unitMarked(by: path) {
            units.markerSeen(in: unit, at: .now)
        } else {
            observe(admission.fileMarked(by: path) ?? path)
        }
    }

    /// Something is there, or may be: it is due at once, as if it had been found by a scan.
    mutating func lookNow(_ path: FilePath) {
        settler.forget(path)
        if !settler.discover(path, settle: admission.settle(for: path), at: .now) {
            scan.add(path.removingLastComponent())
        }
    }

    mutating func observe(_ path: FilePath) {
        let settle = admission.settle(for: path)
        if !settler.observe(path, settle: settle, at: .now) { scan.add(path.removingLastComponent()) }
    }

    // MARK: - Settling

    mutating func admitDue() async {
        let due = await dueNow()
        guard !due.isEmpty else { return }
        volumeQuestion.reopen()
        let considered = await admission.consider(due)
        if losesPassing() { return }
        for (companion, main) in admission.takeWakes()
        where !settler.wake(main, for: companion, settle: admission.settle(for: main), at: .now) {
            requestScan()
        }
        for (path, verdict) in considered {
            switch verdict {
            case .look(let look):
                if case .settled(let identity) = settler.judge(
                    path, look, isForeign: watch.isForeign(path), at: .now, wall: .now)
                {
                    watch.noteSettled()
                    admission.queue(path, identity)
                }
            case .known: settler.forget(path)
            }
        }
        await apply(admission.admitQueued())
    }

    /// What became of files that were to be admitted.
    mutating func apply(_ round: AdmissionRound) async {
        for path in round.companions { settler.forget(path) }
        for unit in round.units { join(unit) }
        for (path, why) in round.later {
            settler.putBack(path, settle: admission.settle(for: path), why: why, at: .now)
        }
        await putBack(round.refused)
    }
}
