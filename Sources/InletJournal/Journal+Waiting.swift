internal import GRDB
package import InletCore
package import SystemPackage

/// A delivery whose destination works on it.
package struct WaitingDelivery: Sendable, Equatable {
    package var id: Int64
    package var file: Int64
    /// The whole path of its file.
    package var path: FilePath
    package var size: Int64
    package var route: String
    package var destination: String
    /// What the destination does, in its words.
    package var saying: String?
    /// When it is asked again.
    package var until: WallTime
    package var admittedAt: WallTime
}

extension Journal {
    /// The deliveries whose destinations work on them, oldest first.
    package func waiting(limit: Int) async throws(JournalError) -> [WaitingDelivery] {
        try await read { database in
            try database.rows(
                """
                SELECT delivery.id, file_id, root, path, size, route, destination, delivery.reason, next_at, admitted_at
                FROM delivery INDEXED BY delivery_waiting CROSS JOIN file ON file.id = file_id
                WHERE delivery.state = 'ready' AND waits > 0 AND delivery.code IS NULL
                ORDER BY delivery.id LIMIT ?
                """, .integer(Int64(limit))
            ) { row in
                WaitingDelivery(
                    id: row.integer(0), file: row.integer(1),
                    path: FilePath(bytes: row.bytes(2)).pushing(FilePath(bytes: row.bytes(3))), size: row.integer(4),
                    route: row.text(5) ?? "", destination: row.text(6) ?? "", saying: row.text(7),
                    until: WallTime(milliseconds: row.integer(8)), admittedAt: WallTime(milliseconds: row.integer(9)))
            }
        }
    }

    /// Deliveries that have notes to go on from, newest first.
    package func begunDeliveries(limit: Int) async throws(JournalError) -> [Int64] {
        try await read { database in
            try database.rows(
                "SELECT DISTINCT delivery_id FROM checkpoint ORDER BY delivery_id DESC LIMIT ?", .integer(Int64(limit))
            ) { $0.integer(0) }
        }
    }

    /// Puts a claimed delivery back because its destination works on it. That is no attempt, and no failure; and from now
    /// on it takes no worker.
    /// - Returns: whether it went to another lane, whose loops do not know of it yet.
    static func wait(_ row: DeliveryRow, until time: WallTime, saying: String?, _ database: Database) throws -> Bool {
        try database.change(
            """
            UPDATE delivery SET state = 'ready', next_at = ?, attempts = attempts - 1, waits = waits + 1, crashes = 0,
                code = NULL, reason = ?
            WHERE id = ?
            """, .integer(time.milliseconds), SQLValue(saying), .integer(row.id))
        try database.run(
            sql: "UPDATE delivery SET lane = ? WHERE id = ? AND lane <> ?",
            arguments: [Lane.small.rawValue, row.id, Lane.small.rawValue])
        return database.changesCount > 0
    }
}
