package import SystemPackage

/// Files that wait for others, and folders of which all is waited for.
extension Settler {
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
