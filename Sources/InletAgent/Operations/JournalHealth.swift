package import InletJournal
internal import Synchronization

/// Says once that the journal cannot be written, and once that it can again.
package final class JournalHealth: Sendable {
    /// Who asks it beside those that write what is admitted and delivered: one that finds it well says nothing of what
    /// another one needs of it.
    package enum Asker: Sendable { case queue, finisher, sweeper, watch }

    /// Why each of them cannot use it.
    private let failing = Mutex<[Asker: String]>([:])
    private let log: EventLog

    package init(log: EventLog) { self.log = log }

    package var isFailing: Bool { failing.withLock { !$0.isEmpty } }

    /// Why it fails, as the log has it; nil when it does not. That it was displaced comes first: all else may follow of it.
    package var reason: String? { failing.withLock { $0[.watch] ?? $0.values.min() } }

    package func fails(_ error: JournalError, for asker: Asker = .queue) {
        let isNew = failing.withLock { failing in
            defer { failing[asker] = error.description }
            // That it was displaced is said also where others have failed before.
            return failing.isEmpty || asker == .watch && failing[asker] == nil
        }
        guard isNew else { return }
        log.emit(
            error.isFull ? .journalFull(reason: error.description) : .journalFailing(reason: error.description))
    }

    package func works(for asker: Asker = .queue) {
        let isOver = failing.withLock { failing in failing.removeValue(forKey: asker) != nil && failing.isEmpty }
        if isOver { log.emit(.journalFree) }
    }
}
