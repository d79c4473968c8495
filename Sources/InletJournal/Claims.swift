internal import GRDB
package import InletCore
internal import Synchronization
package import SystemPackage

/// A claim that has ended: its delivery and the outcome.
package typealias EndedClaim = (delivery: Int64, settlement: ClaimOutcome)

/// The deliveries that a holder wants to claim.
package struct ClaimRequest: Sendable {
    package var lane: Lane
    /// nil claims nothing and only settles.
    package var room: ClaimCapacity?
    /// The most to claim, whatever the room allows.
    package var most: Int

    package init(lane: Lane, room: ClaimCapacity?, most: Int) { (self.lane, self.room, self.most) = (lane, room, most) }

    package static func none(_ lane: Lane) -> ClaimRequest { ClaimRequest(lane: lane, room: nil, most: 0) }

    /// The owner written on the claim. A big delivery begins as soon as it is claimed, so the claim counts as its
    /// beginning. A small one may still wait in memory.
    var owner: String { lane == .big ? Journal.begunOwner : "\(lane)" }
}

/// The result of an exchange. The ended claims' outcomes have their claims' order; the new claims are ordered by
/// priority, then by how long they waited. Further: the time at which the next delivery with room is due, and due
/// deliveries that cannot be read. The time is nil when none waits for its time, and when the wanted number was
/// claimed, since more may be due now.
package typealias Exchange = (
    settled: [SettledFile], claims: [Claim], nextDue: WallTime?, damaged: [UnreadableDelivery]
)

/// A delivery whose row cannot be read, with the full path of its file. It is parked, with the reason on its row.
package typealias UnreadableDelivery = (delivery: Int64, path: FilePath, reason: String)

/// Free slots of one destination.
package struct ClaimCapacity: Sendable {
    package var destination: String
    /// The number of deliveries that may run at once, by lane.
    package var limits: [Lane: Int]
    /// Only for deliveries that the destination is already working on; none may begin anew there.
    package var isForBegunOnly: Bool
    /// The destination's expiry clock in milliseconds; nil uses the value written last.
    package var uptime: Int64?

    package init(destination: String, limits: [Lane: Int], isForBegunOnly: Bool = false, uptime: Int64? = nil) {
        (self.destination, self.limits, self.isForBegunOnly, self.uptime) = (
            destination, limits, isForBegunOnly, uptime
        )
    }

    /// The index that fits the room: few deliveries have begun, however many wait.
    var index: String { isForBegunOnly ? "delivery_waiting" : "delivery_ready" }

    /// The SQL condition that a due delivery must meet; equals `DeliveryRow.hasBegun`.
    var condition: String {
        isForBegunOnly ? "AND waits > 0 AND delivery.code IS NOT '\(ErrorCode.outOfCredits.rawValue)'" : ""
    }
}

/// A delivery that its holder alone works on. Every claim taken from `exchange` goes back to it as an `EndedClaim`.
package final class Claim: Sendable {
    package let file: FileRow
    package let delivery: DeliveryRow
    /// Notes left by earlier attempts.
    package let checkpoint: [String: [UInt8]]
    /// Set when the destination already has the content and the route wants it only once. The link is the proof;
    /// nothing is sent.
    package let original: Original?

    init(file: FileRow, delivery: DeliveryRow, checkpoint: [String: [UInt8]], original: Original? = nil) {
        (self.file, self.delivery, self.checkpoint, self.original) = (file, delivery, checkpoint, original)
    }
}

/// The way in which a claim ends.
package enum ClaimOutcome: Sendable {
    /// Durable point 2.
    case delivered(Proof)
    /// Back to the queue until `at`. `countsAttempt` is false for outages, refused credentials and our own shutdown.
    case again(at: WallTime, countsAttempt: Bool, code: ErrorCode?, reason: String?)
    /// Back to the queue until `until`, because the destination is working on it; `saying` describes its work.
    case waiting(until: WallTime, saying: String?)
    /// Back to the queue under another name: the destination has another file under its key, which stays spent. It
    /// counts no attempt.
    ///
    /// - Parameter key: the name, where the fleet has said it.
    case renamed(reason: String, key: String? = nil)
    /// Ends the delivery without proof. A superseded one frees its key once nothing of it is left.
    case ended(DeliveryState, code: ErrorCode, reason: String)
    /// Ends a delivery that never began: it waited for longer than it may.
    case expired

    static let tooLate = "not delivered within its time (retry.expire); 'inlet queue retry' sends it again"
}

