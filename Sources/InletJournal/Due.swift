internal import GRDB
package import InletCore
package import SystemPackage

/// A delivery that its destination is working on.
package struct WaitingDelivery: Sendable, Equatable {
    package var id: Int64
    package var file: Int64
    /// The full path of its file.
    package var path: FilePath
    package var size: Int64
    package var route: String
    package var destination: String
    /// The destination's description of its work.
    package var saying: String?
    /// The time of the next question.
    package var until: WallTime
    package var admittedAt: WallTime
}

/// The due deliveries that a claim may take, in their order.
extension Journal {
    /// Within a priority they are ordered by time; where a window is closed, a delivery is put back. Each priority has
    /// its own query, so deliveries that are not due yet in one do not delay the due ones of the next. A delivery
    /// cancelled and put back while its holder still runs keeps its owner until the holder lets go.
    static func due(
        _ room: ClaimCapacity, _ lane: Lane, _ priority: Priority, _ most: Int, _ now: WallTime, _ database: Database
    ) throws -> (claims: [Claim], damaged: [UnreadableDelivery]) {
        var damaged: [UnreadableDelivery] = []
        var postponed = 0
        while true {
            let found = try database.rows(
                """
                SELECT \(DeliveryRow.qualified), \(FileRow.qualified),
                    EXISTS (SELECT 1 FROM checkpoint WHERE delivery_id = delivery.id)
                FROM delivery INDEXED BY \(room.index) CROSS JOIN file ON file.id = delivery.file_id
                WHERE destination = ? AND lane = ? AND priority = ? AND delivery.state = 'ready' AND next_at <= ?
                    AND owner IS NULL \(room.condition)
                ORDER BY next_at, delivery.id LIMIT ?
                """, room.destination, lane, priority.rank, now, most
            ) { row -> (row: DeliveryRow, file: FileRow, hasNotes: Bool)? in
                do {
                    let hasNotes = row.integer(DeliveryRow.width + FileRow.width) != 0
                    return (try DeliveryRow(row), try FileRow(row, from: DeliveryRow.width), hasNotes)
                } catch {
                    let reason = "its row in the journal is damaged; the next start tries it again (\(error))"
                    damaged.append((row.integer(0), FileRow.fullPath(row, from: DeliveryRow.width), reason))
                    return nil
                }
            }.compactMap(\.self)
            let open = try found.filter {
                try !postpone($0.row, $0.file, uptime: room.uptime, now, database)
            }
            postponed += found.count - open.count
            // However many wait for their window, others keep their turn.
            if !open.isEmpty || found.isEmpty || !damaged.isEmpty || postponed >= postponedAtOnce {
                let claims = try open.map { row, file, hasNotes in
                    Claim(file: file, delivery: row, checkpoint: hasNotes ? try checkpoint(of: row.id, database) : [:])
                }
                return (claims, damaged)
            }
        }
    }
}

/// Time to live counts only while the route's window is open. While the clock stands, `expires_at` is the time left,
/// negated; otherwise it is the end on the destination's expiry clock.
///
/// This is noticed when a delivery is examined while its window is closed. One that waits behind busy workers all that
/// time has those hours counted.
extension Journal {
    /// The most that one transaction puts back before others have their turn.
    static let postponedAtOnce = 256

    /// Puts back a delivery that is due, or seems to have expired, until its route's window opens, with the time it has
    /// left. It was not claimed, so this is not an attempt.
    ///
    /// - Parameter uptime: the destination's expiry clock, where the caller knows it.
    /// - Returns: false for a delivery that may be claimed now, and for an expired one.
    static func postpone(
        _ row: DeliveryRow, _ file: FileRow, uptime: Int64?, _ now: WallTime, _ database: Database
    ) throws -> Bool {
        guard let window = try window(of: row, file, database), let opening = window.opening(at: now) else {
            return false
        }
        var standing = row.expiresAt
        if let expiry = row.expiresAt, expiry >= 0, let life = file.policy.retry.expire {
            let uptime = try clock(of: row.destination, uptime, database)
            let left = DeliveryWindow.timeLeft(
                of: life.milliseconds, until: expiry, at: uptime, closedFor: window.closedTime(until: now))
            guard left > 0 else { return false }
            standing = -left
        }
        try database.change(
            "UPDATE delivery SET next_at = ?, expires_at = ?, code = NULL, reason = ? WHERE id = ?",
            opening, standing, window.reason, row.id)
        return true
    }

    /// The window that a delivery waits for. nil where no more bytes are sent: the destination is working on it, it
    /// only registers, or it closes a unit.
    private static func window(of row: DeliveryRow, _ file: FileRow, _ database: Database) throws -> DeliveryWindow? {
        guard let window = file.policy.window, window.concerns(size: file.identity.size), row.waits == 0,
            row.closes == nil
        else { return nil }
        if let leader = row.afterID, try delivery(leader, database).fileID == row.fileID { return nil }
        return window
    }

    /// `expires_at` at admission of a delivery that sends bytes: the clock stands while its window is closed.
    static func firstExpiry(_ admission: FileAdmission, uptime: Int64, _ now: WallTime) -> Int64? {
        guard let plan = admission.plan, let life = plan.retry.expire?.milliseconds else { return nil }
        guard let window = plan.window, window.concerns(size: admission.arrival.identity.size),
            window.opening(at: now) != nil
        else { return uptime + life }
        return -life
    }

