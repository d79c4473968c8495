internal import GRDB
package import InletCore

/// Where the search for files that can go to the history stands: which of the states it is at, and the last file there.
package typealias HistoryPlace = (state: Int, last: Int64)

/// What one step of that search did: how many files went to the history, where to go on (nil when that was all), and a time at
/// which none of the files that are too young yet had been finished (nil when no such file was met).
package typealias HistoryStep = (files: Int, next: HistoryPlace?, youngest: WallTime?)

extension Journal {
    /// States of files that can go to the history. What failed or expired waits for a person. What has been replaced comes
    /// first, because it goes before what has replaced it.
    static let statesOfHistory: [FileState] = [.superseded, .gone, .cancelled, .rejected, .duplicate, .delivered]

    /// Files in one transaction: it keeps others waiting for a few milliseconds.
    static let movedAtOnce = 25

    /// Moves some of the files that were finished at `time` or before to the history, in one transaction: at every moment all
    /// that is known of a file is in one of the two places. Writes nothing where there is nothing to move.
    package func moveToHistory(
        finishedBy time: WallTime, from place: HistoryPlace = (0, 0)
    ) async throws(JournalError) -> HistoryStep {
        var (files, step) = try await read { try Self.candidates(time, place, $0) }
        if files.isEmpty { return step }
        step.files = try await commit { [files] database in
            var move = HistoryMove(database: database, time: time)
            for file in files { try move.take(file) }
            return move.files
        }
        return step
    }

    private static func candidates(
        _ time: WallTime, _ place: HistoryPlace, _ database: Database
    ) throws -> (files: [Int64], HistoryStep) {
        let rows = try database.rows(
            """
            SELECT id, admitted_at, finished_at FROM file INDEXED BY file_by_state
            WHERE state = '\(statesOfHistory[place.state].rawValue)' AND id > ? ORDER BY id LIMIT \(movedAtOnce)
            """, place.last
        ) { (id: $0.integer(0), admitted: $0.integer(1), finished: $0.optionalInteger(2)) }
        var (files, step, isOver): ([Int64], HistoryStep, Bool) = ([], (0, nil, nil), rows.count < movedAtOnce)
        func isYoung(_ milliseconds: Int64) -> Bool {
            if milliseconds <= time.milliseconds { return false }
            step.youngest = min(step.youngest ?? .init(milliseconds: never), WallTime(milliseconds: milliseconds))
            return true
        }
        for row in rows {
            // Those behind it came later still.
            if isYoung(row.admitted) {
                isOver = true
                break
            }
            if let finished = row.finished, !isYoung(finished) { files.append(row.id) }
        }
        var next = place
        next.last = rows.last?.id ?? 0
        if isOver { (next.state, next.last) = (place.state + 1, 0) }
        step.next = next.state < statesOfHistory.count ? next : nil
        return (files, step)
    }

    /// Puts a file's part of the totals right, which only the triggers of `file` keep otherwise.
    static func count(_ files: Int64, _ file: FileRow, _ database: Database) throws {
        try database.change(
            "UPDATE tally SET files = files + ?, bytes = bytes + ? WHERE state = ?", files,
            files * file.identity.size, file.state)
    }
}

/// Files on their way to the history, in one transaction.
private struct HistoryMove {
    let database: Database
    let time: WallTime
    /// Whether nothing of a batch needs it where it is.
    var batches: [Int64: Bool] = [:]
    var files = 0

    /// Of one path, with all that followed it. Of more, the oldest go first, by themselves.
    private static let mostTogether = 200
    private static let states = Journal.statesOfHistory.literals

    /// Moves a file, with what must go before or with it; leaves it where it is while anything still needs it there.
    mutating func take(_ file: Int64) throws {
        guard let group = try group(of: file) else { return }
        let jobs: [Job]
        do {
            jobs = try group.map { try Journal.job(Journal.file($0, database), database) }
        } catch {
            // What cannot be read stays as it is.
            guard !(error is DatabaseError) else { throw error }
            return
        }
        for job in jobs { try Journal.insertIntoHistory(job, database) }
        let list = "[\(group.map(String.init).joined(separator: ","))]"
        try database.change("DELETE FROM receipt WHERE file_id IN (SELECT value FROM json_each(?))", list)
        try database.change("DELETE FROM file WHERE id IN (SELECT value FROM json_each(?))", list)
        // They have not been forgotten: the totals keep counting them.
        for job in jobs { try Journal.count(1, job.file, database) }
        files += jobs.count
    }

