package import InletCore
internal import InletJournal
package import InletLinux
package import SystemPackage

/// Facts about a watched folder that need no watching, for `inlet check`, the status, and the wait for it.
package enum RootCheck {
    /// The fault of a path without a watched folder, and the remedy or the next step.
    package static func reason(_ path: FilePath) -> String {
        obstacle(at: path) ?? "not there yet; Inlet watches it as soon as it appears"
    }

    /// Whether something else is in its place, or it is unreadable: creating the folder does not help then.
    package static func isBlocked(_ path: FilePath) -> Bool { obstacle(at: path) != nil }

    /// The state of such a folder: an obstacle needs a person, a missing folder may still come.
    static func state(_ path: FilePath) -> RootStatus.State { obstacle(at: path).map { .failing($0) } ?? .missing }

    /// Why the path is not watched; nil where nothing is there, or a folder that can be watched.
    private static func obstacle(at path: FilePath) -> String? {
        do throws(SystemError) {
            switch try FileLook.look(at: path) {
            case .symlink:
                let target = DurableFile.target(ofLink: path).map { " to \($0.display)" } ?? ""
                return "a symlink\(target); name its target in 'path', because Inlet does not follow it"
            case .regular, .other: return "not a folder; Inlet watches it as soon as it is one"
            case .directory where isBehindLink(path):
                return "name the folder itself in 'path': "
                    + "the path has a symlink of another user, which Inlet does not follow"
            case .directory:
                return pseudo(path).map {
                    "on \($0), which holds no files to deliver; watch another folder"
                }
            case .missing: return nil
            }
        } catch {
            return "\(error)"
        }
    }

    /// Whether a folder is there that can be watched.
    static func isThere(_ path: FilePath) -> Bool {
        FileLook.folder(at: path) != nil && !isBehindLink(path) && pseudo(path) == nil
    }

    /// The name of its file system, if that is the kernel's own (proc, sysfs, cgroup…).
    package static func pseudo(_ path: FilePath) -> String? {
        FileSystemKind.known(of: path).flatMap { $0.isPseudo ? $0.name : nil }
    }

    /// Whether a symlink leads there that belongs neither to root nor to the agent's user.
    static func isBehindLink(_ path: FilePath) -> Bool {
        do throws(SystemError) {
            _ = try Folder(path)
            return false
        } catch {
            return error.isLinked
        }
    }

    /// The folder's present identity; nil without a folder. Blocks.
    static func mark(of root: FilePath) throws(SystemError) -> RootMark? {
        guard case .directory = try FileLook.look(at: root) else { return nil }
        let (volume, folder) = try VolumeFinder().place(of: root)
        return RootMark(volume: volume, folder: folder)
    }

    /// Whether the folder contains no user's file. Ignores the agent's own folder and the like. False for an unreadable
    /// folder.
    static func isEmpty(_ root: FilePath) -> Bool {
        let ignore = IgnoreList()
        do {
            var names = try DirectoryStream(root)
            while let entry = try names.next() {
                let path = FilePath(root: nil, [entry.name])
                if !ignore.ignores(path, isDirectory: entry.kind == .directory), entry.name.string != "lost+found" {
                    return false
                }
            }
            return true
        } catch {
            // The listing finds out.
            return false
        }
    }
}

/// Checks that a watched folder is the same as before, before its content counts.
extension RootRunner {
    private var root: FilePath { settings.path }

    /// Why the folder is not watched now; nil when it is right, which is remembered.
    func objection() async throws -> String? {
        if let outcome = shared.fleet.places.ownership(of: settings) { return objection(outcome) }
        if let why = foreignShare() {
            shared.roots.set(.guarded, root)
            return why
        }
        guard var now = try RootCheck.mark(of: root) else { return nil }
        let before = try await shared.journal.mark(of: root)
        let isEmpty = RootCheck.isEmpty(root)
        // It is still empty, as recorded.
        var asBefore = now
        asBefore.wasEmptied = before?.wasEmptied
        if isEmpty, asBefore == before { now = asBefore }
        // Without a change, the journal need not search a million delivered and deleted files.
        if before != now || isEmpty && now.wasEmptied != true {
            let holdsFiles = try await shared.journal.holdsFiles(of: root)
            let pause = RootMark.pauseReason(before: before, now: now, isEmpty: isEmpty, holdsFiles: holdsFiles)
            if let why = pause {
                shared.roots.set(.guarded, root)
                return why
            }
            if before != now { try await shared.journal.setMark(now, of: root, at: .now) }
        }
        shared.roots.set(.present(volume: nil), root)
        return nil
    }

    /// The same for a share: its marker tells whether it is the right folder.
    private func objection(_ outcome: RootOwnership.Outcome) -> String? {
        switch outcome {
        case .guarded(let why):
            shared.roots.set(.guarded, root)
            return why
        // Without its marker nobody knows whether its files are there.
        case .waits: return nil
        case .watch, .standBy:
            shared.roots.set(.present(volume: nil), root)
            return nil
        }
    }

    /// A share that other agents use has no lock for this one to respect: both would send the same files.
    private func foreignShare() -> String? {
        guard settings.place == nil, case .found = PlaceMarker.read(in: root) else { return nil }
        return
            "agents of a fleet share it, as \(PlaceMarker.path(in: root).display) says: add 'place' to this folder, or "
            + "delete that file once no fleet uses it"
    }

