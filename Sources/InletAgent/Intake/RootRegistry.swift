internal import InletCore
internal import InletJournal
internal import InletLinux
internal import Synchronization
internal import SystemPackage

/// The watched folders, for all who do not watch them: whether each is what it should be, how it stands, and what is asked of the
/// loop that watches it.
final class RootRegistry: Sendable {
    enum Presence: Sendable, Equatable {
        /// Nobody has looked yet.
        case unknown
        /// With the removable volume that it is on (`Volume.key`).
        case present(volume: String?)
        /// It is not what was watched before.
        case guarded
    }

    private struct State {
        var presences: [FilePath: Presence] = [:]
        var mailboxes: [RootMailbox] = []
    }

    private let state = Mutex(State())

    // MARK: - Who watches

    /// A loop watches its root from now on, or will in a moment.
    func enter(_ mailbox: RootMailbox) { state.withLock { $0.mailboxes.append(mailbox) } }

    func leave(_ mailbox: RootMailbox) { state.withLock { $0.mailboxes.removeAll { $0 === mailbox } } }

    private var mailboxes: [RootMailbox] { state.withLock(\.mailboxes) }

    private func mailbox(of root: FilePath) -> RootMailbox? { mailboxes.first { $0.root == root } }

    /// How the folders stand that are there, or should be.
    var statuses: [IntakeStatus] { mailboxes.map(\.status) }

    /// Has a file looked at again.
    func look(again file: FileRow) { mailbox(of: file.root)?.put(file.path) }

    /// A file was proved, or has ended: whoever watches a removable volume says when all of it has.
    func ended(_ file: FileRow) {
        if file.volume != nil { mailbox(of: file.root)?.putEnded() }
    }

    /// Something was mounted or unmounted: those that do not come and go look whether it was there.
    func mountsChanged() { for mailbox in mailboxes where !mailbox.isPassing { mailbox.putMountChange() } }

    /// Makes the loop of a root pass once.
    func nudge(_ root: FilePath) { mailbox(of: root)?.waker.wake() }

    /// Makes all loops pass once.
    func nudge() { for mailbox in mailboxes { mailbox.waker.wake() } }

    // MARK: - What is there

    /// nil for a root that is not there.
    func set(_ presence: Presence?, _ root: FilePath) { state.withLock { $0.presences[root] = presence } }

    private func presence(of root: FilePath) -> Presence? { state.withLock { $0.presences[root] } }

    /// Whether nobody has looked yet: somebody will in a moment.
    func isUnknown(_ root: FilePath) -> Bool { presence(of: root) == .unknown }

    /// Whether the file's volume is mounted, and not where the file was looked for.
    func hasMoved(_ file: FileRow) -> Bool {
        guard let volume = file.volume else { return false }
        return state.withLock {
            $0.presences.contains { $0.key != file.root && $0.value == .present(volume: volume) }
        }
    }

    /// Whether a file is missing, or another one, because its whole root or volume is. Files that were sent singly have no
    /// root.
    func isAway(_ file: FileRow) -> Bool {
        guard !file.root.isEmpty else { return false }
        let presence = presence(of: file.root)
        if let volume = file.volume, presence != .present(volume: volume) { return true }
        if presence == .unknown || presence == .guarded { return true }
        return RootPresence.isAway(file)
    }
}
