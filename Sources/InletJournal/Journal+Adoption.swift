internal import GRDB
package import InletCore

/// A file that was there before its folder was watched, to be known as delivered without being sent (`existing: adopt`).
package struct Adoption: Sendable {
    package enum Outcome: Sendable, Equatable {
        case adopted(id: Int64)
        /// The journal has the file already.
        case known
        /// Another file has its key: what is under it at a destination is not this one.
        case keyTaken
    }

    package var arrival: Arrival
    /// What would have been done with it; nil for a companion, which goes with its file.
    package var plan: Plan?
    package var role: Companion.Kind?
    /// Whether it counts only under the very key of its plan.
    package var needsKey: Bool

    package init(_ arrival: Arrival, plan: Plan?, role: Companion.Kind? = nil, needsKey: Bool = false) {
        self.arrival = arrival
        self.plan = plan
        self.role = role
        self.needsKey = needsKey
    }
}

extension Journal {
    /// Takes files into the journal as delivered and finished, in one transaction. Nobody is told, nothing is ever done to
    /// their sources, and what was adopted proves nothing to others of the same content.
    ///
    /// - Returns: what became of each, in their order.
    package func adopt(
        _ adoptions: [Adoption], at now: WallTime
    ) async throws(JournalError) -> [Adoption.Outcome] {
        try await commit { database in
            try adoptions.map { try Self.adopt($0, now, database) }
        }
    }

    /// Whether a file was adopted rather than sent.
    package func isAdopted(_ id: Int64) async throws(JournalError) -> Bool {
        guard let job = try await job(id), job.file.state == .delivered else { return false }
        return job.deliveries.contains { $0.proof?.method == .adopted }
    }

    private static func adopt(
        _ adoption: Adoption, _ now: WallTime, _ database: Database
    ) throws -> Adoption.Outcome {
        let arrival = adoption.arrival
        if try obstacle(to: arrival, now, database) != nil { return .known }
        let key = adoption.plan?.key ?? ""
        let places = try (adoption.plan?.destinations ?? []).map { ($0, try freeKey(key, $0, database)) }
        if adoption.needsKey, places.contains(where: { $0.1 != key }) { return .keyTaken }
        let id = try insert(newFile(adoption), now, database)
        for (destination, place) in places {
            var delivery = NewDelivery(file: id, destination: destination, nextAt: now.milliseconds)
            delivery.key = place
            let proof = Proof(key: place, size: arrival.identity.size, method: .adopted)
            try database.change(
                "UPDATE delivery SET state = 'delivered', proof = ?, ended_at = ? WHERE id = ?",
                .bytes(try JournalJSON.encode(proof)), .integer(now.milliseconds),
                .integer(try insert(delivery, database)))
        }
        try database.change(
            "UPDATE file SET finished_at = ?, disposition = ? WHERE id = ?", .integer(now.milliseconds),
            .text(Disposition.kept), .integer(id))
        return .adopted(id: id)
    }

    private static func newFile(_ adoption: Adoption) -> NewFile {
        let policy = FilePolicy(onSuccess: .keep, onFailure: .keep, retry: adoption.plan?.retry ?? RetryPolicy())
        var file = NewFile(adoption.arrival, route: adoption.plan?.route, policy: policy)
        file.state = .delivered
        (file.category, file.mediaType) = (adoption.plan?.category, adoption.plan?.mediaType)
        file.role = adoption.role?.rawValue
        file.labels = adoption.plan?.labels ?? [:]
        return file
    }
}
