internal import GRDB

/// A key that this agent has of its fleet.
package struct GrantedKey: Sendable, Equatable {
    package var id: Int64
    package var destination: String
    /// The address that the destination had then; nil where none was known.
    package var address: String?
    package var key: String
    package var ref: Int64
}

/// Reports after the fleet lost commits.
extension Journal {
    /// Keys that this agent has, for its report after the fleet lost commits. First come keys without a grant, or with
    /// an unconfirmed one; then those granted after `mark`.
    ///
    /// - Parameter from: the last key of the page before; 0 begins.
    package func grantedKeys(
        after mark: Int64, limit: Int, from: Int64 = 0
    ) async throws(JournalError) -> [GrantedKey] {
        try await read { database in
            let last = try database.row("SELECT mark FROM fleet_key WHERE id = ?", from) { $0.optionalInteger(0) }
            var keys: [GrantedKey] = []
            // A page that is gone begins anew: repeats do no harm.
            if last == nil || last == .some(.none) {
                keys = try Self.granted(
                    "mark IS NULL AND id > ? AND \(Self.isUsed)", [last == nil ? 0 : from, limit], database)
            }
            if keys.count < limit {
                let place: [any SQLValue] = if let last, let last { [last, from] } else { [mark, Int64.max] }
                keys += try Self.granted("(mark, id) > (?, ?)", place + [limit - keys.count], database)
            }
            return keys
        }
    }

    private static func granted(
        _ condition: String, _ values: [any SQLValue], _ database: Database
    ) throws -> [GrantedKey] {
        try database.rows(
            """
            SELECT id, destination, address, key, ref FROM fleet_key INDEXED BY fleet_key_by_mark
            WHERE \(condition) ORDER BY mark, id LIMIT ?
            """, values
        ) { row in
            let address = row.text(2) ?? ""
            return GrantedKey(
                id: row.integer(0), destination: row.text(1) ?? "", address: address.isEmpty ? nil : address,
                key: row.text(3) ?? "", ref: row.integer(4))
        }
    }

    /// Whether something was sent, or may be on its way, under a key.
    private static let isUsed = """
        (EXISTS (SELECT 1 FROM delivery
                WHERE delivery.destination = fleet_key.destination AND delivery.key = fleet_key.key
                    AND started_at IS NOT NULL)
            OR EXISTS (SELECT 1 FROM history_delivery AS past
                WHERE past.destination = (SELECT id FROM history_word WHERE word = fleet_key.destination)
                    AND past.key = fleet_key.key AND started_at IS NOT NULL))
        """
}
