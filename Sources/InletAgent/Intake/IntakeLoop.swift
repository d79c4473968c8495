internal import InletCore
internal import InletJournal
internal import InletLinux
internal import SystemPackage

/// The life of one present root: events, scans and settling, in one loop that owns all of their state. Its blocking calls
/// are on the root's own thread.
struct IntakeLoop: ~Copyable {
    private let settings: WatchSettings
    private let log: EventLog
    private let heartbeat: Heartbeat
    private let inbox: IntakeInbox
    private var admission: SettledFiles

    private let inotify: Inotify
    private let ignore: IgnoreList
    private var watches = WatchTable()
    private var scan: TreeScan
    private var settler: Settler
    private var nextRescan: ContinuousClock.Instant?
    private var isLost = false
    private var isLimited = false
    private var isLimitSaid = false
    private var isAnnounced = false
    private var mustRescan = false
    private var held: FilePath?
    private var lastPublished: ContinuousClock.Instant?

    /// Entries listed between two looks at the events.
    private static let scanBudget = 2000
    /// How often the tree is listed when there are not enough watches for it.
    private static let limitedRescan = Duration.seconds(60)
    /// Before a file that could not be admitted is looked at again.
    private static let retryPause = Duration.seconds(1)

    init(
        _ settings: WatchSettings, admitter: Admitter, journal: Journal, log: EventLog, heartbeat: Heartbeat,
        hashing: BlockingPool, inbox: IntakeInbox, tolerance: Int64, skipBefore: WallTime?
    ) throws(SystemError) {
        self.settings = settings
        self.log = log
        self.heartbeat = heartbeat
        self.inbox = inbox
        inotify = try Inotify()
        ignore = IgnoreList(user: settings.ignore)
        scan = TreeScan(root: settings.path, isRecursive: settings.recursive)
        settler = Settler(settle: settings.settle)
        admission = SettledFiles(
            root: settings.path, admitter: admitter, journal: journal, log: log, heartbeat: heartbeat, hashing: hashing,
            tolerance: tolerance, skipBefore: skipBefore)
    }

    mutating func run() async throws(SystemError) {
        startScan()
        while !inbox.isStopped, !isLost {
            heartbeat.beat(.intake(settings.path))
            for path in inbox.takeLooks() { observe(path) }
            if inbox.takeRescan() { requestScan() }
            for record in try inotify.read() { handle(record) }
            advanceScan()
            await admitDue()
            // Nothing more comes from a root that has gone: waiting here would miss its return.
            if isLost { return }
            if let due = nextRescan, due <= .now { requestScan() }
            if mustRescan, scan.isIdle, held == nil { startScan() }
            let deadline = deadline
            publish(beforeWaiting: deadline)
            _ = try inotify.wait(until: deadline, waker: inbox.waker)
        }
    }

    private var deadline: ContinuousClock.Instant? {
        if held == nil, mustRescan || !scan.isIdle { return .now }
        return [settler.nextDeadline, nextRescan].compactMap(\.self).min()
    }

    // MARK: - Events

    private mutating func handle(_ record: InotifyRecord) {
        if record.isOverflow {
            log.emit(.watchOverflow(root: settings.path))
            return requestScan()
        }
        guard let directory = watches.path(of: record.watch) else { return }
        if record.mask.contains(.watchRemoved) { return watches.remove(record.watch) }
        if !record.mask.isDisjoint(with: [.selfDeleted, .selfMoved, .unmounted]) {
            if directory.isEmpty { loseRoot() }
            return
        }
        guard let name = FilePath(bytes: record.name).lastComponent else { return }
        let path = directory.appending(name)
        if record.mask.contains(.isDirectory) {
            handleDirectory(path, record.mask)
        } else if !record.mask.isDisjoint(with: [.deleted, .movedFrom]) {
            settler.forget(path)
        } else if !ignore.ignores(path, isDirectory: false) {
            observe(path)
        }
    }

    private mutating func handleDirectory(_ path: FilePath, _ mask: InotifyRecord.Mask) {
        if mask.contains(.movedFrom) {
            for watch in watches.remove(below: path) { inotify.remove(watch) }
            settler.forget(below: path)
        } else if mask.contains(.deleted) {
            // It was empty: what was in it has told of its own end, and the kernel has dropped its watch. Nothing is searched
            // for, so that removing a tree costs no search for each of its directories.
            watches.remove(path)
        }
        if !mask.isDisjoint(with: [.created, .movedTo]), settings.recursive,
            !ignore.ignores(path, isDirectory: true)
        {
            scan.add(path)
        }
    }

