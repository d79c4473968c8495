internal import GRDB
package import InletCore
internal import Synchronization
package import SystemPackage

/// The report about a version in a share after a loss.
package struct PlaceFileReport: Sendable, Equatable {
    package var version: PlaceVersion
    /// The rows that were kept with it, one for each delivery that this agent knows.
    package var rows: [[UInt8]]
    package var isFinished: Bool
}

/// This agent's record of versions in shares: they are admitted once, whoever lists the share.
extension Journal {
    /// Which of these are known to be admitted.
    package func knownInPlace(
        _ place: String, _ versions: [PlaceVersion]
    ) async throws(JournalError) -> [Bool] {
        try await read { database in
            try versions.map { version in
                try database.exists(
                    "SELECT 1 FROM place_file WHERE \(Self.isVersion) AND is_admitted", Self.names(place, version))
            }
        }
    }

    /// The fleet knows these: another agent has admitted them.
    package func keepKnownInPlace(
        _ place: String, _ versions: [PlaceVersion]
    ) async throws(JournalError) {
        try await commit { database in
            for version in versions {
                let names = Self.names(place, version)
                // Rows with the keys that this agent would have used are void now.
                try database.change(
                    """
                    DELETE FROM place_row WHERE \(Self.isVersion) AND EXISTS (
                        SELECT 1 FROM place_file WHERE \(Self.isVersion) AND mark IS NULL AND NOT is_admitted)
                    """, names)
                try database.change(
                    """
                    INSERT INTO place_file (place, path, version, is_admitted, mark) VALUES (?1, ?2, ?3, 1, 0)
                    ON CONFLICT DO UPDATE SET mark = iif(is_admitted, mark, 0), is_admitted = 1
                    """, names)
            }
        }
    }

    /// Before the fleet is asked: it may admit these and its answer may be lost. `mark` nil: unconfirmed.
    ///
    /// - Parameter rows: for a report after a loss, one for each delivery.
    package func keepAdmittedInPlace(
        _ place: String, _ files: [(version: PlaceVersion, rows: [[UInt8]])], mark: Int64?
    ) async throws(JournalError) {
        if let mark { heard.withLock { _ = $0.raise(to: mark, at: .now) } }
        try await commit { database in
            for (version, rows) in files {
                try database.change(
                    """
                    INSERT INTO place_file (place, path, version, is_admitted, mark) VALUES (?1, ?2, ?3, ?4, ?5)
                    ON CONFLICT DO UPDATE SET
                        mark = iif(?4, ?5, iif(is_admitted, mark, NULL)), is_admitted = max(is_admitted, ?4),
                        is_finished = iif(?4, 0, is_finished)
                    """, Self.names(place, version) + [mark != nil, mark] as [any SQLValue])
                for row in rows { try Self.keep(row, of: version, in: place, database) }
            }
            if mark != nil { try self.keepMark(database) }
        }
    }

    /// The fleet has lost commits, perhaps also the versions that only others reported.
    package func forgetKnownInPlaces() async throws(JournalError) {
        try await change("DELETE FROM place_file WHERE mark = 0")
    }

    /// Versions that were admitted, claimed or finished here after `mark`, or are unconfirmed.
    ///
    /// - Parameter last: the version of the page before; nil begins.
    package func placeFilesToReport(
        _ place: String, after mark: Int64, from last: PlaceVersion?, limit: Int
    ) async throws(JournalError) -> [PlaceFileReport] {
        try await read { database in
            let names = Self.short(place)
            let found = try database.rows(
                """
                SELECT path, version, is_finished FROM place_file
                WHERE place = ? AND (path, version) > (?, ?) AND (mark IS NULL OR mark > ?)
                ORDER BY path, version LIMIT ?
                """, names, last.map { Self.short($0.path) } ?? [], last.map { Self.short($0.version) } ?? [], mark,
                limit
            ) { (path: $0.bytes(0), version: $0.bytes(1), isFinished: $0.bool(2)) }
            return try found.map { one in
                let version = PlaceVersion(path: Self.long(one.path), version: Self.long(one.version))
                let rows = try database.rows(
                    "SELECT body FROM place_row WHERE \(Self.isVersion) ORDER BY ref", names, one.path, one.version
                ) { $0.bytes(0) }
                let isFinished = try one.isFinished || Self.isFinished(version, in: place, database)
                return PlaceFileReport(version: version, rows: rows, isFinished: isFinished)
            }
        }
    }

