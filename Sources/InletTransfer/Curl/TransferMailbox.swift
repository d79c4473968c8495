import Synchronization

/// What other threads may do with a loop: leave a command and wake it.
final class TransferMailbox: Sendable {
    enum Command: Sendable {
        case add(Submission)
        case cancel(Ticket)
    }

    private struct State {
        var commands: [Command] = []
        var isClosed = false
        /// Submissions that have not been answered.
        var load = 0
    }

    let multi: CurlMulti
    /// Connections that the loop has for each host.
    let share: Int
    private let state = Mutex(State())

    init(_ multi: CurlMulti, share: Int) {
        self.multi = multi
        self.share = share
    }

    var load: Int { state.withLock { $0.load } }

    /// Hands a request to the loop; after `close` it fails at once.
    func add(_ submission: Submission) {
        enum Taken { case no, first, behindOthers }
        let taken = state.withLock { state -> Taken in
            guard !state.isClosed else { return .no }
            state.commands.append(.add(submission))
            state.load += 1
            return state.commands.count == 1 ? .first : .behindOthers
        }
        switch taken {
        case .no: submission.fail(submission.cancellation)
        case .first: multi.wakeUp()
        // The loop has been woken for the first of them, and takes all.
        case .behindOthers: break
        }
    }

    /// Gives up the request with this ticket, if it is there.
    func cancel(_ ticket: Ticket) {
        state.withLock { $0.commands.append(.cancel(ticket)) }
        multi.wakeUp()
    }

    /// Makes the loop fail what it has with `.cancelled`, and end.
    func close() {
        state.withLock { $0.isClosed = true }
        multi.wakeUp()
    }

    /// For the loop: what has come in.
    func take() -> (commands: [Command], isClosed: Bool) {
        state.withLock { state in
            defer { state.commands = [] }
            return (state.commands, state.isClosed)
        }
    }

    /// For the loop: one submission has been answered.
    func settled() { state.withLock { $0.load -= 1 } }
}
