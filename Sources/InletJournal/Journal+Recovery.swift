internal import GRDB
package import InletCore
package import SystemPackage

/// What start-up found and put right.
package struct Recovery: Sendable, Equatable {
    /// Claims of the process that died, back in the queue.
    package var freedClaims: Int
    /// Deliveries whose destination left the configuration.
    package var parked: Int
    /// Deliveries whose destination came back.
    package var unparked: Int
    /// Deliveries that ended the process too often, and are left alone now.
    package var crashed: [CrashedDelivery] = []

    /// Whether there was nothing to put right.
    package var isEmpty: Bool { freedClaims + parked + unparked == 0 }
}

/// A delivery during which the process ended again and again.
package struct CrashedDelivery: Sendable, Equatable {
    package var job: Int64
    package var delivery: Int64
    /// The whole path of its file.
    package var path: FilePath
    package var route: String
    package var destination: String

    package var error: DeliveryError {
        DeliveryError(
            .giveUp, .agentCrashed,
            """
            the agent ended \(CrashRule.most) times while it was sending this file; 'inlet queue retry' tries it again
            """)
    }
}

extension Journal {
    /// Puts the journal in order at start-up; the caller holds the single-instance lock, so every claim is stale.
    ///
    /// An interrupted attempt is not counted: a power cut says nothing about the file. What only waited at hand is
    /// interrupted too: a note of its beginning would cost every file a sync, and without one something may be visible. The
    /// next time its beginning is noted (`begin`), so that only those count as crashes again that were really under way.
    /// One that ends the process again and again comes later each time, alone if possible, and ends as failed at last. Bytes
    /// that have arrived take its crashes back: there are only so many of them. Where the whole machine went down, no crash
    /// is counted.
    ///
    /// - Parameter boot: what tells this run of the machine from the one before; nil = not known.
    package func recover(
        destinations: [String], boot: Int64? = nil, at now: WallTime
    ) async throws(JournalError) -> Recovery {
        try await commit { database in
            let isNewBoot = try boot.map { try Self.noteBoot($0, database) } ?? false
            let (freed, crashed) = try Self.freeClaims(now, countsCrashes: !isNewBoot, database)
            // Cancelled while they ran.
            try database.run(
                sql: """
                    UPDATE delivery SET owner = NULL, until = NULL, interrupted = interrupted + 1
                    WHERE owner IS NOT NULL AND state <> 'claimed'
                    """)
            try Self.endReturns(database)
            let (parked, unparked) = try Self.arrange(destinations, now, database)
            return Recovery(freedClaims: freed, parked: parked, unparked: unparked, crashed: crashed)
        }
    }

    /// Parks what waits for any other destination than these, and takes up again what was parked for one of them: as at a
    /// start, while the agent runs. Nothing that is claimed is touched.
    package func setDestinations(
        _ names: [String], at now: WallTime
    ) async throws(JournalError) -> (parked: Int, unparked: Int) {
        try await commit { database in try Self.arrange(names, now, database) }
    }

    /// Parks what has come back to the queue for a destination that is no longer configured, and takes up what was parked of
    /// one that is.
    ///
    /// - Parameter names: asked when it is its turn: they may change until then.
    /// - Returns: whether anything else of such ones is still open: it is claimed, or waits for another file.
    package func parkStrays(
        except names: @escaping @Sendable () -> [String], at now: WallTime
    ) async throws(JournalError) -> Bool {
        try await commit { database in
            let destinations = names()
            _ = try Self.arrange(destinations, now, database)
            let list = destinations.map { _ in "?" }.joined(separator: ", ")
            return try Bool.fetchOne(
                database,
                sql: """
                    SELECT EXISTS (SELECT 1 FROM delivery WHERE state = 'claimed' AND destination NOT IN (\(list)))
                    """, arguments: StatementArguments(destinations)) ?? false
                || Self.tally(database).contains { $0.place != .parked && !destinations.contains($0.destination) }
        }
    }

