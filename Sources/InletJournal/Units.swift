internal import GRDB
package import InletCore
package import SystemPackage

/// Files that belong together: a file with its companions, or a unit.
package struct Batch: Sendable, Equatable {
    package var id: Int64
    /// The main file's name, or the unit's folder.
    package var name: String
    /// nil for a file with its companions.
    package var unit: FilePath?
    package var root: FilePath
    package var route: String
    /// `pending` until it ends; then the worst of its files' states.
    package var state: FileState
    package var createdAt: WallTime
    /// nil while files are still collected; then nothing of it is sent.
    package var closedAt: WallTime?
    package var endedAt: WallTime?
    /// How often it has ended: `queue retry` takes an end back.
    package var generation: Int
    /// Files by state; a unit's own marker is not counted.
    package var counts: [FileState: Int]
    /// Of the unit, by its marker or its `.inlet.yaml`.
    package var labels: [String: String]

    package var isOpen: Bool { closedAt == nil }
}

extension Batch {
    static let columns = "id, name, unit, root, route, state, created_at, closed_at, ended_at, generation, labels"

    init(_ row: SQLRow, counts: [FileState: Int]) {
        id = row.integer(0)
        name = row.text(1) ?? ""
        unit = row.isNull(2) ? nil : row.path(2)
        root = row.path(3)
        route = row.text(4) ?? ""
        state = row.text(5).flatMap(FileState.init) ?? .failed
        createdAt = row.time(6)
        closedAt = row.optionalTime(7)
        endedAt = row.optionalTime(8)
        generation = row.int(9)
        self.counts = counts
        labels = row.labels(10)
    }
}

/// The role of a unit's own marker: it has no deliveries and ends as the other files of its batch did,
/// delivered where those were replaced or are gone.
let unitMarkerRole = "unit_marker"

extension Journal {
    /// The batch of a file, with what has become of it; nil for a file that stands for itself.
    package func batch(of file: Int64) async throws(JournalError) -> Batch? {
        try await read { database in
            try FileRow.one(file, database, showing: true)?.batchID.map { try Self.batch($0, database) }
        }
    }

    /// The open units below `root`.
    package func openUnits(_ root: FilePath) async throws(JournalError) -> [Batch] {
        try await read { database in
            try database.rows("SELECT \(Batch.columns) FROM batch WHERE root = ? AND closed_at IS NULL", root) {
                Batch($0, counts: [:])
            }
        }
    }

    /// Closes an open unit: all its deliveries are due at once, in one transaction.
    ///
    /// - Parameters:
    ///   - routes: those whose files of the folder are complete; each has a batch of its own.
    ///   - marker: the file that says so, in the first of the batches. It ends, and is disposed of, as that does.
    ///   - uptimes: the destinations' expiry clocks; the files' time to live begins now.
    ///   - closing: the destinations that are told when all has been sent.
    ///   - labels: for each of the unit's files, over its route's.
    /// - Returns: the batches that were open, ended already where no file has anything to wait for.
    package func closeUnit(
        _ unit: FilePath, root: FilePath, routes: [String], marker: FoundFile?, uptimes: [String: Int64],
        closing: [String] = [], labels: [String: String] = [:], at now: WallTime
    ) async throws(JournalError) -> [Batch] {
        try await commit { database in
            var marker = marker
            return try routes.compactMap { route in
                guard let id = try Self.openBatch(root, unit, route, database) else { return nil }
                try Self.label(id, labels, database)
                guard let batch = try Self.close(id, marker, uptimes, closing, now, database)
                else { return nil }
                marker = nil
                return batch
            }
        }
    }

    static func openBatch(_ root: FilePath, _ unit: FilePath, _ route: String, _ database: Database) throws -> Int64? {
        try database.integer(
            "SELECT id FROM batch WHERE root = ? AND unit = ? AND route = ? AND closed_at IS NULL", root, unit, route)
    }

    /// Closes the open units of roots that are no longer watched: nobody else would.
    /// - Returns: how many there were.
    package func closeUnits(
        exceptOf watch: [WatchSettings], uptimes: [String: Int64], closing: [String] = [], at now: WallTime
    ) async throws(JournalError) -> Int {
        try await commit { database in
            let open = try database.rows("SELECT id, root FROM batch INDEXED BY batch_open WHERE closed_at IS NULL") {
                (id: $0.integer(0), root: $0.path(1))
            }
            // Nobody closes a unit on a removable volume while that is away.
            let onVolume = "SELECT 1 FROM file INDEXED BY file_by_batch WHERE batch_id = ? AND volume IS NOT NULL"
            let left = try open.filter { unit in
                try !watch.contains { $0.covers(unit.root) } && !database.exists(onVolume, unit.id)
            }
            for unit in left { _ = try Self.close(unit.id, nil, uptimes, closing, now, database) }
            return left.count
        }
    }

