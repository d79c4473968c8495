internal import GRDB
package import InletCore
package import SystemPackage

/// A removable volume over its whole life.
package struct CardRow: Sendable, Equatable {
    package var id: Int64
    /// `VolumeIdentity.key`: without the watched folder on it.
    package var key: String
    /// Its label, or UUID; a second card of the same label is `UNTITLED (2)`, for ever.
    package var name: String
    package var label: String?
    package var uuid: String?
    /// The file system.
    package var kind: String
    package var firstSeen: WallTime
    package var errors: CardErrors

    /// For people: `UUID 1234-ABCD`.
    package var identity: String { uuid.map { "UUID \($0)" } ?? "\(kind) \(key)" }

    fileprivate static let columns =
        "card.id, card.key, card.name, card.label, card.uuid, card.kind, card.first_seen, card.errors"

    fileprivate init(_ row: SQLRow) {
        id = row.integer(0)
        (key, name, kind) = (row.text(1) ?? "", row.text(2) ?? "", row.text(5) ?? "")
        (label, uuid, firstSeen) = (row.text(3), row.text(4), row.time(6))
        errors = JSON.note(row.optionalBytes(7)) ?? CardErrors()
    }
}

/// A stay of a card in a reader.
package struct InsertionRow: Sendable, Equatable {
    package var id: Int64
    package var card: CardRow
    package var mount: FilePath
    package var insertedAt: WallTime
    /// nil while it is in, or where nobody saw it go.
    package var removedAt: WallTime?
    package var labels: CardLabels
    /// The checksum of the other files that may stay; nil while nobody has said so.
    package var othersLeft: String?
    /// The checksum of the content whose second read was right.
    package var checked: String?
    /// `CardVerdict.word`, its headline and the list below it, when it was last told.
    package var verdict: String?
    package var headline: String?
    package var lines: [CardLine]
    package var verdictAt: WallTime?
    package var files: Int
    package var bytes: Int64

    fileprivate static let columns = """
        \(CardRow.columns), insertion.id, mount, inserted_at, removed_at, labels, others, checked, verdict, headline, lines,
        verdict_at, files, bytes
        """

    fileprivate init(_ row: SQLRow) {
        card = CardRow(row)
        (id, mount, insertedAt, removedAt) = (row.integer(8), row.path(9), row.time(10), row.optionalTime(11))
        labels = JSON.note(row.optionalBytes(12)) ?? CardLabels()
        (othersLeft, checked, verdict, headline) = (row.text(13), row.text(14), row.text(15), row.text(16))
        lines = JSON.note(row.optionalBytes(17)) ?? []
        (verdictAt, files, bytes) = (row.optionalTime(18), row.int(19), row.integer(20))
    }
}

/// Cards, their stays in a reader, and what was found about them.
extension Journal {
    /// The card of a volume; a new one gets a name of its own.
    ///
    /// - Parameter weaker: keys that it may have been known by until now, while it is in its reader. Later, another card
    ///   may have them.
    package func card(
        _ identity: VolumeIdentity, key: String, weaker: [String], at now: WallTime
    ) async throws(JournalError) -> CardRow {
        if let known = try await read({ try Self.card(key, $0) }) { return known }
        let volumes = try await volumes().filter { volume in !([key] + weaker).contains { volume.hasPrefix($0 + "/") } }
        return try await commit { database in
            if let known = try Self.card(key, database) { return known }
            for former in weaker where !former.isEmpty {
                guard let known = try Self.card(former, database), known.uuid == nil,
                    try database.exists(
                        "SELECT 1 FROM insertion WHERE card_id = ? AND removed_at IS NULL", known.id)
                else { continue }
                try database.change(
                    "UPDATE card SET key = ?, uuid = ?, label = ifnull(?, label) WHERE id = ?", key, identity.uuid,
                    identity.label, known.id)
                if let renamed = try Self.card(key, database) { return renamed }
            }
            var (name, number) = (identity.name, 1)
            while try Self.isTaken(name, volumes, database) {
                number += 1
                name = "\(identity.name) (\(number))"
            }
            try database.change(
                "INSERT INTO card (key, name, label, uuid, kind, first_seen) VALUES (?, ?, ?, ?, ?, ?)", key, name,
                identity.label, identity.uuid, identity.kind, now)
            guard let made = try Self.card(key, database) else { throw DatabaseError(message: "no card was made") }
            return made
        }
    }

