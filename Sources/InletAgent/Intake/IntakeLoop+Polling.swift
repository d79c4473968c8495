internal import InletCore
internal import InletLinux
internal import SystemPackage

/// Folders whose changes raise no events: those of mounts that hide changes, and those for which there is no watch.
extension IntakeLoop {
    /// Entries looked at between two looks at the events.
    private static let pollBudget = 500

    /// Something was mounted or unmounted below the root: what is there now is watched and listed.
    mutating func followMounts() {
        scan.forgetKinds()
        let changes = watch.followMounts()
        if changes.contains("") { return requestScan() }
        for place in changes { scan.add(place) }
    }

    /// When the next pass may begin: not before the first listing has ended, nor while files find no room.
    var nextPass: ContinuousClock.Instant? { isAnnounced && held.isEmpty ? watch.nextPass : nil }

    mutating func advancePoll() {
        guard held.isEmpty, !isLost else { return }
        if let due = nextPass, due <= .now { beginPass() }
        guard watch.isPolling, !isLost else { return }
        defer { watch.restPass() }
        for _ in 0..<Self.pollBudget {
            switch watch.nextPolled() {
            case .file(let path): if !take(path) { return }
            case .irregular(let path): admission.noteIrregular(path)
            case .directory(let path): scan.add(path)
            case .gone(let directory):
                if directory.isEmpty { return loseRoot() }
            case .trouble(let directory, let error): tell(directory, error)
            case .nothing: break
            case .finished:
                // Nothing tells of what was taken off such a volume.
                if saidOfVolume?.isDone == false { volumeQuestion.reopen() }
                return
            }
        }
    }

    private mutating func beginPass() {
        followMounts()
        if let loss = watch.beginPass() { loseRoot(loss) }
    }
}
