internal import GRDB
internal import InletCore

extension Journal {
    /// Settles any claim, whatever else depends on its end.
    static func settleStepwise(
        _ ended: EndedClaim, _ ending: EndingRule?, _ now: WallTime, _ database: Database
    ) throws -> SettledFile {
        // A person may have cancelled it meanwhile: a proof still counts, any other outcome does not.
        var row = try delivery(ended.delivery, database)
        var hasReleased = false
        if row.state == .claimed {
            hasReleased = try apply(ended.settlement, to: row, now, database)
        } else if case .delivered(let proof) = ended.settlement, row.state != .delivered {
            try reopen(row.fileID, database)
            hasReleased = try markDelivered(row, proof, now, database)
        } else if case .again(_, countsAttempt: false, _, _) = ended.settlement {
            try uncount(row.id, database)
        }
        try database.change("UPDATE delivery SET owner = NULL, until = NULL WHERE id = ?", row.id)
        let file = try file(row.fileID, database)
        if file.policy.isOfPlace { try holdIfAway(file.id, database) }
        if case .delivered(let proof) = ended.settlement {
            if !file.digests.isEmpty { try rememberContent(of: file, row, proof, now, database) }
            if file.policy.dedupe != .off, try wakeTwins(of: row.id, now, database) { hasReleased = true }
            let reason = try linkReason(proof, database)
            (row.state, row.code, row.reason, row.proof, row.endedAt) = (.delivered, nil, reason, proof, now)
        } else {
            row = try delivery(row.id, database)
        }
        return SettledFile(
            state: file.state, hasReleased: hasReleased, finish: try finish(file, row, ending, now, database))
    }

    /// Durable point 3 at once, for a file whose source needs nothing done.
    /// - Parameter last: the delivery that has just ended, in its new state.
    private static func finish(
        _ file: FileRow, _ last: DeliveryRow, _ ending: EndingRule?, _ now: WallTime, _ database: Database
    ) throws -> Finish? {
        guard let ending, file.state.isFinal, file.intent == nil else { return nil }
        let others = try DeliveryRow.all(database, "WHERE file_id = ? AND id <> ?", file.id, last.id)
        let job = Job(file: file, deliveries: (others + [last]).sorted { $0.id < $1.id })
        guard let end = ending(job) else { return nil }
        return try finish(file, disposition: end.disposition, state: nil, receipt: end.receipt, at: now, database)
    }

    /// - Returns: whether other deliveries that waited for this one can continue.
    private static func apply(
        _ settlement: ClaimOutcome, to row: DeliveryRow, _ now: WallTime, _ database: Database
    ) throws -> Bool {
        switch settlement {
        case .delivered(let proof):
            return try markDelivered(row, proof, now, database)
        case .again(let time, let counts, let code, let reason):
            try database.change(
                """
                UPDATE delivery SET state = 'ready', next_at = ?, attempts = attempts - ?, code = ?, reason = ?
                WHERE id = ?
                """, time, counts ? 0 : 1, (code ?? row.code)?.rawValue, reason ?? row.reason, row.id)
            // Nor does it wait for its destination while its own volume is away.
            if row.isBeingWorkedOn && code != nil || code == .sourceGone { try renewExpiry(of: row, database) }
        case .renamed(let reason, let key): try loseKey(row, reason, to: key, now, database)
        case .waiting(let time, let saying):
            return try wait(row, until: time, saying: saying, database)
        case .ended(let state, let code, let reason):
            return try endDelivery(
                row.id, state, code: code, reason: reason, freesKey: state == .superseded, now, database)
        case .expired:
            try uncount(row.id, database)
            return try expire(row, now, database)
        }
        return false
    }

    /// Time in which the destination worked on it does not count as waiting: a new failure has its full time to live.
    private static func renewExpiry(of row: DeliveryRow, _ database: Database) throws {
        guard row.expiresAt != nil, let life = try file(row.fileID, database).policy.retry.expire else { return }
        try database.change(
            """
            UPDATE delivery SET expires_at = ? + ifnull(
                (SELECT uptime FROM destination WHERE name = delivery.destination), 0)
            WHERE id = ?
            """, life.milliseconds, row.id)
    }

