internal import GRDB
package import InletCore

/// How many deliveries of one destination are where.
package struct QueueCounts: Sendable, Equatable {
    /// That wait for a worker or for their time; those that wait for something else are not among them.
    package var waiting = 0
    /// Those of `waiting` that were tried before.
    package var retrying = 0
    /// That wait for another file, or for their unit.
    package var held = 0
    /// Whose destination is not configured.
    package var parked = 0
    /// That a worker has, or that are at hand for one.
    package var claimed = 0
    /// That the destination works on.
    package var working = 0
    /// The oldest of `waiting`.
    package var oldest: WallTime?

    package init() {}
}

extension Journal {
    /// Where open deliveries are, by destination; those without any are left out. Counted in indexes of what is open: what
    /// has ended costs nothing.
    package func queueCounts() async throws(JournalError) -> [String: QueueCounts] {
        try await read { database in
            var counts: [String: QueueCounts] = [:]
            try Self.countReady(&counts, database)
            for (name, count) in try Self.counts(of: .claimed, database) {
                counts[name, default: QueueCounts()].claimed = count
            }
            for (name, count) in try Self.counts(of: .parked, database) {
                counts[name, default: QueueCounts()].parked = count
            }
            return counts
        }
    }

    /// The same as far as a queue of up to `limit` goes: how many deliveries to `destinations` wait, and to which of them anything
    /// can expire. Asked again and again, it must not count a million rows.
    package func queueLength(
        of destinations: [String], atMost limit: Int
    ) async throws(JournalError) -> (waiting: Int, canExpire: Set<String>) {
        try await read { database in
            var (waiting, canExpire) = (0, Set<String>())
            for destination in destinations {
                for lane in Lane.allCases {
                    let (place, number) = (SQLValue.text(destination), SQLValue.integer(Int64(lane.rawValue)))
                    let (ready, isOpen) = try Self.countReady(place, number, atMost: limit - waiting, database)
                    waiting += ready
                    if isOpen { canExpire.insert(destination) }
                }
            }
            return (waiting, canExpire)
        }
    }

    private static func countReady(
        _ destination: SQLValue, _ lane: SQLValue, atMost limit: Int, _ database: Database
    ) throws -> (waiting: Int, isOpen: Bool) {
        let ready =
            "SELECT 1 FROM delivery INDEXED BY delivery_ready WHERE state = 'ready' AND destination = ? AND lane = ?"
            + " AND next_at < \(never)"
        let isOpen = try database.row(ready + " LIMIT 1", destination, lane) { _ in true } ?? false
        if !isOpen || limit <= 0 { return (0, isOpen) }
        let waiting = try database.row(
            "SELECT count(*) FROM (\(ready) AND \(DeliveryRow.isNotBeingWorkedOn) LIMIT ?)", destination, lane,
            .integer(Int64(limit))
        ) { Int($0.integer(0)) }
        return (waiting ?? 0, true)
    }

    private static func countReady(_ counts: inout [String: QueueCounts], _ database: Database) throws {
        let ready = try database.rows(
            """
            SELECT destination, sum(next_at < \(never)), sum(next_at >= \(never)), min(iif(next_at < \(never), id, NULL))
            FROM delivery INDEXED BY delivery_ready WHERE state = 'ready' GROUP BY destination
            """
        ) { ($0.text(0) ?? "", Int($0.integer(1)), Int($0.integer(2)), $0.optionalInteger(3)) }
        for (name, waiting, held, oldest) in ready {
            var count = counts[name] ?? QueueCounts()
            (count.waiting, count.held) = (waiting, held)
            if let oldest { count.oldest = try admission(of: oldest, database) }
            counts[name] = count
        }
        let retrying = try database.rows(
            """
            SELECT destination, count(*) FROM delivery INDEXED BY delivery_retrying
            WHERE state = 'ready' AND code IS NOT NULL AND next_at < \(never) GROUP BY destination
            """
        ) { ($0.text(0) ?? "", Int($0.integer(1))) }
        for (name, count) in retrying { counts[name]?.retrying = count }
        let working = try database.rows(
            "SELECT destination FROM delivery WHERE state = 'ready' AND waits > 0 AND code IS NULL AND next_at < \(never)"
        ) { $0.text(0) ?? "" }
        for name in working {
            counts[name]?.working += 1
            counts[name]?.waiting -= 1
        }
    }

    private static func admission(of delivery: Int64, _ database: Database) throws -> WallTime? {
        try database.row(
            "SELECT admitted_at FROM file WHERE id = (SELECT file_id FROM delivery WHERE id = ?)", .integer(delivery)
        ) { WallTime(milliseconds: $0.integer(0)) }
    }
}
