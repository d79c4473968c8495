internal import GRDB
package import InletCore

/// The undelivered deliveries of a file that a retry sends again.
package struct RetryScope: Sendable {
    /// nil = any. With a destination, the agent itself sends again: each delivery once, until a person does.
    package var destination: String?
    package var states: [DeliveryState]

    package init(destination: String? = nil, states: [DeliveryState]? = nil) {
        (self.destination, self.states) = (destination, states ?? Journal.undone)
    }
}

/// Files that failed while a destination was away.
extension Journal {
    /// Files with a delivery to `destination` that failed between `since` and `time`, from one of `causes`: the next
    /// ones after the file `last`, in their order. Without those that were sent again already, without files of which a
    /// person has cancelled a delivery, and without those of shares, of which the fleet decides.
    package func failedFiles(
        at destination: String, from causes: [ErrorCode], since: WallTime, by time: WallTime, after last: Int64,
        limit: Int
    ) async throws(JournalError) -> [Int64] {
        try await read { database in
            try database.integers(
                """
                SELECT DISTINCT file_id FROM delivery INDEXED BY delivery_failed
                WHERE destination = ? AND state = 'failed' AND file_id > ? AND ended_at >= ? AND ended_at <= ?
                    AND resent = 0 AND code IN (\(causes.literals))
                    AND NOT EXISTS (SELECT 1 FROM file WHERE id = file_id AND \(FilePolicy.hasPlace)) AND NOT EXISTS (
                        SELECT 1 FROM delivery AS other
                        WHERE other.file_id = delivery.file_id AND other.state = 'cancelled')
                ORDER BY file_id LIMIT ?
                """, destination, last, since, time, limit)
        }
    }

    /// The outages after which failed files are still to be sent again, by destination: since when each had not worked.
    /// Those of other destinations than `names` are forgotten.
    package func outages(of names: [String]) async throws(JournalError) -> [String: WallTime] {
        try await commit { database in
            var found: [String: WallTime] = [:]
            _ = try database.rows(
                "SELECT name, value FROM counter WHERE substr(name, 1, ?1) = ?2", Self.outage.utf8.count, Self.outage
            ) { row in
                found[String((row.text(0) ?? "").dropFirst(Self.outage.count))] = row.time(1)
            }
            for name in found.keys where !names.contains(name) {
                try database.change("DELETE FROM counter WHERE name = ?", Self.outage + name)
                found[name] = nil
            }
            return found
        }
    }

    /// Remembers an outage over restarts. - Parameter since: nil when all that failed was sent again.
    package func setOutage(of destination: String, since: WallTime?) async throws(JournalError) {
        let name = Self.outage + destination
        guard let since else {
            try await change("DELETE FROM counter WHERE name = ?", name)
            return
        }
        try await change(
            "INSERT INTO counter (name, value) VALUES (?, ?) ON CONFLICT(name) DO UPDATE SET value = excluded.value",
            name, since)
    }

    private static let outage = "outage:"
}

/// Files on their way back from quarantine.
extension Journal {
    /// SQL for the deliveries of the file ?1 that a retry sends again, to the destination ?2 or any. One that comes
    /// after another is sent only when that one is open, has arrived, or is in the list ?3 of those that will be.
    static func isSentAgain(_ states: [DeliveryState]) -> String {
        """
        file_id = ?1 AND state IN (\(states.literals)) AND (?2 IS NULL OR destination = ?2 AND resent = 0)
            AND NOT EXISTS (SELECT 1 FROM file WHERE id = file_id AND finished_at IS NULL AND intent IS NOT NULL)
            AND iif(after_id IS NULL, key IS NOT NULL, after_id IN (SELECT value FROM json_each(?3)) OR EXISTS (
                SELECT 1 FROM delivery AS leader WHERE leader.id = delivery.after_id
                    AND leader.state IN ('ready', 'claimed', 'parked', 'delivered')))
        """
    }

