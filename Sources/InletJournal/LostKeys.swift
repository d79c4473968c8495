internal import GRDB
package import InletCore

/// Keys that a delivery had, and that turned out to be another's.
extension Journal {
    /// Gives an open delivery its next free name; the key stays spent. One that was delivered keeps its key: the bytes
    /// are there.
    ///
    /// - Returns: whether there was such a delivery.
    @discardableResult
    package func loseKey(
        _ key: String, at destination: String, because reason: String, now: WallTime
    ) async throws(JournalError) -> Bool {
        try await commit { database in
            let open = try DeliveryRow.all(
                database, "WHERE destination = ? AND key = ? AND state IN ('ready', 'parked')", destination, key)
            guard let row = open.first else { return false }
            try Self.loseKey(row, reason, now, database)
            return true
        }
    }

    /// In transactions of others; a claim that ends so counts no attempt. Where keys are asked for, the new one is too,
    /// before the delivery goes on. The former key is spent, and never goes back to the fleet: something is there.
    ///
    /// - Parameter name: the next name; nil is the next free one.
    static func loseKey(
        _ row: DeliveryRow, _ reason: String, to name: String? = nil, _ now: WallTime, _ database: Database
    ) throws {
        guard let key = row.key else { return }
        try database.change(
            "INSERT OR IGNORE INTO spent_key (destination, key) VALUES (?, ?)", row.destination, key)
        // A key is asked for only where nothing is known to be under way.
        try database.change(
            "UPDATE delivery SET interrupted = 0, code = ?, reason = ? WHERE id = ?", ErrorCode.fleetKeyTaken, reason,
            row.id)
        let next =
            try name ?? freeKey(try unnumbered(key, row.destination, database), row.destination, database)
        try rename(row.id, from: key, to: next, database)
        guard row.state == .claimed else {
            // With its notes gone it may wait for the new key.
            try database.change("UPDATE delivery SET next_at = next_at WHERE id = ?", row.id)
            return
        }
        try database.change(
            "UPDATE delivery SET state = 'ready', next_at = ?, attempts = max(0, attempts - 1) WHERE id = ?", now,
            row.id)
    }
}
