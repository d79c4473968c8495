internal import InletJournal
internal import Synchronization

/// Says once that the journal cannot be written, and once that it can again.
package final class JournalHealth: Sendable {
    /// Who asks it beside those that write what is admitted and delivered: one that finds it well says nothing of what
    /// another one needs of it.
    enum Asker: Sendable { case queue, finisher, sweeper }

    private let failing = Mutex<Set<Asker>>([])
    private let log: EventLog

    package init(log: EventLog) { self.log = log }

    package var isFailing: Bool { failing.withLock { !$0.isEmpty } }

    func fails(_ error: JournalError, for asker: Asker = .queue) {
        let isNew = failing.withLock { failing in
            defer { failing.insert(asker) }
            return failing.isEmpty
        }
        guard isNew else { return }
        log.emit(
            error.isFull ? .journalFull(reason: error.description) : .journalFailing(reason: error.description))
    }

    func works(for asker: Asker = .queue) {
        let isOver = failing.withLock { failing in failing.remove(asker) != nil && failing.isEmpty }
        if isOver { log.emit(.journalFree) }
    }
}
