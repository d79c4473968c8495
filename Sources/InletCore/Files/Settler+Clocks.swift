/// What can be told by a file's own times, at first sight.
extension Settler {
    /// A file of other machines that is older than this has been left alone, whatever their clocks are worth.
    private static let foreignDoubt = Duration.seconds(3600)

    /// The identity of an untracked file that is complete by this first look, without a second one; nil where it must be tracked.
    ///
    /// - Parameters:
    ///   - settle: how long it must have been quiet; nil = as long as any.
    ///   - isForeign: whether other machines, with clocks of their own, may write it.
    package mutating func complete(
        _ look: Look, settle: Duration?, isForeign: Bool, at now: ContinuousClock.Instant, wall: WallTime
    ) -> FileIdentity? {
        let (identity, quiet): (FileIdentity, Duration)
        switch look {
        case .file(let found, busy: false): (identity, quiet) = (found, settle ?? self.settle)
        case .bound(let found, busy: false, let wanted, _): (identity, quiet) = (found, wanted)
        default: return nil
        }
        steps.note(now, wall)
        let clock = clock(for: identity, quiet, isForeign, now, wall)
        let wait = Entry.remainingWait(quiet, identity, since: now, now: now, wall: clock)
        return wait == nil ? identity : nil
    }

    /// The wall clock, where it says how old the file is: not once it was put forward, nor for what a server with a clock of its
    /// own has written of late. Such a file is seen twice.
    func clock(
        for identity: FileIdentity, _ quiet: Duration, _ isForeign: Bool, _ now: ContinuousClock.Instant,
        _ wall: WallTime
    ) -> WallTime? {
        guard steps.areTrue(for: quiet, at: now) else { return nil }
        let age = wall - WallTime(nanoseconds: max(identity.modified, identity.changed))
        return isForeign && age < Self.foreignDoubt ? nil : wall
    }
}
