internal import InletCore
internal import InletJournal
internal import Synchronization
internal import SystemPackage

/// The newest file, and for each watched folder when a file last came. In memory: nobody asks the journal for it after
/// the start. Folders of a pattern are not among them, because cards come and go.
final class ArrivalRegistry: Sendable {
    private struct State {
        var newest: Arrival?
        var folders: [FilePath: QuietClock] = [:]
        /// Folders whose earlier files are not read from the journal yet.
        var unread: Set<FilePath> = []
        /// Whether the journal was asked for the newest file: it may have none.
        var isAsked = false
    }

    private let state = Mutex(State())
    /// Raised when a file ends a quiet time, when a folder comes or goes, and after a change of the configuration.
    let signal = WakeSignal()

    /// The file that was admitted last; nil before any.
    var newest: Arrival? { state.withLock(\.newest) }

    /// Whether the journal need not be asked for it.
    var knowsNewest: Bool { state.withLock { $0.isAsked || $0.newest != nil } }

    /// A file is in the journal. Quick: called on the journal's writer thread.
    ///
    /// - Parameter root: its watched folder; empty for a file that was sent by itself.
    func note(_ file: Arrival, in root: FilePath) {
        let now = ContinuousClock.now
        let isNews = state.withLock { state in
            if state.newest?.job ?? 0 < file.job { state.newest = file }
            return state.folders[root]?.fileCame(at: file.at, now) ?? false
        }
        if isNews { signal.raise() }
    }

    /// Follows these folders, and no others. - Returns: those of which the journal must be asked, and those that are
    /// followed no longer although they were reported as quiet.
    func follow(_ roots: [FilePath], at now: WallTime) -> (unread: [FilePath], left: [FilePath]) {
        state.withLock { state in
            let wanted = Set(roots)
            let left = state.folders.filter { !wanted.contains($0.key) && $0.value.quietSince != nil }.map(\.key)
            state.folders = state.folders.filter { wanted.contains($0.key) }
            for root in wanted where state.folders[root] == nil {
                state.folders[root] = QuietClock(start: now, at: now, .now)
                state.unread.insert(root)
            }
            state.unread.formIntersection(wanted)
            return (Array(state.unread), left)
        }
    }

    /// Takes the journal's answer; files that came meanwhile stay.
    func fill(_ newest: Arrival?, _ folders: [FilePath: FolderArrivals], at now: WallTime) {
        state.withLock { state in
            state.isAsked = true
            if let newest, state.newest?.job ?? 0 < newest.job { state.newest = newest }
            for (root, known) in folders where state.unread.remove(root) != nil {
                let since = state.folders[root]?.lastFile
                var folder = QuietClock(
                    lastFile: known.lastFile, quietSince: known.quietSince, start: known.firstSeen ?? now, at: now, .now
                )
                if let since { _ = folder.fileCame(at: since, .now) }
                state.folders[root] = folder
            }
        }
    }

    /// Changes a folder's state under the lock; nil for a folder that is not followed.
    func decide<Value: Sendable>(_ root: FilePath, _ body: (inout QuietClock) -> Value) -> Value? {
        state.withLock { state in
            guard var folder = state.folders[root] else { return nil }
            defer { state.folders[root] = folder }
            return body(&folder)
        }
    }

    /// The same statuses, with what is known of the arrivals.
    func describe(_ statuses: [RootStatus], _ settings: [WatchSettings]) -> [RootStatus] {
        let folders = state.withLock(\.folders)
        return statuses.map { status in
            var status = status
            let watch = settings.first { $0.path == status.root }
            status.place = watch?.place
            guard let folder = folders[status.root] else { return status }
            status.expect = watch?.expect
            (status.lastFile, status.quietSince) = (folder.lastFile, folder.quietSince)
            return status
        }
    }
}
