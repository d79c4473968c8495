internal import GRDB
package import InletCore

/// Orders that a person can give for a file of the queue.
package enum FileAction: Sendable {
    /// Sends ended deliveries again, and tries waiting ones now.
    ///
    /// - `uptimes`: the destinations' expiry clocks.
    /// - `returned`: the identities of files moved back from quarantine (`beginReturn`).
    /// - `scope`: which deliveries; with a destination, those that wait are not hurried.
    case retry(uptimes: [String: Int64], returned: [Int64: FileIdentity] = [:], scope: RetryScope = RetryScope())
    case cancel
    case forget
    case first
    case answer(FileAnswer)

    /// The files, among or beside `files`, that the order brings back from the history.
    fileprivate func wanted(of files: [Int64], _ database: Database) throws -> [Int64] {
        switch self {
        case .retry: try files.flatMap { try Journal.undelivered($0, database) }
        case .cancel, .first: []
        case .forget, .answer: files
        }
    }
}

/// The outcome of an order for one file.
package enum ActionOutcome: Sendable, Equatable {
    case done
    /// It waits, and is tried as soon as its destination accepts files.
    case hurried
    /// The reason that nothing was done: the end of a sentence whose subject is the file.
    case skipped(String)
}

/// The result of one step of cancelling everything that waits. It holds the number of cancelled files, their running
/// deliveries, the number of files left alone by reason, and the files still to do. The last is nil when the work is
/// complete.
package typealias ClearingStep = (files: Int, running: [Int64], skipped: [String: Int], next: Range<Int64>?)

extension Journal {
    /// Why no delivery of a file was cancelled.
    static let hasEnded = "has already ended"
    /// Why nothing of it is sent again.
    static let hasNothing = "has nothing to send again"

    /// Applies `action` to each file, completely or not at all.
    ///
    /// - Returns: the outcomes, in the files' order, and the cancelled deliveries that were running.
    package func act(
        _ action: FileAction, on files: [Int64], at now: WallTime
    ) async throws(JournalError) -> (outcomes: [ActionOutcome], running: [Int64]) {
        do {
            return try await actAtOnce(action, files, now)
        } catch {
            guard files.count > 1, !error.isOfDisk else { throw error }
            // An unreadable file must not stop the others.
            var (outcomes, running): ([ActionOutcome], [Int64]) = ([], [])
            for file in files {
                do {
                    let one = try await actAtOnce(action, [file], now)
                    outcomes += one.outcomes
                    running += one.running
                } catch {
                    if error.isOfDisk { throw error }
                    outcomes.append(.skipped("cannot be read: \(error)"))
                }
            }
            return (outcomes, running)
        }
    }

    private func actAtOnce(
        _ action: FileAction, _ files: [Int64], _ now: WallTime
    ) async throws(JournalError) -> (outcomes: [ActionOutcome], running: [Int64]) {
        try await reviveAhead { try action.wanted(of: files, $0) }
        return try await commit { database in
            var running: [Int64] = []
            let outcomes = try files.map { file -> ActionOutcome in
                switch action {
                case .retry(let uptimes, let returned, let scope):
                    let isSent = try Self.retry(file, uptimes, returned, of: scope, now, database)
                    // A file of it that is not sent lies at its own place now.
                    for (id, identity) in returned { try Self.isBack(id, identity, database) }
                    if isSent { return .done }
                    guard scope.destination == nil else { return .skipped(Self.hasNothing) }
                    return try Self.hurry(file, now, database)
                case .cancel:
                    guard let cancelled = try Self.cancel(file, now, database) else { return .skipped(Self.hasEnded) }
                    running += cancelled
                    return .done
                case .forget:
                    return try Self.forget(file, database)
                        ? .done : .skipped("has not ended, or still has an upload to abort")
                case .first: return try Self.putFirst(file, database)
                case .answer(let answer): return try Self.answer(answer, file, now, database)
                }
            }
            return (outcomes, running)
        }
    }

