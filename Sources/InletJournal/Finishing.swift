internal import GRDB
package import InletCore
internal import SystemPackage

/// The disposition of a finished file's source, and the batch that ended with the file.
package typealias Finish = (disposition: String, endedBatch: Batch?)

/// An abandoned upload, with its attempts' notes.
package typealias Leftover = (file: FileRow, delivery: DeliveryRow, checkpoint: [String: [UInt8]])

extension Journal {
    /// Files whose deliveries have ended but which are not finished, oldest first. An unreadable part of a row appears
    /// in `damage`, and holds up no other file.
    ///
    /// - Parameter removals: those that a person has removed, whose destinations must answer first; all others; or
    ///   both.
    package func unfinished(
        at now: WallTime, limit: Int, removals: Bool? = nil
    ) async throws(JournalError) -> [Job] {
        try await read { database in
            var damages: [Int64: String] = [:]
            let files = try database.rows(
                """
                SELECT \(FileRow.columns) FROM file INDEXED BY file_unfinished
                WHERE finished_at IS NULL AND state <> 'pending' AND finish_at <= ? \(Self.only(removals))
                ORDER BY finish_at, id LIMIT ?
                """, now, limit
            ) { row in
                do {
                    return try FileRow(row)
                } catch {
                    damages[row.integer(0)] = "\(error)"
                    return try FileRow(row, showing: true)
                }
            }
            return try files.map { file in
                var job = try Self.job(file, database, showing: true)
                job.damage = damages[file.id] ?? job.unproved
                return job
            }
        }
    }

    /// When the finisher should look next; nil when nothing is unfinished, or what is waits for its fleet.
    package func nextFinish(removals: Bool? = nil) async throws(JournalError) -> WallTime? {
        try await read { database in
            try database.time(
                """
                SELECT min(finish_at) FROM file INDEXED BY file_unfinished
                WHERE finished_at IS NULL AND state <> 'pending' AND finish_at < \(Self.never) \(Self.only(removals))
                """)
        }
    }

    private static func only(_ removals: Bool?) -> String {
        removals.map { "AND \($0 ? "" : "NOT ")(state = 'duplicate' AND \(FilePolicy.isToBeRemoved))" } ?? ""
    }

    /// The number of files whose source could not be moved or removed, up to `most`, and the oldest one's reason; nil
    /// when there are none.
    package func stuck(most: Int = 10_000) async throws(JournalError) -> (files: Int, reason: String)? {
        try await read { database in
            // Few files are unfinished at any time, unless all of them are stuck.
            let found = try database.row(
                """
                SELECT count(*), min(id) FROM (
                    SELECT id FROM file INDEXED BY file_unfinished
                    WHERE finished_at IS NULL AND state <> 'pending' AND disposition LIKE ? LIMIT ?)
                """, Disposition.stuck("%"), most
            ) { ($0.int(0), $0.optionalInteger(1)) }
            guard let found, let oldest = found.1 else { return nil }
            let text = try Self.file(oldest, database).disposition ?? ""
            return (found.0, String(text.dropFirst(Disposition.stuck("").count)))
        }
    }

    /// The number of files that wait because they cannot be read, and the oldest one's reason; nil when all are
    /// readable. Looks at up to `most` for each destination.
    package func forbidden(most: Int = 10_000) async throws(JournalError) -> (files: Int, reason: String)? {
        try await read { database in
            var files: Set<Int64> = []
            for destination in try database.rows("SELECT DISTINCT destination FROM queue_tally", read: { $0.text(0) }) {
                files.formUnion(
                    try database.integers(
                        """
                        SELECT file_id FROM (
                            SELECT file_id, code FROM delivery INDEXED BY delivery_retrying
                            WHERE destination = ? AND state = 'ready' AND code IS NOT NULL LIMIT ?)
                        WHERE code = 'source_forbidden'
                        """, destination, most))
            }
            guard let oldest = files.min() else { return nil }
            let deliveries = try Self.job(Self.file(oldest, database), database).deliveries
            return (files.count, deliveries.first { $0.code == .sourceForbidden }?.reason ?? "")
        }
    }

    /// The number of files that ended as gone within `life` of their admission, since `start`; among the newest `most`.
    package func goneSoon(
        within life: Duration, since start: WallTime, most: Int = 10_000
    ) async throws(JournalError) -> Int {
        try await read { database in
            try database.row(
                """
                SELECT count(*) FROM (
                    SELECT ended_at, admitted_at FROM file INDEXED BY file_by_state WHERE state = 'gone'
                    ORDER BY id DESC LIMIT ?)
                WHERE ended_at >= ? AND ended_at - admitted_at <= ?
                """, most, start, life.milliseconds
            ) { $0.int(0) } ?? 0
        }
    }