    private static func close(
        _ id: Int64, _ marker: FoundFile?, _ uptimes: [String: Int64], _ closing: [String], _ now: WallTime,
        _ database: Database
    ) throws -> Batch? {
        try database.change("UPDATE batch SET closed_at = ? WHERE id = ?", now, id)
        // A rejected file, and a companion, may have another policy than what is sent.
        let first = "WHERE batch_id = ? ORDER BY state = 'rejected', role IS NOT NULL, id LIMIT 1"
        guard let file = try FileRow.all(database, first, [id]).first else {
            try database.change("DELETE FROM batch WHERE id = ?", id)
            return nil
        }
        for (destination, uptime) in uptimes {
            try database.change(
                """
                UPDATE delivery INDEXED BY delivery_by_file SET expires_at = ? + (
                    SELECT json_extract(CAST(policy AS TEXT), '$.retry.expire_ms') FROM file WHERE id = file_id)
                WHERE file_id IN (SELECT id FROM file WHERE batch_id = ?) AND destination = ?
                    AND state IN ('ready', 'parked') AND key IS NOT NULL AND after_id IS NULL
                """, uptime, id, destination)
        }
        try database.change(
            """
            UPDATE delivery INDEXED BY delivery_by_file SET next_at = ?
            WHERE file_id IN (SELECT id FROM file WHERE batch_id = ?) AND state IN ('ready', 'parked')
                AND next_at = ? AND after_id IS NULL
            """, now, id, never)
        if let marker {
            var new = FileRow(marker, route: file.route, policy: file.policy, at: now)
            (new.batchID, new.role) = (id, unitMarkerRole)
            if new.policy.onSuccess == .delete, marker.identity.size > 0 { new.policy.onSuccess = .archive }
            _ = try insert(new, database)
        }
        try insertClosings(of: id, to: closing, now, database)
        _ = try concludeBatch(id, now, database)
        return try batch(id, database)
    }

    // MARK: - In transactions of others

    /// The batch that a file to be admitted is put in; nil when it stands for itself.
    static func batch(
        for admission: FileAdmission, _ now: WallTime, _ database: Database
    ) throws -> (id: Int64, isOpen: Bool)? {
        let route = admission.plan?.route ?? admission.rejection?.route.name ?? ""
        let arrival = admission.arrival
        guard let unit = admission.unit else {
            if admission.companions.isEmpty { return nil }
            return (try newSet(of: arrival.path, arrival.root, route, now, database), false)
        }
        if let open = try openBatch(arrival.root, unit, route, database) { return (open, true) }
        try database.change(
            "INSERT INTO batch (name, state, created_at, root, unit, route) VALUES (?, 'pending', ?, ?, ?, ?)",
            unit.display, now, arrival.root, unit, route)
        return (database.lastInsertedRowID, true)
    }

    /// The batch that a file and its companions are in, made when it has none yet. What had ended goes on.
    static func set(of main: FileRow, _ now: WallTime, _ database: Database) throws -> (id: Int64, isOpen: Bool) {
        guard let id = main.batchID else {
            let id = try newSet(of: main.path, main.root, main.route ?? "", now, database)
            try database.change("UPDATE file SET batch_id = ? WHERE id = ?", id, main.id)
            return (id, false)
        }
        try reopenBatch(id, database)
        let closed = try database.integer("SELECT closed_at FROM batch WHERE id = ?", id)
        return (id, closed == nil)
    }

    private static func newSet(
        of main: FilePath, _ root: FilePath, _ route: String, _ now: WallTime, _ database: Database
    ) throws -> Int64 {
        try database.change(
            "INSERT INTO batch (name, state, created_at, closed_at, root, route) VALUES (?, 'pending', ?, ?, ?, ?)",
            main.display, now, now, root, route)
        return database.lastInsertedRowID
    }

    /// A file of an ended batch goes on.
    static func reopenBatch(_ id: Int64, _ database: Database) throws {
        try database.change(
            "UPDATE batch SET state = 'pending', ended_at = NULL WHERE id = ? AND ended_at IS NOT NULL", id)
    }

    /// Ends a closed batch when all its files are finished. Its marker comes last: it ends as the others did.
    /// - Returns: the batch when it ended now.
    static func concludeBatch(_ id: Int64, _ now: WallTime, _ database: Database) throws -> Batch? {
        // Asked first: a unit that is open would have all its files counted at the end of each.
        let isClosed = try database.exists(
            "SELECT 1 FROM batch WHERE id = ? AND closed_at IS NOT NULL AND ended_at IS NULL", id)
        guard isClosed else { return nil }
        let unfinished = "SELECT 1 FROM file INDEXED BY file_open_in_batch WHERE batch_id = ? AND finished_at IS NULL"
        let isOpen = try database.exists("\(unfinished) AND ifnull(role, '') <> ? LIMIT 1", id, unitMarkerRole)
        guard !isOpen else { return nil }
        let state = FileState.worst(try batch(id, database).counts.keys)
        // It has done its work where files are gone or were replaced: otherwise it would speak for the unit again.
        let markerState = [.gone, .superseded].contains(state) ? .delivered : state
        try database.change(
            """
            UPDATE file SET state = ?, ended_at = ? WHERE batch_id = ? AND role = ? AND state = 'pending'
            """, markerState, now, id, unitMarkerRole)
        guard try !database.exists("\(unfinished) LIMIT 1", id) else { return nil }
        try database.change(
            "UPDATE batch SET state = ?, ended_at = ?, generation = generation + 1 WHERE id = ?", state, now, id)
        let ended = try batch(id, database)
        try owe(manifestOf: ended, now, database)
        return ended
    }

