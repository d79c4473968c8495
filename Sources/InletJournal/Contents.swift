internal import GRDB
package import InletCore
package import SystemPackage

/// The delivery that first brought a content to a destination.
package struct Original: Sendable, Equatable {
    package var job: Int64
    /// The full path of its file at admission.
    package var path: FilePath
    package var proof: Proof

    /// The proof for a file of the same content: where the content already is, and which job brought it. Secrets that
    /// let a person undo the delivery stay with the first.
    package var link: Proof {
        var link = proof
        link.secrets = nil
        link.details = (proof.details ?? [:]).merging([Proof.sameAsName: String(job)]) { $1 }
        return link
    }
}

/// A question about a content: has it been brought to these destinations?
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
    /// A content to be brought to a destination.
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

        /// nil where the content is unknown.
        init?(_ file: FileRow, _ row: DeliveryRow) {
            guard let digest = file.digests.sha256, row.closes == nil else { return nil }
            (delivery, destination, fields) = (row.id, row.destination, row.fields)
            (self.digest, size, route) = (digest.bytes, file.identity.size, file.route)
        }

        /// nil where the content is unknown, or must be sent whoever has it.
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
    /// Whether a delivery first looks for its content. Under `link` a registration is made again: it is another name
    /// for the same bytes.
    func covers(isRegistration: Bool) -> Bool { self == .skip || self == .link && !isRegistration }
}

extension [Digest] {
    package var sha256: Digest? { first { $0.algorithm == .sha256 } }
}

/// Contents by their SHA-256. The row of a content and a destination names the delivery that brings it there: from its
/// claim where the route asks for that (`dedupe:`), otherwise from its proof. Only that delivery's state tells whether
/// it arrived.
extension Journal {
    /// The state of a content at a destination, for a delivery that should bring it there.
    enum ContentStatus: Equatable {
        /// Nobody has brought it or is bringing it.
        case free
        /// It was brought for another purpose: by another route, with other fields.
        case apart
        case brought(Original)
        /// Another delivery is bringing it; look again then.
        case underWay(job: Int64, lookAt: WallTime)
    }

    /// How long a delivery waits for a twin that is being sent, unless something wakes it.
    private static let patience = Duration.seconds(30)
    /// A twin whose next attempt is later than this is not awaited.
    private static let shortWait = Duration.seconds(60)

    /// The deliveries that brought a content, by destination.
    package func originals(_ question: ContentQuery) async throws(JournalError) -> [String: Original] {
        try await read { database in
            try question.destinations.reduce(into: [:]) { found, destination in
                // The time matters only for deliveries under way.
                let now = WallTime(milliseconds: 0)
                let status = try Self.status(of: DeliveryContent(question, destination), at: now, database)
                if case .brought(let original) = status { found[destination] = original }
            }
        }
    }

    // MARK: - In transactions of others

    static func status(of wanted: DeliveryContent, at now: WallTime, _ database: Database) throws -> ContentStatus {
        // The history may still hold an earlier delivery of a content that was delivered again since.
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
            // An unreadable delivery proves nothing.
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
            // A delivery whose file is out of reach may stay so for days.
            guard holder.code != .sourceGone, holder.nextAt <= now + shortWait else { return .free }
            return .underWay(job: holder.fileID, lookAt: max(holder.nextAt, now) + .seconds(1))
        default: return .free
        }
    }

    /// Decides, before a claim, about a content that its route wants only once. A delivery that left something at the
    /// destination continues with that.
    ///
    /// No two deliveries wait for each other: each waits for the one that the content's row names, which is sent when
    /// it is due.
    ///
    /// - Returns: the delivery that brought the content, so that nothing is sent; and whether to wait for a twin. With
    ///   neither the delivery is sent, and twins wait for it from now on.
    static func deduplicate(_ claim: Claim, _ now: WallTime, _ database: Database) throws -> (
        original: Original?, waits: Bool
    ) {
        let (file, row) = (claim.file, claim.delivery)
        guard file.policy.dedupe.covers(isRegistration: row.afterID != nil), claim.checkpoint.isEmpty, row.waits == 0,
            let wanted = DeliveryContent(file, row)
        else { return (nil, false) }
        try database.change("DELETE FROM twin WHERE delivery_id = ?", row.id)
        // A content stored anew is registered anew.
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

    /// Records that a delivery brought its content, unless another did.
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

    /// Makes twins that waited for a delivery due.
    /// - Returns: whether there were any.
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

    /// Forgets that a delivery, or the one it links to, brought its content: it was deleted at the destination, so the
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

    /// The reason that a delivery counts as delivered without sending; nil for one that sent.
    static func linkReason(_ proof: Proof, _ database: Database) throws -> String? {
        if let agent = proof.sameAsAgent {
            return "same content as \(agent) of the fleet brought, which is there as \(DisplayText.escape(proof.key))"
        }
        guard let job = proof.sameAs else { return nil }
        let first = try FileRow.one(job, database)
        let path = first.map { ", \($0.fullPath.display)" } ?? ""
        return "same content as job \(job)\(path), which is there as \(DisplayText.escape(proof.key))"
    }
}

