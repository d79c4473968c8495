internal import Foundation
internal import GRDB
internal import GRDBSQLite
package import InletCore
package import SystemPackage

/// The faults that a start found and repaired.
package struct Recovery: Sendable, Equatable {
    /// Claims of the dead process, back in the queue.
    package var freedClaims: Int
    /// Deliveries whose destination left the configuration.
    package var parked: Int
    /// Deliveries whose destination came back.
    package var unparked: Int
    /// Deliveries that ended the process too often, and now wait for a person.
    package var crashed: [CrashedDelivery] = []
    /// Whether the journal has files from before `names:`, and this is its first start since.
    package var knowsCleanNames = false

    /// Whether nothing needed repair.
    package var isEmpty: Bool { freedClaims + parked + unparked == 0 }
}

/// A delivery during which the process ended repeatedly.
package struct CrashedDelivery: Sendable, Equatable {
    package var job: Int64
    package var delivery: Int64
    /// The full path of its file.
    package var path: FilePath
    package var route: String
    package var destination: String

    package var error: DeliveryError {
        DeliveryError(
            .giveUp, .agentCrashed,
            """
            the agent ended \(RetryPolicy.mostCrashes) times while it was sending this file; 'inlet queue retry' tries it again
            """)
    }
}

extension Journal {
    /// Restores order at start-up; the caller holds the single-instance lock, so every claim is stale.
    ///
    /// An interrupted attempt does not count: a power cut says nothing about the file. Small files that only waited in
    /// memory count as interrupted too: noting their beginning would cost each a sync, and without the note something
    /// may be visible. Next time their beginning is noted (`begin`), so that only deliveries really under way count as
    /// crashes. A delivery that keeps ending the process comes later each time, alone if possible, and finally fails.
    /// Bytes that arrive clear its crashes: they are finite. Where the whole machine went down, no crash counts.
    ///
    /// - Parameter boot: distinguishes this run of the machine from the one before; nil = unknown.
    package func recover(
        destinations: [String], boot: Int64? = nil, at now: WallTime
    ) async throws(JournalError) -> Recovery {
        try await commit { database in
            let isNewBoot = try boot.map { try Self.noteBoot($0, database) } ?? false
            let (freed, crashed) = try Self.freeClaims(now, countsCrashes: !isNewBoot, database)
            // Cancelled while they ran.
            try database.change(
                """
                UPDATE delivery SET owner = NULL, until = NULL, interrupted = interrupted + 1
                WHERE owner IS NOT NULL AND state <> 'claimed'
                """)
            // No session outlives its process.
            try Self.dropLetGo(self.heardMark(database), database)
            try Self.holdWork(database)
            let (parked, unparked) = try Self.arrange(destinations, now, database)
            return Recovery(
                freedClaims: freed, parked: parked, unparked: unparked, crashed: crashed,
                knowsCleanNames: try Self.beginNames(database))
        }
    }

    /// Notes, once for a journal, whether it has files whose names became clean in keys without anybody asking for it.
    private static func beginNames(_ database: Database) throws -> Bool {
        let isNoted = try database.exists("SELECT 1 FROM counter WHERE name = '\(namesCounter)'")
        if isNoted { return false }
        let hasFiles = try hasCleanNames(database)
        try database.change("INSERT INTO counter (name, value) VALUES ('\(namesCounter)', ?)", hasFiles ? 1 : 0)
        return hasFiles
    }

    static func hasCleanNames(_ database: Database) throws -> Bool {
        let noted = try database.integer("SELECT value FROM counter WHERE name = '\(namesCounter)'")
        if let noted { return noted > 0 }
        return try database.exists("SELECT 1 FROM tally WHERE files > 0")
            || database.integer("SELECT max(id) FROM history_file") != nil
    }

    private static let namesCounter = "clean_names"

    /// Parks deliveries to any destination other than these, and takes up those that were parked for one of them: as at
    /// a start, but while the agent runs. Claimed deliveries are not touched.
    package func setDestinations(
        _ names: [String], at now: WallTime
    ) async throws(JournalError) -> (parked: Int, unparked: Int) {
        try await commit { database in try Self.arrange(names, now, database) }
    }

