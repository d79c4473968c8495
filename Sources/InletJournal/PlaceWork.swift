internal import GRDB
package import InletCore
internal import SystemPackage

/// Work of a share that the fleet has given this agent: a delivery with its followers, or the finishing of a source. It
/// is a row of the queue like any other, and goes with the answer that it is another's, or done.
package struct PlaceWork: Sendable {
    package var number: Int64
    package var fence: Int64
    /// The session in which it was claimed.
    package var session: Int64
    /// The marker of the share.
    package var place: String
    package var version: PlaceVersion
    package var isFinishing: Bool
    /// Of a finishing: a delivery of the version has failed.
    package var hasFailed: Bool
    /// With the identity that the file has here. Its plan has the frozen keys, and no other destinations than this
    /// work's; none for a finishing.
    package var admission: FileAdmission
    /// For the checkpoint of its first delivery.
    package var notes: [String: [UInt8]]
    /// Its row in a report after a loss; nil for a finishing.
    package var row: [UInt8]?

    package init(
        number: Int64, fence: Int64, session: Int64, place: String, version: PlaceVersion, isFinishing: Bool,
        hasFailed: Bool, admission: FileAdmission, notes: [String: [UInt8]], row: [UInt8]?
    ) {
        (self.number, self.fence, self.session, self.place) = (number, fence, session, place)
        (self.version, self.isFinishing, self.hasFailed) = (version, isFinishing, hasFailed)
        (self.admission, self.notes, self.row) = (admission, notes, row)
    }
}

/// The result of taking work that the fleet gave.
package enum PlaceWorkStart: Sendable, Equatable {
    /// It is in the queue, anew or from an earlier session, as this file.
    case taken(file: Int64)
    /// Another file of this journal has the key.
    case keyTaken(String)
}

/// Work of a share as the journal has it.
package struct PlaceWorkRow: Sendable, Equatable {
    package var file: Int64
    package var number: Int64
    package var fence: Int64
    package var session: Int64
    package var place: String
    package var version: PlaceVersion
    package var isFinishing: Bool
    package var size: Int64
    package var state: FileState
    package var code: ErrorCode?
    package var reason: String?
    /// When its first delivery that waits is due; nil where none waits for a time.
    package var nextAt: WallTime?
}

extension Journal {
    /// Puts work into the queue, due at once. Work of the same number continues with the new fence: its file, its notes
    /// and its proofs stay. So does work that is the same delivery by another number, as after a loss: what was delivered
    /// is not sent again.
    package func takePlaceWork(
        _ works: [PlaceWork], at now: WallTime
    ) async throws(JournalError) -> [PlaceWorkStart] {
        if works.isEmpty { return [] }
        return try await commit { database in
            let starts = try works.map { try Self.take($0, self.seal.closed($0.notes), now, database) }
            try Self.dropLetGo(self.heardMark(database), database)
            for root in Set(works.lazy.filter { !$0.isFinishing }.map(\.admission.arrival.root)) {
                try Self.noteArrival(in: root, now, database)
            }
            return starts
        }
    }

    /// All work of shares, in the order of its numbers.
    package func placeWork() async throws(JournalError) -> [PlaceWorkRow] {
        try await read { try PlaceWorkRow.all("", [], $0) }
    }

    /// Work of this session whose deliveries have ended, and that the fleet does not know to have ended.
    package func endedPlaceWork(session: Int64, limit: Int) async throws(JournalError) -> [PlaceWorkRow] {
        try await read { database in
            try PlaceWorkRow.all(
                """
                WHERE session = ? AND NOT is_finishing AND file.state <> 'pending' AND NOT \(Self.isAtHand)
                ORDER BY number LIMIT ?
                """, [session, limit], database)
        }
    }

    /// Finished sources of this session that the fleet does not know to be finished.
    package func finishedPlaceWork(session: Int64, limit: Int) async throws(JournalError) -> [PlaceWorkRow] {
        try await read { database in
            try PlaceWorkRow.all(
                "WHERE session = ? AND is_finishing AND file.finished_at IS NOT NULL ORDER BY number LIMIT ?",
                [session, limit], database)
        }
    }

