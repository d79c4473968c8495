internal import GRDB
package import InletCore
package import SystemPackage

/// The delivery that brought a content to a destination first.
package struct Original: Sendable, Equatable {
    package var job: Int64
    /// The whole path of its file, as it was admitted.
    package var path: FilePath
    package var proof: Proof

    /// The proof for a file of the same content: where it is there already, and whose work that was. What lets a person
    /// undo the delivery stays with the first.
    package var link: Proof {
        var link = proof
        link.secrets = nil
        link.details = (proof.details ?? [:]).merging([Proof.sameAsName: String(job)]) { $1 }
        return link
    }
}

/// What is asked of the journal about a content: has it been brought to these destinations?
package struct ContentQuery: Sendable, Codable {
    package var digest: Digest
    package var size: Int64
    package var route: String
    package var fields: [String: String]
    package var destinations: [String]

    package init(digest: Digest, size: Int64, route: String, fields: [String: String], destinations: [String]) {
        self.digest = digest
        self.size = size
        self.route = route
        self.fields = fields
        self.destinations = destinations
    }
}

extension Journal {
    /// A content that a delivery is to bring to a destination.
    struct DeliveryContent {
        var delivery: Int64?
        var destination: String
        var digest: [UInt8]
        var size: Int64
        var route: String?
        var fields: [String: String]

        init(_ question: ContentQuery, _ destination: String) {
            self.destination = destination
            (digest, size, route) = (question.digest.bytes, question.size, question.route)
            fields = question.fields
        }

        /// nil where the content is not known.
        init?(_ file: FileRow, _ row: DeliveryRow) {
            guard let digest = file.digests.sha256, row.closes == nil else { return nil }
            (delivery, destination, fields) = (row.id, row.destination, row.fields)
            (self.digest, size, route) = (digest.bytes, file.identity.size, file.route)
        }

        /// nil where the content is not known, or to be sent whoever has it.
        init?(_ plan: Plan, _ step: DeliverySteps.Step, size: Int64) {
            guard plan.dedupe.covers(isRegistration: step.after != nil), let digest = plan.digests.sha256 else {
                return nil
            }
            (destination, self.digest, self.size) = (step.destination, digest.bytes, size)
            (route, fields) = (plan.route, plan.with)
        }
    }
}

extension DuplicateRule {
    /// Whether a delivery asks for the content first. What is registered under `link` is registered again: it is
    /// another name for the same bytes.
    func covers(isRegistration: Bool) -> Bool { self == .skip || self == .link && !isRegistration }
}

extension [Digest] {
    package var sha256: Digest? { first { $0.algorithm == .sha256 } }
}

/// Contents by their SHA-256. The row of a content and a destination names the delivery that brings it there: from its
/// claim where the route asks for it (`dedupe:`), else from its proof. Only that delivery's state says whether it did.
extension Journal {
    /// How a content stands at a destination, for a delivery that is to bring it there.
    enum ContentStatus: Equatable {
        /// Nobody has brought it, or brings it now.
        case free
        /// It was brought for another purpose: another route, with other fields.
        case apart
        case brought(Original)
        /// Another delivery is at it; look again then.
        case underWay(job: Int64, lookAt: WallTime)
    }

    /// How long a delivery waits for a twin that is being sent, if nothing wakes it.
    private static let patience = Duration.seconds(30)
    /// A twin that is only tried again after this is not waited for.
    private static let shortWait = Duration.seconds(60)

    /// The deliveries that brought a content, by destination.
    package func originals(_ question: ContentQuery) async throws(JournalError) -> [String: Original] {
        try await read { database in
            try question.destinations.reduce(into: [:]) { found, destination in
                // The time decides only about what is under way.
                let now = WallTime(milliseconds: 0)
                let status = try Self.status(of: DeliveryContent(question, destination), at: now, database)
                if case .brought(let original) = status { found[destination] = original }
            }
        }
    }

    // MARK: - In transactions of others

    static func status(of wanted: DeliveryContent, at now: WallTime, _ database: Database) throws -> ContentStatus {
        // The history may still have an earlier delivery of a content that was delivered again since.
        try status(of: wanted, at: now, in: .current, database)
            ?? status(of: wanted, at: now, in: .history, database) ?? .free
    }

