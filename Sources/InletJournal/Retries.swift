internal import GRDB
package import InletCore

extension Journal {
    /// Sends the ended, undelivered deliveries of a file again, with fresh attempts, and those of its companions that
    /// ended with it. False when it has none, while its source is being disposed of, and for a companion whose file has
    /// failed: that one is to be sent again.
    ///
    /// - Parameter uptimes: the destinations' expiry clocks; the file's time to live begins anew.
    package func retry(_ file: Int64, uptimes: [String: Int64], at now: WallTime) async throws(JournalError) -> Bool {
        try await reviveAhead { try Self.undelivered(file, $0) }
        return try await commit { try Self.retry(file, uptimes, [:], now, $0) }
    }

    /// The files that a retry of each of `files` sends again, and that lie in quarantine: itself, and what goes with it.
    package func quarantined(byRetryOf files: [Int64]) async throws(JournalError) -> [Int64: [FileRow]] {
        try await reviveAhead { database in try files.flatMap { try Self.undelivered($0, database) } }
        return try await read { database in
            try files.reduce(into: [:]) { found, file in
                let lying = try FileRow.all(
                    database,
                    """
                    WHERE id IN (
                        SELECT file_id FROM delivery WHERE state IN (\(Self.ended)) AND (file_id = ?1
                            OR after_id IN (SELECT id FROM delivery WHERE file_id = ?1)))
                        AND finished_at IS NOT NULL AND \(Self.isQuarantined)
                    """, [file])
                if !lying.isEmpty { found[file] = lying }
            }
        }
    }

    /// Takes note that files are being moved back from quarantine to be sent again: what appears under their names until
    /// `retry` or `endReturn` is no new file.
    package func beginReturn(of files: [Int64]) async throws(JournalError) {
        try await noteReturn(of: files, "x'7B7D'")
    }

    /// They have not been moved.
    package func endReturn(of files: [Int64]) async throws(JournalError) { try await noteReturn(of: files, "NULL") }

    private func noteReturn(of files: [Int64], _ intent: String) async throws(JournalError) {
        try await commit { database in
            for file in files {
                try database.change(
                    "UPDATE file SET intent = \(intent) WHERE id = ? AND finished_at IS NOT NULL AND \(Self.isQuarantined)",
                    file)
            }
        }
    }

    /// Who was moving files back from quarantine has died: what is under their names now is looked at as what it is.
    static func endReturns(_ database: Database) throws {
        try database.change(
            "UPDATE file SET intent = NULL WHERE state IN (\(ended)) AND finished_at IS NOT NULL AND intent IS NOT NULL "
                + "AND \(isQuarantined)")
    }

    private static let isQuarantined = "disposition LIKE '\(Disposition.quarantined("%"))'"

    /// False when the file lies in quarantine: there is nothing to send under its name.
    private static func isInPlace(
        _ file: Int64, _ returned: [Int64: FileIdentity], _ database: Database
    ) throws -> Bool {
        guard let identity = returned[file] else {
            return try database.row(
                "SELECT 1 FROM file WHERE id = ? AND finished_at IS NOT NULL AND \(isQuarantined)", file
            ) { _ in false } ?? true
        }
        try database.change(
            "UPDATE file SET intent = NULL, changed = ?, inode = ?, device = ? WHERE id = ? AND \(isQuarantined)",
            identity.changed, identity.inode, identity.device, file)
        return true
    }

    private static let undone: [DeliveryState] = [.failed, .expired, .cancelled, .gone]
    private static let ended = list(undone)

    private static func list(_ states: [DeliveryState]) -> String {
        states.map { "'\($0.rawValue)'" }.joined(separator: ", ")
    }

    /// - Parameter states: those of the deliveries that are sent again.
    static func retry(
        _ file: Int64, _ uptimes: [String: Int64], _ returned: [Int64: FileIdentity],
        of states: [DeliveryState] = undone, _ now: WallTime, _ database: Database
    ) throws -> Bool {
        let ended = list(states)
        try reviveUndelivered(file, database)
        guard try isInPlace(file, returned, database) else { return false }
        let sentAgain = try database.change(
            """
            UPDATE delivery SET state = 'ready', attempts = 0, crashes = 0, next_at = ?, ended_at = NULL,
                started_at = NULL
            WHERE file_id = ? AND state IN (\(ended))
                AND NOT EXISTS (SELECT 1 FROM file WHERE id = file_id AND intent IS NOT NULL)
                AND iif(after_id IS NULL, key IS NOT NULL, EXISTS (
                    SELECT 1 FROM delivery AS leader WHERE leader.id = delivery.after_id
                        AND leader.state IN ('ready', 'claimed', 'parked', 'delivered')))
            """, now, file)
        guard sentAgain > 0 else { return false }
        try holdBack(file, now, database)
        try renewExpiry(file, uptimes, database)
        try database.change(
            "DELETE FROM leftover WHERE delivery_id IN (SELECT id FROM delivery WHERE file_id = ?)", file)
        try reopen(file, database)
        try holdClosings(of: file, database)
        try concludeFile(file, now, database)
        let companions = try database.integers(
            """
            SELECT DISTINCT file_id FROM delivery WHERE state IN (\(ended))
                AND after_id IN (SELECT id FROM delivery WHERE file_id = ? AND state = 'ready')
            """, file)
        for companion in companions { _ = try retry(companion, uptimes, returned, of: states, now, database) }
        return true
    }

    /// What has just been made ready waits again for its unit, or for the delivery that it comes after; and what only goes
    /// with a delivery that has arrived has arrived too.
    private static func holdBack(_ file: Int64, _ now: WallTime, _ database: Database) throws {
        try database.change(
            """
            UPDATE delivery SET next_at = ? WHERE file_id = ? AND state = 'ready' AND (
                EXISTS (SELECT 1 FROM delivery AS leader WHERE leader.id = delivery.after_id
                    AND leader.state <> 'delivered')
                OR EXISTS (SELECT 1 FROM file JOIN batch ON batch.id = batch_id
                    WHERE file.id = delivery.file_id AND closed_at IS NULL))
            """, never, file)
        let leaders = try database.integers(
            """
            SELECT leader.id FROM delivery JOIN delivery AS leader ON leader.id = delivery.after_id
            WHERE delivery.file_id = ? AND delivery.key IS NULL AND delivery.state = 'ready'
                AND leader.state = 'delivered'
            """, file)
        for leader in try leaders.map({ try delivery($0, database) }) {
            if let proof = leader.proof { try release(followersOf: leader, proof, now, database) }
        }
    }

    /// What is held back has no time to live yet.
    private static func renewExpiry(_ file: Int64, _ uptimes: [String: Int64], _ database: Database) throws {
        let life = try self.file(file, database).policy.retry.expire
        let names = try database.rows("SELECT DISTINCT destination FROM delivery WHERE file_id = ?", file) {
            $0.text(0) ?? ""
        }
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