    /// The quarantined files that a retry of each of `files` sends again: the file itself and its companions. No other
    /// one may leave its quarantine for it.
    package func quarantined(
        byRetryOf files: [Int64], _ scope: RetryScope = RetryScope()
    ) async throws(JournalError) -> [Int64: [FileRow]] {
        try await reviveAhead { database in try files.flatMap { try Self.undelivered($0, database) } }
        return try await read { database in
            try files.reduce(into: [:]) { found, file in
                let sent = try Self.sentAgain(byRetryOf: file, scope, database)
                let lying = try FileRow.all(
                    database,
                    """
                    WHERE id IN (SELECT value FROM json_each(?)) AND finished_at IS NOT NULL AND \(Self.isQuarantined)
                    """, [Self.list(sent)])
                if !lying.isEmpty { found[file] = lying }
            }
        }
    }

    /// The files of which a retry of `file` sends something, by the rules of `retry`.
    private static func sentAgain(
        byRetryOf file: Int64, _ scope: RetryScope, _ database: Database
    ) throws -> Set<Int64> {
        var (files, leaders, waiting) = (Set<Int64>(), Set<Int64>(), [file])
        while let next = waiting.popLast() {
            let sent = try database.integers(
                "SELECT id FROM delivery WHERE \(isSentAgain(scope.states))", next, scope.destination, list(leaders))
            if Set(sent).isSubset(of: leaders) { continue }
            files.insert(next)
            leaders.formUnion(sent)
            leaders.formUnion(
                try database.integers("SELECT id FROM delivery WHERE file_id = ? AND state = 'ready'", next))
            waiting += try database.integers(
                """
                SELECT DISTINCT file_id FROM delivery WHERE state IN (\(scope.states.literals))
                    AND after_id IN (SELECT id FROM delivery WHERE file_id = ?1
                        AND id IN (SELECT value FROM json_each(?2)))
                """, next, list(leaders))
        }
        return files
    }

    private static func list(_ ids: Set<Int64>) -> String { "[\(ids.map(String.init).joined(separator: ","))]" }

    /// Records that files are being moved back from quarantine. Until `retry` or `endReturn`, files that appear under
    /// their names are not new.
    package func beginReturn(of files: [Int64]) async throws(JournalError) {
        try await commit { database in
            for file in files {
                try database.change(
                    "UPDATE file SET intent = x'7B7D' WHERE id = ? AND finished_at IS NOT NULL AND \(Self.isQuarantined)",
                    file)
            }
        }
    }

    /// They are not sent.
    ///
    /// - Parameter returned: the present identities of those that were moved; the others lie in quarantine.
    package func endReturn(
        of files: [Int64], returned: [Int64: FileIdentity] = [:]
    ) async throws(JournalError) {
        try await commit { database in
            for file in files {
                if let identity = returned[file] {
                    try Self.isBack(file, identity, database)
                } else {
                    try database.change(
                        "UPDATE file SET intent = NULL WHERE id = ? AND finished_at IS NOT NULL AND \(Self.isQuarantined)",
                        file)
                }
            }
        }
    }

    /// Files that a process was moving back when it died. Which of them it had moved, their folders show.
    package func interruptedReturns() async throws(JournalError) -> [FileRow] {
        try await read { database in
            try FileRow.all(
                database,
                "WHERE state IN (\(Self.undone.literals)) AND finished_at IS NOT NULL AND intent IS NOT NULL "
                    + "AND \(Self.isQuarantined)", [])
        }
    }

    /// A file that was moved back from quarantine, and is not sent, is the known one at its own place.
    static func isBack(_ file: Int64, _ identity: FileIdentity, _ database: Database) throws {
        try database.change(
            """
            UPDATE file SET intent = NULL, changed = ?, inode = ?, device = ?, disposition = ?
            WHERE id = ? AND finished_at IS NOT NULL AND \(isQuarantined)
            """, identity.changed, identity.inode, identity.device, Disposition.kept, file)
    }

    static let isQuarantined = "disposition LIKE '\(Disposition.quarantined("%"))'"
}
