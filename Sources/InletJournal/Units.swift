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
    /// nil while the unit still collects files; nothing of it is sent until then.
    package var closedAt: WallTime?
    package var endedAt: WallTime?
    /// How often it has ended: `queue retry` reopens it.
    package var generation: Int
    /// Files by state, without a unit's own marker.
    package var counts: [FileState: Int]
    /// The unit's labels, from its marker or its `.inlet.yaml`.
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

/// The role of a unit's own marker. It has no deliveries and ends as the other files of its batch did; as delivered
/// where those are gone or were replaced.
let unitMarkerRole = "unit_marker"

extension Journal {
    /// The batch of a file, in its current state; nil for a file that belongs to no set.
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
    ///   - routes: those whose files in the folder are complete; each has its own batch.
    ///   - marker: the file that completes the unit, in the first of the batches. It ends, and is disposed of, with
    /// that batch.
    ///   - uptimes: the destinations' expiry clocks; the files' time to live begins now.
    ///   - closing: the destinations to inform once everything has been sent.
    ///   - labels: for each of the unit's files, overriding its route's.
    /// - Returns: the batches that were open; one whose files have nothing to wait for has already ended.
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

    /// Closes the open units of roots that are no longer watched, or are shares, since nothing else would.
    ///
    /// - Returns: their number.
    package func closeUnits(
        exceptOf watch: [WatchSettings], uptimes: [String: Int64], closing: [String] = [], at now: WallTime
    ) async throws(JournalError) -> Int {
        try await commit { database in
            let open = try database.rows("SELECT id, root FROM batch INDEXED BY batch_open WHERE closed_at IS NULL") {
                (id: $0.integer(0), root: $0.path(1))
            }
            // A unit on a removable volume stays open while the volume is away.
            let onVolume = "SELECT 1 FROM file INDEXED BY file_by_batch WHERE batch_id = ? AND volume IS NOT NULL"
            let left = try open.filter { unit in
                try !watch.contains { $0.place == nil && $0.covers(unit.root) } && !database.exists(onVolume, unit.id)
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
        // A rejected file, and a companion, may have another policy than sent files.
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

    /// The batch for a file to be admitted; nil for a file that belongs to no set.
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

    /// The batch of a file and its companions, created when it has none yet. An ended batch continues.
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

    /// A file of an ended batch continues.
    static func reopenBatch(_ id: Int64, _ database: Database) throws {
        try database.change(
            "UPDATE batch SET state = 'pending', ended_at = NULL WHERE id = ? AND ended_at IS NOT NULL", id)
    }

    /// Ends a closed batch when all its files are finished. Its marker comes last, and ends as the others did.
    /// - Returns: the batch if it ended now.
    static func concludeBatch(_ id: Int64, _ now: WallTime, _ database: Database) throws -> Batch? {
        // Checked first: an open unit would otherwise count all its files at the end of each.
        let isClosed = try database.exists(
            "SELECT 1 FROM batch WHERE id = ? AND closed_at IS NOT NULL AND ended_at IS NULL", id)
        guard isClosed else { return nil }
        let unfinished = "SELECT 1 FROM file INDEXED BY file_open_in_batch WHERE batch_id = ? AND finished_at IS NULL"
        let isOpen = try database.exists("\(unfinished) AND ifnull(role, '') <> ? LIMIT 1", id, unitMarkerRole)
        guard !isOpen else { return nil }
        let state = FileState.worst(try batch(id, database).counts.keys)
        // The marker is used up where files are gone or were replaced: otherwise it would complete the unit again.
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

    /// Gives a unit labels, and passes to its files those that no sidecar has set.
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

/// Closing deliveries report to a destination that all files of a unit have been sent to it. Each belongs to a file of
/// the unit, which does not end before it.
extension Journal {
    /// Gives a unit that has just closed a closing delivery to each of `destinations` that receives files of it.
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

    /// A delivery that is sent again is awaited again.
    static func holdClosings(of file: Int64, _ database: Database) throws {
        try database.change(
            """
            UPDATE delivery SET next_at = \(never), expires_at = NULL
            WHERE closes = (SELECT batch_id FROM file WHERE id = ?) AND state IN ('ready', 'parked')
                AND owner IS NULL AND \(hasOpenMembers)
            """, file)
    }

    /// Called before a file's open deliveries are cancelled: another file of the unit that is still being delivered
    /// takes over its closing deliveries. Where nothing else is open, they are cancelled too.
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

    /// For a closing delivery. Only unfinished files can be open, so a unit of thousands is not searched repeatedly.
    private static let hasOpenMembers = """
        EXISTS (
            SELECT 1 FROM file INDEXED BY file_open_in_batch CROSS JOIN delivery AS member ON member.file_id = file.id
            WHERE file.batch_id = delivery.closes AND file.finished_at IS NULL
                AND member.destination = delivery.destination AND member.closes IS NULL
                AND member.state IN ('ready', 'claimed', 'parked'))
        """

    /// The unit of a delivery's file, with its outcome where the delivery closes it.
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
