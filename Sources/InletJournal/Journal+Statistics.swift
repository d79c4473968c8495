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
    /// Where open deliveries are, by destination; those without any are left out. Kept by triggers, and only what is claimed is
    /// counted: a million that wait, or have ended, cost nothing.
    package func queueCounts() async throws(JournalError) -> [String: QueueCounts] {
        try await read { database in
            var counts: [String: QueueCounts] = [:]
            for (name, place, number) in try Self.tally(database) {
                counts[name, default: QueueCounts()].add(number, place)
            }
            for (name, count) in counts where count.waiting > 0 {
                counts[name]?.oldest = try Self.eldest(of: name, database)
            }
            for (name, count) in try Self.counts(of: .claimed, database) {
                counts[name, default: QueueCounts()].claimed = count
            }
            return counts
        }
    }

    /// How many deliveries to `destinations` wait.
    package func queueLength(of destinations: [String]) async throws(JournalError) -> Int {
        try await queueCounts().filter { destinations.contains($0.key) }.values.reduce(0) { $0 + $1.waiting }
    }

    /// How many open deliveries are where, without those that are claimed.
    static func tally(
        _ database: Database
    ) throws -> [(destination: String, place: QueuePlace, deliveries: Int)] {
        try database.rows("SELECT destination, place, deliveries FROM queue_tally WHERE deliveries > 0") { row in
            row.text(1).flatMap(QueuePlace.init).map { (row.text(0) ?? "", $0, Int(row.integer(2))) }
        }.compactMap(\.self)
    }

    /// When the file was admitted that has waited longest.
    private static func eldest(of destination: String, _ database: Database) throws -> WallTime? {
        try database.row(
            """
            SELECT admitted_at FROM file WHERE id = (
                SELECT file_id FROM delivery INDEXED BY delivery_eldest
                WHERE destination = ? AND \(isWaiting) ORDER BY delivery.id LIMIT 1)
            """, .text(destination)
        ) { WallTime(milliseconds: $0.integer(0)) }
    }

    /// The condition of the index `delivery_eldest`, word by word.
    private static let isWaiting = "state = 'ready' AND next_at < \(never) AND \(DeliveryRow.isNotBeingWorkedOn)"

    /// The files of deliveries that may go as soon as their destinations take them, oldest first.
    package func waitingFiles(limit: Int) async throws(JournalError) -> [Int64] {
        try await read { database in
            // What is held or parked, be it a million, is not walked past.
            let waiting = try Set(Self.tally(database).filter { $0.place.isWaiting }.map(\.destination)).flatMap {
                name in
                try database.rows(
                    """
                    SELECT file_id FROM delivery INDEXED BY delivery_eldest WHERE destination = ? AND \(Self.isWaiting)
                    ORDER BY delivery.id LIMIT ?
                    """, .text(name), .integer(Int64(limit))
                ) { $0.integer(0) }
            }
            let working = try database.rows(
                """
                SELECT file_id FROM delivery INDEXED BY delivery_waiting
                WHERE state = 'ready' AND waits > 0 AND code IS NULL AND next_at < \(Self.never) ORDER BY id LIMIT ?
                """, .integer(Int64(limit))
            ) { $0.integer(0) }
            return Array(Set(waiting + working).sorted().prefix(limit))
        }
    }
}

/// Where an open delivery is that nobody has claimed, as the journal's triggers count it.
enum QueuePlace: String {
    case parked
    /// Waits for another file, or for its unit.
    case held
    /// Was tried, and waits for its time.
    case retrying
    /// Its destination works on it.
    case working
    case fresh

    var isWaiting: Bool { self == .fresh || self == .retrying }
}

extension QueueCounts {
    fileprivate mutating func add(_ number: Int, _ place: QueuePlace) {
        switch place {
        case .parked: parked += number
        case .held: held += number
        case .working: working += number
        case .fresh: waiting += number
        case .retrying:
            waiting += number
            retrying += number
        }
    }
}
