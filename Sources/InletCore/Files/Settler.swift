import HeapModule
package import SystemPackage

/// Decides when a file is complete: quiet for its settle time, and no writer holds it.
///
/// The caller reports every sign of life with `observe`, asks for the paths that are `due`, looks at each (stat and
/// writer probe) and hands the look to `judge`; every due path must be judged or forgotten. A busy or growing file is
/// never given up. Memory is bounded by `places`; files that never get complete do not take those of others.
package struct Settler: Sendable {
    /// What a look at a path found.
    package enum Look: Sendable, Equatable {
        case gone
        case notRegular
        /// `busy`: the writer probe says that somebody may still write to it. Because of others it may have to be quiet for
        /// `quiet`, not for its settle time; `why` is then for the status.
        case file(FileIdentity, busy: Bool, quiet: Duration? = nil, why: String? = nil)
        /// A file that waits for others, however quiet it is; to be looked at again after so long.
        case waiting(for: Duration, why: String)
        /// It cannot be looked at, or read.
        case failing(why: String)
    }

    package enum Verdict: Sendable, Equatable {
        /// Complete, with the identity to admit it by; no longer tracked.
        case settled(FileIdentity)
        /// Will be due again.
        case waiting
        /// Not a file, or not tracked (any more).
        case dropped
    }

    /// Each path handed out costs a stat and a probe: a burst must not starve the loop.
    private static let mostDue = 256
    private static let shortestBusyWait = Duration.milliseconds(50)
    private static let longestBusyWait = Duration.seconds(5)
    /// A file of other machines that is older than this has been left alone, whatever their clocks are worth.
    private static let foreignDoubt = Duration.seconds(3600)
    /// A clock that is merely drawn nearer (adjtime(3)) is not put forward.
    private static let leastStep = Duration.seconds(1)

    let settle: Duration
    let places: Places
    var entries: [FilePath: Entry] = [:]
    private var queue: Heap<QueueEntry> = []
    private var turns: UInt64 = 0
    /// The last moment, by both clocks.
    private var lastMoment: (now: ContinuousClock.Instant, wall: WallTime)?
    /// When the wall clock was put forward.
    private var clockStep: ContinuousClock.Instant?
    /// Of `entries`, those that have no place.
    var stuck = 0
    package var stuckFolders: IncompleteFolders
    /// Those that `overdue` named last.
    private var told: Set<FilePath> = []
    /// Refused before, and complete at the looks of this turn.
    var returning: [FilePath: Entry] = [:]

    /// - Parameter settle: the quiet time of files for which `observe` names no other.
    package init(settle: Duration, places: Places = Places()) {
        self.settle = settle
        self.places = places
        stuckFolders = IncompleteFolders(limit: places.folders)
    }

    /// Notices that the wall clock was put forward: files that were written just before look old by it then. A machine without
    /// a clock of its own begins in the past, and is put right while files arrive. Every call of `judge` does so too.
    ///
    /// - Parameter now: not before that of the last call.
    package mutating func note(_ now: ContinuousClock.Instant, wall: WallTime) {
        if let last = lastMoment, wall - last.wall > last.now.duration(to: now) + Self.leastStep { clockStep = now }
        lastMoment = (now, wall)
    }

    /// Whether a file that is `age` old by the wall clock is that old indeed: all that was written before the clock was put
    /// forward has become so by now, as it was noticed that long ago.
    private func isTrue(age: Duration, at now: ContinuousClock.Instant) -> Bool {
        clockStep.map { $0.duration(to: now) >= age } ?? true
    }

    /// Files that are not complete, as far as they are known.
    package var count: Int { entries.count + stuckFolders.left }
    package func isTracked(_ path: FilePath) -> Bool { entries[path] != nil }

    /// When `due` should be asked next; may be early for a path that moved since, never late. nil = nothing is waiting.
    package var nextDeadline: ContinuousClock.Instant? { entries.isEmpty ? nil : queue.min?.deadline }

    /// Something happened to the file: its quiet time begins anew. False = no room for another file; mark its directory
    /// for a rescan.
    package mutating func observe(
        _ path: FilePath, settle: Duration? = nil, at now: ContinuousClock.Instant
    ) -> Bool {
        let settle = settle ?? self.settle
        let known = entries[path]
        guard var entry = known ?? makeEntry(settle, at: now) else { return false }
        if known != nil { entry.stir(at: now) }
        entry.settle = settle
        entry.busyWait = Self.shortestBusyWait
        entry.isBusy = false
        entry.why = nil
        // It is looked at as one that may be complete; without a place, if it had none.
        entry.blocker = nil
        schedule(path, &entry, at: now.advanced(by: settle))
        if known == nil || entry.isStuck { entries[path] = entry } else { keep(path, entry, at: now) }
        return true
    }

    /// A listing shows the file: it is due at once, to be admitted if it is old enough. A file that is tracked already
    /// keeps its time. False = no room.
    package mutating func discover(
        _ path: FilePath, settle: Duration? = nil, at now: ContinuousClock.Instant
    ) -> Bool {
        if entries[path] != nil { return true }
        guard var entry = makeEntry(settle ?? self.settle, at: now) else { return false }
        schedule(path, &entry, at: now)
        entries[path] = entry
        return true
    }

    package mutating func forget(_ path: FilePath) {
        drop(path)
        dropStaleTurns()
    }

    /// Forgets `directory` and everything below it.
    package mutating func forget(below directory: FilePath) {
        for path in entries.keys where path.isWithin(directory) { drop(path) }
        stuckFolders.forget(below: directory)
        dropStaleTurns()
    }

    /// Paths whose quiet time is over, longest overdue first, at most `most` and 256 a call.
    package mutating func due(at now: ContinuousClock.Instant, most: Int = .max) -> [FilePath] {
        var result: [FilePath] = []
        returning = [:]
        while result.count < min(most, Self.mostDue), let turn = queue.min, turn.deadline <= now {
            queue.removeMin()
            guard var entry = entries[turn.path], entry.turn == turn.number else { continue }
            entry.turn = nil
            if entry.deadline > now {
                schedule(turn.path, &entry, at: entry.deadline)
            } else {
                result.append(turn.path)
            }
            entries[turn.path] = entry
        }
        return result
    }

    /// Says what a look at a due path means. A path observed since it was handed out waits its new quiet time.
    ///
    /// - Parameter isForeign: whether other machines, with clocks of their own, may write the file.
    package mutating func judge(
        _ path: FilePath, _ look: Look, isForeign: Bool = false, at now: ContinuousClock.Instant, wall: WallTime
    ) -> Verdict {
        note(now, wall: wall)
        guard var entry = entries[path] else {
            dropStaleTurns()
            return .dropped
        }
        // Later than now for one that was observed meanwhile.
        var next = entry.deadline
        switch look {
        case .gone, .notRegular:
            forget(path)
            return .dropped
        case .waiting(let wait, let why):
            (entry.why, entry.isBusy) = (why, false)
            if entry.blocker?.isRefused != true { entry.blocker = nil }
            next = max(next, now.advanced(by: max(wait, .milliseconds(1))))
        case .failing(let why):
            (entry.why, entry.isBusy) = (why, false)
            entry.hinder(isFailing: true, at: now)
            if next <= now { next = now.advanced(by: entry.failingWait(at: now)) }
        case .file(let identity, let isBusy, let quiet, let why):
            let since = entry.see(identity, isBusy, why, at: now)
            if next > now { break }
            if entry.isBusy {
                next = now.advanced(by: max(entry.busyWait, entry.isStuck ? crowdWait : .zero))
                entry.busyWait = min(entry.busyWait * 2, max(entry.settle, Self.longestBusyWait))
            } else if let wait = remainingWait(identity, quiet ?? entry.settle, since, isForeign, now, wall) {
                next = now.advanced(by: wait)
            } else {
                if entry.blocker?.isRefused == true { returning[path] = entry }
                forget(path)
                return .settled(identity)
            }
        }
        schedule(path, &entry, at: next)
        keep(path, entry, at: now)
        return entries[path] == nil ? .dropped : .waiting
    }

    /// The identity of an untracked file that is complete by this first look, without a second one; nil where it must be tracked.
    ///
    /// - Parameter settle: how long it must have been quiet; nil = as long as any.
    package mutating func complete(
        _ look: Look, settle: Duration?, isForeign: Bool, at now: ContinuousClock.Instant, wall: WallTime
    ) -> FileIdentity? {
        guard case .file(let identity, busy: false, let quiet, _) = look else { return nil }
        note(now, wall: wall)
        return remainingWait(identity, quiet ?? settle ?? self.settle, now, isForeign, now, wall) == nil
            ? identity : nil
    }

    /// How much longer the file must stay as it is; nil = it is complete. Either we saw it unchanged for `quiet`, or its own times
    /// say so and can be trusted: not one in the future, nor any once the wall clock was put forward, nor what a server with a clock
    /// of its own has written of late. Such a file is seen twice.
    private func remainingWait(
        _ identity: FileIdentity, _ quiet: Duration, _ since: ContinuousClock.Instant, _ isForeign: Bool,
        _ now: ContinuousClock.Instant, _ wall: WallTime
    ) -> Duration? {
        let age = wall - WallTime(nanoseconds: max(identity.modified, identity.changed))
        let isTrusted =
            age >= .zero && isTrue(age: quiet, at: now) && (!isForeign || age >= Self.foreignDoubt)
        let bySight = quiet - since.duration(to: now)
        let wait = isTrusted ? min(bySight, quiet - age) : bySight
        // A first look is not yet two looks, whatever the settle time.
        return wait <= .zero && (isTrusted || now > since) ? nil : max(wait, .milliseconds(1))
    }

    private func makeEntry(_ settle: Duration, at now: ContinuousClock.Instant) -> Entry? {
        hasRoom ? Entry(settle: settle, at: now, busyWait: Self.shortestBusyWait) : nil
    }

    /// Sets the deadline. A turn that comes earlier is left in the queue and re-queued when it comes up, so that a file
    /// written for hours has one turn, not one for each event.
    mutating func schedule(_ path: FilePath, _ entry: inout Entry, at deadline: ContinuousClock.Instant) {
        entry.deadline = deadline
        if entry.turn != nil, entry.turnDeadline <= deadline { return }
        turns += 1
        entry.turn = turns
        entry.turnDeadline = deadline
        queue.insert(QueueEntry(deadline: deadline, number: turns, path: path))
    }

    /// Files that come and go at once leave turns behind; they must not pile up for the length of a long quiet time.
    private mutating func dropStaleTurns() {
        guard queue.count > 2 * entries.count + 1024 else { return }
        let live = queue.unordered.filter { entries[$0.path]?.turn == $0.number }
        queue = Heap(live)
    }
}

