package import SystemPackage

/// The folders of files that never get complete. Some of these files are remembered one by one; those beyond that are left to
/// their folder, which is listed again, later and later: none is forgotten, and memory is bounded.
package struct IncompleteFolders: Sendable {
    package typealias Instant = ContinuousClock.Instant

    /// What is said of one folder.
    package struct Report: Sendable, Equatable {
        /// Relative to the root; empty for the root itself, which also stands for folders beyond the limit.
        package var folder: FilePath
        package var files: Int
        /// What one of them came to.
        package var why: String

        package var reason: String {
            switch files {
            case 0: "it cannot be listed now: \(why)"
            case 1: "a file in it cannot be taken now: \(why)"
            default: "\(files) files in it cannot be taken now: \(why)"
            }
        }
    }

    private struct Folder: Sendable {
        var why: String
        var since: Instant
        /// Those that are remembered one by one.
        var remembered = 0
        /// Those that are left to a listing: found since the last one was asked for, and by the one before.
        var left = 0
        var leftBefore = 0
        /// When it is to be listed; nil when nothing is left to that.
        var due: Instant?
        var isSaid = false
        /// It could not be listed since that was asked for, or the time before: nobody knows what is in it.
        var isUnlisted = false
        var wasUnlisted = false

        var files: Int { remembered + max(left, leftBefore) }
    }

    package static let shortestWait = Duration.seconds(5)
    package static let longestWait = Duration.seconds(300)
    /// Before a folder is told of: by then most of its files are known.
    static let patience = Duration.seconds(5)

    private let limit: Int
    private var folders: [FilePath: Folder] = [:]
    private var listed = 0
    /// The earliest of the listings; nil when there is none to come.
    package private(set) var nextListing: Instant?

    /// - Parameter limit: folders that are listed again; beyond them, the root is.
    init(limit: Int) { self.limit = limit }

    /// The wait after `elapsed` of failing: half as long, so that what is mended is seen in good time.
    static func wait(after elapsed: Duration) -> Duration { min(max(elapsed / 2, shortestWait), longestWait) }

    /// Files that are left to listings.
    var left: Int {
        listed == 0 ? 0 : folders.values.reduce(0) { $0 + ($1.due == nil ? 0 : max($1.left, $1.leftBefore)) }
    }

    /// Those of which something is left to a listing.
    var toList: [FilePath] { listed == 0 ? [] : folders.filter { $0.value.due != nil }.map(\.key) }

    /// Whether files of its folder are left to a listing.
    func leaves(_ path: FilePath) -> Bool {
        listed > 0 && (folders[path.removingLastComponent()]?.due ?? folders[""]?.due) != nil
    }

    /// A file that is remembered.
    mutating func add(_ path: FilePath, _ why: String, at now: Instant) {
        folders[path.removingLastComponent(), default: Folder(why: why, since: now)].remembered += 1
    }

    /// A file that was remembered is not any more.
    mutating func remove(_ path: FilePath) {
        let name = path.removingLastComponent()
        guard var folder = folders[name] else { return }
        folder.remembered -= 1
        folders[name] = folder.remembered > 0 || folder.due != nil ? folder : nil
    }

    /// A file for which there is no room.
    mutating func leave(_ path: FilePath, _ why: String, at now: Instant) {
        leave(in: path.removingLastComponent(), why, at: now) { $0.left += 1 }
    }

    /// A folder that cannot be listed, watched or read to its end: it is listed again, as those are in which files are left.
    ///
    /// - Returns: whether that is news.
    package mutating func leave(folder name: FilePath, _ why: String, at now: Instant) -> Bool {
        let isNews = !(folders[name].map { $0.isUnlisted || $0.wasUnlisted } ?? false)
        leave(in: name, why, at: now) { folder in
            (folder.isUnlisted, folder.isSaid, folder.why) = (true, true, why)
        }
        return isNews
    }

    /// The folder can be listed.
    package mutating func entered(_ name: FilePath) {
        guard listed > 0, var folder = folders[name], folder.isUnlisted || folder.wasUnlisted else { return }
        (folder.isUnlisted, folder.wasUnlisted, folder.isSaid) = (false, false, false)
        folders[name] = folder
    }

    private mutating func leave(
        in folder: FilePath, _ why: String, at now: Instant, _ change: (inout Folder) -> Void
    ) {
        let name = folders[folder]?.due == nil && listed >= limit ? "" : folder
        var folder = folders[name] ?? Folder(why: why, since: now)
        change(&folder)
        if folder.due == nil {
            listed += 1
            let due = now.advanced(by: Self.wait(after: folder.since.duration(to: now)))
            folder.due = due
            nextListing = min(nextListing ?? due, due)
        }
        folders[name] = folder
    }

    /// The folders that are to be listed now. One in which the last listing found nothing more of the kind is done with.
    package mutating func due(at now: Instant) -> [FilePath] {
        guard let next = nextListing, next <= now else { return [] }
        var result: [FilePath] = []
        for (name, folder) in folders {
            guard let due = folder.due, due <= now else { continue }
            var folder = folder
            if folder.left == 0, !folder.isUnlisted {
                folder.due = nil
                folder.wasUnlisted = false
                folder.leftBefore = 0
                listed -= 1
            } else {
                result.append(name)
                (folder.leftBefore, folder.left) = (folder.left, 0)
                (folder.wasUnlisted, folder.isUnlisted) = (folder.isUnlisted, false)
                folder.due = now.advanced(by: Self.wait(after: folder.since.duration(to: now)))
            }
            folders[name] = folder.remembered > 0 || folder.due != nil ? folder : nil
        }
        nextListing = folders.values.compactMap(\.due).min()
        return result
    }

    /// Forgets `directory` and everything below it; those remembered there are removed by who remembers them.
    mutating func forget(below directory: FilePath) {
        for name in toList where name.isWithin(directory) {
            guard var folder = folders[name] else { continue }
            (folder.left, folder.leftBefore, folder.due) = (0, 0, nil)
            (folder.isUnlisted, folder.wasUnlisted) = (false, false)
            listed -= 1
            folders[name] = folder.remembered > 0 ? folder : nil
        }
        nextListing = folders.values.compactMap(\.due).min()
    }

    /// How many files cannot be taken, with the folders that cannot be listed, and what one of them came to; nil when there are
    /// none.
    package var sum: (count: Int, why: String)? {
        let stuck = folders.values.filter { $0.files > 0 || $0.isUnlisted || $0.wasUnlisted }
        guard let first = stuck.min(by: { $0.since < $1.since }) else { return nil }
        return (stuck.reduce(0) { $0 + max(1, $1.files) }, first.why)
    }

    /// Folders that are to be told of now: each once, until nothing in it is stuck any more.
    package mutating func untold(at now: Instant) -> [Report] {
        let names = folders.filter { _, folder in
            !folder.isSaid && folder.files > 0 && folder.since.duration(to: now) >= Self.patience
        }.map(\.key)
        for name in names { folders[name]?.isSaid = true }
        return reports(of: names)
    }

    /// Those with the most files.
    package func most(_ limit: Int) -> [Report] {
        let names = folders.filter { $0.value.files > 0 || $0.value.isUnlisted || $0.value.wasUnlisted }
            .sorted { $0.value.files > $1.value.files }.prefix(limit).map(\.key)
        return reports(of: names)
    }

    private func reports(of names: [FilePath]) -> [Report] {
        names.compactMap { name in
            folders[name].map { Report(folder: name, files: $0.files, why: $0.why) }
        }
    }
}

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
    struct SettleBlocker: Sendable {
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
        entry.blocker = before?.blocker
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
        if entry.isStuck, entry.blocker == nil, hasRoom {
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
        if entry.isStuck, !entry.isCounted, entry.blocker?.isFailing == true {
            entry.isCounted = true
            stuckFolders.add(path, entry.stuckWhy, at: now)
        }
        entries[path] = entry
    }

    private func isTooLong(_ path: FilePath, _ entry: Entry, at now: ContinuousClock.Instant) -> Bool {
        guard let blocker = entry.blocker else {
            return entry.changes > 0 && entry.why == nil && entry.since.duration(to: now) >= Self.patience
        }
        let isTried = blocker.looks >= Self.enoughLooks
        // A listing shows it again: it need not be learnt anew what it is.
        if blocker.isFailing { return isTried || stuckFolders.leaves(path) }
        if blocker.since.duration(to: now) >= Self.patience { return true }
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
        var found = blocker ?? Settler.SettleBlocker(since: now)
        if found.isFailing != isFailing { found = Settler.SettleBlocker(since: now) }
        found.looks += 1
        found.isFailing = isFailing
        found.isRefused = isRefused || found.isRefused
        blocker = found
    }

    func failingWait(at now: ContinuousClock.Instant) -> Duration {
        IncompleteFolders.wait(after: blocker?.since.duration(to: now) ?? .zero)
    }

    fileprivate var stuckWhy: String {
        if isBusy { return "open for writing" }
        return why ?? (blocker?.isRefused ?? false ? "waiting for other files" : "it keeps changing")
    }
}
