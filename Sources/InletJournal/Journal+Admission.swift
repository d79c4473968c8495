internal import Foundation
internal import GRDB
package import InletCore
package import SystemPackage

/// What a settled file is admitted as.
package struct Admission: Sendable {
    package var arrival: Arrival
    /// nil for a file that is rejected before any delivery.
    package var plan: Plan?
    /// For each of the plan's destinations.
    package var lanes: [String: Lane]
    /// The expiry clock of each of the plan's destinations, in milliseconds.
    package var uptimes: [String: Int64]
    package var rejection: (route: Route, reason: String)?
    /// Admitted although the journal knows the path, because a person asked for it: unless a row newer than this one is of
    /// the same file to the same destinations. nil = admitted only if new.
    package var newerThan: Int64?

    /// A file that goes to its plan's destinations.
    package init(_ arrival: Arrival, plan: Plan, lanes: [String: Lane], uptimes: [String: Int64]) {
        self.arrival = arrival
        self.plan = plan
        self.lanes = lanes
        self.uptimes = uptimes
    }

    /// A file that its route refuses.
    package init(_ arrival: Arrival, rejectedBy route: Route, reason: String) {
        self.arrival = arrival
        rejection = (route, reason)
        lanes = [:]
        uptimes = [:]
    }
}

/// What `admit` did.
package enum AdmissionOutcome: Sendable, Equatable {
    /// A new row; the file is the journal's now.
    case admitted(id: Int64)
    case rejected(id: Int64)
    /// The same file is in the journal already.
    case known(id: Int64)
    /// An older content of this path is on its way; it must end first.
    case busy(id: Int64)
}

/// What the journal remembers of a path.
package enum KnownFile: Sendable, Equatable {
    case new
    /// Nothing about it changed.
    case known
    /// Only inode, device or ctime differ: the content hash decides.
    case touched(FileRow)
}

extension Journal {
    /// Whether files of these identities were admitted before, by the rule of `FileIdentity.isKnown(as:tolerance:)`.
    ///
    /// - Parameter tolerance: nanoseconds that its file system's mtime may be off.
    package func recall(_ arrivals: [Arrival], tolerance: Int64) async throws(JournalError) -> [KnownFile] {
        try await read { database in try arrivals.map { try Self.recall($0, tolerance, database) } }
    }

    private static func recall(_ arrival: Arrival, _ tolerance: Int64, _ database: Database) throws -> KnownFile {
        guard let row = try latest(arrival.root, arrival.path, database) else { return .new }
        let file = try FileRow(row: row)
        // What we took away ourselves and what came to nothing was dropped anew on purpose.
        let wasVacated = file.finishedAt != nil && Disposition.vacates(file.disposition)
        guard file.state != .gone, file.state != .superseded else { return .new }
        // The same inode and times again: it was looked at just before we took it away, and is no new file.
        if wasVacated { return arrival.identity == file.identity ? .known : .new }
        guard arrival.identity.isKnown(as: file.identity, tolerance: tolerance) else { return .new }
        return arrival.identity == file.identity ? .known : .touched(file)
    }

    private static func latest(_ root: FilePath, _ path: FilePath, _ database: Database) throws -> Row? {
        try Row.fetchOne(
            database.cachedStatement(
                sql: "SELECT \(FileRow.columns) FROM file WHERE root = ? AND path = ? ORDER BY id DESC LIMIT 1"),
            arguments: [Data(root.bytes), Data(path.bytes)])
    }

    /// Takes note that a known file has another inode, device or ctime but the same content. A running
    /// delivery keeps what it began with, and notices the change itself.
    package func refresh(_ id: Int64, identity: FileIdentity) async throws(JournalError) {
        try await commit { database in
            try database.execute(
                sql: "UPDATE file SET modified = ?, changed = ?, inode = ?, device = ? WHERE id = ?"
                    + " AND NOT EXISTS (SELECT 1 FROM delivery WHERE file_id = file.id AND state = 'claimed')",
                arguments: [
                    identity.modified, identity.changed, Int64(bitPattern: identity.inode),
                    Int64(bitPattern: identity.device), id,
                ])
        }
    }

    /// Durable point 1: from here on the file is delivered or its failure is on record. Idempotent.
    package func admit(_ admission: Admission, at now: WallTime) async throws(JournalError) -> AdmissionOutcome {
        try await commit { try Self.admit(admission, now, $0) }
    }

    private static func admit(
        _ admission: Admission, _ now: WallTime, _ database: Database
    ) throws -> AdmissionOutcome {
        let arrival = admission.arrival
        if let last = admission.newerThan {
            // Asked for twice at once: the first has just been admitted.
            if let twin = try twin(of: admission, newerThan: last, database) { return .known(id: twin) }
        } else if let row = try latest(arrival.root, arrival.path, database) {
            let previous = try FileRow(row: row)
            if try recall(arrival, 0, database) == .known { return .known(id: previous.id) }
            if previous.state == .pending, try !supersede(previous, now, database) { return .busy(id: previous.id) }
        }
        let id = try insertFile(admission, now, database)
        guard let plan = admission.plan else { return .rejected(id: id) }
        for destination in plan.destinations {
            try insertDelivery(file: id, plan, destination, admission, now, database)
        }
        return .admitted(id: id)
    }

