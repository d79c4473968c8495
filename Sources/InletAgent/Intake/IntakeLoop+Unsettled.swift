internal import InletCore
internal import InletLinux
internal import SystemPackage

/// Files that are not complete yet, and what keeps them.
extension IntakeLoop {
    /// Shows the state before a real wait, and now and then while busy: sorting what waits is not free.
    mutating func publish(beforeWaiting deadline: ContinuousClock.Instant?) {
        let now = ContinuousClock.now
        let isBusy = deadline.map { $0 < now.advanced(by: .milliseconds(20)) } ?? false
        if isBusy, let last = lastPublished, last.duration(to: now) < .seconds(1) { return }
        lastPublished = now
        if !isBusy, let (files, bytes) = admission.takeAdopted() {
            log.emit(.watchAdopted(root: settings.path, files: files, bytes: bytes))
        }
        // Before the first listing has ended nobody knows what is there.
        var status = IntakeStatus(root: settings.path, state: isAnnounced ? .watching : .starting)
        watch.describe(&status)
        status.settling = settler.count
        status.ignored = admission.ignored
        status.unsettled = unsettledFiles(at: now) + stuckFolders(at: now) + openUnits
        status.stuck = settler.stuckFolders.sum.map { ($0.count, $0.why) }
        inbox.publish(status)
    }

    /// How many the status shows, and how many are told of when they wait for long.
    private static let shown = 10
    private static let told = 100
    private static let shownFolders = 5

    /// Those that have waited longest. One that has kept waiting for a quarter of an hour is also logged, once.
    mutating func unsettledFiles(at now: ContinuousClock.Instant) -> [IntakeStatus.Unsettled] {
        let waiting = settler.oldest(Self.told)
        let holders = holders.holders(of: waiting, below: settings.path, at: now)
        for file in unsettledWatch.overdue(waiting, at: now) {
            var reason = file.reason ?? "it has changed since it was seen"
            if let holder = holders[file.path] { reason += holder.words }
            log.emit(
                .fileUnsettled(
                    path: settings.path.pushing(file.path), reason: reason, waiting: file.since.duration(to: now)))
        }
        return waiting.prefix(Self.shown).map { file in
            IntakeStatus.Unsettled(
                path: settings.path.pushing(file.path), busy: file.isBusy, why: file.isBusy ? nil : file.reason,
                holder: file.isBusy ? holders[file.path] : nil, waiting: file.since.duration(to: now))
        }
    }

    /// Whether what was asked for before has been listed: what it found tells how soon it is to be listed again.
    var canListStuck: Bool { scan.isIdle && held.isEmpty }

    /// Folders with files that cannot be taken, each logged once.
    mutating func stuckFolders(at now: ContinuousClock.Instant) -> [IntakeStatus.Unsettled] {
        for report in settler.stuckFolders.untold(at: now) {
            log.emit(.fileTrouble(path: settings.path.pushing(report.folder), reason: report.reason))
        }
        return settler.stuckFolders.most(Self.shownFolders).map { report in
            IntakeStatus.Unsettled(path: settings.path.pushing(report.folder), busy: false, why: report.reason)
        }
    }
}

extension OpenWriters.Holder {
    /// Behind `open for writing`.
    var words: String { (isMapping ? ": mapped by " : " by ") + text }
}