    /// Parks deliveries that returned to the queue for a destination that is no longer configured, and takes up parked
    /// ones whose destination is.
    ///
    /// - Parameter names: read when the change takes its turn, since they may change until then.
    /// - Returns: whether any delivery to such destinations is still open: claimed, or waiting for another file.
    package func parkStrays(
        except names: @escaping @Sendable () -> [String], at now: WallTime
    ) async throws(JournalError) -> Bool {
        try await commit { database in
            let destinations = names()
            _ = try Self.arrange(destinations, now, database)
            let list = destinations.map { _ in "?" }.joined(separator: ", ")
            let isClaimed = try !database.rows(
                "SELECT 1 FROM delivery WHERE state = 'claimed' AND destination NOT IN (\(list)) LIMIT 1", destinations
            ) { _ in true }.isEmpty
            return try isClaimed
                || Self.tally(database).contains { $0.place != .parked && !destinations.contains($0.destination) }
        }
    }

    private static func arrange(
        _ destinations: [String], _ now: WallTime, _ database: Database
    ) throws -> (parked: Int, unparked: Int) {
        // The counts show where there are any: deliveries to the other destinations are not examined.
        let others = Set(try tally(database).filter { $0.place != .parked }.map(\.destination)).subtracting(
            destinations)
        var parked = 0
        for name in others {
            parked += try database.change(
                "UPDATE delivery SET state = 'parked' WHERE state = 'ready' AND destination = ?", name)
        }
        let list = destinations.map { _ in "?" }.joined(separator: ", ")
        // Includes destinations that were away from the configuration.
        try database.change(
            """
            UPDATE leftover SET next_at = min(next_at, ?) WHERE delivery_id IN (
                SELECT delivery_id FROM leftover CROSS JOIN delivery ON delivery.id = delivery_id
                WHERE destination IN (\(list)))
            """, [now] + destinations)
        let unparked = try database.change(
            "UPDATE delivery SET state = 'ready' WHERE state = 'parked' AND destination IN (\(list))", destinations)
        return (parked, unparked)
    }

    /// Records that a delivery really begins which was claimed when a process ended before: the next crash counts as
    /// its own.
    package func begin(_ delivery: Int64) async throws(JournalError) {
        try await change("UPDATE delivery SET owner = ? WHERE id = ? AND state = 'claimed'", Self.begunOwner, delivery)
    }

    /// - Returns: whether the machine was restarted since the last time; false the first time.
    private static func noteBoot(_ boot: Int64, _ database: Database) throws -> Bool {
        let last = try database.integer("SELECT value FROM counter WHERE name = 'boot'")
        if last == boot { return false }
        try database.change("INSERT OR REPLACE INTO counter (name, value) VALUES ('boot', ?)", boot)
        return last != nil
    }

    /// - Returns: the number of claims, and those that wait for a person from now on.
    private static func freeClaims(
        _ now: WallTime, countsCrashes: Bool, _ database: Database
    ) throws -> (count: Int, crashed: [CrashedDelivery]) {
        let claims = try database.rows(
            """
            SELECT id, crashes, owner = '\(begunOwner)' OR owner GLOB '\(bigWorkers)' FROM delivery
            WHERE state = 'claimed'
            """
        ) { (id: $0.integer(0), crashes: $0.int(1), hasBegun: $0.bool(2)) }
        var crashed: [CrashedDelivery] = []
        for claim in claims {
            let isCounted = countsCrashes && (claim.crashes == 0 || claim.hasBegun)
            let crashes = claim.crashes + (isCounted ? 1 : 0)
            let next = now + (isCounted ? RetryPolicy.delay(afterCrashes: crashes, of: claim.id) : .zero)
            try database.change(
                """
                UPDATE delivery SET state = 'ready', owner = NULL, until = NULL, attempts = max(attempts - 1, 0),
                    interrupted = interrupted + 1, crashes = ?, next_at = ?
                WHERE id = ?
                """, crashes, next.milliseconds, claim.id)
            if crashes >= RetryPolicy.mostCrashes { crashed.append(try giveUp(claim.id, now, database)) }
        }
        return (claims.count, crashed)
    }

    private static func giveUp(_ id: Int64, _ now: WallTime, _ database: Database) throws -> CrashedDelivery {
        let row = try delivery(id, database)
        let file = try file(row.fileID, database)
        let crashed = CrashedDelivery(
            job: file.id, delivery: id, path: file.fullPath, route: file.route ?? "", destination: row.destination)
        try endDelivery(id, .failed, code: crashed.error.code, reason: crashed.error.reason, now, database)
        return crashed
    }

    /// The owner of a claim whose beginning was recorded.
    static let begunOwner = "begun"
    /// The owners of claims that the previous version began: `big-0`, `big-stand-in`.
    private static let bigWorkers = "big-*"
}

