internal import InletCore
internal import InletLinux
internal import SystemPackage

/// Folders whose changes raise no events: those of mounts that hide changes, and those for which there is no watch.
extension IntakeLoop {
    /// Entries looked at between two looks at the events.
    private static let pollBudget = 500
    /// Before a unit that waits for a pass is looked at again.
    private static let shortestWait = Duration.milliseconds(100)

    /// Decides anew how each mount is watched, says what is not as it was, and forgets what was known of places where
    /// something was mounted or unmounted. Blocks.
    ///
    /// - Returns: those places, which are to be listed.
    @discardableResult
    mutating func refreshModes() -> [FilePath] {
        let found = WatchModes(of: settings)
        scan.forgetKinds()
        let changes = found.changes(since: modes)
        for place in changes { forget(below: place) }
        for (place, way) in found.sorted where modes.places[place] != way {
            // What can be marked is known once its first folder is listed, and is said then.
            if settings.mode == .fanotify, !way.isPolled { continue }
            log.emit(
                .watchMode(
                    root: settings.path, path: settings.path.pushing(place), mode: way.isPolled ? .poll : .inotify,
                    reason: way.reason))
        }
        modes = found
        return changes
    }

    /// Something was mounted or unmounted below the root: what is there now is watched and listed.
    mutating func followMounts() {
        let changes = refreshModes()
        if changes.contains("") { return requestScan() }
        for place in changes { scan.add(place) }
    }

    /// The watches of folders that a mount has covered tell of nothing that can be seen, and would be taken for those of the
    /// folders that have their names now.
    private mutating func forget(below place: FilePath) {
        for watch in watches.remove(below: place) { inotify.remove(watch) }
        polling.remove(below: place)
        marks?.forgetPlaces()
    }

    /// Whether nothing tells of changes in the root itself.
    var isRootPolled: Bool { modes.way(for: "").way.isPolled }

    /// When the next pass may begin: not before the first listing has ended, nor while files find no room.
    var nextPass: ContinuousClock.Instant? { isAnnounced && held.isEmpty ? polling.next : nil }

    mutating func advancePoll() {
        guard held.isEmpty, !isLost else { return }
        if let due = nextPass, due <= .now { beginPass() }
        guard polling.isLooking, !isLost else { return }
        defer { polling.rest() }
        for _ in 0..<Self.pollBudget {
            switch polling.step(ignore, modes) {
            case .file(let path): if !take(path) { return }
            case .irregular(let path): admission.inspector.noteIrregular(path)
            case .directory(let path): if !isFollowed(path) { scan.add(path) }
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

    /// Whether something tells of `directory`, which was found in one that is polled.
    private mutating func isFollowed(_ directory: FilePath) -> Bool {
        watches.contains(directory) || polling.contains(directory) || marks?.begins(at: directory) ?? false
    }

    private mutating func beginPass() {
        followMounts()
        if isRootPolled {
            // Nothing tells whether somebody emptied it, or a server has lost its disk: that is judged anew.
            let isEmpty = RootCaution.isEmpty(settings.path)
            if isEmpty, wasFilled { return loseRoot("empty at once") }
            wasFilled = !isEmpty
        }
        takeFreedWatches()
        polling.begin()
    }

    /// Remembers the folder, with its time of before it is listed.
    mutating func poll(_ directory: FilePath, _ folder: Folder) throws(SystemError) {
        polling.add(directory, modified: try folder.identity().touched)
    }

    /// Said once, when the listing has counted the folders; until there was room for all.
    mutating func sayLimit() {
        guard isLimited else { return isLimitSaid = false }
        if isLimitSaid { return }
        isLimitSaid = true
        let all = watches.count + polling.count
        if let refusal = inotify.refusal {
            return log.emit(
                .watchLimit(root: settings.path, reason: "\(refusal); until then all \(all) folders are polled"))
        }
        let need = WatchNeed(directories: all)
        log.emit(
            .watchLimit(
                root: settings.path,
                reason: "\(watches.count) of \(all) folders have a watch, the other \(polling.count) are polled; "
                    + "fs.inotify.max_user_watches is \(need.limit.map(String.init) ?? "not known"), for all programs of user "
                    + "\(ProcessSetup.userID): raise it with '\(need.remedy)' and keep it in /etc/sysctl.d"))
    }

    /// How long a unit of which something is polled must wait for the pass that shows all of it; nil = it may be closed.
    mutating func passWait(for unit: UnitClock.Unit) -> Duration? {
        guard polling.count > 0,
            isLimitSaid || polling.isHandingOver || modes.isPolled(inOrBelow: unit.folder)
        else { return nil }
        let now = ContinuousClock.now
        let asked = polling.awaited[unit] ?? now
        polling.awaited[unit] = asked
        if let last = polling.lastPass, last >= asked {
            polling.awaited[unit] = nil
            return nil
        }
        return max(Self.shortestWait, polling.next.map { now.duration(to: $0) } ?? .zero)
    }
}
