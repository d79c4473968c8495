internal import Foundation
internal import GRDB
package import InletCore
package import SystemPackage

/// Files and bytes of one state.
package struct StateTotal: Sendable, Equatable {
    package var files: Int
    package var bytes: Int64
}

extension Journal {
    /// Totals by state; states without files are left out.
    package func totals() async throws(JournalError) -> [FileState: StateTotal] {
        try await read { database in
            var totals: [FileState: StateTotal] = [:]
            for row in try Row.fetchAll(database, sql: "SELECT state, files, bytes FROM tally WHERE files > 0") {
                guard let state = FileState(rawValue: row["state"]) else { continue }
                totals[state] = StateTotal(files: row["files"], bytes: row["bytes"])
            }
            return totals
        }
    }

    /// Bounds how long others wait for files that are read whole.
    static let readAtOnce = 256

    /// Files that a filter lets through, newest first: for people, as far as they can be read. Each stretch of numbers is looked
    /// through by itself, and of those that are let through only so many are read at once: a long list, or a long history in
    /// which hardly anything is let through, keeps nobody from the journal.
    package func jobs(_ filter: FileFilter) async throws(JournalError) -> [Job] {
        var jobs: [Job] = []
        var cursor = filter.below
        while jobs.count < filter.limit {
            let part = try await matches(filter, from: cursor, newestFirst: true)
            let wanted = part.files.prefix(filter.limit - jobs.count).map(\.id)
            for start in stride(from: 0, to: wanted.count, by: Self.readAtOnce) {
                jobs += try await whole(wanted[start..<min(start + Self.readAtOnce, wanted.count)])
            }
            guard let next = part.next else { break }
            cursor = next
        }
        return jobs
    }

    private func whole(_ ids: ArraySlice<Int64>) async throws(JournalError) -> [Job] {
        try await read { database in
            try ids.compactMap { id in
                try FileRow.one(id, database, showing: true).map { try Self.job($0, database, showing: true) }
            }
        }
    }

    /// The file with its deliveries, as far as they can be read; nil when the journal has no such id.
    package func job(_ id: Int64) async throws(JournalError) -> Job? {
        try await read { database in
            try FileRow.one(id, database, showing: true).map { try Self.job($0, database, showing: true) }
        }
    }

    /// The same for many files in one read, in their order, as far as somebody wants to go on: the first of which `goesOn` says
    /// no is the last. nil for those that the journal does not have.
    package func jobs(
        _ ids: [Int64], while goesOn: @escaping @Sendable (Job) -> Bool
    ) async throws(JournalError) -> [Job?] {
        try await read { database in
            var jobs: [Job?] = []
            for id in ids {
                let job = try FileRow.one(id, database, showing: true).map {
                    try Self.job($0, database, showing: true)
                }
                jobs.append(job)
                if let job, !goesOn(job) { break }
            }
            return jobs
        }
    }

    /// Admission time of the oldest pending file.
    package func oldestPending() async throws(JournalError) -> WallTime? {
        try await read { database in
            try Int64.fetchOne(
                database, sql: "SELECT admitted_at FROM file WHERE state = 'pending' ORDER BY id LIMIT 1"
            ).map { WallTime(milliseconds: $0) }
        }
    }

    /// Deliveries in `state`, by destination.
    package func deliveryCounts(_ state: DeliveryState) async throws(JournalError) -> [String: Int] {
        try await read { try Self.counts(of: state, $0) }
    }

    static func counts(of state: DeliveryState, _ database: Database) throws -> [String: Int] {
        let rows = try Row.fetchAll(
            database,
            // A literal, not an argument: only then the partial indexes apply.
            sql: """
                SELECT destination, count(*) AS n FROM delivery WHERE state = '\(state.rawValue)'
                GROUP BY destination
                """)
        return Dictionary(uniqueKeysWithValues: rows.map { ($0["destination"], $0["n"]) })
    }

    /// Whether a claimed delivery still is; a person may have cancelled it since.
    package func isClaimed(_ delivery: Int64) async throws(JournalError) -> Bool {
        try await read { database in
            try String.fetchOne(
                database.cachedStatement(sql: "SELECT state FROM delivery WHERE id = ?"), arguments: [delivery])
                == DeliveryState.claimed.rawValue
        }
    }

    /// The newest job for a single file that was sent to all of `destinations` (rows with an empty root).
    package func lastSent(_ path: FilePath, to destinations: [String]) async throws(JournalError) -> Job? {
        try await read { try Self.lastSent(path, to: destinations, $0) }
    }

    /// The same for many files in one read, in their order.
    package func lastSent(_ files: [(path: FilePath, destinations: [String])]) async throws(JournalError) -> [Job?] {
        if files.isEmpty { return [] }
        return try await read { database in
            try files.map { try Self.lastSent($0.path, to: $0.destinations, database) }
        }
    }

    private static func lastSent(_ path: FilePath, to destinations: [String], _ database: Database) throws -> Job? {
        let current = try FileRow.all(
            database, "WHERE root = x'' AND path = ? ORDER BY id DESC LIMIT 20", [.bytes(path.bytes)])
        let past = try FileRow.all(
            database, from: .history, "WHERE \(placeInHistory) ORDER BY id DESC LIMIT 20",
            [.bytes([]), .bytes(path.bytes)])
        return try (current + past).lazy.map { try job($0, database) }.first { job in
            Set(destinations) == Set(job.deliveries.map(\.destination))
        }
    }

    static func job(_ file: FileRow, _ database: Database, showing: Bool = false) throws -> Job {
        for shelf in Shelf.allCases {
            let deliveries = try database.rows(
                "SELECT \(DeliveryRow.columns) FROM \(shelf.deliveries) WHERE file_id = ? ORDER BY id",
                .integer(file.id)
            ) { try DeliveryRow($0, showing: showing) }
            if !deliveries.isEmpty { return Job(file: file, deliveries: deliveries) }
        }
        return Job(file: file, deliveries: [])
    }
}

extension FileRow {
    static func all(
        _ database: Database, from shelf: Shelf = .current, _ clause: String, _ values: [SQLValue],
        showing: Bool = false
    ) throws -> [FileRow] {
        try database.rows("SELECT \(columns) FROM \(shelf.files) \(clause)", values) {
            try FileRow($0, showing: showing)
        }
    }

    /// The file of that number, wherever it is; nil when the journal has none.
    static func one(_ id: Int64, _ database: Database, showing: Bool = false) throws -> FileRow? {
        for shelf in Shelf.allCases {
            let found = try all(database, from: shelf, "WHERE id = ?", [.integer(id)], showing: showing).first
            if let found { return found }
        }
        return nil
    }

    /// One value of a row. - Parameter isDamaged: set where `fallback` had to be taken, which only happens `showing`.
    static func read<Value>(
        _ showing: Bool, _ isDamaged: inout Bool, else fallback: Value, _ body: () throws -> Value
    ) throws -> Value {
        do {
            return try body()
        } catch {
            guard showing else { throw error }
            isDamaged = true
            return fallback
        }
    }
}