    private static func status(
        of wanted: DeliveryContent, at now: WallTime, in tables: JournalTables, _ database: Database
    ) throws -> ContentStatus? {
        let contents = tables == .current ? "content" : "history_content AS content"
        let destination = tables == .current ? "?" : "(SELECT id FROM history_word WHERE word = ?)"
        return try database.row(
            """
            SELECT \(DeliveryRow.qualified), file.route, file.root, file.path, file.size
            FROM \(contents) CROSS JOIN \(tables.deliveries) ON delivery.id = content.delivery_id
                CROSS JOIN \(tables.files) ON file.id = delivery.file_id
            WHERE content.destination = \(destination) AND content.digest = ?
            """, wanted.destination, wanted.digest
        ) { row -> ContentStatus in
            let first = DeliveryRow.width
            // One that cannot be read proves nothing.
            guard let holder = try? DeliveryRow(row), row.integer(first + 3) == wanted.size else { return .free }
            if holder.id == wanted.delivery { return .free }
            let isSamePurpose = row.text(first) == wanted.route || holder.fields == wanted.fields
            if let proof = holder.proof, try !isHere(proof, wanted.destination, database) { return .free }
            let path = row.path(first + 1).pushing(row.path(first + 2))
            let found = status(of: holder, path, now)
            return isSamePurpose || found == .free ? found : .apart
        }
    }

    private static func status(of holder: DeliveryRow, _ path: FilePath, _ now: WallTime) -> ContentStatus {
        switch holder.state {
        case .delivered:
            guard let proof = holder.proof, !proof.isDeleted else { return .free }
            return .brought(Original(job: holder.fileID, path: path, proof: proof))
        case .claimed: return .underWay(job: holder.fileID, lookAt: now + patience)
        case .ready:
            if holder.hasBegun { return .underWay(job: holder.fileID, lookAt: now + patience) }
            // One whose file is out of reach may be so for days.
            guard holder.code != .sourceGone, holder.nextAt <= now + shortWait else { return .free }
            return .underWay(job: holder.fileID, lookAt: max(holder.nextAt, now) + .seconds(1))
        default: return .free
        }
    }

    /// Decides what a claim does about a content that its route wants only once, before it is claimed. One that has left
    /// something at the destination goes on with it.
    ///
    /// No two wait for each other: a delivery waits for the one that the content's row names, and that one goes when it is due.
    ///
    /// - Returns: who has brought the content, so that nothing is sent, and whether the delivery waits for a twin. With neither
    ///   it is sent itself, and twins wait for it from now on.
    static func deduplicate(_ claim: Claim, _ now: WallTime, _ database: Database) throws -> (
        original: Original?, waits: Bool
    ) {
        let (file, row) = (claim.file, claim.delivery)
        guard file.policy.dedupe.covers(isRegistration: row.afterID != nil), claim.checkpoint.isEmpty, row.waits == 0,
            let wanted = DeliveryContent(file, row)
        else { return (nil, false) }
        try database.change("DELETE FROM twin WHERE delivery_id = ?", row.id)
        // What is stored anew is registered anew.
        if let leader = row.afterID, try delivery(leader, database).proof?.sameAs == nil { return (nil, false) }
        switch try status(of: wanted, at: now, database) {
        case .apart: return (nil, false)
        case .free:
            try hold(wanted, by: row.id, database)
            return (nil, false)
        case .brought(let original): return (original, false)
        case .underWay(let job, let time):
            try database.change(
                "UPDATE delivery SET next_at = ?, code = NULL, reason = ? WHERE id = ?", time,
                "waits: job \(job) sends the same content now", row.id)
            try database.change(
                """
                INSERT OR REPLACE INTO twin (delivery_id, leader_id)
                SELECT ?, delivery_id FROM content WHERE destination = ? AND digest = ?
                """, row.id, wanted.destination, wanted.digest)
            return (nil, true)
        }
    }

    private static func hold(_ wanted: DeliveryContent, by delivery: Int64, _ database: Database) throws {
        try database.change(
            "INSERT OR REPLACE INTO content (destination, digest, delivery_id) VALUES (?, ?, ?)",
            wanted.destination, wanted.digest, delivery)
    }

    /// Remembers that a delivery has brought its content, unless another one has.
    static func rememberContent(
        of file: FileRow, _ row: DeliveryRow, _ proof: Proof, _ now: WallTime, _ database: Database
    ) throws {
        guard proof.sameAs == nil, !proof.isDeleted, proof.method != .carried, let wanted = DeliveryContent(file, row)
        else {
            return
        }
        switch try status(of: wanted, at: now, database) {
        case .brought, .apart: return
        case .free, .underWay: try hold(wanted, by: row.id, database)
        }
    }

