internal import Foundation
internal import GRDB
package import InletCore

/// Free places of one destination.
package struct ClaimRoom: Sendable {
    package var destination: String
    /// Deliveries that may run at once, by lane.
    package var limits: [Lane: Int]

    package init(destination: String, limits: [Lane: Int]) {
        self.destination = destination
        self.limits = limits
    }
}

/// A delivery that its holder works on, alone. It must be settled: `Journal.withClaim` does so on every path.
package struct Claim: ~Copyable, Sendable {
    package let file: FileRow
    package let delivery: DeliveryRow
    /// What earlier attempts left behind.
    package let checkpoint: [String: [UInt8]]

    init(file: FileRow, delivery: DeliveryRow, checkpoint: [String: [UInt8]]) {
        self.file = file
        self.delivery = delivery
        self.checkpoint = checkpoint
    }
}

/// How a claim ends.
package enum Settlement: Sendable {
    /// Durable point 2.
    case delivered(Proof)
    /// Back to the queue until `at`. `countsAttempt` is false for outages, credentials and our own stopping.
    case again(at: WallTime, countsAttempt: Bool, code: ErrorCode?, reason: String?)
    /// Back to the queue until `until`, because the destination works on it; `saying` is what it does.
    case waiting(until: WallTime, saying: String?)
    /// The end of this delivery without proof. A superseded one gives its key back once nothing of it is left.
    case ended(DeliveryState, code: ErrorCode, reason: String)
}

/// What settling did to the file.
package struct SettledFile: Sendable {
    /// `pending` while other deliveries of the file go on.
    package var state: FileState
    /// Deliveries that waited for this one are due now, in whatever lane.
    package var hasReleased: Bool
    package var isFinal: Bool { state != .pending }
}

extension Journal {
    /// Claims the delivery that has waited longest among those due in `lane`, and hands it to `body`.
    ///
    /// The attempt is written before `body` runs. If `body` throws, the claim goes back to the queue uncounted.
    /// - Returns: nil when nothing is due within the given room.
    package func withClaim<Result: Sendable>(
        _ lane: Lane, rooms: [ClaimRoom], owner: String, clock: @Sendable () -> WallTime,
        _ body: (borrowing Claim) async throws -> (Settlement, Result)
    ) async throws -> (SettledFile, Result)? {
        guard let found = try await claim(lane, rooms, owner, clock()) else { return nil }
        let claim = Claim(file: found.file, delivery: found.delivery, checkpoint: found.checkpoint)
        let settlement: Settlement
        let result: Result
        do {
            (settlement, result) = try await body(claim)
        } catch {
            _ = try? await settlePersistently(
                found.delivery.id, .again(at: clock(), countsAttempt: false, code: nil, reason: nil), clock)
            throw error
        }
        return (try await settlePersistently(found.delivery.id, settlement, clock), result)
    }

    /// A proof must not be lost to a full or failing disk: it is written as soon as that can be done, because nothing else
    /// will ever settle this claim. A cancelled task tries once more and leaves the claim to the next start.
    private func settlePersistently(
        _ delivery: Int64, _ settlement: Settlement, _ clock: @Sendable () -> WallTime
    ) async throws -> SettledFile {
        while true {
            do throws(JournalError) {
                return try await settle(delivery, settlement, at: clock())
            } catch {
                guard !Task.isCancelled else { throw error }
            }
            try? await Task.sleep(for: .seconds(1))
        }
    }

    private typealias Claimed = (file: FileRow, delivery: DeliveryRow, checkpoint: [String: [UInt8]])

    private func claim(
        _ lane: Lane, _ rooms: [ClaimRoom], _ owner: String, _ now: WallTime
    ) async throws(JournalError) -> Claimed? {
        // A transaction that changes nothing writes nothing: an idle agent leaves the disk alone.
        try await commit { database in
            guard let id = try Self.candidate(lane, rooms, now, database) else { return nil }
            try database.cachedStatement(
                sql: """
                    UPDATE delivery SET state = 'claimed', owner = ?, until = ?, attempts = attempts + 1 WHERE id = ?
                    """
            ).execute(arguments: [owner, (now + .seconds(3600)).milliseconds, id])
            let delivery = try Self.delivery(id, database)
            return (
                try Self.file(delivery.fileID, database), delivery, try Self.checkpoint(of: id, database)
            )
        }
    }

