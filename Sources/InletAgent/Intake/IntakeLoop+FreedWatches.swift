internal import InletCore
internal import InletLinux
internal import SystemPackage

/// Folders that are polled because there was no watch for them: they get one as soon as there is.
extension IntakeLoop {
    /// Watches asked for before one pass, which look at nothing else meanwhile.
    private static let mostAtOnce = 20_000

    /// Takes the watches that others have given back, or that a raised limit allows; the pass that begins looks at all files of
    /// these folders once more, so that nothing slips in between. Costs one call while there are none.
    mutating func takeFreedWatches() {
        guard isLimitSaid, settings.mode != .poll else { return }
        takeInstance()
        var isRefused = inotify.isSilent
        var taken = 0
        var turn = FolderTurn(settings.path)
        for directory in polling.directories where !isRefused && taken < Self.mostAtOnce {
            if modes.way(for: directory).way.isPolled { continue }
            do throws(SystemError) {
                try watch(directory, try turn.folder(directory))
                polling.handOver(directory)
                taken += 1
            } catch {
                // What else is wrong with it the pass will find.
                isRefused = error.isWatchLimit
            }
        }
        // All have one: the next shortage is said again.
        if !isRefused, taken < Self.mostAtOnce { (isLimited, isLimitSaid) = (false, false) }
    }

    /// Where the kernel had no instance for this root, and has one now.
    private mutating func takeInstance() {
        guard inotify.refusal != nil, let fresh = try? Inotify() else { return }
        inotify = fresh
    }
}
