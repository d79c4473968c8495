internal import InletCore
internal import InletJournal
internal import InletLinux
internal import ServiceLifecycle

/// Looks now and then whether the journal's files are still those that are open, and saves its content when they are not:
/// it would end with the process. Starts first and stops last, so that its last copy has everything.
struct JournalWatch: Service {
    let journal: Journal
    let health: JournalHealth
    let log: EventLog
    var interval = Duration.seconds(60)

    /// Looks that pass until a journal that stays lost is saved once more.
    private static let betweenCopies = 14

    func run() async throws {
        let pool = BlockingPool(name: "journal", threads: 1)
        defer { pool.shutdown() }
        // Only its sleep throws, when it is asked to stop.
        try? await cancelWhenGracefulShutdown {
            // Before the next copy, in looks; a copy ends with what was delivered until then.
            var looks = 0
            while true {
                try await Task.sleep(for: interval, tolerance: interval / 10)
                if await isInPlace(pool) {
                    looks = 0
                } else if looks > 0 {
                    looks -= 1
                } else if await save() {
                    looks = Self.betweenCopies
                }
            }
        }
        if await !isInPlace(pool) { _ = await save() }
    }

    private func isInPlace(_ pool: BlockingPool) async -> Bool {
        do throws(JournalError) {
            try await pool.run { () throws(JournalError) in try journal.requirePlace() }
            health.works(for: .watch)
            return true
        } catch {
            health.fails(error, for: .watch)
            // What cannot be looked at now may be well.
            if case .displaced = error { return false }
            return true
        }
    }

    private func save() async -> Bool {
        do {
            log.emit(.journalBackup(path: try await JournalBackups(journal).make(now: .now)))
            return true
        } catch {
            log.emit(.journalBackupFailed(reason: "\(error)"))
            return false
        }
    }
}
