import HeapModule
package import SystemPackage

/// Decides when a file is complete: quiet for its settle time, and open by no writer.
///
/// The caller reports every activity with `observe` and asks for the paths that are `due`. It looks at each (stat and
/// writer probe) and passes the look to `judge`; every due path must be judged or forgotten. A busy or growing file is
/// never given up. Memory is bounded by `places`; files that never become complete do not take the places of others.
package struct Settler: Sendable {
    /// The result of looking at a path.
    package enum Look: Sendable, Equatable {
        case gone
        case notRegular
        /// `busy`: a program may still write to it, according to the writer probe. With `quiet`, it must be quiet for
        /// that long because of other files, instead of its settle time; `why` explains that in the status.
        case file(FileIdentity, busy: Bool, quiet: Duration? = nil, why: String? = nil)
        /// A file that waits for others, however quiet it is; look at it again after this time.
        case waiting(for: Duration, why: String)
        /// It cannot be looked at, or read.
        case failing(why: String)
    }

    package enum Verdict: Sendable, Equatable {
        /// Complete, with the identity for admission; no longer tracked.
        case settled(FileIdentity)
        /// Due again later.
        case waiting
        /// Not a file, or no longer tracked.
        case dropped
    }

    /// Each due path costs a stat and a probe: a burst must not starve the loop.
    private static let mostDue = 256
    private static let shortestBusyWait = Duration.milliseconds(50)
    private static let longestBusyWait = Duration.seconds(5)
    /// A remote file older than this is no longer written, however wrong other machines' clocks are.
    private static let foreignDoubt = Duration.seconds(3600)
    /// So many files may keep their memory when they are gone.
    private static let usual = 1024
    /// The smallest clock change that counts as a step: adjtime(3) only slews the clock.
    private static let leastStep = Duration.seconds(1)

    let settle: Duration
    let places: Places
    var entries: [FilePath: Entry] = [:]
    private var queue: Heap<QueueEntry> = []
    private var turns: UInt64 = 0
    /// The last moment, by both clocks.
    private var lastMoment: (now: ContinuousClock.Instant, wall: WallTime)?
    /// When the wall clock was last stepped forward.
    private var clockStep: ContinuousClock.Instant?
    /// The number of `entries` without a place.
    var stuck = 0
    package var stuckFolders: IncompleteFolders
    /// The files that `overdue` last returned.
    private var told: Set<FilePath> = []
    /// Files that were refused before, and complete at this turn's looks.
    var returning: [FilePath: Entry] = [:]

    /// - Parameter settle: the quiet time of files for which `observe` gives none.
    package init(settle: Duration, places: Places = Places()) {
        self.settle = settle
        self.places = places
        stuckFolders = IncompleteFolders(limit: places.folders)
    }

    /// Detects a step of the wall clock: files written just before then look old. A machine without a hardware clock
    /// starts in the past, and is corrected while files arrive. Every call of `judge` checks this too.
    ///
    /// - Parameter now: not before that of the last call.
    package mutating func note(_ now: ContinuousClock.Instant, wall: WallTime) {
        if let last = lastMoment, wall - last.wall > last.now.duration(to: now) + Self.leastStep { clockStep = now }
        lastMoment = (now, wall)
    }

    /// Whether a file that is `age` old by the wall clock is really that old: true once a clock step is as long ago.
    private func isTrue(age: Duration, at now: ContinuousClock.Instant) -> Bool {
        clockStep.map { $0.duration(to: now) >= age } ?? true
    }

    /// The known number of incomplete files.
    package var count: Int { entries.count + stuckFolders.left }
    package func isTracked(_ path: FilePath) -> Bool { entries[path] != nil }

    /// When to ask for `due` next; may be too early for a path that moved since, never too late. nil if nothing waits.
    package var nextDeadline: ContinuousClock.Instant? { entries.isEmpty ? nil : queue.min?.deadline }

    /// The file was active: its quiet time starts over. False without room for another file; mark its directory for a
    /// rescan.
    package mutating func observe(
        _ path: FilePath, settle: Duration? = nil, at now: ContinuousClock.Instant
    ) -> Bool {
        let settle = settle ?? self.settle
        let known = entries[path]
        guard var entry = known ?? makeEntry(settle, at: now) else { return false }
        if known != nil { entry.stir(at: now) }
        entry.settle = settle
        schedule(path, &entry, at: now.advanced(by: settle))
        if known == nil || entry.isStuck { entries[path] = entry } else { keep(path, entry, at: now) }
        return true
    }

    /// A listing found the file: it is due at once, and admitted if it is old enough. A tracked file keeps its time.
    /// False without room.
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
        shrink()
        dropStaleTurns()
    }

    /// Forgets `directory` and everything below it.
    package mutating func forget(below directory: FilePath) {
        for path in entries.keys where path.isWithin(directory) { drop(path) }
        stuckFolders.forget(below: directory)
        shrink()
        dropStaleTurns()
    }

    /// Paths whose quiet time is over, longest overdue first; at most `most`, and 256 per call.
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

    /// Decides what a look at a due path means. A path observed meanwhile waits for its new quiet time.
    ///
    /// - Parameter isForeign: whether other machines, with their own clocks, may write the file.
    package mutating func judge(
        _ path: FilePath, _ look: Look, isForeign: Bool = false, at now: ContinuousClock.Instant, wall: WallTime
    ) -> Verdict {
        note(now, wall: wall)
        guard var entry = entries[path] else {
            dropStaleTurns()
            return .dropped
        }
        // In the future if the file was observed meanwhile.
        var (next, findings) = (entry.deadline, entry.findings)
        switch look {
        case .gone, .notRegular:
            forget(path)
            return .dropped
        case .waiting(let wait, let why):
            (findings.why, findings.isBusy) = (why, false)
            if findings.blocker?.isRefused != true { findings.blocker = nil }
            next = max(next, now.advanced(by: max(wait, .milliseconds(1))))
        case .failing(let why):
            (findings.why, findings.isBusy) = (why, false)
            findings.hinder(isFailing: true, at: now)
            if next <= now { next = now.advanced(by: findings.failingWait(at: now)) }
        case .file(let identity, let isBusy, let quiet, let why):
            let since = findings.see(identity, isBusy, why, at: now)
            if next > now { break }
            if isBusy {
                next = now.advanced(by: max(findings.nextBusyWait(entry.settle), entry.isStuck ? crowdWait : .zero))
            } else if let wait = remainingWait(identity, quiet ?? entry.settle, since, isForeign, now, wall) {
                next = now.advanced(by: wait)
            } else {
                if findings.blocker?.isRefused == true { returning[path] = entry }
                forget(path)
                return .settled(identity)
            }
        }
        entry.findings = findings
        schedule(path, &entry, at: next)
        keep(path, entry, at: now)
        return entries[path] == nil ? .dropped : .waiting
    }

    /// The identity of an untracked file that is complete at this first look; nil if it must be tracked.
    ///
    /// - Parameter settle: how long it must have been quiet; nil for the usual time.
    package mutating func complete(
        _ look: Look, settle: Duration?, isForeign: Bool, at now: ContinuousClock.Instant, wall: WallTime
    ) -> FileIdentity? {
        guard case .file(let identity, busy: false, let quiet, _) = look else { return nil }
        note(now, wall: wall)
        return remainingWait(identity, quiet ?? settle ?? self.settle, now, isForeign, now, wall) == nil
            ? identity : nil
    }

    /// How much longer the file must stay unchanged; nil if it is complete. Either we saw it unchanged for `quiet`, or
    /// its own times show it and can be trusted. Not trusted: times in the future, times right after a step of the wall
    /// clock, and recent times from a server with its own clock. Such a file is looked at twice.
    private func remainingWait(
        _ identity: FileIdentity, _ quiet: Duration, _ since: ContinuousClock.Instant, _ isForeign: Bool,
        _ now: ContinuousClock.Instant, _ wall: WallTime
    ) -> Duration? {
        let age = wall - WallTime(nanoseconds: max(identity.modified, identity.changed))
        let isTrusted =
            age >= .zero && isTrue(age: quiet, at: now) && (!isForeign || age >= Self.foreignDoubt)
        let bySight = quiet - since.duration(to: now)
        let wait = isTrusted ? min(bySight, quiet - age) : bySight
        // A first look is not two looks, whatever the settle time.
        return wait <= .zero && (isTrusted || now > since) ? nil : max(wait, .milliseconds(1))
    }

    private func makeEntry(_ settle: Duration, at now: ContinuousClock.Instant) -> Entry? {
        hasRoom ? Entry(settle: settle, at: now) : nil
    }

    /// Sets the deadline. An earlier turn stays in the queue and is queued again when it comes up. So a file written
    /// for hours has one turn, not one for each event.
    mutating func schedule(_ path: FilePath, _ entry: inout Entry, at deadline: ContinuousClock.Instant) {
        entry.deadline = deadline
        if entry.turn != nil, entry.turnDeadline <= deadline { return }
        turns += 1
        entry.turn = turns
        entry.turnDeadline = deadline
        queue.insert(QueueEntry(deadline: deadline, number: turns, path: path))
    }

    /// Returns the memory of a burst: neither container gives back its room by itself.
    private mutating func shrink() {
        guard entries.capacity > Self.usual, entries.count < entries.capacity / 8 else { return }
        entries = Dictionary(uniqueKeysWithValues: entries.map { ($0, $1) })
        keepLiveTurns()
    }

    /// Removes turns of files that came and went; they must not accumulate during a long quiet time.
    private mutating func dropStaleTurns() {
        guard queue.count > 2 * entries.count + Self.usual else { return }
        keepLiveTurns()
    }

    private mutating func keepLiveTurns() {
        queue = Heap(queue.unordered.filter { entries[$0.path]?.turn == $0.number })
    }
}

