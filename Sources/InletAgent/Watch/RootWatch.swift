internal import InletCore
internal import InletLinux
internal import SystemPackage

/// Reports changes below a root: by inotify, by fanotify on mounts that can be marked, and by polling where no event
/// reports changes, or no watch is left. All three serve one root side by side.
struct RootWatch: ~Copyable {
    private let settings: WatchSettings
    private let ignore: IgnoreList
    private let log: EventLog
    private var inotify: Inotify
    /// With `mode: fanotify`, where available.
    private var fanotify: FanotifyMounts?
    private var table = WatchTable()
    /// Files that wait for the end of another of their names, by their watches.
    private var links: [Int32: Set<FilePath>] = [:]
    /// How each mount is watched.
    private var modes = WatchModes([:])
    /// The polled folders.
    var polls: PollPass
    /// Whether the present or last listing found a folder without a watch; and whether that was logged.
    private var isLimited = false
    private var isLimitSaid = false
    /// Whether a polled root had any content at the last pass.
    private var wasFilled = false
    /// For the next reading.
    private var waiting: [FileEvent] = []
    /// The time of the last event, or of the last complete file in a polled root.
    private(set) var lastEvent: WallTime?

    /// Each takes up to 64 KiB of records.
    private static let readsUntilDrained = 64
    /// Files with a watch of their own; the next listing checks the others again.
    private static let mostLinked = 1000
    /// Watches asked for before one pass, which look at nothing else meanwhile.
    private static let mostAtOnce = 20_000
    /// Before a unit that waits for a pass is checked again.
    private static let shortestWait = Duration.milliseconds(100)

    init(_ settings: WatchSettings, ignore: IgnoreList, log: EventLog) throws(SystemError) {
        (self.settings, self.ignore, self.log) = (settings, ignore, log)
        inotify = settings.mode == .poll ? try Inotify(silentFor: nil) : try Inotify.orSilent()
        polls = PollPass(root: settings.path, isRecursive: settings.recursive, least: settings.poll)
    }

    /// Call it once, before the first listing.
    mutating func begin() {
        guard settings.mode == .fanotify else { return }
        guard settings.recursive else { return say("", .inotify, RootCheck.oneFolder) }
        do throws(SystemError) {
            fanotify = try FanotifyMounts(root: settings.path, ignore: ignore)
        } catch {
            say("", .inotify, "fanotify cannot be used: \(error)")
        }
    }

    private func say(_ directory: FilePath, _ mode: WatchMode, _ reason: String) {
        log.emit(.watchMode(root: settings.path, path: settings.path.pushing(directory), mode: mode, reason: reason))
    }

    // MARK: - Events

    /// The events since the last call. Does not wait; with fanotify it may block on the disk.
    mutating func read() throws(SystemError) -> [FileEvent] {
        var events = waiting
        waiting = []
        for record in try inotify.read() {
            if let directory = record.isOverflow ? "" : table.path(of: record.watch) {
                events += translate(record, in: directory)
            } else if record.mask.contains(.watchRemoved) {
                links[record.watch] = nil
            } else {
                events += unfollow(record.watch)
            }
        }
        return events + (try readMarks())
    }

    /// Blocks until an event, a wake-up by `waker`, or `deadline`.
    mutating func wait(until deadline: ContinuousClock.Instant?, or waker: Waker) throws(SystemError) {
        if !waiting.isEmpty { return }
        _ = try inotify.wait(until: deadline, waker: waker, other: fanotify?.number)
    }

    /// Whether all earlier events have been read. Other folders of a marked file system may never be quiet: their
    /// records do not count here.
    mutating func isDrained() throws(SystemError) -> Bool {
        guard waiting.isEmpty, try inotify.isDrained else { return false }
        for _ in 0..<Self.readsUntilDrained {
            if try fanotify?.isDrained ?? true { return true }
            waiting = try readMarks()
            if !waiting.isEmpty { return false }
        }
        return false
    }

    /// A file of a polled root is complete: such a root gives no other sign of life.
    mutating func noteSettled() { if !polls.book.isEmpty { lastEvent = .now } }

