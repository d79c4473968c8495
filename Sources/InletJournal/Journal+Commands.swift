internal import Foundation
internal import GRDB
package import InletCore

extension Journal {
    /// Ends every open delivery of a file as cancelled, running ones too (their holder is told by the agent).
    /// - Returns: the ids of the deliveries that were running; nil when nothing was open.
    package func cancel(_ file: Int64, at now: WallTime) async throws(JournalError) -> [Int64]? {
        try await commit { try Self.cancel(file, now, $0) }
    }

    static func cancel(_ file: Int64, _ now: WallTime, _ database: Database) throws -> [Int64]? {
        try handOverClosings(of: file, database)
        let open = try Row.fetchAll(
            database,
            sql: "SELECT id, state FROM delivery WHERE file_id = ? AND state IN ('ready', 'claimed', 'parked')",
            arguments: [file])
        if open.isEmpty { return nil }
        for row in open {
            try endDelivery(row["id"], .cancelled, code: .cancelled, reason: "cancelled by a person", now, database)
        }
        return open.filter { $0["state"] as String == "claimed" }.map { $0["id"] }
    }

    /// Removes an ended file from the journal; it is a new one if it is seen again, under another key if something may be
    /// under its own. False when it is not ended, or something of it is still to be let go: a running transfer, an upload
    /// to abort.
    package func forget(_ file: Int64) async throws(JournalError) -> Bool {
        try await reviveAhead { _ in [file] }
        return try await commit { try Self.forget(file, $0) }
    }

    static func forget(_ file: Int64, _ database: Database) throws -> Bool {
        try revive(file, database)
        let forgettable = """
            id = ? AND state <> 'pending' AND finished_at IS NOT NULL
                AND NOT EXISTS (
                    SELECT 1 FROM delivery LEFT JOIN leftover ON delivery_id = delivery.id
                    WHERE file_id = file.id AND (delivery_id IS NOT NULL OR owner IS NOT NULL))
            """
        try database.run(
            sql: """
                INSERT OR IGNORE INTO spent_key SELECT destination, key FROM delivery
                WHERE key IS NOT NULL AND (state = 'delivered' OR \(mayBeVisible))
                    AND file_id IN (SELECT id FROM file WHERE \(forgettable))
                """, arguments: [file])
        let batch = try Int64.fetchOne(
            database, sql: "SELECT batch_id FROM file WHERE \(forgettable)", arguments: [file])
        // Companions that have gone their own way since no longer follow it.
        try database.run(
            sql: """
                UPDATE delivery SET after_id = NULL WHERE after_id IN (
                    SELECT id FROM delivery WHERE file_id IN (SELECT id FROM file WHERE \(forgettable)))
                """, arguments: [file])
        try database.run(sql: "DELETE FROM file WHERE \(forgettable)", arguments: [file])
        let isForgotten = database.changesCount > 0
        try dropEmptyBatch(batch, database)
        return isForgotten
    }

    /// The row of a batch goes with its last file; that of an open unit when it closes.
    static func dropEmptyBatch(_ batch: Int64?, _ database: Database) throws {
        try database.run(
            sql: """
                DELETE FROM batch WHERE id = ? AND closed_at IS NOT NULL
                    AND NOT EXISTS (SELECT 1 FROM file WHERE batch_id = batch.id)
                    AND NOT EXISTS (SELECT 1 FROM history_file WHERE batch_id = batch.id)
                """, arguments: [batch])
    }

    /// Writes what became of a delivered object since; the receipt, which says what was delivered, stays. The content of
    /// one that was deleted is new again.
    package func replaceProof(of delivery: Int64, by proof: Proof) async throws(JournalError) {
        try await reviveAhead { try [Self.fileInHistory(of: delivery, $0)].compactMap(\.self) }
        try await commit { database in
            try Self.revive(fileOf: delivery, database)
            try database.run(
                sql: "UPDATE delivery SET proof = ? WHERE id = ? AND state = 'delivered'",
                arguments: [Data(try JournalJSON.encode(proof)), delivery])
            if proof.isDeleted { try Self.forgetContent(of: delivery, database) }
        }
    }