    /// Whether its source is finished here, which the fleet may not know.
    private static func isFinished(
        _ version: PlaceVersion, in place: String, _ database: Database
    ) throws -> Bool {
        try database.exists(
            """
            SELECT 1 FROM place_work AS work JOIN file ON file.id = file_id
            WHERE work.path = ? AND version = ? AND place = ? AND is_finishing AND finished_at IS NOT NULL
            """, version.path, version.version, place)
    }

    // MARK: - Markers

    /// The marker that a share of this name had; `isMade` is false where this agent was about to make it.
    package func placeMarker(
        _ name: String
    ) async throws(JournalError) -> (marker: String, isMade: Bool)? {
        try await read { database in
            try database.row("SELECT marker, is_made FROM place WHERE name = ?", name) {
                (marker: $0.text(0) ?? "", isMade: $0.bool(1))
            }
        }
    }

    package func keepPlaceMarker(
        _ name: String, _ marker: String, isMade: Bool
    ) async throws(JournalError) {
        try await change(
            """
            INSERT INTO place (name, marker, is_made) VALUES (?1, ?2, ?3)
            ON CONFLICT (name) DO UPDATE SET marker = ?2, is_made = ?3, told = iif(marker = ?2, told, 0)
            WHERE marker <> ?2 OR is_made <> ?3
            """, name, marker, isMade)
    }

    /// The markers of all shares that this agent has seen.
    package func placeMarkers() async throws(JournalError) -> [String: String] {
        try await read { database in
            Dictionary(
                uniqueKeysWithValues: try database.rows("SELECT name, marker FROM place WHERE is_made") {
                    ($0.text(0) ?? "", $0.text(1) ?? "")
                })
        }
    }
}

/// This agent's own files in a folder that has become a share: taken while it watched the folder alone.
extension Journal {
    /// Up to which file the fleet knows the own files of a folder.
    package func toldInPlace(_ name: String, _ root: FilePath) async throws(JournalError) -> Int64 {
        try await read { database in
            try database.integer("SELECT told FROM place WHERE name = ? AND told_root = ?", name, root) ?? 0
        }
    }

    /// A page of the folder's files after the number `last`. Only the versions of own files that nobody may send again
    /// are in it: those that were sent, failed, or wait.
    ///
    /// - Returns: with the number of its last file; nil where there are no more.
    package func ownInPlace(
        _ root: FilePath, after last: Int64, limit: Int
    ) async throws(JournalError) -> (versions: [PlaceVersion], last: Int64)? {
        try await read { database in
            var found: [(file: Int64, version: PlaceVersion?)] = []
            for tables in JournalTables.allCases {
                // By number: an index of the folder would be sorted for each page.
                found += try database.rows(
                    """
                    SELECT id, path, size, modified, state, disposition, \(FilePolicy.hasPlace) FROM \(tables.files)
                    WHERE id > ? AND +root = ? AND volume IS NULL ORDER BY id LIMIT ?
                    """, last, root, limit
                ) { row -> (file: Int64, version: PlaceVersion?) in
                    let mayBeSent = ["gone", "superseded", "rejected"].contains(row.text(4) ?? "")
                    if mayBeSent || Disposition.vacates(row.text(5)) || row.bool(6) { return (row.integer(0), nil) }
                    let version = PlaceVersion(of: row.path(1), size: row.integer(2), modified: row.integer(3))
                    return (row.integer(0), version)
                }
            }
            let page = found.sorted { $0.file < $1.file }.prefix(limit)
            guard let end = page.last else { return nil }
            return (versions: Array(Set(page.compactMap { $0.version })), last: end.file)
        }
    }