    private mutating func readMarks() throws(SystemError) -> [FileEvent] {
        guard let news = try fanotify?.read() else { return [] }
        return news.flatMap { translate($0.record, in: $0.directory) }
    }

    /// The meaning of a record about the folder `directory`, or a name in it. fanotify merges several changes: then a
    /// removal comes first. Nothing is known about removed folders.
    mutating func translate(_ record: InotifyRecord, in directory: FilePath) -> [FileEvent] {
        lastEvent = .now
        let mask = record.mask
        if record.isOverflow { return [.overflow] }
        if mask.contains(.watchRemoved) {
            table.remove(record.watch)
            return []
        }
        if !mask.isDisjoint(with: [.selfDeleted, .selfMoved, .unmounted]) {
            if directory.isEmpty { return [.lost("removed, renamed or unmounted")] }
            return mask.contains(.unmounted) ? [.folder(directory)] : []
        }
        guard let name = FilePath(bytes: record.nameBytes).lastComponent else { return [] }
        let (path, isFolder) = (directory.appending(name), mask.contains(.isDirectory))
        let rename = record.cookie == 0 ? nil : record.cookie
        if mask.contains(.movedFrom) {
            let isListed = isFolder && (forgetLeft(path) || mask.contains(.movedTo))
            return [.left(path, isFolder: isFolder, rename: rename)] + (isListed ? [.folder(path)] : [])
        }
        if mask.contains(.deleted) {
            guard isFolder else { return [.removed(path, isFolder: false)] }
            // It was empty: its files reported their own end, and the kernel dropped its watch. Removing a tree
            // therefore costs no search for each of its directories.
            table.remove(path)
            polls.book.remove(path)
            let isBack = mask.contains(.movedTo)
            return [.removed(path, isFolder: true)] + (isBack ? [.created(path, isFolder: true)] : [])
        }
        if mask.contains(.movedTo), let rename { return [.reached(path, isFolder: isFolder, rename: rename)] }
        let isNew = !mask.isDisjoint(with: [.created, .movedTo])
        return [isNew ? .created(path, isFolder: isFolder) : .changed(path, isFolder: isFolder)]
    }

    /// A folder has left this name. - Returns: whether another one has it, as when two change places.
    private mutating func forgetLeft(_ path: FilePath) -> Bool {
        defer { forget(below: path) }
        do throws(SystemError) {
            if case .directory = try FileLook.look(at: RootedPath(settings.path, path)) { return true }
            return false
        } catch {
            // Its listing reports the fault.
            return true
        }
    }

    private mutating func forget(below path: FilePath) {
        for watch in table.remove(below: path) { inotify.remove(watch) }
        polls.book.remove(below: path)
    }

    // MARK: - Folders

    /// Follows changes in a folder. Call it before the folder is listed: a file created in between appears in one of
    /// the two.
    mutating func follow(_ directory: FilePath, _ folder: Folder) throws(SystemError) {
        if !modes.way(for: directory).way.isPolled {
            do throws(SystemError) {
                try watch(directory, folder)
                return polls.book.remove(directory)
            } catch {
                guard error.isWatchLimit else { throw error }
                isLimited = true
            }
        }
        // With its time from before the listing.
        polls.add(directory, modified: try folder.identity().touched)
    }

    /// By fanotify where its file system is marked, by inotify elsewhere.
    private mutating func watch(_ directory: FilePath, _ folder: Folder) throws(SystemError) {
        if try isMarked(directory, folder) {
            // inotify reports the end of the root itself, and of each mount: a mark ends silently when its file system
            // is unmounted.
            guard directory.isEmpty || fanotify?.beginnings.contains(directory) ?? false,
                // Without a watch the next listing finds it.
                let watch = try? inotify.add(folder, onlyItself: true)
            else { return }
            return table.add(watch, directory)
        }
        table.add(try inotify.add(folder), directory)
    }

    private mutating func isMarked(_ directory: FilePath, _ folder: Folder) throws(SystemError) -> Bool {
        guard let coverage = try fanotify?.coverage(of: directory, folder) else { return false }
        switch coverage {
        case .newlyMarked: say(directory, .fanotify, "one mark for its file system")
        case .refused(let reason): say(directory, .inotify, "fanotify cannot be used here: \(reason)")
        case .marked, .unmarked, .remote: break
        }
        guard coverage == .marked || coverage == .newlyMarked else { return false }
        fanotify?.directories += 1
        return true
    }

