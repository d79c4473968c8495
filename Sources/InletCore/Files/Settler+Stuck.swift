package import SystemPackage

/// Files that do not get complete, look after look: others have them open or go on writing, they cannot be looked at, or they
/// are not taken. They give their place up to files that may settle, and are looked at all the same.
extension Settler {
    /// How much is remembered of a root.
    package struct Places: Sendable, Equatable {
        /// Files that may become complete.
        package var settling: Int
        /// Files that do not.
        package var stuck: Int
        /// Folders with more of those.
        package var folders: Int

        package init(settling: Int = 50_000, stuck: Int = 10_000, folders: Int = 1000) {
            self.settling = settling
            self.stuck = stuck
            self.folders = folders
        }
    }

    /// What keeps a file, since the first of the looks in a row that found it so.
    struct Hindrance: Sendable {
        var since: ContinuousClock.Instant
        var looks = 0
        /// It cannot be looked at, or read: nobody tells when it can.
        var isFailing = false
        /// It was complete, and was not taken.
        var isRefused = false
    }

    private static let enoughLooks = 3
    /// Others have so long for a file before it gives its place up.
    private static let patience = Duration.seconds(60)
    /// Between two looks at stuck files, whatever their number.
    private static let lookInterval = Duration.milliseconds(5)
    /// Before a file that was not taken is looked at again: what is in the way needs a moment.
    private static let refusedPause = Duration.seconds(1)

    /// A complete file that could not be taken. It needs no place: there is always room for it, if only in its folder's next
    /// listing.
    ///
    /// - Parameter why: what went wrong with the file itself, which may last; nil when it waits for something else.
    package mutating func putBack(
        _ path: FilePath, settle: Duration? = nil, why: String? = nil, at now: ContinuousClock.Instant
    ) {
        let settle = settle ?? self.settle
        // Something happened to it meanwhile.
        if entries[path] != nil { return _ = observe(path, settle: max(settle, Self.refusedPause), at: now) }
        var entry = Entry(settle: settle, at: now, busyWait: .zero)
        let before = returning.removeValue(forKey: path)
        entry.hindrance = before?.hindrance
        entry.hinder(isFailing: why != nil, isRefused: true, at: now)
        entry.why = why
        let wait = why == nil ? max(settle, Self.refusedPause, crowdWait) : entry.failingWait(at: now)
        schedule(path, &entry, at: now.advanced(by: wait))
        keep(path, entry, isStuck: before?.isStuck ?? false || !hasRoom, at: now)
    }

    var hasRoom: Bool { entries.count - stuck < places.settling }

    /// More stuck files are looked at more seldom.
    var crowdWait: Duration { Self.lookInterval * stuck }

    /// Keeps a file that is not complete, in the place that it deserves.
    ///
    /// - Parameter isStuck: whether it deserves none, whatever is known of it.
    mutating func keep(_ path: FilePath, _ entry: Entry, isStuck: Bool = false, at now: ContinuousClock.Instant) {
        var entry = entry
        if entry.isStuck, entry.hindrance == nil, hasRoom {
            uncount(path, entry)
            (entry.isStuck, entry.isCounted) = (false, false)
        } else if !entry.isStuck, isStuck || isTooLong(path, entry, at: now) {
            guard stuck < places.stuck else {
                forget(path)
                return stuckFolders.leave(path, entry.stuckWhy, at: now)
            }
            entry.isStuck = true
            stuck += 1
        }
        // Of the others each is told of by itself.
        if entry.isStuck, !entry.isCounted, entry.hindrance?.isFailing == true {
            entry.isCounted = true
            stuckFolders.add(path, entry.stuckWhy, at: now)
        }
        entries[path] = entry
    }

    private func isTooLong(_ path: FilePath, _ entry: Entry, at now: ContinuousClock.Instant) -> Bool {
        guard let hindrance = entry.hindrance else {
            return entry.changes > 0 && entry.why == nil && entry.since.duration(to: now) >= Self.patience
        }
        let isTried = hindrance.looks >= Self.enoughLooks
        // A listing shows it again: it need not be learnt anew what it is.
        if hindrance.isFailing { return isTried || stuckFolders.leaves(path) }
        if hindrance.since.duration(to: now) >= Self.patience { return true }
        return isTried && entries.count - stuck > places.settling / 2
    }

    /// A file that is no longer tracked.
    mutating func drop(_ path: FilePath) {
        guard let entry = entries.removeValue(forKey: path), entry.isStuck else { return }
        uncount(path, entry)
    }

    private mutating func uncount(_ path: FilePath, _ entry: Entry) {
        stuck -= 1
        if entry.isCounted { stuckFolders.remove(path) }
    }
}

extension Settler.Entry {
    mutating func hinder(isFailing: Bool, isRefused: Bool = false, at now: ContinuousClock.Instant) {
        var found = hindrance ?? Settler.Hindrance(since: now)
        if found.isFailing != isFailing { found = Settler.Hindrance(since: now) }
        found.looks += 1
        found.isFailing = isFailing
        found.isRefused = isRefused || found.isRefused
        hindrance = found
    }

    func failingWait(at now: ContinuousClock.Instant) -> Duration {
        StuckFolders.wait(after: hindrance?.since.duration(to: now) ?? .zero)
    }

    fileprivate var stuckWhy: String {
        if isBusy { return "open for writing" }
        return why ?? (hindrance?.isRefused ?? false ? "waiting for what is on its way" : "it keeps changing")
    }
}