    /// Work of this session that cannot be sent before `time`: it waits for its time, or is parked. Nothing of it runs,
    /// here or at its destination.
    package func waitingPlaceWork(
        session: Int64, beyond time: WallTime, limit: Int
    ) async throws(JournalError) -> [PlaceWorkRow] {
        try await read { database in
            try PlaceWorkRow.all(
                """
                WHERE session = ? AND NOT is_finishing AND file.state = 'pending' AND NOT \(Self.isAtHand)
                    AND NOT EXISTS (
                        SELECT 1 FROM delivery WHERE file_id = file.id AND state = 'ready'
                            AND (next_at <= ? OR NOT \(DeliveryRow.isNotBeingWorkedOn)))
                ORDER BY number LIMIT ?
                """, [session, time, limit], database)
        }
    }

    /// Disposals of this session that are not due: another program has the source open, or it is held for a while.
    package func waitingFinishings(
        session: Int64, at now: WallTime, limit: Int
    ) async throws(JournalError) -> [PlaceWorkRow] {
        try await read { database in
            try PlaceWorkRow.all(
                """
                WHERE session = ? AND is_finishing AND finished_at IS NULL AND finish_at > ?
                ORDER BY number LIMIT ?
                """, [session, now, limit], database)
        }
    }

    /// SQL for a file that a worker has: a running delivery, or one that was cancelled while it ran.
    static let isAtHand = """
        EXISTS (SELECT 1 FROM delivery
            WHERE file_id = file.id AND (delivery.state = 'claimed' OR owner IS NOT NULL))
        """
}

extension PlaceWorkRow {
    /// A file that has not ended says why it waits.
    fileprivate static func all(
        _ clause: String, _ values: [any SQLValue], _ database: Database
    ) throws -> [PlaceWorkRow] {
        try database.rows(
            """
            SELECT file.id, number, fence, session, place, work.path, work.version, is_finishing, size, file.state,
                ifnull(file.code, \(open("code"))), ifnull(file.reason, \(open("reason"))),
                (SELECT min(next_at) FROM delivery
                    WHERE file_id = file.id AND state = 'ready' AND next_at < \(Journal.never))
            FROM place_work AS work CROSS JOIN file ON file.id = work.file_id
            \(clause.isEmpty ? "ORDER BY number" : clause)
            """, values
        ) { row in
            PlaceWorkRow(
                file: row.integer(0), number: row.integer(1), fence: row.integer(2), session: row.integer(3),
                place: row.text(4) ?? "", version: PlaceVersion(path: row.text(5) ?? "", version: row.text(6) ?? ""),
                isFinishing: row.bool(7), size: row.integer(8), state: row.text(9).flatMap(FileState.init) ?? .failed,
                code: row.text(10).flatMap(ErrorCode.init), reason: row.text(11), nextAt: row.optionalTime(12))
        }
    }

    private static func open(_ column: String) -> String {
        """
        (SELECT \(column) FROM delivery WHERE file_id = file.id AND state IN ('ready', 'claimed', 'parked')
            AND \(column) IS NOT NULL ORDER BY id LIMIT 1)
        """
    }
}

/// How work becomes a file of the queue.
extension Journal {
    private static func take(
        _ work: PlaceWork, _ notes: [String: [UInt8]], _ now: WallTime, _ database: Database
    ) throws -> PlaceWorkStart {
        let file: Int64
        if let own = try known(work, database) {
            try goOn(own, work, notes, now, database)
            file = own
        } else if work.isFinishing {
            file = try insertFinishing(work, now, database)
        } else if let earlier = try takeUp(work, now, database) {
            file = earlier
        } else if let key = try takenKey(work, database) {
            return .keyTaken(key)
        } else {
            file = try insert(work, notes, now, database)
        }
        try keepTaken(work, database)
        return .taken(file: file)
    }

    /// The file that has this work. After a loss the same delivery has another number. A source is finished by the file
    /// that has delivered it here.
    private static func known(_ work: PlaceWork, _ database: Database) throws -> Int64? {
        let version = work.version
        let own = try database.integer(
            """
            SELECT file_id FROM place_work WHERE number = ?1 AND place = ?2 AND path = ?3 AND version = ?4
                AND (?5 IS NULL OR is_finishing OR EXISTS (SELECT 1 FROM delivery
                    WHERE file_id = place_work.file_id AND after_id IS NULL AND destination = ?5))
            """, work.number, work.place, version.path, version.version, work.leader?.destination)
        if let own { return own }
        if work.isFinishing {
            return try database.integer(
                """
                SELECT file_id FROM place_work AS work JOIN file ON file.id = file_id
                WHERE work.path = ? AND version = ? AND place = ?
                    AND (is_finishing OR state IN ('delivered', 'failed', 'expired', 'cancelled'))
                ORDER BY is_finishing DESC, file_id DESC LIMIT 1
                """, version.path, version.version, work.place)
        }
        return try database.integer(
            """
            SELECT file_id FROM place_work WHERE path = ? AND version = ? AND place = ? AND NOT is_finishing
                AND EXISTS (SELECT 1 FROM delivery
                    WHERE file_id = place_work.file_id AND after_id IS NULL AND destination = ?)
            """, version.path, version.version, work.place, work.leader?.destination)
    }

