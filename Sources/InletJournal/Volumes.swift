internal import GRDB
package import InletCore
package import SystemPackage

/// A file of a removable volume as it ended: the newest of its path. Whether it is there any more the journal does not know.
package struct VolumeFile: Sendable, Equatable {
    package var id: Int64
    package var path: FilePath
    package var identity: FileIdentity
    /// Whether as many destinations have it as were asked for.
    package var isDelivered: Bool
    /// Whether the configuration alone says so (`existing: adopt`).
    package var isAdopted: Bool
    /// When it came to the last of them.
    package var deliveredAt: WallTime
}

/// Files on removable volumes: they are known by their volume, wherever that is mounted.
extension Journal {
    /// Whether all that the volume had on it when it was first watched has been taken in.
    package func wasListed(_ volume: String) async throws(JournalError) -> Bool {
        try await read { database in
            try database.exists("SELECT 1 FROM root WHERE path = ? AND listed_at IS NOT NULL", FilePath(volume))
        }
    }

    package func setListed(_ volume: String, at now: WallTime) async throws(JournalError) {
        try await change("UPDATE root SET listed_at = ifnull(listed_at, ?) WHERE path = ?", now, FilePath(volume))
    }

    /// A volume is mounted at `root`: what is unfinished of it is there now, and its open units. What is unfinished of others
    /// that were mounted there is nowhere until they come back, or it would be looked for on this one.
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

    /// Units may be open although all that has come of them is finished: rejected, for example.
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

    /// A path at which nothing is, and that says where the volume was.
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

    /// How many files wait for volumes that are not mounted, by the place where each was last; of very many not all.
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

    /// Lets what waited for its volume go at once, with all the time that its route gives it.
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

    /// Takes note that files have another inode or device, as after each mount of FAT, or another ctime by a rename of ours.
    /// What is being delivered keeps what it began with.
    package func refresh(_ identities: [(id: Int64, identity: FileIdentity)]) async throws(JournalError) {
        try await commit { database in
            for (id, identity) in identities { try Self.refresh(id, identity, database) }
        }
    }

    /// - Parameter spared: the condition for rows that stay as they are.
    /// - Returns: whether it was taken note of.
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

    /// Whether no file of a volume needs it to stay in.
    ///
    /// - Parameter proofs: how many destinations must have a file; one with fewer destinations needs them all, and what only
    ///   registers it does not count. nil = all of them.
    package func mayLeave(_ volume: String, proofs: Int? = nil) async throws(JournalError) -> Bool {
        try await read { database in
            let proved = Self.isProved(by: proofs, .current)
            // What is about to be moved or deleted must be there for that; of the rest, what is not proved must.
            let stays = proofs == nil ? "" : "AND (state <> 'pending' OR NOT (\(proved)))"
            return try !database.exists(
                "SELECT 1 FROM file INDEXED BY file_open_of_volume WHERE volume = ?1 AND finished_at IS NULL \(stays) LIMIT 1",
                volume)
        }
    }

    /// The newest of each path on a volume, in the order of their paths: also of those that were there once.
    ///
    /// - Parameters:
    ///   - proofs: as of `mayLeave`.
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

    /// What the history has of a path that came again is left out after its page was cut: such a path is on the other page.
    /// What has finished as it was admitted was adopted: delivering takes longer.
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

    /// The condition for a row of `file`. What has no deliveries of its own, such as the marker of a unit, ends as others do.
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

/// Volumes that get a better name: their UUID where only the label, or the device, was known before, or a name at all where
/// their folder was watched by its path.
extension Journal {
    /// Files of `root` that may be those of the volume that is mounted there now: the newest of each path, in the order of
    /// their paths, as far as they were left where they were. Whether they are is for the caller to see.
    ///
    /// - Parameters:
    ///   - weaker: other keys of the volume. Files that are known by their root's path are asked for besides.
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

    /// Nothing is newer under the path at that root, or on the volume itself: neither here nor in the history.
    private static func heirless(_ tables: JournalTables) -> String {
        let place =
            switch tables {
            case .current: "INDEXED BY file_by_path WHERE root = ?1"
            case .history: "WHERE place IN \(placesOfWeaker) AND root = ?1"
            }
        return """
            \(place) AND path > ?2
                AND (volume IS NULL OR volume IN (SELECT value FROM json_each(?3)))
                AND (finished_at IS NULL OR disposition = '\(Disposition.kept)')
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

    /// Where the history has what is known by the root's path, or by a weaker name.
    private static let placesOfWeaker = """
        (SELECT id FROM history_place WHERE name = ?1
            OR name IN (SELECT CAST(value AS BLOB) FROM json_each(?3)))
        """

    /// Has these files known by `volume`, which was first seen no later than what they were known by.
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

/// What the journal keeps of watched folders, so that an empty mount point is not taken for one.
extension Journal {
    /// By what the folder was recognised when it was watched last; nil when it never was.
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

    /// Whether files of the root wait to be delivered, or were left in it: then something must be there. What we were about to
    /// move or delete ourselves counts for nothing, because that may have been done.
    package func holdsFiles(of root: FilePath) async throws(JournalError) -> Bool {
        try await read { database in
            try database.exists(
                """
                SELECT 1 FROM history_place WHERE name = ?1 AND kept > 0
                UNION ALL SELECT 1 FROM file INDEXED BY file_by_path WHERE root = ?1 AND volume IS NULL
                    AND (finished_at IS NULL AND intent IS NULL OR disposition = '\(Disposition.kept)')
                LIMIT 1
                """, root)
        }
    }
}