/// A destination is its address, not its name: a proof from one endpoint and bucket is not claimed for another.
extension Journal {
    /// Records the current addresses of destinations.
    ///
    /// - Parameter addresses: by the names of destinations (`Destination.address`).
    /// - Returns: the names of destinations that had another address before.
    @discardableResult
    package func setAddresses(_ addresses: [String: String]) async throws(JournalError) -> [String] {
        let moved = try await commit { database in
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
                try Self.askAnew(at: name, database)
            }
            return moved
        }
        // Nothing is sent there yet. A fleet's keys are granted for an address.
        try await holdDue(at: moved)
        return moved
    }

    /// Whether `proof` is from the destination's current address.
    static func isHere(_ proof: Proof, _ destination: String, _ database: Database) throws -> Bool {
        let known = try database.row(
            "SELECT address, first_address FROM destination WHERE name = ? AND address IS NOT NULL", destination
        ) { (now: $0.text(0), first: $0.text(1)) }
        guard let known else { return true }
        return (proof.address ?? known.first) == known.now
    }

    /// The deliveries of `job` that are proved at their destinations' current addresses.
    package func standing(of job: Job) async throws(JournalError) -> Set<Int64> {
        try await read { database in
            try job.deliveries.reduce(into: []) { here, row in
                guard let proof = row.proof, !proof.isDeleted else { return }
                if try Self.isHere(proof, row.destination, database) { here.insert(row.id) }
            }
        }
    }

    /// Sends deliveries that have arrived again under their keys: the destination has moved, or a person asked for it.
    ///
    /// - Parameters:
    ///   - partly: whether those go that can, also those that another delivery's content stands for.
    ///   - uptimes: as for `retry`.
    /// - Returns: false where nothing is done: one of them has no key of its own, because the content was there.
    package func resend(
        _ deliveries: Set<Int64>, of file: Int64, partly: Bool = false, uptimes: [String: Int64], at now: WallTime
    ) async throws(JournalError) -> Bool {
        try await reviveAhead { try [file, Self.restOfBatch(of: file, $0)].compactMap(\.self) }
        return try await commit { database in
            try Self.revive(file, database)
            let rows = try Self.job(Self.file(file, database), database).deliveries.filter {
                deliveries.contains($0.id)
            }
            let lost = rows.filter { $0.state == .delivered && $0.key != nil && (partly || $0.proof?.sameAs == nil) }
            if lost.isEmpty || lost.count < rows.count && !partly { return false }
            for row in lost {
                try Self.forgetContent(of: row.id, database)
                // `retry` takes deliveries that ended without a proof.
                try database.change("UPDATE delivery SET state = 'cancelled', proof = NULL WHERE id = ?", row.id)
            }
            return try Self.retry(file, uptimes, [:], now, database)
        }
    }
}

/// Checksums that stores were seen to compare belong to their addresses too.
extension Journal: StoreChecksumMemory {
    /// A checksum of a later version counts as unknown.
    package func storeChecksum(at address: String) async throws(JournalError) -> StoreChecksum? {
        let columns = "SELECT algorithm, uncompared, learned_at FROM store_checksum WHERE address = ?"
        return try await read { database in
            let found = try database.row(columns, address) { row -> StoreChecksum? in
                let algorithm = row.text(0).flatMap { Digest.Algorithm(rawValue: $0) }
                let uncompared = (row.text(1) ?? "").split(separator: " ")
                return algorithm.map {
                    StoreChecksum(
                        $0, uncompared: uncompared.compactMap { Digest.Algorithm(rawValue: String($0)) },
                        learnedAt: row.time(2))
                }
            }
            return found ?? nil
        }
    }

    /// Replaces what was known of the address.
    package func keep(_ checksum: StoreChecksum, at address: String) async throws(JournalError) {
        try await change(
            "INSERT OR REPLACE INTO store_checksum (address, algorithm, uncompared, learned_at) VALUES (?, ?, ?, ?)",
            address, checksum.algorithm.rawValue, checksum.uncompared.map(\.rawValue).joined(separator: " "),
            checksum.learnedAt)
    }
}
