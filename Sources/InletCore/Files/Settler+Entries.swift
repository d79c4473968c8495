import SystemPackage

extension Settler {
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
        /// Looks that found another identity than the one before, and signs of life apart from one another.
        var changes = 0
        /// The sign of life that was counted last.
        var stirred: ContinuousClock.Instant
        var hindrance: Hindrance?
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

        /// How much longer the file must stay as it is; nil = it is complete. Either we saw it unchanged for `settle`, or
        /// its own times say so and can be trusted, which a time in the future cannot.
        ///
        /// - Parameter wall: nil when the wall clock says nothing of that.
        static func remainingWait(
            _ settle: Duration, _ identity: FileIdentity, since: ContinuousClock.Instant, now: ContinuousClock.Instant,
            wall: WallTime?
        ) -> Duration? {
            let bySight = settle - since.duration(to: now)
            let written = WallTime(nanoseconds: max(identity.modified, identity.changed))
            let age = wall.map { $0 - written } ?? .seconds(-1)
            let byClock = age < .zero ? bySight : settle - age
            // A first look is not yet two looks, whatever the settle time.
            let isSecondLook = now > since || age >= .zero
            let wait = min(bySight, byClock)
            if wait <= .zero, isSecondLook { return nil }
            return max(wait, .milliseconds(1))
        }
    }
}
