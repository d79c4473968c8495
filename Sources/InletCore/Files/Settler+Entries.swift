package import SystemPackage

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
        /// How many of the looks at it found something else than the one before.
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

    /// A path's place in the queue; stale when its entry has another number.
    struct Turn: Comparable, Sendable {
        var deadline: ContinuousClock.Instant
        var number: UInt64
        var path: FilePath

        static func < (left: Turn, right: Turn) -> Bool {
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
        /// Looks that found another identity than the one before.
        var changes = 0
        /// The number of the turn in the queue; nil while the path is handed out.
        var turn: UInt64?
        /// When that turn comes up; never after `deadline` but for a path handed out.
        var turnDeadline: ContinuousClock.Instant

        init(settle: Duration, at now: ContinuousClock.Instant, busyWait: Duration) {
            self.settle = settle
            self.busyWait = busyWait
            since = now
            deadline = now
            turnDeadline = now
        }

        /// Whether it was looked at, and only others keep it.
        var isAwaiting: Bool { why != nil && !isBusy }

        /// How much longer the file must stay as it is; nil = it is complete. Either we saw it unchanged for `settle`, or
        /// its own times say so and can be trusted, which a time in the future cannot.
        static func remainingWait(
            _ settle: Duration, _ identity: FileIdentity, since: ContinuousClock.Instant, now: ContinuousClock.Instant,
            wall: WallTime
        ) -> Duration? {
            let bySight = settle - since.duration(to: now)
            let age = wall - WallTime(nanoseconds: max(identity.modified, identity.changed))
            let byClock = age < .zero ? bySight : settle - age
            // A first look is not yet two looks, whatever the settle time.
            let isSecondLook = now > since || age >= .zero
            let wait = min(bySight, byClock)
            if wait <= .zero, isSecondLook { return nil }
            return max(wait, .milliseconds(1))
        }
    }
}

extension Settler.Look {
    /// The identity of a file that is complete by this first look, without a second one; nil where it must be tracked.
    ///
    /// - Parameter settle: how long it must have been quiet, by its own times.
    package func complete(settle: Duration, wall: WallTime) -> FileIdentity? {
        let now = ContinuousClock.now
        let (identity, quiet): (FileIdentity, Duration)
        switch self {
        case .file(let found, busy: false): (identity, quiet) = (found, settle)
        case .bound(let found, busy: false, let wanted, _): (identity, quiet) = (found, wanted)
        default: return nil
        }
        let wait = Settler.Entry.remainingWait(quiet, identity, since: now, now: now, wall: wall)
        return wait == nil ? identity : nil
    }
}
