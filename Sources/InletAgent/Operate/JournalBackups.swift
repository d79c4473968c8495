package import InletCore
internal import InletJournal
internal import InletLinux
internal import ServiceLifecycle
package import SystemPackage

/// The backups of a journal: each one complete file, readable by its owner only.
package struct JournalBackups: Sendable {
    private let journal: Journal
    private let directory: FilePath
    private let pool = BlockingPool(name: "backup", threads: 1)

    init(_ journal: Journal) {
        self.journal = journal
        directory = journal.path.removingLastComponent().appending("backups")
    }

    /// Makes a backup, over an earlier one at `target`; without a target in `backups` beside the journal, named by the
    /// time.
    ///
    /// It contains all earlier commits. At every moment `target` is the old file or the complete new one.
    /// - Throws: `JournalError`, `SystemError`, or `Refusal` where `target` is not a backup.
    package func make(at target: FilePath? = nil, now: WallTime) async throws -> FilePath {
        let path = target ?? directory.appending("journal-\(now.rfc3339.filter(\.isNumber)).sqlite")
        let draft = try Self.draft(of: path)
        try await pool.run {
            if target == nil {
                try DurableFile.makeDirectories(directory, mode: 0o700, asFolderOwner: true)
                try FileOwner.requireOwn(directory, in: directory.removingLastComponent())
            }
            try Self.requireBackup(path, of: journal.path)
            // SQLite would not say why it fails.
            try DurableFile.write([], to: draft, mode: 0o600)
            // Of a process that died.
            Self.discard(draft)
        }
        do {
            // Opening, syncing and closing files in it blocks.
            try await withTaskExecutorPreference(pool) { try await journal.copy(to: draft) }
            try await pool.run { () throws(SystemError) in try DurableFile.place(draft, at: path) }
        } catch {
            await pool.run { Self.discard(draft) }
            throw error
        }
        return path
    }

    package static func name(of path: FilePath) throws(Refusal) -> FilePath.Component {
        guard let name = path.lastComponent else { throw Refusal("\(path.display) is not a file name") }
        return name
    }

    /// The name of an incomplete backup.
    private static func draft(of path: FilePath) throws(Refusal) -> FilePath {
        path.removingLastComponent().appending(".\(try name(of: path).string).inlet-backup.tmp")
    }

    /// Removes an incomplete backup, and SQLite's files beside it.
    private static func discard(_ draft: FilePath) {
        for suffix in ["", "-journal", "-wal", "-shm"] {
            // The next backup removes what stays.
            try? DurableFile.remove(FilePath(bytes: draft.bytes + suffix.utf8))
        }
    }

    /// Overwrites nothing but an earlier backup. Throws `SystemError` or `Refusal`.
    package static func requireBackup(_ path: FilePath, of journal: FilePath) throws {
        switch try FileLook.look(at: path) {
        case .missing: return
        case .regular(let identity, _, _):
            let own = try FileLook.look(at: journal).identity
            if identity.inode == own?.inode, identity.device == own?.device {
                throw Refusal("\(path.display) is the journal itself")
            }
            let source = try SourceFile(opening: path)
            guard try source.content(of: header.count) == header else {
                throw Refusal("\(path.display) exists and is not a backup of a journal; name another file")
            }
        case .directory: throw Refusal("\(path.display) is a folder; name a file in it")
        case .symlink, .other: throw Refusal("\(path.display) is not a regular file")
        }
    }

    /// The first bytes of a database (sqlite.org/fileformat.html).
    private static let header = Array("SQLite format 3\0".utf8)

    // MARK: - Regular backups

    /// Makes one in `backups`, and logs it.
    ///
    /// - Parameter keep: how many of the newest stay; nil is all.
    /// - Returns: false when that failed.
    func make(keep: Int? = nil, log: EventLog) async -> Bool {
        do {
            log.emit(.journalBackup(path: try await make(now: .now)))
            if let keep { try await prune(keep: keep) }
            return true
        } catch {
            // A backup without `keep` is the last one of a failing journal: its failure is always logged.
            if keep == nil || !Task.isCancelled { log.emit(.journalBackupFailed(reason: "\(error)")) }
            return false
        }
    }

    /// Removes all but the newest `keep` of those in `backups`.
    func prune(keep: Int) async throws {
        try await pool.run {
            for name in try names().dropLast(keep) { try DurableFile.remove(directory.appending(name)) }
        }
    }

    /// The time of the newest in `backups`; nil without one, and when none is readable: then another is made, which
    /// reports the fault.
    func newest() async -> WallTime? {
        await pool.run {
            do throws(SystemError) {
                guard let name = try names().last else { return nil }
                return try FileLook.look(at: directory.appending(name)).identity.map {
                    WallTime(milliseconds: $0.modified / 1_000_000)
                }
            } catch {
                // Then another is made, which reports the fault.
                return nil
            }
        }
    }

    /// The time of the journal's last write, as its log is written at every commit; nil where that is unknown.
    func lastChange() -> WallTime? {
        let log = FilePath(bytes: journal.path.bytes + "-wal".utf8)
        do {
            let times = try [journal.path, log].compactMap { try FileLook.look(at: $0).identity?.modified }
            return times.max().map { WallTime(milliseconds: $0 / 1_000_000) }
        } catch {
            // It counts as changed.
            return nil
        }
    }

    /// Oldest first. Only names of the agent's own form.
    private func names() throws(SystemError) -> [FilePath.Component] {
        var found: [FilePath.Component] = []
        var stream = try DirectoryStream(directory)
        while let entry = try stream.next() {
            if entry.name.string.wholeMatch(of: /journal-[0-9]{14,}\.sqlite/) != nil { found.append(entry.name) }
        }
        return found.sorted { $0.string < $1.string }
    }
}

