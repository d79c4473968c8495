internal import GRDB
internal import InletCore

/// Files that come back from the history, because a person or a late companion goes on with them. They are then as they were,
/// under their numbers, and go there again in time.
extension Journal {
    /// Bounds how long others wait for one transaction that brings files back.
    static let revivedAtOnce = 256

    /// Brings back what an action needs of the history, if that is much: so many files in a transaction, with turns for others
    /// in between. What is left for the action's own is less. A process that dies meanwhile leaves some files back and some
    /// not, as it does on their way to the history.
    ///
    /// - Parameter wanted: the files that the action brings back.
    func reviveAhead(_ wanted: @escaping @Sendable (Database) throws -> [Int64]) async throws(JournalError) {
        var isMore = true
        while isMore {
            isMore = try await commit { try Self.revivePart(of: wanted($0), $0) }
        }
    }

    /// - Returns: whether there may be more to bring back; nothing was where one transaction can bring all of it.
    static func revivePart(of files: [Int64], _ database: Database) throws -> Bool {
        var revival = Revival(database, most: revivedAtOnce)
        for file in files where !revival.isFull { try revival.add(file) }
        if revival.isFull { try bringBack(revival.files, database) }
        return revival.isFull
    }

    /// Brings a file back, with all that comes back with it (`Revival`).
    /// - Returns: whether it was in the history.
    @discardableResult
    static func revive(_ file: Int64, _ database: Database) throws -> Bool {
        var revival = Revival(database)
        try revival.add(file)
        try bringBack(revival.files, database)
        return !revival.files.isEmpty
    }

    private static func bringBack(_ files: [Int64], _ database: Database) throws {
        let jobs = try files.sorted().map { try job(self.file($0, database), database) }
        for job in jobs { try HistoryRow(job, database).insertFileBack() }
        let deliveries = jobs.flatMap { job in job.deliveries.map { (HistoryRow(job, database), $0) } }
        // In the order in which they were made: who waits for another comes after it.
        for (row, delivery) in deliveries.sorted(by: { $0.1.id < $1.1.id }) { try row.insertBack(delivery) }
    }

    /// Brings a file back of which something could be sent again, and what the history has of its batch. Without that it stays
    /// where it is.
    static func reviveUndelivered(_ file: Int64, _ database: Database) throws {
        for found in try undelivered(file, database) { try revive(found, database) }
    }

    /// Of the history: the file, if something of it could be sent again; or one of its batch, if it is back itself.
    static func undelivered(_ file: Int64, _ database: Database) throws -> [Int64] {
        let undelivered = try database.row(
            "SELECT 1 FROM history_as_delivery WHERE file_id = ? AND state <> 'delivered' LIMIT 1", .integer(file)
        ) { _ in file }
        return try [undelivered, restOfBatch(of: file, database)].compactMap(\.self)
    }

    /// A file in the history whose batch is that of one which is not there; nil when there is none.
    static func restOfBatch(of file: Int64, _ database: Database) throws -> Int64? {
        try database.row(
            "SELECT id FROM history_file WHERE batch_id = (SELECT batch_id FROM file WHERE id = ?) LIMIT 1",
            .integer(file)
        ) { $0.integer(0) }
    }

    /// Brings the file of a delivery back.
    static func revive(fileOf delivery: Int64, _ database: Database) throws {
        if let file = try fileInHistory(of: delivery, database) { try revive(file, database) }
    }

    static func fileInHistory(of delivery: Int64, _ database: Database) throws -> Int64? {
        try database.row("SELECT file_id FROM history_delivery WHERE id = ?", .integer(delivery)) { $0.integer(0) }
    }
}
