internal import GRDB
package import InletCore
package import SystemPackage

/// Files and bytes of one state.
package typealias StateTotal = (files: Int, bytes: Int64)

/// The numbers of deliveries to one destination, by their place in the queue.
package struct QueueCounts: Sendable, Equatable {
    /// Deliveries that wait for a worker or for their time, and for nothing else.
    package var waiting = 0
    /// Deliveries among `waiting` that were tried before.
    package var retrying = 0
    /// Deliveries that wait for another file, for their unit, or for their key in the fleet.
    package var held = 0
    /// Deliveries whose destination is not configured.
    package var parked = 0
    /// Deliveries that a worker has, or that are at hand for one.
    package var claimed = 0
    /// Deliveries that the destination is working on.
    package var working = 0
    /// The oldest among `waiting`.
    package var oldest: WallTime?

    package init() {}

    fileprivate mutating func add(_ number: Int, _ place: QueueState) {
        switch place {
        case .parked: parked += number
        case .held: held += number
        case .working: working += number
        case .fresh: waiting += number
        case .retrying:
            waiting += number
            retrying += number
        }
    }
}

/// The place of an open, unclaimed delivery, as the journal's triggers count it.
enum QueueState: String {
    case parked
    /// Waits for another file, for its unit, or for its key in the fleet.
    case held
    /// Was tried, and waits for its time.
    case retrying
    /// Its destination works on it.
    case working
    case fresh

    var isWaiting: Bool { self == .fresh || self == .retrying }
}

/// Selects delivered deliveries; a criterion that is not set allows all.
package struct DeliveredFilter: Sendable, Equatable {
    /// Numbers of files; empty = all.
    package var jobs: [Int64]
    /// Only deliveries that arrived at this time or later.
    package var since: WallTime?
    package var destination: String?
    package var batch: Int64?

    package init(jobs: [Int64] = [], since: WallTime? = nil, destination: String? = nil, batch: Int64? = nil) {
        self.jobs = jobs
        self.since = since
        self.destination = destination
        self.batch = batch
    }

    /// Whether no criterion leads to few rows by an index.
    fileprivate var isAnywhere: Bool { jobs.isEmpty && batch == nil }

    /// The condition for a delivery and its file, as SQL.
    fileprivate func question(after last: Int64) -> (conditions: String, values: [any SQLValue]) {
        var parts: [(String, [any SQLValue])] = [("delivery.id > ? AND delivery.state = 'delivered'", [last])]
        if isAnywhere { parts.append(("delivery.id <= ?", [last + Journal.stretch])) }
        if !jobs.isEmpty { parts.append(("file_id IN (\(jobs.map(String.init).joined(separator: ", ")))", [])) }
        if let since { parts.append(("delivery.ended_at >= ?", [since])) }
        if let destination { parts.append(("destination = ?", [destination])) }
        if let batch { parts.append(("batch_id = ?", [batch])) }
        return (parts.map(\.0).joined(separator: " AND "), parts.flatMap(\.1))
    }
}

/// A delivery that has arrived, with its file.
package typealias DeliveredFile = (delivery: DeliveryRow, file: FileRow)

extension Journal {
    /// Totals by state; states without files are left out.
    package func totals() async throws(JournalError) -> [FileState: StateTotal] {
        try await read { database in
            var totals: [FileState: StateTotal] = [:]
            _ = try database.rows("SELECT state, files, bytes FROM tally WHERE files > 0") { row in
                guard let state = row.text(0).flatMap(FileState.init) else { return }
                totals[state] = (row.int(1), row.integer(2))
            }
            return totals
        }
    }

    /// Limits how long others wait while files are read completely.
    static let readAtOnce = 256

