internal import GRDB
package import InletCore

/// Where the search for files that can go to the history stands.
package struct HistoryPlace: Sendable, Equatable {
    fileprivate var state = 0
    fileprivate var last: Int64 = 0

    package init() {}
}

/// What one step of that search did.
package struct HistoryStep: Sendable, Equatable {
    /// Files that went to the history.
    package var files = 0
    /// Where to go on; nil when that was all.
    package var next: HistoryPlace?
    /// A time at which none of the files that are too young yet had been finished; nil when no such file was met.
    package var youngest: WallTime?
}

extension Journal {
    /// States of files that can go to the history. What failed or expired waits for a person. What has been replaced comes
    /// first, because it goes before what has replaced it.
    static let statesOfHistory: [FileState] = [.superseded, .gone, .cancelled, .rejected, .duplicate, .delivered]

    /// Files in one transaction: it keeps others waiting for a few milliseconds.
    static let movedAtOnce = 25

    /// Moves some of the files that were finished at `time` or before to the history, in one transaction: at every moment all
    /// that is known of a file is in one of the two places. Writes nothing where there is nothing to move.
    package func moveToHistory(
        finishedBy time: WallTime, from place: HistoryPlace = HistoryPlace()
    ) async throws(JournalError) -> HistoryStep {
        var (files, step) = try await read { try Self.candidates(time, place, $0) }
        if !files.isEmpty { step.files = try await moveToHistory(files, finishedBy: time) }
        return step
    }

    private func moveToHistory(_ files: [Int64], finishedBy time: WallTime) async throws(JournalError) -> Int {
        try await commit { database in
            var move = HistoryMove(database, time)
            for file in files { try move.take(file) }
            return move.files
        }
    }

    private static func candidates(
        _ time: WallTime, _ place: HistoryPlace, _ database: Database
    ) throws -> (files: [Int64], HistoryStep) {
        let rows = try database.rows(
            """
            SELECT id, admitted_at, finished_at FROM file INDEXED BY file_by_state
            WHERE state = '\(statesOfHistory[place.state].rawValue)' AND id > ? ORDER BY id LIMIT \(movedAtOnce)
            """, .integer(place.last)
        ) { (id: $0.integer(0), admitted: $0.integer(1), finished: $0.optionalInteger(2)) }
        var (files, step, isOver): ([Int64], HistoryStep, Bool) = ([], HistoryStep(), rows.count < movedAtOnce)
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
}

/// Files on their way to the history, in one transaction.
private struct HistoryMove {
    private let database: Database
    private let time: WallTime
    private var words: HistoryWords
    /// Whether nothing of a batch needs it where it is.
    private var batches: [Int64: Bool] = [:]
    private(set) var files = 0

    /// Of one path, with all that followed it. Of more, the oldest go first, by themselves.
    private static let mostTogether = 200
    private static let states = Journal.statesOfHistory.map { "'\($0.rawValue)'" }.joined(separator: ", ")

    init(_ database: Database, _ time: WallTime) {
        self.database = database
        self.time = time
        words = HistoryWords(database)
    }

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
        for job in jobs {
            try HistoryRow(job, database).write(&words)
        }
        let list = SQLValue.text("[\(group.map(String.init).joined(separator: ","))]")
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
            waiting += try database.rows(
                """
                SELECT older.id FROM file CROSS JOIN file AS older INDEXED BY file_by_path
                    ON older.root = file.root AND older.path = file.path AND older.id < file.id
                WHERE file.id = ?1 AND file.volume IS NULL AND older.volume IS NULL
                UNION ALL SELECT older.id FROM file CROSS JOIN file AS older INDEXED BY file_by_volume
                    ON older.volume = file.volume AND older.path = file.path AND older.id < file.id
                WHERE file.id = ?1 AND file.volume IS NOT NULL
                UNION ALL SELECT follower.file_id FROM delivery CROSS JOIN delivery AS follower
                    ON follower.after_id = delivery.id WHERE delivery.file_id = ?1
                """, .integer(next)
            ) { $0.integer(0) }
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
            """, .integer(file), .integer(time.milliseconds)
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
            try database.row(
                """
                SELECT 1 FROM batch WHERE id = ? AND ended_at <= ?
                    AND NOT EXISTS (SELECT 1 FROM manifest WHERE batch_id = batch.id)
                    AND (state IN ('delivered', 'duplicate', 'superseded', 'gone', 'cancelled') OR NOT EXISTS (
                        SELECT 1 FROM file INDEXED BY file_by_batch
                        WHERE batch_id = batch.id AND file.state NOT IN (\(Self.states)) AND ifnull(role, '') <> ?))
                """, .integer(batch), .integer(time.milliseconds), .text(unitMarkerRole)
            ) { _ in true } != nil
        batches[batch] = can
        return can
    }
}

extension Journal {
    /// Puts a file's part of the totals right, which only the triggers of `file` keep otherwise.
    static func count(_ files: Int64, _ file: FileRow, _ database: Database) throws {
        try database.change(
            "UPDATE tally SET files = files + ?, bytes = bytes + ? WHERE state = ?", .integer(files),
            .integer(files * file.identity.size), .text(file.state.rawValue))
    }
}
