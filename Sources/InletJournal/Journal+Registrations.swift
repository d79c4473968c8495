internal import GRDB
package import InletCore

/// What a delivery is given of others that had to come first.
package struct DeliveryContext: Sendable, Equatable {
    package var upstream: [Upstream] = []
    package var batch: OrderBatch?

    package init(upstream: [Upstream] = [], batch: OrderBatch? = nil) {
        self.upstream = upstream
        self.batch = batch
    }
}

extension Journal {
    /// What has been proved of the deliveries that this one waited for, and the unit that its file belongs to.
    package func context(of delivery: DeliveryRow, in file: FileRow) async throws(JournalError) -> DeliveryContext {
        try await read { database in
            DeliveryContext(
                upstream: try Self.upstream(of: delivery, database),
                batch: try Self.orderBatch(of: delivery, in: file, database))
        }
    }

    /// Lets the time to live of a delivery begin that has waited for others until now; no effect on one that has a time.
    ///
    /// - Parameter time: when it expires, on the destination's uptime clock, in milliseconds.
    package func startExpiry(of delivery: Int64, at time: Int64) async throws(JournalError) {
        try await commit { database in
            try database.run(
                sql: "UPDATE delivery SET expires_at = ? WHERE id = ? AND expires_at IS NULL",
                arguments: [time, delivery])
        }
    }

    private static func upstream(of delivery: DeliveryRow, _ database: Database) throws -> [Upstream] {
        guard let afterID = delivery.afterID else { return [] }
        let leader = try self.delivery(afterID, database)
        guard isRegistration(delivery, of: leader) else { return [] }
        let beside = try Int64.fetchAll(
            database.cachedStatement(
                sql: """
                    SELECT id FROM delivery WHERE after_id = ? AND destination = ? AND file_id <> ?
                        AND state = 'delivered' AND key IS NOT NULL ORDER BY id
                    """), arguments: [afterID, leader.destination, delivery.fileID])
        return try ([leader] + beside.map { try self.delivery($0, database) }).compactMap { stored in
            guard let proof = stored.proof else { return nil }
            let file = try file(stored.fileID, database)
            return Upstream(
                destination: stored.destination, path: file.path, mediaType: file.mediaType, proof: proof)
        }
    }

    // MARK: - In transactions of others

    /// Whether `follower` tells another destination of what `leader` stores, rather than storing a companion beside it.
    static func isRegistration(_ follower: DeliveryRow, of leader: DeliveryRow) -> Bool {
        follower.afterID == leader.id && follower.fileID == leader.fileID
    }

    /// The registrations behind `leader` are due once it is delivered and its companions there have ended, however they did.
    /// - Returns: whether there was any.
    @discardableResult
    static func releaseRegistrations(after leader: Int64, _ now: WallTime, _ database: Database) throws -> Bool {
        try database.run(
            sql: """
                UPDATE delivery SET next_at = ?
                WHERE after_id = ? AND state IN ('ready', 'parked') AND next_at = \(never)
                    AND EXISTS (
                        SELECT 1 FROM delivery AS leader WHERE leader.id = delivery.after_id
                            AND leader.file_id = delivery.file_id AND leader.state = 'delivered')
                    AND NOT EXISTS (
                        SELECT 1 FROM delivery AS other WHERE other.after_id = delivery.after_id
                            AND other.file_id <> delivery.file_id AND other.state IN ('ready', 'claimed', 'parked'))
                """, arguments: [now.milliseconds, leader])
        return database.changesCount > 0
    }

    /// A delivery has ended, in whatever way: what waited for it, without following it, is due if it was the last.
    /// - Returns: whether there was any.
    @discardableResult
    static func releaseOthers(besides row: DeliveryRow, _ now: WallTime, _ database: Database) throws -> Bool {
        let hasRegistration = try row.afterID.map { try releaseRegistrations(after: $0, now, database) } ?? false
        let hasClosing = try releaseClosing(of: row.fileID, row.destination, now, database)
        return hasRegistration || hasClosing
    }

    /// Why a delivery ends with the one that it waits for: a registration says where the file could not be stored.
    static func reason(_ reason: String, of leader: DeliveryRow, for follower: DeliveryRow) -> String {
        isRegistration(follower, of: leader) ? "not stored in '\(leader.destination)': \(reason)" : reason
    }

    /// What a registration that ends without a proof leaves behind, to be put after its reason; empty where nothing was
    /// stored for it.
    static func remainder(of row: DeliveryRow, _ database: Database) throws -> String {
        guard let afterID = row.afterID else { return "" }
        let leader = try delivery(afterID, database)
        guard isRegistration(row, of: leader), leader.state == .delivered, let key = leader.proof?.key else {
            return ""
        }
        return "; the file stays stored in '\(leader.destination)' as \(key)"
    }
}
