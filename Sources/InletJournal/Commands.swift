internal import GRDB
package import InletCore

/// What a person can do to a file of the queue.
package enum FileAction: Sendable {
    /// Sends what has ended again, and tries now what waits for its time.
    ///
    /// - `uptimes`: the destinations' expiry clocks.
    /// - `returned`: what files are that have been moved back from quarantine (`beginReturn`).
    case retry(uptimes: [String: Int64], returned: [Int64: FileIdentity] = [:])
    case cancel
    case forget

    /// Those of `files`, or beside them, that it brings back from the history.
    fileprivate func wanted(of files: [Int64], _ database: Database) throws -> [Int64] {
        switch self {
        case .retry: try files.flatMap { try Journal.undelivered($0, database) }
        case .cancel: []
        case .forget: files
        }
    }
}

/// What came of an action on a file.
package enum ActionOutcome: Sendable, Equatable {
    case done
    /// It waits, and is tried as soon as its destination takes it.
    case hurried
    /// Why nothing was done: the end of a sentence that begins with the file.
    case skipped(String)
}

extension Journal {
    /// Why nothing is cancelled of a file.
    static let hasEnded = "has ended already"

    /// Does `action` to each file, whole or not at all.
    ///
    /// - Returns: what came of each, in their order, and the deliveries that were running and have been cancelled.
    package func act(
        _ action: FileAction, on files: [Int64], at now: WallTime
    ) async throws(JournalError) -> (outcomes: [ActionOutcome], running: [Int64]) {
        do {
            return try await actAtOnce(action, files, now)
        } catch {
            guard files.count > 1, !error.isOfDisk else { throw error }
            // One that cannot be read must not keep the others.
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
                case .retry(let uptimes, let returned):
                    if try Self.retry(file, uptimes, returned, now, database) { return .done }
                    return try Self.hurry(file, now, database)
                case .cancel:
                    guard let cancelled = try Self.cancel(file, now, database) else { return .skipped(Self.hasEnded) }
                    running += cancelled
                    return .done
                case .forget:
                    return try Self.forget(file, database)
                        ? .done : .skipped("has not ended, or still has an upload to abort")
                }
            }
            return (outcomes, running)
        }
    }

    /// Pulls the time of what waits forward. What a destination works on is asked about in its time.
    private static func hurry(_ file: Int64, _ now: WallTime, _ database: Database) throws -> ActionOutcome {
        try database.change(
            """
            UPDATE delivery SET next_at = ?1
            WHERE file_id = ?2 AND state = 'ready' AND next_at > ?1 AND next_at < \(never)
                AND NOT (waits > 0 AND code IS NULL)
            """, now, file)
        let states = try database.rows(
            "SELECT state, next_at >= \(never), waits > 0 AND code IS NULL FROM delivery WHERE file_id = ?", file
        ) { (state: $0.text(0), isHeld: $0.bool(1), isWorkedOn: $0.bool(2)) }
        let ready = states.filter { $0.state == "ready" }
        if ready.contains(where: { !$0.isHeld && !$0.isWorkedOn }) { return .hurried }
        if states.contains(where: { $0.state == "claimed" }) || ready.contains(where: \.isWorkedOn) {
            return .skipped("is being sent")
        }
        if !ready.isEmpty { return .skipped("waits for another file, or for its unit") }
        if states.contains(where: { $0.state == "parked" }) { return .skipped("waits for a destination's settings") }
        return .skipped("has nothing to send again")
    }

    /// Bounds how long others wait for one transaction.
    private static let hurriedAtOnce = 256

    /// What waits for `destination` after a failed try is due now. - Returns: how many deliveries that were.
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
}

extension Journal {
    /// Ends every open delivery of a file as cancelled, running ones too (their holder is told by the agent).
    /// - Returns: the ids of the deliveries that were running; nil when nothing was open.
    package func cancel(_ file: Int64, at now: WallTime) async throws(JournalError) -> [Int64]? {
        try await commit { try Self.cancel(file, now, $0) }
    }

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