    private static func arrange(
        _ destinations: [String], _ now: WallTime, _ database: Database
    ) throws -> (parked: Int, unparked: Int) {
        let list = destinations.map { _ in "?" }.joined(separator: ", ")
        let names = StatementArguments(destinations)
        let parked = try parkAll(except: destinations, database)
        // Of a destination that was away from the configuration, too.
        try database.run(
            sql: """
                UPDATE leftover SET next_at = min(next_at, ?) WHERE delivery_id IN (
                    SELECT delivery_id FROM leftover CROSS JOIN delivery ON delivery.id = delivery_id
                    WHERE destination IN (\(list)))
                """, arguments: StatementArguments([now.milliseconds]) + names)
        try database.run(
            sql: "UPDATE delivery SET state = 'ready' WHERE state = 'parked' AND destination IN (\(list))",
            arguments: names)
        return (parked, database.changesCount)
    }

    /// - Returns: how many were parked. The counts say where any are: what waits for the others is not looked at.
    private static func parkAll(except destinations: [String], _ database: Database) throws -> Int {
        let others = Set(try tally(database).filter { $0.place != .parked }.map(\.destination)).subtracting(
            destinations)
        return try others.reduce(0) { parked, name in
            try parked
                + database.change(
                    "UPDATE delivery SET state = 'parked' WHERE state = 'ready' AND destination = ?", .text(name))
        }
    }

    /// Writes down that a delivery really begins which was claimed when a process ended before: the next crash is then its own.
    package func begin(_ delivery: Int64) async throws(JournalError) {
        _ = try await commit { database in
            try database.change(
                "UPDATE delivery SET owner = ? WHERE id = ? AND state = 'claimed'", .text(Self.begunOwner),
                .integer(delivery))
        }
    }

    /// - Returns: whether the machine was started anew since the last time; false the first time.
    private static func noteBoot(_ boot: Int64, _ database: Database) throws -> Bool {
        let last = try database.row("SELECT value FROM counter WHERE name = 'boot'") { $0.integer(0) }
        if last == boot { return false }
        try database.change("INSERT OR REPLACE INTO counter (name, value) VALUES ('boot', ?)", .integer(boot))
        return last != nil
    }

    /// - Returns: how many claims there were, and which of them are left alone from now on.
    private static func freeClaims(
        _ now: WallTime, countsCrashes: Bool, _ database: Database
    ) throws -> (count: Int, crashed: [CrashedDelivery]) {
        let claims = try database.rows(
            """
            SELECT id, crashes, lane = \(Lane.big.rawValue) OR owner = '\(begunOwner)' FROM delivery
            WHERE state = 'claimed'
            """
        ) { (id: $0.integer(0), crashes: Int($0.integer(1)), hasBegun: $0.integer(2) == 1) }
        var crashed: [CrashedDelivery] = []
        for claim in claims {
            let isCounted = countsCrashes && (claim.crashes == 0 || claim.hasBegun)
            let crashes = claim.crashes + (isCounted ? 1 : 0)
            let next = now + (isCounted ? CrashRule.delay(after: crashes, of: claim.id) : .zero)
            try database.change(
                """
                UPDATE delivery SET state = 'ready', owner = NULL, until = NULL, attempts = max(attempts - 1, 0),
                    interrupted = interrupted + 1, crashes = ?, next_at = ?
                WHERE id = ?
                """, .integer(Int64(crashes)), .integer(next.milliseconds), .integer(claim.id))
            if crashes >= CrashRule.most { crashed.append(try giveUp(claim.id, now, database)) }
        }
        return (claims.count, crashed)
    }

    private static func giveUp(_ id: Int64, _ now: WallTime, _ database: Database) throws -> CrashedDelivery {
        let row = try delivery(id, database)
        let file = try file(row.fileID, database)
        let crashed = CrashedDelivery(
            job: file.id, delivery: id, path: file.fullPath, route: file.route ?? "", destination: row.destination)
        try endDelivery(id, .failed, code: crashed.error.code, reason: crashed.error.reason, now, database)
        return crashed
    }

    /// The owner of a claim whose beginning is known.
    private static let begunOwner = "begun"
}
