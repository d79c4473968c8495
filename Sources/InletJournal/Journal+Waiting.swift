internal import Foundation
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
            let rows = try Row.fetchAll(
                database.cachedStatement(
                    sql: """
                        SELECT delivery.id AS id, file_id, destination, delivery.reason AS saying, next_at, root, path,
                            size, route, admitted_at
                        FROM delivery INDEXED BY delivery_waiting CROSS JOIN file ON file.id = file_id
                        WHERE delivery.state = 'ready' AND waits > 0 AND delivery.code IS NULL
                        ORDER BY delivery.id LIMIT ?
                        """), arguments: [limit])
            return rows.map { row in
                WaitingDelivery(
                    id: row["id"], file: row["file_id"],
                    path: FilePath(bytes: row["root"] as Data).pushing(FilePath(bytes: row["path"] as Data)),
                    size: row["size"], route: row["route"] ?? "", destination: row["destination"],
                    saying: row["saying"], until: WallTime(milliseconds: row["next_at"]),
                    admittedAt: WallTime(milliseconds: row["admitted_at"]))
            }
        }
    }

    /// Puts a claimed delivery back because its destination works on it. That is no attempt, and no failure; and from now
    /// on it takes no worker.
    /// - Returns: whether it went to another lane, whose loops do not know of it yet.
    static func wait(_ row: DeliveryRow, until time: WallTime, saying: String?, _ database: Database) throws -> Bool {
        try database.run(
            sql: """
                UPDATE delivery SET state = 'ready', next_at = ?, attempts = attempts - 1, waits = waits + 1, code = NULL,
                    reason = ?
                WHERE id = ?
                """, arguments: [time.milliseconds, saying, row.id])
        try database.run(
            sql: "UPDATE delivery SET lane = ? WHERE id = ? AND lane <> ?",
            arguments: [Lane.small.rawValue, row.id, Lane.small.rawValue])
        return database.changesCount > 0
    }
}
