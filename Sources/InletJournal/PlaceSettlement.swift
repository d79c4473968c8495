internal import GRDB
package import InletCore
internal import Synchronization

/// How work of shares ends here, and how it waits while this agent has no session.
extension Journal {
    /// The session of work that waits for the next one.
    private static let away: Int64 = 0
    /// The session of work that was let go while a worker had it.
    private static let letGo: Int64 = -1

    /// Holds back all work of shares until it is claimed again: the session is over. Running deliveries go on.
    package func holdPlaceWork() async throws(JournalError) {
        try await commit { database in
            try Self.dropLetGo(self.heardMark(database), database)
            try Self.holdWork(database)
        }
    }

    static func holdWork(_ database: Database) throws {
        try database.change("UPDATE place_work SET session = \(away) WHERE session > \(away)")
        try holdDeliveries(database)
        try database.change(
            """
            UPDATE file SET finish_at = \(never)
            WHERE id IN (SELECT file_id FROM place_work WHERE is_finishing) AND finished_at IS NULL AND intent IS NULL
                AND finish_at < \(never)
            """)
    }

    /// For a file of which a worker has just let go: it may not go on before its work is claimed again.
    static func holdIfAway(_ file: Int64, _ database: Database) throws {
        try holdDeliveries(of: file, database)
    }

    /// Meanwhile the time to live stands still, as for a closed window: the rest of it is kept, negated.
    ///
    /// - Parameter file: nil is all work.
    private static func holdDeliveries(of file: Int64? = nil, _ database: Database) throws {
        try database.change(
            """
            UPDATE delivery SET next_at = \(never), expires_at = iif(expires_at >= 0,
                min(-1, ifnull((SELECT uptime FROM destination WHERE name = delivery.destination), 0) - expires_at),
                expires_at)
            WHERE file_id IN (
                SELECT file_id FROM place_work \(file == nil ? "" : "WHERE file_id = ? AND session <= \(away)"))
                AND state IN ('ready', 'parked') AND next_at < \(never)
            """, file.map { [$0] } ?? [])
    }

    /// Deliveries that wait for no other are due. Where the route has a window, the claim starts the time to live
    /// again.
    static func releaseWork(_ file: Int64, _ now: WallTime, _ database: Database) throws {
        try database.change(
            """
            UPDATE delivery SET next_at = ?, expires_at = iif(expires_at < 0 AND
                (SELECT json_extract(CAST(policy AS TEXT), '$.window') FROM file WHERE id = file_id) IS NULL,
                ifnull((SELECT uptime FROM destination WHERE name = delivery.destination), 0) - expires_at, expires_at)
            WHERE file_id = ? AND state IN ('ready', 'parked') AND next_at >= \(never) AND NOT EXISTS (
                SELECT 1 FROM delivery AS leader WHERE leader.id = delivery.after_id AND leader.state <> 'delivered')
            """, now, file)
    }

    // MARK: - Settled

    /// The fleet knows these ends. A file with a number of finishing work is disposed of now, as failed where a delivery
    /// has failed anywhere; the source of one without is left to others.
    package func placeWorkSettled(
        _ ends: [(file: Int64, finish: Int64?, hasFailed: Bool)], mark: Int64, at now: WallTime
    ) async throws(JournalError) {
        heard.withLock { _ = $0.raise(to: mark, at: .now) }
        try await commit { database in
            for end in ends {
                let work = try database.row(
                    """
                    SELECT place, work.path, version, state FROM place_work AS work JOIN file ON file.id = file_id
                    WHERE file_id = ? AND NOT is_finishing AND state <> 'pending'
                    """, end.file
                ) { row in
                    (
                        place: row.text(0) ?? "",
                        version: PlaceVersion(path: row.text(1) ?? "", version: row.text(2) ?? ""),
                        isGone: ["gone", "superseded"].contains(row.text(3) ?? "")
                    )
                }
                guard let work else { continue }
                try Self.confirm(work.version, in: work.place, mark: mark, database)
                // The fleet may forget a version of which nothing was delivered, and admit it again.
                if work.isGone { try Self.doubt(work.version, in: work.place, database) }
                guard let finish = end.finish else {
                    try Self.leave(end.file, now, database)
                    continue
                }
                try database.change(
                    "UPDATE place_work SET number = ?, fence = 1, is_finishing = 1 WHERE file_id = ?", finish, end.file)
                try Self.unconfirm(work.version, in: work.place, database)
                try Self.letFinish(end.file, hasFailed: end.hasFailed, isNew: true, now, database)
            }
            try self.keepMark(database)
        }
    }

