internal import GRDB
package import InletCore
package import SystemPackage

/// Files and bytes of one state.
package typealias StateTotal = (files: Int, bytes: Int64)

/// How many deliveries of one destination are where.
package struct QueueCounts: Sendable, Equatable {
    /// That wait for a worker or for their time; those that wait for something else are not among them.
    package var waiting = 0
    /// Those of `waiting` that were tried before.
    package var retrying = 0
    /// That wait for another file, or for their unit.
    package var held = 0
    /// Whose destination is not configured.
    package var parked = 0
    /// That a worker has, or that are at hand for one.
    package var claimed = 0
    /// That the destination works on.
    package var working = 0
    /// The oldest of `waiting`.
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

/// Where an open delivery is that nobody has claimed, as the journal's triggers count it.
enum QueueState: String {
    case parked
    /// Waits for another file, or for its unit.
    case held
    /// Was tried, and waits for its time.
    case retrying
    /// Its destination works on it.
    case working
    case fresh

    var isWaiting: Bool { self == .fresh || self == .retrying }
}

/// Which deliveries that have arrived a query is about; what is not set allows all.
package struct DeliveredFilter: Sendable, Equatable {
    /// Numbers of files; empty = all.
    package var jobs: [Int64]
    /// Only what arrived then or later.
    package var since: WallTime?
    package var destination: String?
    package var batch: Int64?

    package init(jobs: [Int64] = [], since: WallTime? = nil, destination: String? = nil, batch: Int64? = nil) {
        self.jobs = jobs
        self.since = since
        self.destination = destination
        self.batch = batch
    }

    /// Whether nothing it says leads to few rows by an index.
    fileprivate var isAnywhere: Bool { jobs.isEmpty && batch == nil }

    /// What must hold of a delivery and its file, as SQL.
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

/// A delivery that has arrived, with what is known of its file.
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

    /// Bounds how long others wait for files that are read whole.
    static let readAtOnce = 256

    /// Files that a filter lets through, newest first: for people, as far as they can be read. Each stretch of numbers is
    /// looked through by itself, and of those that are let through only so many are read at once: a long list, or a long
    /// history in which hardly anything is let through, keeps nobody from the journal.
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

    /// The file with its deliveries, as far as they can be read; nil when the journal has no such id.
    package func job(_ id: Int64) async throws(JournalError) -> Job? {
        try await read { try Self.shown(id, $0) }
    }

    private static func shown(_ id: Int64, _ database: Database) throws -> Job? {
        try FileRow.one(id, database, showing: true).map { try job($0, database, showing: true) }
    }

    /// The same for many files in one read, in their order, as far as somebody wants to go on: the first of which `goesOn` says
    /// no is the last. nil for those that the journal does not have.
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

    /// Whether a claimed delivery still is; a person may have cancelled it since.
    package func isClaimed(_ delivery: Int64) async throws(JournalError) -> Bool {
        try await read { try $0.exists("SELECT 1 FROM delivery WHERE id = ? AND state = 'claimed'", delivery) }
    }

    /// For each file the newest job for a single file that was sent to all of its `destinations` (rows with an empty root).
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

/// What the journal knows of one file beside its row and its deliveries.
extension Journal {
    /// The notes of what its unfinished deliveries have begun, by delivery. They hold secrets: not to be shown as they are.
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

    /// Its receipt's JSON; nil while it has not finished, and when it is in the history.
    package func receipt(ofJob id: Int64) async throws(JournalError) -> [UInt8]? {
        try await read { database in
            try database.row("SELECT body FROM receipt WHERE file_id = ?", id) { $0.bytes(0) }
        }
    }

    /// Where open deliveries are, by destination; those without any are left out. Kept by triggers, and only what is claimed is
    /// counted: a million that wait, or have ended, cost nothing.
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

    /// How many deliveries to `destinations` wait.
    package func queueLength(of destinations: [String]) async throws(JournalError) -> Int {
        try await queueCounts().filter { destinations.contains($0.key) }.values.reduce(0) { $0 + $1.waiting }
    }

    /// How many open deliveries are where, without those that are claimed.
    static func tally(_ database: Database) throws -> [(destination: String, place: QueueState, deliveries: Int)] {
        try database.rows("SELECT destination, place, deliveries FROM queue_tally WHERE deliveries > 0") { row in
            row.text(1).flatMap(QueueState.init).map { (row.text(0) ?? "", $0, row.int(2)) }
        }.compactMap(\.self)
    }

    /// When the file was admitted that has waited longest.
    private static func eldest(of destination: String, _ database: Database) throws -> WallTime? {
        try database.time(
            """
            SELECT admitted_at FROM file WHERE id = (
                SELECT file_id FROM delivery INDEXED BY delivery_eldest
                WHERE destination = ? AND \(isWaiting) ORDER BY delivery.id LIMIT 1)
            """, destination)
    }

    /// The condition of the index `delivery_eldest`, word by word.
    private static let isWaiting = "state = 'ready' AND next_at < \(never) AND \(DeliveryRow.isNotBeingWorkedOn)"

    /// The files of deliveries that may go as soon as their destinations take them, oldest first.
    package func waitingFiles(limit: Int) async throws(JournalError) -> [Int64] {
        try await read { database in
            // What is held or parked, be it a million, is not walked past.
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

    /// Deliveries with their proofs, in the order of their numbers: the next `limit` after the one called `last`. One whose
    /// proof cannot be read comes without it. One question looks at `stretch` numbers at most, so that a long history keeps
    /// nobody from the journal: a page may be empty, and others follow.
    ///
    /// - Returns: also the number to go on after; nil when there are no more.
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

    /// The file of that number, wherever it is; nil when the journal has none.
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
