internal import CSQLite
internal import Foundation
internal import GRDB
package import InletCore
internal import Synchronization
package import SystemPackage

/// The crash-safe queue: every file seen, every delivery owed, every proof. SQLite in WAL mode with `synchronous=FULL`.
///
/// Three transactions are the durable points: `admit`, `settle(… .delivered)` and `finish`. The process may die between
/// any two. One connection of one process writes and checkpoints: its owner holds the state directory's lock.
package final class Journal: Sendable {
    /// The database file.
    package let path: FilePath
    /// Seals secrets in the notes and proofs written here, and opens them for readers.
    package let seal: any Sealing
    let database: DatabaseQueue
    /// Device and inode of the database and its log.
    private let place: [Int]
    let commits = Mutex(CommitQueue())
    /// Claims that have not ended, as they were handed out: their rows need not be read again.
    let handedOut = Mutex<[Int64: Claim]>([:])
    /// The fleet's last mark; not each one is written.
    let heard = Mutex(HeardMark())

    /// Opens or creates the journal and brings its schema up to date.
    ///
    /// A journal that does not open is renamed, never changed or removed; `JournalError` names its new place.
    ///
    /// - Parameters:
    ///   - seal: keeps secrets out of the file.
    ///   - prepare: receives the file, created if needed, before SQLite opens it; its `-wal` and `-shm` get the owner
    ///     that it has then.
    package init(
        path: FilePath, now: WallTime, seal: any Sealing = NoSeal(), prepare: (FilePath) -> Void = { _ in }
    ) throws(JournalError) {
        (self.path, self.seal) = (path, seal)
        do {
            database = try Self.open(path, now, prepare)
            place = try Self.place(of: path)
        } catch let error as JournalError {
            throw error
        } catch {
            throw try Self.setAsideIfUnreadable(path, error, now)
        }
    }

    private static func open(_ path: FilePath, _ now: WallTime, _ prepare: (FilePath) -> Void) throws -> DatabaseQueue {
        _ = isMemoryUncounted
        _ = hasNoHoles
        try requireNoRestore(path)
        // SQLite removes the write-ahead log of an empty database, and with it all that was committed.
        if try size(path.string) == 0, try size(path.string + "-wal") > 0 {
            throw try JournalError.unreadable(
                path, setAside: setAside(path, as: "unreadable", now), cause: "it is empty")
        }
        if try size(path.string) > 0, try isNewerButSound(path) {
            throw try JournalError.newerSchema(path, setAside: setAside(path, as: "newer", now))
        }
        makePrivate(path)
        prepare(path)
        let database = try DatabaseQueue(path: path.string, configuration: configuration)
        // Not synced one by one: work that a power cut undoes is repeated at the next start, and the first later commit
        // syncs the log with them in it.
        try Schema.migrator.migrate(database)
        try requireFullSync(database)
        return database
    }

    /// Called before the first connection, which initialises the library.
    private static let isMemoryUncounted = inlet_sqlite_leave_memory_uncounted() == SQLITE_OK

    /// After that, because it sets the library up.
    private static let hasNoHoles = inlet_sqlite_fill_holes() == 1

    private static var configuration: Configuration {
        var configuration = Configuration()
        configuration.journalMode = .wal
        configuration.busyMode = .timeout(5)
        configuration.prepareDatabase { database in
            try database.execute(
                sql: """
                    PRAGMA foreign_keys = ON; PRAGMA cache_size = -2048;
                    PRAGMA temp_store = MEMORY; PRAGMA journal_size_limit = 67108864;
                    """)
        }
        return configuration
    }

    /// The journal records the contents of watched folders and where they went, so only its owner may read it. SQLite
    /// gives `-wal` and `-shm` the same mode. An existing file that we may not change is opened without changes.
    ///
    /// Symlinks are not followed, even when one appears at this moment.
    static func makePrivate(_ path: FilePath) {
        let mode: [FileAttributeKey: Any] = [.posixPermissions: 0o600]
        let making: FileDescriptor.OpenOptions = [.create, .exclusiveCreate, .noFollow, .closeOnExec]
        // If it exists or cannot be made, opening it reports the reason.
        try? FileDescriptor.open(path, .writeOnly, options: making, permissions: .ownerReadWrite).close()
        // Keeps the path, not an open file: closing one drops SQLite's locks (fcntl(2)).
        let place = FileDescriptor.OpenOptions(rawValue: 0o10_000_000)  // O_PATH (open(2))
        do {
            let file = try FileDescriptor.open(path, .readOnly, options: [place, .noFollow, .closeOnExec])
            try file.closeAfter {
                try FileManager.default.setAttributes(mode, ofItemAtPath: "/proc/self/fd/\(file.rawValue)")
            }
        } catch {
            // Another user's file keeps its mode.
        }
    }

    /// Looks through a read-only connection: opening in WAL mode writes to the file, and closing checkpoints it.
    private static func isNewerButSound(_ path: FilePath) throws -> Bool {
        var configuration = Configuration()
        configuration.readonly = true
        configuration.busyMode = .timeout(5)
        do {
            return try DatabaseQueue(path: path.string, configuration: configuration).read { database in
                if try size(path.string) <= checkedSize { try requireSound(database) }
                return try Schema.migrator.hasBeenSuperseded(database)
            }
        } catch let error as DatabaseError where error.resultCode == .SQLITE_READONLY {
            // A process died while it created the database: only a writing connection can roll back its last
            // transaction.
            return false
        }
    }

    /// Up to this size, some 35,000 files, a start reads the whole journal to find damage before it can spread. That
    /// takes about 10 ms a MiB, so 5 s and more for a million files. Damage in a larger journal shows when it is read,
    /// or at the next backup.
    private static let checkedSize: Int64 = 16 << 20

    /// Throws `SQLITE_CORRUPT` when the structure of the database is damaged. A changed byte within a value goes
    /// unnoticed.
    static func requireSound(_ database: Database) throws {
        let said = try String.fetchOne(database, sql: "PRAGMA quick_check(1)") ?? "no answer"
        if said == "ok" { return }
        // The check reports read errors as text: a disk that does not read is not damage.
        let isUnread = said.contains("unable to get the page") || said.contains("failed to get page")
        throw DatabaseError(resultCode: isUnread ? .SQLITE_IOERR : .SQLITE_CORRUPT, message: said)
    }

    /// Every commit is on disk when it returns. Set last and read back: GRDB's WAL mode sets NORMAL by itself.
    private static func requireFullSync(_ database: DatabaseQueue) throws {
        let level = try database.inDatabase { database in
            try database.execute(sql: "PRAGMA synchronous = FULL")
            return try database.integer("PRAGMA synchronous")
        }
        guard level == 2 else { throw DatabaseError(message: "synchronous=FULL is not available") }
    }

    private static func setAsideIfUnreadable(
        _ path: FilePath, _ error: any Error, _ now: WallTime
    ) throws(JournalError) -> JournalError {
        let broken: [ResultCode] = [.SQLITE_NOTADB, .SQLITE_CORRUPT, .SQLITE_FORMAT]
        guard let cause = error as? DatabaseError, broken.contains(cause.resultCode) else {
            return .from(error, at: path)
        }
        return .unreadable(path, setAside: try setAside(path, as: "unreadable", now), cause: cause.message ?? "damaged")
    }

    /// Renames the database with its `-wal` and `-shm`, so that nothing is lost.
    static func setAside(_ path: FilePath, as kind: String, _ now: WallTime) throws(JournalError) -> FilePath {
        // A restore replaces it.
        if kind != "replaced" { try mayBegin(path) }
        let stamp = now.rfc3339.filter(\.isNumber)
        let target = FilePath(path.string + ".\(kind)-\(stamp)")
        for suffix in ["", "-wal", "-shm"] where FileManager.default.fileExists(atPath: path.string + suffix) {
            do {
                try FileManager.default.moveItem(atPath: path.string + suffix, toPath: target.string + suffix)
            } catch {
                throw .failed(path, "cannot be set aside as \(target.display): \(error)")
            }
        }
        return target
    }

    /// The size of a file in bytes; 0 when it is missing.
    static func size(_ file: String) throws -> Int64 {
        do {
            return (try FileManager.default.attributesOfItem(atPath: file)[.size] as? NSNumber)?.int64Value ?? 0
        } catch CocoaError.fileReadNoSuchFile {
            return 0
        }
    }

    /// A change of one statement. - Returns: the number of rows changed.
    @discardableResult
    func change(_ sql: String, _ values: any SQLValue...) async throws(JournalError) -> Int {
        try await commit { try $0.change(sql, values) }
    }

    func read<Value: Sendable>(
        _ body: @escaping @Sendable (Database) throws -> Value
    ) async throws(JournalError) -> Value {
        do {
            // A read is short and completes even in a cancelled task: "cancelled" would look like a failing journal.
            return try await Self.on(database) { try Self.atOneMoment($0, body) }
        } catch {
            throw .from(error, at: path)
        }
    }

    private static func atOneMoment<Value>(_ database: Database, _ body: (Database) throws -> Value) throws -> Value {
        var value: Value?
        try database.inTransaction(.deferred) {
            value = try body(database)
            return .commit
        }
        guard let value else { throw DatabaseError(resultCode: .SQLITE_INTERNAL) }
        return value
    }

    /// Checkpoints the WAL and closes the connection; closing twice is harmless, and later calls throw.
    package func close() {
        // As SQL: `Database.checkpoint` does not check that the connection still exists. The next start reads the rest
        // of the log.
        try? database.inDatabase { try $0.execute(sql: "PRAGMA wal_checkpoint(TRUNCATE)") }
        // If the connection does not close, the next start reads its log.
        try? database.close()
    }
}