    /// Why a source is disposed of as failed although its own deliveries are not.
    static let hasFailed = "another delivery of it has failed in the fleet, or nobody knows how it ended"

    /// The finisher may dispose of the source.
    ///
    /// - Parameter isNew: it may have been left to others before.
    static func letFinish(
        _ file: Int64, hasFailed: Bool, isNew: Bool, _ now: WallTime, _ database: Database
    ) throws {
        if isNew {
            let isReopened = try database.change(
                """
                UPDATE file SET finished_at = NULL, disposition = NULL
                WHERE id = ? AND finished_at IS NOT NULL AND intent IS NULL
                """, file)
            if isReopened > 0 { try database.change("DELETE FROM receipt WHERE file_id = ?", file) }
        }
        try database.change(
            """
            UPDATE file SET finish_at = ?, state = iif(?2 AND state = 'delivered', 'failed', state),
                reason = iif(?2 AND state = 'delivered', ?3, reason)
            WHERE id = ?4 AND finished_at IS NULL
            """, now, hasFailed, Self.hasFailed, file)
    }

    /// The file's work is over, and its source others'. The finisher says so in the receipt.
    private static func leave(_ file: Int64, _ now: WallTime, _ database: Database) throws {
        try database.change("DELETE FROM place_work WHERE file_id = ?", file)
        try database.change("UPDATE file SET finish_at = ? WHERE id = ? AND finished_at IS NULL", now, file)
    }

    /// The fleet knows that these sources are finished.
    package func placeWorkFinished(_ files: [Int64], mark: Int64) async throws(JournalError) {
        heard.withLock { _ = $0.raise(to: mark, at: .now) }
        try await commit { database in
            for file in files {
                let work = try database.row(
                    """
                    SELECT place, work.path, version, finished_at, file.state FROM place_work AS work
                        JOIN file ON file.id = file_id
                    WHERE file_id = ? AND is_finishing AND finished_at IS NOT NULL
                    """, file
                ) { row in
                    (
                        place: row.text(0) ?? "",
                        version: PlaceVersion(path: row.text(1) ?? "", version: row.text(2) ?? ""), time: row.time(3),
                        wasSent: ![.gone, .superseded].contains(row.text(4).flatMap(FileState.init))
                    )
                }
                guard let work else { continue }
                try database.change("DELETE FROM place_work WHERE file_id = ?", file)
                // A version that went away before it was sent may come back, and is no finished one then.
                if work.wasSent {
                    try Self.finish(work.version, in: work.place, mark: mark, at: work.time, database)
                } else {
                    try Self.doubt(work.version, in: work.place, database)
                }
            }
            try self.keepMark(database)
        }
    }

    // MARK: - Dropped

    /// The work is another's, or goes back, and leaves this journal. Two things stay: a delivered file, whose source is
    /// left to others, and a disposal that has begun. A file that a worker has is held, and dropped by the next call
    /// that takes, holds or drops work once the worker has let go.
    package func dropPlaceWork(_ files: [Int64]) async throws(JournalError) {
        try await commit { database in
            let mark = try self.heardMark(database)
            try Self.dropLetGo(mark, database)
            for file in files { try Self.drop(file, mark, database) }
        }
    }

