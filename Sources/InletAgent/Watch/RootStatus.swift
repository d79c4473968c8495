package import InletCore
package import InletLinux
package import SystemPackage

/// The status of a root, for `inlet status`.
package struct RootStatus: Sendable {
    package enum State: Sendable, Equatable {
        case starting
        case missing
        case failing(String)
        case watching
        /// Not the folder that was watched before: paused until it is, or a person accepts it.
        case guarded(String)
        /// Another agent lists it, and why: this one takes over when that one ends.
        case standby(String)

        /// Before the reason of `guarded` for a share that only waits until its fleet grants it.
        package static let fleetWait = "waits: "

        /// Whether it is a share that continues by itself.
        package var waitsForFleet: Bool {
            if case .guarded(let why) = self { why.hasPrefix(Self.fleetWait) } else { false }
        }
    }

    package var root: FilePath
    /// The share that the folder is.
    package var place: String?
    package var state: State
    /// nil before any folder of it was entered.
    package var mode: WatchMode?
    /// inotify's watches; with fanotify a whole file system needs one or two marks.
    package var watches = 0
    /// The time of the last event, or of the last complete file in a polled root.
    package var lastEvent: WallTime?
    package var directories = 0
    /// The polled ones: no event reports their changes.
    package var polled = 0
    package var settling = 0
    package var ignored = 0
    /// Files that cannot be taken, and folders that cannot be listed; with one reason.
    package var stuck: (count: Int, why: String)?
    /// The files that have waited longest to be complete, and some of the open units.
    package var unsettled: [Unsettled] = []

    /// When the last file of it was admitted; nil before any, and for a folder of a pattern.
    package var lastFile: WallTime?
    /// How often a file is to come; nil where nothing is expected.
    package var expect: Duration?
    /// Since when no file came, once that is longer than `expect`.
    package var quietSince: WallTime?

    package struct Unsettled: Sendable {
        package var path: FilePath
        /// Whether a writer holds it.
        package var busy: Bool
        /// The reason besides a writer and its quiet time.
        package var why: String?
        /// The writer, where `/proc` shows it.
        package var holder: OpenWriters.WriterProcess?
        /// How long it has waited; nil for an entry that stands for many files.
        package var waiting: Duration?
    }
}

/// The incomplete files, with their reasons.
extension RootLoop {
    /// Shows the state before a real wait, and now and then while busy: sorting the waiting files has a cost.
    mutating func publish(beforeWaiting deadline: ContinuousClock.Instant?) {
        let now = ContinuousClock.now
        let isBusy = deadline.map { $0 < now.advanced(by: .milliseconds(20)) } ?? false
        if isBusy, let last = lastShown, last.duration(to: now) < .seconds(1) { return }
        lastShown = now
        if !isBusy, let (files, bytes) = stage.takeAdopted() {
            log.emit(.watchAdopted(root: settings.path, files: files, bytes: bytes))
        }
        // Before the first listing has ended the content is unknown.
        var status = RootStatus(root: settings.path, state: listing.hasEnded ? .watching : .starting)
        watch.describe(&status)
        status.settling = settler.count
        status.ignored = stage.checker.ignored
        status.unsettled = unsettledFiles(at: now) + stuckFolders(at: now) + openUnits
        status.stuck = settler.stuckFolders.sum.map { ($0.count, $0.why) }
        mailbox.publish(status)
    }

    /// How many the status shows, and how many are logged after a long wait.
    private static let shown = 10
    private static let told = 100
    private static let shownFolders = 5

    /// The files that have waited longest. A wait of 15 min is also logged, once.
    mutating func unsettledFiles(at now: ContinuousClock.Instant) -> [RootStatus.Unsettled] {
        let waiting = settler.oldest(Self.told)
        let writers = findWriters(of: waiting, at: now)
        for file in settler.overdue(waiting, after: settings.unsettledAfter, at: now) {
            var reason = file.reason ?? "it has changed since it was seen"
            if let holder = writers[file.path] { reason += holder.words }
            log.emit(
                .fileUnsettled(
                    path: settings.path.pushing(file.path), reason: reason, waiting: file.since.duration(to: now)))
        }
        return waiting.prefix(Self.shown).map { file in
            RootStatus.Unsettled(
                path: settings.path.pushing(file.path), busy: file.isBusy, why: file.isBusy ? nil : file.reason,
                holder: file.isBusy ? writers[file.path] : nil, waiting: file.since.duration(to: now))
        }
    }