    /// Takes back the attempt written with a claim. A delivery that was cancelled and sent again has none.
    private static func uncount(_ delivery: Int64, _ database: Database) throws {
        try database.change("UPDATE delivery SET attempts = max(attempts - 1, 0) WHERE id = ?", delivery)
    }

    /// Reopens a file and its batch, whose earlier conclusions no longer hold. Work that the finisher has begun stays
    /// begun.
    static func reopen(_ file: Int64, _ database: Database) throws {
        // The fleet says when the source of its work is finished.
        try database.change(
            """
            UPDATE file SET finished_at = NULL, disposition = NULL, finish_at = iif(EXISTS (
                SELECT 1 FROM place_work WHERE file_id = file.id AND NOT is_finishing), \(never), 0)
            WHERE id = ?
            """, file)
        try database.change("DELETE FROM receipt WHERE file_id = ?", file)
        let row = try self.file(file, database)
        // It was about the end that no longer holds.
        if row.policy.answer != nil { try note(nil, of: row, database) }
        if let batch = row.batchID { try reopenBatch(batch, database) }
    }

    /// - Returns: whether other deliveries waited for this one.
    static func markDelivered(
        _ row: DeliveryRow, _ proof: Proof, _ now: WallTime, _ database: Database
    ) throws -> Bool {
        let reason = try linkReason(proof, database)
        // It has nothing under its own key, and gives that back.
        if reason != nil {
            try database.change("UPDATE delivery SET key = NULL WHERE id = ? AND NOT \(mayBeVisible)", row.id)
        }
        try database.change(
            "UPDATE delivery SET state = 'delivered', code = NULL, reason = ?, proof = ?, ended_at = ? WHERE id = ?",
            reason, proof.note, now, row.id)
        try database.change("DELETE FROM checkpoint WHERE delivery_id = ?", row.id)
        try database.change("DELETE FROM leftover WHERE delivery_id = ?", row.id)
        if let content = proof.content {
            try database.change(
                "UPDATE file SET content = ? WHERE id = ? AND content IS NULL", content.note, row.fileID)
        }
        let hasReleased = try release(followersOf: row, proof, now, database)
        let hasOthers = try releaseOthers(besides: row, now, database)
        try concludeFile(row.fileID, now, database)
        return hasReleased || hasOthers
    }

    /// Ends a delivery without proof. Remains of its attempts at the destination are recorded as a leftover to abort.
    ///
    /// - Parameter freesKey: nothing is visible under the key (the contract of `.sourceChanged`), so the new content
    ///   may have it once no leftover needs it. Without a leftover a superseded delivery gives it back, unless
    ///   something may be visible after all.
    /// - Returns: whether deliveries that waited for it can continue anyway.
    @discardableResult
    static func endDelivery(
        _ id: Int64, _ state: DeliveryState, code: ErrorCode, reason: String, freesKey: Bool = false, _ now: WallTime,
        _ database: Database
    ) throws -> Bool {
        let row = try delivery(id, database)
        try database.change(
            "UPDATE delivery SET state = ?, code = ?, reason = ?, ended_at = ? WHERE id = ?", state, code,
            reason + (try remainder(of: row, database)), now, id)
        try database.change(
            """
            INSERT OR IGNORE INTO leftover (delivery_id, next_at, frees_key)
            SELECT id, ?, ? AND NOT \(mayBeVisible) FROM delivery
            WHERE id = ? AND EXISTS (
                SELECT 1 FROM checkpoint WHERE delivery_id = delivery.id AND checkpoint.name <> ?)
            """, now, freesKey, id, CheckpointName.mayBeVisible)
        if state == .superseded {
            try database.change(
                """
                UPDATE delivery SET key = NULL
                WHERE id = ? AND NOT EXISTS (SELECT 1 FROM leftover WHERE delivery_id = delivery.id)
                    AND NOT \(mayBeVisible)
                """, id)
        }
        for follower in try DeliveryRow.all(database, "WHERE after_id = ? AND state IN ('ready', 'parked')", id) {
            let passedOn = Self.reason(reason, of: row, for: follower)
            try endDelivery(follower.id, state, code: code, reason: passedOn, freesKey: freesKey, now, database)
        }
        let hasOthers = try releaseOthers(besides: row, now, database)
        let hasTwins = try wakeTwins(of: id, now, database)
        try concludeFile(row.fileID, now, database)
        return hasOthers || hasTwins
    }

