internal import GRDB
internal import InletCore
internal import SystemPackage

/// The admission of files in one transaction, in their order.
///
/// Nearly all files need a row and one for each destination, and nothing else. Their rows are inserted many at a time:
/// SQLite prepares for undoing each statement that fires a trigger, and this costs more than a row does.
struct AdmissionBatch {
    private let admissions: [FileAdmission]
    private let limit: QueueLimit
    private let now: WallTime
    private var isFull = false
    private var outcomes: [AdmittedFile]
    /// The places of admitted files that have no rows yet, and the files' total size.
    private var waiting: [Int] = []
    private var bytes: Int64 = 0
    /// The last policy that was encoded: a folder's files have few.
    private var policy: (value: FilePolicy, note: [UInt8])?

    init(_ admissions: [FileAdmission], _ limit: QueueLimit, _ now: WallTime) {
        (self.admissions, self.limit, self.now) = (admissions, limit, now)
        outcomes = Array(repeating: (.full, []), count: admissions.count)
    }

    /// - Returns: the outcomes, in the files' order.
    mutating func run(_ database: Database) throws -> [AdmittedFile] {
        let known = try recall(database)
        for (place, admission) in admissions.enumerated() {
            let previous = try known?[place] ?? (known == nil ? Self.previous(admission, database) : nil)
            // An older content that ends gives its key back: not to the files before this one.
            if previous != nil { try insertWaiting(database) }
            let answer = try Journal.answer(
                to: admission, previous, limit, &isFull, besides: (waiting.count, bytes), now, database)
            if let answer {
                outcomes[place] = (answer, [])
            } else if known != nil, Self.isPlain(admission) {
                waiting.append(place)
                bytes += admission.arrival.identity.size
            } else {
                try insertWaiting(database)
                outcomes[place] = try Journal.insert(admission, now, database)
            }
        }
        try insertWaiting(database)
        try noteArrivals(database)
        return outcomes
    }

    /// The newest file of each path; nil where rows of this batch may change the answer: a path comes twice, or may be
    /// that of a companion.
    private func recall(_ database: Database) throws -> [Journal.LatestFile?]? {
        guard admissions.allSatisfy({ $0.companions.isEmpty && $0.newerThan == nil }) else { return nil }
        let arrivals = admissions.map(\.arrival)
        guard arrivals.areAscending || Set(arrivals.map(\.path)).count == arrivals.count else { return nil }
        return try Journal.remembered(arrivals, database)
    }

    private static func previous(_ admission: FileAdmission, _ database: Database) throws -> Journal.LatestFile? {
        admission.newerThan == nil ? try Journal.remembered(admission.arrival, database) : nil
    }

    /// Whether it needs nothing but its rows.
    private static func isPlain(_ admission: FileAdmission) -> Bool {
        admission.plan?.dedupe == .off && admission.unit == nil && admission.storages.isEmpty
    }

    private func noteArrivals(_ database: Database) throws {
        var roots: [FilePath] = []
        for (admission, outcome) in zip(admissions, outcomes) where outcome.main.newRow != nil {
            let root = admission.arrival.root
            if roots.last != root, !roots.contains(root) { roots.append(root) }
        }
        for root in roots { try Journal.noteArrival(in: root, now, database) }
    }

    // MARK: - Many rows

    private mutating func insertWaiting(_ database: Database) throws {
        var rest = waiting[...]
        while !rest.isEmpty {
            let count = RowsStatement.count(of: rest.count)
            let places = rest.prefix(count)
            var deliveries: [NewDelivery] = []
            for (place, id) in zip(places, try insertFiles(places, database)) {
                outcomes[place] = (.admitted(id: id), [])
                let admission = admissions[place]
                guard let plan = admission.plan else { continue }
                for destination in admission.steps.destinations {
                    deliveries.append(NewDelivery(of: admission, plan, to: destination, file: id, now))
                }
            }
            try Journal.insert(deliveries, database)
            rest = rest.dropFirst(count)
        }
        (waiting, bytes) = ([], 0)
    }

