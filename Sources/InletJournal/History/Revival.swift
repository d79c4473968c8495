internal import GRDB

/// Which files come back from the history with others: those of the same batch, what any of them comes after, and all that is
/// newer under the same paths. A path may have been written to for years, and a unit may have any number of files: there may
/// be more than one transaction should bring back.
struct Revival {
    private let database: Database
    private let most: Int
    private var met: Set<Int64> = []
    private var batches: Set<Int64> = []
    /// In an order of which each beginning may come back without the rest: what is newer before what is older, what others
    /// come after before them.
    private(set) var files: [Int64] = []

    /// - Parameter most: how many to look for at most.
    init(_ database: Database, most: Int = .max) {
        self.database = database
        self.most = most
    }

    /// Whether there may be more than it looked for.
    var isFull: Bool { files.count >= most }

    /// Adds a file with all that comes back with it; nothing where it is not in the history. The file is the last: while it
    /// is there, its batch is found by it.
    mutating func add(_ file: Int64) throws {
        let found = try database.row("SELECT batch_id FROM history_file WHERE id = ?", .integer(file)) {
            $0.optionalInteger(0)
        }
        guard let found else { return }
        if let batch = found, batches.insert(batch).inserted {
            let others = try database.rows(
                "SELECT id FROM history_file INDEXED BY history_by_batch WHERE batch_id = ? AND id <> ? LIMIT ?",
                .integer(batch), .integer(file), .integer(Int64(most))
            ) { $0.integer(0) }
            for other in others { try addWithNewer(other) }
        }
        try addWithNewer(file)
    }

    private mutating func addWithNewer(_ file: Int64) throws {
        if isFull || met.contains(file) { return }
        let newer = try database.rows(
            """
            SELECT newer.id FROM history_file AS own CROSS JOIN history_file AS newer INDEXED BY history_by_path
                ON newer.place = own.place AND newer.path = own.path AND newer.id > own.id
            WHERE own.id = ? ORDER BY newer.id DESC LIMIT ?
            """, .integer(file), .integer(Int64(most))
        ) { $0.integer(0) }
        for next in newer { try addWithLeaders(next) }
        try addWithLeaders(file)
    }

    private mutating func addWithLeaders(_ file: Int64) throws {
        guard !isFull, met.insert(file).inserted else { return }
        let leaders = try database.rows(
            """
            SELECT DISTINCT leader.file_id FROM history_delivery AS own CROSS JOIN history_delivery AS leader
                ON leader.id = own.after_id
            WHERE own.file_id = ?1 AND leader.file_id <> ?1
            """, .integer(file)
        ) { $0.integer(0) }
        for leader in leaders { try addWithNewer(leader) }
        if !isFull { files.append(file) }
    }
}