/// Backs the journal up at intervals, as `journal_backup` says. Reads and writes nothing while nothing changes.
struct BackupJob: ScheduledJob {
    private let backups: JournalBackups
    private let rule: (every: Duration, keep: Int)
    private let log: EventLog
    /// The journal's last change before the newest backup.
    private var last: WallTime?

    /// After a backup that failed.
    private static let soon = Duration.seconds(3600)

    /// nil where none are wanted.
    init?(_ journal: Journal, _ rule: (every: Duration, keep: Int)?, _ log: EventLog) {
        guard let rule else { return nil }
        (backups, self.rule, self.log) = (JournalBackups(journal), rule, log)
    }

    mutating func begin() async -> Duration {
        last = await backups.newest()
        return untilDue(after: last, now: .now)
    }

    mutating func perform() async -> Duration {
        let change = backups.lastChange()
        // An unreadable journal counts as changed: the backup reports the fault.
        if let last, let change, change <= last { return rule.every }
        guard await backups.make(keep: rule.keep, log: log) else { return min(rule.every, Self.soon) }
        last = change ?? last
        return rule.every
    }

    /// Not at once at every start: an agent in a restart loop would do nothing else.
    func untilDue(after last: WallTime?, now: WallTime) -> Duration {
        guard let last else { return min(rule.every, .seconds(60)) }
        let age = max(0, now.milliseconds - last.milliseconds)
        return max(.seconds(60), rule.every - .milliseconds(age))
    }

}

/// Checks now and then whether the journal's files are still the open ones, and saves its content when they are not: it
/// would end with the process. Starts first and stops last, so that its last copy has everything.
struct JournalMonitor: Service {
    let shared: Shared
    var interval = Duration.seconds(60)

    /// Checks before a lost journal is saved once more.
    private static let betweenCopies = 14

    func run() async throws {
        let (pool, backups) = (BlockingPool(name: "journal", threads: 1), JournalBackups(shared.journal))
        defer { pool.shutdown() }
        await cancelWhenGracefulShutdown {
            // Checks before the next copy; a copy contains the deliveries until then.
            var looks = 0
            while await Task.rest(for: interval, tolerance: interval / 10) {
                if await isInPlace(pool) {
                    looks = 0
                } else if looks > 0 {
                    looks -= 1
                } else if await backups.make(log: shared.log) {
                    looks = Self.betweenCopies
                }
            }
        }
        if await !isInPlace(pool) { _ = await backups.make(log: shared.log) }
    }

    private func isInPlace(_ pool: BlockingPool) async -> Bool {
        do throws(JournalError) {
            try await pool.run { () throws(JournalError) in try shared.journal.requirePlace() }
            shared.health.journal.works(for: .watch)
            return true
        } catch {
            shared.health.journal.fails(error, for: .watch)
            // A journal that cannot be checked now may be well.
            if case .displaced = error { return false }
            return true
        }
    }
}