/// For a state directory whose lock the caller holds: no agent uses the journal. Both functions block.
extension Journal {
    /// Sets the journal at `path` aside, complete and unchanged; the next start begins an empty one.
    /// - Returns: its new place; nil when there was none.
    package static func reset(_ path: FilePath, now: WallTime) throws(JournalError) -> FilePath? {
        removeDraft(of: path)
        guard hasAny(of: path) else {
            try mayBegin(path)
            return nil
        }
        return try setAside(path, as: "reset", now)
    }

    /// Replaces the journal at `path` with a copy of `backup`, and sets the old one aside.
    ///
    /// The world has moved on since the backup. Any delivery without a proof in it may be visible by now: it is marked
    /// so, and its key is never given to another file. Job numbers and `{seq}` jump ahead of those that may have been
    /// used since. When this throws, or the process dies, the old journal is in place or `path` is empty. In the second
    /// case a start refuses to begin a new journal until a restore has succeeded.
    ///
    /// - Returns: the place of the former journal, if there was one, and the number of files that the backup knows.
    ///   Further: the number of deliveries still to be made, each of which may have arrived since.
    package static func restore(
        _ backup: FilePath, to path: FilePath, now: WallTime
    ) throws(JournalError) -> (setAside: FilePath?, files: Int, open: Int) {
        let draft = draft(of: path)
        let isFirst = isThere(path) || !isThere(draft)
        let known: (files: Int, open: Int)
        do {
            // The draft stays until it is overwritten: it keeps a start from beginning an empty journal.
            removeDraft(of: path, ["-wal", "-shm", "-journal"])
            known = try prepare(draft, from: backup)
        } catch {
            if isFirst { removeDraft(of: path) }
            throw error as? JournalError ?? .failed(backup, "not a sound journal: \(error). Nothing was changed")
        }
        let former = hasAny(of: path) ? try setAside(path, as: "replaced", now) : nil
        do {
            try FileManager.default.moveItem(atPath: draft.string, toPath: path.string)
        } catch {
            throw .failed(path, "the restored journal cannot be put in its place: \(error)")
        }
        return (former, known.files, known.open)
    }

    /// A restore that died between its two renames left no journal, only its draft: an empty journal would be wrong.
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

    /// A restore that died while setting the old journal aside may have left the old log, which belongs to no other
    /// journal.
    private static func hasAny(of path: FilePath) -> Bool {
        ["", "-wal", "-shm"].contains { isThere(FilePath(path.string + $0)) }
    }

    private static func removeDraft(of path: FilePath, _ suffixes: [String] = ["", "-wal", "-shm", "-journal"]) {
        for suffix in suffixes {
            // Most do not exist. One that stays is overwritten, or makes that fail with the reason.
            try? FileManager.default.removeItem(atPath: draft(of: path).string + suffix)
        }
    }

