internal import GRDB
package import InletCore
package import SystemPackage

/// A file of a removable volume as it ended: the newest of its path. The journal does not know whether it is still
/// there.
package struct VolumeFile: Sendable, Equatable {
    package var id: Int64
    package var path: FilePath
    package var identity: FileIdentity
    /// Whether as many destinations as required have it.
    package var isDelivered: Bool
    /// Whether only the configuration claims so (`existing: adopt`).
    package var isAdopted: Bool
    /// When it reached the last of them.
    package var deliveredAt: WallTime
}

/// Files on removable volumes are known by their volume, wherever it is mounted.
extension Journal {
    /// Whether everything has been admitted that was on the volume when it was first watched.
    package func wasListed(_ volume: String) async throws(JournalError) -> Bool {
        try await read { database in
            try database.exists("SELECT 1 FROM root WHERE path = ? AND listed_at IS NOT NULL", FilePath(volume))
        }
    }

    package func setListed(_ volume: String, at now: WallTime) async throws(JournalError) {
        try await change("UPDATE root SET listed_at = ifnull(listed_at, ?) WHERE path = ?", now, FilePath(volume))
    }

    /// A volume is mounted at `root`: its unfinished files and open units are there now. Unfinished files of other
    /// volumes that were mounted there are nowhere until these return; otherwise they would be looked for on this one.
    package func volumeArrived(_ volume: String, at root: FilePath) async throws(JournalError) {
        try await commit { database in
            let others = try database.rows(
                """
                SELECT DISTINCT volume FROM file
                WHERE root = ?1 AND volume IS NOT NULL AND volume <> ?2 AND finished_at IS NULL
                UNION SELECT DISTINCT volume FROM file INDEXED BY file_by_batch WHERE batch_id IN (
                    SELECT id FROM batch WHERE root = ?1 AND closed_at IS NULL) AND volume <> ?2
                """, root, volume
            ) { $0.text(0) ?? "" }
            for other in others { try Self.move(other, to: Self.nowhere(root, other), database) }
            try Self.move(volume, to: root, database)
        }
    }

    /// Units may be open although all their files so far are finished: rejected, for example.
    private static func move(_ volume: String, to root: FilePath, _ database: Database) throws {
        try database.change(
            """
            UPDATE OR IGNORE batch SET root = ?1 WHERE ended_at IS NULL AND root <> ?1 AND id IN (
                SELECT batch_id FROM file WHERE volume = ?2 AND finished_at IS NULL AND batch_id IS NOT NULL
                UNION SELECT id FROM batch AS unit INDEXED BY batch_open WHERE closed_at IS NULL AND EXISTS (
                    SELECT 1 FROM file INDEXED BY file_by_batch WHERE batch_id = unit.id AND volume = ?2))
            """, root, volume)
        try database.change(
            "UPDATE file SET root = ?1 WHERE volume = ?2 AND finished_at IS NULL AND root <> ?1", root, volume)
    }

    /// A path at which nothing is, and which names the volume's last place.
    static func nowhere(_ root: FilePath, _ volume: String) -> FilePath {
        let name = volume.map { $0 == "/" ? "_" : String($0) }.joined()
        return FilePath(bytes: root.bytes + Array(".away-\(name)".utf8))
    }

    /// Unfinished files of a volume with an id after `last`, in their order.
    package func unfinished(of volume: String, after last: Int64, limit: Int) async throws(JournalError) -> [FileRow] {
        try await read { database in
            try FileRow.all(
                database, "WHERE volume = ? AND finished_at IS NULL AND id > ? ORDER BY id LIMIT ?",
                [volume, last, limit])
        }
    }