    /// The fleet knows the own files of a folder up to `last`. Of these versions it has no other work.
    ///
    /// - Parameter mark: of the fleet's answer; nil where nothing was asked.
    package func keepOwnInPlace(
        _ share: (name: String, marker: String, root: FilePath), _ versions: [PlaceVersion], upTo last: Int64,
        mark: Int64?
    ) async throws(JournalError) {
        if let mark { heard.withLock { _ = $0.raise(to: mark, at: .now) } }
        try await commit { database in
            for version in versions {
                try database.change(
                    """
                    INSERT INTO place_file (place, path, version, is_admitted, mark, is_finished)
                    VALUES (?1, ?2, ?3, 1, ?4, 1)
                    ON CONFLICT DO UPDATE SET is_admitted = 1, mark = ?4, is_finished = 1
                    """, Self.names(share.marker, version) + [mark] as [any SQLValue])
            }
            try database.change(
                "UPDATE place SET told = ?, told_root = ? WHERE name = ? AND marker = ?", last, share.root, share.name,
                share.marker)
            if mark != nil { try self.keepMark(database) }
        }
    }

    /// Whether no other agent has anything of the version to send: its source may go.
    package func isFinishedInPlace(_ place: String, _ version: PlaceVersion) async throws(JournalError) -> Bool {
        try await read { try Self.isOwn(place, version, $0) }
    }

    private static func isOwn(_ place: String, _ version: PlaceVersion, _ database: Database) throws -> Bool {
        try database.exists("SELECT 1 FROM place_file WHERE \(isVersion) AND is_finished", names(place, version))
    }

    /// The versions of own files that the fleet knows, and of which nothing was sent: they went away, or changed.
    package func lostOwnInPlace(
        _ name: String, _ marker: String, _ root: FilePath
    ) async throws(JournalError) -> [PlaceVersion] {
        try await read { database in
            let lost = try database.rows(
                """
                SELECT path, size, modified FROM file AS lost INDEXED BY file_by_state
                WHERE state IN ('gone', 'superseded') AND +root = ?1 AND volume IS NULL AND NOT \(FilePolicy.hasPlace)
                    AND id <= (SELECT told FROM place WHERE name = ?2 AND told_root = ?1)
                    AND NOT EXISTS (SELECT 1 FROM delivery WHERE file_id = lost.id AND delivery.state = 'delivered')
                """, root, name
            ) { (path: $0.path(0), size: $0.integer(1), modified: $0.integer(2)) }
            var versions: Set<PlaceVersion> = []
            for (path, size, modified) in lost {
                let version = PlaceVersion(of: path, size: size, modified: modified)
                guard try Self.isOwn(marker, version, database) else { continue }
                if try !Self.wasTakenAgain(root, path, size, modified, database) { versions.insert(version) }
            }
            return versions.sorted { $0.path < $1.path }
        }
    }

    /// Whether the same version came back, and was sent or waits.
    private static func wasTakenAgain(
        _ root: FilePath, _ path: FilePath, _ size: Int64, _ modified: Int64, _ database: Database
    ) throws -> Bool {
        let isTaken = "AND size = ? AND modified / 100 = ? / 100 AND state NOT IN ('gone', 'superseded', 'rejected')"
        let isHere = try database.exists(
            "SELECT 1 FROM file WHERE root = ? AND path = ? AND volume IS NULL \(isTaken)", root, path, size, modified)
        if isHere { return true }
        return try database.exists(
            "SELECT 1 FROM history_as_file WHERE \(placeInHistory) \(isTaken)", placeName(root, nil), path, size,
            modified)
    }

    /// The fleet knows that this agent has sent nothing of own versions, and will not.
    package func forgetInPlace(_ place: String, _ versions: [PlaceVersion]) async throws(JournalError) {
        try await commit { database in
            for version in versions {
                try database.change("DELETE FROM place_file WHERE \(Self.isVersion)", Self.names(place, version))
            }
        }
    }
}

/// In transactions of others.
extension Journal {
    /// The condition for the values `names`.
    private static let isVersion = "place = ?1 AND path = ?2 AND version = ?3"

    private static func names(_ place: String, _ version: PlaceVersion) -> [any SQLValue] {
        [short(place), short(version.path), short(version.version)]
    }

    /// A claim tells that its version is admitted. Its own row is unconfirmed until an end of it is settled.
    static func keepTaken(_ work: PlaceWork, _ database: Database) throws {
        try database.change(
            """
            INSERT INTO place_file (place, path, version, is_admitted, mark) VALUES (?1, ?2, ?3, 1, NULL)
            ON CONFLICT DO UPDATE SET
                is_admitted = 1, mark = iif(?4, NULL, nullif(mark, 0)), is_finished = iif(?4, is_finished, 0)
            """, names(work.place, work.version) + [work.isFinishing])
        if let row = work.row { try keep(row, of: work.version, in: work.place, database) }
    }