    /// Removes an ended file from the journal; it is a new one if it is seen again, under another key if something may be
    /// under its own. False when it is not ended, or something of it is still to be let go: a running transfer, an upload
    /// to abort.
    package func forget(_ file: Int64) async throws(JournalError) -> Bool {
        try await reviveAhead { _ in [file] }
        return try await commit { try Self.forget(file, $0) }
    }

    static func forget(_ file: Int64, _ database: Database) throws -> Bool {
        try revive(file, database)
        let forgettable = """
            id = ? AND state <> 'pending' AND finished_at IS NOT NULL
                AND NOT EXISTS (
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
        // Companions that have gone their own way since no longer follow it.
        try database.change(
            """
            UPDATE delivery SET after_id = NULL WHERE after_id IN (
                SELECT id FROM delivery WHERE file_id IN (SELECT id FROM file WHERE \(forgettable)))
            """, file)
        let isForgotten = try database.change("DELETE FROM file WHERE \(forgettable)", file) > 0
        try dropEmptyBatch(batch, database)
        return isForgotten
    }

    /// The row of a batch goes with its last file; that of an open unit when it closes.
    static func dropEmptyBatch(_ batch: Int64?, _ database: Database) throws {
        try database.change(
            """
            DELETE FROM batch WHERE id = ? AND closed_at IS NOT NULL
                AND NOT EXISTS (SELECT 1 FROM file WHERE batch_id = batch.id)
                AND NOT EXISTS (SELECT 1 FROM history_file WHERE batch_id = batch.id)
            """, batch)
    }

    /// Writes what became of a delivered object since; the receipt, which says what was delivered, stays. The content of
    /// one that was deleted is new again.
    package func replaceProof(of delivery: Int64, by proof: Proof) async throws(JournalError) {
        try await reviveAhead { try [Self.fileInHistory(of: delivery, $0)].compactMap(\.self) }
        try await commit { database in
            try Self.revive(fileOf: delivery, database)
            try database.change(
                "UPDATE delivery SET proof = ? WHERE id = ? AND state = 'delivered'", try JournalJSON.encode(proof),
                delivery)
            if proof.isDeleted { try Self.forgetContent(of: delivery, database) }
        }
    }

    /// Of a delivery without proof: whether something may be under its key all the same. An attempt that a crash ended
    /// had no time for a note.
    static let mayBeVisible = """
        (delivery.interrupted > 0 OR EXISTS (
            SELECT 1 FROM checkpoint
            WHERE checkpoint.delivery_id = delivery.id AND checkpoint.name = '\(CheckpointNote.mayBeVisible)'))
        """

    /// Pauses a destination until it is resumed, across restarts.
    package func setPaused(_ destination: String, _ paused: Bool) async throws(JournalError) {
        try await change(
            """
            INSERT INTO destination (name, paused) VALUES (?, ?)
            ON CONFLICT(name) DO UPDATE SET paused = excluded.paused
            """, destination, paused)
    }

    /// The destinations that a person paused.
    package func paused() async throws(JournalError) -> Set<String> {
        try await read { Set(try $0.rows("SELECT name FROM destination WHERE paused") { $0.text(0) ?? "" }) }
    }

    /// The destinations' expiry clocks as last written, in milliseconds.
    package func uptimes() async throws(JournalError) -> [String: Int64] {
        try await read { database in
            Dictionary(
                uniqueKeysWithValues: try database.rows("SELECT name, uptime FROM destination") {
                    ($0.text(0) ?? "", $0.integer(1))
                })
        }
    }

    package static let expiredAtOnce = 256

    /// Writes a destination's expiry clock and expires what is over its time, except what the destination works on. At most
    /// `expiredAtOnce` in one transaction, so that nobody waits for long: the caller asks again while it gets as many.
    /// - Returns: the files of the deliveries that expired.
    package func setUptime(
        _ destination: String, _ uptime: Int64, at now: WallTime
    ) async throws(JournalError) -> [Int64] {
        try await commit { database in
            try database.change(
                """
                INSERT INTO destination (name, uptime) VALUES (?, ?)
                ON CONFLICT(name) DO UPDATE SET uptime = max(uptime, excluded.uptime)
                """, destination, uptime)
            let over = try database.integers(
                """
                SELECT id FROM delivery WHERE destination = ? AND state = 'ready' AND expires_at BETWEEN 0 AND ?
                    AND \(DeliveryRow.isNotBeingWorkedOn) AND code IS NOT 'source_gone'
                LIMIT \(Self.expiredAtOnce)
                """, destination, uptime)
            return try over.compactMap { try Self.expire($0, uptime, now, database) }
        }
    }

    /// Ends a delivery whose time is over, unless it was over only while its window was closed.
    /// - Returns: its file.
    private static func expire(_ id: Int64, _ uptime: Int64, _ now: WallTime, _ database: Database) throws -> Int64? {
        let row = try delivery(id, database)
        let file: FileRow?
        do {
            file = try self.file(row.fileID, database)
        } catch  where !(error is DatabaseError) {
            // What cannot be made out of its row has no window that could be closed.
            file = nil
        }
        if let file, try postpone(row, file, uptime: uptime, now, database) { return nil }
        try expire(row, now, database)
        return row.fileID
    }

    /// The earliest expiry of what waits for each of `destinations`, on its expiry clock in milliseconds. What a destination
    /// works on does not expire, nor what waits for its volume.
    package func nextExpiries(of destinations: [String]) async throws(JournalError) -> [String: Int64] {
        try await read { database in
            try destinations.reduce(into: [:]) { expiries, destination in
                expiries[destination] = try database.integer(
                    """
                    SELECT expires_at FROM delivery
                    WHERE destination = ? AND state = 'ready' AND expires_at >= 0
                        AND \(DeliveryRow.isNotBeingWorkedOn) AND code IS NOT 'source_gone'
                    ORDER BY expires_at LIMIT 1
                    """, destination)
            }
        }
    }
}

/// Where the cancelling of everything that waits stands.
package struct ClearingPlace: Sendable, Equatable {
    fileprivate var last: Int64 = 0
    /// The newest file at the beginning; nil = it begins now. What comes later is not meant, and may never end to come.
    fileprivate var end: Int64?

    package init() {}
}

/// What one step of that did.
package struct ClearingStep: Sendable, Equatable {
    /// Files that are cancelled now.
    package var files = 0
    /// Of their deliveries, those that were running.
    package var running: [Int64] = []
    /// How many files nothing was done to, by the reason.
    package var skipped: [String: Int] = [:]
    /// Where to go on; nil when that was all.
    package var next: ClearingPlace?
}

extension Journal {
    /// Bounds how long others wait for one step of `clear`.
    static let clearedAtOnce = 256

    /// Cancels some of the files that wait, in one transaction, and says where to go on: between two steps, everybody else has
    /// a turn. What a step has cancelled stays so if there is no other; who begins again goes on with what is left.
    package func clear(
        from place: ClearingPlace = ClearingPlace(), at now: WallTime
    ) async throws(JournalError) -> ClearingStep {
        let (files, next) = try await read { try Self.waiting(place, $0) }
        if files.isEmpty { return ClearingStep() }
        var step = ClearingStep(next: next)
        let (outcomes, running) = try await act(.cancel, on: files, at: now)
        step.running = running
        for outcome in outcomes {
            // What ended with a file before it, or just now by itself, needs nothing.
            switch outcome {
            case .done, .hurried: step.files += 1
            case .skipped(let reason) where reason == Self.hasEnded: break
            case .skipped(let reason): step.skipped[reason, default: 0] += 1
            }
        }
        return step
    }

    private static func waiting(
        _ place: ClearingPlace, _ database: Database
    ) throws -> (files: [Int64], next: ClearingPlace?) {
        var next = place
        let newest = try next.end ?? database.integer("SELECT ifnull(max(id), 0) FROM file") ?? 0
        let files = try database.integers(
            """
            SELECT id FROM file INDEXED BY file_by_state WHERE state = 'pending' AND id > ? AND id <= ?
            ORDER BY id LIMIT \(clearedAtOnce)
            """, place.last, newest)
        next.end = newest
        next.last = files.last ?? newest
        return (files, files.count < clearedAtOnce ? nil : next)
    }
}