    /// The number of files that wait for unmounted volumes, by each one's last place; incomplete where there are very
    /// many.
    package func awayVolumes(most: Int = 10_000) async throws(JournalError) -> [(
        volume: String, root: FilePath, files: Int
    )] {
        try await read { database in
            try database.rows(
                """
                SELECT volume, max(root), count(DISTINCT id) FROM (
                    SELECT file.volume AS volume, file.root AS root, file.id AS id
                    FROM delivery INDEXED BY delivery_retrying JOIN file ON file.id = delivery.file_id
                    WHERE delivery.state = 'ready' AND delivery.code IS NOT NULL AND delivery.code = 'source_gone'
                        AND file.volume IS NOT NULL AND file.finished_at IS NULL LIMIT ?)
                GROUP BY volume ORDER BY volume
                """, most
            ) { row in
                let (volume, root) = (row.text(0) ?? "", row.bytes(1))
                let mark = Array(".away-".utf8)
                let end = root.indices.last { root[$0...].starts(with: mark) } ?? root.endIndex
                return (volume, FilePath(bytes: Array(root[..<end])), row.int(2))
            }
        }
    }

    /// Makes deliveries that waited for their volume due at once, with their route's full time to live.
    package func volumeIsBack(_ volume: String, at now: WallTime) async throws(JournalError) {
        try await commit { database in
            try database.change(
                """
                UPDATE delivery INDEXED BY delivery_by_file SET next_at = ?1, code = NULL, reason = NULL,
                    expires_at = expires_at * 0 + ifnull(
                        (SELECT uptime FROM destination WHERE name = delivery.destination), 0) + ifnull(
                        (SELECT json_extract(CAST(policy AS TEXT), '$.retry.expire_ms') FROM file WHERE id = file_id), 0)
                WHERE file_id IN (SELECT id FROM file WHERE volume = ?2 AND finished_at IS NULL) AND state = 'ready'
                    AND code IN ('source_gone', 'source_unreadable', 'source_forbidden') AND next_at < \(Self.never)
                """, now, volume)
            try database.change(
                "UPDATE file SET finish_at = 0 WHERE volume = ? AND finished_at IS NULL AND state <> 'pending'", volume)
        }
    }

    /// Records that files have another inode or device, as after each mount of FAT, or another ctime through our own
    /// rename. A running delivery keeps the identity it began with.
    package func refresh(_ identities: [(id: Int64, identity: FileIdentity)]) async throws(JournalError) {
        try await commit { database in
            for (id, identity) in identities { try Self.refresh(id, identity, database) }
        }
    }

    /// - Parameter spared: the condition for rows that stay unchanged.
    /// - Returns: whether it was recorded.
    @discardableResult
    static func refresh(
        _ id: Int64, _ identity: FileIdentity, sparing spared: String = "0", _ database: Database
    ) throws -> Bool {
        let values: [any SQLValue] = [identity.modified, identity.changed, identity.inode, identity.device, id]
        let isHere =
            try database.change(
                """
                UPDATE file SET modified = ?, changed = ?, inode = ?, device = ? WHERE id = ? AND NOT (\(spared))
                    AND NOT EXISTS (SELECT 1 FROM delivery WHERE file_id = file.id AND state = 'claimed')
                """, values) > 0
        if isHere { return true }
        return try database.change(
            "UPDATE history_file SET modified = ?, changed = ?, inode = ?, device = ? WHERE id = ?", values) > 0
    }

    /// Whether no file of a volume needs it to stay mounted.
    ///
    /// - Parameter proofs: how many destinations must have a file. A file with fewer destinations needs them all;
    ///   registrations do not count. nil = all of them.
    package func mayLeave(_ volume: String, proofs: Int? = nil) async throws(JournalError) -> Bool {
        try await read { database in
            let proved = Self.isProved(by: proofs, .current)
            // Files to be moved or deleted must be there for that; of the rest, unproved ones must.
            let stays = proofs == nil ? "" : "AND (state <> 'pending' OR NOT (\(proved)))"
            return try !database.exists(
                "SELECT 1 FROM file INDEXED BY file_open_of_volume WHERE volume = ?1 AND finished_at IS NULL \(stays) LIMIT 1",
                volume)
        }
    }

