internal import InletLinux
internal import Synchronization
internal import SystemPackage

/// What others ask of an intake loop, and what it shows them.
final class RootMailbox: Sendable {
    private struct State {
        var looks: [FilePath] = []
        var derived: [FilePath] = []
        var wantsRescan = false
        var isStopped = false
        var hasMountChange = false
        var hasEnded = false
        var status: IntakeStatus?
    }

    let waker: Waker
    private let state = Mutex(State())
    /// More than this many become a rescan.
    private static let mostLooks = 10_000

    let root: FilePath
    /// Whether the root comes and goes with its volume.
    let isPassing: Bool

    init(_ root: FilePath, isPassing: Bool = false) throws(SystemError) {
        (self.root, self.isPassing) = (root, isPassing)
        waker = try Waker()
    }

    var isStopped: Bool { state.withLock { $0.isStopped } }
    var status: IntakeStatus { state.withLock(\.status) ?? IntakeStatus(root: root, state: .starting) }

    func put(_ path: FilePath) {
        state.withLock { state in
            if state.looks.count < Self.mostLooks { state.looks.append(path) } else { state.wantsRescan = true }
        }
        waker.wake()
    }

    /// Whether more was asked for than could be remembered: then the whole root is listed.
    func takeRescan() -> Bool {
        state.withLock { state in
            defer { state.wantsRescan = false }
            return state.wantsRescan
        }
    }

    /// What is made of the file at `path` is there, or cannot be made.
    func putDerived(_ path: FilePath) {
        state.withLock { $0.derived.append(path) }
        waker.wake()
    }

    func takeDerived() -> [FilePath] {
        state.withLock { state in
            defer { state.derived = [] }
            return state.derived
        }
    }

    func putMountChange() {
        state.withLock { $0.hasMountChange = true }
        waker.wake()
    }

    func takeMountChange() -> Bool {
        state.withLock { state in
            defer { state.hasMountChange = false }
            return state.hasMountChange
        }
    }

    /// Files of the root have been proved, or have ended.
    func putEnded() {
        state.withLock { $0.hasEnded = true }
        waker.wake()
    }

    func takeEnded() -> Bool {
        state.withLock { state in
            defer { state.hasEnded = false }
            return state.hasEnded
        }
    }

    func takeLooks() -> [FilePath] {
        state.withLock { state in
            defer { state.looks = [] }
            return state.looks
        }
    }

    func stop() {
        state.withLock { $0.isStopped = true }
        waker.wake()
    }

    func publish(_ status: IntakeStatus) { state.withLock { $0.status = status } }
}
