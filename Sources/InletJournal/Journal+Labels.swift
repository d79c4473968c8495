internal import GRDB
internal import InletCore

extension Journal {
    /// Gives a unit labels, and its files those of them that no sidecar has given them.
    static func label(_ batch: Int64, _ labels: [String: String], _ database: Database) throws {
        if labels.isEmpty { return }
        let note = try JournalJSON.encode(labels)
        try database.change("UPDATE batch SET labels = ? WHERE id = ?", .bytes(note), .integer(batch))
        let files = try database.rows(
            "SELECT id, labels, policy FROM file INDEXED BY file_by_batch WHERE batch_id = ?", .integer(batch)
        ) { row in (id: row.integer(0), labels: row.optionalBytes(1), policy: row.bytes(2)) }
        for file in files {
            // What cannot be read is said when the file's turn comes.
            guard let policy = try? PolicyNotes.shared.policy(file.policy) else { continue }
            let old: [String: String] = file.labels.flatMap { try? JournalJSON.decode($0) } ?? [:]
            let new = old.merging(labels.filter { !policy.ownLabels.contains($0.key) }) { $1 }
            try database.change(
                "UPDATE file SET labels = ? WHERE id = ?", .bytes(try JournalJSON.encode(new)), .integer(file.id))
        }
    }
}