    /// Makes waiting deliveries due now. A delivery that its destination is working on is asked about at its own time.
    private static func hurry(_ file: Int64, _ now: WallTime, _ database: Database) throws -> ActionOutcome {
        try database.change(
            """
            UPDATE delivery SET next_at = ?1
            WHERE file_id = ?2 AND state = 'ready' AND next_at > ?1 AND next_at < \(never)
                AND NOT (waits > 0 AND code IS NULL)
            """, now, file)
        let states = try database.rows(
            """
            SELECT state, next_at >= \(never), waits > 0 AND code IS NULL,
                EXISTS (SELECT 1 FROM key_request WHERE delivery_id = delivery.id),
                EXISTS (SELECT 1 FROM place_work WHERE file_id = delivery.file_id AND session <= 0)
            FROM delivery WHERE file_id = ?
            """, file
        ) { row in
            (
                state: row.text(0), isHeld: row.bool(1), isWorkedOn: row.bool(2), hasNoKey: row.bool(3),
                isAway: row.bool(4)
            )
        }
        let ready = states.filter { $0.state == "ready" }
        if ready.contains(where: { !$0.isHeld && !$0.isWorkedOn }) { return .hurried }
        if states.contains(where: { $0.state == "claimed" }) || ready.contains(where: \.isWorkedOn) {
            return .skipped("is being sent")
        }
        if !ready.isEmpty {
            return .skipped(
                reasonToWait(forKey: ready.contains(where: \.hasNoKey), forFleet: ready.contains(where: \.isAway)))
        }
        if states.contains(where: { $0.state == "parked" }) { return .skipped("waits for a destination's settings") }
        return .skipped(hasNothing)
    }

    /// Limits how long one transaction makes others wait.
    private static let hurriedAtOnce = 256

    /// Makes deliveries to `destination` that wait after a failed attempt due now. - Returns: their number.
    package func hurry(to destination: String, at now: WallTime) async throws(JournalError) -> Int {
        var total = 0
        while true {
            let count = try await change(
                """
                UPDATE delivery SET next_at = ?2 WHERE id IN (
                    SELECT id FROM delivery INDEXED BY delivery_retrying
                    WHERE destination = ?1 AND state = 'ready' AND code IS NOT NULL AND next_at > ?2
                        AND next_at < \(Self.never) LIMIT \(Self.hurriedAtOnce))
                """, destination, now)
            total += count
            if count < Self.hurriedAtOnce { return total }
        }
    }

    /// Cancels every open delivery of a file, running ones too (the agent informs their holder).
    /// - Returns: the ids of the deliveries that were running; nil when nothing was open.
    static func cancel(_ file: Int64, _ now: WallTime, _ database: Database) throws -> [Int64]? {
        try handOverClosings(of: file, database)
        let open = try database.rows(
            "SELECT id, state = 'claimed' FROM delivery WHERE file_id = ? AND state IN ('ready', 'claimed', 'parked')",
            file
        ) { (id: $0.integer(0), isRunning: $0.bool(1)) }
        if open.isEmpty { return nil }
        for row in open {
            try endDelivery(row.id, .cancelled, code: .cancelled, reason: "cancelled by a person", now, database)
        }
        return open.filter(\.isRunning).map(\.id)
    }

    /// Removes an ended file from the journal. If it is seen again it is new, and gets another key where something may
    /// be under its own. False when it has not ended, or when something of it must still be cleaned up: a running
    /// transfer, an upload to abort.
    static func forget(_ file: Int64, _ database: Database) throws -> Bool {
        try revive(file, database)
        let forgettable = """
            id = ? AND state <> 'pending' AND finished_at IS NOT NULL
                AND NOT EXISTS (SELECT 1 FROM place_work WHERE file_id = file.id) AND NOT EXISTS (
                    SELECT 1 FROM delivery LEFT JOIN leftover ON delivery_id = delivery.id
                    WHERE file_id = file.id AND (delivery_id IS NOT NULL OR owner IS NOT NULL))
            """
        try database.change(
            """
            INSERT OR IGNORE INTO spent_key SELECT destination, key FROM delivery
            WHERE key IS NOT NULL AND (state = 'delivered' OR \(mayBeVisible))
                AND file_id IN (SELECT id FROM file WHERE \(forgettable))
            """, file)
        let batch = try database.integer("SELECT batch_id FROM file WHERE \(forgettable)", file)
        // Companions that were delivered on their own since then no longer follow it.
        try database.change(
            """
            UPDATE delivery SET after_id = NULL WHERE after_id IN (
                SELECT id FROM delivery WHERE file_id IN (SELECT id FROM file WHERE \(forgettable)))
            """, file)
        let isForgotten = try database.change("DELETE FROM file WHERE \(forgettable)", file) > 0
        try dropEmptyBatch(batch, database)
        return isForgotten
    }