    /// Restarts the time to live of a delivery that waited for its window. For a claimed one: it may have waited for
    /// others of its content since.
    static func letIn(_ row: inout DeliveryRow, _ file: FileRow, uptime: Int64?, _ database: Database) throws {
        guard let window = file.policy.window else { return }
        let hasWaited = row.reason == window.reason && row.code == nil
        // A row without a time was put back by a version that forgot it.
        let left: Int64? =
            if let expiry = row.expiresAt {
                expiry < 0 ? -expiry : nil
            } else {
                try self.window(of: row, file, database) == nil ? nil : file.policy.retry.expire?.milliseconds
            }
        guard hasWaited || left != nil else { return }
        if hasWaited { row.reason = nil }
        if let left { row.expiresAt = try clock(of: row.destination, uptime, database) + left }
        try database.change(
            "UPDATE delivery SET reason = ?, expires_at = ? WHERE id = ?", row.reason, row.expiresAt, row.id)
    }

    /// The destinations' expiry clocks as written last, in milliseconds.
    package func uptimes() async throws(JournalError) -> [String: Int64] {
        try await read { database in
            Dictionary(
                uniqueKeysWithValues: try database.rows("SELECT name, uptime FROM destination") {
                    ($0.text(0) ?? "", $0.integer(1))
                })
        }
    }

    package static let expiredAtOnce = 256

    /// Writes a destination's expiry clock and expires overdue deliveries, except those that the destination is working
    /// on. One transaction takes at most `expiredAtOnce`, so nobody waits for long; the caller repeats it while it
    /// returns that many.
    /// - Returns: the files of the deliveries that expired.
    package func setUptime(
        _ destination: String, _ uptime: Int64, at now: WallTime
    ) async throws(JournalError) -> [Int64] {
        try await commit { database in
            try database.change(
                """
                INSERT INTO destination (name, uptime) VALUES (?, ?)
                ON CONFLICT(name) DO UPDATE SET uptime = max(uptime, excluded.uptime)
                """, destination, uptime)
            let over = try database.integers(
                """
                SELECT id FROM delivery WHERE destination = ? AND state = 'ready' AND expires_at BETWEEN 0 AND ?
                    AND \(DeliveryRow.isNotBeingWorkedOn) AND code IS NOT 'source_gone'
                LIMIT \(Self.expiredAtOnce)
                """, destination, uptime)
            return try over.compactMap { try Self.expire($0, uptime, now, database) }
        }
    }

    /// Ends an expired delivery, unless its time passed only while its window was closed.
    /// - Returns: its file.
    private static func expire(_ id: Int64, _ uptime: Int64, _ now: WallTime, _ database: Database) throws -> Int64? {
        let row = try delivery(id, database)
        let file: FileRow?
        do {
            file = try self.file(row.fileID, database)
        } catch  where !(error is DatabaseError) {
            // An unreadable row has no window that could be closed.
            file = nil
        }
        if let file, try postpone(row, file, uptime: uptime, now, database) { return nil }
        try expire(row, now, database)
        return row.fileID
    }

    /// The earliest expiry among the waiting deliveries of each of `destinations`, on its expiry clock in milliseconds.
    /// Deliveries that the destination works on, or that wait for their volume, do not expire.
    package func nextExpiries(of destinations: [String]) async throws(JournalError) -> [String: Int64] {
        try await read { database in
            try destinations.reduce(into: [:]) { expiries, destination in
                expiries[destination] = try database.integer(
                    """
                    SELECT expires_at FROM delivery
                    WHERE destination = ? AND state = 'ready' AND expires_at >= 0
                        AND \(DeliveryRow.isNotBeingWorkedOn) AND code IS NOT 'source_gone'
                    ORDER BY expires_at LIMIT 1
                    """, destination)
            }
        }
    }

    /// A destination's expiry clock; the value written last may be older than the caller's.
    private static func clock(of destination: String, _ known: Int64?, _ database: Database) throws -> Int64 {
        let written = try database.integer("SELECT uptime FROM destination WHERE name = ?", destination)
        return max(written ?? 0, known ?? 0)
    }

    /// Deliveries that their destinations are working on, oldest first.
    package func waiting(limit: Int) async throws(JournalError) -> [WaitingDelivery] {
        try await read { database in
            try database.rows(
                """
                SELECT delivery.id, file_id, root, path, size, route, destination, delivery.reason, next_at, admitted_at
                FROM delivery INDEXED BY delivery_waiting CROSS JOIN file ON file.id = file_id
                WHERE delivery.state = 'ready' AND waits > 0 AND delivery.code IS NULL
                ORDER BY delivery.id LIMIT ?
                """, limit
            ) { row in
                WaitingDelivery(
                    id: row.integer(0), file: row.integer(1), path: row.path(2).pushing(row.path(3)),
                    size: row.integer(4), route: row.text(5) ?? "", destination: row.text(6) ?? "", saying: row.text(7),
                    until: row.time(8), admittedAt: row.time(9))
            }
        }
    }

    /// Deliveries with notes to continue from, newest first.
    package func begunDeliveries(limit: Int) async throws(JournalError) -> [Int64] {
        try await read { database in
            try database.integers(
                "SELECT DISTINCT delivery_id FROM checkpoint ORDER BY delivery_id DESC LIMIT ?", limit)
        }
    }

    /// Puts a claimed delivery back because its destination is working on it. This is neither an attempt nor a failure,
    /// and from now on it occupies no worker.
    /// - Returns: whether it moved to another lane, whose loops do not know it yet.
    static func wait(_ row: DeliveryRow, until time: WallTime, saying: String?, _ database: Database) throws -> Bool {
        try database.change(
            """
            UPDATE delivery SET state = 'ready', next_at = ?, attempts = attempts - 1, waits = waits + 1, crashes = 0,
                code = NULL, reason = ?
            WHERE id = ?
            """, time, saying, row.id)
        return try database.change(
            "UPDATE delivery SET lane = ? WHERE id = ? AND lane <> ?", Lane.small, row.id, Lane.small) > 0
    }
}