/// Whether the journal is where it belongs: a lost one is never mistaken for a first start.
extension Journal {
    /// Refuses to begin an empty journal where there was one. Where there was none, leaves a note beside `path` until
    /// the journal exists. Blocks.
    ///
    /// - Parameter traces: files that exist only after a journal did, or after this call.
    package static func requireNotLost(_ path: FilePath, traces: [FilePath]) throws(JournalError) {
        let isEmpty: Bool
        do {
            isEmpty = try size(path.string) == 0 && size(path.string + "-wal") == 0
        } catch {
            throw .from(error, at: path)
        }
        let mark = beginning(of: path)
        if !isEmpty || isThere(mark) { return }
        try requireNoRestore(path)
        if let trace = traces.first(where: isThere) { throw .lost(path, trace: trace) }
        try mayBegin(path)
    }

    /// Notes that an empty journal at `path` is wanted: there was none, or it was set aside.
    static func mayBegin(_ path: FilePath) throws(JournalError) {
        let mark = beginning(of: path)
        do {
            let options: FileDescriptor.OpenOptions = [.create, .noFollow, .closeOnExec]
            try FileDescriptor.open(mark, .writeOnly, options: options, permissions: .ownerReadWrite).close()
        } catch {
            throw .failed(mark, "cannot be made: \(error)")
        }
    }