    static func batch(_ id: Int64, _ database: Database) throws -> Batch {
        var counts: [FileState: Int] = [:]
        for tables in JournalTables.allCases {
            _ = try database.rows(
                """
                SELECT state, count(*) FROM \(tables.files) WHERE batch_id = ? AND ifnull(role, '') <> ? GROUP BY state
                """, id, unitMarkerRole
            ) { row in
                if let state = row.text(0).flatMap(FileState.init) { counts[state, default: 0] += row.int(1) }
            }
        }
        let batch = try database.row("SELECT \(Batch.columns) FROM batch WHERE id = ?", id) {
            Batch($0, counts: counts)
        }
        guard let batch else { throw UnusableRow.missing }
        return batch
    }

    /// Gives a unit labels, and its files those of them that no sidecar has given them.
    static func label(_ batch: Int64, _ labels: [String: String], _ database: Database) throws {
        if labels.isEmpty { return }
        let note = try JSON.encode(labels)
        try database.change("UPDATE batch SET labels = ? WHERE id = ?", note, batch)
        let files = try database.rows(
            "SELECT id, labels, policy FROM file INDEXED BY file_by_batch WHERE batch_id = ?", batch
        ) { row in (id: row.integer(0), labels: row.labels(1), policy: row.bytes(2)) }
        for file in files {
            guard let policy = FilePolicy.readable(file.policy) else { continue }
            let new = file.labels.merging(labels.filter { !policy.ownLabels.contains($0.key) }) { $1 }
            try database.change("UPDATE file SET labels = ? WHERE id = ?", try JSON.encode(new), file.id)
        }
    }
}

/// Closing deliveries: what tells a destination that all files of a unit have been sent to it. Each stands with a file of
/// the unit, which does not end before it.
extension Journal {
    /// Gives a unit that has just been closed a closing delivery to each of `destinations` that gets files of it.
    static func insertClosings(
        of batch: Int64, to destinations: [String], _ now: WallTime, _ database: Database
    ) throws {
        let unit = try database.row("SELECT name FROM batch WHERE id = ?", batch) { $0.text(0) ?? "" }
        guard let unit else { return }
        for destination in destinations {
            let first = try DeliveryRow.all(
                database,
                """
                WHERE id = (
                    SELECT delivery.id FROM file CROSS JOIN delivery ON file_id = file.id
                    WHERE batch_id = ? AND role IS NULL AND destination = ?
                        AND delivery.state IN ('ready', 'claimed', 'parked')
                    ORDER BY file.id LIMIT 1)
                """, batch, destination)
            guard let member = first.first else { continue }
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
        try database.change(
            """
            UPDATE delivery SET next_at = ?
            WHERE closes = (SELECT batch_id FROM file WHERE id = ?) AND destination = ?
                AND state IN ('ready', 'parked') AND next_at = \(never) AND NOT \(hasOpenMembers)
            """, now, file, destination) > 0
    }

    /// What was sent again is waited for again.
    static func holdClosings(of file: Int64, _ database: Database) throws {
        try database.change(
            """
            UPDATE delivery SET next_at = \(never), expires_at = NULL
            WHERE closes = (SELECT batch_id FROM file WHERE id = ?) AND state IN ('ready', 'parked')
                AND owner IS NULL AND \(hasOpenMembers)
            """, file)
    }

    /// Before what a file has open is cancelled: another file of the unit that is still on its way takes its closing
    /// deliveries. Where nothing else is open, they are what is cancelled.
    static func handOverClosings(of file: Int64, _ database: Database) throws {
        try database.change(
            """
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
            """, file)
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
        guard let id = file.batchID else { return nil }
        let unit = try database.row("SELECT name, unit FROM batch WHERE id = ? AND unit IS NOT NULL", id) {
            OrderBatch(id: id, name: $0.text(0) ?? "", folder: $0.path(1))
        }
        guard var batch = unit else { return nil }
        guard delivery.closes != nil else { return batch }
        batch.isClosing = true
        let states = try database.rows(
            """
            SELECT delivery.state = 'delivered', count(*), min(modified), max(modified)
            FROM file CROSS JOIN delivery ON file_id = file.id
            WHERE batch_id = ? AND role IS NULL AND destination = ? AND closes IS NULL
                AND delivery.state <> 'superseded'
            GROUP BY delivery.state
            """, id, delivery.destination
        ) { (isDelivered: $0.bool(0), files: $0.int(1), first: $0.integer(2), last: $0.integer(3)) }
        for row in states {
            if row.isDelivered { batch.files = row.files } else { batch.failed += row.files }
        }
        batch.firstCaptured = states.map(\.first).min().map { WallTime(nanoseconds: $0) }
        batch.lastCaptured = states.map(\.last).max().map { WallTime(nanoseconds: $0) }
        return batch
    }
}