    private mutating func loseRoot() {
        isLost = true
        scan.stop()
        log.emit(.watchLost(root: settings.path, reason: "removed, renamed or unmounted"))
    }

    private mutating func observe(_ path: FilePath) {
        let settle = admission.settle(for: path)
        if !settler.observe(path, settle: settle, at: .now) { scan.add(path.removingLastComponent()) }
    }

    // MARK: - Scans

    /// Lists the whole tree, after the scan that runs: one that starts over again and again would never see the end.
    private mutating func requestScan() {
        mustRescan = true
        nextRescan = nil
    }

    private mutating func startScan() {
        mustRescan = false
        isLimited = false
        scan.add("")
        nextRescan = settings.rescan.map { .now.advanced(by: $0 * Double.random(in: 0.75...1.25)) }
    }

    private mutating func advanceScan() {
        guard !scan.isIdle || held != nil else { return }
        if let path = held {
            guard settler.discover(path, settle: admission.settle(for: path), at: .now) else { return }
            held = nil
        }
        for _ in 0..<Self.scanBudget {
            switch scan.next(ignore) {
            case .enter(let directory): enter(directory)
            case .file(let path):
                if !settler.discover(path, settle: admission.settle(for: path), at: .now) {
                    // No room: the scan waits until files have settled, so that memory stays bounded.
                    held = path
                    return
                }
            case .irregular(let path): admission.noteIrregular(path)
            case .trouble(let directory, let error): tell(directory, error)
            case .finished: return finishScan()
            }
        }
    }

    /// Watch first, then list: what is created in between shows up in one of the two.
    private mutating func enter(_ directory: FilePath) {
        let path = settings.path.pushing(directory)
        do throws(SystemError) {
            watches.add(try inotify.add(path), directory)
        } catch {
            if error.isWatchLimit {
                if !isLimitSaid { log.emit(.watchLimit(root: settings.path, reason: "\(error)")) }
                isLimitSaid = true
                isLimited = true
            } else if error.isMissing {
                if directory.isEmpty { loseRoot() }
                return
            } else {
                return tell(directory, error)
            }
        }
        if case .trouble(let directory, let error)? = scan.open() { tell(directory, error) }
    }

    private mutating func finishScan() {
        if isLimited {
            // What is not watched is found by listing, more often than usual.
            let soon = ContinuousClock.now.advanced(by: Self.limitedRescan)
            nextRescan = min(nextRescan ?? soon, soon)
        }
        guard !isAnnounced else { return }
        isAnnounced = true
        log.emit(
            .watchAdded(
                root: settings.path, directories: watches.count, writerCheck: WriterCheck.describe(settings.path)))
    }

    private func tell(_ directory: FilePath, _ error: SystemError) {
        log.emit(.fileTrouble(path: settings.path.pushing(directory), reason: "\(error)"))
    }

    // MARK: - Settling

    private mutating func admitDue() async {
        let due = settler.due(at: .now)
        guard !due.isEmpty else { return }
        for (path, verdict) in await admission.consider(due) {
            switch verdict {
            case .look(let look):
                if case .settled(let identity) = settler.judge(path, look, at: .now, wall: .now) {
                    admission.queue(path, identity)
                }
            case .known: settler.forget(path)
            }
        }
        for path in await admission.admitQueued() {
            // Not at once, whatever the settle time: what is in the way needs a moment.
            let settle = max(admission.settle(for: path) ?? settings.settle, Self.retryPause)
            _ = settler.observe(path, settle: settle, at: .now)
        }
    }

    /// Shows the state before a real wait, and now and then while busy: sorting what waits is not free.
    private mutating func publish(beforeWaiting deadline: ContinuousClock.Instant?) {
        let now = ContinuousClock.now
        let isBusy = deadline.map { $0 < now.advanced(by: .milliseconds(20)) } ?? false
        if isBusy, let last = lastPublished, last.duration(to: now) < .seconds(1) { return }
        lastPublished = now
        var status = IntakeStatus(root: settings.path, state: .watching)
        status.directories = watches.count
        status.settling = settler.count
        status.ignored = admission.ignored
        status.unsettled = settler.oldest(5).map { (settings.path.pushing($0.path), $0.isBusy) }
        inbox.publish(status)
    }
}
