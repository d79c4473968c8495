import InletAgent
import InletCore
import InletJournal
import InletLinux
import Synchronization
import SystemPackage

/// What the start needs of the state directory is asked for again while its disk has no room, or another program has the
/// journal locked: as the agent does when it runs, and said in the same lines. SIGTERM and Ctrl-C end that.
final class StartRetry: Sendable {
    private struct State {
        var refusals = 0
        /// nil until something is waited for.
        var leaving: ExitSignals?
    }

    private let health: JournalHealth
    private let manager = ServiceNotify()
    private let state = Mutex(State())

    /// How long the service manager gives the start from each try on.
    private static let grace = Duration.seconds(60)

    init(_ log: EventLog) { health = JournalHealth(log: log) }

    /// Waits a while after an error that passes, longer and longer.
    ///
    /// - Returns: false for another error.
    func waits(after error: any Error, in directory: FilePath) async throws -> Bool {
        guard let trouble = Self.passing(error, directory) else { return false }
        health.fails(trouble)
        let pause = state.withLock { state in
            defer { state.refusals += 1 }
            state.leaving = state.leaving ?? ExitSignals()
            return Duration.seconds(1 << min(state.refusals, 3))
        }
        let extended = Self.grace.components.seconds * 1_000_000
        manager?.send("EXTEND_TIMEOUT_USEC=\(extended)\nSTATUS=waiting: \(DisplayText.escape("\(trouble)"))")
        try await Task.sleep(for: pause)
        return true
    }

    /// Everything is there.
    func ends() {
        guard state.withLock({ $0.leaving.take() }) != nil else { return }
        health.works()
        manager?.send("STATUS=")
    }

    /// nil for what does not pass by itself.
    static func passing(_ error: any Error, _ directory: FilePath) -> JournalError? {
        switch error {
        case let error as JournalError: error.isPassing ? error : nil
        case StateDirectory.Fault.system(let error): error.isFull ? .full(directory) : nil
        case let error as SystemError: error.isFull ? .full(directory) : nil
        default: nil
        }
    }
}