    /// Continues work of an earlier claim, or of an earlier session.
    private static func goOn(
        _ file: Int64, _ work: PlaceWork, _ notes: [String: [UInt8]], _ now: WallTime, _ database: Database
    ) throws {
        let wasFinishing = try database.exists(
            "SELECT 1 FROM place_work WHERE file_id = ? AND is_finishing", file)
        try database.change(
            "UPDATE place_work SET number = ?, fence = ?, session = ?, is_finishing = ? WHERE file_id = ?",
            work.number, work.fence, work.session, work.isFinishing || wasFinishing, file)
        if work.isFinishing {
            return try letFinish(file, hasFailed: work.hasFailed, isNew: !wasFinishing, now, database)
        }
        guard try self.file(file, database).state == .pending else { return }
        try see(work.admission.arrival.identity, of: file, database)
        try takeKey(of: work, for: file, database)
        try seed(notes, ofFirst: file, database)
        try releaseWork(file, now, database)
    }

    /// After a loss the fleet may have given the delivery another name. One that runs meets that at its end.
    private static func takeKey(of work: PlaceWork, for file: Int64, _ database: Database) throws {
        guard let leader = work.leader else { return }
        let first = try DeliveryRow.all(
            database, "WHERE file_id = ? AND after_id IS NULL AND destination = ? AND state IN ('ready', 'parked')",
            file,
            leader.destination
        ).first
        guard let first, let key = first.key, key != leader.key else { return }
        try rename(first.id, from: key, to: leader.key, database)
    }

    /// The file may have another inode since its share was mounted again. A file that may have changed keeps its old
    /// identity once a part was sent: the delivery finds out.
    private static func see(_ identity: FileIdentity, of file: Int64, _ database: Database) throws {
        let known = try self.file(file, database).identity
        // Without an inode nobody could look at it.
        guard identity != known, identity.inode != 0 else { return }
        if identity.changed != known.changed, try isSentInPart(file, database) { return }
        try refresh(file, identity, sparing: isUnprovable, database)
    }

    /// Notes of the agent that had the work; its own are newer.
    private static func seed(_ notes: [String: [UInt8]], ofFirst file: Int64, _ database: Database) throws {
        guard !notes.isEmpty,
            let first = try database.integer(
                """
                SELECT id FROM delivery WHERE id = (SELECT min(id) FROM delivery WHERE file_id = ?) AND state = 'ready'
                    AND NOT EXISTS (SELECT 1 FROM checkpoint WHERE delivery_id = delivery.id)
                """, file)
        else { return }
        for (name, value) in notes {
            try database.change("INSERT INTO checkpoint VALUES (?, ?, ?)", first, name, value)
        }
    }

    // MARK: - New files

    private static func row(of work: PlaceWork, _ now: WallTime) -> FileRow {
        var file = FileRow(work.admission, at: now)
        (file.policy.isOfPlace, file.policy.dedupe, file.policy.manifest) = (true, .off, nil)
        return file
    }

    private static func insert(
        _ work: PlaceWork, _ notes: [String: [UInt8]], _ now: WallTime, _ database: Database
    ) throws -> Int64 {
        let file = try insert(row(of: work, now), database)
        try database.change("UPDATE file SET finish_at = \(never) WHERE id = ?", file)
        // Before its deliveries, which ask for no key then.
        try insertWork(work, of: file, database)
        let admission = work.admission
        guard let plan = admission.plan else { return file }
        var leaders: [String: Int64] = [:]
        for step in admission.steps.steps {
            var delivery = NewDelivery(of: admission, plan, to: step.destination, file: file, now)
            if let leader = step.after.flatMap({ leaders[$0] }) {
                (delivery.after, delivery.lane) = (leader, .small)
                (delivery.nextAt, delivery.expiresAt) = (never, nil)
            }
            leaders[step.destination] = try insert(delivery, database)
        }
        try seed(notes, ofFirst: file, database)
        return file
    }

