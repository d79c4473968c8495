internal import CSQLite
internal import GRDB
package import InletCore
package import SystemPackage

/// A journal that is only looked at, whoever works with it: no lock is asked for, nothing of it changes, and no file comes to
/// be beside it.
package struct JournalGlance {
    /// How the journal stands to a file.
    package enum Standing: Sendable, Equatable {
        case new
        /// Admitted before, as it is; where only inode, device or ctime differ, its content would be compared.
        case known(job: Int64, state: FileState)
    }

    private let path: FilePath
    private var database: DatabaseQueue
    private var readsLog: Bool

    private static let areURIsAllowed = inlet_sqlite_allow_uris() == SQLITE_OK

    /// nil where there is no journal yet.
    ///
    /// - Throws: `JournalError.failed` also for a journal of another version, and where nobody lets us look.
    package init?(path: FilePath) throws(JournalError) {
        _ = Self.areURIsAllowed
        guard try Self.isThere(path) else { return nil }
        self.path = path
        readsLog = try Self.hasLog(path)
        database = try Self.open(path, withLog: readsLog)
    }

    /// How the journal stands to each of these files. Blocks.
    ///
    /// - Parameter tolerance: nanoseconds that their file system's mtime may be off.
    package mutating func recall(_ arrivals: [Arrival], tolerance: Int64) throws(JournalError) -> [Standing] {
        try read { database in
            try arrivals.map { arrival in
                guard let last = try Journal.remembered(arrival.root, arrival.path, arrival.volume?.key, database)
                else { return .new }
                if case .new = last.standing(of: arrival, tolerance) { return .new }
                return .known(job: last.id, state: last.state)
            }
        }
    }

    /// When a watched folder was first seen, or a volume by its key; nil = never. Blocks.
    package mutating func firstSeen(_ root: FilePath) throws(JournalError) -> WallTime? {
        try read { database in
            try database.row("SELECT first_seen FROM root WHERE path = ?", root) {
                $0.time(0)
            }
        }
    }

    /// Whether there is a journal with anything in it. One that we may not see is not one that is not there: every file would
    /// seem new.
    private static func isThere(_ path: FilePath) throws(JournalError) -> Bool {
        do {
            let descriptor = try FileDescriptor.open(path, .readOnly, options: .closeOnExec)
            return try descriptor.closeAfter { try descriptor.seek(offset: 0, from: .end) > 0 }
        } catch Errno.noSuchFileOrDirectory {
            return false
        } catch {
            throw .failed(path, "cannot be looked at: \(error)")
        }
    }

    private mutating func read<Value>(_ body: (Database) throws -> Value) throws(JournalError) -> Value {
        // An agent that has started or ended since keeps what is new in another file, or the same.
        let hasLog = try Self.hasLog(path)
        if hasLog != readsLog { (database, readsLog) = (try Self.open(path, withLog: hasLog), hasLog) }
        do {
            return try database.read(body)
        } catch {
            throw .from(error, at: path)
        }
    }

    /// Whether the write-ahead log holds anything: an agent is at work, or was killed.
    private static func hasLog(_ path: FilePath) throws(JournalError) -> Bool {
        do {
            return try Journal.size(path.string + "-wal") > 0
        } catch {
            throw .from(error, at: path)
        }
    }

    /// - Parameter withLog: read what the write-ahead log holds too. Without one, SQLite would make it and its index, so that it
    ///   is told that the file does not change.
    private static func open(_ path: FilePath, withLog: Bool) throws(JournalError) -> DatabaseQueue {
        var configuration = Configuration()
        configuration.readonly = true
        configuration.busyMode = .timeout(5)
        do {
            let name = withLog ? path.string : "file:\(escaped(path))?immutable=1"
            let database = try DatabaseQueue(path: name, configuration: configuration)
            let isOurs = try database.read { try Schema.migrator.hasCompletedMigrations($0) }
            let isNewer = try database.read { try Schema.migrator.hasBeenSuperseded($0) }
            guard isOurs, !isNewer else {
                throw JournalError.failed(path, "the journal is of another version of Inlet")
            }
            return database
        } catch {
            throw .from(error, at: path)
        }
    }

    /// The path as a URI has it (RFC 3986).
    private static func escaped(_ path: FilePath) -> String {
        path.bytes.map { byte -> String in
            switch byte {
            case 0x2D...0x39, 0x41...0x5A, 0x5F, 0x61...0x7A: String(UnicodeScalar(byte))
            default: "%" + hex(byte >> 4) + hex(byte & 15)
            }
        }.joined()
    }

    private static func hex(_ digit: UInt8) -> String { String(digit, radix: 16, uppercase: true) }
}