    /// Ends a delivery that has waited too long. An unreadable file keeps its cause: it continues once it may be read.
    @discardableResult
    static func expire(_ row: DeliveryRow, _ now: WallTime, _ database: Database) throws -> Bool {
        let isForbidden = row.code == .sourceForbidden
        let cause = isForbidden ? row.reason.map { " (\($0))" } ?? "" : ""
        return try endDelivery(
            row.id, .expired, code: isForbidden ? .sourceForbidden : .expired, reason: ClaimOutcome.tooLate + cause,
            now,
            database)
    }

    /// Gives the file the worst state of its deliveries once none is open. A file of which nothing was sent is a
    /// duplicate, where its route says so.
    static func concludeFile(_ id: Int64, _ now: WallTime, _ database: Database) throws {
        let rows = try database.rows(
            "SELECT state, code, reason FROM delivery WHERE file_id = ?", id
        ) { (state: $0.text(0), code: $0.text(1), reason: $0.text(2)) }
        var state = FileState.combined(rows.compactMap { $0.state.flatMap(DeliveryState.init) })
        // Among delivered ones, only a link has a reason.
        let isLinked = state == .delivered && rows.allSatisfy { $0.reason != nil }
        let cause = state == .delivered && !isLinked ? nil : rows.first { $0.state == state.rawValue }
        if isLinked, try file(id, database).policy.dedupe == .skip { state = .duplicate }
        try database.change(
            "UPDATE file SET state = ?, code = ?, reason = ?, ended_at = ? WHERE id = ?", state, cause?.code,
            cause?.reason, state == .pending ? nil : now, id)
    }
}

/// The common case: the only delivery of a file that belongs to no set, and it arrived. `settleStepwise` needs fifteen
/// statements for each; this needs three for many, and reads no row again: thousands of small files a second end here.
extension Journal {
    /// A plain delivery that arrived, as its rows are to become.
    private struct PlainEnd {
        /// Its place among the ended claims.
        let place: Int
        /// As it was handed out.
        let claim: Claim
        let proof: Proof
        let file: FileRow
        let end: (disposition: String, receipt: [UInt8])?
    }

    /// Settles plain deliveries with proofs exactly as `settleStepwise` would, and changes nothing for all others.
    ///
    /// - Parameter claims: as they were handed out. A file's row is changed only if both rows still say the same, and
    ///   nothing else depends on either. Such are another delivery, a batch, contents to record, notes to forget, and
    ///   work begun by the finisher.
    /// - Returns: those that were settled, by their places in `ended`.
    static func settlePlain(
        _ ended: [EndedClaim], _ claims: [Claim?], _ ending: EndingRule?, _ now: WallTime, _ database: Database
    ) throws -> [Int: SettledFile] {
        let ends = zip(ended, claims).enumerated().compactMap { plainEnd($0, $1.0, $1.1, ending, now) }
        var settled: [Int: SettledFile] = [:]
        for piece in RowsStatement.pieces(of: ends) {
            let changed = try conclude(piece, now, database)
            let done = piece.filter { changed.contains($0.file.id) }
            for some in RowsStatement.pieces(of: done) {
                var values: [any SQLValue] = [now]
                for end in some { values += [end.claim.delivery.id, end.proof.note] as [any SQLValue] }
                try database.change(RowsStatement.deliveredRows.sql(some.count), values)
            }
            try insertReceipts(done.compactMap { end in end.end.map { (end.file, $0.receipt) } }, now, database)
            for one in done {
                settled[one.place] = SettledFile(
                    state: .delivered, hasReleased: false, finish: one.end.map { ($0.disposition, nil) })
            }
        }
        return settled
    }