    /// A batch's row goes with its last file; an open unit's row goes when it closes.
    static func dropEmptyBatch(_ batch: Int64?, _ database: Database) throws {
        try database.change(
            """
            DELETE FROM batch WHERE id = ? AND closed_at IS NOT NULL
                AND NOT EXISTS (SELECT 1 FROM file WHERE batch_id = batch.id)
                AND NOT EXISTS (SELECT 1 FROM history_file WHERE batch_id = batch.id)
            """, batch)
    }

    /// Records what happened to a delivered object later. The receipt stays, since it records the delivery. A deleted
    /// object's content counts as new again.
    package func replaceProof(of delivery: Int64, by proof: Proof) async throws(JournalError) {
        try await reviveAhead { try [Self.fileInHistory(of: delivery, $0)].compactMap(\.self) }
        try await commit { database in
            if let file = try Self.fileInHistory(of: delivery, database) { try Self.revive(file, database) }
            try database.change(
                "UPDATE delivery SET proof = ? WHERE id = ? AND state = 'delivered'", try JSON.encode(proof),
                delivery)
            if proof.isDeleted { try Self.forgetContent(of: delivery, database) }
        }
    }

    /// Whether something may be under the key of a delivery without proof. An attempt that ended in a crash had no time
    /// for a note.
    static let mayBeVisible = """
        (delivery.interrupted > 0 OR EXISTS (
            SELECT 1 FROM checkpoint
            WHERE checkpoint.delivery_id = delivery.id AND checkpoint.name = '\(CheckpointName.mayBeVisible)'))
        """

    /// Pauses a destination until it is resumed, across restarts.
    package func setPaused(_ destination: String, _ paused: Bool) async throws(JournalError) {
        try await change(
            """
            INSERT INTO destination (name, paused) VALUES (?, ?)
            ON CONFLICT(name) DO UPDATE SET paused = excluded.paused
            """, destination, paused)
    }

    /// The destinations that a person has paused.
    package func paused() async throws(JournalError) -> Set<String> {
        try await read { Set(try $0.rows("SELECT name FROM destination WHERE paused") { $0.text(0) ?? "" }) }
    }

    /// Limits how long one step of `clear` makes others wait.
    static let clearedAtOnce = 256

    /// Cancels some of the waiting files in one transaction, and returns where to continue: others have a turn between
    /// two steps. Each step is complete by itself, so a caller that starts over continues with the rest.
    ///
    /// - Parameter numbers: the files to cancel. A step returns those still left of them: files that arrive later are
    ///   not meant, and might never end.
    package func clear(
        _ numbers: Range<Int64> = anyFile, at now: WallTime
    ) async throws(JournalError) -> ClearingStep {
        let (files, next) = try await read { try Self.waiting(numbers, $0) }
        if files.isEmpty { return (0, [], [:], nil) }
        let (outcomes, running) = try await act(.cancel, on: files, at: now)
        var step: ClearingStep = (0, running, [:], next)
        for outcome in outcomes {
            // It ended with an earlier file, or on its own just now.
            switch outcome {
            case .done, .hurried: step.files += 1
            case .skipped(let reason) where reason == Self.hasEnded: break
            case .skipped(let reason): step.skipped[reason, default: 0] += 1
            }
        }
        return step
    }

    package static let anyFile: Range<Int64> = 0..<Int64.max

    private static func waiting(
        _ numbers: Range<Int64>, _ database: Database
    ) throws -> (files: [Int64], next: Range<Int64>?) {
        let newest = try database.integer("SELECT ifnull(max(id), 0) FROM file") ?? 0
        let end = min(numbers.upperBound, newest + 1)
        let files = try database.integers(
            """
            SELECT id FROM file INDEXED BY file_by_state WHERE state = 'pending' AND id >= ? AND id < ?
            ORDER BY id LIMIT \(clearedAtOnce)
            """, numbers.lowerBound, end)
        guard files.count == clearedAtOnce, let last = files.last else { return (files, nil) }
        return (files, last + 1..<end)
    }

    /// Sends the ended, undelivered deliveries of a file again with fresh attempts, and those of companions that ended
    /// with it. False when there are none, while its source is being disposed of, and for a companion whose file has
    /// failed: retry that file instead.
    ///
    /// - Parameter uptimes: the destinations' expiry clocks; the file's time to live starts again.
    package func retry(_ file: Int64, uptimes: [String: Int64], at now: WallTime) async throws(JournalError) -> Bool {
        try await reviveAhead { try Self.undelivered(file, $0) }
        return try await commit { try Self.retry(file, uptimes, [:], now, $0) }
    }