    /// The journal exists: from now on its absence is a loss.
    package static func hasBegun(_ path: FilePath) throws(JournalError) {
        let mark = beginning(of: path)
        guard isThere(mark) else { return }
        do {
            try FileManager.default.removeItem(atPath: mark.string)
        } catch {
            throw .failed(mark, "cannot be removed: \(error.localizedDescription)")
        }
    }

    private static func beginning(of path: FilePath) -> FilePath { FilePath(path.string + ".beginning") }

    private static func place(of path: FilePath) throws -> [Int] {
        try ["", "-wal"].flatMap { suffix in
            let found = try FileManager.default.attributesOfItem(atPath: path.string + suffix)
            guard let device = found[.systemNumber] as? Int, let inode = found[.systemFileNumber] as? Int else {
                throw CocoaError(.fileReadUnknown)
            }
            return [device, inode]
        }
    }

    /// Throws `displaced` when the names no longer lead to the open files, and another error where that cannot be
    /// checked. Blocks.
    package func requirePlace() throws(JournalError) {
        do {
            guard try Self.place(of: path) == place, try Self.size(path.string) > 0 else {
                throw JournalError.displaced(path)
            }
        } catch let error as CocoaError where error.code == .fileReadNoSuchFile || error.code == .fileNoSuchFile {
            throw .displaced(path)
        } catch {
            throw .from(error, at: path)
        }
    }
}

