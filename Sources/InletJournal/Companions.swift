internal import GRDB
package import InletCore

/// A file that enters the journal with, or after, the file it belongs to.
package struct CompanionAdmission: Sendable {
    package var arrival: FoundFile
    package var companion: Companion
    package var category: String
    package var mediaType: String
    /// The destinations that can store it, with its lane at each.
    package var lanes: [String: Lane]

    package init(
        _ arrival: FoundFile, _ companion: Companion, category: String, mediaType: String, lanes: [String: Lane]
    ) {
        self.arrival = arrival
        self.companion = companion
        self.category = category
        self.mediaType = mediaType
        self.lanes = lanes
    }

    /// Whether its content travels with its file where the companion itself cannot be stored.
    fileprivate var isCarried: Bool { companion.kind == .metadata || companion.kind == .marker }
}

extension Journal {
    /// Durable point 1 for a companion whose file is already in the journal: it goes to the same destinations, after
    /// the file, under a key beside the file's. Where the file has failed, so has the companion.
    ///
    /// - Parameters:
    ///   - main: the file's id; the outcome is `busy` when it is no longer there.
    ///   - durable: receives the outcome, and the file, before the companion can be claimed.
    /// - Returns: `rejected` for metadata that can no longer travel with its file.
    package func admitLate(
        _ companion: CompanionAdmission, main: Int64, uptimes: [String: Int64], at now: WallTime,
        durable: @escaping @Sendable (AdmissionOutcome, _ main: Job?) -> Void = { _, _ in }
    ) async throws(JournalError) -> AdmissionOutcome {
        try await reviveAhead { _ in [main] }
        let (outcome, _) = try await commit(
            { database -> (AdmissionOutcome, Job?) in
                try Self.revive(main, database)
                guard let file = try FileRow.one(main, database) else { return (.busy(id: main), nil) }
                let outcome = try Self.insertCompanion(companion, of: main, isLate: true, uptimes, now, database)
                return (outcome, try Self.job(file, database))
            }, durable: { durable($0.0, $0.1) })
        return outcome
    }

    /// Removes a file that was rejected for its sidecar, with the companions rejected with it, so that they are new
    /// again. Receipts stay.
    ///
    /// - Returns: false while any of them is not disposed of yet, and for every other file.
    package func retake(_ main: Int64) async throws(JournalError) -> Bool {
        try await reviveAhead { try [main, Self.restOfBatch(of: main, $0)].compactMap(\.self) }
        return try await commit { database in
            try Self.revive(main, database)
            // The file may have returned without them, as the newer file of another's path.
            if let companion = try Self.restOfBatch(of: main, database) { try Self.revive(companion, database) }
            let rejected = "state = 'rejected' AND code = ?"
            let code = ErrorCode.badSidecar.rawValue
            guard
                let file = try FileRow.all(database, "WHERE id = ? AND \(rejected)", [main, code])
                    .first
            else { return false }
            let set = """
                state = 'rejected' AND (id = ? OR batch_id = ? AND role IS NOT NULL AND reason = ?)
                """
            let refusal = Self.refusal(file, isLate: false, isTaken: false)
            let isOpen = try database.exists(
                "SELECT 1 FROM file WHERE \(set) AND finished_at IS NULL LIMIT 1", main, file.batchID, refusal)
            if isOpen { return false }
            try database.change("DELETE FROM file WHERE \(set)", main, file.batchID, refusal)
            try Self.dropEmptyBatch(file.batchID, database)
            return true
        }
    }