extension Settler {
    /// A path's position in the queue; stale if its entry has another number.
    struct QueueEntry: Comparable, Sendable {
        var deadline: ContinuousClock.Instant
        var number: UInt64
        var path: FilePath

        static func < (left: QueueEntry, right: QueueEntry) -> Bool {
            (left.deadline, left.number) < (right.deadline, right.number)
        }
    }

    /// The state of one file. Of thousands that arrive at once, most are complete at their first look: what looks and
    /// repeated activity find takes memory only for the others.
    struct Entry: Sendable {
        var settle: Duration
        var since: ContinuousClock.Instant
        var deadline: ContinuousClock.Instant
        /// When that turn comes up; never after `deadline`, except for a path handed out.
        var turnDeadline: ContinuousClock.Instant
        private var box = Box.empty
        /// The number of its turn in the queue; nil while the path is handed out.
        var turn: UInt64?
        /// Whether it takes no place of files that may settle.
        var isStuck = false
        /// Whether its folder reports it.
        var isCounted = false

        private indirect enum Box: Sendable {
            case empty
            case full(Findings)
        }

        init(settle: Duration, at now: ContinuousClock.Instant) {
            self.settle = settle
            since = now
            deadline = now
            turnDeadline = now
        }

        var findings: Findings {
            get { if case .full(let findings) = box { findings } else { Findings(at: since) } }
            set { box = .full(newValue) }
        }

