internal import Foundation
internal import GRDB
package import InletCore
package import SystemPackage

/// How the files of a removable volume stand.
package struct VolumeStanding: Sendable, Equatable {
    /// The newest file of each path, by state.
    package var files: [FileState: Int] = [:]
    /// Of those that are where they belong.
    package var bytes: Int64 = 0
    /// Those that ended otherwise; not all of very many.
    package var unproved: [FilePath] = []

    package init() {}
}

/// Files on removable volumes: they are known by their volume, wherever that is mounted.
extension Journal {
    /// A volume is mounted at `root`: what is unfinished of it is there now. What is unfinished of others that were mounted there
    /// is nowhere until they come back, or it would be looked for on this one.
    package func volumeArrived(_ volume: String, at root: FilePath) async throws(JournalError) {
        try await commit { database in
            let others = try database.rows(
                """
                SELECT DISTINCT volume FROM file
                WHERE root = ? AND volume IS NOT NULL AND volume <> ? AND finished_at IS NULL
                """, .bytes(root.bytes), .text(volume)
            ) { $0.text(0) ?? "" }
            for other in others { try Self.move(other, to: Self.nowhere(root, other), database) }
            try Self.move(volume, to: root, database)
        }
    }

    private static func move(_ volume: String, to root: FilePath, _ database: Database) throws {
        try database.change(
            """
            UPDATE OR IGNORE batch SET root = ?1 WHERE ended_at IS NULL AND root <> ?1 AND id IN (
                SELECT batch_id FROM file WHERE volume = ?2 AND finished_at IS NULL AND batch_id IS NOT NULL)
            """, .bytes(root.bytes), .text(volume))
        try database.change(
            "UPDATE file SET root = ?1 WHERE volume = ?2 AND finished_at IS NULL AND root <> ?1",
            .bytes(root.bytes), .text(volume))
    }

    /// A path at which nothing is, and that says where the volume was.
    static func nowhere(_ root: FilePath, _ volume: String) -> FilePath {
        let name = volume.map { $0 == "/" ? "_" : String($0) }.joined()
        return FilePath(bytes: root.bytes + Array(".away-\(name)".utf8))
    }

    /// Unfinished files of a volume with an id after `last`, in their order.
    package func unfinished(
        of volume: String, after last: Int64, limit: Int
    ) async throws(JournalError) -> [FileRow] {
        try await read { database in
            try FileRow.all(
                database, "WHERE volume = ? AND finished_at IS NULL AND id > ? ORDER BY id LIMIT ?",
                [.text(volume), .integer(last), .integer(Int64(limit))])
        }
    }

    /// Lets what waited for its volume go at once, with all the time that its route gives it.
    package func volumeIsBack(_ volume: String, at now: WallTime) async throws(JournalError) {
        try await commit { database in
            _ = try database.change(
                """
                UPDATE delivery INDEXED BY delivery_by_file SET next_at = ?1, code = NULL, reason = NULL,
                    expires_at = expires_at * 0 + ifnull(
                        (SELECT uptime FROM destination WHERE name = delivery.destination), 0) + ifnull(
                        (SELECT json_extract(CAST(policy AS TEXT), '$.retry.expire_ms') FROM file WHERE id = file_id), 0)
                WHERE file_id IN (SELECT id FROM file WHERE volume = ?2 AND finished_at IS NULL) AND state = 'ready'
                    AND code IN ('source_gone', 'source_unreadable')
                """, .integer(now.milliseconds), .text(volume))
            _ = try database.change(
                "UPDATE file SET finish_at = 0 WHERE volume = ? AND finished_at IS NULL AND state <> 'pending'",
                .text(volume))
        }
    }

    /// Takes note that files have another inode or device, as after each mount of FAT. What is being delivered keeps what it
    /// began with.
    package func refresh(_ identities: [(id: Int64, identity: FileIdentity)]) async throws(JournalError) {
        try await commit { database in
            for (id, identity) in identities {
                try database.change(
                    "UPDATE file SET modified = ?, changed = ?, inode = ?, device = ? WHERE id = ?"
                        + " AND NOT EXISTS (SELECT 1 FROM delivery WHERE file_id = file.id AND state = 'claimed')",
                    .integer(identity.modified), .integer(identity.changed),
                    .integer(Int64(bitPattern: identity.inode)),
                    .integer(Int64(bitPattern: identity.device)), .integer(id))
            }
        }
    }

    /// How the files of a volume stand; nil while any of them is not finished.
    package func standing(of volume: String) async throws(JournalError) -> VolumeStanding? {
        try await read { database in
            let isOpen = try database.row(
                "SELECT 1 FROM file WHERE volume = ? AND finished_at IS NULL LIMIT 1", .text(volume)
            ) { _ in true }
            if isOpen != nil { return nil }
            let newest = "id IN (SELECT max(id) FROM file WHERE volume = ?1 GROUP BY path)"
            var standing = VolumeStanding()
            let rows = try database.rows(
                "SELECT state, count(*), sum(size) FROM file WHERE \(newest) GROUP BY state", .text(volume)
            ) { ($0.text(0).flatMap(FileState.init) ?? .failed, Int($0.integer(1)), $0.integer(2)) }
            for (state, count, size) in rows {
                standing.files[state] = count
                if state == .delivered || state == .duplicate { standing.bytes += size }
            }
            standing.unproved = try database.rows(
                "SELECT path FROM file WHERE \(newest) AND state NOT IN ('delivered', 'duplicate') LIMIT 10000",
                .text(volume)
            ) { FilePath(bytes: $0.bytes(0)) }
            return standing
        }
    }
}