/// The effect of settling on the file.
package struct SettledFile: Sendable {
    /// `pending` while other deliveries of the file continue.
    package var state: FileState
    /// Deliveries that waited for this one are due now, in any lane.
    package var hasReleased: Bool
    /// Set when the same transaction finished the file, because its source needs nothing done.
    package var finish: Finish?
    package var isFinal: Bool { state != .pending }
}

/// Decides about a file whose deliveries have ended, in the same transaction. A file whose source stays untouched is
/// finished here, with a disposition and its receipt's JSON. nil leaves the source to the finisher.
package typealias EndingRule = @Sendable (Job) -> (disposition: String, receipt: [UInt8])?

/// Why a row of the journal cannot be used.
enum UnusableRow: String, Error, CustomStringConvertible {
    /// The row was removed meanwhile (`queue forget`).
    case missing = "no such file or delivery in the journal"
    case unreadable = "a note in the history cannot be read"

    var description: String { rawValue }
}

extension Journal {
    /// Settles claims and makes new ones, in one transaction. Separate ones would cost thousands of small files a
    /// second two waits each, for the disk and for their turn at the journal. This is the only way to claim and to end
    /// a claim; with `.delivered` it is durable point 2. A transaction that changes nothing writes nothing.
    ///
    /// Claim only as many big deliveries as begin at once: at a start, `recover` counts claimed ones as begun. Every
    /// attempt is written before its claim is returned.
    package func exchange(
        _ ended: [EndedClaim], for request: ClaimRequest, ending: EndingRule? = nil, at now: WallTime
    ) async throws(JournalError) -> Exchange {
        try await commit { database in
            let known = self.handedOut.withLock { known in ended.map { known.removeValue(forKey: $0.delivery) } }
            let plain = try Self.settlePlain(ended, known, ending, now, database)
            let settled = try ended.enumerated().map { place, one in
                try plain[place] ?? Self.settleStepwise(one, ending, now, database)
            }
            guard let room = request.room else {
                return (settled, [], nil, [])
            }
            let running = try database.row(
                "SELECT count(*) FROM delivery WHERE destination = ? AND lane = ? AND state = 'claimed'",
                room.destination, request.lane
            ) { $0.int(0) }
            let places = (room.limits[request.lane] ?? 0) - (running ?? 0)
            let most = min(request.most, places)
            var (due, damaged): ([Claim], [UnreadableDelivery]) = ([], [])
            for priority in Priority.ranked where due.count < most {
                let found = try Self.due(room, request.lane, priority, most - due.count, now, database)
                due += found.claims
                damaged += found.damaged
            }
            // An unreadable row must not hold up the others.
            for one in damaged {
                try database.change(
                    "UPDATE delivery SET state = 'parked', code = ?, reason = ? WHERE id = ?",
                    ErrorCode.internalFault, one.reason, one.delivery)
            }
            let claims = try Self.take(due, request.owner, room, now, database)
            self.handedOut.withLock { known in for claim in claims { known[claim.delivery.id] = claim } }
            let mayBeMore = claims.count < min(max(request.most, 1), places)
            let next = mayBeMore ? try Self.nextDue(room, request.lane, database) : nil
            return (settled, claims, next, damaged)
        }
    }

