internal import InletCore
internal import InletJournal
internal import InletLinux
internal import Synchronization
internal import SystemPackage

/// Which watched folders are what they should be, for those who wonder why a file is not there.
final class RootStates: Sendable {
    enum State: Sendable, Equatable {
        /// Nobody has looked yet.
        case unknown
        /// With the removable volume that it is on (`Volume.key`).
        case present(volume: String?)
        /// It is not what was watched before.
        case guarded
    }

    private let states: Mutex<[FilePath: State]>

    /// - Parameter roots: those that do not come and go.
    init(_ roots: [FilePath]) {
        states = Mutex(Dictionary(roots.map { ($0, .unknown) }, uniquingKeysWith: { first, _ in first }))
    }

    /// nil for a root that is not there.
    func set(_ state: State?, _ root: FilePath) { states.withLock { $0[root] = state } }

    /// Whether nobody has looked yet: somebody will in a moment.
    func isUnknown(_ root: FilePath) -> Bool { states.withLock { $0[root] == .unknown } }

    /// Whether the file's volume is mounted, and not where the file was looked for.
    func hasMoved(_ file: FileRow) -> Bool {
        guard let volume = file.volume else { return false }
        return states.withLock { $0.contains { $0.key != file.root && $0.value == .present(volume: volume) } }
    }

    /// Whether a file is missing, or another one, because its whole root or volume is. Files that were sent singly have no
    /// root.
    func isAway(_ file: FileRow) -> Bool {
        guard !file.root.isEmpty else { return false }
        let state = states.withLock { $0[file.root] }
        if let volume = file.volume, state != .present(volume: volume) { return true }
        if state == .unknown || state == .guarded { return true }
        return RootPresence.isAway(file)
    }
}
