package import InletCore
internal import InletJournal
internal import InletLinux
package import SystemPackage

/// The backups of a journal: each one file, whole, readable by its owner only.
package struct JournalBackups: Sendable {
    private let journal: Journal
    private let directory: FilePath

    /// Why a backup was not made.
    package struct Refusal: Error, Sendable, CustomStringConvertible {
        package let description: String
    }

    init(_ journal: Journal) {
        self.journal = journal
        directory = journal.path.removingLastComponent().appending("backups")
    }

    /// Makes a backup, over an earlier one at `target`; without a target in `backups` beside the journal, under the time.
    ///
    /// What was committed before the call is in it. At every moment there is the old file at `target` or the whole new one.
    /// - Throws: `JournalError`, `SystemError`, or `Refusal` where `target` is something else than a backup.
    package func make(at target: FilePath? = nil, now: WallTime) async throws -> FilePath {
        let pool = BlockingPool(name: "backup", threads: 1)
        defer { pool.shutdown() }
        let path = target ?? directory.appending("journal-\(now.rfc3339.filter(\.isNumber)).sqlite")
        let draft = try Self.draft(of: path)
        try await pool.run {
            if target == nil {
                try DurableFile.makeDirectories(directory, mode: 0o700, asFolderOwner: true)
                try FileOwner.requireOwn(directory, in: directory.removingLastComponent())
            }
            try Self.requireBackup(path, of: journal.path)
            // SQLite would not say why it cannot.
            try DurableFile.write([], to: draft, mode: 0o600)
            // Of a process that died; SQLite's own files of it too.
            for suffix in Self.suffixes { try? DurableFile.remove(FilePath(bytes: draft.bytes + suffix.utf8)) }
        }
        do {
            // What opens, syncs and closes files in it is blocking.
            try await withTaskExecutorPreference(pool) { try await journal.copy(to: draft) }
            try await pool.run { () throws(SystemError) in try DurableFile.place(draft, at: path) }
        } catch {
            await pool.run {
                // What stays is removed by the next backup; the error at hand is the one that is told.
                for suffix in Self.suffixes { try? DurableFile.remove(FilePath(bytes: draft.bytes + suffix.utf8)) }
            }
            throw error
        }
        return path
    }

    package static func name(of path: FilePath) throws(Refusal) -> FilePath.Component {
        guard let name = path.lastComponent else { throw Refusal(description: "\(path.display) is no file's name") }
        return name
    }

    /// What a backup is called until it is whole.
    private static func draft(of path: FilePath) throws(Refusal) -> FilePath {
        path.removingLastComponent().appending(".\(try name(of: path).string).inlet-backup.tmp")
    }

    private static let suffixes = ["", "-journal", "-wal", "-shm"]

    /// Nothing else than an earlier backup is written over. Throws `SystemError` or `Refusal`.
    package static func requireBackup(_ path: FilePath, of journal: FilePath) throws {
        switch try FileLook.look(at: path) {
        case .missing: return
        case .regular(let identity, _, _):
            let own = try FileLook.look(at: journal).identity
            if identity.inode == own?.inode, identity.device == own?.device {
                throw Refusal(description: "\(path.display) is the journal itself")
            }
            let source = try SourceFile(opening: path)
            guard try source.content(of: header.count) == header else {
                throw Refusal(description: "\(path.display) is there and is no backup of a journal; name another file")
            }
        case .directory: throw Refusal(description: "\(path.display) is a folder; name a file in it")
        case .symlink, .other: throw Refusal(description: "\(path.display) is no file")
        }
    }

    /// What a database begins with (sqlite.org/fileformat.html).
    private static let header = Array("SQLite format 3\0".utf8)

    // MARK: - Those that are made by themselves

    /// Removes all but the newest `keep` of those in `backups`.
    func prune(keep: Int) async throws {
        let pool = BlockingPool(name: "backup", threads: 1)
        defer { pool.shutdown() }
        try await pool.run {
            for name in try names().dropLast(keep) { try DurableFile.remove(directory.appending(name)) }
        }
    }

    /// When the newest of those in `backups` was made; nil when there is none, or none can be seen: one more is made then,
    /// which says what is wrong.
    func newest() async -> WallTime? {
        let pool = BlockingPool(name: "backup", threads: 1)
        defer { pool.shutdown() }
        return await pool.run {
            // As said above: one more is made.
            guard let name = try? names().last,
                let identity = try? FileLook.look(at: directory.appending(name)).identity
            else { return nil }
            return WallTime(milliseconds: identity.modified / 1_000_000)
        }
    }

    /// When the journal was last written to, as its log is at every commit; nil where that cannot be seen.
    func lastChange() -> WallTime? {
        let log = FilePath(bytes: journal.path.bytes + "-wal".utf8)
        do {
            let times = try [journal.path, log].compactMap { try FileLook.look(at: $0).identity?.modified }
            return times.max().map { WallTime(milliseconds: $0 / 1_000_000) }
        } catch {
            // It counts as changed.
            return nil
        }
    }

    /// Oldest first. Only names that `make` gives.
    private func names() throws(SystemError) -> [FilePath.Component] {
        var found: [FilePath.Component] = []
        var stream = try DirectoryStream(directory)
        while let entry = try stream.next() {
            if entry.name.string.wholeMatch(of: /journal-[0-9]{14,}\.sqlite/) != nil { found.append(entry.name) }
        }
        return found.sorted { $0.string < $1.string }
    }
}
