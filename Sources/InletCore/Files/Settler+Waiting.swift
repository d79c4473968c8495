package import SystemPackage

/// Files that are not complete: woken by the others that they wait for, and shown.
extension Settler {
    /// A file that is not complete yet, for the status.
    package struct Waiting: Sendable, Equatable {
        package var path: FilePath
        /// Since when it is tracked.
        package var since: ContinuousClock.Instant
        /// A writer holds it; otherwise it has not been quiet for long enough.
        package var isBusy: Bool
        /// What it waits for, when that is neither of the two.
        package var why: String?
        /// How many times it was seen to have become another than it was.
        package var changes: Int

        package init(
            path: FilePath, since: ContinuousClock.Instant, isBusy: Bool, why: String? = nil, changes: Int = 0
        ) {
            self.path = path
            self.since = since
            self.isBusy = isBusy
            self.why = why
            self.changes = changes
        }
    }

    /// The files that have been waiting longest, oldest first; before them those that somebody holds or goes on changing, which
    /// thousands that wait for others or for room must not hide.
    package func oldest(_ limit: Int = 10) -> [Waiting] {
        var oldest: [(path: FilePath, entry: Entry)] = []
        for (path, entry) in entries {
            if oldest.count == limit, let last = oldest.last, !entry.isBefore(last.entry) { continue }
            oldest.insert((path, entry), at: oldest.firstIndex { entry.isBefore($0.entry) } ?? oldest.endIndex)
            if oldest.count > limit { oldest.removeLast() }
        }
        return oldest.map { path, entry in
            Waiting(
                path: path, since: entry.since, isBusy: entry.isBusy, why: entry.isBusy ? nil : entry.why,
                changes: entry.changes)
        }
    }

    /// Others that the file waits for have changed: if it is tracked it is due at once, and its quiet time goes on.
    package mutating func wake(_ path: FilePath, at now: ContinuousClock.Instant) {
        guard var entry = entries[path], entry.deadline > now, entry.isAwaiting else { return }
        schedule(path, &entry, at: now)
        entries[path] = entry
    }

    /// `companion` waits for the file at `main`, which is due at once, tracked or not. Without room the file takes the
    /// companion's place: otherwise companions could keep all files out for ever. False = list the tree again, to find
    /// the companion.
    package mutating func wake(
        _ main: FilePath, for companion: FilePath, settle: Duration? = nil, at now: ContinuousClock.Instant
    ) -> Bool {
        wake(main, at: now)
        if discover(main, settle: settle, at: now) { return true }
        forget(companion)
        _ = discover(main, settle: settle, at: now)
        return false
    }

    /// Those of `folders` in which anything is not complete yet. Looks at every entry, once.
    package func tracked(below folders: Set<FilePath>) -> Set<FilePath> {
        var found: Set<FilePath> = []
        let listed = stuckFolders.toList
        // Any folder may be among those that the root stands for.
        if listed.contains("") { return folders }
        for path in listed + Array(entries.keys) where found.count < folders.count {
            var folder = path
            while !folder.isEmpty {
                if folders.contains(folder) { found.insert(folder) }
                folder.removeLastComponent()
            }
        }
        return found
    }
}

extension Settler.Entry {
    /// Whether it has a writer, or changes; not others nor want of room keep it.
    private var isStirred: Bool { isBusy || changes > 0 && why == nil }

    fileprivate func isBefore(_ other: Self) -> Bool {
        isStirred == other.isStirred ? since < other.since : isStirred
    }
}