    /// The claims as their owner has them from now on, without those that wait for others of the same content.
    private static func take(
        _ due: [Claim], _ owner: String, _ room: ClaimCapacity, _ now: WallTime, _ database: Database
    ) throws -> [Claim] {
        var (taken, waiting): ([Claim], [Claim]) = ([], [])
        func takeWaiting() throws {
            for piece in RowsStatement.pieces(of: waiting) {
                let ids = piece.map(\.delivery.id)
                let values: [any SQLValue] = [owner, now + .seconds(3600), now]
                try database.change(RowsStatement.claims.sql(piece.count), values + ids)
            }
            for claim in waiting {
                var delivery = claim.delivery
                try letIn(&delivery, claim.file, uptime: room.uptime, database)
                (delivery.state, delivery.attempts) = (.claimed, delivery.attempts + 1)
                delivery.startedAt = delivery.startedAt ?? now
                taken.append(
                    Claim(
                        file: claim.file, delivery: delivery, checkpoint: claim.checkpoint, original: claim.original))
            }
            waiting = []
        }
        for claim in due {
            guard claim.file.policy.dedupe != .off else {
                waiting.append(claim)
                continue
            }
            // It may wait for one of those before it.
            try takeWaiting()
            let (original, waits) = try deduplicate(claim, now, database)
            if waits { continue }
            waiting = [
                Claim(file: claim.file, delivery: claim.delivery, checkpoint: claim.checkpoint, original: original)
            ]
        }
        try takeWaiting()
        return taken
    }

    /// nil when none waits for its time.
    private static func nextDue(_ room: ClaimCapacity, _ lane: Lane, _ database: Database) throws -> WallTime? {
        try Priority.ranked.compactMap { priority in
            try database.time(
                """
                SELECT next_at FROM delivery INDEXED BY \(room.index)
                WHERE destination = ? AND lane = ? AND priority = ? AND state = 'ready' AND owner IS NULL
                    AND next_at < ? \(room.condition)
                ORDER BY next_at LIMIT 1
                """, room.destination, lane, priority.rank, never)
        }.min()
    }

    /// Adds to the notes that an attempt leaves for the next one. Durable when it returns.
    ///
    /// - Parameter replacing: forgets earlier attempts' notes in the same transaction, so no crash falls between.
    package func checkpoint(
        _ delivery: Int64, _ entries: [String: [UInt8]], replacing: Bool = false
    ) async throws(JournalError) {
        try await commit { database in
            if replacing {
                try database.change("DELETE FROM checkpoint WHERE delivery_id = ?", delivery)
                if entries.isEmpty { return }
            }
            for (name, value) in entries {
                try database.change("INSERT OR REPLACE INTO checkpoint VALUES (?, ?, ?)", delivery, name, value)
            }
            // Bytes that arrived need not be sent again. An attempt that kills the process at the same place each time
            // adds none.
            let advances = entries.keys.contains { $0.hasPrefix("part:") || $0 == "offset" }
            try database.change(
                "UPDATE delivery SET interrupted = 0, crashes = iif(?, 0, crashes) WHERE id = ?", advances, delivery)
            // Cancelled meanwhile: the attempt's latest work must be cleaned up too.
            try database.change(
                """
                INSERT OR IGNORE INTO leftover (delivery_id, next_at)
                SELECT id, ended_at FROM delivery WHERE id = ? AND state = 'cancelled'
                """, delivery)
        }
    }

    static func checkpoint(of delivery: Int64, _ database: Database) throws -> [String: [UInt8]] {
        let notes = try database.rows("SELECT name, value FROM checkpoint WHERE delivery_id = ?", delivery) {
            ($0.text(0) ?? "", $0.bytes(1))
        }
        return Dictionary(uniqueKeysWithValues: notes)
    }

    /// - Throws: an error when the row is gone.
    static func delivery(_ id: Int64, _ database: Database) throws -> DeliveryRow {
        for tables in JournalTables.allCases {
            if let found = try DeliveryRow.all(database, from: tables, "WHERE id = ?", id).first { return found }
        }
        throw UnusableRow.missing
    }

    /// - Throws: an error when the row is gone.
    static func file(_ id: Int64, _ database: Database) throws -> FileRow {
        guard let found = try FileRow.one(id, database) else { throw UnusableRow.missing }
        return found
    }
}

extension RowsStatement {
    fileprivate static let claims = RowsStatement(["id"]) { columns, rows in
        """
        UPDATE delivery SET state = 'claimed', owner = ?1, until = ?2, attempts = attempts + 1,
            started_at = ifnull(started_at, ?3)
        WHERE \(columns) IN (VALUES \(rows))
        """
    }
}
