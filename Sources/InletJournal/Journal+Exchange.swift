internal import GRDB
package import InletCore
package import SystemPackage

/// A claim that has ended, and how.
package struct EndedClaim: Sendable {
    package var delivery: Int64
    package var settlement: Settlement

    package init(_ claim: Claim, _ settlement: Settlement) {
        delivery = claim.delivery.id
        self.settlement = settlement
    }
}

/// What a holder would claim.
package struct ClaimWish: Sendable {
    package var lane: Lane
    package var rooms: [ClaimRoom]
    /// No more than this, whatever the rooms allow.
    package var most: Int
    /// Who holds the claims: for people who look into the journal.
    package var owner: String

    package init(lane: Lane, rooms: [ClaimRoom], most: Int, owner: String) {
        self.lane = lane
        self.rooms = rooms
        self.most = most
        self.owner = owner
    }
}

/// What came of an exchange.
package struct Exchange: Sendable {
    /// In the order of the ended claims.
    package var settled: [SettledFile]
    /// The highest priority first, and of each those that have waited longest.
    package var claims: [Claim]
    /// When the next delivery is due that there is room for; nil when none waits for its time, or when there may be more that
    /// are due now.
    package var nextDue: WallTime?
    /// What was due and cannot be read.
    package var damaged: [DamagedDelivery]

    package init(
        settled: [SettledFile], claims: [Claim], nextDue: WallTime?, damaged: [DamagedDelivery] = []
    ) {
        self.settled = settled
        self.claims = claims
        self.nextDue = nextDue
        self.damaged = damaged
    }
}

/// A delivery that cannot be read, so that nobody knows what to do with it; it is parked, with the reason on its row.
package struct DamagedDelivery: Sendable, Equatable {
    package var delivery: Int64
    /// The whole path of its file.
    package var path: FilePath
    package var reason: String

    /// - Parameter row: columns of the delivery, followed by those of its file.
    init(_ row: SQLRow, _ error: any Error) {
        delivery = row.integer(0)
        path = FileRow.fullPath(row, from: DeliveryRow.width)
        reason = "its row in the journal is damaged; it is tried again at the next start (\(error))"
    }
}

extension Journal {
    /// Settles claims and makes new ones, in one transaction: thousands of small files a second would otherwise wait for the
    /// disk, and for their turn at the journal, twice each.
    ///
    /// Every attempt is written before its claim is returned. A transaction that changes nothing writes nothing.
    package func exchange(
        _ ended: [EndedClaim], for wish: ClaimWish, ending: EndingRule? = nil, at now: WallTime
    ) async throws(JournalError) -> Exchange {
        try await commit { database in
            let settled = try ended.map { try Self.settle($0, ending, now, database) }
            let (claims, damaged) = try Self.claim(wish, now, database)
            let next = claims.count < wish.most ? try Self.nextDue(wish.lane, wish.rooms, database) : nil
            return Exchange(settled: settled, claims: claims, nextDue: next, damaged: damaged)
        }
    }

    private static func claim(
        _ wish: ClaimWish, _ now: WallTime, _ database: Database
    ) throws -> ([Claim], [DamagedDelivery]) {
        guard wish.most > 0 else { return ([], []) }
        var due: [Claim] = []
        var damaged: [DamagedDelivery] = []
        for room in wish.rooms {
            let free = try places(room, wish.lane, database)
            guard free > 0 else { continue }
            let found = try Self.due(room, wish.lane, min(free, wish.most), now, database)
            due += found.claims
            damaged += found.damaged
        }
        // One that nobody can read must not keep the others from their turn.
        for one in damaged { try park(one, database) }
        if wish.rooms.count > 1 {
            due.sort { $0.delivery.turn < $1.delivery.turn }
        }
        return (try due.prefix(wish.most).compactMap { try take($0, wish, now, database) }, damaged)
    }

    /// The claim as its owner has it from now on; nil for one that waits for others of its content.
    private static func take(
        _ claim: Claim, _ wish: ClaimWish, _ now: WallTime, _ database: Database
    ) throws -> Claim? {
        var original: Original?
        switch try deduplicate(claim, now, database) {
        case .own: break
        case .brought(let found): original = found
        case .waits: return nil
        }
        try database.change(
            """
            UPDATE delivery SET state = 'claimed', owner = ?, until = ?, attempts = attempts + 1,
                started_at = ifnull(started_at, ?)
            WHERE id = ?
            """,
            .text(wish.owner), .integer((now + .seconds(3600)).milliseconds), .integer(now.milliseconds),
            .integer(claim.delivery.id))
        var delivery = claim.delivery
        let room = wish.rooms.first { $0.destination == delivery.destination }
        try letIn(&delivery, claim.file, uptime: room?.uptime, database)
        delivery.state = .claimed
        delivery.attempts += 1
        delivery.startedAt = delivery.startedAt ?? now
        return Claim(file: claim.file, delivery: delivery, checkpoint: claim.checkpoint, original: original)
    }

    private static func park(_ damaged: DamagedDelivery, _ database: Database) throws {
        try database.change(
            "UPDATE delivery SET state = 'parked', code = ?, reason = ? WHERE id = ?",
            .text(ErrorCode.internalFault.rawValue), .text(damaged.reason), .integer(damaged.delivery))
    }

    /// How many more deliveries to the room's destination may run in `lane`.
    static func places(_ room: ClaimRoom, _ lane: Lane, _ database: Database) throws -> Int {
        let running = try database.row(
            "SELECT count(*) FROM delivery WHERE destination = ? AND lane = ? AND state = 'claimed'",
            .text(room.destination), .integer(Int64(lane.rawValue))
        ) { Int($0.integer(0)) }
        return (room.limits[lane] ?? 0) - (running ?? 0)
    }
}