    /// False when the file lies in quarantine: nothing is under its name to send.
    private static func isInPlace(
        _ file: Int64, _ returned: [Int64: FileIdentity], _ database: Database
    ) throws -> Bool {
        guard let identity = returned[file] else {
            return try !database.exists(
                "SELECT 1 FROM file WHERE id = ? AND finished_at IS NOT NULL AND \(isQuarantined)", file)
        }
        try database.change(
            "UPDATE file SET intent = NULL, changed = ?, inode = ?, device = ? WHERE id = ? AND \(isQuarantined)",
            identity.changed, identity.inode, identity.device, file)
        return true
    }

    /// - Parameter asWork: the fleet has given it again.
    static func retry(
        _ file: Int64, _ uptimes: [String: Int64], _ returned: [Int64: FileIdentity],
        of scope: RetryScope = RetryScope(), asWork: Bool = false, _ now: WallTime, _ database: Database
    ) throws -> Bool {
        try reviveUndelivered(file, database)
        guard try isInPlace(file, returned, database), try asWork || becomesOwn(file, scope, database) else {
            return false
        }
        let sentAgain = try database.change(
            """
            UPDATE delivery SET state = 'ready', attempts = 0, crashes = 0, next_at = ?4, ended_at = NULL,
                started_at = NULL, resent = ?2 IS NOT NULL
            WHERE \(isSentAgain(scope.states))
            """, file, scope.destination, "[]", now)
        guard sentAgain > 0 else { return false }
        try holdBack(file, now, database)
        try renewExpiry(file, uptimes, scope.destination, database)
        try database.change(
            "DELETE FROM leftover WHERE delivery_id IN (SELECT id FROM delivery WHERE file_id = ? AND state = 'ready')",
            file)
        try reopen(file, database)
        try holdClosings(of: file, database)
        try concludeFile(file, now, database)
        let companions = try database.integers(
            """
            SELECT DISTINCT file_id FROM delivery WHERE state IN (\(scope.states.literals))
                AND after_id IN (SELECT id FROM delivery WHERE file_id = ? AND state = 'ready')
            """, file)
        for companion in companions { _ = try retry(companion, uptimes, returned, of: scope, now, database) }
        return true
    }

    /// A delivery made ready again waits for its unit, or for the delivery that it comes after. One that only follows a
    /// delivered file has arrived too.
    private static func holdBack(_ file: Int64, _ now: WallTime, _ database: Database) throws {
        try database.change(
            """
            UPDATE delivery SET next_at = ? WHERE file_id = ? AND state = 'ready' AND (
                EXISTS (SELECT 1 FROM delivery AS leader WHERE leader.id = delivery.after_id
                    AND leader.state <> 'delivered')
                OR EXISTS (SELECT 1 FROM file JOIN batch ON batch.id = batch_id
                    WHERE file.id = delivery.file_id AND closed_at IS NULL))
            """, never, file)
        let leaders = try DeliveryRow.all(
            database,
            """
            WHERE state = 'delivered' AND id IN (
                SELECT after_id FROM delivery WHERE file_id = ? AND key IS NULL AND state = 'ready')
            """, file)
        for leader in leaders {
            if let proof = leader.proof { try release(followersOf: leader, proof, now, database) }
        }
    }

    /// A delivery that is held back has no time to live yet. - Parameter only: nil is every destination.
    private static func renewExpiry(
        _ file: Int64, _ uptimes: [String: Int64], _ only: String?, _ database: Database
    ) throws {
        let life = try self.file(file, database).policy.retry.expire
        let names = try database.rows(
            "SELECT DISTINCT destination FROM delivery WHERE file_id = ?1 AND (?2 IS NULL OR destination = ?2)", file,
            only
        ) { $0.text(0) ?? "" }
        for destination in names {
            let expires = life.map { (uptimes[destination] ?? 0) + $0.milliseconds }
            try database.change(
                """
                UPDATE delivery SET expires_at = iif(next_at >= ?, NULL, ?)
                WHERE file_id = ? AND destination = ? AND state = 'ready' AND key IS NOT NULL
                """, never, expires, file, destination)
        }
    }
}