    /// The number of rejected files that a person has left in their places; among the newest `most`.
    package func rejectedLeft(most: Int = 10_000) async throws(JournalError) -> Int {
        try await read { database in
            try database.row(
                """
                SELECT count(*) FROM (
                    SELECT policy FROM file INDEXED BY file_by_state WHERE state = 'rejected' ORDER BY id DESC LIMIT ?)
                WHERE \(FilePolicy.isLeft)
                """, most
            ) { $0.int(0) } ?? 0
        }
    }

    /// Whether the rules of its admission may still move or remove a file: it is not finished, or a person may retry
    /// it.
    package func mayFinishMore() async throws(JournalError) -> Bool {
        try await read { database in
            try database.integer(
                """
                SELECT EXISTS (SELECT 1 FROM file WHERE state = 'pending')
                    OR EXISTS (SELECT 1 FROM file WHERE finished_at IS NULL AND state <> 'pending')
                    OR EXISTS (SELECT 1 FROM file WHERE state IN ('failed', 'expired', 'cancelled', 'rejected'))
                """) != 0
        }
    }

    /// The file is pending again (`queue retry`), or no longer in the journal. Not a database fault.
    private var backInQueue: JournalError {
        .failed(path, "the file is in the queue again, so it stays where it is")
    }

    /// Postpones finishing; `note` appears as the disposition meanwhile.
    package func postponeFinish(_ file: Int64, until time: WallTime, note: String) async throws(JournalError) {
        try await change(
            """
            UPDATE file SET finish_at = ?, disposition = ?
            WHERE id = ? AND state <> 'pending' AND finished_at IS NULL
            """, time, note, file)
    }

    /// Writes the finisher's intent before it acts; nil withdraws it.
    ///
    /// Throws when the file was put back in the queue meanwhile: its deliveries need the source in place.
    package func intend(_ file: Int64, _ intent: [UInt8]?) async throws(JournalError) {
        try await commit { database in
            let noted = try database.change(
                "UPDATE file SET intent = ?1 WHERE id = ?2 AND (?1 IS NULL OR state <> 'pending')", intent, file)
            guard noted > 0 else { throw self.backInQueue }
        }
    }

    /// Writes the first intent for a file that still has its own name, unless another job needs the source. That is a
    /// newer job of the same name, or one that sends the same file from another folder or for a person.
    ///
    /// - Returns: the job that needs the source, which is the file's own when a person has withdrawn an order since;
    ///   nothing was written then.
    package func beginFinish(_ file: FileRow, _ intent: [UInt8]) async throws(JournalError) -> Int64? {
        try await commit { database in
            if try Self.isWithdrawn(file, database) { return file.id }
            if let other = try Self.needing(file, database) { return other }
            let changed = try database.change(
                "UPDATE file SET intent = ? WHERE id = ? AND state <> 'pending'", intent, file.id)
            guard changed > 0 else { throw self.backInQueue }
            return nil
        }
    }

    /// Whether a person's answer is another one than the finisher has read.
    private static func isWithdrawn(_ file: FileRow, _ database: Database) throws -> Bool {
        guard let answer = file.policy.answer else { return false }
        return try FileRow.one(file.id, database)?.policy.answer != answer
    }

    /// Within the same root: every newer unfinished job, since it disposes of the file itself. In other roots: only
    /// jobs that have yet to send it, since two could wait for each other otherwise.
    private static func needing(_ file: FileRow, _ database: Database) throws -> Int64? {
        let (home, column): (any SQLValue, String) = file.volume.map { ($0, "volume") } ?? (file.root, "root")
        let same = try database.integer(
            "SELECT id FROM file WHERE \(column) = ? AND path = ? AND id > ? AND finished_at IS NULL LIMIT 1", home,
            file.path, file.id)
        if let same { return same }
        let whole = file.fullPath
        var root = whole
        while root.removeLastComponent() {
            var rest = whole
            guard root != file.root, rest.removePrefix(root) else { continue }
            if let other = try pending(root, FilePath(root: nil, rest.components), database) { return other }
        }
        return file.root.isEmpty ? nil : try pending("", whole, database)
    }

    private static func pending(_ root: FilePath, _ path: FilePath, _ database: Database) throws -> Int64? {
        try database.integer(
            "SELECT id FROM file WHERE root = ? AND path = ? AND state = 'pending' LIMIT 1", root, path)
    }

    /// Durable point 3: records the source's `disposition` and the receipt.
    ///
    /// - Parameter receipt: the receipt's JSON.
    /// - Returns: nil when it was finished before, or no longer has the state in `file`.
    package func finish(
        _ file: FileRow, disposition: String, state: FileState? = nil, receipt: [UInt8], at now: WallTime
    ) async throws(JournalError) -> Finish? {
        try await commit {
            try Self.finish(file, disposition: disposition, state: state, receipt: receipt, at: now, $0)
        }
    }

