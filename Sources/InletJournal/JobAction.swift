internal import GRDB
internal import InletCore
internal import SystemPackage

/// Orders that a person can give for a file of the queue.
package enum JobAction: String, Sendable, CaseIterable {
    /// Sends what has ended undelivered again, and tries now what waits.
    case retry
    /// Sends it before the others.
    case first
    case cancel
    /// The file stays where it is, and needs no answer any more.
    case leave
    /// Moves the source to the archive of its watched folder, or to its quarantine.
    case aside
    /// Removes the source once its destinations have proved again that they have its content.
    case remove
    case forget

    /// What to do with the source, for the orders that answer a file that was not sent.
    package var answer: FileAnswer? {
        switch self {
        case .leave: .left
        case .aside: .aside
        case .remove: .removed
        case .retry, .first, .cancel, .forget: nil
        }
    }
}

/// A person's answer about the source of a file that was not sent.
package enum FileAnswer: String, Sendable, Hashable, Codable {
    case left
    case aside
    case removed
}

/// Which orders have an effect on a file: what the API offers, and what the orders themselves ask.
extension Job {
    /// The orders that would do something now.
    package var actions: [JobAction] { JobAction.allCases.filter { refusal(of: $0) == nil } }

    /// Why an order does nothing: the end of a sentence whose subject is the file; nil when it has an effect.
    package func refusal(of action: JobAction) -> String? {
        switch action {
        case .retry: refusalOfRetry
        case .first: refusalOfFirst
        case .cancel: deliveries.contains { !$0.state.isFinal } ? nil : Journal.hasEnded
        case .forget: mayForget ? nil : "has not ended, or still has an upload to abort"
        case .leave, .aside, .remove: action.answer.flatMap(refusal)
        }
    }

    private var mayForget: Bool { file.state.isFinal && file.finishedAt != nil && !isUnderWay && !isWork }

    // MARK: - Sending

    private var refusalOfRetry: String? {
        if file.intent == nil, deliveries.contains(where: canBeSentAgain) { return nil }
        let ready = deliveries.filter { $0.state == .ready }
        if !isAtHand, ready.contains(where: { !$0.isHeld && !$0.isBeingWorkedOn }) { return nil }
        if isAtHand || deliveries.contains(where: { $0.state == .claimed }) || ready.contains(where: \.isBeingWorkedOn)
        {
            return "is being sent"
        }
        if !ready.isEmpty { return Journal.reasonToWait(forKey: asksForKey, forFleet: isWorkAwaited) }
        if deliveries.contains(where: { $0.state == .parked }) { return "waits for a destination's settings" }
        return Journal.hasNothing
    }

    /// A delivery that comes after another is sent again only while that one is open, or has arrived.
    private func canBeSentAgain(_ row: DeliveryRow) -> Bool {
        guard Journal.undone.contains(row.state), !isWork else { return false }
        guard let leader = row.afterID else { return row.key != nil }
        guard let state = leaders[leader] ?? deliveries.first(where: { $0.id == leader })?.state else { return false }
        // It is sent again with its leader, in the same file.
        if leaders[leader] == nil, Journal.undone.contains(state) { return true }
        return !state.isFinal || state == .delivered
    }

    private var refusalOfFirst: String? {
        let waiting = deliveries.filter { $0.state == .ready || $0.state == .parked }
        // A file that a worker has at hand only seems to wait: the order would not reach it.
        if waiting.isEmpty || isAtHand { return file.state.isFinal ? Journal.hasEnded : "is being sent" }
        return waiting.allSatisfy { $0.priority == .high } ? "goes before the others already" : nil
    }

    // MARK: - Answers

    private func refusal(of answer: FileAnswer) -> String? {
        guard file.state == .duplicate || file.state == .rejected else {
            return "is neither a duplicate nor rejected"
        }
        if answer == .left, isOrderPending {
            return file.intent == nil ? nil : "is being put away"
        }
        guard file.finishedAt != nil, Disposition.isKept(file.disposition) else { return "is no longer in its place" }
        if answer == .left { return file.policy.answer == .left ? "was left there already" : nil }
        if file.intent != nil { return "is being put away" }
        if file.volume != nil { return "is on a removable volume, which Inlet leaves as it is" }
        if file.root.isEmpty { return "is in no watched folder" }
        return answer == .removed ? refusalOfRemoval : nil
    }

    /// A person's order to put the file away that was not carried out yet: to leave it withdraws that.
    private var isOrderPending: Bool {
        file.finishedAt == nil && (file.policy.answer == .aside || file.policy.answer == .removed)
    }