    /// The same file to the same destinations.
    private static func twin(
        of admission: Admission, newerThan last: Int64, _ database: Database
    ) throws -> Int64? {
        let arrival = admission.arrival
        let wanted = Set(admission.plan?.destinations ?? [])
        return try FileRow.all(
            database, "WHERE root = ? AND path = ? AND id > ? ORDER BY id DESC LIMIT 20",
            [Data(arrival.root.bytes), Data(arrival.path.bytes), last]
        ).first { file in
            let destinations = try job(file, database).deliveries.map(\.destination)
            return arrival.identity == file.identity && Set(destinations) == wanted
        }?.id
    }

    /// Ends the waiting deliveries of an older content. False while one of them runs: it notices the change by itself.
    private static func supersede(_ previous: FileRow, _ now: WallTime, _ database: Database) throws -> Bool {
        let running = try Int.fetchOne(
            database, sql: "SELECT count(*) FROM delivery WHERE file_id = ? AND state = 'claimed'",
            arguments: [previous.id])
        guard running == 0 else { return false }
        let open = try Int64.fetchAll(
            database, sql: "SELECT id FROM delivery WHERE file_id = ? AND state IN ('ready', 'parked')",
            arguments: [previous.id])
        for id in open {
            try endDelivery(
                id, .superseded, code: .sourceChanged, reason: "the file changed before it was sent", now, database)
        }
        return true
    }

    private static func insertFile(_ admission: Admission, _ now: WallTime, _ database: Database) throws -> Int64 {
        let identity = admission.arrival.identity
        let policy = FilePolicy(
            onSuccess: admission.plan?.onSuccess ?? .keep,
            onFailure: admission.plan?.onFailure ?? admission.rejection?.route.onFailure ?? .keep,
            retry: admission.plan?.retry ?? RetryPolicy())
        let state: FileState = admission.plan == nil ? .rejected : .pending
        try database.cachedStatement(
            sql: """
                INSERT INTO file (root, path, size, modified, changed, inode, device, state, route, category,
                    media_type, policy, code, reason, admitted_at, ended_at)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
                """
        ).execute(arguments: [
            Data(admission.arrival.root.bytes), Data(admission.arrival.path.bytes), identity.size, identity.modified,
            identity.changed, Int64(bitPattern: identity.inode), Int64(bitPattern: identity.device), state.rawValue,
            admission.plan?.route ?? admission.rejection?.route.name, admission.plan?.category,
            admission.plan?.mediaType, try JournalJSON.encode(policy),
            admission.rejection == nil ? nil : ErrorCode.rejected.rawValue, admission.rejection?.reason,
            now.milliseconds, admission.plan == nil ? now.milliseconds : nil,
        ])
        return database.lastInsertedRowID
    }

    private static func insertDelivery(
        file: Int64, _ plan: Plan, _ destination: String, _ admission: Admission, _ now: WallTime, _ database: Database
    ) throws {
        let expires = plan.retry.expire.map { (admission.uptimes[destination] ?? 0) + $0.milliseconds }
        let lane = admission.lanes[destination] ?? .big
        try database.cachedStatement(
            sql: """
                INSERT INTO delivery (file_id, destination, key, fields, lane, state, next_at, expires_at)
                VALUES (?, ?, ?, ?, ?, 'ready', ?, ?)
                """
        ).execute(arguments: [
            file, destination, try freeKey(plan.key, destination, database), try JournalJSON.encode(plan.with),
            lane.rawValue, now.milliseconds, expires,
        ])
    }

    /// `key`, or one of `key_2`, `key_3`… that no other delivery to the destination has or had: the first, if they have
    /// no gaps.
    /// Doubling and halving, so that the ten thousandth file of one name costs no ten thousand questions.
    private static func freeKey(_ key: String, _ destination: String, _ database: Database) throws -> String {
        let taken = try database.cachedStatement(
            sql: """
                SELECT 1 FROM delivery WHERE destination = :destination AND key = :key
                UNION ALL SELECT 1 FROM spent_key WHERE destination = :destination AND key = :key
                """)
        func candidate(_ number: Int) -> String {
            number == 1 ? key : KeyTemplate.disambiguated(key, number: number)
        }
        func isTaken(_ number: Int) throws -> Bool {
            let place: StatementArguments = ["destination": destination, "key": candidate(number)]
            return try Int.fetchOne(taken, arguments: place) != nil
        }
        var last = 0
        var free = 1
        while try isTaken(free) { (last, free) = (free, free * 2) }
        while free - last > 1 {
            let middle = (last + free) / 2
            if try isTaken(middle) { last = middle } else { free = middle }
        }
        return candidate(free)
    }

    /// The next number for `{seq}`; gaps are possible, repeats are not.
    package func nextSequence() async throws(JournalError) -> Int64 {
        try await commit { database in
            try Int64.fetchOne(
                database, sql: "UPDATE counter SET value = value + 1 WHERE name = 'sequence' RETURNING value") ?? 0
        }
    }

    /// Whether the root was watched before; remembers it with the time of the first call. For `existing: skip`.
    package func firstSeen(root: FilePath, now: WallTime) async throws(JournalError) -> WallTime {
        try await commit { database in
            let bytes = Data(root.bytes)
            try database.execute(
                sql: "INSERT OR IGNORE INTO root VALUES (?, ?)", arguments: [bytes, now.milliseconds])
            let first = try Int64.fetchOne(
                database, sql: "SELECT first_seen FROM root WHERE path = ?", arguments: [bytes])
            return WallTime(milliseconds: first ?? now.milliseconds)
        }
    }
}