    static func finish(
        _ file: FileRow, disposition: String, state: FileState?, receipt: [UInt8], at now: WallTime,
        _ database: Database
    ) throws -> Finish? {
        let changed = try database.change(
            """
            UPDATE file SET finished_at = ?, disposition = ?, state = ifnull(?, state), intent = NULL
            WHERE id = ? AND finished_at IS NULL AND state = ?
            """, now, disposition, state, file.id, file.state)
        guard changed > 0 else { return nil }
        // The receipt first: of an answered file it gives no notice.
        try insertReceipts([(file, receipt)], now, database)
        if let answer = file.policy.answer, answer != .left, try !isWithdrawn(file, database) {
            try note(nil, of: file, database)
        }
        return (disposition, try file.batchID.flatMap { try concludeBatch($0, now, database) })
    }

    static func insertReceipts(
        _ receipts: [(file: FileRow, json: [UInt8])], _ now: WallTime, _ database: Database
    ) throws {
        for some in RowsStatement.pieces(of: receipts) {
            var values: [any SQLValue] = [now]
            for (file, json) in some { values += [file.id, file.root, file.path, json] as [any SQLValue] }
            try database.change(receiptRows.sql(some.count), values)
        }
    }

    private static let receiptRows = RowsStatement(["file_id", "root", "path", "body"], constants: "?1, ") {
        "INSERT INTO receipt (created_at, \($0)) VALUES \($1)"
    }

    /// The newest receipts' JSON, newest first.
    package func receipts(limit: Int) async throws(JournalError) -> [[UInt8]] {
        try await read { database in
            try database.rows("SELECT body FROM receipt ORDER BY id DESC LIMIT ?", limit) { $0.bytes(0) }
        }
    }

    /// Abandoned uploads of which the destination may still hold parts: they must be aborted there.
    package func leftovers(at now: WallTime, limit: Int) async throws(JournalError) -> [Leftover] {
        try await read { database in
            let ids = try database.integers(
                """
                SELECT delivery_id FROM leftover CROSS JOIN delivery ON delivery.id = delivery_id
                WHERE leftover.next_at <= ? AND owner IS NULL ORDER BY leftover.next_at LIMIT ?
                """, now, limit)
            return try ids.map { id in
                let delivery = try Self.delivery(id, database)
                return (try Self.file(delivery.fileID, database), delivery, try Self.checkpoint(of: id, database))
            }
        }
    }

    /// Records that the leftover is gone from its destination. If the delivery was sent again meanwhile, its checkpoint
    /// is kept. The journal still remembers that something may be visible under the key.
    ///
    /// - Parameter keeping: the notes that a retry continues with; they leave nothing to clean up.
    package func leftoverRemoved(_ delivery: Int64, keeping notes: [String: [UInt8]] = [:]) async throws(JournalError) {
        try await commit { database in
            try database.change(
                """
                UPDATE delivery SET key = NULL
                WHERE id = ? AND EXISTS (SELECT 1 FROM leftover WHERE delivery_id = delivery.id AND frees_key)
                """, delivery)
            guard try database.change("DELETE FROM leftover WHERE delivery_id = ?", delivery) > 0 else { return }
            try database.change(
                "DELETE FROM checkpoint WHERE delivery_id = ? AND name <> ?", delivery, CheckpointName.mayBeVisible)
            for (name, value) in notes {
                try database.change("INSERT OR REPLACE INTO checkpoint VALUES (?, ?, ?)", delivery, name, value)
            }
        }
    }

    /// The leftover's destination is unreachable or failing; this does not count as an attempt.
    package func postponeLeftover(_ delivery: Int64, until time: WallTime) async throws(JournalError) {
        try await change("UPDATE leftover SET next_at = ? WHERE delivery_id = ?", time, delivery)
    }

    /// The leftover could not be removed. It is tried again at `time`; after sixteen attempts it is left to the store's
    /// own expiry.
    package func leftoverRemains(_ delivery: Int64, until time: WallTime) async throws(JournalError) {
        try await commit { database in
            try database.change(
                "UPDATE leftover SET tries = tries + 1, next_at = ? WHERE delivery_id = ?", time, delivery)
            try database.change("DELETE FROM leftover WHERE delivery_id = ? AND tries >= 16", delivery)
        }
    }

    /// When the next leftover is due; nil when there is none.
    package func nextLeftover() async throws(JournalError) -> WallTime? {
        try await read {
            try $0.time("SELECT min(next_at) FROM leftover")
        }
    }
}

extension Job {
    /// The delivery whose proof cannot be read; nil when all can.
    fileprivate var unproved: String? {
        let unread = deliveries.first { $0.state == .delivered && $0.proof == nil }
        return unread.map { "the proof of its delivery to '\($0.destination)' cannot be read" }
    }
}
