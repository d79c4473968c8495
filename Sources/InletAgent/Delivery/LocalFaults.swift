internal import InletCore
internal import InletJournal
internal import Synchronization

/// What this machine could not do for deliveries: how long each stays away, and what has been said of it already.
final class LocalFaults: Sendable {
    private struct State {
        /// In a row, by delivery.
        var counts: [Int64: Int] = [:]
        var said: Set<ErrorCode> = []
    }

    /// More deliveries than this begin anew.
    private static let most = 10_000
    private let state = Mutex(State())

    /// Takes note of one. - Returns: how long the delivery stays away, and what is to be said, the first time.
    func note(_ error: DeliveryError, _ delivery: Int64, _ file: FileRow) -> (wait: Duration, event: AgentEvent?) {
        state.withLock { state in
            if state.counts.count >= Self.most { state.counts = [:] }
            let count = state.counts[delivery, default: 0]
            state.counts[delivery] = count + 1
            let wait = Self.wait(count, error.code)
            switch error.code {
            // The journal's health says it.
            case .internalFault: return (wait, nil)
            // A device that fails may fail for this file alone.
            case .sourceUnreadable, .sourceForbidden:
                return (wait, count == 0 ? .fileTrouble(path: file.fullPath, reason: error.reason) : nil)
            default: return (wait, state.said.insert(error.code).inserted ? .agentTrouble(reason: error.reason) : nil)
            }
        }
    }

    /// 1, 2, 4 s … half a minute; a whole one for what may not be read, which its ctime tells when it may; five for a device
    /// that fails.
    private static func wait(_ count: Int, _ code: ErrorCode) -> Duration {
        let most =
            switch code {
            case .sourceUnreadable: 300
            case .sourceForbidden: 60
            default: 30
            }
        return .seconds(min(most, 1 << min(count, 9)))
    }

    /// A delivery came to an end that has nothing to do with this machine.
    func worked(_ delivery: Int64) {
        state.withLock { state in
            if state.counts.isEmpty { return }
            state.counts[delivery] = nil
            state.said = []
        }
    }
}
