/// Decides whether a watched folder is quiet: no file came for longer than its `expect` allows.
///
/// The wall clock only says how long ago the last file of an earlier process came. From then on the time passes by a
/// clock that nobody sets: a jump of the wall clock makes no folder quiet.
package struct QuietClock: Sendable, Equatable {
    package typealias Instant = ContinuousClock.Instant

    package enum News: Sendable, Equatable {
        case quiet(since: WallTime)
        /// A file came after a quiet time.
        case recovered(since: WallTime)
        /// It counts as quiet no longer, although nothing came: the configuration expects less.
        case withdrawn
    }

    /// Where the folder's files are seen.
    package enum Presence: Sendable, Equatable {
        case watched
        /// Its listing has not ended: more files may be found.
        case listed
        case away
        /// Another agent watches it: its files go there.
        case elsewhere
    }

    /// When the newest file was admitted.
    package private(set) var lastFile: WallTime?
    /// Since when it is quiet, as reported.
    package private(set) var quietSince: WallTime?
    /// Whether a file came since then.
    private var hasCome = false
    /// The start of the count where no file is newer.
    private var start: WallTime
    /// The same start, or that of the newest file.
    private var countedFrom: Instant
    /// Since when this process lists or watches the folder. A report waits a little after that: files that came while
    /// nobody watched are admitted first.
    private var followedSince: Instant
    private var presence = Presence.listed

    /// How long it waits at most for the files that came while nobody watched.
    package static let longestGrace = Duration.seconds(60)

    /// - Parameters:
    ///   - start: when the folder was first watched.
    ///   - now: the same time as `instant`.
    package init(
        lastFile: WallTime? = nil, quietSince: WallTime? = nil, start: WallTime, at now: WallTime, _ instant: Instant
    ) {
        // Times of a clock that was ahead are not later than now.
        (self.lastFile, self.start) = (lastFile.map { min($0, now) }, min(start, now))
        (self.quietSince, followedSince, countedFrom) = (quietSince, instant, instant)
        if let lastFile, let quietSince { hasCome = lastFile > quietSince }
        countedFrom = instant.advanced(by: .zero - (now - base))
    }

    /// A file was admitted. - Returns: whether that ends a quiet time.
    package mutating func fileCame(at time: WallTime, _ instant: Instant) -> Bool {
        (lastFile, countedFrom) = (time, max(countedFrom, instant))
        hasCome = quietSince != nil
        return hasCome
    }

    /// The folder is seen there now.
    package mutating func see(_ presence: Presence, at now: WallTime, _ instant: Instant) {
        // Nothing could come until now: the count starts again.
        if presence == .elsewhere || self.presence == .elsewhere { (start, countedFrom) = (now, instant) }
        if presence == .listed || presence == .watched && self.presence != .watched { followedSince = instant }
        self.presence = presence
    }

    private var base: WallTime { max(lastFile ?? start, start) }

    /// Decides, and remembers what was decided.
    ///
    /// - Returns: `next` is the time of the next decision; nil where only a file or another configuration changes it.
    package mutating func decide(
        expect: Duration?, at now: WallTime, _ instant: Instant
    ) -> (news: News?, next: Instant?) {
        guard let expect else {
            defer { quietSince = nil }
            return (quietSince == nil ? nil : .withdrawn, nil)
        }
        let isOverdue = countedFrom.duration(to: instant) >= expect
        let grace = min(expect, Self.longestGrace)
        let due = max(countedFrom.advanced(by: expect), followedSince.advanced(by: grace))
        if let since = quietSince {
            // After a start, what was reported stays until the files that waited are admitted.
            if !hasCome, isOverdue { return (nil, nil) }
            quietSince = nil
            return (hasCome ? .recovered(since: since) : .withdrawn, due)
        }
        if due > instant { return (nil, due) }
        let since = min(base, now)
        (quietSince, hasCome) = (since, false)
        return (.quiet(since: since), nil)
    }
}