    /// The file, what came before it under its path, and what follows any of those: a path has nothing older than its history
    /// outside of that, and what follows goes with what it follows.
    private mutating func group(of file: Int64) throws -> [Int64]? {
        var group: Set<Int64> = []
        var waiting = [file]
        while let next = waiting.popLast() {
            if group.contains(next) { continue }
            guard group.count < Self.mostTogether, try canMove(next) else { return nil }
            group.insert(next)
            waiting += try database.integers(
                """
                SELECT older.id FROM file CROSS JOIN file AS older INDEXED BY file_by_path
                    ON older.root = file.root AND older.path = file.path AND older.id < file.id
                WHERE file.id = ?1 AND file.volume IS NULL AND older.volume IS NULL
                UNION ALL SELECT older.id FROM file CROSS JOIN file AS older INDEXED BY file_by_volume
                    ON older.volume = file.volume AND older.path = file.path AND older.id < file.id
                WHERE file.id = ?1 AND file.volume IS NOT NULL
                UNION ALL SELECT follower.file_id FROM delivery CROSS JOIN delivery AS follower
                    ON follower.after_id = delivery.id WHERE delivery.file_id = ?1
                """, next)
        }
        return group.sorted()
    }

    private mutating func canMove(_ file: Int64) throws -> Bool {
        let found = try database.row(
            """
            SELECT batch_id FROM file
            WHERE id = ? AND finished_at <= ? AND state IN (\(Self.states)) AND intent IS NULL AND NOT EXISTS (
                SELECT 1 FROM delivery WHERE file_id = file.id AND (
                    owner IS NOT NULL OR state IN ('ready', 'claimed', 'parked')
                    OR EXISTS (SELECT 1 FROM checkpoint WHERE delivery_id = delivery.id)
                    OR EXISTS (SELECT 1 FROM leftover WHERE delivery_id = delivery.id)
                    OR EXISTS (SELECT 1 FROM twin WHERE delivery_id = delivery.id)
                    OR EXISTS (SELECT 1 FROM twin WHERE leader_id = delivery.id)))
            """, file, time
        ) { $0.optionalInteger(0) }
        guard let found else { return false }
        return try found.map { try canMove(batch: $0) } ?? true
    }

    /// A batch goes once it has ended, its lists are written, and none of its files waits for a person. A unit's marker that
    /// failed with it does so for ever, and is left behind. The files are looked at only where the batch's state leaves it
    /// open: there may be very many, and they go a few at a time.
    private mutating func canMove(batch: Int64) throws -> Bool {
        if let known = batches[batch] { return known }
        let can =
            try database.exists(
                """
                SELECT 1 FROM batch WHERE id = ? AND ended_at <= ?
                    AND NOT EXISTS (SELECT 1 FROM manifest WHERE batch_id = batch.id)
                    AND (state IN ('delivered', 'duplicate', 'superseded', 'gone', 'cancelled') OR NOT EXISTS (
                        SELECT 1 FROM file INDEXED BY file_by_batch
                        WHERE batch_id = batch.id AND file.state NOT IN (\(Self.states)) AND ifnull(role, '') <> ?))
                """, batch, time, unitMarkerRole)
        batches[batch] = can
        return can
    }
}

/// Which files come back from the history with others: those of the same batch, what any of them comes after, and all that is
/// newer under the same paths. A path may have been written to for years, and a unit may have any number of files: there may
/// be more than one transaction should bring back.
private struct HistoryRestore {
    let database: Database
    /// How many to look for at most.
    var most = Int.max
    var met: Set<Int64> = []
    var batches: Set<Int64> = []
    /// In an order of which each beginning may come back without the rest: what is newer before what is older, what others
    /// come after before them.
    var files: [Int64] = []

    /// Whether there may be more than it looked for.
    var isFull: Bool { files.count >= most }

    /// Adds a file with all that comes back with it; nothing where it is not in the history. The file is the last: while it
    /// is there, its batch is found by it.
    mutating func add(_ file: Int64) throws {
        let found = try database.row("SELECT batch_id FROM history_file WHERE id = ?", file) {
            $0.optionalInteger(0)
        }
        guard let found else { return }
        if let batch = found, batches.insert(batch).inserted {
            let others = try database.integers(
                "SELECT id FROM history_file INDEXED BY history_by_batch WHERE batch_id = ? AND id <> ? LIMIT ?",
                batch, file, most)
            for other in others { try addWithNewer(other) }
        }
        try addWithNewer(file)
    }