    /// The twins that waited for a delivery look again.
    /// - Returns: whether there was any.
    @discardableResult
    static func wakeTwins(of leader: Int64, _ now: WallTime, _ database: Database) throws -> Bool {
        let woken = try database.change(
            """
            UPDATE delivery SET next_at = ?, reason = NULL
            WHERE id IN (SELECT delivery_id FROM twin WHERE leader_id = ?) AND state = 'ready' AND next_at < ?
            """, now, leader, never)
        try database.change("DELETE FROM twin WHERE leader_id = ?", leader)
        return woken > 0
    }

    /// Forgets that a delivery, or the one that it is a link to, brought its content: it was deleted at the destination, so the
    /// next file of that content is sent.
    static func forgetContent(of id: Int64, _ database: Database) throws {
        let row = try delivery(id, database)
        try database.change("DELETE FROM content WHERE delivery_id = ?", id)
        guard row.proof?.sameAs != nil, let wanted = DeliveryContent(try file(row.fileID, database), row) else {
            return
        }
        try database.change(
            "DELETE FROM content WHERE destination = ? AND digest = ?", wanted.destination, wanted.digest
        )
        try database.change(
            """
            DELETE FROM history_content
            WHERE destination = (SELECT id FROM history_word WHERE word = ?) AND digest = ?
            """, wanted.destination, wanted.digest)
    }

    /// Why a delivery is delivered that sent nothing; nil for one that did.
    static func linkReason(_ proof: Proof, _ database: Database) throws -> String? {
        guard let job = proof.sameAs else { return nil }
        let first = try FileRow.one(job, database)
        let path = first.map { ", \($0.fullPath.display)" } ?? ""
        return "same content as job \(job)\(path), which is there as \(DisplayText.escape(proof.key))"
    }
}

/// A destination is its address, not its name: what was proved at one endpoint and bucket is not claimed for another.
extension Journal {
    /// Takes note of where destinations are from now on.
    ///
    /// - Parameter addresses: by the names of destinations (`Destination.address`).
    /// - Returns: the names of those that were elsewhere before.
    @discardableResult
    package func setAddresses(_ addresses: [String: String]) async throws(JournalError) -> [String] {
        try await commit { database in
            var moved: [String] = []
            for (name, address) in addresses.sorted(by: { $0.key < $1.key }) {
                let before =
                    try database.row("SELECT address FROM destination WHERE name = ?", name) { $0.text(0) } ?? nil
                if before == address { continue }
                if before != nil { moved.append(name) }
                try database.change(
                    """
                    INSERT INTO destination (name, address, first_address) VALUES (?1, ?2, ?2)
                    ON CONFLICT(name) DO UPDATE SET address = ?2, first_address = ifnull(first_address, ?2)
                    """, name, address)
            }
            return moved
        }
    }

    /// Whether `proof` is of where the destination is now.
    static func isHere(_ proof: Proof, _ destination: String, _ database: Database) throws -> Bool {
        let known = try database.row(
            "SELECT address, first_address FROM destination WHERE name = ? AND address IS NOT NULL", destination
        ) { (now: $0.text(0), first: $0.text(1)) }
        guard let known else { return true }
        return (proof.address ?? known.first) == known.now
    }

    /// Of the deliveries of `job`, those that are proved where their destinations are now.
    package func standing(of job: Job) async throws(JournalError) -> Set<Int64> {
        try await read { database in
            try job.deliveries.reduce(into: []) { here, row in
                guard let proof = row.proof, !proof.isDeleted else { return }
                if try Self.isHere(proof, row.destination, database) { here.insert(row.id) }
            }
        }
    }

    /// Sends deliveries of a file again that have arrived, under the keys that they have: elsewhere, or because a person wants it.
    ///
    /// - Parameter uptimes: as `retry` has them.
    /// - Returns: false where nothing is done: one of them has no key of its own, because the content was there.
    package func resend(
        _ deliveries: Set<Int64>, of file: Int64, uptimes: [String: Int64], at now: WallTime
    ) async throws(JournalError) -> Bool {
        try await reviveAhead { try [file, Self.restOfBatch(of: file, $0)].compactMap(\.self) }
        return try await commit { database in
            try Self.revive(file, database)
            let rows = try Self.job(Self.file(file, database), database).deliveries.filter {
                deliveries.contains($0.id)
            }
            guard !rows.isEmpty, rows.allSatisfy({ $0.state == .delivered && $0.key != nil && $0.proof?.sameAs == nil })
            else { return false }
            for row in rows {
                try Self.forgetContent(of: row.id, database)
                // `retry` takes what has ended without a proof.
                try database.change("UPDATE delivery SET state = 'cancelled', proof = NULL WHERE id = ?", row.id)
            }
            return try Self.retry(file, uptimes, [:], now, database)
        }
    }
}