        /// Another activity: the next look treats the file as possibly complete, but without a place if it had none.
        /// Counts at most one per second: programs cause several at once.
        mutating func stir(at now: ContinuousClock.Instant) {
            if case .empty = box, since.duration(to: now) < .seconds(1) { return }
            findings.stir(at: now)
        }

        var why: String? { findings.why }
        var isBusy: Bool { findings.isBusy }
        var changes: Int { findings.changes }
        var blocker: SettleBlocker? { findings.blocker }
        /// Whether only other files keep it.
        var isAwaiting: Bool { why != nil && !isBusy }
    }

    /// Observations of a file since it is tracked.
    struct Findings: Sendable {
        var busyWait = Settler.shortestBusyWait
        var isBusy = false
        /// The reason for waiting, by the last look.
        var why: String?
        /// The first of consecutive looks that found the same identity.
        var look: (identity: FileIdentity, time: ContinuousClock.Instant)?
        /// The number of looks that found a changed identity, and of separate activities.
        var changes = 0
        /// The last activity that was counted.
        var stirred: ContinuousClock.Instant
        var blocker: SettleBlocker?

        init(at now: ContinuousClock.Instant) { stirred = now }

        fileprivate mutating func stir(at now: ContinuousClock.Instant) {
            busyWait = Settler.shortestBusyWait
            (isBusy, why, blocker) = (false, nil, nil)
            guard stirred.duration(to: now) >= .seconds(1) else { return }
            changes += 1
            stirred = now
        }