    /// Files that a filter accepts, newest first, with their readable parts, for people. Each range of ids has its own
    /// query, and only a bounded number of accepted files is read at once. So a long list, or a long history with few
    /// matches, keeps nobody from the journal.
    package func jobs(_ filter: FileFilter) async throws(JournalError) -> [Job] {
        var jobs: [Job] = []
        var cursor = filter.below
        while jobs.count < filter.limit {
            let part = try await matches(filter, from: cursor, newestFirst: true)
            let wanted = part.files.prefix(filter.limit - jobs.count).map { $0.id }
            for some in wanted.groups(of: Self.readAtOnce) {
                jobs += try await self.jobs(some) { _ in true }.compactMap(\.self)
            }
            guard let next = part.next else { break }
            cursor = next
        }
        return jobs
    }

    /// The file with its readable deliveries; nil when the journal has no such id.
    package func job(_ id: Int64) async throws(JournalError) -> Job? {
        try await read { try Self.shown(id, $0) }
    }

    static func shown(_ id: Int64, _ database: Database) throws -> Job? {
        guard let file = try FileRow.one(id, database, showing: true) else { return nil }
        var job = try job(file, database, showing: true)
        try showActions(of: &job, database)
        return job
    }

    /// The same for many files in one read, in their order, until `goesOn` returns false: that file is the last. nil
    /// for files that the journal does not have.
    package func jobs(
        _ ids: [Int64], while goesOn: @escaping @Sendable (Job) -> Bool
    ) async throws(JournalError) -> [Job?] {
        try await read { database in
            var jobs: [Job?] = []
            for id in ids {
                let job = try Self.shown(id, database)
                jobs.append(job)
                if let job, !goesOn(job) { break }
            }
            return jobs
        }
    }

    /// Admission time of the oldest pending file.
    package func oldestPending() async throws(JournalError) -> WallTime? {
        try await read { try $0.time("SELECT admitted_at FROM file WHERE state = 'pending' ORDER BY id LIMIT 1") }
    }

    /// Deliveries in `state`, by destination.
    package func deliveryCounts(_ state: DeliveryState) async throws(JournalError) -> [String: Int] {
        try await read { try Self.counts(of: state, $0) }
    }

    static func counts(of state: DeliveryState, _ database: Database) throws -> [String: Int] {
        // A literal, not an argument: only then the partial indexes apply.
        let sql = "SELECT destination, count(*) FROM delivery WHERE state = '\(state.rawValue)' GROUP BY destination"
        return Dictionary(uniqueKeysWithValues: try database.rows(sql) { ($0.text(0) ?? "", $0.int(1)) })
    }

    /// Whether a delivery is still claimed; a person may have cancelled it since.
    package func isClaimed(_ delivery: Int64) async throws(JournalError) -> Bool {
        try await read { try $0.exists("SELECT 1 FROM delivery WHERE id = ? AND state = 'claimed'", delivery) }
    }

    /// For each file, the newest job for a single file that was sent to all of its `destinations` (rows with an empty
    /// root).
    package func lastSent(_ files: [(path: FilePath, destinations: [String])]) async throws(JournalError) -> [Job?] {
        if files.isEmpty { return [] }
        return try await read { database in
            try files.map { file in
                let current = try FileRow.all(
                    database, "WHERE root = x'' AND path = ? ORDER BY id DESC LIMIT 20", [file.path])
                let past = try FileRow.all(
                    database, from: .history, "WHERE \(Self.placeInHistory) ORDER BY id DESC LIMIT 20",
                    [FilePath(), file.path])
                return try (current + past).lazy.map { try Self.job($0, database) }.first { job in
                    Set(file.destinations) == Set(job.deliveries.map(\.destination))
                }
            }
        }
    }

    static func job(_ file: FileRow, _ database: Database, showing: Bool = false) throws -> Job {
        for tables in JournalTables.allCases {
            let deliveries = try DeliveryRow.all(
                database, from: tables, "WHERE file_id = ? ORDER BY id", file.id, showing: showing)
            if !deliveries.isEmpty { return Job(file: file, deliveries: deliveries) }
        }
        return Job(file: file, deliveries: [])
    }
}

