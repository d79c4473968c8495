internal import Foundation
internal import GRDB
package import InletCore

/// Free places of one destination.
package struct ClaimRoom: Sendable {
    package var destination: String
    /// Deliveries that may run at once, by lane.
    package var limits: [Lane: Int]
    /// Only for deliveries that the destination works on: nothing that begins anew there.
    package var isForBegunOnly: Bool
    /// The destination's expiry clock in milliseconds; nil = as it was written last.
    package var uptime: Int64?

    package init(
        destination: String, limits: [Lane: Int], isForBegunOnly: Bool = false, uptime: Int64? = nil
    ) {
        self.destination = destination
        self.limits = limits
        self.uptime = uptime
        self.isForBegunOnly = isForBegunOnly
    }

    /// The index that holds what the room is for: few have been begun, however many wait.
    var index: String { isForBegunOnly ? "delivery_waiting" : "delivery_ready" }

    /// What a delivery must meet besides being due, as SQL; the same as `DeliveryRow.hasBegun`.
    var condition: String {
        isForBegunOnly ? "AND waits > 0 AND delivery.code IS NOT '\(ErrorCode.outOfCredits.rawValue)'" : ""
    }
}

/// A delivery that its holder works on, alone. It must be settled: `Journal.withClaim` does so on every path, and who takes
/// claims from `exchange` gives every one of them back to it as an `EndedClaim`.
package final class Claim: Sendable {
    package let file: FileRow
    package let delivery: DeliveryRow
    /// What earlier attempts left behind.
    package let checkpoint: [String: [UInt8]]
    /// Set when the destination has the content already and the route wants it once: its link is the proof, nothing is
    /// sent.
    package let original: Original?

    init(file: FileRow, delivery: DeliveryRow, checkpoint: [String: [UInt8]], original: Original? = nil) {
        self.file = file
        self.delivery = delivery
        self.checkpoint = checkpoint
        self.original = original
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
    /// The end of a delivery that was never begun: it waited for longer than it may.
    case expired

    static let tooLate = "not delivered within its time (retry.expire); 'inlet queue retry' sends it again"
}

/// What settling did to the file.
package struct SettledFile: Sendable {
    /// `pending` while other deliveries of the file go on.
    package var state: FileState
    /// Deliveries that waited for this one are due now, in whatever lane.
    package var hasReleased: Bool
    /// Set when the file was finished in the same transaction, because nothing was to be done with its source.
    package var finish: Finish?
    package var isFinal: Bool { state != .pending }
}

/// How a file is finished whose source stays as it is: what the journal says became of it, and its receipt's JSON.
package struct Ending: Sendable {
    package var disposition: String
    package var receipt: [UInt8]

    package init(disposition: String, receipt: [UInt8]) {
        self.disposition = disposition
        self.receipt = receipt
    }
}

/// Decides of a file whose deliveries have ended, in the transaction that ends them. nil = the finisher must see to its source.
package typealias EndingRule = @Sendable (Job) -> Ending?

extension Journal {
    /// Claims the delivery that has waited longest among those of the highest priority that are due in `lane`, and hands it to
    /// `body`.
    ///
    /// The attempt is written before `body` runs. If `body` throws, the claim goes back to the queue uncounted.
    /// - Parameters:
    ///   - damaged: told of deliveries that were due and cannot be read.
    ///   - refused: told when the journal does not take the end of the claim; it waits, and says whether to ask again. With
    ///     false the claim is left to the next start.
    /// - Returns: nil when nothing is due within the given room.
    package func withClaim<Result: Sendable>(
        _ lane: Lane, rooms: [ClaimRoom], owner: String, clock: @Sendable () -> WallTime, ending: EndingRule? = nil,
        damaged: ([DamagedDelivery]) -> Void = { _ in },
        refused: (Claim, JournalError) async -> Bool = Journal.askAgainSoon,
        _ body: (Claim) async throws -> (Settlement, Result)
    ) async throws -> (SettledFile, Result)? {
        let wish = ClaimWish(lane: lane, rooms: rooms, most: 1, owner: owner)
        let exchange = try await exchange([], for: wish, at: clock())
        if !exchange.damaged.isEmpty { damaged(exchange.damaged) }
        guard let claim = exchange.claims.first else { return nil }
        let settlement: Settlement
        let result: Result
        do {
            (settlement, result) = try await body(claim)
        } catch {
            let back = Settlement.again(at: clock(), countsAttempt: false, code: nil, reason: nil)
            // The error at hand is the one that is told; a claim that cannot go back is left to the next start.
            _ = try? await settlePersistently(claim, back, ending, clock, refused)
            throw error
        }
        return (try await settlePersistently(claim, settlement, ending, clock, refused), result)
    }

    /// A proof must not be lost to a full or failing disk: it is written as soon as that can be done, because nothing else
    /// will ever settle this claim in this process.
    private func settlePersistently(
        _ claim: Claim, _ settlement: Settlement, _ ending: EndingRule?, _ clock: @Sendable () -> WallTime,
        _ refused: (Claim, JournalError) async -> Bool
    ) async throws -> SettledFile {
        let ended = EndedClaim(claim, settlement)
        while true {
            do throws(JournalError) {
                return try await settle(ended, ending: ending, at: clock())
            } catch {
                guard await refused(claim, error) else { throw error }
            }
        }
    }

    /// Asks every second until the task is cancelled.
    package static func askAgainSoon(_ claim: Claim, _ error: JournalError) async -> Bool {
        guard !Task.isCancelled else { return false }
        try? await Task.sleep(for: .seconds(1))
        return true
    }

    /// When the next delivery in `lane` is due that `rooms` have a place for; nil when none waits for its time or all places
    /// are taken.
    package func nextDue(_ lane: Lane, rooms: [ClaimRoom]) async throws(JournalError) -> WallTime? {
        try await read { try Self.nextDue(lane, rooms, $0) }
    }

    static func nextDue(_ lane: Lane, _ rooms: [ClaimRoom], _ database: Database) throws -> WallTime? {
        let times = try rooms.compactMap { room -> Int64? in
            guard try places(room, lane, database) > 0 else { return nil }
            return try Priority.ranked.compactMap { try nextDue(lane, room, $0, database) }.min()
        }
        return times.min().map { WallTime(milliseconds: $0) }
    }

    private static func nextDue(
        _ lane: Lane, _ room: ClaimRoom, _ priority: Priority, _ database: Database
    ) throws -> Int64? {
        try database.row(
            """
            SELECT next_at FROM delivery INDEXED BY \(room.index)
            WHERE destination = ? AND lane = ? AND priority = ? AND state = 'ready' AND owner IS NULL AND next_at < ?
                \(room.condition)
            ORDER BY next_at LIMIT 1
            """,
            .text(room.destination), .integer(Int64(lane.rawValue)), .integer(Int64(priority.rank)), .integer(never)
        ) { $0.integer(0) }
    }

    /// Adds to what an attempt leaves for the next one; durable when it returns.
    package func checkpoint(_ delivery: Int64, _ entries: [String: [UInt8]]) async throws(JournalError) {
        try await commit { try Self.checkpoint(delivery, entries, $0) }
    }

    private static func checkpoint(_ delivery: Int64, _ entries: [String: [UInt8]], _ database: Database) throws {
        let statement = try database.cachedStatement(sql: "INSERT OR REPLACE INTO checkpoint VALUES (?, ?, ?)")
        for (name, value) in entries { try statement.execute(arguments: [delivery, name, Data(value)]) }
        // Bytes that are there do not have to be sent again: who ends the process at the same place each time adds none.
        let advances = entries.keys.contains { $0.hasPrefix("part:") || $0 == "offset" }
        try database.run(
            sql: "UPDATE delivery SET interrupted = 0, crashes = iif(?, 0, crashes) WHERE id = ?",
            arguments: [advances, delivery])
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
        let notes = try database.rows("SELECT name, value FROM checkpoint WHERE delivery_id = ?", .integer(delivery)) {
            ($0.text(0) ?? "", $0.bytes(1))
        }
        return Dictionary(uniqueKeysWithValues: notes)
    }

    /// - Throws: an error when there is no such row.
    static func delivery(_ id: Int64, _ database: Database) throws -> DeliveryRow {
        for shelf in Shelf.allCases {
            let found = try database.row(
                "SELECT \(DeliveryRow.columns) FROM \(shelf.deliveries) WHERE id = ?", .integer(id)
            ) { try DeliveryRow($0) }
            if let found { return found }
        }
        throw RowNotFound()
    }

    /// - Throws: an error when there is no such row.
    static func file(_ id: Int64, _ database: Database) throws -> FileRow {
        guard let found = try FileRow.one(id, database) else { throw RowNotFound() }
        return found
    }
}

/// The row was removed meanwhile (`queue forget`).
struct RowNotFound: Error, CustomStringConvertible {
    var description: String { "no such file or delivery in the journal" }
}
