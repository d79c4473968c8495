internal import GRDB
internal import InletCore

/// A file with its deliveries, as the history has it and as it was before.
struct HistoryRow {
    private let file: FileRow
    private let deliveries: [DeliveryRow]
    private let database: Database

    init(_ job: Job, _ database: Database) {
        file = job.file
        deliveries = job.deliveries
        self.database = database
    }

    // MARK: - Into the history

    /// Writes it into the history. The rows that it was made from are still there.
    func write(_ words: inout HistoryWords) throws {
        let place = try words.number(place: Journal.placeName(file.root, file.volume))
        try insertFile(place, &words)
        for delivery in deliveries { try insert(delivery, &words) }
        if file.disposition == Disposition.kept { try keep(1, place) }
    }

    private func insertFile(_ place: Int64, _ words: inout HistoryWords) throws {
        let identity = file.identity
        let root: SQLValue = file.volume == nil ? .null : .integer(try words.number(place: file.root.bytes))
        let isCommon = file.disposition.map(Disposition.isCommon) ?? false
        try database.change(
            """
            INSERT INTO history_file (id, place, path, root, size, modified, changed, inode, device, state, route, category,
                media_type, policy, code, reason, content, admitted_at, ended_at, finished_at, disposition, batch_id, role,
                labels, digests)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            """,
            .integer(file.id), .integer(place), .bytes(file.path.bytes), root, .integer(identity.size),
            .integer(identity.modified), .integer(identity.changed), .integer(Int64(bitPattern: identity.inode)),
            .integer(Int64(bitPattern: identity.device)), try words.value(file.state.rawValue),
            try words.value(file.route), try words.value(file.category), try words.value(file.mediaType),
            .integer(try words.number(policy: PolicyNotes.shared.note(file.policy))),
            try words.value(file.code?.rawValue), SQLValue(file.reason), SQLValue(file.content?.short),
            .integer(file.admittedAt.milliseconds), SQLValue(file.endedAt?.milliseconds),
            .integer(file.finishedAt?.milliseconds ?? 0),
            isCommon ? try words.value(file.disposition) : SQLValue(file.disposition), SQLValue(file.batchID),
            try words.value(file.role), file.labels.isEmpty ? .null : .bytes(try JournalJSON.encode(file.labels)),
            file.digests.isEmpty ? .null : .text(file.digests.short))
    }

    private func insert(_ row: DeliveryRow, _ words: inout HistoryWords) throws {
        let destination = try words.number(row.destination)
        try database.change(
            """
            INSERT INTO history_delivery (id, file_id, after_id, destination, key, fields, lane, state, attempts,
                interrupted, expires_at, code, reason, proof, ended_at, waits, closes, started_at, crashes, priority)
            SELECT id, file_id, after_id, ?, key, fields, lane, ?, attempts, interrupted, expires_at, ?, reason, ?,
                ended_at, waits, closes, started_at, crashes, priority
            FROM delivery WHERE id = ?
            """,
            .integer(destination), try words.value(row.state.rawValue), try words.value(row.code?.rawValue),
            SQLValue(try row.proof?.short(of: row.key)), .integer(row.id))
        guard file.digests.sha256 != nil else { return }
        try database.change(
            """
            INSERT OR REPLACE INTO history_content (destination, digest, delivery_id)
            SELECT ?, digest, delivery_id FROM content WHERE delivery_id = ?
            """, .integer(destination), .integer(row.id))
    }

    private func keep(_ files: Int64, _ place: Int64) throws {
        try database.change("UPDATE history_place SET kept = kept + ? WHERE id = ?", .integer(files), .integer(place))
    }

    // MARK: - And back

    /// Puts the file back among those that are worked with. Its deliveries follow: they may wait for those of others.
    func insertFileBack() throws {
        let identity = file.identity
        try database.change(
            """
            INSERT INTO file (id, root, path, size, modified, changed, inode, device, state, route, category, media_type,
                policy, code, reason, content, admitted_at, ended_at, finished_at, disposition, batch_id, role, labels,
                digests, volume)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            """,
            .integer(file.id), .bytes(file.root.bytes), .bytes(file.path.bytes), .integer(identity.size),
            .integer(identity.modified), .integer(identity.changed), .integer(Int64(bitPattern: identity.inode)),
            .integer(Int64(bitPattern: identity.device)), .text(file.state.rawValue), SQLValue(file.route),
            SQLValue(file.category), SQLValue(file.mediaType), .bytes(try PolicyNotes.shared.note(file.policy)),
            SQLValue(file.code?.rawValue), SQLValue(file.reason),
            SQLValue(file.content?.note), .integer(file.admittedAt.milliseconds),
            SQLValue(file.endedAt?.milliseconds), SQLValue(file.finishedAt?.milliseconds), SQLValue(file.disposition),
            SQLValue(file.batchID), SQLValue(file.role),
            file.labels.isEmpty ? .null : .bytes(try JournalJSON.encode(file.labels)),
            file.digests.isEmpty ? .null : .bytes(try JournalJSON.encode(file.digests)), SQLValue(file.volume))
        // It was counted all the time.
        try Journal.count(-1, file, database)
        if file.disposition == Disposition.kept {
            try database.change(
                "UPDATE history_place SET kept = kept - 1 WHERE id = (SELECT place FROM history_file WHERE id = ?)",
                .integer(file.id))
        }
        try database.change("DELETE FROM history_file WHERE id = ?", .integer(file.id))
    }

    /// What it came after may have been forgotten since.
    func insertBack(_ row: DeliveryRow) throws {
        try database.change(
            """
            INSERT INTO delivery (id, file_id, after_id, destination, key, fields, lane, state, attempts, interrupted,
                next_at, expires_at, code, reason, proof, ended_at, waits, closes, started_at, crashes, priority)
            SELECT id, file_id, (SELECT leader.id FROM delivery AS leader WHERE leader.id = past.after_id), destination,
                key, fields, lane, state, attempts, interrupted, next_at, expires_at, code, reason, ?, ended_at, waits,
                closes, started_at, crashes, priority
            FROM history_as_delivery AS past WHERE id = ?
            """, SQLValue(row.proof?.note), .integer(row.id))
        try database.change("DELETE FROM history_delivery WHERE id = ?", .integer(row.id))
        guard let digest = file.digests.sha256?.bytes else { return }
        let holder = """
            destination = (SELECT id FROM history_word WHERE word = ?) AND digest = ? AND delivery_id = ?
            """
        let values: [SQLValue] = [.text(row.destination), .bytes(digest), .integer(row.id)]
        let isHolder = try !database.rows("SELECT 1 FROM history_content WHERE \(holder)", values) { _ in true }.isEmpty
        guard isHolder else { return }
        // Another may have brought it since this one was deleted there.
        try database.change(
            "INSERT OR IGNORE INTO content (destination, digest, delivery_id) VALUES (?, ?, ?)", values[0], values[1],
            values[2])
        try database.change(
            "DELETE FROM history_content WHERE \(holder)", values[0], values[1], values[2])
    }
}
