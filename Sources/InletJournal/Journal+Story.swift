internal import Foundation
internal import GRDB
internal import InletCore

/// What the journal knows of one file beside its row and its deliveries.
extension Journal {
    /// The notes of what its unfinished deliveries have begun, by delivery. They hold secrets: not to be shown as they are.
    package func checkpoints(ofJob id: Int64) async throws(JournalError) -> [Int64: [String: [UInt8]]] {
        try await read { database in
            let notes = try database.rows(
                """
                SELECT delivery_id, name, value FROM checkpoint
                WHERE delivery_id IN (SELECT id FROM delivery WHERE file_id = ?)
                """, .integer(id)
            ) { ($0.integer(0), $0.text(1) ?? "", $0.bytes(2)) }
            return notes.reduce(into: [:]) { $0[$1.0, default: [:]][$1.1] = $1.2 }
        }
    }

    /// Its receipt's JSON; nil while it has not finished, and when it is in the history.
    package func receipt(ofJob id: Int64) async throws(JournalError) -> [UInt8]? {
        try await read { database in
            try Data.fetchOne(database, sql: "SELECT body FROM receipt WHERE file_id = ?", arguments: [id])
                .map(Array.init)
        }
    }
}