/// Facts about one file beyond its row and its deliveries.
extension Journal {
    /// The notes of its unfinished deliveries, by delivery. They hold secrets: mask them before showing them.
    package func checkpoints(ofJob id: Int64) async throws(JournalError) -> [Int64: [String: [UInt8]]] {
        try await read { database in
            let notes = try database.rows(
                """
                SELECT delivery_id, name, value FROM checkpoint
                WHERE delivery_id IN (SELECT id FROM delivery WHERE file_id = ?)
                """, id
            ) { ($0.integer(0), $0.text(1) ?? "", $0.bytes(2)) }
            return notes.reduce(into: [:]) { $0[$1.0, default: [:]][$1.1] = $1.2 }
        }
    }

    /// Its receipt's JSON; nil until it has finished, and when it is in the history.
    package func receipt(ofJob id: Int64) async throws(JournalError) -> [UInt8]? {
        try await read { database in
            try database.row("SELECT body FROM receipt WHERE file_id = ?", id) { $0.bytes(0) }
        }
    }

    /// Open deliveries by destination and place; destinations without any are left out. Triggers keep the numbers and
    /// only claimed deliveries are counted, so a million that wait, or have ended, cost nothing.
    package func queueCounts() async throws(JournalError) -> [String: QueueCounts] {
        try await read { database in
            var counts: [String: QueueCounts] = [:]
            for (name, place, number) in try Self.tally(database) {
                counts[name, default: QueueCounts()].add(number, place)
            }
            for (name, count) in counts where count.waiting > 0 {
                counts[name]?.oldest = try Self.eldest(of: name, database)
            }
            for (name, count) in try Self.counts(of: .claimed, database) {
                counts[name, default: QueueCounts()].claimed = count
            }
            return counts
        }
    }

    /// About how many bytes waiting deliveries have, by destination: those that come first are counted.
    ///
    /// - Parameter waiting: their numbers.
    package func bytes(ofWaiting waiting: [String: Int]) async throws(JournalError) -> [String: Int64] {
        try await read { database in
            try waiting.reduce(into: [:]) { $0[$1.key] = try Self.bytes(of: $1.value, $1.key, database) }
        }
    }

    /// How many deliveries to `destinations` wait.
    package func queueLength(of destinations: [String]) async throws(JournalError) -> Int {
        try await queueCounts().filter { destinations.contains($0.key) }.values.reduce(0) { $0 + $1.waiting }
    }

    /// The numbers of open deliveries by place, without claimed ones.
    static func tally(_ database: Database) throws -> [(destination: String, place: QueueState, deliveries: Int)] {
        try database.rows("SELECT destination, place, deliveries FROM queue_tally WHERE deliveries > 0") { row in
            row.text(1).flatMap(QueueState.init).map { (row.text(0) ?? "", $0, row.int(2)) }
        }.compactMap(\.self)
    }

    /// The admission time of the file that has waited longest.
    private static func eldest(of destination: String, _ database: Database) throws -> WallTime? {
        try database.time(
            """
            SELECT admitted_at FROM file WHERE id = (
                SELECT file_id FROM delivery INDEXED BY delivery_eldest
                WHERE destination = ? AND \(isWaiting) ORDER BY delivery.id LIMIT 1)
            """, destination)
    }

    private static func bytes(of count: Int, _ destination: String, _ database: Database) throws -> Int64 {
        let sample = try database.row(
            """
            SELECT count(*), coalesce(sum(size), 0) FROM (
                SELECT (SELECT size FROM file WHERE id = file_id) AS size FROM delivery INDEXED BY delivery_eldest
                WHERE destination = ? AND \(isWaiting) ORDER BY delivery.id LIMIT 1000)
            """, destination
        ) { (files: $0.int(0), bytes: $0.integer(1)) }
        guard let sample, sample.files > 0 else { return 0 }
        return sample.bytes / Int64(sample.files) * Int64(count)
    }