    /// - Returns: the numbers of the new rows.
    private mutating func insertFiles(_ places: ArraySlice<Int>, _ database: Database) throws -> Range<Int64> {
        let files = places.map { FileRow(admissions[$0], at: now) }
        if files.count == 1 {
            let id = try Journal.insert(files[0], database)
            return id..<id + 1
        }
        var values: [any SQLValue] = [now]
        values.reserveCapacity(1 + RowsStatement.files.columns.count * files.count)
        for file in files {
            let identity = file.identity
            values += [
                file.root, file.path, identity.size, identity.modified, identity.changed, identity.inode,
                identity.device, file.route, file.category, file.mediaType, try note(file.policy),
                try JSON.column(file.labels), try JSON.column(file.digests), file.volume,
            ]
        }
        try database.change(RowsStatement.files.sql(files.count), values)
        // AUTOINCREMENT numbers the rows of a statement one after the other.
        let last = database.lastInsertedRowID
        return last - Int64(files.count) + 1..<last + 1
    }

    private mutating func note(_ policy: FilePolicy) throws -> [UInt8] {
        if let known = self.policy, known.value == policy { return known.note }
        let note = try policy.note
        self.policy = (policy, note)
        return note
    }
}

extension NewDelivery {
    /// A delivery of an admitted file under its plan's key, due now.
    init(of admission: FileAdmission, _ plan: Plan, to destination: String, file: Int64, _ now: WallTime) {
        self.init(file: file, destination: destination, key: plan.key(at: destination), nextAt: now.milliseconds)
        (fields, priority) = (plan.with, plan.priority)
        lane = admission.lanes[destination] ?? .big
        expiresAt = Journal.firstExpiry(admission, uptime: admission.uptimes[destination] ?? 0, now)
    }
}

extension Journal {
    /// Inserts deliveries that are due at one time, each under its key, or under a numbered one where that is taken.
    fileprivate static func insert(_ deliveries: [NewDelivery], _ database: Database) throws {
        var rest = deliveries[...]
        while !rest.isEmpty {
            let some = rest.prefix(RowsStatement.count(of: rest.count))
            rest = rest.dropFirst(some.count)
            if some.count > 1, try insertAtOnce(some, database) { continue }
            for var delivery in some {
                delivery.key = try freeKey(delivery.key ?? "", delivery.destination, database)
                _ = try insert(delivery, database)
            }
        }
    }

    /// - Returns: false when one of the keys is taken; then nothing was inserted.
    private static func insertAtOnce(_ deliveries: ArraySlice<NewDelivery>, _ database: Database) throws -> Bool {
        let keys = deliveries.flatMap { [$0.destination, $0.key] as [any SQLValue] }
        if try !database.rows(RowsStatement.spentKeys.sql(deliveries.count), keys, read: { _ in true }).isEmpty {
            return false
        }
        var values: [any SQLValue] = [deliveries[deliveries.startIndex].nextAt]
        for delivery in deliveries {
            values += [
                delivery.file, delivery.destination, delivery.key, try JSON.column(delivery.fields), delivery.lane,
                delivery.expiresAt, delivery.priority.rank,
            ]
        }
        do {
            try database.change(RowsStatement.deliveries.sql(deliveries.count), values)
            return true
        } catch let error as DatabaseError where error.extendedResultCode == .SQLITE_CONSTRAINT_UNIQUE {
            // Two of them want one key, or a present delivery has it. SQLite has undone this statement alone.
            return false
        }
    }
}

extension RowsStatement {
    fileprivate static let files = RowsStatement(
        [
            "root", "path", "size", "modified", "changed", "inode", "device", "route", "category", "media_type",
            "policy", "labels", "digests", "volume",
        ], constants: "?1, 'pending', "
    ) { "INSERT INTO file (admitted_at, state, \($0)) VALUES \($1)" }

    fileprivate static let deliveries = RowsStatement(
        ["file_id", "destination", "key", "fields", "lane", "expires_at", "priority"], constants: "?1, 'ready', "
    ) { "INSERT INTO delivery (next_at, state, \($0)) VALUES \($1)" }

    /// Finds keys that earlier deliveries have used up.
    fileprivate static let spentKeys = RowsStatement(["destination", "key"]) { columns, rows in
        """
        WITH wanted(\(columns)) AS (VALUES \(rows))
        SELECT 1 FROM wanted WHERE EXISTS (
                SELECT 1 FROM spent_key WHERE destination = wanted.destination AND key = wanted.key)
            OR EXISTS (
                SELECT 1 FROM history_delivery
                WHERE destination = (SELECT id FROM history_word WHERE word = wanted.destination)
                    AND key = wanted.key)
        LIMIT 1
        """
    }
}
