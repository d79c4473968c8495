internal import InletJournal
internal import Synchronization

/// Says once that the journal cannot be written, and once that it can again.
package final class JournalHealth: Sendable {
    private let failing = Mutex(false)
    private let log: EventLog

    package init(log: EventLog) { self.log = log }

    package var isFailing: Bool { failing.withLock { $0 } }

    func fails(_ error: JournalError) {
        let isNew = failing.withLock { failing in
            defer { failing = true }
            return !failing
        }
        guard isNew else { return }
        log.emit(
            error.isFull ? .journalFull(reason: error.description) : .journalFailing(reason: error.description))
    }

    func works() {
        let wasFailing = failing.withLock { failing in
            defer { failing = false }
            return failing
        }
        if wasFailing { log.emit(.journalFree) }
    }
}