    /// Called when watching ends in order: an empty folder was seen becoming empty, so the next start need not ask. Not
    /// recorded for a folder without events.
    func remember(isTold: Bool) async {
        do {
            guard isTold, RootCheck.isEmpty(root), var now = try RootCheck.mark(of: root),
                try await shared.journal.mark(of: root) == now
            else { return }
            now.wasEmptied = true
            try await shared.journal.setMark(now, of: root, at: .now)
        } catch {
            // Without the record, the next start asks a person.
        }
    }

    /// Waits until something appears in the folder, or the loop is woken; not for ever, because a server reports no
    /// changes.
    ///
    /// - Parameter untold: the limit while the folder is unreadable.
    func wait(atMost pause: Duration, untold: Duration) async {
        let end = ContinuousClock.now.advanced(by: pause)
        do {
            let inotify = try Inotify.orSilent()
            // Without a watch it is checked again at the end of the time.
            _ = try? inotify.add(root)
            // A change before the watch would wake nobody.
            if try await objection() == nil { return }
            _ = try inotify.wait(until: end, waker: mailbox.waker)
        } catch {
            // Silence is right: the next check reports the fault.
            mailbox.waker.rest(until: min(end, .now.advanced(by: untold)))
        }
    }
}

/// Ensures that only one agent takes the files of a watched folder, unless several may (`shared: true`).
package struct RootOwnership: Sendable {
    private let settings: WatchSettings
    private let stateDirectory: FilePath

    package init(_ settings: WatchSettings, stateDirectory: FilePath) {
        (self.settings, self.stateDirectory) = (settings, stateDirectory)
    }

    private static let patience = Duration.seconds(5)
    /// An agent that releases the lock may be restarting: taking over at once would send its deliveries again.
    private static let grace = Duration.seconds(10)
    /// Between two checks of another agent's lock, where no event reports its release.
    private static let pause = Duration.seconds(30)

    /// Cards have no lock: they are never written to, and can be removed only while nothing on them is open. Shares
    /// have none: PostgreSQL decides who watches them.
    package static func isLocked(_ settings: WatchSettings) -> Bool {
        settings.pattern == nil && !settings.isShared && settings.place == nil
    }

    private var own: String { "inlet on \(ProcessSetup.hostName), state_dir \(stateDirectory.display)" }

    /// Creates the folder of the lock, or of a share's marker, in each watched folder where possible, before the agent
    /// gives up write access there.
    package static func prepare(_ watched: [WatchSettings]) {
        for watch in watched where isLocked(watch) || watch.place != nil {
            // Silence is right: without the folder there is no lock and no marker, as `inlet check` reports.
            _ = try? Folder(watch.path).folder(WatchLock.folder, making: 0o755, asFolderOwner: true)
        }
    }

    enum Outcome: Sendable {
        /// It may be watched, with the lock if there is one; `doubt` explains a missing lock.
        case watch(WatchLock?, doubt: String?)
        /// Another agent watches it, with its description.
        case standBy(String)
        /// A share that is not the right folder, or may not be; the reason.
        case guarded(String)
        /// A share for which PostgreSQL grants nothing now; the reason.
        case waits(String)
    }

    /// Blocks.
    func take() -> Outcome {
        guard Self.isLocked(settings) else { return .watch(nil, doubt: nil) }
        let (root, text) = (settings.path, "\(own), process \(ProcessSetup.processID)")
        do {
            let taken = try LoopThread.result(name: "lock", within: Self.patience) { () throws(SystemError) in
                try WatchLock.take(in: root, as: text)
            }
            switch taken {
            case .ours(let lock): return .watch(lock, doubt: nil)
            case .theirs(let holder): return .standBy(holder)
            case nil: return Self.unlocked("within \(DurationText.format(Self.patience))")
            }
        } catch  where error.isPermission || error.code == .readOnlyFileSystem {
            // A read-only folder has no lock; `inlet check` reports that.
            return .watch(nil, doubt: nil)
        } catch {
            return Self.unlocked("(\(error))")
        }
    }

    private static func unlocked(_ why: String) -> Outcome {
        let doubt =
            "watching it without its lock (.inlet/lock), which cannot be taken \(why); a second agent on it would go "
            + "unnoticed"
        return .watch(nil, doubt: doubt)
    }

    /// The agent that watches the folder now, other than the one of this state directory. Creates nothing. Blocks.
    package func stranger() throws(SystemError) -> String? {
        guard let holder = try WatchLock.holder(in: settings.path) else { return nil }
        return holder.hasPrefix("\(own), process ") ? nil : holder
    }

    /// Waits until the lock may be free, or something else needs a check. Blocks.
    func wait(_ waker: Waker) {
        let end = ContinuousClock.now.advanced(by: Self.pause)
        do {
            let inotify = try Inotify.orSilent()
            _ = try inotify.add(settings.path.pushing(WatchLock.folder))
            // A release before the watch would wake nobody.
            if try WatchLock.holder(in: settings.path) != nil { _ = try inotify.wait(until: end, waker: waker) }
            guard try WatchLock.holder(in: settings.path) == nil else { return }
            waker.rest(until: .now.advanced(by: Self.grace))
        } catch {
            // Silence is right: the next try reports the fault.
            waker.rest(until: end)
        }
    }
}