    private static func prepare(_ draft: FilePath, from backup: FilePath) throws -> (files: Int, open: Int) {
        makePrivate(draft)
        // A journal that was set aside has its latest commits in its log.
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

    private static func catchUp(_ database: DatabaseQueue, _ draft: FilePath) throws -> (files: Int, open: Int) {
        let known = try database.inDatabase { database in
            try database.inTransaction {
                try markVisible(database)
                return .commit
            }
            let files = try database.integer("SELECT (SELECT count(*) FROM file) + (SELECT count(*) FROM history_file)")
            let open = try database.integer(
                "SELECT count(*) FROM delivery WHERE state IN ('ready', 'claimed', 'parked')")
            try database.execute(sql: "PRAGMA journal_mode = DELETE")
            return (files: Int(files ?? 0), open: Int(open ?? 0))
        }
        try database.close()
        let file = try FileHandle(forUpdating: URL(fileURLWithPath: draft.string))
        try file.synchronize()
        try file.close()
        return known
    }

    private static func markVisible(_ database: Database) throws {
        try database.execute(
            sql: """
                INSERT OR IGNORE INTO checkpoint (delivery_id, name, value)
                SELECT id, '\(CheckpointName.mayBeVisible)', x'' FROM delivery
                WHERE state <> 'delivered' AND key IS NOT NULL;
                UPDATE history_delivery SET interrupted = interrupted + 1
                WHERE key IS NOT NULL AND state IS NOT (SELECT id FROM history_word WHERE word = 'delivered');
                UPDATE counter SET value = value + \(leap) WHERE name = 'sequence';
                INSERT INTO sqlite_sequence (name, seq) SELECT name, 0 FROM sqlite_master
                    WHERE type = 'table' AND sql LIKE '%AUTOINCREMENT%'
                        AND name NOT IN (SELECT name FROM sqlite_sequence);
                UPDATE sqlite_sequence SET seq = seq + \(leap);
                """)
    }

    /// More than an agent uses between two backups.
    private static let leap = 1_000_000

    /// Into a file with our own mode: `copyItem` would copy the other's mode.
    private static func copyContent(of source: String, to target: String) throws {
        makePrivate(FilePath(target))
        let from: FileHandle
        do {
            from = try FileHandle(forReadingFrom: URL(fileURLWithPath: source))
        } catch {
            throw JournalError.failed(FilePath(source), "it cannot be read: \(error.localizedDescription)")
        }
        // Both close with their last use; the content is synced before it gets its name.
        let to = try FileHandle(forWritingTo: URL(fileURLWithPath: target))
        try to.truncate(atOffset: 0)
        while let chunk = try from.read(upToCount: 1 << 20), !chunk.isEmpty { try to.write(contentsOf: chunk) }
    }
}

extension Journal {
    /// Copies the journal to `target`, which must not exist, as one file that only its owner can read, and checks the
    /// copy.
    ///
    /// It holds everything committed before the call and while it ran. SQLite copies in steps of 1 MiB, each in line
    /// with the commits; changes in between pass through the same connection into the copy. `VACUUM INTO` would block
    /// every commit until the end. Not yet synced when it returns; after an error a part of it may be there.
    package func copy(to target: FilePath) async throws(JournalError) {
        do {
            let copy = try Self.newCopy(target)
            let steps = try await Self.on(database) { try SteppedCopy($0, to: copy) }
            do {
                while try await !Self.on(database, { _ in try steps.step() }) { try Task.checkCancellation() }
            } catch {
                // Waits its turn: a commit that runs meanwhile informs the copy of its pages.
                try await Self.on(database) { _ in steps.finish() }
                throw error
            }
            // On the copy's own thread: the check reads the whole file.
            try await Self.on(copy) { database in
                try database.execute(sql: "PRAGMA journal_mode = DELETE")
                try Self.requireSound(database)
            }
            try copy.close()
        } catch let error as DatabaseError where error.resultCode == .SQLITE_CORRUPT {
            throw .damaged(path, cause: error.message ?? "found while it was copied")
        } catch {
            throw .from(error, at: target)
        }
    }

    private static func newCopy(_ target: FilePath) throws -> DatabaseQueue {
        if isThere(target) { throw JournalError.failed(target, "there is a file already") }
        makePrivate(target)
        var configuration = Configuration()
        configuration.prepareDatabase { try $0.execute(sql: "PRAGMA synchronous = OFF; PRAGMA cache_size = -2048") }
        return try DatabaseQueue(path: target.string, configuration: configuration)
    }

    /// Runs `body` on the thread of `queue`, in its turn and outside of a transaction.
    static func on<Value: Sendable>(
        _ queue: DatabaseQueue, _ body: @escaping @Sendable (Database) throws -> Value
    ) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            queue.asyncWriteWithoutTransaction { database in
                continuation.resume(with: Result { try body(database) })
            }
        }
    }
}

/// SQLite's online backup (sqlite.org/c3ref/backup_finish.html).
///
/// Unchecked, because its handle is a bare pointer: created and used on the source's queue only, one step at a time.
private final class SteppedCopy: @unchecked Sendable {
    private var handle: OpaquePointer?
    /// Open as long as the handle is.
    private let target: DatabaseQueue
    /// 1 MiB of SQLite's usual pages.
    private static let pages: Int32 = 256

    init(_ source: Database, to target: DatabaseQueue) throws {
        self.target = target
        // SQLite does not check for a connection.
        guard let from = source.sqliteConnection else { throw DatabaseError(resultCode: .SQLITE_MISUSE) }
        handle = try target.inDatabase { copy in
            guard let handle = sqlite3_backup_init(copy.sqliteConnection, "main", from, "main") else {
                throw DatabaseError(resultCode: copy.lastErrorCode, message: copy.lastErrorMessage)
            }
            return handle
        }
    }

    deinit { assert(handle == nil, "finish must be called on the source's queue") }

    /// Ends an incomplete copy.
    func finish() {
        sqlite3_backup_finish(handle)
        handle = nil
    }

    /// - Returns: whether that was the last step.
    func step() throws -> Bool {
        let code = sqlite3_backup_step(handle, Self.pages)
        if code == SQLITE_OK { return false }
        let end = sqlite3_backup_finish(handle)
        handle = nil
        guard code == SQLITE_DONE, end == SQLITE_OK else {
            throw DatabaseError(resultCode: ResultCode(rawValue: code == SQLITE_DONE ? end : code))
        }
        return true
    }
}
