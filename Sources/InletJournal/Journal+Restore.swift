internal import Foundation
internal import GRDB
package import InletCore
package import SystemPackage

/// What a restore did.
package struct Restoration: Sendable, Equatable {
    /// Where the journal went that was there before; nil when there was none.
    package var setAside: FilePath?
    /// The files that the backup knows.
    package var files: Int
    /// Of its deliveries, those that are still to be made: each may have arrived since.
    package var open: Int
}

/// For a state directory whose lock the caller holds: no agent uses the journal. Both block.
extension Journal {
    /// Sets the journal at `path` aside, whole and unchanged; the next start begins an empty one.
    /// - Returns: where it is now; nil when there was none.
    package static func reset(_ path: FilePath, now: WallTime) throws(JournalError) -> FilePath? {
        removeDraft(of: path)
        guard hasAny(of: path) else {
            try mayBegin(path)
            return nil
        }
        return try setAside(path, as: "reset", now)
    }

    /// Puts a copy of `backup` in the place of the journal at `path`, which is set aside.
    ///
    /// The world has gone on since the backup. Of every delivery that it has no proof of, something may be visible by now:
    /// it is marked so, and its key is never given to another file. Job numbers and `{seq}` jump ahead of what may have
    /// been given out since. When it throws, or the process dies, the old journal is in its place, or `path` is empty and
    /// a start refuses to begin a new journal until a restore has succeeded.
    package static func restore(
        _ backup: FilePath, to path: FilePath, now: WallTime
    ) throws(JournalError) -> Restoration {
        let draft = draft(of: path)
        let isFirst = isThere(path) || !isThere(draft)
        var restoration: Restoration
        do {
            // The draft itself stays until it is written over: it keeps a start from beginning an empty journal.
            removeDraft(of: path, ["-wal", "-shm", "-journal"])
            restoration = try prepare(draft, from: backup)
        } catch {
            if isFirst { removeDraft(of: path) }
            throw error as? JournalError ?? .failed(backup, "not a sound journal: \(error). Nothing was changed")
        }
        if hasAny(of: path) { restoration.setAside = try setAside(path, as: "replaced", now) }
        do {
            try FileManager.default.moveItem(atPath: draft.string, toPath: path.string)
        } catch {
            throw .failed(path, "the restored journal cannot be put in its place: \(error)")
        }
        return restoration
    }

    /// A restore that died between its two renames left no journal, but its draft: an empty one would be wrong.
    static func requireNoRestore(_ path: FilePath) throws(JournalError) {
        let draft = draft(of: path)
        guard !isThere(path), isThere(draft) else { return }
        throw .failed(
            path,
            "a restore was interrupted; repeat 'inlet queue restore FILE --yes', or begin an empty journal "
                + "with 'inlet queue reset --yes'")
    }

    private static func draft(of path: FilePath) -> FilePath { FilePath(path.string + ".restoring") }

    static func isThere(_ path: FilePath) -> Bool { FileManager.default.fileExists(atPath: path.string) }

    /// A restore that died while it set the old journal aside may have left the old log, which belongs to no other journal.
    private static func hasAny(of path: FilePath) -> Bool {
        ["", "-wal", "-shm"].contains { isThere(FilePath(path.string + $0)) }
    }

    private static func removeDraft(of path: FilePath, _ suffixes: [String] = ["", "-wal", "-shm", "-journal"]) {
        for suffix in suffixes {
            // Most are not there; one that stays is written over, or is in the way of what is written there, which says so.
            try? FileManager.default.removeItem(atPath: draft(of: path).string + suffix)
        }
    }

    private static func prepare(_ draft: FilePath, from backup: FilePath) throws -> Restoration {
        makePrivate(draft)
        // One that was set aside has its latest commits in its log.
        for suffix in ["", "-wal"] where suffix.isEmpty || isThere(FilePath(backup.string + suffix)) {
            try copyContent(of: backup.string + suffix, to: draft.string + suffix)
        }
        let database = try DatabaseQueue(path: draft.string)
        try database.inDatabase { database in
            guard try !Schema.migrator.hasBeenSuperseded(database) else {
                throw JournalError.failed(backup, "it was written by a newer version of Inlet. Nothing was changed")
            }
            guard try !Schema.migrator.appliedIdentifiers(database).isEmpty else {
                throw JournalError.failed(backup, "it is not a journal of Inlet. Nothing was changed")
            }
            try requireSound(database)
        }
        try Schema.migrator.migrate(database)
        return try catchUp(database, draft)
    }

    private static func catchUp(_ database: DatabaseQueue, _ draft: FilePath) throws -> Restoration {
        let restoration = try database.inDatabase { database in
            try database.inTransaction {
                try markVisible(database)
                return .commit
            }
            let files = try Int.fetchOne(
                database, sql: "SELECT (SELECT count(*) FROM file) + (SELECT count(*) FROM history_file)")
            let open = try Int.fetchOne(
                database, sql: "SELECT count(*) FROM delivery WHERE state IN ('ready', 'claimed', 'parked')")
            try database.execute(sql: "PRAGMA journal_mode = DELETE")
            return Restoration(setAside: nil, files: files ?? 0, open: open ?? 0)
        }
        try database.close()
        let file = try FileHandle(forUpdating: URL(fileURLWithPath: draft.string))
        try file.synchronize()
        try file.close()
        return restoration
    }

    private static func markVisible(_ database: Database) throws {
        try database.execute(
            sql: """
                INSERT OR IGNORE INTO checkpoint (delivery_id, name, value)
                SELECT id, ?, x'' FROM delivery WHERE state <> 'delivered' AND key IS NOT NULL
                """, arguments: [CheckpointNote.mayBeVisible])
        try database.execute(
            sql: """
                UPDATE history_delivery SET interrupted = interrupted + 1
                WHERE key IS NOT NULL AND state IS NOT (SELECT id FROM history_word WHERE word = 'delivered');
                UPDATE counter SET value = value + \(leap) WHERE name = 'sequence';
                INSERT INTO sqlite_sequence (name, seq) SELECT name, 0 FROM sqlite_master
                    WHERE type = 'table' AND sql LIKE '%AUTOINCREMENT%'
                        AND name NOT IN (SELECT name FROM sqlite_sequence);
                UPDATE sqlite_sequence SET seq = seq + \(leap);
                """)
    }

    /// More than an agent gives out between two backups.
    private static let leap = 1_000_000

    /// Into a file of our own mode: `copyItem` would give it the mode of the other.
    private static func copyContent(of source: String, to target: String) throws {
        makePrivate(FilePath(target))
        let from: FileHandle
        do {
            from = try FileHandle(forReadingFrom: URL(fileURLWithPath: source))
        } catch {
            throw JournalError.failed(FilePath(source), "it cannot be read: \(error.localizedDescription)")
        }
        // Only read.
        defer { try? from.close() }
        let to = try FileHandle(forWritingTo: URL(fileURLWithPath: target))
        // What is written is synced before it gets its name.
        defer { try? to.close() }
        try to.truncate(atOffset: 0)
        while let chunk = try from.read(upToCount: 1 << 20), !chunk.isEmpty { try to.write(contentsOf: chunk) }
    }
}
