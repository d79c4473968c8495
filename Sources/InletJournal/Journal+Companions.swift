internal import Foundation
internal import GRDB
package import InletCore

/// A file that is taken into the journal with, or after, the file it belongs to.
package struct CompanionAdmission: Sendable {
    package var arrival: Arrival
    package var companion: Companion
    package var category: String
    package var mediaType: String
    /// The destinations that can store it, with its lane there.
    package var lanes: [String: Lane]

    package init(
        _ arrival: Arrival, _ companion: Companion, category: String, mediaType: String, lanes: [String: Lane]
    ) {
        self.arrival = arrival
        self.companion = companion
        self.category = category
        self.mediaType = mediaType
        self.lanes = lanes
    }

    /// Whether what it says goes with its file where it cannot be stored itself.
    fileprivate var isCarried: Bool { companion.kind == .metadata || companion.kind == .marker }
}

extension Journal {
    /// Durable point 1 for a companion whose file is in the journal already: it goes to the same destinations, after the
    /// file, under a key beside its. When the file has failed there, so has the companion.
    ///
    /// - Parameters:
    ///   - main: the file's id; `busy` when it is no longer there.
    ///   - durable: told of the outcome, and of the file, before the companion can be claimed.
    /// - Returns: `rejected` for metadata whose values can no longer go with its file.
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

    /// Takes a file that was rejected for its sidecar out of the journal, with the companions that were rejected with it, so
    /// that they are new again. Receipts stay.
    ///
    /// - Returns: false while any of them is not disposed of yet, and for every other file.
    package func retake(_ main: Int64) async throws(JournalError) -> Bool {
        try await reviveAhead { try [main, Self.restOfBatch(of: main, $0)].compactMap(\.self) }
        return try await commit { database in
            try Self.revive(main, database)
            // It may have come back without them, as what is newer under the path of another.
            if let companion = try Self.restOfBatch(of: main, database) { try Self.revive(companion, database) }
            let rejected = "state = 'rejected' AND code = ?"
            let code = ErrorCode.badSidecar.rawValue
            guard
                let file = try FileRow.all(database, "WHERE id = ? AND \(rejected)", [.integer(main), .text(code)])
                    .first
            else {
                return false
            }
            let set = """
                state = 'rejected' AND (id = ? OR batch_id = ? AND role IS NOT NULL AND reason = ?)
                """
            let members: StatementArguments = [main, file.batchID, Self.refusal(file, isLate: false, isTaken: false)]
            let open = try Int.fetchOne(
                database, sql: "SELECT 1 FROM file WHERE \(set) AND finished_at IS NULL LIMIT 1", arguments: members)
            guard open == nil else { return false }
            try database.run(sql: "DELETE FROM file WHERE \(set)", arguments: members)
            try Self.dropEmptyBatch(file.batchID, database)
            return true
        }
    }

    static func insertCompanion(
        _ admission: CompanionAdmission, of id: Int64, isLate: Bool, _ uptimes: [String: Int64], _ now: WallTime,
        _ database: Database
    ) throws -> AdmissionOutcome {
        if let obstacle = try obstacle(to: admission.arrival, now, database) { return obstacle }
        let batch = try set(of: file(id, database), now, database)
        let main = try job(file(id, database), database)
        let stored = main.deliveries.filter { $0.place != nil && admission.lanes[$0.destination] != nil }
        let carried = main.deliveries.filter { leader in
            admission.isCarried && !isLate && !stored.contains { $0.id == leader.id }
        }
        var new = newFile(admission, main.file, isStored: !stored.isEmpty)
        new.batch = batch.id
        if let reason = refusal(main.file, isLate: isLate, isTaken: !stored.isEmpty || !carried.isEmpty) {
            new.reject(reason)
        }
        let companion = try insert(new, now, database)
        guard !new.state.isFinal else { return .rejected(id: companion) }
        for leader in stored {
            let key = admission.companion.key(beside: leader.place ?? "", of: main.file.path)
            var delivery = NewDelivery(file: companion, destination: leader.destination, nextAt: never)
            delivery.key = try freeKey(key, leader.destination, database)
            delivery.lane = admission.lanes[leader.destination] ?? .small
            delivery.priority = leader.priority
            // How long its file is on its way is not its own fault, either.
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

    private static func newFile(_ admission: CompanionAdmission, _ main: FileRow, isStored: Bool) -> NewFile {
        var new = NewFile(admission.arrival, route: main.route, policy: main.policy)
        new.category = admission.category
        new.mediaType = admission.mediaType
        new.role = admission.companion.kind.rawValue
        if admission.companion.kind == .derived {
            // It can be made again; and it is nobody's but ours.
            (new.policy.onSuccess, new.policy.onFailure) = (.delete, .keep)
            (new.policy.receipts, new.policy.dedupe, new.policy.manifest) = (.none, .off, nil)
            return new
        }
        // Its bytes are nowhere else.
        if !isStored, new.policy.onSuccess == .delete, admission.arrival.identity.size > 0 {
            new.policy.onSuccess = .archive
        }
        return new
    }

    /// Why a companion of `main` goes nowhere; nil when it does not.
    private static func refusal(_ main: FileRow, isLate: Bool, isTaken: Bool) -> String? {
        let name = DisplayText.escape(FileName(main.path).bytes)
        if main.state == .rejected { return "its file \(name) was rejected: \(main.reason ?? "no reason is known")" }
        if isTaken { return nil }
        return isLate
            ? "it came too late: its file \(name) was taken without it, and no destination stores it"
            : "no destination of its file \(name) stores it"
    }

    /// Inserts a delivery behind `leader`: due when that is delivered, or now when it is; ended when it ended otherwise.
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

    /// What waits for `leader` goes on: companions are due, and what only goes with it has arrived. A registration waits for
    /// the companions, too.
    /// - Returns: whether there was any.
    @discardableResult
    static func release(
        followersOf leader: DeliveryRow, _ proof: Proof, _ now: WallTime, _ database: Database
    ) throws -> Bool {
        let followers = try database.rows(
            "SELECT \(DeliveryRow.columns) FROM delivery WHERE after_id = ? AND state IN ('ready', 'parked')",
            .integer(leader.id)
        ) { try DeliveryRow($0) }
        for follower in followers {
            if follower.key == nil {
                let size = try file(follower.fileID, database).identity.size
                _ = try markDelivered(follower, Proof(key: proof.key, size: size, method: .carried), now, database)
            } else if !isRegistration(follower, of: leader) {
                try database.run(
                    sql: "UPDATE delivery SET next_at = ? WHERE id = ?", arguments: [now.milliseconds, follower.id])
            }
        }
        if followers.contains(where: { isRegistration($0, of: leader) }) {
            try releaseRegistrations(after: leader.id, now, database)
        }
        return !followers.isEmpty
    }
}