    /// Follows a file, to learn when it loses a name or gets another owner. Where that is not possible the next listing
    /// checks.
    mutating func follow(linked path: FilePath) {
        guard links.count < Self.mostLinked else { return }
        do throws(SystemError) {
            let (folder, name) = try RootedPath(settings.path, path).parent()
            let watch = try inotify.add(file: name, in: folder)
            links[watch, default: []].insert(path)
            // It may have lost its other names before it was watched.
            if try folder.look(name).refusal(by: settings.sources) != .links { waiting += unfollow(watch) }
        } catch {
            // The next listing checks it again.
        }
    }

    /// If the check still leaves it out, it is followed anew.
    private mutating func unfollow(_ watch: Int32) -> [FileEvent] {
        guard let paths = links.removeValue(forKey: watch) else { return [] }
        inotify.remove(watch)
        return paths.map { .linked($0) }
    }

    // MARK: - Mounts

    /// Decides anew how each mount is watched, logs changes, and drops what was known about places with a mount or
    /// unmount. Watches of covered folders report nothing visible, and would pass for the folders that have their names
    /// now. Blocks.
    ///
    /// - Returns: those places, to be listed.
    mutating func followMounts() -> [FilePath] {
        let found = WatchModes(of: settings)
        let changes = found.changes(since: modes)
        for place in changes {
            forget(below: place)
            fanotify?.forgetPlaces()
        }
        for (place, way) in found.sorted where modes.places[place] != way {
            // Whether a mount can be marked shows when its first folder is listed, and is logged then.
            if settings.mode == .fanotify, !way.isPolled { continue }
            say(place, way.isPolled ? .poll : .inotify, way.reason)
        }
        modes = found
        return changes
    }

    /// Whether other machines may write the file at `path`.
    func isForeign(_ path: FilePath) -> Bool { modes.isForeign(path) }

    /// Whether no event reports changes in the root itself.
    var isRootPolled: Bool { modes.way(for: "").way.isPolled }

    // MARK: - Listings

    /// A full listing begins. Blocks.
    mutating func listingBegins() {
        isLimited = false
        _ = followMounts()
        fanotify?.directories = 0
    }

    /// A listing has ended, and has counted the folders: a shortage of watches is logged once, until all have one.
    mutating func listingEnded() {
        guard isLimited else { return isLimitSaid = false }
        if isLimitSaid { return }
        isLimitSaid = true
        let (polled, all) = (polls.book.count, table.count + polls.book.count)
        if let refusal = inotify.refusal {
            return log.emit(
                .watchLimit(root: settings.path, reason: "\(refusal); until then Inlet polls all \(all) folders"))
        }
        let need = WatchNeed(directories: all)
        log.emit(
            .watchLimit(
                root: settings.path,
                reason: "\(table.count) of \(all) folders have a watch, the other \(polled) are polled. "
                    + "fs.inotify.max_user_watches is \(need.limit.map(String.init) ?? "not known") for user "
                    + "\(ProcessSetup.userID): raise it with '\(need.remedy)', and keep it in /etc/sysctl.d"))
    }

    // MARK: - Passes over polled folders

    /// - Returns: why the root must be judged anew, like a lost one; then there is no pass.
    mutating func beginPass() -> String? {
        if isRootPolled {
            // No event tells whether somebody emptied it, or a server lost its disk.
            let isEmpty = RootCheck.isEmpty(settings.path)
            if isEmpty, wasFilled { return "empty at once" }
            wasFilled = !isEmpty
        }
        takeFreedWatches()
        polls.begin()
        return nil
    }

    /// The next finding of the pass; a folder only if it is not followed yet. Blocks on the disk or the network.
    mutating func nextPolled() -> PollPass.Step {
        let step = polls.step(ignore, modes)
        if case .directory(let path) = step,
            table.contains(path) || polls.book.contains(path) || fanotify?.beginnings.contains(path) ?? false
        {
            return .nothing
        }
        return step
    }

