internal import InletCore
internal import InletJournal
internal import Synchronization

/// The results for the files that waited when the agent started; `of` is the sum of the others once all have been
/// tried.
package struct ResumeSummary: Sendable, Equatable, Codable {
    package var of: Int
    /// Delivered.
    package var resumed = 0
    /// Ended in any other way.
    package var failed = 0
    /// Tried, and waiting again.
    package var waiting = 0

    /// `7 of 9 resumed`.
    package var text: String {
        var text = "\(resumed) of \(of) resumed"
        if failed > 0 { text += ", \(failed) failed" }
        if waiting > 0 { text += ", \(waiting) waiting again" }
        return text
    }
}

/// Follows the files that waited at the start until each has ended, or was tried and waits again; then reports once.
final class ResumeReport: Sendable {
    /// Of more files than this, only the oldest are followed.
    static let most = 50_000

    /// nil when there was nothing to follow, or everything was reported.
    private let state: Mutex<(untried: Set<Int64>, waiting: Set<Int64>, summary: ResumeSummary)?>
    private let log: EventLog
    private let endListening = Mutex<(@Sendable () -> Void)?>(nil)

    /// - Parameter files: the waiting ones in the journal at the start.
    init(_ files: [Int64], log: EventLog) {
        self.log = log
        state = Mutex(files.isEmpty ? nil : (Set(files), [], ResumeSummary(of: files.count)))
        if files.isEmpty { return }
        log.emit(.queueResuming(waiting: files.count))
        let end = log.listen { [weak self] event in self?.take(event) }
        endListening.withLock { $0 = end }
    }

    /// The counts so far; nil once everything was reported.
    var summary: ResumeSummary? { state.withLock { $0?.summary } }

    private func take(_ event: AgentEvent) {
        let isOver: ResumeSummary? =
            switch event {
            case .jobFinished(let job, _, let end, _, _): note(job, end)
            case .jobRetry(let ref, _, _, _), .jobWaiting(let ref, _, _, _): note(ref.job, .pending)
            default: nil
            }
        guard let isOver else { return }
        log.emit(.queueResumed(isOver))
        endListening.withLock(\.self)?()
    }

    /// - Returns: the whole summary, when this was the last.
    private func note(_ file: Int64, _ end: FileState) -> ResumeSummary? {
        state.withLock { state in
            guard var now = state, now.untried.contains(file) || now.waiting.contains(file) else { return nil }
            now.untried.remove(file)
            now.waiting.remove(file)
            switch end {
            case .pending: now.waiting.insert(file)
            case .delivered, .duplicate: now.summary.resumed += 1
            default: now.summary.failed += 1
            }
            now.summary.waiting = now.waiting.count
            state = now.untried.isEmpty ? nil : now
            return now.untried.isEmpty ? now.summary : nil
        }
    }
}