    /// The newest file of each path on a volume, in the order of their paths, including paths that are no longer there.
    ///
    /// - Parameters:
    ///   - proofs: as for `mayLeave`.
    ///   - last: only paths after this one.
    package func files(
        of volume: String, proofs: Int? = nil, after last: FilePath, limit: Int
    ) async throws(JournalError) -> [VolumeFile] {
        try await read { database in
            let values: [any SQLValue] = [volume, last.bytes, limit]
            let found = try JournalTables.allCases.flatMap { tables in
                try database.rows(Self.newest(tables, proofs), values) { row in
                    VolumeFile(
                        id: row.integer(0), path: row.path(1), identity: row.identity(2), isDelivered: row.bool(7),
                        isAdopted: row.bool(8), deliveredAt: row.time(9))
                }
            }
            return Array(found.sorted { $0.path.bytes.lexicographicallyPrecedes($1.path.bytes) }.prefix(limit))
        }
    }

    /// The history's part of a path that came again is left out after its page was cut: such a path is on the other
    /// page. A file that finished at its admission was adopted: a delivery takes longer.
    private static func newest(_ tables: JournalTables, _ proofs: Int?) -> String {
        let condition =
            switch tables {
            case .current:
                """
                id IN (
                    SELECT max(id) FROM file WHERE volume = ?1 AND path > ?2 GROUP BY path ORDER BY path LIMIT ?3)
                """
            case .history:
                """
                id IN (
                    SELECT max(id) FROM history_file
                    WHERE place = (SELECT id FROM history_place WHERE name = CAST(?1 AS BLOB)) AND path > ?2
                    GROUP BY path ORDER BY path LIMIT ?3)
                AND NOT EXISTS (
                    SELECT 1 FROM main.file AS newer INDEXED BY file_by_volume
                    WHERE newer.volume = ?1 AND newer.path = file.path)
                """
            }
        return """
            SELECT id, path, size, modified, changed, inode, device, (\(isProved(by: proofs, tables))),
                state = 'delivered' AND finished_at = admitted_at,
                ifnull((SELECT max(ended_at) FROM \(tables.deliveries) WHERE file_id = file.id
                    AND delivery.state = 'delivered'), ifnull(ended_at, 0))
            FROM \(tables.files) WHERE \(condition)
            """
    }

    /// The condition for a row of `file`. A file without deliveries, such as a unit's marker, ends as the others do.
    private static func isProved(by proofs: Int?, _ tables: JournalTables) -> String {
        let whole = "state IN ('delivered', 'duplicate')"
        guard let proofs else { return whole }
        let sent =
            "SELECT count(*) FROM \(tables.deliveries) WHERE file_id = file.id AND after_id IS NULL AND closes IS NULL"
        let arrived = "(\(sent) AND delivery.state = 'delivered')"
        return """
            \(whole) OR \(arrived) >= min(\(proofs), (\(sent)))
                AND (state = 'pending' OR state IN ('failed', 'expired', 'cancelled') AND \(arrived) > 0)
            """
    }
}

/// Volumes that get a better name: their UUID where only the label or the device was known, or any name where their
/// folder was watched by its path.
extension Journal {
    /// Files of `root` that may belong to the volume mounted there now: the newest of each path, in the order of their
    /// paths, if they were left in place. The caller checks whether they do.
    ///
    /// - Parameters:
    ///   - weaker: other keys of the volume. Files known by their root's path are included too.
    ///   - last: only paths after this one.
    package func inheritance(
        of volume: String, from weaker: [String], at root: FilePath, after last: FilePath, limit: Int
    ) async throws(JournalError) -> [FileRow] {
        try await read { database in
            let names = String(decoding: try JSON.encode(weaker), as: UTF8.self)
            let values: [any SQLValue] = [root, last.bytes, names, volume, limit]
            let found = try JournalTables.allCases.flatMap { tables in
                try FileRow.all(database, from: tables, Self.heirless(tables), values)
            }
            return Array(found.sorted { $0.path.bytes.lexicographicallyPrecedes($1.path.bytes) }.prefix(limit))
        }
    }

