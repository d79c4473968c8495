internal import GRDB
package import InletCore
package import SystemPackage

/// A file, and when it was admitted.
package struct Arrival: Sendable, Equatable {
    package var job: Int64
    /// The full path.
    package var path: FilePath
    package var at: WallTime

    package init(job: Int64, path: FilePath, at: WallTime) { (self.job, self.path, self.at) = (job, path, at) }
}

/// The journal's knowledge of what comes into a watched folder.
package struct FolderArrivals: Sendable, Equatable {
    /// When the newest file was admitted.
    package var lastFile: WallTime?
    /// When the folder was first watched.
    package var firstSeen: WallTime?
    /// Since when it is quiet, if that was reported.
    package var quietSince: WallTime?

    package init(lastFile: WallTime? = nil, firstSeen: WallTime? = nil, quietSince: WallTime? = nil) {
        (self.lastFile, self.firstSeen, self.quietSince) = (lastFile, firstSeen, quietSince)
    }
}

/// How files ended, a piece of the journal at a time.
package struct EndedFiles: Sendable {
    package struct End: Sendable, Equatable {
        package var job: Int64
        package var state: FileState
        package var at: WallTime

        package init(job: Int64, state: FileState, at: WallTime) { (self.job, self.state, self.at) = (job, state, at) }
    }

    /// Where the next piece begins; the working tables come before the history.
    package struct Place: Sendable {
        fileprivate var tables = JournalTables.current
        fileprivate var below = Int64.max

        package init() {}
    }

    package var ends: [End]
    /// nil after the last piece.
    package var next: Place?
}

extension Journal {
    /// Rows of one read: others wait for the journal meanwhile.
    private static let piece = 4096
    /// The newest rows among which the newest file is looked for.
    private static let newestRows = 10_000

    /// The newest file, and what is known of the arrivals in `roots`. Adopted files did not arrive: they were there.
    package func arrivals(
        in roots: [FilePath]
    ) async throws(JournalError) -> (newest: Arrival?, folders: [FilePath: FolderArrivals]) {
        try await read { database in
            let newest = try Self.newest(.current, database) ?? Self.newest(.history, database)
            var folders: [FilePath: FolderArrivals] = [:]
            for root in roots {
                folders[root] = FolderArrivals(
                    lastFile: try database.time("SELECT last_file FROM root WHERE path = ?", root),
                    firstSeen: try database.time("SELECT first_seen FROM root WHERE path = ?", root),
                    quietSince: try database.time("SELECT value FROM counter WHERE name = ?", Self.counter(quiet: root))
                )
            }
            return (newest, folders)
        }
    }

    /// A file was admitted. A folder has its row since it was first watched.
    static func noteArrival(in root: FilePath, _ now: WallTime, _ database: Database) throws {
        if !root.isEmpty { try database.change("UPDATE root SET last_file = ? WHERE path = ?", now, root) }
    }

    /// Remembers over restarts that a folder is quiet, and that this was reported.
    ///
    /// - Parameter since: nil when it is quiet no longer.
    package func setQuiet(_ root: FilePath, since: WallTime?) async throws(JournalError) {
        let name = Self.counter(quiet: root)
        guard let since else {
            try await change("DELETE FROM counter WHERE name = ?", name)
            return
        }
        try await change(
            "INSERT INTO counter (name, value) VALUES (?, ?) ON CONFLICT(name) DO UPDATE SET value = excluded.value",
            name, since)
    }

    private static func counter(quiet root: FilePath) -> String { "quiet:\(root.display)" }

    /// The newest file of these tables; nil where the newest rows are all of adopted files.
    private static func newest(_ tables: JournalTables, _ database: Database) throws -> Arrival? {
        try database.row(
            """
            SELECT id, root, path, admitted_at FROM \(tables.files)
            WHERE id > (SELECT max(id) FROM \(tables.files)) - \(newestRows) AND NOT (\(isAdopted(tables)))
            ORDER BY id DESC LIMIT 1
            """
        ) { Arrival(job: $0.integer(0), path: $0.path(1).pushing($0.path(2)), at: $0.time(3)) }
    }

    /// An adopted file is finished in the moment of its admission, without an attempt.
    private static func isAdopted(_ tables: JournalTables) -> String {
        """
        state = 'delivered' AND finished_at IS NOT NULL AND finished_at = admitted_at
            AND NOT EXISTS (SELECT 1 FROM \(tables.deliveries) WHERE file_id = file.id AND attempts > 0)
        """
    }

    /// The files that finished from `since` to `until`, the newest first. Ends behind a piece whose oldest file
    /// was admitted earlier, so a file that was retried after so long may be left out.
    package func ends(
        since: WallTime, until: WallTime, from place: EndedFiles.Place
    ) async throws(JournalError) -> EndedFiles {
        try await read { database in
            var (ends, oldest, rows, below) = ([EndedFiles.End](), WallTime(milliseconds: .max), 0, place.below)
            _ = try database.rows(
                """
                SELECT id, state, admitted_at, finished_at, \(Self.isAdopted(place.tables)) FROM \(place.tables.files)
                WHERE id < ? ORDER BY id DESC LIMIT \(Self.piece)
                """, place.below
            ) { row in
                (rows, below, oldest) = (rows + 1, row.integer(0), row.time(2))
                guard let at = row.optionalTime(3), at >= since, at <= until, !row.bool(4),
                    let state = row.text(1).flatMap(FileState.init)
                else { return }
                ends.append(EndedFiles.End(job: row.integer(0), state: state, at: at))
            }
            var next: EndedFiles.Place? = place
            next?.below = below
            if rows < Self.piece || oldest < since {
                next = EndedFiles.Place()
                next?.tables = .history
                if place.tables == .history { next = nil }
            }
            return EndedFiles(ends: ends, next: next)
        }
    }
}
