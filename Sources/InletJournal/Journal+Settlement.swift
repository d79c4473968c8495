internal import Foundation
internal import GRDB
internal import InletCore

extension Journal {
    /// Ends a claim; with `.delivered`, durable point 2.
    func settle(
        _ delivery: Int64, _ settlement: Settlement, at now: WallTime
    ) async throws(JournalError) -> SettledFile {
        try await commit { database in
            // A person may have cancelled it meanwhile; a proof counts all the same, anything else does not.
            let row = try Self.delivery(delivery, database)
            var hasReleased = false
            if row.state == .claimed {
                hasReleased = try Self.apply(settlement, to: row, now, database)
            } else if case .delivered(let proof) = settlement, row.state != .delivered {
                try Self.reopen(row.fileID, database)
                hasReleased = try Self.markDelivered(row, proof, now, database)
            }
            try database.cachedStatement(sql: "UPDATE delivery SET owner = NULL, until = NULL WHERE id = ?")
                .execute(arguments: [delivery])
            let state = try String.fetchOne(
                database.cachedStatement(sql: "SELECT state FROM file WHERE id = ?"), arguments: [row.fileID])
            return SettledFile(state: state.flatMap(FileState.init) ?? .failed, hasReleased: hasReleased)
        }
    }

    /// - Returns: whether other deliveries that waited for this one can go on.
    private static func apply(
        _ settlement: Settlement, to row: DeliveryRow, _ now: WallTime, _ database: Database
    ) throws -> Bool {
        switch settlement {
        case .delivered(let proof):
            return try markDelivered(row, proof, now, database)
        case .again(let time, let counts, let code, let reason):
            try database.cachedStatement(
                sql: """
                    UPDATE delivery SET state = 'ready', next_at = ?, attempts = attempts - ?, code = ?, reason = ?
                    WHERE id = ?
                    """
            ).execute(
                arguments: [
                    time.milliseconds, counts ? 0 : 1, code?.rawValue ?? row.code?.rawValue, reason ?? row.reason,
                    row.id,
                ])
        case .waiting(let time, let saying):
            return try wait(row, until: time, saying: saying, database)
        case .ended(let state, let code, let reason):
            return try endDelivery(
                row.id, state, code: code, reason: reason, freesKey: state == .superseded, now, database)
        }
        return false
    }

    /// Lets a file be finished anew, and its batch: what was concluded of them is no longer so. What the finisher has begun
    /// stays begun.
    static func reopen(_ file: Int64, _ database: Database) throws {
        try database.run(
            sql: "UPDATE file SET finished_at = NULL, disposition = NULL, finish_at = 0 WHERE id = ?",
            arguments: [file])
        try database.run(sql: "DELETE FROM receipt WHERE file_id = ?", arguments: [file])
        if let batch = try self.file(file, database).batchID { try reopenBatch(batch, database) }
    }

    /// - Returns: whether other deliveries waited for this one.
    static func markDelivered(
        _ row: DeliveryRow, _ proof: Proof, _ now: WallTime, _ database: Database
    ) throws -> Bool {
        try database.cachedStatement(
            sql: """
                UPDATE delivery SET state = 'delivered', code = NULL, reason = NULL, proof = ?, ended_at = ? WHERE id = ?
                """
        ).execute(arguments: [try JournalJSON.encode(proof), now.milliseconds, row.id])
        try database.run(sql: "DELETE FROM checkpoint WHERE delivery_id = ?", arguments: [row.id])
        try database.run(sql: "DELETE FROM leftover WHERE delivery_id = ?", arguments: [row.id])
        if let content = proof.content {
            try database.run(
                sql: "UPDATE file SET content = ? WHERE id = ? AND content IS NULL",
                arguments: [try JournalJSON.encode(content), row.fileID])
        }
        let hasReleased = try release(followersOf: row, proof, now, database)
        let hasOthers = try releaseOthers(besides: row, now, database)
        try concludeFile(row.fileID, now, database)
        return hasReleased || hasOthers
    }

    /// Ends a delivery without proof. What its attempts left at the destination is remembered as a leftover to abort.
    ///
    /// - Parameter freesKey: nothing is visible under the key (the contract of `.sourceChanged`), so that the new content
    ///   may have it, as soon as no leftover needs it. Without a leftover a superseded delivery gives it back, unless something may be visible after all.
    /// - Returns: whether others that waited for it can go on all the same.
    @discardableResult
    static func endDelivery(
        _ id: Int64, _ state: DeliveryState, code: ErrorCode, reason: String, freesKey: Bool = false, _ now: WallTime,
        _ database: Database
    ) throws -> Bool {
        let row = try delivery(id, database)
        try database.run(
            sql: "UPDATE delivery SET state = ?, code = ?, reason = ?, ended_at = ? WHERE id = ?",
            arguments: [
                state.rawValue, code.rawValue, reason + (try remainder(of: row, database)), now.milliseconds, id,
            ])
        try database.run(
            sql: """
                INSERT OR IGNORE INTO leftover (delivery_id, next_at, frees_key)
                SELECT id, ?, ? AND NOT \(mayBeVisible) FROM delivery
                WHERE id = ? AND EXISTS (
                    SELECT 1 FROM checkpoint WHERE delivery_id = delivery.id AND checkpoint.name <> ?)
                """,
            arguments: [now.milliseconds, freesKey, id, CheckpointNote.mayBeVisible])
        if state == .superseded {
            try database.run(
                sql: """
                    UPDATE delivery SET key = NULL
                    WHERE id = ? AND NOT EXISTS (SELECT 1 FROM leftover WHERE delivery_id = delivery.id)
                        AND NOT \(mayBeVisible)
                    """, arguments: [id])
        }
        let followers = try Int64.fetchAll(
            database, sql: "SELECT id FROM delivery WHERE after_id = ? AND state IN ('ready', 'parked')",
            arguments: [id])
        for follower in try followers.map({ try delivery($0, database) }) {
            let passedOn = Self.reason(reason, of: row, for: follower)
            try endDelivery(follower.id, state, code: code, reason: passedOn, freesKey: freesKey, now, database)
        }
        let hasOthers = try releaseOthers(besides: row, now, database)
        try concludeFile(row.fileID, now, database)
        return hasOthers
    }

    /// Gives the file the worst state of its deliveries once none of them is open.
    static func concludeFile(_ id: Int64, _ now: WallTime, _ database: Database) throws {
        let rows = try Row.fetchAll(
            database.cachedStatement(sql: "SELECT state, code, reason FROM delivery WHERE file_id = ?"),
            arguments: [id])
        let states = rows.compactMap { DeliveryState(rawValue: $0["state"]) }
        let state = FileState.combined(states)
        let cause = rows.first { $0["state"] as String == state.rawValue }
        try database.cachedStatement(
            sql: "UPDATE file SET state = ?, code = ?, reason = ?, ended_at = ? WHERE id = ?"
        ).execute(
            arguments: [
                state.rawValue, cause?["code"] as String?, cause?["reason"] as String?,
                state == .pending ? nil : now.milliseconds, id,
            ])
    }
}
