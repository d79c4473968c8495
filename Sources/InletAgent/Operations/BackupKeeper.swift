internal import InletCore
internal import InletLinux
internal import ServiceLifecycle

/// Backs the journal up every so often, as `journal_backup` says. Reads and writes nothing while nothing changes.
struct BackupKeeper: Service {
    let backups: JournalBackups
    let rule: BackupRule
    let log: EventLog

    /// After a backup that failed.
    private static let soon = Duration.seconds(3600)

    func run() async throws {
        // Only its sleep throws, when it is asked to stop.
        try? await cancelWhenGracefulShutdown {
            var last = await backups.newest()
            var wait = untilDue(after: last, now: .now)
            while true {
                try await Task.sleep(for: wait)
                let change = backups.lastChange()
                wait = rule.every
                // What cannot be looked at counts as changed: the backup says what is wrong.
                if let last, let change, change <= last { continue }
                if await backUp() { last = change ?? last } else { wait = min(rule.every, Self.soon) }
            }
        }
    }

    /// Not at once at every start: one that is started again and again would do nothing else.
    func untilDue(after last: WallTime?, now: WallTime) -> Duration {
        guard let last else { return min(rule.every, .seconds(60)) }
        let age = max(0, now.milliseconds - last.milliseconds)
        return max(.seconds(60), rule.every - .milliseconds(age))
    }

    private func backUp() async -> Bool {
        do {
            let path = try await backups.make(now: .now)
            log.emit(.journalBackup(path: path))
            try await backups.prune(keep: rule.keep)
            return true
        } catch {
            if !Task.isCancelled { log.emit(.journalBackupFailed(reason: "\(error)")) }
            return false
        }
    }
}