    private mutating func addWithNewer(_ file: Int64) throws {
        if isFull || met.contains(file) { return }
        let newer = try database.integers(
            """
            SELECT newer.id FROM history_file AS own CROSS JOIN history_file AS newer INDEXED BY history_by_path
                ON newer.place = own.place AND newer.path = own.path AND newer.id > own.id
            WHERE own.id = ? ORDER BY newer.id DESC LIMIT ?
            """, file, most)
        for next in newer { try addWithLeaders(next) }
        try addWithLeaders(file)
    }

    private mutating func addWithLeaders(_ file: Int64) throws {
        guard !isFull, met.insert(file).inserted else { return }
        let leaders = try database.integers(
            """
            SELECT DISTINCT leader.file_id FROM history_delivery AS own CROSS JOIN history_delivery AS leader
                ON leader.id = own.after_id
            WHERE own.file_id = ?1 AND leader.file_id <> ?1
            """, file)
        for leader in leaders { try addWithNewer(leader) }
        if !isFull { files.append(file) }
    }
}

/// Files that come back from the history, because a person or a late companion goes on with them. They are then as they were,
/// under their numbers, and go there again in time.
extension Journal {
    /// Bounds how long others wait for one transaction that brings files back.
    static let revivedAtOnce = 256

    /// Brings back what an action needs of the history, if that is much: so many files in a transaction, with turns for others
    /// in between. What is left for the action's own is less. A process that dies meanwhile leaves some files back and some
    /// not, as it does on their way to the history.
    ///
    /// - Parameter wanted: the files that the action brings back.
    func reviveAhead(_ wanted: @escaping @Sendable (Database) throws -> [Int64]) async throws(JournalError) {
        var isMore = true
        while isMore {
            isMore = try await commit { try Self.revivePart(of: wanted($0), $0) }
        }
    }

    /// - Returns: whether there may be more to bring back; nothing was where one transaction can bring all of it.
    static func revivePart(of files: [Int64], _ database: Database) throws -> Bool {
        var revival = HistoryRestore(database: database, most: revivedAtOnce)
        for file in files where !revival.isFull { try revival.add(file) }
        if revival.isFull { try bringBack(revival.files, database) }
        return revival.isFull
    }

    /// Brings a file back, with all that comes back with it (`HistoryRestore`).
    /// - Returns: whether it was in the history.
    @discardableResult
    static func revive(_ file: Int64, _ database: Database) throws -> Bool {
        var revival = HistoryRestore(database: database)
        try revival.add(file)
        try bringBack(revival.files, database)
        return !revival.files.isEmpty
    }

    private static func bringBack(_ files: [Int64], _ database: Database) throws {
        let jobs = try files.sorted().map { try job(self.file($0, database), database) }
        for job in jobs { try insertBack(job.file, database) }
        let deliveries = jobs.flatMap { job in job.deliveries.map { (file: job.file, row: $0) } }
        // In the order in which they were made: who waits for another comes after it.
        for delivery in deliveries.sorted(by: { $0.row.id < $1.row.id }) {
            try insertBack(delivery.row, of: delivery.file, database)
        }
    }

    /// Brings a file back of which something could be sent again, and what the history has of its batch. Without that it stays
    /// where it is.
    static func reviveUndelivered(_ file: Int64, _ database: Database) throws {
        for found in try undelivered(file, database) { try revive(found, database) }
    }

    /// Of the history: the file, if something of it could be sent again; or one of its batch, if it is back itself.
    static func undelivered(_ file: Int64, _ database: Database) throws -> [Int64] {
        let undelivered = try database.integer(
            "SELECT file_id FROM history_as_delivery WHERE file_id = ? AND state <> 'delivered' LIMIT 1", file)
        return try [undelivered, restOfBatch(of: file, database)].compactMap(\.self)
    }

    /// A file in the history whose batch is that of one which is not there; nil when there is none.
    static func restOfBatch(of file: Int64, _ database: Database) throws -> Int64? {
        try database.integer(
            "SELECT id FROM history_file WHERE batch_id = (SELECT batch_id FROM file WHERE id = ?) LIMIT 1", file)
    }

    static func fileInHistory(of delivery: Int64, _ database: Database) throws -> Int64? {
        try database.integer("SELECT file_id FROM history_delivery WHERE id = ?", delivery)
    }
}
