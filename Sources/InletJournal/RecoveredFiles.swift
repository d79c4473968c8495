internal import GRDB
package import InletCore

/// The undelivered deliveries of a file that a retry sends again.
package struct RetryScope: Sendable {
    /// nil = any.
    package var destination: String?
    package var states: [DeliveryState]

    package init(destination: String? = nil, states: [DeliveryState]? = nil) {
        (self.destination, self.states) = (destination, states ?? Journal.undone)
    }
}

/// Files that failed while a destination was away.
extension Journal {
    /// Files with a delivery to `destination` that failed at `time` or before, from one of `causes`: the next ones
    /// after the file `last`, in their order.
    package func failedFiles(
        at destination: String, from causes: [ErrorCode], by time: WallTime, after last: Int64, limit: Int
    ) async throws(JournalError) -> [Int64] {
        try await read { database in
            try database.integers(
                """
                SELECT DISTINCT file_id FROM delivery INDEXED BY delivery_failed
                WHERE destination = ? AND state = 'failed' AND file_id > ? AND ended_at <= ?
                    AND code IN (\(causes.literals)) ORDER BY file_id LIMIT ?
                """, destination, last, time, limit)
        }
    }
}