    /// Before a writer that is just finishing is looked for.
    private static let patience = Duration.seconds(2)
    /// At least this long between two searches for writers, and 200 times the cost of one: it reads all processes.
    private static let pause = Duration.seconds(10)

    /// The known writers of `waiting`, for people. Blocks now and then.
    private mutating func findWriters(
        of waiting: [Settler.Waiting], at now: ContinuousClock.Instant
    ) -> [FilePath: OpenWriters.WriterProcess] {
        let busy = waiting.filter { $0.isBusy && $0.since.duration(to: now) >= Self.patience }.map(\.path)
        if !busy.isEmpty, let next = writers.next, now < next {
            return writers.known.filter { busy.contains($0.key) }
        }
        writers.known = [:]
        if busy.isEmpty { return [:] }
        // One search for all of them: each has a writer, and its own probe would search again.
        let files = busy.compactMap { path in
            let file = RootedPath(settings.path, path)
            return FileLook.file(at: file).map { (path, identity: $0, whole: file.whole) }
        }
        let found = WriterProbe.holders(of: files.map { ($0.identity, $0.whole) })
        for (file, holder) in zip(files, found) { writers.known[file.0] = holder }
        writers.next = now.advanced(by: max(Self.pause, now.duration(to: .now) * 200))
        return writers.known
    }

    /// Folders with files that cannot be taken, each logged once.
    mutating func stuckFolders(at now: ContinuousClock.Instant) -> [RootStatus.Unsettled] {
        for report in settler.stuckFolders.untold(at: now) {
            log.emit(.fileError(path: settings.path.pushing(report.folder), reason: report.reason))
        }
        return settler.stuckFolders.most(Self.shownFolders).map { report in
            RootStatus.Unsettled(path: settings.path.pushing(report.folder), busy: false, why: report.reason)
        }
    }
}

extension OpenWriters.WriterProcess {
    /// Behind `open for writing`.
    var words: String { (isMapping ? ": mapped by " : " by ") + text }
}

extension RootCheck {
    /// Whether the kernel reports writers in a root, in words: `on`, or `off: why`. Leases need ownership of the file
    /// or CAP_LEASE, and a local file system.
    package static func writerCheck(_ root: FilePath) -> String {
        if let kind = FileSystemKind.known(of: root), kind.isNetwork {
            return "off: \(kind.name) does not show writers on other machines; the settle time still applies, and "
                + "/proc shows writers on this one"
        }
        // Root has it, except in containers without it.
        if ProcessSetup.mayLeaseAll { return "on" }
        return "on for own files only: other owners' files need CAP_LEASE, which the systemd unit grants; "
            + "/proc shows some of their writers"
    }
}

/// Whether others can make Inlet send a file that only Inlet may read, by a hard link in a watched folder.
extension RootCheck {
    /// The warning about a watched folder; nil where its rule, the kernel or its permissions prevent this.
    ///
    /// - Parameters:
    ///   - isProtected: the value of `fs.protected_hardlinks`; nil where it is unreadable, and assumed to be the
    ///     default.
    ///   - folder: the folder's owner and permission bits.
    ///   - user: the agent's.
    package static func linkCaution(
        _ rule: SourceRule, isProtected: Bool?, folder: (owner: UInt32, mode: UInt32), user: UInt32
    ) -> String? {
        // The folder's owner may grant himself the right to write there.
        let isOthers = folder.mode & 0o022 != 0 || ![0, user].contains(folder.owner)
        guard rule.isOff, isProtected == false, isOthers else { return nil }
        return
            "fs.protected_hardlinks is 0, and others may write here: Inlet would send a hard link to a file that only "
            + "Inlet may read"
    }

    package static let linkRemedy =
        "set the sysctl fs.protected_hardlinks to 1, name the 'owners' of files that Inlet takes, or refuse 'hard_links'"

    /// The same for the folder at `path`, now. Blocks.
    package static func linkCaution(_ rule: SourceRule, at path: FilePath) -> String? {
        // Other checks report an unreadable folder.
        guard let folder = try? FileOwner.ofFolder(path) else { return nil }
        return linkCaution(rule, isProtected: FileOwner.protectsLinks(), folder: folder, user: ProcessSetup.userID)
    }
}