    /// The source of a version that others have delivered.
    private static func insertFinishing(_ work: PlaceWork, _ now: WallTime, _ database: Database) throws -> Int64 {
        var file = row(of: work, now)
        (file.state, file.endedAt) = (work.hasFailed ? .failed : .delivered, now)
        (file.code, file.reason) = (nil, work.hasFailed ? hasFailed : nil)
        let id = try insert(file, database)
        try insertWork(work, of: id, database)
        return id
    }

    private static func insertWork(_ work: PlaceWork, of file: Int64, _ database: Database) throws {
        try database.change(
            """
            INSERT INTO place_work (file_id, place, number, fence, session, path, version, is_finishing)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?)
            """, file, work.place, work.number, work.fence, work.session, work.version.path, work.version.version,
            work.isFinishing)
    }

    /// The first key that a delivery of this journal has or had; nil where all are free. Names that the fleet refused to
    /// this agent's own files are not among them: it gave them to the share.
    private static func takenKey(_ work: PlaceWork, _ database: Database) throws -> String? {
        guard let plan = work.admission.plan else { return nil }
        return try work.admission.steps.destinations.lazy.map { ($0, plan.key(at: $0)) }
            .first { try isUsed($0.1, $0.0, database) }?.1
    }

    // MARK: - Files that have ended here

    /// Gives work to the file by which this agent has ended it before: a delivered one ends at once, any other is sent
    /// again under its key.
    ///
    /// - Returns: nil where there is none. A file of this agent's own that still waits continues by itself.
    private static func takeUp(_ work: PlaceWork, _ now: WallTime, _ database: Database) throws -> Int64? {
        guard let leader = work.leader, let former = try former(work, leader.destination, database) else { return nil }
        let isDelivered = former.state == .delivered
        guard isDelivered || undone.contains(former.state) && former.key == leader.key else { return nil }
        try revive(former.file, database)
        // After a loss its source may wait to be finished, by work that is no longer there.
        try database.change("DELETE FROM place_work WHERE file_id = ?", former.file)
        try insertWork(work, of: former.file, database)
        if !isDelivered {
            try see(work.admission.arrival.identity, of: former.file, database)
            guard try retry(former.file, work.admission.uptimes, [:], asWork: true, now, database) else {
                try database.change("DELETE FROM place_work WHERE file_id = ?", former.file)
                return nil
            }
        }
        try database.change(
            "UPDATE file SET policy = ?, finish_at = iif(intent IS NULL, \(never), finish_at) WHERE id = ?",
            try row(of: work, now).policy.note, former.file)
        return former.file
    }

    private static func former(
        _ work: PlaceWork, _ destination: String, _ database: Database
    ) throws -> (file: Int64, state: DeliveryState, key: String?)? {
        let (arrival, identity) = (work.admission.arrival, work.admission.arrival.identity)
        for tables in JournalTables.allCases {
            let place = tables == .current ? "root = ? AND path = ? AND volume IS NULL" : placeInHistory
            let found = try database.row(
                """
                SELECT file.id, delivery.state, delivery.key
                FROM \(tables.files) CROSS JOIN \(tables.deliveries) ON delivery.file_id = file.id
                WHERE \(place) AND size = ? AND modified / 100 = ? AND after_id IS NULL AND destination = ?
                ORDER BY file.id DESC LIMIT 1
                """, arrival.root, arrival.path, identity.size, identity.modified / 100, destination
            ) { (file: $0.integer(0), state: $0.text(1).flatMap(DeliveryState.init) ?? .failed, key: $0.text(2)) }
            if let found { return found }
        }
        return nil
    }
}

extension PlaceWork {
    /// The delivery that waits for no other, by its destination here.
    fileprivate var leader: (destination: String, key: String)? {
        guard let plan = admission.plan, let first = admission.steps.first.first else { return nil }
        return (first, plan.key(at: first))
    }
}

extension FilePolicy {
    /// Of the work of a share: nothing of it depends on one agent's journal, as duplicates and lists of units do.
    package init(ofPlace plan: Plan) {
        self.init(onSuccess: plan.onSuccess, onFailure: plan.onFailure, retry: plan.retry)
        (receipts, window, ownLabels) = (plan.receipts, plan.window, plan.ownLabels)
        isOfPlace = true
    }
}
