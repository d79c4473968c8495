internal import GRDB
package import InletCore

/// The position of the search for files that can move to the history: the current state, and the last file of it.
package typealias HistoryPlace = (state: Int, last: Int64)

/// The result of one step: the number of files moved, and where to continue (nil when complete). The time is one before
/// which none of the too young files was finished (nil when there was none).
package typealias HistoryStep = (files: Int, next: HistoryPlace?, youngest: WallTime?)

extension Journal {
    /// States of files that can move to the history. Failed and expired files wait for a person. Replaced files come
    /// first, because they move before their replacement.
    static let statesOfHistory: [FileState] = [.superseded, .gone, .cancelled, .rejected, .duplicate, .delivered]

    /// The number of files in one transaction: others wait for a few milliseconds.
    static let movedAtOnce = 25

    /// Moves some of the files that were finished at `time` or before to the history, in one transaction. At every
    /// moment a file is complete in one of the two places. Writes nothing when there is nothing to move. The first step
    /// also forgets old versions in shares.
    package func moveToHistory(
        finishedBy time: WallTime, from place: HistoryPlace = (0, 0)
    ) async throws(JournalError) -> HistoryStep {
        if place == (0, 0) { try await prunePlaceFiles(time) }
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
            // Files behind it came even later.
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

    /// Corrects a file's part of the totals, which otherwise only the triggers of `file` keep.
    static func count(_ files: Int64, _ file: FileRow, _ database: Database) throws {
        try database.change(
            "UPDATE tally SET files = files + ?, bytes = bytes + ? WHERE state = ?", files,
            files * file.identity.size, file.state)
    }
}

/// Moves files to the history, in one transaction.
private struct HistoryMove {
    let database: Database
    let time: WallTime
    /// Whether nothing of a batch needs the file where it is.
    var batches: [Int64: Bool] = [:]
    var files = 0

    /// The limit for one path and everything that followed it. Where there is more, the oldest files move first, on
    /// their own.
    private static let mostTogether = 200
    private static let states = Journal.statesOfHistory.literals

    /// Moves a file, with everything that must go before or with it; leaves it in place while anything still needs it
    /// there.
    mutating func take(_ file: Int64) throws {
        guard let group = try group(of: file) else { return }
        let jobs: [Job]
        do {
            jobs = try group.map { try Journal.job(Journal.file($0, database), database) }
        } catch {
            // Unreadable rows stay in place.
            guard !(error is DatabaseError) else { throw error }
            return
        }
        for job in jobs { try Journal.insertIntoHistory(job, database) }
        let list = "[\(group.map(String.init).joined(separator: ","))]"
        try database.change("DELETE FROM receipt WHERE file_id IN (SELECT value FROM json_each(?))", list)
        try database.change("DELETE FROM file WHERE id IN (SELECT value FROM json_each(?))", list)
        // Moved files are not forgotten: the totals still count them.
        for job in jobs { try Journal.count(1, job.file, database) }
        files += jobs.count
    }

    /// The file, the earlier files of its path, and the followers of any of them. A path has nothing older than its
    /// history outside of it, and followers move with the file that they follow.
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
            WHERE id = ? AND finished_at <= ? AND state IN (\(Self.states)) AND intent IS NULL
                AND NOT EXISTS (SELECT 1 FROM place_work WHERE file_id = file.id) AND NOT EXISTS (
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

    /// A batch moves once it has ended, its lists are written, and none of its files waits for a person. A unit's
    /// marker that failed with it never changes again, and stays behind. The files are examined only where the batch's
    /// state leaves the question open: there may be very many, and they move a few at a time.
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

/// The files that return from the history with others: those of the same batch, those that any of them comes after, and
/// everything newer under the same paths. A path may have been written for years and a unit may have any number of
/// files, so there may be more than one transaction should bring back.
private struct HistoryRestore {
    let database: Database
    /// The most to look for.
    var most = Int.max
    var met: Set<Int64> = []
    var batches: Set<Int64> = []
    /// Ordered so that any beginning of the list may return without the rest: newer before older, predecessors before
    /// followers.
    var files: [Int64] = []

    /// Whether there may be more than `most`.
    var isFull: Bool { files.count >= most }

    /// Adds a file with all that returns with it; nothing when it is not in the history. The file is last: while it is
    /// there, its batch can be found by it.
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

/// Files that return from the history because a person or a late companion needs them. They keep their state and their
/// numbers, and move to the history again in time.
extension Journal {
    /// Limits how long one transaction that brings files back makes others wait.
    static let revivedAtOnce = 256

    /// Brings back the files that an order needs of the history, when there are many: a bounded number in each
    /// transaction, with turns for others in between. The order's own transaction handles the rest. A process that dies
    /// meanwhile leaves some files back and some not, as on the way to the history.
    ///
    /// - Parameter wanted: the files that the order brings back.
    func reviveAhead(_ wanted: @escaping @Sendable (Database) throws -> [Int64]) async throws(JournalError) {
        var isMore = true
        while isMore {
            isMore = try await commit { try Self.revivePart(of: wanted($0), $0) }
        }
    }

    /// - Returns: whether there may be more to bring back; nothing was done where one transaction can bring all of it.
    static func revivePart(of files: [Int64], _ database: Database) throws -> Bool {
        var revival = HistoryRestore(database: database, most: revivedAtOnce)
        for file in files where !revival.isFull { try revival.add(file) }
        if revival.isFull { try bringBack(revival.files, database) }
        return revival.isFull
    }

    /// Brings a file back, with everything that returns with it (`HistoryRestore`).
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
        // In the order of their creation: a follower comes after the file that it waits for.
        for delivery in deliveries.sorted(by: { $0.row.id < $1.row.id }) {
            try insertBack(delivery.row, of: delivery.file, database)
        }
    }

    /// Brings back a file that can partly be sent again, with its batch's files in the history. Any other file stays
    /// there.
    static func reviveUndelivered(_ file: Int64, _ database: Database) throws {
        for found in try undelivered(file, database) { try revive(found, database) }
    }

    /// The file itself if part of it can be sent again, or a member of its batch if the file is already back.
    static func undelivered(_ file: Int64, _ database: Database) throws -> [Int64] {
        let undelivered = try database.integer(
            "SELECT file_id FROM history_as_delivery WHERE file_id = ? AND state <> 'delivered' LIMIT 1", file)
        return try [undelivered, restOfBatch(of: file, database)].compactMap(\.self)
    }

    /// A file in the history whose batch belongs to a job that is not there; nil when there is none.
    static func restOfBatch(of file: Int64, _ database: Database) throws -> Int64? {
        try database.integer(
            "SELECT id FROM history_file WHERE batch_id = (SELECT batch_id FROM file WHERE id = ?) LIMIT 1", file)
    }

    static func fileInHistory(of delivery: Int64, _ database: Database) throws -> Int64? {
        try database.integer("SELECT file_id FROM history_delivery WHERE id = ?", delivery)
    }
}
