internal import GRDB
internal import InletCore

/// Files that come back from the history, because a person or a late companion goes on with them. They are then as they were,
/// under their numbers, and go there again in time.
extension Journal {
    /// Brings a file back, with its batch and with all that came after any of these under the same path.
    /// - Returns: whether it was in the history.
    @discardableResult
    static func revive(_ file: Int64, _ database: Database) throws -> Bool {
        let group = try together(with: file, database)
        if group.isEmpty { return false }
        let jobs = try group.sorted().map { try job(self.file($0, database), database) }
        for job in jobs { try HistoryRow(job, database).insertFileBack() }
        let deliveries = jobs.flatMap { job in job.deliveries.map { (HistoryRow(job, database), $0) } }
        // In the order in which they were made: who waits for another comes after it.
        for (row, delivery) in deliveries.sorted(by: { $0.1.id < $1.1.id }) { try row.insertBack(delivery) }
        return true
    }

    /// What comes back with a file, and the file; nothing where it is not in the history.
    private static func together(with file: Int64, _ database: Database) throws -> Set<Int64> {
        var (group, batches): (Set<Int64>, Set<Int64>) = ([], [])
        var waiting = [file]
        while let next = waiting.popLast() {
            if group.contains(next) { continue }
            let found = try database.row("SELECT batch_id FROM history_file WHERE id = ?", .integer(next)) {
                $0.optionalInteger(0)
            }
            guard let found else { continue }
            group.insert(next)
            waiting += try database.rows(
                """
                SELECT newer.id FROM history_file AS own CROSS JOIN history_file AS newer INDEXED BY history_by_path
                    ON newer.place = own.place AND newer.path = own.path AND newer.id > own.id
                WHERE own.id = ?
                """, .integer(next)
            ) { $0.integer(0) }
            guard let batch = found, batches.insert(batch).inserted else { continue }
            waiting += try database.rows("SELECT id FROM history_file WHERE batch_id = ?", .integer(batch)) {
                $0.integer(0)
            }
        }
        return group
    }

    /// Brings a file back of which something could be sent again, and what the history has of its batch. Without that it stays
    /// where it is.
    static func reviveUndelivered(_ file: Int64, _ database: Database) throws {
        let undelivered = try database.row(
            "SELECT 1 FROM history_as_delivery WHERE file_id = ? AND state <> 'delivered' LIMIT 1", .integer(file)
        ) { _ in true }
        if undelivered != nil { try revive(file, database) }
        let other = try database.row(
            "SELECT id FROM history_file WHERE batch_id = (SELECT batch_id FROM file WHERE id = ?) LIMIT 1",
            .integer(file)
        ) { $0.integer(0) }
        if let other { try revive(other, database) }
    }

    /// Brings the file of a delivery back.
    static func revive(fileOf delivery: Int64, _ database: Database) throws {
        let file = try database.row("SELECT file_id FROM history_delivery WHERE id = ?", .integer(delivery)) {
            $0.integer(0)
        }
        if let file { try revive(file, database) }
    }
}
