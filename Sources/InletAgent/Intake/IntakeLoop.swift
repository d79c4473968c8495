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
    var admission: AdmissionStage

    var inotify: Inotify
    /// With `mode: fanotify`, where that can be had.
    var marks: MarkedMounts?
    let ignore: IgnoreList
    let place: FolderPlace
    /// What was said of the removable volume last.
    var saidOfVolume: VolumeEnd?
    var volumeQuestion = VolumeQuestion()
    var earlier: EarlierFiles
    /// Folders that could not be listed since the last listing began.
    var unread = 0
    /// Whether anything was in a polled root at the last pass.
    var wasFilled = false
    var watches = WatchTable()
    var leftAlone = LeftAlone()
    var scan: TreeScan
    var modes = WatchModes([:])
    var polling: Polling
    var settler: Settler
    var units = UnitClock()
    /// Units whose marker was there at the last look.
    var markersFound: Set<FilePath> = []
    var nextRescan: ContinuousClock.Instant?
    var isLost = false
    var isLimited = false
    var isLimitSaid = false
    var isAnnounced = false
    /// When to look whether the root is still there, and since when the folder of its lock is gone.
    var rootCheck: (due: ContinuousClock.Instant, since: ContinuousClock.Instant)?
    var mustRescan = false
    /// Files that the listing has shown, and for which the settler has no room.
    var held: [FilePath] = []
    var lastPublished: ContinuousClock.Instant?
    var lastEvent: WallTime?
    var pressure = IntakePressure()
    var holders = FileHolders()
    var unsettledWatch: UnsettledWatch
    /// Before any file was ready.
    let started = ContinuousClock.now

    /// Before a unit that could not be closed is looked at again.
    static let retryPause = Duration.seconds(1)

    init(
        _ settings: WatchSettings, admitter: Admission, journal: Journal, log: EventLog, heartbeat: Heartbeat,
        hashing: BlockingPool, inbox: RootMailbox, tolerance: Int64, skipBefore: WallTime?, adoptBefore: WallTime?,
        openUnits: [Batch], places: Settler.Places, volume: Volume? = nil
    ) throws(SystemError) {
        self.settings = settings
        self.log = log
        self.heartbeat = heartbeat
        self.inbox = inbox
        inotify = settings.mode == .poll ? try Inotify(silentFor: nil) : try Inotify.orSilent()
        ignore = IgnoreList(user: settings.ignore)
        scan = TreeScan(root: settings.path, isRecursive: settings.recursive)
        polling = Polling(root: settings.path, isRecursive: settings.recursive, least: settings.poll)
        settler = Settler(settle: settings.settle, places: places)
        unsettledWatch = UnsettledWatch(after: settings.unsettledAfter)
        admission = AdmissionStage(
            root: settings.path, admitter: admitter, journal: journal, log: log, heartbeat: heartbeat, hashing: hashing,
            tolerance: tolerance, skipBefore: skipBefore, settle: settings.settle,
            settleEmpty: settings.settleEmpty, volume: volume,
            adoptBefore: adoptBefore, adoptCheck: settings.adoptCheck, rule: settings.sources)
        earlier = EarlierFiles(before: .now, admitter.board)
        place = FolderPlace(settings.path)
        for batch in openUnits { if let joined = admission.rule(batch) { join(joined) } }
    }

    mutating func run() async throws(SystemError) {
        chooseSource()
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
            admission.inspector.looking = turn.duration(to: .now)
            await admitDue()
            followRefused()
            // What is found is not what looking costs: reading and committing it makes no pause longer.
            polling.turnEnded(
                took: admission.inspector.looking, hasMore: settler.nextDeadline.map { $0 <= .now } ?? false)
            // Nothing more comes from a root that has gone: waiting here would miss its return.
            if isLost { return }
            try await closeUnits()
            await tellVolume()
            if let due = nextRescan, due <= .now { requestScan() }
            if mustRescan, scan.isIdle, held.isEmpty { startScan() }
            let deadline = deadline
            publish(beforeWaiting: deadline)
            _ = try inotify.wait(until: deadline, waker: inbox.waker, other: marks?.source)
        }
    }

    var deadline: ContinuousClock.Instant? {
        if held.isEmpty, mustRescan || !scan.isIdle || polling.isLooking { return .now }
        return [
            pressure.deadline(settler.nextDeadline), canListStuck ? settler.stuckFolders.nextListing : nil, nextRescan,
            nextPass, rootCheck?.due,
            canCloseUnits ? units.nextDeadline : nil,
            volumeDeadline,
        ].compactMap(\.self).min()
    }

    // MARK: - Events

    mutating func readEvents() throws(SystemError) {
        for record in try inotify.read() { handle(record) }
        try readMarks()
    }

    mutating func handle(_ record: InotifyRecord) {
        guard let directory = record.isOverflow ? "" : watches.path(of: record.watch) else {
            return handleLinked(record)
        }
        handle(record, in: directory)
    }

    mutating func handle(_ record: InotifyRecord, in directory: FilePath) {
        volumeQuestion.reopen()
        lastEvent = .now
        if record.isOverflow {
            log.emit(.watchOverflow(root: settings.path))
            return requestScan()
        }
        if record.mask.contains(.watchRemoved) { return watches.remove(record.watch) }
        if !record.mask.isDisjoint(with: [.selfDeleted, .selfMoved, .unmounted]) {
            // What the mount has covered is seen again.
            if directory.isEmpty { loseRoot() } else if record.mask.contains(.unmounted) { scan.add(directory) }
            return
        }
        guard let name = FilePath(bytes: record.nameBytes).lastComponent else { return }
        let path = directory.appending(name)
        if path == WatchLock.folder, !record.mask.isDisjoint(with: [.deleted, .movedFrom]) {
            rootCheck = (.now.advanced(by: Self.rootPause), rootCheck?.since ?? .now)
        }
        units.touch(path, at: .now)
        follow(record, path)
        if record.mask.contains(.isDirectory) {
            handleDirectory(path, record.mask)
        } else if record.mask.contains(.movedFrom), settler.isTracked(path) {
            // Two names that were exchanged are both left after they were reached: what has this one now is looked at.
            lookNow(path)
        } else if !record.mask.isDisjoint(with: [.deleted, .movedFrom]) {
            settler.forget(path)
            admission.inspector.refused.forget(path)
            admission.admitter.deriver?.close(path, kept: [])
        } else if !ignore.ignores(path, isDirectory: false) {
            notice(path)
        }
    }

    mutating func handleDirectory(_ path: FilePath, _ mask: InotifyRecord.Mask) {
        var isThere = !mask.isDisjoint(with: [.created, .movedTo])
        if mask.contains(.movedFrom) {
            do throws(SystemError) {
                if case .directory = try admission.inspector.look(at: path) { isThere = true }
            } catch {
                // It is listed, which says what is wrong with it.
                isThere = true
            }
            for watch in watches.remove(below: path) { inotify.remove(watch) }
            polling.remove(below: path)
            settler.forget(below: path)
            admission.admitter.deriver?.close(below: path)
        } else if mask.contains(.deleted) {
            // It was empty: what was in it has told of its own end, and the kernel has dropped its watch. Nothing is searched
            // for, so that removing a tree costs no search for each of its directories.
            watches.remove(path)
            polling.remove(path)
        }
        if isThere, settings.recursive, !ignore.ignores(path, isDirectory: true) { scan.add(path) }
    }

    /// The kernel tells of the end of a folder when nobody has anything in it open any more, and we have the lock, with or
    /// without a name. Where only that is gone, another is taken, once nothing more happens there: whoever removes the whole
    /// folder must find it empty. But not for long: without it another agent would take the same files.
    private mutating func checkRoot(since: ContinuousClock.Instant) {
        rootCheck = nil
        if FolderPlace(settings.path) != place { return loseRoot() }
        let isBusy = lastEvent.map { WallTime.now - $0 < Self.quietRoot } ?? false
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
                    path, look, isForeign: modes.isForeign(path), at: .now, wall: .now)
                {
                    if polling.count > 0 { lastEvent = .now }
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
