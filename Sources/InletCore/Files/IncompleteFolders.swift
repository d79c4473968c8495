package import SystemPackage

/// The folders of files that never become complete. Some of these files are remembered individually; the others are
/// left to their folder, which is listed again at growing intervals. No file is forgotten, and memory is bounded.
package struct IncompleteFolders: Sendable {
    package typealias Instant = ContinuousClock.Instant

    /// The report about one folder.
    package struct Report: Sendable, Equatable {
        /// Relative to the root; empty for the root, which also stands for folders beyond the limit.
        package var folder: FilePath
        package var files: Int
        /// The problem of one of them.
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
        /// The number of files remembered individually.
        var remembered = 0
        /// The number of files left to a listing: found since the last one was requested, and by the one before.
        var left = 0
        var leftBefore = 0
        /// When to list it; nil if nothing is left to a listing.
        var due: Instant?
        var isSaid = false
        /// Whether listing it failed since the last request, or the time before: its content is unknown.
        var isUnlisted = false
        var wasUnlisted = false

        var files: Int { remembered + max(left, leftBefore) }
    }

    package static let shortestWait = Duration.seconds(5)
    package static let longestWait = Duration.seconds(300)
    /// The wait before reporting a folder; by then most of its files are known.
    static let patience = Duration.seconds(5)

    private let limit: Int
    private var folders: [FilePath: Folder] = [:]
    private var listed = 0
    /// The earliest listing; nil if none is due.
    package private(set) var nextListing: Instant?

    /// - Parameter limit: how many folders are listed again; beyond them, the root is.
    init(limit: Int) { self.limit = limit }

    /// The wait after failing for `elapsed`: half as long, so that repairs are noticed soon.
    static func wait(after elapsed: Duration) -> Duration { min(max(elapsed / 2, shortestWait), longestWait) }

    /// The number of files left to listings.
    var left: Int {
        listed == 0 ? 0 : folders.values.reduce(0) { $0 + ($1.due == nil ? 0 : max($1.left, $1.leftBefore)) }
    }

    /// The folders with files left to a listing.
    var toList: [FilePath] { listed == 0 ? [] : folders.filter { $0.value.due != nil }.map(\.key) }

    /// Whether files of its folder are left to a listing.
    func leaves(_ path: FilePath) -> Bool {
        listed > 0 && (folders[path.removingLastComponent()]?.due ?? folders[""]?.due) != nil
    }

    /// Adds a remembered file.
    mutating func add(_ path: FilePath, _ why: String, at now: Instant) {
        folders[path.removingLastComponent(), default: Folder(why: why, since: now)].remembered += 1
    }

    /// Removes a remembered file.
    mutating func remove(_ path: FilePath) {
        let name = path.removingLastComponent()
        guard var folder = folders[name] else { return }
        folder.remembered -= 1
        folders[name] = folder.remembered > 0 || folder.due != nil ? folder : nil
    }

    /// Leaves a file to its folder, because there is no room to remember it.
    mutating func leave(_ path: FilePath, _ why: String, at now: Instant) {
        leave(in: path.removingLastComponent(), why, at: now) { $0.left += 1 }
    }

    /// Marks a folder that cannot be listed, watched or read completely; it is listed again, like those with files left
    /// to them.
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

    /// The folders to list now. Removes a folder in which the last listing found no more such files.
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

    /// Forgets `directory` and everything below it, except remembered files, which their owner removes.
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

    /// How many files cannot be taken, and folders listed, with the problem of one of them; nil if there are none.
    package var sum: (count: Int, why: String)? {
        let stuck = folders.values.filter { $0.files > 0 || $0.isUnlisted || $0.wasUnlisted }
        guard let first = stuck.min(by: { $0.since < $1.since }) else { return nil }
        return (stuck.reduce(0) { $0 + max(1, $1.files) }, first.why)
    }

    /// Folders to report now: each once, until nothing in it is stuck.
    package mutating func untold(at now: Instant) -> [Report] {
        let names = folders.filter { _, folder in
            !folder.isSaid && folder.files > 0 && folder.since.duration(to: now) >= Self.patience
        }.map(\.key)
        for name in names { folders[name]?.isSaid = true }
        return reports(of: names)
    }

    /// The folders with the most files.
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

/// Files that stay incomplete: programs have them open or keep writing, or Inlet cannot look at them or take them. They
/// give up their places to files that may settle, but are still checked.
extension Settler {
    /// How much to remember of a root.
    package struct Places: Sendable, Equatable {
        /// Files that may become complete.
        package var settling: Int
        /// Files that do not.
        package var stuck: Int
        /// Folders with more of those.
        package var folders: Int

        /// Together the files fill a hash table of 32,768 places: some 6 MiB with their paths.
        package init(settling: Int = 20_000, stuck: Int = 4500, folders: Int = 1000) {
            self.settling = settling
            self.stuck = stuck
            self.folders = folders
        }
    }

    /// The obstacle of a file, since the first of consecutive looks that found it.
    struct SettleBlocker: Sendable {
        var since: ContinuousClock.Instant
        var looks = 0
        /// It cannot be looked at, or read: nothing notifies when it can.
        var isFailing = false
        /// It was complete, but was not taken.
        var isRefused = false
    }

    private static let enoughLooks = 3
    /// How long programs may keep a file before it gives up its place.
    private static let patience = Duration.seconds(60)
    /// The time between two looks at stuck files, whatever their number.
    private static let lookInterval = Duration.milliseconds(5)
    /// The wait before looking again at a file that was not taken: the obstacle needs a moment.
    private static let refusedPause = Duration.seconds(1)

    /// Returns a complete file that could not be taken. It always fits, if only in its folder's next listing.
    ///
    /// - Parameter why: a problem of the file itself, which may last; nil if it waits for something else.
    package mutating func putBack(
        _ path: FilePath, settle: Duration? = nil, why: String? = nil, at now: ContinuousClock.Instant
    ) {
        let settle = settle ?? self.settle
        // The file changed meanwhile.
        if entries[path] != nil { return _ = observe(path, settle: max(settle, Self.refusedPause), at: now) }
        var entry = Entry(settle: settle, at: now)
        let before = returning.removeValue(forKey: path)
        entry.findings.blocker = before?.blocker
        entry.findings.hinder(isFailing: why != nil, isRefused: true, at: now)
        (entry.findings.why, entry.findings.busyWait) = (why, .zero)
        let wait = why == nil ? max(settle, Self.refusedPause, crowdWait) : entry.findings.failingWait(at: now)
        schedule(path, &entry, at: now.advanced(by: wait))
        keep(path, entry, isStuck: before?.isStuck ?? false || !hasRoom, at: now)
    }

    var hasRoom: Bool { entries.count - stuck < places.settling }

    /// With more stuck files, each is checked less often.
    var crowdWait: Duration { Self.lookInterval * stuck }

    /// Keeps an incomplete file in the place that it deserves.
    ///
    /// - Parameter isStuck: whether it deserves none in any case.
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
        // Others are reported individually.
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
        // A listing finds it again, so its problem is known already.
        if blocker.isFailing { return isTried || stuckFolders.leaves(path) }
        if blocker.since.duration(to: now) >= Self.patience { return true }
        return isTried && entries.count - stuck > places.settling / 2
    }

    /// Removes a file that is no longer tracked.
    mutating func drop(_ path: FilePath) {
        guard let entry = entries.removeValue(forKey: path), entry.isStuck else { return }
        uncount(path, entry)
    }

    private mutating func uncount(_ path: FilePath, _ entry: Entry) {
        stuck -= 1
        if entry.isCounted { stuckFolders.remove(path) }
    }
}

extension Settler.Findings {
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
}

extension Settler.Entry {
    fileprivate var stuckWhy: String {
        if isBusy { return "open for writing" }
        return why ?? (blocker?.isRefused ?? false ? "waiting for other files" : "it keeps changing")
    }
}