        /// Until the next look at a file that is open for writing: longer each time.
        fileprivate mutating func nextBusyWait(_ settle: Duration) -> Duration {
            defer { busyWait = min(busyWait * 2, max(settle, Settler.longestBusyWait)) }
            return busyWait
        }

        /// Notes the result of a look. - Returns: since when the file is unchanged.
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

/// Incomplete files: waking those that wait for others, and showing them.
extension Settler {
    /// An incomplete file, for the status.
    package struct Waiting: Sendable, Equatable {
        package var path: FilePath
        /// When tracking started.
        package var since: ContinuousClock.Instant
        /// Whether a writer has it open; otherwise it was not quiet for long enough.
        package var isBusy: Bool
        /// Any other reason for waiting.
        package var why: String?
        /// How often it was seen to change.
        package var changes = 0
    }

    /// The files that have waited longest, oldest first. Files that are open or changing come first, so that thousands
    /// of files waiting for others or for room do not hide them.
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

    /// The files that it waits for have changed: a tracked file is due at once, and its quiet time continues.
    package mutating func wake(_ path: FilePath, at now: ContinuousClock.Instant) {
        guard var entry = entries[path], entry.deadline > now, entry.isAwaiting else { return }
        schedule(path, &entry, at: now)
        entries[path] = entry
    }

    /// `companion` waits for the file at `main`, which is due at once, tracked or not. Without room, the file takes the
    /// companion's place; otherwise companions could keep all files out for ever. False: list the tree again, to find
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

    /// Returns files of `waiting` (those that have waited longest) that have been incomplete for so long that a person
    /// should know. Each is returned once, and none is given up. Files that wait for others, or only for room, are
    /// reported elsewhere.
    package mutating func overdue(
        _ waiting: [Waiting], after limit: Duration, at now: ContinuousClock.Instant
    ) -> [Waiting] {
        let late = waiting.filter { file in
            file.since.duration(to: now) >= limit && (file.isBusy || file.changes > 0 && file.why == nil)
        }
        defer { told = Set(late.map(\.path)) }
        return late.filter { !told.contains($0.path) }
    }

    /// The folders of `folders` with incomplete files. Looks at every entry, once.
    package func tracked(below folders: Set<FilePath>) -> Set<FilePath> {
        var found: Set<FilePath> = []
        let listed = stuckFolders.toList
        // The root may stand for any folder.
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
    /// Whether it has a writer, or changes; other files and lack of room do not count.
    private var isStirred: Bool { isBusy || changes > 0 && why == nil }

    fileprivate func isBefore(_ other: Self) -> Bool {
        isStirred == other.isStirred ? since < other.since : isStirred
    }
}

extension Settler.Waiting {
    /// The reason why it is incomplete, as far as known without searching for its writers.
    package var reason: String? {
        if isBusy { return "open for writing" }
        if let why { return why }
        return changes > 1 ? "it keeps changing: \(changes) times so far" : nil
    }
}
