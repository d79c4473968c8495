internal import GRDB
package import InletCore
package import SystemPackage

/// What the journal keeps of watched folders, so that an empty mount point is not taken for one.
extension Journal {
    /// By what the folder was recognised when it was watched last; nil when it never was.
    package func mark(of root: FilePath) async throws(JournalError) -> RootMark? {
        try await read { database in
            let mark = try database.row("SELECT mark FROM root WHERE path = ?", .bytes(root.bytes)) {
                $0.optionalBytes(0)
            }
            return try (mark ?? nil).map { try JournalJSON.decode($0) }
        }
    }

    package func setMark(_ mark: RootMark, of root: FilePath, at now: WallTime) async throws(JournalError) {
        try await commit { database in
            _ = try database.change(
                """
                INSERT INTO root (path, first_seen, mark) VALUES (?, ?, ?)
                ON CONFLICT(path) DO UPDATE SET mark = excluded.mark
                """, .bytes(root.bytes), .integer(now.milliseconds), .bytes(try JournalJSON.encode(mark)))
        }
    }

    /// Whether files of the root wait to be delivered, or were left in it: then something must be there. What we were about to
    /// move or delete ourselves counts for nothing, because that may have been done.
    package func holdsFiles(of root: FilePath) async throws(JournalError) -> Bool {
        try await read { database in
            let past = try database.row("SELECT 1 FROM history_place WHERE name = ? AND kept > 0", .bytes(root.bytes)) {
                _ in true
            }
            if past != nil { return true }
            return try database.row(
                """
                SELECT 1 FROM file INDEXED BY file_by_path WHERE root = ? AND volume IS NULL
                    AND (finished_at IS NULL AND intent IS NULL OR disposition = '\(Disposition.kept)') LIMIT 1
                """, .bytes(root.bytes)
            ) { _ in true } != nil
        }
    }
}
