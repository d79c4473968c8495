internal import GRDB
internal import InletCore
package import SystemPackage

/// Volumes that get a better name: their UUID where only the label, or the device, was known before, or a name at all where
/// their folder was watched by its path.
extension Journal {
    /// Files of `root` that may be those of the volume that is mounted there now: the newest of each path, in the order of their
    /// paths, as far as they were left where they were. Whether they are is for the caller to see.
    ///
    /// - Parameters:
    ///   - weaker: other keys of the volume. Files that are known by their root's path are asked for besides.
    ///   - last: only paths after this one.
    package func inheritance(
        of volume: String, from weaker: [String], at root: FilePath, after last: FilePath, limit: Int
    ) async throws(JournalError) -> [FileRow] {
        try await read { database in
            let names = String(decoding: try JournalJSON.encode(weaker), as: UTF8.self)
            let values: [SQLValue] = [
                .bytes(root.bytes), .bytes(last.bytes), .text(names), .text(volume), .integer(Int64(limit)),
            ]
            let found = try Shelf.allCases.flatMap { shelf in
                try FileRow.all(database, from: shelf, Self.heirless(shelf), values)
            }
            return Array(found.sorted { $0.path.bytes.lexicographicallyPrecedes($1.path.bytes) }.prefix(limit))
        }
    }

    /// Nothing is newer under the path at that root, or on the volume itself: neither here nor in the history.
    private static func heirless(_ shelf: Shelf) -> String {
        let place =
            switch shelf {
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
                try database.change("UPDATE file SET volume = ? WHERE id = ?", .text(volume), .integer(file.id))
            }
            for former in Set(files.map { $0.volume.map { FilePath($0) } ?? $0.root }) {
                try database.change(
                    """
                    INSERT INTO root (path, first_seen, listed_at)
                    SELECT ?1, first_seen, listed_at FROM root WHERE path = ?2
                    ON CONFLICT(path) DO UPDATE SET first_seen = min(first_seen, excluded.first_seen),
                        listed_at = ifnull(listed_at, excluded.listed_at)
                    """, .bytes(FilePath(volume).bytes), .bytes(former.bytes))
            }
        }
    }
}
