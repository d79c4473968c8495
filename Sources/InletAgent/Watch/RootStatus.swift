package import InletCore
package import InletLinux
package import SystemPackage

/// How a root stands, for `status`.
package struct IntakeStatus: Sendable {
    package enum State: Sendable, Equatable {
        case starting
        case missing
        case failing(String)
        case watching
        /// Not what was watched before: paused until it is, or a person says that it is right so.
        case guarded(String)
        /// Another agent has its lock, which says this of itself: we take over when that one ends.
        case standby(String)
    }

    /// How changes are found out.
    package enum Mode: String, Sendable, CaseIterable {
        case inotify, fanotify, poll
        /// Some of its folders are polled, the kernel tells of the others.
        case mixed
    }

    package var root: FilePath
    package var state: State
    /// nil before any folder of it was entered.
    package var mode: Mode?
    /// Of inotify; with fanotify a whole file system needs one or two.
    package var watches = 0
    /// When the kernel told of anything in it, or, where it is polled, a file was found complete.
    package var lastEvent: WallTime?
    package var directories = 0
    /// Those of them that are looked at again and again, because nothing tells of their changes.
    package var polled = 0
    package var settling = 0
    package var ignored = 0
    /// Files that cannot be taken, with folders that cannot be listed, and what one of them came to.
    package var stuck: (count: Int, why: String)?
    /// The files that have waited longest to be complete, and some of the units that are open.
    package var unsettled: [Unsettled] = []

    package struct Unsettled: Sendable {
        package var path: FilePath
        /// Whether a writer holds it.
        package var busy: Bool
        /// What it waits for besides that and its quiet time.
        package var why: String?
        /// The writer, where `/proc` shows it.
        package var holder: OpenWriters.Holder?
        /// How long it has waited; nil for what stands for many files.
        package var waiting: Duration?
    }
}

/// When a root's status was shown last, and what is remembered for it.
struct StatusPublisher: Sendable {
    var last: ContinuousClock.Instant?
    var holders = FileHolders()
    var unsettled: UnsettledWatch
}

/// Files that are not complete yet, and what keeps them.
extension RootLoop {
    /// Shows the state before a real wait, and now and then while busy: sorting what waits is not free.
    mutating func publish(beforeWaiting deadline: ContinuousClock.Instant?) {
        let now = ContinuousClock.now
        let isBusy = deadline.map { $0 < now.advanced(by: .milliseconds(20)) } ?? false
        if isBusy, let last = publisher.last, last.duration(to: now) < .seconds(1) { return }
        publisher.last = now
        if !isBusy, let (files, bytes) = admission.takeAdopted() {
            log.emit(.watchAdopted(root: settings.path, files: files, bytes: bytes))
        }
        // Before the first listing has ended nobody knows what is there.
        var status = IntakeStatus(root: settings.path, state: listing.hasEnded ? .watching : .starting)
        watch.describe(&status)
        status.settling = settler.count
        status.ignored = admission.ignored
        status.unsettled = unsettledFiles(at: now) + stuckFolders(at: now) + openUnits
        status.stuck = settler.stuckFolders.sum.map { ($0.count, $0.why) }
        mailbox.publish(status)
    }

    /// How many the status shows, and how many are told of when they wait for long.
    private static let shown = 10
    private static let told = 100
    private static let shownFolders = 5

    /// Those that have waited longest. One that has kept waiting for a quarter of an hour is also logged, once.
    mutating func unsettledFiles(at now: ContinuousClock.Instant) -> [IntakeStatus.Unsettled] {
        let waiting = settler.oldest(Self.told)
        let holders = publisher.holders.holders(of: waiting, below: settings.path, at: now)
        for file in publisher.unsettled.overdue(waiting, at: now) {
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
