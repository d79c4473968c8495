internal import GRDB
internal import InletCore

/// The delivery that most are: the only one of a file that belongs to nothing else, and it arrived. What `settle` otherwise
/// asks and writes in fifteen statements is then known after one, and written in three: thousands of small files a second
/// end here.
extension Journal {
    /// Settles a plain delivery with a proof as `settle` would, to the last column; nil for every other, which is left as
    /// it is.
    static func settlePlain(
        _ delivery: Int64, _ proof: Proof, _ ending: EndingRule?, _ now: WallTime, _ database: Database
    ) throws -> SettledFile? {
        guard proof.sameAs == nil, let plain = try plain(delivery, database) else { return nil }
        var (row, file) = (plain.delivery, plain.file)
        let note = proof.note
        (row.state, row.code, row.reason, row.proof, row.endedAt) = (.delivered, nil, nil, proof, now)
        try database.change(
            """
            UPDATE delivery SET state = 'delivered', code = NULL, reason = NULL, proof = ?, ended_at = ?, owner = NULL,
                until = NULL
            WHERE id = ?
            """, .bytes(note), .integer(now.milliseconds), .integer(delivery))
        if plain.hasNotes {
            try database.change("DELETE FROM checkpoint WHERE delivery_id = ?", .integer(delivery))
            try database.change("DELETE FROM leftover WHERE delivery_id = ?", .integer(delivery))
        }
        (file.state, file.code, file.reason, file.endedAt) = (.delivered, nil, nil, now)
        file.content = file.content ?? proof.content
        let end = ending?(Job(file: file, deliveries: [row]))
        try database.change(
            """
            UPDATE file SET state = 'delivered', code = NULL, reason = NULL, ended_at = ?, content = ?,
                finished_at = ?, disposition = ifnull(?, disposition)
            WHERE id = ?
            """,
            .integer(now.milliseconds), SQLValue(file.content?.note),
            end == nil ? .null : .integer(now.milliseconds), SQLValue(end?.disposition), .integer(file.id))
        guard let end else { return SettledFile(state: .delivered, hasReleased: false, finish: nil) }
        try insertReceipt(of: file, end.receipt, now, database)
        return SettledFile(
            state: .delivered, hasReleased: false, finish: Finish(disposition: end.disposition, endedBatch: nil))
    }

    /// The delivery and its file, if it is claimed and nothing else hangs on either: no other delivery, no batch, no
    /// contents to remember, nothing that the finisher has begun.
    private static func plain(
        _ delivery: Int64, _ database: Database
    ) throws -> (delivery: DeliveryRow, file: FileRow, hasNotes: Bool)? {
        try database.row(
            """
            SELECT \(DeliveryRow.qualified), \(FileRow.qualified),
                EXISTS (SELECT 1 FROM checkpoint WHERE delivery_id = ?1)
                    OR EXISTS (SELECT 1 FROM leftover WHERE delivery_id = ?1)
            FROM delivery CROSS JOIN file ON file.id = delivery.file_id
            WHERE delivery.id = ?1 AND delivery.state = 'claimed' AND after_id IS NULL AND closes IS NULL
                AND file.state = 'pending' AND finished_at IS NULL AND intent IS NULL AND batch_id IS NULL
                AND digests IS NULL
                AND NOT EXISTS (SELECT 1 FROM delivery AS other WHERE other.file_id = file.id AND other.id <> ?1)
                AND NOT EXISTS (SELECT 1 FROM delivery AS follower WHERE follower.after_id = ?1)
            """, .integer(delivery)
        ) { row in
            let hasNotes = row.integer(DeliveryRow.width + FileRow.width) != 0
            return (delivery: try DeliveryRow(row), file: try FileRow(row, from: DeliveryRow.width), hasNotes: hasNotes)
        }.flatMap { $0.file.policy.dedupe == .off ? $0 : nil }
    }
}
