internal import GRDB
package import InletCore

/// A checksum list that is due since its unit ended.
package struct ManifestOrder: Sendable, Equatable {
    package var batch: Int64
    /// The batch's end that it covers.
    package var generation: Int
    /// nil for an unreadable rule.
    package var rule: ManifestRule?
    package var attempts: Int
    /// Why the last attempt to write it failed.
    package var reason: String?
}

/// Checksum lists of units: one row of `manifest` each, written in the transaction that ends the unit, and removed when
/// the list is in place.
extension Journal {
    /// Part of a batch's end: a unit whose route asks for a list gets one due. It also covers lists due from earlier
    /// ends.
    static func owe(manifestOf batch: Batch, _ now: WallTime, _ database: Database) throws {
        guard batch.unit != nil else { return }
        let policies = try database.rows(
            "SELECT policy FROM file WHERE batch_id = ? AND role IS NULL AND state <> 'rejected' ORDER BY id LIMIT 10",
            batch.id
        ) { FilePolicy.readable($0.bytes(0)) }
        // All have the same route.
        guard let rule = policies.lazy.compactMap(\.self).first?.manifest else { return }
        try database.change(
            "INSERT OR REPLACE INTO manifest (batch_id, generation, rule, next_at) VALUES (?, ?, ?, ?)", batch.id,
            batch.generation, try JSON.encode(rule), now)
    }

    /// The list that has been due longest; nil when none is due.
    package func nextManifest(at now: WallTime) async throws(JournalError) -> ManifestOrder? {
        try await read { database in
            try database.row(
                """
                SELECT batch_id, generation, rule, attempts, reason FROM manifest
                WHERE next_at <= ? ORDER BY next_at, batch_id LIMIT 1
                """, now
            ) { row in
                ManifestOrder(
                    batch: row.integer(0), generation: row.int(1),
                    // A list without a readable rule is still due: the writer reports the fault.
                    rule: try? JSON.decode(row.bytes(2)), attempts: row.int(3), reason: row.text(4))
            }
        }
    }

    /// When the next list is due; nil when there is none.
    package func manifestDue() async throws(JournalError) -> WallTime? {
        try await read { try $0.time("SELECT min(next_at) FROM manifest") }
    }

    /// The list is written or no longer needed; the list of a later end is still due.
    package func manifestDone(_ order: ManifestOrder) async throws(JournalError) {
        try await change("DELETE FROM manifest WHERE batch_id = ? AND generation = ?", order.batch, order.generation)
    }

    /// The list could not be written; the next attempt is at `time`.
    package func manifestFailed(
        _ order: ManifestOrder, reason: String, until time: WallTime
    ) async throws(JournalError) {
        try await change(
            """
            UPDATE manifest SET attempts = attempts + 1, next_at = ?, reason = ?
            WHERE batch_id = ? AND generation = ?
            """, time, reason, order.batch, order.generation)
    }

    /// Whether a file outside `batch` has or had a key below `folder` at a destination.
    package func hasOthers(
        besides batch: Int64, below folder: String, at destination: String
    ) async throws(JournalError) -> Bool {
        try await read { database in
            // All keys that begin with "folder/": '0' follows '/'.
            try database.exists(
                """
                SELECT 1 FROM delivery CROSS JOIN file ON file.id = file_id
                WHERE destination = ?1 AND key > ?2 AND key < ?3 AND batch_id IS NOT ?4
                UNION ALL SELECT 1 FROM spent_key WHERE destination = ?1 AND key > ?2 AND key < ?3
                UNION ALL SELECT 1 FROM history_delivery CROSS JOIN history_file AS file ON file.id = file_id
                WHERE destination = (SELECT id FROM history_word WHERE word = ?1) AND key > ?2 AND key < ?3
                    AND batch_id IS NOT ?4
                LIMIT 1
                """, destination, folder + "/", folder + "0", batch)
        }
    }

    // MARK: - Batches for people

    /// The newest batches, newest first.
    package func batches(limit: Int) async throws(JournalError) -> [Batch] {
        try await read { database in
            try database.integers("SELECT id FROM batch ORDER BY id DESC LIMIT ?", limit)
                .map { try Self.batch($0, database) }
        }
    }

    /// A batch; without a number, the batch that ended last. nil when there is none.
    package func batch(_ id: Int64?) async throws(JournalError) -> Batch? {
        try await read { database in
            let found = try database.integer(
                id == nil
                    ? "SELECT id FROM batch WHERE ended_at IS NOT NULL AND ? IS NULL ORDER BY ended_at DESC, id DESC LIMIT 1"
                    : "SELECT id FROM batch WHERE id = ?", id)
            return try found.map { try Self.batch($0, database) }
        }
    }

    private static let page = 500

    /// The files of a batch in the order of their admission, its marker included. `isDamaged` marks files that are
    /// partly unreadable. Read in pages, so that a large unit holds up nobody else.
    package func jobs(ofBatch batch: Int64) async throws(JournalError) -> [Job] {
        var jobs: [Job] = []
        while true {
            let last = jobs.last?.file.id ?? 0
            let page = try await read { database in
                let files = try JournalTables.allCases.flatMap { tables in
                    try FileRow.all(
                        database, from: tables, "WHERE batch_id = ? AND id > ? ORDER BY id LIMIT \(Self.page)",
                        [batch, last], showing: true)
                }.sorted { $0.id < $1.id }
                return try files.prefix(Self.page).map { try Self.job($0, database, showing: true) }
            }
            jobs += page
            if page.count < Self.page { return jobs }
        }
    }
}