    private static func plainEnd(
        _ place: Int, _ ended: EndedClaim, _ claim: Claim?, _ ending: EndingRule?, _ now: WallTime
    ) -> PlainEnd? {
        guard case .delivered(let proof) = ended.settlement, !proof.isLink, let claim, claim.original == nil,
            claim.file.policy.dedupe == .off
        else { return nil }
        var (row, file) = (claim.delivery, claim.file)
        (row.state, row.code, row.reason, row.proof, row.endedAt) = (.delivered, nil, nil, proof, now)
        (file.state, file.code, file.reason, file.endedAt) = (.delivered, nil, nil, now)
        file.content = file.content ?? proof.content
        let end = ending?(Job(file: file, deliveries: [row]))
        return PlainEnd(place: place, claim: claim, proof: proof, file: file, end: end)
    }

    /// - Returns: the files that were plain.
    private static func conclude(
        _ ends: ArraySlice<PlainEnd>, _ now: WallTime, _ database: Database
    ) throws -> Set<Int64> {
        var values: [any SQLValue] = [now]
        values.reserveCapacity(1 + RowsStatement.deliveredFiles.columns.count * ends.count)
        for end in ends {
            let file = end.file
            values += [
                file.id, file.root, file.path, try JSON.column(file.labels), try file.policy.note,
                end.claim.file.content?.note, file.content?.note, end.end == nil ? nil : now, end.end?.disposition,
                end.claim.delivery.id, end.claim.delivery.attempts,
            ]
        }
        return Set(try database.rows(RowsStatement.deliveredFiles.sql(ends.count), values) { $0.integer(0) })
    }
}

extension RowsStatement {
    fileprivate static let deliveredFiles = RowsStatement(
        [
            "file", "root", "path", "labels", "policy", "was", "content", "finished", "disposition", "delivery",
            "attempts",
        ], constants: "?1, "
    ) { columns, rows in
        """
        WITH done(now, \(columns)) AS (VALUES \(rows))
        UPDATE file SET state = 'delivered', code = NULL, reason = NULL, ended_at = done.now, content = done.content,
            finished_at = done.finished, disposition = ifnull(done.disposition, file.disposition)
        FROM done
        WHERE file.id = done.file AND file.state = 'pending' AND finished_at IS NULL AND intent IS NULL
            AND batch_id IS NULL AND digests IS NULL AND file.root = done.root AND file.path = done.path
            AND file.labels IS done.labels AND file.policy = done.policy AND file.content IS done.was
            AND EXISTS (
                SELECT 1 FROM delivery
                WHERE id = done.delivery AND state = 'claimed' AND after_id IS NULL AND closes IS NULL
                    AND attempts = done.attempts)
            AND NOT EXISTS (SELECT 1 FROM delivery WHERE file_id = done.file AND id <> done.delivery)
            AND NOT EXISTS (SELECT 1 FROM delivery WHERE after_id = done.delivery)
            AND NOT EXISTS (SELECT 1 FROM checkpoint WHERE delivery_id = done.delivery)
            AND NOT EXISTS (SELECT 1 FROM leftover WHERE delivery_id = done.delivery)
        RETURNING id
        """
    }

    fileprivate static let deliveredRows = RowsStatement(["delivery", "proof"], constants: "?1, ") { columns, rows in
        """
        WITH done(now, \(columns)) AS (VALUES \(rows))
        UPDATE delivery SET state = 'delivered', code = NULL, reason = NULL, proof = done.proof, ended_at = done.now,
            owner = NULL, until = NULL
        FROM done WHERE id = done.delivery
        """
    }
}