    /// Nothing is newer under the path at that root, or on the volume itself, neither here nor in the history.
    private static func heirless(_ tables: JournalTables) -> String {
        let place =
            switch tables {
            case .current: "INDEXED BY file_by_path WHERE root = ?1"
            case .history: "WHERE place IN \(placesOfWeaker) AND root = ?1"
            }
        return """
            \(place) AND path > ?2
                AND (volume IS NULL OR volume IN (SELECT value FROM json_each(?3)))
                AND (finished_at IS NULL OR \(Disposition.isKept))
                AND NOT EXISTS (
                    SELECT 1 FROM main.file AS newer INDEXED BY file_by_path
                    WHERE newer.root = file.root AND newer.path = file.path AND newer.id > file.id
                        AND (newer.volume IS NULL OR newer.volume IN (SELECT value FROM json_each(?3))))
                AND NOT EXISTS (
                    SELECT 1 FROM history_as_file AS newer
                    WHERE newer.place IN \(placesOfWeaker) AND newer.path = file.path AND newer.id > file.id
                        AND newer.root = file.root)
                AND NOT EXISTS (
                    SELECT 1 FROM main.file AS own INDEXED BY file_by_volume
                    WHERE own.volume = ?4 AND own.path = file.path AND own.id > file.id)
                AND NOT EXISTS (
                    SELECT 1 FROM history_file AS own
                    WHERE own.place = (SELECT id FROM history_place WHERE name = CAST(?4 AS BLOB))
                        AND own.path = file.path AND own.id > file.id)
            ORDER BY path LIMIT ?5
            """
    }

    /// The parts of the history known by the root's path, or by a weaker name.
    private static let placesOfWeaker = """
        (SELECT id FROM history_place WHERE name = ?1
            OR name IN (SELECT CAST(value AS BLOB) FROM json_each(?3)))
        """

    /// Makes these files known by `volume`, first seen no later than their former name.
    package func inherit(_ files: [FileRow], by volume: String) async throws(JournalError) {
        let ids = files.map(\.id)
        try await reviveAhead { _ in ids }
        try await commit { database in
            for file in files {
                try Self.revive(file.id, database)
                try database.change("UPDATE file SET volume = ? WHERE id = ?", volume, file.id)
            }
            for former in Set(files.map { $0.volume.map { FilePath($0) } ?? $0.root }) {
                try database.change(
                    """
                    INSERT INTO root (path, first_seen, listed_at)
                    SELECT ?1, first_seen, listed_at FROM root WHERE path = ?2
                    ON CONFLICT(path) DO UPDATE SET first_seen = min(first_seen, excluded.first_seen),
                        listed_at = ifnull(listed_at, excluded.listed_at)
                    """, FilePath(volume), former)
            }
        }
    }
}

/// The journal's record of watched folders, so that an empty mount point is not mistaken for one.
extension Journal {
    /// The mark that identified the folder when it was watched last; nil when it never was.
    package func mark(of root: FilePath) async throws(JournalError) -> RootMark? {
        try await read { database in
            let mark = try database.row("SELECT mark FROM root WHERE path = ?", root) { $0.optionalBytes(0) } ?? nil
            return try mark.map { try JSON.decode($0) }
        }
    }

    package func setMark(_ mark: RootMark, of root: FilePath, at now: WallTime) async throws(JournalError) {
        try await commit { database in
            let note = try JSON.encode(mark)
            try database.change(
                """
                INSERT INTO root (path, first_seen, mark) VALUES (?, ?, ?)
                ON CONFLICT(path) DO UPDATE SET mark = excluded.mark
                """, root, now, note)
        }
    }

    /// Whether files of the root wait to be delivered, or were left in it: then the folder must contain something.
    /// Files that we were about to move or delete do not count, since that may have happened.
    package func holdsFiles(of root: FilePath) async throws(JournalError) -> Bool {
        try await read { database in
            try database.exists(
                """
                SELECT 1 FROM history_place WHERE name = ?1 AND kept > 0
                UNION ALL SELECT 1 FROM file INDEXED BY file_by_path WHERE root = ?1 AND volume IS NULL
                    AND (finished_at IS NULL AND intent IS NULL OR \(Disposition.isKept))
                LIMIT 1
                """, root)
        }
    }
}