    /// Whether another card has the name, or files have it in their keys that came before the journal had cards.
    private static func isTaken(_ name: String, _ volumes: [String], _ database: Database) throws -> Bool {
        if try database.exists("SELECT 1 FROM card WHERE name = ?", name) { return true }
        return try volumes.contains { volume in
            if try database.exists("SELECT 1 FROM card WHERE substr(?1, 1, length(key) + 1) = key || '/'", volume) {
                return false
            }
            return try database.exists(
                """
                SELECT 1 FROM delivery JOIN file ON file.id = file_id
                WHERE volume = ?1 AND (instr(delivery.key, ?2) > 0 OR instr(delivery.key, ?3) > 0)
                UNION ALL SELECT 1 FROM history_delivery WHERE (instr(key, ?2) > 0 OR instr(key, ?3) > 0) AND file_id IN (
                    SELECT id FROM history_file
                    WHERE place = (SELECT id FROM history_place WHERE name = CAST(?1 AS BLOB)))
                """, volume, name, KeySanitizer.folderName(name) ?? name)
        }
    }

    private static func card(_ key: String, _ database: Database) throws -> CardRow? {
        try database.row("SELECT \(CardRow.columns) FROM card WHERE key = ?", key, read: CardRow.init)
    }

    /// The card's stay that begins or goes on now.
    ///
    /// - Parameter isNew: whether somebody saw it come; otherwise its last stay goes on, as after a restart.
    package func insertion(
        of card: Int64, at mount: FilePath, isNew: Bool, now: WallTime
    ) async throws(JournalError) -> InsertionRow {
        try await commit { database in
            let last = try database.integer(
                "SELECT id FROM insertion WHERE card_id = ? AND removed_at IS NULL ORDER BY id DESC LIMIT 1", card)
            if isNew || last == nil {
                try database.change(
                    "UPDATE insertion SET removed_at = ? WHERE card_id = ? AND removed_at IS NULL", now, card)
                try database.change(
                    "INSERT INTO insertion (card_id, mount, inserted_at) VALUES (?, ?, ?)", card, mount, now)
            } else {
                try database.change("UPDATE insertion SET mount = ? WHERE id = ?", mount, last)
            }
            let found = try Self.insertions("WHERE card_id = ? ORDER BY insertion.id DESC LIMIT 1", [card], database)
            guard let row = found.first else { throw DatabaseError(message: "no insertion was made") }
            return row
        }
    }

    private static func insertions(
        _ condition: String, _ values: [any SQLValue], _ database: Database
    ) throws -> [InsertionRow] {
        try database.rows(
            "SELECT \(InsertionRow.columns) FROM insertion JOIN card ON card.id = card_id \(condition)", values,
            read: InsertionRow.init)
    }

    package func endInsertion(_ id: Int64, at now: WallTime) async throws(JournalError) {
        try await change("UPDATE insertion SET removed_at = ifnull(removed_at, ?) WHERE id = ?", now, id)
    }

    /// Records the verdict of a stay.
    ///
    /// - Parameter checked: the checksum of the content whose second read was right.
    package func setVerdict(
        of id: Int64, _ verdict: CardVerdict, _ facts: CardFacts, lines: [CardLine], checked: String?, at now: WallTime
    ) async throws(JournalError) {
        try await commit { database in
            try database.change(
                """
                UPDATE insertion SET verdict = ?, headline = ?, lines = ?, verdict_at = ?, files = ?, bytes = ?,
                    checked = ifnull(?, checked) WHERE id = ?
                """, verdict.word, verdict.headline, try JSON.encode(lines), now, facts.files, facts.bytes, checked, id)
        }
    }

    package func setLabels(_ labels: CardLabels, of id: Int64) async throws(JournalError) {
        try await commit { database in
            try database.change("UPDATE insertion SET labels = ? WHERE id = ?", try JSON.encode(labels), id)
        }
    }

    /// The last labels of the card with this watched folder (`Volume.key`).
    package func labels(ofVolume volume: String) async throws(JournalError) -> CardLabels {
        try await read { database in
            let note = try database.row(
                """
                SELECT labels FROM insertion JOIN card ON card.id = card_id
                WHERE labels IS NOT NULL AND substr(?1, 1, length(key) + 1) = key || '/' ORDER BY insertion.id DESC LIMIT 1
                """, volume
            ) { $0.optionalBytes(0) }
            return JSON.note(note ?? nil) ?? CardLabels()
        }
    }

    /// A person has said that the other files on a card, with this checksum, may stay.
    package func setOthersLeft(_ digest: String?, of id: Int64) async throws(JournalError) {
        try await change("UPDATE insertion SET others = ? WHERE id = ?", digest, id)
    }

