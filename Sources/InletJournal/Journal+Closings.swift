internal import Foundation
internal import GRDB
internal import InletCore
internal import SystemPackage

/// Closing deliveries: what tells a destination that all files of a unit have been sent to it. Each stands with a file of
/// the unit, which does not end before it.
extension Journal {
    /// Gives a unit that has just been closed a closing delivery to each of `destinations` that gets files of it.
    static func insertClosings(
        of batch: Int64, to destinations: [String], _ now: WallTime, _ database: Database
    ) throws {
        guard let unit = try String.fetchOne(database, sql: "SELECT name FROM batch WHERE id = ?", arguments: [batch])
        else { return }
        for destination in destinations {
            let first = try Int64.fetchOne(
                database.cachedStatement(
                    sql: """
                        SELECT delivery.id FROM file CROSS JOIN delivery ON file_id = file.id
                        WHERE batch_id = ? AND role IS NULL AND destination = ?
                            AND delivery.state IN ('ready', 'claimed', 'parked')
                        ORDER BY file.id LIMIT 1
                        """), arguments: [batch, destination])
            guard let first else { continue }
            let member = try delivery(first, database)
            var closing = NewDelivery(file: member.fileID, destination: destination, nextAt: never)
            closing.key = try freeKey("\(unit)/session", destination, database)
            closing.fields = member.fields
            closing.priority = member.priority
            closing.closes = batch
            _ = try insert(closing, database)
        }
    }

    /// A closing delivery is due when no other delivery of its unit to the same destination is open.
    static func releaseClosing(
        of file: Int64, _ destination: String, _ now: WallTime, _ database: Database
    ) throws -> Bool {
        try database.run(
            sql: """
                UPDATE delivery SET next_at = ?
                WHERE closes = (SELECT batch_id FROM file WHERE id = ?) AND destination = ?
                    AND state IN ('ready', 'parked') AND next_at = \(never) AND NOT \(hasOpenMembers)
                """, arguments: [now.milliseconds, file, destination])
        return database.changesCount > 0
    }

    /// What was sent again is waited for again.
    static func holdClosings(of file: Int64, _ database: Database) throws {
        try database.run(
            sql: """
                UPDATE delivery SET next_at = \(never), expires_at = NULL
                WHERE closes = (SELECT batch_id FROM file WHERE id = ?) AND state IN ('ready', 'parked')
                    AND owner IS NULL AND \(hasOpenMembers)
                """, arguments: [file])
    }

    /// Before what a file has open is cancelled: another file of the unit that is still on its way takes its closing
    /// deliveries. Where nothing else is open, they are what is cancelled.
    static func handOverClosings(of file: Int64, _ database: Database) throws {
        try database.run(
            sql: """
                UPDATE delivery SET file_id = (
                    SELECT file.id FROM file INDEXED BY file_open_in_batch
                    WHERE batch_id = delivery.closes AND finished_at IS NULL AND role IS NULL AND state = 'pending'
                        AND file.id <> delivery.file_id LIMIT 1)
                WHERE file_id = ? AND closes IS NOT NULL AND state IN ('ready', 'parked') AND owner IS NULL
                    AND EXISTS (
                        SELECT 1 FROM file INDEXED BY file_open_in_batch
                        WHERE batch_id = delivery.closes AND finished_at IS NULL AND role IS NULL AND state = 'pending'
                            AND file.id <> delivery.file_id)
                    AND EXISTS (
                        SELECT 1 FROM delivery AS own WHERE own.file_id = delivery.file_id AND own.closes IS NULL
                            AND own.state IN ('ready', 'claimed', 'parked'))
                """, arguments: [file])
    }

    /// Of a closing delivery. Only what is not finished can be open, so that a unit of thousands is not searched again and
    /// again.
    private static let hasOpenMembers = """
        EXISTS (
            SELECT 1 FROM file INDEXED BY file_open_in_batch CROSS JOIN delivery AS member ON member.file_id = file.id
            WHERE file.batch_id = delivery.closes AND file.finished_at IS NULL
                AND member.destination = delivery.destination AND member.closes IS NULL
                AND member.state IN ('ready', 'claimed', 'parked'))
        """

    /// The unit that a delivery's file belongs to, with what has become of it where the delivery closes it.
    static func orderBatch(of delivery: DeliveryRow, in file: FileRow, _ database: Database) throws -> OrderBatch? {
        guard let id = file.batchID,
            let row = try Row.fetchOne(
                database.cachedStatement(sql: "SELECT name, unit FROM batch WHERE id = ?"), arguments: [id]),
            let folder = row["unit"] as Data?
        else { return nil }
        var batch = OrderBatch(id: id, name: row["name"], folder: FilePath(bytes: folder))
        guard delivery.closes != nil else { return batch }
        batch.role = .closing
        let states = try Row.fetchAll(
            database.cachedStatement(
                sql: """
                    SELECT delivery.state AS state, count(*) AS n, min(modified) AS first, max(modified) AS last
                    FROM file CROSS JOIN delivery ON file_id = file.id
                    WHERE batch_id = ? AND role IS NULL AND destination = ? AND closes IS NULL
                        AND delivery.state <> 'superseded'
                    GROUP BY delivery.state
                    """), arguments: [id, delivery.destination])
        for row in states {
            let files: Int = row["n"]
            if row["state"] == DeliveryState.delivered.rawValue { batch.files = files } else { batch.failed += files }
        }
        batch.firstCaptured = states.map { $0["first"] as Int64 }.min().map { WallTime(nanoseconds: $0) }
        batch.lastCaptured = states.map { $0["last"] as Int64 }.max().map { WallTime(nanoseconds: $0) }
        return batch
    }
}
