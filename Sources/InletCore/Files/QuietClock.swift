/// Decides whether a watched folder is quiet: no file came for longer than its `expect` allows.
package struct QuietClock: Sendable, Equatable {
    package enum News: Sendable, Equatable {
        case quiet(since: WallTime)
        /// A file came after a quiet time.
        case recovered(since: WallTime)
        /// It counts as quiet no longer, although nothing came: the configuration expects less.
        case withdrawn
    }

    /// When the newest file was admitted.
    package private(set) var lastFile: WallTime?
    /// Since when it is quiet, as reported.
    package private(set) var quietSince: WallTime?
    /// The start of the count where no file is newer.
    private var start: WallTime
    /// Since when this process lists or watches the folder. A report waits a little after that: files that came while
    /// nobody watched are admitted first.
    private var followedSince: WallTime

    /// How long it waits at most for the files that came while nobody watched.
    package static let longestGrace = Duration.seconds(60)

    /// - Parameters:
    ///   - start: when the folder was first watched.
    ///   - followedSince: when this process began with it.
    package init(
        lastFile: WallTime? = nil, quietSince: WallTime? = nil, start: WallTime,
        followedSince: WallTime = WallTime(milliseconds: 0)
    ) {
        (self.lastFile, self.quietSince, self.start) = (lastFile, quietSince, start)
        self.followedSince = followedSince
    }

    /// A file was admitted. - Returns: whether that ends a quiet time.
    package mutating func fileCame(at time: WallTime) -> Bool {
        lastFile = max(lastFile ?? time, time)
        return quietSince.map { time > $0 } ?? false
    }

    /// Nothing could come until now: another agent has watched the folder. The count starts again.
    package mutating func startAgain(at now: WallTime) { start = max(start, now) }

    /// Its listing has not ended: more files may be found.
    package mutating func isListed(at now: WallTime) { followedSince = max(followedSince, now) }

    private var base: WallTime { max(lastFile ?? start, start) }

    /// Decides, and remembers what was decided.
    ///
    /// - Returns: `next` is the time of the next decision; nil where only a file or another configuration changes it.
    package mutating func decide(expect: Duration?, at now: WallTime) -> (news: News?, next: WallTime?) {
        guard let expect else {
            defer { quietSince = nil }
            return (quietSince == nil ? nil : .withdrawn, nil)
        }
        // A clock that was set may make the time look far away.
        let grace = min(expect, Self.longestGrace)
        let due = min(max(base + expect, followedSince + grace), now + max(expect, Self.longestGrace))
        if let since = quietSince {
            if let lastFile, lastFile > since {
                quietSince = nil
                return (.recovered(since: since), due)
            }
            // After a start, what was reported stays until the files that waited are admitted.
            if base + expect <= now { return (nil, nil) }
            quietSince = nil
            return (.withdrawn, due)
        }
        if due > now { return (nil, due) }
        quietSince = base
        return (.quiet(since: base), nil)
    }
}