    /// Of one delivery the newest row counts: its key may have changed.
    private static func keep(
        _ row: [UInt8], of version: PlaceVersion, in place: String, _ database: Database
    ) throws {
        try database.change(
            "INSERT OR REPLACE INTO place_row (place, path, version, ref, body) VALUES (?, ?, ?, ?, ?)",
            names(place, version) + [PlaceRowName.ref(of: row), row] as [any SQLValue])
    }

    /// The fleet had it at this mark.
    static func confirm(_ version: PlaceVersion, in place: String, mark: Int64, _ database: Database) throws {
        try database.change(
            "UPDATE place_file SET mark = ?4 WHERE \(isVersion) AND mark IS NULL", names(place, version) + [mark])
    }

    /// The end of its source, which comes next, is unconfirmed.
    static func unconfirm(_ version: PlaceVersion, in place: String, _ database: Database) throws {
        try database.change("UPDATE place_file SET mark = NULL WHERE \(isVersion)", names(place, version))
    }

    /// The fleet is asked again whether it knows the version.
    static func doubt(_ version: PlaceVersion, in place: String, _ database: Database) throws {
        try database.change("UPDATE place_file SET is_admitted = 0 WHERE \(isVersion)", names(place, version))
    }

    /// Its source is finished.
    ///
    /// - Parameter mark: nil where the fleet may not know.
    static func finish(
        _ version: PlaceVersion, in place: String, mark: Int64?, at time: WallTime, _ database: Database
    ) throws {
        try database.change(
            "UPDATE place_file SET is_finished = 1, mark = ?4, kept_at = ?5 WHERE \(isVersion)",
            names(place, version) + [mark, time] as [any SQLValue])
    }

    /// Forgets versions that were kept or finished more than ninety days before `time`: no fleet is restored from a
    /// backup that old. One that is still there is asked about again.
    func prunePlaceFiles(_ time: WallTime) async throws(JournalError) {
        let old = time + .seconds(-90 * 86_400)
        let isAny = try await read { try $0.exists("SELECT 1 FROM place_file WHERE kept_at <= ? LIMIT 1", old) }
        guard isAny else { return }
        while try await commit({ try Self.prunePlaceFiles(old, $0) }) == Self.prunedAtOnce {}
    }

    private static func prunePlaceFiles(_ time: WallTime, _ database: Database) throws -> Int {
        let old = try database.rows(
            """
            SELECT place, path, version FROM place_file INDEXED BY place_file_by_age WHERE kept_at <= ?
            ORDER BY kept_at LIMIT \(prunedAtOnce)
            """, time
        ) { [$0.bytes(0), $0.bytes(1), $0.bytes(2)] as [any SQLValue] }
        for names in old { try database.change("DELETE FROM place_file WHERE \(isVersion)", names) }
        return old.count
    }

    private static let prunedAtOnce = 256

    // MARK: - Names

    /// The 16 bytes of a UUID: there are many. Other texts as they are.
    private static func short(_ text: String) -> [UInt8] {
        let digits = text.utf8.filter { $0 != UInt8(ascii: "-") }.map { Character(UnicodeScalar($0)).hexDigitValue }
        let values = digits.compactMap(\.self)
        guard digits.count == 32, values.count == 32, text.utf8.count == 36 else { return Array(text.utf8) }
        return stride(from: 0, to: 32, by: 2).map { UInt8(values[$0] << 4 | values[$0 + 1]) }
    }

    private static func long(_ bytes: [UInt8]) -> String {
        guard bytes.count == 16 else { return String(decoding: bytes, as: UTF8.self) }
        let (hex, ends) = (bytes.hex, [0, 8, 12, 16, 20, 32])
        return zip(ends, ends.dropFirst()).map { hex.dropFirst($0).prefix($1 - $0) }.joined(separator: "-")
    }
}

/// Tells rows of one version apart by the delivery that they are about.
private struct PlaceRowName: Decodable {
    var ref: Int64

    static func ref(of row: [UInt8]) -> Int64 {
        if let name: PlaceRowName = JSON.note(row) { return name.ref }
        return SHA256.bytes(of: row).prefix(8).reduce(0) { $0 << 8 | Int64($1) } & .max
    }
}