extension Settler {
    /// A path's place in the queue; stale when its entry has another number.
    struct QueueEntry: Comparable, Sendable {
        var deadline: ContinuousClock.Instant
        var number: UInt64
        var path: FilePath

        static func < (left: QueueEntry, right: QueueEntry) -> Bool {
            (left.deadline, left.number) < (right.deadline, right.number)
        }
    }

    /// What is remembered of one file.
    struct Entry: Sendable {
        var settle: Duration
        var since: ContinuousClock.Instant
        var deadline: ContinuousClock.Instant
        var busyWait: Duration
        var isBusy = false
        /// What the last look said that it waits for.
        var why: String?
        /// The first of the looks in a row that found the same identity.
        var look: (identity: FileIdentity, time: ContinuousClock.Instant)?
        /// Looks that found another identity than the one before, and signs of life apart from one another.
        var changes = 0
        /// The sign of life that was counted last.
        var stirred: ContinuousClock.Instant
        var blocker: SettleBlocker?
        /// It takes no place of those that may settle.
        var isStuck = false
        /// Its folder speaks for it.
        var isCounted = false
        /// The number of the turn in the queue; nil while the path is handed out.
        var turn: UInt64?
        /// When that turn comes up; never after `deadline` but for a path handed out.
        var turnDeadline: ContinuousClock.Instant

