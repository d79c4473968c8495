package import InletCore
internal import InletJournal
package import InletLinux
package import SystemPackage

/// What can be told of a watched folder without watching it, for `inlet check`, the status, and who waits for it.
package enum RootCheck {
    /// What is wrong with a path that no watched folder is at, and what becomes of it.
    package static func reason(_ path: FilePath) -> String {
        obstacle(at: path) ?? "not there yet; Inlet watches it as soon as it appears"
    }

    /// Whether something else is in its place, or it cannot be looked at: making the folder does not help then.
    package static func isBlocked(_ path: FilePath) -> Bool { obstacle(at: path) != nil }

    /// How such a folder stands: what is in its place needs a person, and what is not there may still come.
    static func state(_ path: FilePath) -> RootStatus.State { obstacle(at: path).map { .failing($0) } ?? .missing }

    /// Why what is at the path is not watched; nil where nothing is, or what can be.
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

    /// The name of the file system that it is on, where that is the kernel's own (proc, sysfs, cgroup…).
    package static func pseudo(_ path: FilePath) -> String? {
        FileSystemKind.known(of: path).flatMap { $0.isPseudo ? $0.name : nil }
    }

    /// Whether a symlink leads there that somebody else than root or our own user has made.
    static func isBehindLink(_ path: FilePath) -> Bool {
        do throws(SystemError) {
            _ = try Folder(path)
            return false
        } catch {
            return error.isLinked
        }
    }

    /// By what the folder is recognised now; nil when there is none. Blocks.
    static func mark(of root: FilePath) throws(SystemError) -> RootMark? {
        guard case .directory = try FileLook.look(at: root) else { return nil }
        let (volume, folder) = try VolumeFinder().place(of: root)
        return RootMark(volume: volume, folder: folder)
    }

    /// Whether nothing is in the folder but what is never a user's, such as our own folder. False where that cannot be seen.
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
            // What is there is found out by the listing.
            return false
        }
    }
}

/// Looks whether a watched folder is the one that it was, before anything of it is believed.
extension RootRunner {
    private var root: FilePath { settings.path }

    /// Why the folder is not to be watched now; nil when it is as it should be, which is remembered.
    func objection() async throws -> String? {
        guard var now = try RootCheck.mark(of: root) else { return nil }
        let before = try await shared.journal.mark(of: root)
        let isEmpty = RootCheck.isEmpty(root)
        // It is still empty, as was noted when it became so.
        var asBefore = now
        asBefore.wasEmptied = before?.wasEmptied
        if isEmpty, asBefore == before { now = asBefore }
        // Where nothing has changed, the journal need not look through a million files that were delivered and deleted.
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

    /// Called when watching ends in order: an empty folder was then seen to become so, and the next start need not ask. Not noted of
    /// a folder whose changes raise no events.
    func remember(isTold: Bool) async {
        do {
            guard isTold, RootCheck.isEmpty(root), var now = try RootCheck.mark(of: root),
                try await shared.journal.mark(of: root) == now
            else { return }
            now.wasEmptied = true
            try await shared.journal.setMark(now, of: root, at: .now)
        } catch {
            // Without the note, the next start asks a person.
        }
    }

    /// Waits until something appears in the folder, or the loop is woken; not for ever, because a server does not tell what
    /// appears.
    ///
    /// - Parameter untold: how long while the folder cannot be looked at.
    func wait(atMost pause: Duration, untold: Duration) async {
        let end = ContinuousClock.now.advanced(by: pause)
        do {
            let inotify = try Inotify.orSilent()
            // Without a watch it is looked at again when the time is over.
            _ = try? inotify.add(root)
            // What came before the watch did would wake nobody.
            if try await objection() == nil { return }
            _ = try inotify.wait(until: end, waker: mailbox.waker)
        } catch {
            // Silence is right: it is looked at again, which says what is wrong.
            mailbox.waker.rest(until: min(end, .now.advanced(by: untold)))
        }
    }
}

/// Sees to it that one agent alone takes the files of a watched folder, unless several are meant to (`shared: true`).
package struct RootOwnership: Sendable {
    private let settings: WatchSettings
    private let stateDirectory: FilePath

    package init(_ settings: WatchSettings, stateDirectory: FilePath) {
        (self.settings, self.stateDirectory) = (settings, stateDirectory)
    }

    private static let patience = Duration.seconds(5)
    /// An agent that lets go may only be restarting: taking over at once would send again what it has delivered.
    private static let grace = Duration.seconds(10)
    /// Between two looks whether another agent still holds the lock, where no event tells.
    private static let pause = Duration.seconds(30)

    /// Cards have no lock: they are never written to, and can be taken out only while nothing on them is open.
    package static func isLocked(_ settings: WatchSettings) -> Bool { settings.pattern == nil && !settings.isShared }

    private var own: String { "inlet on \(ProcessSetup.hostName), state_dir \(stateDirectory.display)" }

    /// Makes the lock's folder in each of these where that can be made, before the agent gives up what it need not write to.
    package static func prepare(_ watched: [WatchSettings]) {
        for watch in watched where isLocked(watch) {
            // Silence is right: where it cannot be made there is no lock; `inlet check` says so.
            _ = try? Folder(watch.path).folder(WatchLock.folder, making: 0o755, asFolderOwner: true)
        }
    }

    enum Outcome: Sendable {
        /// It may be watched, with the lock where one could be had; `doubt` says why somebody should know that there is none.
        case watch(WatchLock?, doubt: String?)
        /// Another agent watches it, which says this of itself.
        case standBy(String)
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
            // Where it cannot be written there is none; `inlet check` says so.
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

    /// The agent that watches the folder now, if it is another one than that of our state directory. Makes nothing. Blocks.
    package func stranger() throws(SystemError) -> String? {
        guard let holder = try WatchLock.holder(in: settings.path) else { return nil }
        return holder.hasPrefix("\(own), process ") ? nil : holder
    }

    /// Waits until whoever has the lock may have let go of it, or something else is to be looked at. Blocks.
    func wait(_ waker: Waker) {
        let end = ContinuousClock.now.advanced(by: Self.pause)
        do {
            let inotify = try Inotify.orSilent()
            _ = try inotify.add(settings.path.pushing(WatchLock.folder))
            // What was let go of before the watch was set would wake nobody.
            if try WatchLock.holder(in: settings.path) != nil { _ = try inotify.wait(until: end, waker: waker) }
            guard try WatchLock.holder(in: settings.path) == nil else { return }
            waker.rest(until: .now.advanced(by: Self.grace))
        } catch {
            // Silence is right: the next try tells what is wrong.
            waker.rest(until: end)
        }
    }
}