    static func insertCompanion(
        _ admission: CompanionAdmission, of id: Int64, isLate: Bool, _ uptimes: [String: Int64], _ now: WallTime,
        _ database: Database
    ) throws -> AdmissionOutcome {
        let previous = try remembered(admission.arrival, database)
        if let obstacle = try obstacle(previous, to: admission.arrival, now, database) { return obstacle }
        let batch = try set(of: file(id, database), now, database)
        let main = try job(file(id, database), database)
        let stored = main.deliveries.filter { $0.place != nil && admission.lanes[$0.destination] != nil }
        let carried = main.deliveries.filter { leader in
            admission.isCarried && !isLate && !stored.contains { $0.id == leader.id }
        }
        var new = newFile(admission, main.file, isStored: !stored.isEmpty, now)
        new.batchID = batch.id
        if let reason = refusal(main.file, isLate: isLate, isTaken: !stored.isEmpty || !carried.isEmpty) {
            new.reject(reason)
        }
        let companion = try insert(new, database)
        guard !new.state.isFinal else { return .rejected(id: companion) }
        for leader in stored {
            let key = admission.companion.key(beside: leader.place ?? "", of: main.file.path)
            var delivery = NewDelivery(file: companion, destination: leader.destination, nextAt: never)
            delivery.key = try freeKey(key, leader.destination, database)
            delivery.lane = admission.lanes[leader.destination] ?? .small
            delivery.priority = leader.priority
            // Time during which its file is being sent does not count either.
            let isHeld = batch.isOpen || leader.state != .delivered
            let life = isHeld ? nil : new.policy.retry.expire
            delivery.expiresAt = life.map { (uptimes[leader.destination] ?? 0) + $0.milliseconds }
            try follow(leader, delivery, isHeld: batch.isOpen, now, database)
        }
        for leader in carried {
            var delivery = NewDelivery(file: companion, destination: leader.destination, nextAt: never)
            delivery.priority = leader.priority
            try follow(leader, delivery, isHeld: batch.isOpen, now, database)
        }
        return .admitted(id: companion)
    }

    private static func newFile(
        _ admission: CompanionAdmission, _ main: FileRow, isStored: Bool, _ now: WallTime
    ) -> FileRow {
        var new = FileRow(
            admission.arrival, route: main.route, policy: main.policy, mediaType: admission.mediaType, at: now)
        new.category = admission.category
        new.role = admission.companion.kind.rawValue
        if admission.companion.kind == .derived {
            // It can be made again, and belongs to nobody else.
            (new.policy.onSuccess, new.policy.onFailure) = (.delete, .keep)
            (new.policy.receipts, new.policy.dedupe, new.policy.manifest) = (.none, .off, nil)
            return new
        }
        // Its bytes exist nowhere else.
        if !isStored, new.policy.onSuccess == .delete, admission.arrival.identity.size > 0 {
            new.policy.onSuccess = .archive
        }
        return new
    }

    /// The reason that a companion of `main` is not sent anywhere; nil when it is.
    private static func refusal(_ main: FileRow, isLate: Bool, isTaken: Bool) -> String? {
        let name = DisplayText.escape(FileName(main.path).bytes)
        if main.state == .rejected { return "its file \(name) was rejected: \(main.reason ?? "no reason is known")" }
        if isTaken { return nil }
        return isLate
            ? "it came too late: its file \(name) was taken without it, and no destination stores it"
            : "no destination of its file \(name) stores it"
    }

    /// Inserts a delivery behind `leader`: due when `leader` is delivered, or now if it is already. Where `leader`
    /// ended otherwise, so does this one.
    private static func follow(
        _ leader: DeliveryRow, _ delivery: NewDelivery, isHeld: Bool, _ now: WallTime, _ database: Database
    ) throws {
        var delivery = delivery
        delivery.after = leader.id
        if leader.state == .delivered, !isHeld { delivery.nextAt = now.milliseconds }
        let id = try insert(delivery, database)
        if leader.state.isFinal, leader.state != .delivered {
            try endDelivery(
                id, leader.state, code: leader.code ?? .internalFault, reason: leader.reason ?? "its file was not sent",
                now, database)
        }
    }

    /// Continues the deliveries that waited for `leader`: companions are due, and those that only travel with it have
    /// arrived. A registration also waits for the companions.
    /// - Returns: whether there were any.
    @discardableResult
    static func release(
        followersOf leader: DeliveryRow, _ proof: Proof, _ now: WallTime, _ database: Database
    ) throws -> Bool {
        let followers = try DeliveryRow.all(database, "WHERE after_id = ? AND state IN ('ready', 'parked')", leader.id)
        for follower in followers {
            if follower.key == nil {
                let size = try file(follower.fileID, database).identity.size
                _ = try markDelivered(follower, Proof(key: proof.key, size: size, method: .carried), now, database)
            } else if !isRegistration(follower, of: leader) {
                try database.change("UPDATE delivery SET next_at = ? WHERE id = ?", now, follower.id)
            }
        }
        if followers.contains(where: { isRegistration($0, of: leader) }) {
            try releaseRegistrations(after: leader.id, now, database)
        }
        return !followers.isEmpty
    }