    /// Only a file whose bytes can be compared with those of the first file of its content, at each destination.
    private var refusalOfRemoval: String? {
        guard file.state == .duplicate else { return "is not a duplicate: no destination has it" }
        let isProvable = deliveries.allSatisfy { row in
            guard row.state == .delivered, let proof = row.proof, !proof.isDeleted else { return false }
            return proof.method == .registered || proof.isLink && proof.content != nil
        }
        let hasBytes = deliveries.contains { $0.proof?.content != nil && $0.proof?.method != .registered }
        return isProvable && hasBytes ? nil : "has no checksum at its destination to compare with"
    }
}

extension Journal {
    /// States of deliveries that a person can have sent again.
    static let undone: [DeliveryState] = [.failed, .expired, .cancelled, .gone]

    /// The facts of a job that its rows do not show, for its actions.
    static func showActions(of job: inout Job, _ database: Database) throws {
        let own = Set(job.deliveries.map(\.id))
        for row in job.deliveries where undone.contains(row.state) {
            guard let leader = row.afterID, !own.contains(leader) else { continue }
            job.leaders[leader] = try database.row("SELECT state FROM delivery WHERE id = ?", leader) { $0.text(0) }
                .flatMap(\.self).flatMap(DeliveryState.init)
        }
        if job.deliveries.contains(where: \.isHeld) {
            job.asksForKey = try database.exists(
                """
                SELECT 1 FROM delivery JOIN key_request ON delivery_id = delivery.id
                WHERE file_id = ? AND state = 'ready'
                """, job.file.id)
        }
        let session =
            job.file.policy.isOfPlace
            ? try database.integer("SELECT session FROM place_work WHERE file_id = ?", job.file.id) : nil
        (job.isWork, job.isWorkAwaited) = (session != nil, session.map { $0 <= 0 } ?? false)
        // A delivery that arrived left nothing to clean up.
        guard job.file.state.isFinal, job.deliveries.contains(where: { $0.state != .delivered }) else { return }
        job.isUnderWay = try database.exists(
            """
            SELECT 1 FROM delivery LEFT JOIN leftover ON delivery_id = delivery.id
            WHERE file_id = ? AND (delivery_id IS NOT NULL OR owner IS NOT NULL)
            """, job.file.id)
    }

    /// Why a file that is held back is not sent now.
    static func reasonToWait(forKey: Bool, forFleet: Bool) -> String {
        if forFleet { return "waits for its fleet" }
        return forKey ? "waits for its key in the fleet" : "waits for another file, or for its unit"
    }

    /// Sends what waits before the others.
    static func putFirst(_ id: Int64, _ database: Database) throws -> ActionOutcome {
        guard let job = try shown(id, database) else { return .skipped(isUnknown) }
        if let refusal = job.refusal(of: .first) { return .skipped(refusal) }
        try database.change(
            "UPDATE delivery SET priority = ? WHERE file_id = ? AND state IN ('ready', 'parked')", Priority.high.rank,
            id)
        return .done
    }

    /// Notes a person's answer about a source. To move or remove it is the finisher's work, with all of its care.
    static func answer(
        _ answer: FileAnswer, _ id: Int64, _ now: WallTime, _ database: Database
    ) throws -> ActionOutcome {
        try revive(id, database)
        guard let job = try FileRow.one(id, database).map({ try self.job($0, database) }) else {
            return .skipped(isUnknown)
        }
        guard let action = JobAction.allCases.first(where: { $0.answer == answer }) else { return .skipped(isUnknown) }
        if let refusal = job.refusal(of: action) { return .skipped(refusal) }
        try note(answer, of: job.file, database)
        if answer == .left {
            // A withdrawn order ends at the finisher's next turn, with the file in its place.
            try database.change("UPDATE file SET finish_at = ? WHERE id = ? AND finished_at IS NULL", now, id)
            return .done
        }
        // Its batch stays ended: the file itself ends as it did. Files that have just ended do not wait for it.
        try database.change(
            "UPDATE file SET finished_at = NULL, disposition = NULL, finish_at = ? WHERE id = ?", now, id)
        try database.change("DELETE FROM receipt WHERE file_id = ?", id)
        return .done
    }

    /// Also forgets one, when it was carried out or could not be.
    static func note(_ answer: FileAnswer?, of file: FileRow, _ database: Database) throws {
        var policy = file.policy
        policy.answer = answer
        try database.change("UPDATE file SET policy = ? WHERE id = ?", try policy.note, file.id)
    }

    private static let isUnknown = "is not in the journal"
}
