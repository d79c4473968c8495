internal import InletCore
internal import InletLinux
internal import SystemPackage

/// Files that are not complete yet, and what keeps them.
extension IntakeLoop {
    /// How many the status shows, and how many are told of when they wait for long.
    private static let shown = 10
    private static let told = 100

    /// Those that have waited longest. One that has kept waiting for a quarter of an hour is also logged, once.
    mutating func unsettledFiles(at now: ContinuousClock.Instant) -> [IntakeStatus.Unsettled] {
        let waiting = settler.oldest(Self.told)
        let holders = holders.holders(of: waiting, below: settings.path, at: now)
        for file in unsettledWatch.overdue(waiting, at: now) {
            var reason = file.reason ?? "it has changed since it was seen"
            if let holder = holders[file.path] { reason += holder.words }
            log.emit(
                .fileUnsettled(
                    path: settings.path.pushing(file.path), reason: reason, waiting: file.since.duration(to: now)))
        }
        return waiting.prefix(Self.shown).map { file in
            IntakeStatus.Unsettled(
                path: settings.path.pushing(file.path), busy: file.isBusy, why: file.isBusy ? nil : file.reason,
                holder: file.isBusy ? holders[file.path] : nil, waiting: file.since.duration(to: now))
        }
    }
}

extension OpenWriters.Holder {
    /// Behind `open for writing`.
    var words: String { (isMapping ? ": mapped by " : " by ") + text }
}
