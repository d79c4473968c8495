internal import InletCore
internal import InletJournal
internal import InletLinux
internal import SystemPackage

/// Looks whether a watched folder is the one that it was, before anything of it is believed.
struct RootCaution: Sendable {
    let root: FilePath
    let journal: Journal
    let roots: RootRegistry

    /// By what the folder is recognised now; nil when there is none. Blocks.
    static func mark(of root: FilePath) throws(SystemError) -> RootMark? {
        guard case .directory = try FileLook.look(at: root) else { return nil }
        let (volume, folder) = try VolumeFinder().place(of: root)
        return RootMark(volume: volume, folder: folder)
    }

    /// Why the folder is not to be watched now; nil when it is as it should be, which is remembered.
    func objection() async throws -> String? {
        guard var now = try Self.mark(of: root) else { return nil }
        let before = try await journal.mark(of: root)
        let isEmpty = Self.isEmpty(root)
        // It is still as empty as it was seen to become.
        var asBefore = now
        asBefore.wasEmptied = before?.wasEmptied
        if isEmpty, asBefore == before { now = asBefore }
        // Where nothing has changed, the journal need not look through a million files that were delivered and deleted.
        if before != now || isEmpty && now.wasEmptied != true {
            let holdsFiles = try await journal.holdsFiles(of: root)
            let verdict = RootGuard.judge(before: before, now: now, isEmpty: isEmpty, holdsFiles: holdsFiles)
            if case .pause(let why) = verdict {
                roots.set(.guarded, root)
                return why
            }
            if before != now { try await journal.setMark(now, of: root, at: .now) }
        }
        roots.set(.present(volume: nil), root)
        return nil
    }

    /// Watching ends in order: if the folder is empty now, that was seen to happen. Not of one whose changes tell nothing.
    func remember(isTold: Bool) async {
        guard isTold, Self.isEmpty(root), var now = try? Self.mark(of: root),
            let before = try? await journal.mark(of: root), before == now
        else { return }
        now.wasEmptied = true
        // Without it, the next start asks a person.
        try? await journal.setMark(now, of: root, at: .now)
    }

    /// Waits until something comes in the folder, or something else is to be looked at; not for ever, because a server does
    /// not tell of what comes.
    /// - Parameter untold: how long while the folder cannot be looked at.
    func wait(_ waker: Waker, atMost pause: Duration, untold: Duration) async {
        let end = ContinuousClock.now.advanced(by: pause)
        do {
            let inotify = try Inotify.orSilent()
            // Without a watch it is looked at again when the time is over.
            _ = try? inotify.add(root)
            // What came before the watch did would wake nobody.
            if try await objection() == nil { return }
            _ = try inotify.wait(until: end, waker: waker)
        } catch {
            // Silence is right: it is looked at again, which says what is wrong.
            _ = try? waker.wait(until: min(end, .now.advanced(by: untold)))
        }
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