    /// The proofs of the deliveries that this one waited for, and the unit of its file.
    package func context(
        of delivery: DeliveryRow, in file: FileRow
    ) async throws(JournalError) -> (upstream: [UpstreamDelivery], batch: OrderBatch?) {
        try await read { database in
            (try Self.upstream(of: delivery, database), try Self.orderBatch(of: delivery, in: file, database))
        }
    }

    /// Starts the time to live of a delivery that waited for others until now; no effect on one that already has a
    /// time.
    ///
    /// - Parameter time: its expiry on the destination's uptime clock, in milliseconds.
    package func startExpiry(of delivery: Int64, at time: Int64) async throws(JournalError) {
        try await change("UPDATE delivery SET expires_at = ? WHERE id = ? AND expires_at IS NULL", time, delivery)
    }

    private static func upstream(of delivery: DeliveryRow, _ database: Database) throws -> [UpstreamDelivery] {
        guard let afterID = delivery.afterID else { return [] }
        let leader = try self.delivery(afterID, database)
        guard isRegistration(delivery, of: leader) else { return [] }
        let beside = try DeliveryRow.all(
            database,
            """
            WHERE after_id = ? AND destination = ? AND file_id <> ? AND state = 'delivered' AND key IS NOT NULL
            ORDER BY id
            """, afterID, leader.destination, delivery.fileID)
        return try ([leader] + beside).compactMap { stored in
            guard let proof = stored.proof else { return nil }
            let file = try file(stored.fileID, database)
            return UpstreamDelivery(
                destination: stored.destination, path: file.path, mediaType: file.mediaType, proof: proof)
        }
    }

    // MARK: - In transactions of others

    /// Whether `follower` registers what `leader` stores at another destination, rather than storing a companion beside
    /// it.
    static func isRegistration(_ follower: DeliveryRow, of leader: DeliveryRow) -> Bool {
        follower.afterID == leader.id && follower.fileID == leader.fileID
    }

    /// Registrations behind `leader` are due once it is delivered and its companions there have ended in any way.
    /// - Returns: whether there were any.
    @discardableResult
    static func releaseRegistrations(after leader: Int64, _ now: WallTime, _ database: Database) throws -> Bool {
        try database.change(
            """
            UPDATE delivery SET next_at = ?
            WHERE after_id = ? AND state IN ('ready', 'parked') AND next_at = \(never)
                AND EXISTS (
                    SELECT 1 FROM delivery AS leader WHERE leader.id = delivery.after_id
                        AND leader.file_id = delivery.file_id AND leader.state = 'delivered')
                AND NOT EXISTS (
                    SELECT 1 FROM delivery AS other WHERE other.after_id = delivery.after_id
                        AND other.file_id <> delivery.file_id AND other.state IN ('ready', 'claimed', 'parked'))
            """, now, leader) > 0
    }

    /// A delivery has ended in some way: deliveries that waited for it without following it are due if it was the last.
    /// - Returns: whether there were any.
    @discardableResult
    static func releaseOthers(besides row: DeliveryRow, _ now: WallTime, _ database: Database) throws -> Bool {
        let hasRegistration = try row.afterID.map { try releaseRegistrations(after: $0, now, database) } ?? false
        let hasClosing = try releaseClosing(of: row.fileID, row.destination, now, database)
        return hasRegistration || hasClosing
    }

    /// The reason that a delivery ends with the one it waits for: a registration names the destination that could not
    /// store the file.
    static func reason(_ reason: String, of leader: DeliveryRow, for follower: DeliveryRow) -> String {
        isRegistration(follower, of: leader) ? "not stored in '\(leader.destination)': \(reason)" : reason
    }

    /// The objects that stay behind when a registration ends without proof, for the end of its reason; empty where
    /// nothing was stored.
    static func remainder(of row: DeliveryRow, _ database: Database) throws -> String {
        guard let afterID = row.afterID else { return "" }
        let leader = try delivery(afterID, database)
        guard isRegistration(row, of: leader), leader.state == .delivered, let key = leader.proof?.key else {
            return ""
        }
        return "; the file stays stored in '\(leader.destination)' as \(key)"
    }
}