    /// Drops what was let go while a worker had it.
    static func dropLetGo(_ mark: Int64, _ database: Database) throws {
        let files = try database.integers("SELECT file_id FROM place_work WHERE session = \(letGo)")
        for file in files { try drop(file, mark, database) }
    }

    private static func drop(_ file: Int64, _ mark: Int64, _ database: Database) throws {
        let found = try database.row(
            """
            SELECT place, work.path, version, finished_at IS NOT NULL, intent IS NOT NULL, \(isAtHand),
                EXISTS (SELECT 1 FROM delivery WHERE file_id = file.id)
                    AND NOT EXISTS (SELECT 1 FROM delivery WHERE file_id = file.id AND state <> 'delivered'),
                is_finishing AND file.state NOT IN ('gone', 'superseded'), finished_at
            FROM place_work AS work CROSS JOIN file ON file.id = work.file_id WHERE work.file_id = ?
            """, file
        ) { row in
            (
                place: row.text(0) ?? "",
                version: PlaceVersion(path: row.text(1) ?? "", version: row.text(2) ?? ""),
                isFinished: row.bool(3), hasIntent: row.bool(4), isAtHand: row.bool(5), isDelivered: row.bool(6),
                isDisposal: row.bool(7), time: row.time(8)
            )
        }
        guard let found else { return }
        if !found.isFinished, found.hasIntent || found.isAtHand {
            try database.change(
                "UPDATE place_work SET session = \(letGo) WHERE file_id = ? AND session <> \(letGo)", file)
            return try holdIfAway(file, database)
        }
        if found.isFinished, found.isDisposal {
            // Its source is put away, which the fleet hears from the agent that has the work now, if at all.
            try finish(found.version, in: found.place, mark: nil, at: found.time, database)
        } else {
            try confirm(found.version, in: found.place, mark: mark, database)
        }
        if found.isFinished {
            try database.change("DELETE FROM place_work WHERE file_id = ?", file)
        } else if found.isDelivered {
            try leave(file, WallTime(milliseconds: 0), database)
        } else {
            // Its keys are the fleet's: they are neither spent here nor given back.
            try database.change("DELETE FROM file WHERE id = ?", file)
        }
    }

    /// Makes a file of a share this agent's own where a person sends it again and the fleet has no work for it any
    /// more. It keeps its key, and its source stays.
    ///
    /// - Returns: false while it is work of the fleet.
    static func becomesOwn(_ file: Int64, _ scope: RetryScope, _ database: Database) throws -> Bool {
        let isWork = try database.exists("SELECT 1 FROM place_work WHERE file_id = ?", file)
        if isWork { return false }
        let isOfPlace = try database.exists("SELECT 1 FROM file WHERE id = ? AND \(FilePolicy.hasPlace)", file)
        guard isOfPlace,
            try database.exists(
                "SELECT 1 FROM delivery WHERE \(isSentAgain(scope.states))", file, scope.destination, "[]")
        else { return true }
        var policy = try self.file(file, database).policy
        (policy.isOfPlace, policy.onSuccess, policy.onFailure) = (false, .keep, .keep)
        try database.change("UPDATE file SET policy = ? WHERE id = ?", try policy.note, file)
        // They need no grant, and never go back.
        try database.change(
            """
            INSERT INTO fleet_key (destination, address, key, ref, mark)
            SELECT destination, \(KeyTriggers.address(of: "delivery")), key, id, 0 FROM delivery
            WHERE file_id = ? AND key IS NOT NULL
            ON CONFLICT (destination, key, address) DO UPDATE SET mark = ifnull(mark, 0), freed = 0
            """, file)
        return true
    }

    /// The highest mark of the fleet, for what it is known to have.
    func heardMark(_ database: Database) throws -> Int64 {
        max(heard.withLock(\.mark), try database.integer("SELECT seen FROM fleet") ?? 0)
    }
}