/// Faults of the journal, split by who must react.
package enum JournalError: Error, Sendable, CustomStringConvertible {
    /// The disk under the journal is full; admission stops, and continues when space returns.
    case full(FilePath)
    /// The disk does not read or write (`EIO`, a quota, a file system that became read-only); work continues when it
    /// does.
    case ioError(FilePath, cause: String)
    /// The process or the system has no file descriptor left; work continues when one is free.
    case noDescriptors(FilePath)
    /// The open journal is damaged. It stays untouched, so that its readable parts can be saved.
    case damaged(FilePath, cause: String)
    /// The file is damaged or not a journal; it was renamed to `setAside`, unchanged.
    case unreadable(FilePath, setAside: FilePath, cause: String)
    /// Written by a newer version of Inlet; set aside in the same way.
    case newerSchema(FilePath, setAside: FilePath)
    /// The journal is missing or empty, although `trace` shows that there was one. Nothing was created or changed.
    case lost(FilePath, trace: FilePath)
    /// Another program holds a lock on the journal for longer than a reader would; work continues when it lets go.
    case locked(FilePath)
    /// The open journal's file is gone, empty or another one: everything written to it ends with the process.
    case displaced(FilePath)
    /// Any other error from SQLite.
    case failed(FilePath, String)

    package var isFull: Bool { if case .full = self { true } else { false } }

    /// Only space, or the end of another program, is needed: a start waits for it.
    package var isPassing: Bool {
        switch self {
        case .full, .locked: true
        case .ioError, .noDescriptors, .damaged, .unreadable, .newerSchema, .lost, .displaced, .failed: false
        }
    }

    /// The cause is the disk, a lock or missing descriptors, not one row: the next query fails in the same way.
    package var isOfDisk: Bool {
        switch self {
        case .full, .ioError, .noDescriptors, .locked: true
        case .damaged, .unreadable, .newerSchema, .lost, .displaced, .failed: false
        }
    }

    package var description: String {
        switch self {
        case .full(let path):
            "\(path.display): the disk is full. Free some space; Inlet then continues automatically"
        case .ioError(let path, let cause):
            "\(path.display): the disk cannot be read or written (\(cause)). Check 'dmesg', quotas and mounts; "
                + "Inlet continues automatically"
        case .noDescriptors(let path):
            "\(path.display): no file descriptor is left. Raise the limit (LimitNOFILE=, 'ulimit -n'); "
                + "Inlet continues automatically when one is free"
        case .damaged(let path, let cause):
            "\(path.display): the journal is damaged (\(cause)). Stop Inlet, then restore a backup with "
                + "'inlet queue restore FILE --yes', or begin an empty journal with 'inlet queue reset --yes'. "
                + "Both keep the damaged one"
        case .unreadable(let path, let aside, let cause):
            "\(path.display): the journal cannot be read (\(cause)). It is kept as \(aside.display). "
                + "'inlet queue restore FILE --yes' restores a backup. " + Self.advice
        case .newerSchema(let path, let aside):
            "\(path.display): the journal was written by a newer version of Inlet. It is kept as \(aside.display); "
                + "to use it, install that version and rename it back. " + Self.advice
        case .lost(let path, let trace):
            "\(path.display): the journal is gone or empty, but \(trace.display) shows that there was one. Put it back, "
                + "restore a backup with 'inlet queue restore FILE --yes', or begin an empty journal with "
                + "'inlet queue reset --yes'. An empty journal sends files again that are still in the watched folders"
        case .locked(let path):
            "\(path.display): another program has locked the journal ('fuser -v \(path.display)' names it). "
                + "Inlet continues automatically when the lock is gone"
        case .displaced(let path):
            "\(path.display): the journal was removed, emptied or replaced while Inlet uses it. Stop Inlet, then restore the newest "
                + "backup with 'inlet queue restore FILE --yes'. Inlet saves the content in 'backups' beside it, "
                + "now and once more when it stops"
        case .failed(let path, let cause):
            "\(path.display): \(cause)"
        }
    }

    private static let advice = """
        Starting again begins an empty journal: files still in the watched folders would then be sent again, \
        unless their watch entry says 'existing: skip'.
        """

    /// The error for a failure of the journal at `path`.
    static func from(_ cause: any Error, at path: FilePath) -> JournalError {
        if let known = cause as? JournalError { return known }
        guard let database = cause as? DatabaseError else { return .failed(path, "\(cause)") }
        let message = database.message ?? "SQLite error \(database.extendedResultCode.rawValue)"
        switch database.extendedResultCode {
        // The second: no space for the index of the write-ahead log.
        case .SQLITE_FULL, .SQLITE_IOERR_SHMSIZE: return .full(path)
        case .SQLITE_IOERR_NOMEM: return .failed(path, "out of memory")
        default: break
        }
        switch database.resultCode {
        case .SQLITE_CANTOPEN, .SQLITE_IOERR:
            if isShortOfDescriptors { return .noDescriptors(path) }
            return database.resultCode == .SQLITE_IOERR
                ? .ioError(path, cause: "\(message), code \(database.extendedResultCode.rawValue)")
                : .failed(path, message)
        case .SQLITE_BUSY, .SQLITE_LOCKED: return .locked(path)
        case .SQLITE_READONLY: return .ioError(path, cause: message)
        case .SQLITE_CORRUPT, .SQLITE_NOTADB, .SQLITE_FORMAT: return .damaged(path, cause: message)
        default: return .failed(path, message)
        }
    }

    /// Whether no file can be opened now (`EMFILE`, `ENFILE`): SQLite reports "unable to open" for a missing folder and
    /// for a full descriptor table alike.
    private static var isShortOfDescriptors: Bool {
        do {
            try FileDescriptor.open("/dev/null", .readOnly).close()
            return false
        } catch {
            return error as? Errno == .tooManyOpenFiles || error as? Errno == .tooManyOpenFilesInSystem
        }
    }
}