        init(settle: Duration, at now: ContinuousClock.Instant, busyWait: Duration) {
            self.settle = settle
            self.busyWait = busyWait
            since = now
            stirred = now
            deadline = now
            turnDeadline = now
        }

        /// Whether it was looked at, and only others keep it.
        var isAwaiting: Bool { why != nil && !isBusy }

        /// A sign of life; one a second counts, because programs make several at once.
        mutating func stir(at now: ContinuousClock.Instant) {
            guard stirred.duration(to: now) >= .seconds(1) else { return }
            changes += 1
            stirred = now
        }

        /// Takes in what a look found. - Returns: since when the file is as it is now.
        mutating func see(
            _ identity: FileIdentity, _ isBusy: Bool, _ why: String?, at now: ContinuousClock.Instant
        ) -> ContinuousClock.Instant {
            self.why = why
            let isChanged = look.map { $0.identity != identity } ?? false
            if isChanged { changes += 1 }
            if isBusy || isChanged {
                hinder(isFailing: false, at: now)
            } else if blocker?.isRefused != true {
                blocker = nil
            }
            self.isBusy = isBusy
            if let look, !isChanged { return look.time }
            look = (identity, now)
            return now
        }
    }
}

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
        package var changes = 0
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

    /// Those of `waiting`, the files that have waited longest, which have been incomplete for so long that a person should know
    /// why. Each is named once; none is given up. Files that wait for others, or only for room, are not: that is said elsewhere.
    package mutating func overdue(
        _ waiting: [Waiting], after limit: Duration, at now: ContinuousClock.Instant
    ) -> [Waiting] {
        let late = waiting.filter { file in
            file.since.duration(to: now) >= limit && (file.isBusy || file.changes > 0 && file.why == nil)
        }
        defer { told = Set(late.map(\.path)) }
        return late.filter { !told.contains($0.path) }
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

extension Settler.Waiting {
    /// What keeps it, as far as that is known without looking for its writers.
    package var reason: String? {
        if isBusy { return "open for writing" }
        if let why { return why }
        return changes > 1 ? "it keeps changing: \(changes) times so far" : nil
    }
}