    /// Of a delivery without proof: whether something may be under its key all the same. An attempt that a crash ended
    /// had no time for a note.
    static let mayBeVisible = """
        (delivery.interrupted > 0 OR EXISTS (
            SELECT 1 FROM checkpoint
            WHERE checkpoint.delivery_id = delivery.id AND checkpoint.name = '\(CheckpointNote.mayBeVisible)'))
        """

    /// Pauses a destination until it is resumed, across restarts.
    package func setPaused(_ destination: String, _ paused: Bool) async throws(JournalError) {
        try await commit { database in
            try database.run(
                sql: """
                    INSERT INTO destination (name, paused) VALUES (?, ?)
                    ON CONFLICT(name) DO UPDATE SET paused = excluded.paused
                    """, arguments: [destination, paused])
        }
    }

    /// The destinations that a person paused.
    package func paused() async throws(JournalError) -> Set<String> {
        try await read { Set(try String.fetchAll($0, sql: "SELECT name FROM destination WHERE paused")) }
    }

    /// The destinations' expiry clocks as last written, in milliseconds.
    package func uptimes() async throws(JournalError) -> [String: Int64] {
        try await read { database in
            let rows = try Row.fetchAll(database, sql: "SELECT name, uptime FROM destination")
            return Dictionary(uniqueKeysWithValues: rows.map { ($0["name"], $0["uptime"]) })
        }
    }

    package static let expiredAtOnce = 256

    /// Writes a destination's expiry clock and expires what is over its time, except what the destination works on. At most
    /// `expiredAtOnce` in one transaction, so that nobody waits for long: the caller asks again while it gets as many.
    /// - Returns: the files of the deliveries that expired.
    package func setUptime(
        _ destination: String, _ uptime: Int64, at now: WallTime
    ) async throws(JournalError) -> [Int64] {
        try await commit { database in
            try database.run(
                sql: """
                    INSERT INTO destination (name, uptime) VALUES (?, ?)
                    ON CONFLICT(name) DO UPDATE SET uptime = max(uptime, excluded.uptime)
                    """, arguments: [destination, uptime])
            let over = try Row.fetchAll(
                database,
                sql: """
                    SELECT id, file_id FROM delivery WHERE destination = ? AND state = 'ready' AND expires_at BETWEEN 0 AND ?
                        AND \(DeliveryRow.isNotBeingWorkedOn) AND code IS NOT 'source_gone'
                    LIMIT \(Self.expiredAtOnce)
                    """, arguments: [destination, uptime])
            return try over.compactMap { row -> Int64? in
                try Self.expire(row["id"], uptime, now, database) ? row["file_id"] : nil
            }
        }
    }

    /// Ends a delivery whose time is over, unless it was over only while its window was closed.
    private static func expire(
        _ id: Int64, _ uptime: Int64, _ now: WallTime, _ database: Database
    ) throws -> Bool {
        let row = try delivery(id, database)
        let file: FileRow?
        do {
            file = try self.file(row.fileID, database)
        } catch  where !(error is DatabaseError) {
            // What cannot be made out of its row has no window that could be closed.
            file = nil
        }
        if let file, try postpone(row, file, uptime: uptime, now, database) { return false }
        try expire(row, now, database)
        return true
    }

    /// The earliest expiry of what waits for each of `destinations`, on its expiry clock in milliseconds. What a destination
    /// works on does not expire, nor what waits for its volume.
    package func nextExpiries(of destinations: [String]) async throws(JournalError) -> [String: Int64] {
        try await read { database in
            try destinations.reduce(into: [:]) { expiries, destination in
                expiries[destination] = try Int64.fetchOne(
                    database,
                    sql: """
                        SELECT expires_at FROM delivery
                        WHERE destination = ? AND state = 'ready' AND expires_at >= 0
                            AND \(DeliveryRow.isNotBeingWorkedOn) AND code IS NOT 'source_gone'
                        ORDER BY expires_at LIMIT 1
                        """, arguments: [destination])
            }
        }
    }
}
