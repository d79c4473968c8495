internal import InletCore
internal import InletJournal
internal import InletLinux
internal import Synchronization
internal import SystemPackage

/// The watched folders, for services that do not watch them: presence, status, and requests to the loop that watches.
final class RootRegistry: Sendable {
    enum Presence: Sendable, Equatable {
        /// Not checked yet.
        case unknown
        /// With the removable volume that it is on (`Volume.key`).
        case present(volume: String?)
        /// Not the folder that was watched before.
        case guarded
    }

    private let state = Mutex<(presences: [FilePath: Presence], mailboxes: [RootMailbox])>(([:], []))

    // MARK: - Mailboxes

    /// A loop watches its root from now on, or will in a moment.
    func enter(_ mailbox: RootMailbox) { state.withLock { $0.mailboxes.append(mailbox) } }

    func leave(_ mailbox: RootMailbox) { state.withLock { $0.mailboxes.removeAll { $0 === mailbox } } }

    private var mailboxes: [RootMailbox] { state.withLock { $0.mailboxes } }

    private func mailbox(of root: FilePath) -> RootMailbox? { mailboxes.first { $0.root == root } }

    /// The status of the folders that exist, or should.
    var statuses: [RootStatus] { mailboxes.map(\.status) }

    /// Has a file checked again.
    func look(again file: FileRow) { mailbox(of: file.root)?.look(again: file.path) }

    /// Has the whole folder listed again.
    func list(_ root: FilePath) { mailbox(of: root)?.put { $0.wantsListing = true } }

    /// Has files looked at now, without another quiet time.
    func lookNow(at files: Set<FilePath>, in root: FilePath) { mailbox(of: root)?.put { $0.derived += files } }

    /// A file was proved, or has ended: a removable volume is reported once all of its files have.
    func ended(_ file: FileRow) {
        if file.volume != nil { mailbox(of: file.root)?.put { $0.hasEnded = true } }
    }

    /// Something was mounted or unmounted: roots that do not come and go check whether it was theirs.
    func mountsChanged() {
        for mailbox in mailboxes where !mailbox.isPassing { mailbox.put { $0.hasMountChange = true } }
    }

    /// Makes the loop of a root pass once.
    func nudge(_ root: FilePath) { mailbox(of: root)?.waker.wake() }

    /// Makes a loop list its folder anew; nil is all of them.
    func list(_ root: FilePath?) {
        for mailbox in mailboxes where root ?? mailbox.root == mailbox.root { mailbox.put { $0.wantsListing = true } }
    }

    /// Makes all loops pass once.
    func nudge() { for mailbox in mailboxes { mailbox.waker.wake() } }

    // MARK: - Presence

    /// nil for a root that is not there.
    func set(_ presence: Presence?, _ root: FilePath) { state.withLock { $0.presences[root] = presence } }

    private func presence(of root: FilePath) -> Presence? { state.withLock { $0.presences[root] } }

    /// Whether it was not checked yet; that will happen in a moment.
    func isUnknown(_ root: FilePath) -> Bool { presence(of: root) == .unknown }

    /// Whether the file's volume is mounted at another place than the one checked.
    func hasMoved(_ file: FileRow) -> Bool {
        guard let volume = file.volume else { return false }
        return state.withLock {
            $0.presences.contains { $0.key != file.root && $0.value == .present(volume: volume) }
        }
    }

    /// Whether a file is missing, or another one, because its whole root or volume is away. Files that were sent singly
    /// have no root.
    func isAway(_ file: FileRow) -> Bool {
        guard !file.root.isEmpty else { return false }
        let presence = presence(of: file.root)
        if let volume = file.volume, presence != .present(volume: volume) { return true }
        if presence == .unknown || presence == .guarded { return true }
        return Self.isGone(file)
    }

    /// True when the root is no directory now, or unreadable: its files wait then. True also for an empty root on
    /// another device than the file's (the folder under a mount), and for one without events (a server that lost its
    /// disk).
    private static func isGone(_ file: FileRow) -> Bool {
        guard let identity = FileLook.folder(at: file.root) else { return true }
        // The target of somebody else's symlink is not the root, and its files are not gone.
        if RootCheck.isBehindLink(file.root) { return true }
        guard isEmpty(file.root) else { return false }
        return identity.device != file.identity.device || FileSystemKind.known(of: file.root)?.isNetwork == true
    }

    private static func isEmpty(_ directory: FilePath) -> Bool {
        do throws(SystemError) {
            var stream = try DirectoryStream(directory)
            return try stream.next() == nil
        } catch {
            // An unreadable root counts as empty: its files wait, instead of being gone.
            return true
        }
    }
}

/// Requests to a root's loop, and the status that it shows.
final class RootMailbox: Sendable {
    /// Requests since the last look.
    struct Requests: Sendable {
        /// Files to check again.
        var looks: [FilePath] = []
        /// Files that no longer wait for others: their derived files are ready, or cannot be made; or their card has its
        /// labels.
        var derived: [FilePath] = []
        /// Too many requests to remember: the whole root is listed.
        var wantsListing = false
        /// Something was mounted or unmounted, perhaps here.
        var hasMountChange = false
        /// Files of the root have been proved, or have ended.
        var hasEnded = false
    }

    let root: FilePath
    /// Whether the root comes and goes with its volume.
    let isPassing: Bool
    let waker: Waker
    /// Raised when the root's state changes: it was found, listed, lost, or left to another agent.
    private let changed: WakeSignal?
    private let state = Mutex<(requests: Requests, status: RootStatus?, isStopped: Bool, isRenewed: Bool)>(
        (Requests(), nil, false, false))
    /// More than this many become a listing.
    private static let mostLooks = 10_000

    init(_ root: FilePath, isPassing: Bool = false, changed: WakeSignal? = nil) throws(SystemError) {
        (self.root, self.isPassing, self.changed) = (root, isPassing, changed)
        waker = try Waker()
    }

    /// Whether the loop is to end, for good or to restart.
    var isStopped: Bool { state.withLock { $0.isStopped || $0.isRenewed } }
    var status: RootStatus { state.withLock(\.status) ?? RootStatus(root: root, state: .starting) }

    func look(again path: FilePath) {
        put { requests in
            if requests.looks.count < Self.mostLooks {
                requests.looks.append(path)
            } else {
                requests.wantsListing = true
            }
        }
    }

    func put(_ change: (inout Requests) -> Void) {
        state.withLock { change(&$0.requests) }
        waker.wake()
    }

    func take() -> Requests {
        state.withLock { state in
            defer { state.requests = Requests() }
            return state.requests
        }
    }

    func stop() {
        state.withLock { $0.isStopped = true }
        waker.wake()
    }

    /// Restarts the watch of the root, by the present routes.
    func renew() {
        state.withLock { $0.isRenewed = true }
        waker.wake()
    }

    /// Whether a restart was requested since the last one; earlier requests and the status are then dropped.
    func beginsAnew() -> Bool {
        state.withLock { state in
            guard state.isRenewed, !state.isStopped else { return false }
            state = (Requests(), nil, false, false)
            return true
        }
    }

    func publish(_ status: RootStatus) {
        let isNew = state.withLock { state in
            defer { state.status = status }
            return state.status?.state != status.state
        }
        if isNew { changed?.raise() }
    }
}