    /// Polled folders without a watch get one as soon as others have released theirs, or the limit was raised. The
    /// starting pass checks all their files once more, so that none slips through. Costs one call while there are none.
    private mutating func takeFreedWatches() {
        guard isLimitSaid, settings.mode != .poll else { return }
        // The kernel had no instance for this root, and has one now.
        if inotify.refusal != nil, let fresh = try? Inotify() { inotify = fresh }
        var isRefused = inotify.isSilent
        var taken = 0
        var turn = FolderCache(settings.path)
        for directory in polls.book.directories where !isRefused && taken < Self.mostAtOnce {
            if modes.way(for: directory).way.isPolled { continue }
            do throws(SystemError) {
                try watch(directory, try turn.folder(directory))
                polls.book.leave(directory)
                taken += 1
            } catch {
                // The pass finds its other faults.
                isRefused = error.isWatchLimit
            }
        }
        // All have one: the next shortage is logged again.
        if !isRefused, taken < Self.mostAtOnce { (isLimited, isLimitSaid) = (false, false) }
    }

    /// How long a unit with polled folders must wait for a complete pass; nil if it may be closed.
    mutating func passWait(for unit: UnitClock.Unit) -> Duration? {
        guard !polls.book.isEmpty, isLimitSaid || polls.book.isBeingLeft || modes.isPolled(inOrBelow: unit.folder)
        else {
            return nil
        }
        let now = ContinuousClock.now
        let asked = polls.awaited[unit] ?? now
        polls.awaited[unit] = asked
        if let last = polls.lastPass, last >= asked {
            polls.awaited[unit] = nil
            return nil
        }
        return max(Self.shortestWait, polls.next.map { now.duration(to: $0) } ?? .zero)
    }

    /// The unit got a file: it waits for another pass.
    mutating func unitGrew(_ unit: UnitClock.Unit) { polls.awaited[unit] = nil }

    // MARK: - Status

    /// Folders that are watched, reported without a watch, or polled.
    var directories: Int {
        mutating get {
            guard let marked = fanotify?.directories, marked > 0 else { return table.count + polls.book.count }
            // The first folder of each mount has a watch besides.
            let own = fanotify?.beginnings.count { table.contains($0) } ?? 0
            return marked + max(0, table.count - own) + polls.book.count
        }
    }

    mutating func describe(_ status: inout RootStatus) {
        (status.directories, status.polled) = (directories, polls.book.count)
        (status.watches, status.lastEvent) = (table.count, lastEvent)
        if status.directories > 0 {
            status.mode =
                status.polled >= status.directories
                ? .poll : status.polled > 0 ? .mixed : (fanotify?.directories ?? 0) > 0 ? .fanotify : .inotify
        }
    }
}

/// Which inotify watch stands for which directory of a root; both ways, because renames come by watch and removals by
/// path.
struct WatchTable: Sendable {
    private var paths: [Int32: FilePath] = [:]
    private var watches: [FilePath: Int32] = [:]

    var count: Int { paths.count }

    /// The directory, relative to the root, that `watch` stands for.
    func path(of watch: Int32) -> FilePath? { paths[watch] }

    func contains(_ path: FilePath) -> Bool { watches[path] != nil }

    /// Remembers a watch. The kernel gives one number per inode: a renamed directory keeps its own, which then stands
    /// for its new path.
    mutating func add(_ watch: Int32, _ path: FilePath) {
        if let old = paths[watch], old != path { watches[old] = nil }
        paths[watch] = path
        watches[path] = watch
    }

    mutating func remove(_ watch: Int32) {
        guard let path = paths.removeValue(forKey: watch) else { return }
        if watches[path] == watch { watches[path] = nil }
    }

    /// Forgets one directory, but nothing below it.
    mutating func remove(_ directory: FilePath) {
        guard let watch = watches.removeValue(forKey: directory) else { return }
        if paths[watch] == directory { paths[watch] = nil }
    }

    /// Forgets `directory` and all below it. - Returns: the watches that stood for them.
    mutating func remove(below directory: FilePath) -> [Int32] {
        let gone = watches.filter { $0.key.isWithin(directory) }
        for (path, watch) in gone {
            watches[path] = nil
            paths[watch] = nil
        }
        return Array(gone.values)
    }
}
