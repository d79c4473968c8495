import HeapModule
package import SystemPackage

/// Decides when a file is complete: quiet for its settle time, and no writer holds it.
///
/// The caller reports every sign of life with `observe`, asks for the paths that are `due`, looks at each (stat and
/// writer probe) and hands the look to `judge`; every due path must be judged or forgotten. A busy or growing file is
/// never given up. Memory is bounded by `capacity`.
package struct Settler: Sendable {
    /// What a look at a path found.
    package enum Look: Sendable, Equatable {
        case gone
        case notRegular
        /// `busy`: the writer probe says that somebody may still write to it.
        case file(FileIdentity, busy: Bool)
        /// A file that is complete after `quiet`, not after its settle time, because of others; `why` is for the status.
        case bound(FileIdentity, busy: Bool, quiet: Duration, why: String)
        /// A file that waits for others, however quiet it is; to be looked at again after so long.
        case waiting(for: Duration, why: String)
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

    let settle: Duration
    private let capacity: Int
    private(set) var entries: [FilePath: Entry] = [:]
    private var queue: Heap<Turn> = []
    private var turns: UInt64 = 0
    var steps = ClockSteps()

    /// - Parameter settle: the quiet time of files for which `observe` names no other.
    package init(settle: Duration, capacity: Int = 50_000) {
        self.settle = settle
        self.capacity = capacity
    }

    /// Notices that the wall clock was put forward; every call of `judge` does so too.
    package mutating func note(_ now: ContinuousClock.Instant, wall: WallTime) { steps.note(now, wall) }

    package var count: Int { entries.count }
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
        schedule(path, &entry, at: now.advanced(by: settle))
        entries[path] = entry
        return true
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
        for path in entries.keys where found.count < folders.count {
            var folder = path
            while !folder.isEmpty {
                if folders.contains(folder) { found.insert(folder) }
                folder.removeLastComponent()
            }
        }
        return found
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
        entries[path] = nil
        dropStaleTurns()
    }

    /// Forgets `directory` and everything below it.
    package mutating func forget(below directory: FilePath) {
        entries = entries.filter { !$0.key.starts(with: directory) }
        dropStaleTurns()
    }

    /// Paths whose quiet time is over, longest overdue first, at most `most` and 256 a call.
    package mutating func due(at now: ContinuousClock.Instant, most: Int = .max) -> [FilePath] {
        var result: [FilePath] = []
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
        steps.note(now, wall)
        guard var entry = entries[path] else {
            dropStaleTurns()
            return .dropped
        }
        switch look {
        case .gone, .notRegular:
            forget(path)
            return .dropped
        case .waiting(let wait, let why):
            entry.why = why
            entry.isBusy = false
            schedule(path, &entry, at: max(entry.deadline, now.advanced(by: max(wait, .milliseconds(1)))))
        case .file(let identity, let isBusy):
            entry.why = nil
            let clock = clock(for: identity, entry.settle, isForeign, now, wall)
            if settles(path, &entry, identity, isBusy, entry.settle, now, clock) { return .settled(identity) }
        case .bound(let identity, let isBusy, let quiet, let why):
            entry.why = why
            let clock = clock(for: identity, quiet, isForeign, now, wall)
            if settles(path, &entry, identity, isBusy, quiet, now, clock) { return .settled(identity) }
        }
        entries[path] = entry
        return .waiting
    }

    /// Whether the file is complete, and then it is no longer tracked; otherwise it is due again later.
    private mutating func settles(
        _ path: FilePath, _ entry: inout Entry, _ identity: FileIdentity, _ isBusy: Bool, _ quiet: Duration,
        _ now: ContinuousClock.Instant, _ wall: WallTime?
    ) -> Bool {
        if entry.look?.identity != identity {
            if entry.look != nil { entry.changes += 1 }
            entry.look = (identity, now)
        }
        let since = entry.look?.time ?? now
        entry.isBusy = isBusy
        if entry.deadline > now {
            schedule(path, &entry, at: entry.deadline)
        } else if isBusy {
            schedule(path, &entry, at: now.advanced(by: entry.busyWait))
            entry.busyWait = min(entry.busyWait * 2, max(entry.settle, Self.longestBusyWait))
        } else if let wait = Entry.remainingWait(quiet, identity, since: since, now: now, wall: wall) {
            schedule(path, &entry, at: now.advanced(by: wait))
        } else {
            forget(path)
            return true
        }
        return false
    }

    private func makeEntry(_ settle: Duration, at now: ContinuousClock.Instant) -> Entry? {
        entries.count < capacity ? Entry(settle: settle, at: now, busyWait: Self.shortestBusyWait) : nil
    }

    /// Sets the deadline. A turn that comes earlier is left in the queue and re-queued when it comes up, so that a file
    /// written for hours has one turn, not one for each event.
    private mutating func schedule(_ path: FilePath, _ entry: inout Entry, at deadline: ContinuousClock.Instant) {
        entry.deadline = deadline
        if entry.turn != nil, entry.turnDeadline <= deadline { return }
        turns += 1
        entry.turn = turns
        entry.turnDeadline = deadline
        queue.insert(Turn(deadline: deadline, number: turns, path: path))
    }

    /// Files that come and go at once leave turns behind; they must not pile up for the length of a long quiet time.
    private mutating func dropStaleTurns() {
        guard queue.count > 2 * entries.count + 1024 else { return }
        let live = queue.unordered.filter { entries[$0.path]?.turn == $0.number }
        queue = Heap(live)
    }
}
