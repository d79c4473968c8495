internal import GRDB
package import InletCore

/// Which deliveries that have arrived a query is about; what is not set allows all.
package struct DeliveredFilter: Sendable, Equatable {
    /// Numbers of files; empty = all.
    package var jobs: [Int64]
    /// Only what arrived then or later.
    package var since: WallTime?
    package var destination: String?
    package var batch: Int64?

    package init(jobs: [Int64] = [], since: WallTime? = nil, destination: String? = nil, batch: Int64? = nil) {
        self.jobs = jobs
        self.since = since
        self.destination = destination
        self.batch = batch
    }
}

/// A delivery that has arrived, with what is known of its file.
package struct Delivered: Sendable, Equatable {
    package var delivery: DeliveryRow
    package var file: FileRow
}

extension Journal {
    /// Deliveries with their proofs, in the order of their numbers: the next `limit` after the one called `last`. One whose
    /// proof cannot be read comes without it. One question looks at `stretch` numbers at most, so that a long history keeps
    /// nobody from the journal: a page may be empty, and others follow.
    ///
    /// - Returns: also the number to go on after; nil when there are no more.
    package func delivered(
        _ filter: DeliveredFilter, after last: Int64, limit: Int
    ) async throws(JournalError) -> (page: [Delivered], next: Int64?) {
        try await read { database in
            let (conditions, values) = filter.question(after: last)
            let found = try Shelf.allCases.flatMap { shelf in
                try database.rows(
                    """
                    SELECT \(DeliveryRow.qualified), \(FileRow.qualified)
                    FROM \(shelf.deliveries) JOIN \(shelf.files) ON file.id = delivery.file_id
                    WHERE \(conditions.joined(separator: " AND ")) ORDER BY delivery.id LIMIT \(limit)
                    """, values
                ) { row in
                    Delivered(
                        delivery: try DeliveryRow(row, showing: true),
                        file: try FileRow(row, from: DeliveryRow.width, showing: true))
                }
            }
            let rows = Array(found.sorted { $0.delivery.id < $1.delivery.id }.prefix(limit))
            if rows.count == limit { return (rows, rows.last?.delivery.id) }
            let end = try Self.lastDelivery(database)
            let isMore = filter.isAnywhere && last + Self.stretch < end
            return (rows, isMore ? last + Self.stretch : nil)
        }
    }

    private static func lastDelivery(_ database: Database) throws -> Int64 {
        try database.row(
            "SELECT max(ifnull((SELECT max(id) FROM delivery), 0), ifnull((SELECT max(id) FROM history_delivery), 0))"
        ) { $0.integer(0) } ?? 0
    }
}

extension DeliveredFilter {
    /// Whether nothing it says leads to few rows by an index.
    fileprivate var isAnywhere: Bool { jobs.isEmpty && batch == nil }

    /// What must hold of a delivery and its file, as SQL.
    fileprivate func question(after last: Int64) -> (conditions: [String], values: [SQLValue]) {
        var conditions = ["delivery.id > ?", "delivery.state = 'delivered'"]
        var values: [SQLValue] = [.integer(last)]
        func add(_ condition: String, _ value: SQLValue) {
            conditions.append(condition)
            values.append(value)
        }
        if isAnywhere { add("delivery.id <= ?", .integer(last + Journal.stretch)) }
        if !jobs.isEmpty { conditions.append("file_id IN (\(jobs.map(String.init).joined(separator: ", ")))") }
        if let since { add("delivery.ended_at >= ?", .integer(since.milliseconds)) }
        if let destination { add("destination = ?", .text(destination)) }
        if let batch { add("batch_id = ?", .integer(batch)) }
        return (conditions, values)
    }
}
