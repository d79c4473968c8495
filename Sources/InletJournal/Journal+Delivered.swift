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
    /// proof cannot be read comes without it.
    ///
    /// - Returns: also the number to go on after; nil when there are no more.
    package func delivered(
        _ filter: DeliveredFilter, after last: Int64, limit: Int
    ) async throws(JournalError) -> (page: [Delivered], next: Int64?) {
        try await read { database in
            var conditions = ["delivery.id > ?", "delivery.state = 'delivered'"]
            var values: [SQLValue] = [.integer(last)]
            if !filter.jobs.isEmpty {
                conditions.append("file_id IN (\(filter.jobs.map(String.init).joined(separator: ", ")))")
            }
            if let since = filter.since {
                conditions.append("delivery.ended_at >= ?")
                values.append(.integer(since.milliseconds))
            }
            if let destination = filter.destination {
                conditions.append("destination = ?")
                values.append(.text(destination))
            }
            if let batch = filter.batch {
                conditions.append("batch_id = ?")
                values.append(.integer(batch))
            }
            let rows = try database.rows(
                """
                SELECT \(DeliveryRow.qualified), \(FileRow.qualified)
                FROM delivery JOIN file ON file.id = delivery.file_id
                WHERE \(conditions.joined(separator: " AND ")) ORDER BY delivery.id LIMIT \(limit)
                """, values
            ) { row in
                Delivered(
                    delivery: try DeliveryRow(row, showing: true),
                    file: try FileRow(row, from: DeliveryRow.width, showing: true))
            }
            return (rows, rows.count < limit ? nil : rows.last?.delivery.id)
        }
    }
}