    /// Adds to the errors of a card's life. - Returns: the sum.
    package func addErrors(
        _ card: Int64, reads: Int, slow: Int, at now: WallTime
    ) async throws(JournalError) -> CardErrors {
        try await commit { database in
            let note = try database.row("SELECT errors FROM card WHERE id = ?", card) { $0.optionalBytes(0) } ?? nil
            var errors: CardErrors = JSON.note(note) ?? CardErrors()
            errors.reads += reads
            errors.slow += slow
            if reads > 0 { errors.lastRead = now }
            try database.change("UPDATE card SET errors = ? WHERE id = ?", try JSON.encode(errors), card)
            return errors
        }
    }

    /// The stays of all cards, or of one, newest first.
    ///
    /// - Parameter card: its name or UUID.
    package func insertions(
        of card: String? = nil, since: WallTime? = nil, limit: Int
    ) async throws(JournalError) -> [InsertionRow] {
        try await read { database in
            let (name, since) = (card ?? "", since ?? WallTime(milliseconds: 0))
            return try Self.insertions(
                """
                WHERE (?1 = '' OR card.name = ?1 OR card.uuid = ?1 COLLATE NOCASE) AND inserted_at >= ?2
                ORDER BY insertion.id DESC LIMIT ?3
                """, [name, since, limit], database)
        }
    }

    /// The rolls that were named last, newest first.
    package func rolls(limit: Int) async throws(JournalError) -> [String] {
        try await read { database in
            try database.rows(
                "SELECT labels FROM insertion WHERE labels IS NOT NULL ORDER BY id DESC LIMIT ?", limit
            ) { row -> CardLabels? in JSON.note(row.optionalBytes(0)) }.compactMap { $0?.roll }
        }
    }

    /// The unfinished files of a volume's folder: how many, their bytes, and how many of them may not be read. Files that
    /// wait for their disposal do not count.
    package func open(of volume: String) async throws(JournalError) -> (files: Int, bytes: Int64, forbidden: Int) {
        try await read { database in
            try database.row(
                """
                SELECT count(*), ifnull(sum(size), 0), count(
                    (SELECT 1 FROM delivery WHERE file_id = file.id AND state = 'ready' AND code = ?2 LIMIT 1))
                FROM file INDEXED BY file_open_of_volume
                WHERE volume = ?1 AND finished_at IS NULL AND state = 'pending'
                """, volume, ErrorCode.sourceForbidden.rawValue
            ) { ($0.int(0), $0.integer(1), $0.int(2)) } ?? (0, 0, 0)
        }
    }

    /// The newest row of each of these paths on a volume, in their order; nil for paths that the journal does not know.
    package func cardFiles(
        of volume: String, _ paths: [FilePath]
    ) async throws(JournalError) -> [Job?] {
        let ids = try await read { database in
            try paths.map { path in
                try database.integer(
                    """
                    SELECT max(id) FROM (
                        SELECT max(id) AS id FROM file WHERE volume = ?1 AND path = ?2
                        UNION ALL SELECT max(id) FROM history_file
                        WHERE place = (SELECT id FROM history_place WHERE name = CAST(?1 AS BLOB)) AND path = ?2)
                    """, volume, path)
            }
        }
        let known = ids.compactMap(\.self)
        let jobs = try await jobs(known) { _ in true }.compactMap(\.self)
        let found = Dictionary(jobs.map { ($0.file.id, $0) }) { first, _ in first }
        return ids.map { $0.flatMap { found[$0] } }
    }
}

extension Journal {
    /// The keys that files of a volume have at each destination: how many, the smallest and the biggest.
    package func cardKeys(
        of volume: String
    ) async throws(JournalError) -> [String: (count: Int, first: String, last: String)] {
        try await read { database in
            var keys: [String: (count: Int, first: String, last: String)] = [:]
            for tables in JournalTables.allCases {
                let files =
                    switch tables {
                    case .current: "SELECT id FROM file WHERE volume = ?1"
                    case .history:
                        "SELECT id FROM history_file WHERE place = (SELECT id FROM history_place WHERE name = CAST(?1 AS BLOB))"
                    }
                let rows = try database.rows(
                    """
                    SELECT destination, count(key), min(key), max(key) FROM \(tables.deliveries)
                    WHERE file_id IN (\(files)) AND key IS NOT NULL GROUP BY destination
                    """, volume
                ) { (name: $0.text(0) ?? "", count: $0.int(1), first: $0.text(2) ?? "", last: $0.text(3) ?? "") }
                for row in rows {
                    let known = keys[row.name] ?? (0, row.first, row.last)
                    // SQLite's order, which is that of bytes.
                    keys[row.name] = (
                        known.count + row.count,
                        row.first.utf8.lexicographicallyPrecedes(known.first.utf8) ? row.first : known.first,
                        known.last.utf8.lexicographicallyPrecedes(row.last.utf8) ? row.last : known.last
                    )
                }
            }
            return keys
        }
    }
}