    /// The condition of the index `delivery_eldest`, word for word.
    private static let isWaiting = "state = 'ready' AND next_at < \(never) AND \(DeliveryRow.isNotBeingWorkedOn)"

    /// The files of deliveries that can be sent as soon as their destinations accept them, oldest first.
    package func waitingFiles(limit: Int) async throws(JournalError) -> [Int64] {
        try await read { database in
            // Held and parked deliveries, even a million, are not walked past.
            let names = try Set(Self.tally(database).filter { $0.place.isWaiting }.map(\.destination))
            let waiting = try names.flatMap { name in
                try database.integers(
                    """
                    SELECT file_id FROM delivery INDEXED BY delivery_eldest WHERE destination = ? AND \(Self.isWaiting)
                    ORDER BY delivery.id LIMIT ?
                    """, name, limit)
            }
            let working = try database.integers(
                """
                SELECT file_id FROM delivery INDEXED BY delivery_waiting
                WHERE state = 'ready' AND waits > 0 AND code IS NULL AND next_at < \(Self.never) ORDER BY id LIMIT ?
                """, limit)
            return Array(Set(waiting + working).sorted().prefix(limit))
        }
    }

    /// Deliveries with their proofs, ordered by number: the next `limit` after `last`. A delivery with an unreadable
    /// proof comes without it. One query looks at `stretch` numbers at most, so that a long history keeps nobody from
    /// the journal: a page may be empty although others follow.
    ///
    /// - Returns: also the number to continue after; nil when there are no more.
    package func delivered(
        _ filter: DeliveredFilter, after last: Int64, limit: Int
    ) async throws(JournalError) -> (page: [DeliveredFile], next: Int64?) {
        try await read { database in
            let (conditions, values) = filter.question(after: last)
            let found = try JournalTables.allCases.flatMap { tables in
                try database.rows(
                    """
                    SELECT \(DeliveryRow.qualified), \(FileRow.qualified)
                    FROM \(tables.deliveries) JOIN \(tables.files) ON file.id = delivery.file_id
                    WHERE \(conditions) ORDER BY delivery.id LIMIT \(limit)
                    """, values
                ) { row in
                    (
                        delivery: try DeliveryRow(row, showing: true),
                        file: try FileRow(row, from: DeliveryRow.width, showing: true)
                    )
                }
            }
            let rows = Array(found.sorted { $0.delivery.id < $1.delivery.id }.prefix(limit))
            if rows.count == limit { return (rows, rows.last?.delivery.id) }
            let end =
                try database.integer(
                    """
                    SELECT max(ifnull((SELECT max(id) FROM delivery), 0), ifnull((SELECT max(id) FROM history_delivery), 0))
                    """) ?? 0
            let isMore = filter.isAnywhere && last + Self.stretch < end
            return (rows, isMore ? last + Self.stretch : nil)
        }
    }
}

extension FileRow {
    static func all(
        _ database: Database, from tables: JournalTables = .current, _ clause: String, _ values: [any SQLValue],
        showing: Bool = false
    ) throws -> [FileRow] {
        try database.rows("SELECT \(columns) FROM \(tables.files) \(clause)", values) {
            try FileRow($0, showing: showing)
        }
    }

    /// The file of that number, in either place; nil when the journal has none.
    static func one(_ id: Int64, _ database: Database, showing: Bool = false) throws -> FileRow? {
        for tables in JournalTables.allCases {
            let found = try all(database, from: tables, "WHERE id = ?", [id], showing: showing).first
            if let found { return found }
        }
        return nil
    }
}

extension DeliveryRow {
    static func all(
        _ database: Database, from tables: JournalTables = .current, _ clause: String, _ values: any SQLValue...,
        showing: Bool = false
    ) throws -> [DeliveryRow] {
        try database.rows("SELECT \(columns) FROM \(tables.deliveries) \(clause)", values) {
            try DeliveryRow($0, showing: showing)
        }
    }
}
