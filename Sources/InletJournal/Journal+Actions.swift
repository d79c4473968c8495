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
                    guard let cancelled = try Self.cancel(file, now, database) else {
                        return .skipped(Self.hasEnded)
                    }
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
            """, .integer(now.milliseconds), .integer(file))
        let states = try database.rows(
            "SELECT state, next_at >= \(never), waits > 0 AND code IS NULL FROM delivery WHERE file_id = ?",
            .integer(file)
        ) { (state: $0.text(0), isHeld: $0.integer(1) != 0, isWorkedOn: $0.integer(2) != 0) }
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
            let count = try await commit { database in
                try database.change(
                    """
                    UPDATE delivery SET next_at = ?2 WHERE id IN (
                        SELECT id FROM delivery INDEXED BY delivery_retrying
                        WHERE destination = ?1 AND state = 'ready' AND code IS NOT NULL AND next_at > ?2
                            AND next_at < \(Self.never) LIMIT \(Self.hurriedAtOnce))
                    """, .text(destination), .integer(now.milliseconds))
            }
            total += count
            if count < Self.hurriedAtOnce { return total }
        }
    }
}