    /// The due delivery with the earliest time, of the destinations that have room. One that was cancelled and put back
    /// while its holder still runs has an owner until that one has let go.
    private static func candidate(
        _ lane: Lane, _ rooms: [ClaimRoom], _ now: WallTime, _ database: Database
    ) throws -> Int64? {
        var best: (time: Int64, id: Int64)?
        let running = try database.cachedStatement(sql: runningSQL)
        let due = try database.cachedStatement(
            sql: """
                SELECT next_at, id FROM delivery
                WHERE destination = ? AND lane = ? AND state = 'ready' AND next_at <= ? AND owner IS NULL
                ORDER BY next_at, id LIMIT 1
                """)
        for room in rooms {
            let place: StatementArguments = [room.destination, lane.rawValue]
            guard try Int.fetchOne(running, arguments: place) ?? 0 < room.limits[lane] ?? 0,
                let row = try Row.fetchOne(due, arguments: place + [now.milliseconds])
            else { continue }
            let found = (time: row["next_at"] as Int64, id: row["id"] as Int64)
            if let known = best, known < found { continue }
            best = found
        }
        return best?.id
    }

    /// When the next delivery in `lane` is due that `rooms` have a place for; nil when none waits for its time or all places
    /// are taken.
    package func nextDue(_ lane: Lane, rooms: [ClaimRoom]) async throws(JournalError) -> WallTime? {
        try await read { database in
            let running = try database.cachedStatement(sql: Self.runningSQL)
            let next = try database.cachedStatement(
                sql: """
                    SELECT min(next_at) FROM delivery
                    WHERE destination = ? AND lane = ? AND state = 'ready' AND owner IS NULL AND next_at < \(Self.never)
                    """)
            let times = try rooms.compactMap { room -> Int64? in
                let place: StatementArguments = [room.destination, lane.rawValue]
                guard try Int.fetchOne(running, arguments: place) ?? 0 < room.limits[lane] ?? 0 else { return nil }
                return try Int64.fetchOne(next, arguments: place)
            }
            return times.min().map { WallTime(milliseconds: $0) }
        }
    }

    private static let runningSQL =
        "SELECT count(*) FROM delivery WHERE destination = ? AND lane = ? AND state = 'claimed'"

    /// Adds to what an attempt leaves for the next one; durable when it returns.
    package func checkpoint(_ delivery: Int64, _ entries: [String: [UInt8]]) async throws(JournalError) {
        try await commit { try Self.checkpoint(delivery, entries, $0) }
    }

    private static func checkpoint(_ delivery: Int64, _ entries: [String: [UInt8]], _ database: Database) throws {
        let statement = try database.cachedStatement(sql: "INSERT OR REPLACE INTO checkpoint VALUES (?, ?, ?)")
        for (name, value) in entries { try statement.execute(arguments: [delivery, name, Data(value)]) }
        try database.run(sql: "UPDATE delivery SET interrupted = 0 WHERE id = ?", arguments: [delivery])
        // Cancelled meanwhile: what the attempt has just made is left over too.
        try database.run(
            sql: """
                INSERT OR IGNORE INTO leftover (delivery_id, next_at)
                SELECT id, ended_at FROM delivery WHERE id = ? AND state = 'cancelled'
                """, arguments: [delivery])
    }

    /// Forgets what attempts left and remembers `entries`, in one transaction: no crash comes between.
    package func replaceCheckpoint(_ delivery: Int64, _ entries: [String: [UInt8]]) async throws(JournalError) {
        try await commit { database in
            try database.run(sql: "DELETE FROM checkpoint WHERE delivery_id = ?", arguments: [delivery])
            if !entries.isEmpty { try Self.checkpoint(delivery, entries, database) }
        }
    }

    static func checkpoint(of delivery: Int64, _ database: Database) throws -> [String: [UInt8]] {
        let rows = try Row.fetchAll(
            database.cachedStatement(sql: "SELECT name, value FROM checkpoint WHERE delivery_id = ?"),
            arguments: [delivery])
        return Dictionary(uniqueKeysWithValues: rows.map { ($0["name"], Array($0["value"] as Data)) })
    }

    static func delivery(_ id: Int64, _ database: Database) throws -> DeliveryRow {
        try DeliveryRow(
            row: Row.find(
                database.cachedStatement(sql: "SELECT \(DeliveryRow.columns) FROM delivery WHERE id = ?"), [id]))
    }

    static func file(_ id: Int64, _ database: Database) throws -> FileRow {
        try FileRow(
            row: Row.find(
                database.cachedStatement(sql: "SELECT \(FileRow.columns) FROM file WHERE id = ?"), [id]))
    }
}

extension Row {
    /// The one row of `statement`; throws `RowNotFound` rather than inventing one.
    static func find(_ statement: Statement, _ arguments: StatementArguments) throws -> Row {
        guard let row = try fetchOne(statement, arguments: arguments) else { throw RowNotFound() }
        return row
    }
}

/// The row was removed meanwhile (`queue forget`).
struct RowNotFound: Error, CustomStringConvertible {
    var description: String { "no such file or delivery in the journal" }
}
