internal import CSQLite
internal import GRDB
package import InletCore
package import SystemPackage

/// What the journal remembers of a path.
package enum KnownFile: Sendable, Equatable {
    case new
    /// Nothing about it changed.
    case known
    /// Only inode, device or ctime differ: the content hash decides.
    case touched(FileRow)
}

/// A file of the journal that has another path now, and whether it waits and no destination has heard of it: its key is still free
/// to change.
package typealias RenamedFile = (file: FileRow, isUntold: Bool)

extension Journal {
    /// Whether files of these identities were admitted before, by the rule of `FileIdentity.isKnown(as:tolerance:)`.
    ///
    /// - Parameter tolerance: nanoseconds that its file system's mtime may be off.
    package func recall(_ arrivals: [FoundFile], tolerance: Int64) async throws(JournalError) -> [KnownFile] {
        try await read { database in
            try arrivals.map { arrival in
                guard let last = try Self.remembered(arrival, database) else { return .new }
                return switch last.status(of: arrival, tolerance) {
                case .new: .new
                case .known: .known
                case .touched: .touched(try Self.file(last.id, database))
                }
            }
        }
    }

    /// What has to be known of the newest file of a path to tell whether another is the same: asked of every file that a scan
    /// shows.
    struct LatestFile {
        var id: Int64
        var identity: FileIdentity
        var state: FileState
        /// What was there was taken away or put elsewhere when it was finished.
        var wasVacated: Bool
        /// A person has it sent again, and it is on its way back to this path.
        var isReturning: Bool

        enum ChangeStatus { case new, known, touched }

        func status(of arrival: FoundFile, _ tolerance: Int64) -> ChangeStatus {
            let identity = arrival.identity
            // What we took away ourselves and what came to nothing was dropped anew on purpose.
            guard state != .gone, state != .superseded else { return .new }
            if isReturning { return identity.isKnown(as: self.identity, tolerance: tolerance) ? .known : .new }
            // The same inode and times again: it was looked at just before we took it away, and is no new file.
            if wasVacated { return identity == self.identity ? .known : .new }
            guard identity.isKnown(as: self.identity, tolerance: tolerance) else { return .new }
            // A card is not read from end to end each time it is put in.
            let isSame =
                arrival.volume?.key == nil
                ? identity == self.identity : identity.isSame(onVolumeAs: self.identity, tolerance: tolerance)
            return isSame ? .known : .touched
        }
    }

    static func remembered(_ arrival: FoundFile, _ database: Database) throws -> LatestFile? {
        try newest(
            "id, size, modified, changed, inode, device, state, finished_at, disposition, intent", arrival.root,
            arrival.path, arrival.volume?.key, database
        ) { row in
            LatestFile(
                id: row.integer(0), identity: row.identity(1), state: row.text(6).flatMap(FileState.init) ?? .failed,
                wasVacated: !row.isNull(7) && Disposition.vacates(row.text(8)),
                isReturning: !row.isNull(7) && !row.isNull(9))
        }
    }

    private static func place(_ volume: String?) -> String {
        volume == nil ? "root = ? AND path = ? AND volume IS NULL" : "volume = ? AND path = ?"
    }

    /// Columns of the newest file of a path. What is in the history is older than all that is not.
    private static func newest<Value>(
        _ columns: String, _ root: FilePath, _ path: FilePath, _ volume: String?, _ database: Database,
        read: (SQLRow) throws -> Value
    ) throws -> Value? {
        let current = try database.row(
            "SELECT \(columns) FROM file WHERE \(place(volume)) ORDER BY id DESC LIMIT 1",
            volume ?? root, path, read: read)
        if let current { return current }
        return try database.row(
            "SELECT \(columns) FROM history_as_file WHERE \(placeInHistory) ORDER BY id DESC LIMIT 1",
            placeName(root, volume), path, read: read)
    }

    /// The newest file of a path: of a removable volume wherever that was mounted, and never of another one.
    static func latest(_ root: FilePath, _ path: FilePath, _ volume: String?, _ database: Database) throws -> FileRow? {
        try newest(FileRow.columns, root, path, volume, database) { try FileRow($0) }
    }

    /// Takes note that a known file has another inode, device or ctime but the same content. A running
    /// delivery keeps what it began with, and notices the change itself; and one that awaits its disposal, and of which no
    /// checksum is known, keeps the ctime that it was delivered with: nothing else tells whether it was edited since. So does
    /// one of which a part was sent: the rest of another content must not be sent behind it.
    ///
    /// What could not be read because it was not allowed, or has waited for that for too long, goes on: a chmod or a chown may
    /// have been just that.
    ///
    /// - Parameters:
    ///   - file: as it was when the content was judged: what a delivery that has ended since then proved may be another one.
    ///   - uptimes: the destinations' expiry clocks.
    /// - Returns: whether it was noted, as it is not while a delivery of the file runs, or has sent a part of it; whether the
    ///   file was judged by what is no longer so, and is to be judged again; and whether something of it is due that was not
    ///   before.
    @discardableResult
    package func refresh(
        _ file: FileRow, identity: FileIdentity, uptimes: [String: Int64] = [:], at now: WallTime
    ) async throws(JournalError) -> (isNoted: Bool, isOutdated: Bool, goesOn: Bool) {
        let id = file.id
        return try await commit { database in
            guard let known = try FileRow.one(id, database), known.state == file.state, known.content == file.content,
                known.digests == file.digests
            else { return (false, true, false) }
            // Of a server that only numbers its files anew, and of a remount, ctime is as it was.
            let isEdited = identity.changed != known.identity.changed
            let isSpared =
                try isEdited && known.content == nil && known.digests.isEmpty && Self.isSentInPart(id, database)
            let isNoted = try !isSpared && Self.refresh(id, identity, sparing: Self.isUnprovable, database)
            var goesOn =
                try database.change(
                    """
                    UPDATE delivery SET next_at = ?1
                    WHERE file_id = ?2 AND state = 'ready' AND code = 'source_forbidden' AND next_at > ?1 AND next_at < \(Self.never)
                    """, now, id) > 0
            if known.state == .expired, known.code == .sourceForbidden {
                goesOn = try Self.retry(id, uptimes, [:], of: [.expired], now, database) || goesOn
            }
            return (isNoted, false, goesOn)
        }
    }

    /// Where nothing but the former ctime tells that the content is another one: the file awaits its disposal, or one
    /// destination has found it edited and others have not looked yet.
    static let isUnprovable = """
        content IS NULL AND (state <> 'pending' AND finished_at IS NULL OR state = 'pending' AND EXISTS (
            SELECT 1 FROM delivery WHERE file_id = file.id AND delivery.state IN ('superseded', 'gone')))
        """

    /// Whether something of its content is at a destination that goes on from there.
    static func isSentInPart(_ file: Int64, _ database: Database) throws -> Bool {
        try database.exists(
            """
            SELECT 1 FROM delivery JOIN checkpoint ON checkpoint.delivery_id = delivery.id
            WHERE delivery.file_id = ? AND checkpoint.name <> '\(CheckpointName.mayBeVisible)' LIMIT 1
            """, file)
    }

    /// The newest file of each of these paths; nil for those that the journal does not know.
    package func newest(
        _ root: FilePath, _ paths: [FilePath], volume: String? = nil
    ) async throws(JournalError) -> [FileRow?] {
        try await read { database in try paths.map { try Self.latest(root, $0, volume, database) } }
    }

    /// The same for files some of which may be there: what may belong together is asked about at one moment.
    ///
    /// - Parameters:
    ///   - files: paths below `root`, each with what is there.
    ///   - tolerance: nanoseconds that its file system's mtime may be off.
    /// - Returns: of each the newest row, and whether that is of the file that is there, touched or not.
    package func newest(
        _ root: FilePath, _ files: [(path: FilePath, identity: FileIdentity?)], volume: Volume?, tolerance: Int64
    ) async throws(JournalError) -> [(row: FileRow, isKnown: Bool)?] {
        try await read { database in
            try files.map { path, identity in
                guard let row = try Self.latest(root, path, volume?.key, database) else { return nil }
                guard let identity else { return (row, false) }
                let arrival = FoundFile(root: root, path: path, identity: identity, volume: volume)
                let last = try Self.remembered(arrival, database)
                return (row, last.map { $0.status(of: arrival, tolerance) != .new } ?? false)
            }
        }
    }

    /// The next number for `{seq}`; gaps are possible, repeats are not.
    package func nextSequence() async throws(JournalError) -> Int64 {
        try await commit { database in
            try database.integer("UPDATE counter SET value = value + 1 WHERE name = 'sequence' RETURNING value") ?? 0
        }
    }

    /// Whether the root was watched before; remembers it with the time of the first call. For `existing: skip`.
    package func firstSeen(root: FilePath, now: WallTime) async throws(JournalError) -> WallTime {
        try await commit { database in
            try database.change("INSERT OR IGNORE INTO root (path, first_seen) VALUES (?, ?)", root, now)
            return try database.time("SELECT first_seen FROM root WHERE path = ?", root) ?? now
        }
    }

    /// The file that was renamed from `old` to where `arrival` is, if it goes on as the same: it is the same inode with the same
    /// size and time, it waits or has arrived, it belongs to no others, and nothing was ever known of its new path.
    ///
    /// Whether the content is the same is for the caller to find out; and that `old` names it no more.
    package func renamed(from old: FilePath, to arrival: FoundFile) async throws(JournalError) -> RenamedFile? {
        try await read { database in try Self.renamed(from: old, to: arrival, database) }
    }

    private static func renamed(from old: FilePath, to arrival: FoundFile, _ database: Database) throws
        -> RenamedFile?
    {
        let volume = arrival.volume?.key
        guard try latest(arrival.root, arrival.path, volume, database) == nil,
            let file = try latest(arrival.root, old, volume, database), file.batchID == nil, file.role == nil,
            arrival.identity.isUntouched(since: file.identity, ignoringChangeTime: true)
        else { return nil }
        switch file.state {
        case .pending: break
        case .delivered, .duplicate:
            // What is being disposed of has its old path in its notes.
            guard file.intent == nil, !Disposition.vacates(file.disposition) else { return nil }
        default: return nil
        }
        let told = try database.integer(
            """
            SELECT 1 FROM delivery WHERE file_id = ? AND (started_at IS NOT NULL OR state NOT IN ('ready', 'parked')
                OR EXISTS (SELECT 1 FROM checkpoint WHERE delivery_id = delivery.id)) LIMIT 1
            """, file.id)
        return (file, isUntold: file.state == .pending && told == nil)
    }

    /// Gives the file its new path.
    ///
    /// - Parameter plan: what its routes say of it under that path, for a file that no destination has heard of; every other
    ///   keeps its key.
    /// - Returns: false when it is being sent, or is no longer what it was: to be looked at again.
    package func rename(_ renamed: RenamedFile, to arrival: FoundFile, plan: Plan?) async throws(JournalError)
        -> Bool
    {
        try await commit { database in
            let id = renamed.file.id
            guard let now = try Self.renamed(from: renamed.file.path, to: arrival, database), now == renamed else {
                return false
            }
            let running = try database.integer(
                "SELECT 1 FROM delivery WHERE file_id = ? AND state = 'claimed' LIMIT 1", id)
            guard running == nil else { return false }
            let (path, changed) = (arrival.path, arrival.identity.changed)
            try database.change(
                "UPDATE file SET path = ?, changed = iif(\(Self.isUnprovable), changed, ?) WHERE id = ?", path, changed,
                id)
            try database.change("UPDATE history_file SET path = ?, changed = ? WHERE id = ?", path, changed, id)
            if renamed.isUntold, let plan { try Self.replan(id, plan, database) }
            return true
        }
    }

    /// What a plan takes from a file's name.
    private static func replan(_ id: Int64, _ plan: Plan, _ database: Database) throws {
        try database.change(
            "UPDATE file SET category = ?, media_type = ?, labels = ? WHERE id = ?", plan.category, plan.mediaType,
            try JSON.column(plan.labels), id)
        let fields = try JSON.column(plan.with)
        // Their own keys must not stand in their way.
        let deliveries = try job(file(id, database), database).deliveries
        try database.change("UPDATE delivery SET key = NULL WHERE file_id = ?", id)
        var keys: [Int64: String] = [:]
        for delivery in deliveries where delivery.key != nil {
            // A registration goes by the key of what it registers.
            let wanted = delivery.afterID.flatMap { keys[$0] } ?? plan.key
            let key = try freeKey(wanted, delivery.destination, database)
            keys[delivery.id] = key
            try database.change("UPDATE delivery SET key = ?, fields = ? WHERE id = ?", key, fields, delivery.id)
        }
    }
}

/// A journal that is only looked at, whoever works with it: no lock is asked for, nothing of it changes, and no file comes to
/// be beside it.
package struct ReadOnlyJournal {
    private let path: FilePath
    private var database: DatabaseQueue
    private var readsLog: Bool

    private static let areURIsAllowed = inlet_sqlite_allow_uris() == SQLITE_OK

    /// nil where there is no journal yet.
    ///
    /// - Throws: `JournalError.failed` also for a journal of another version, and where we may not look.
    package init?(path: FilePath) throws(JournalError) {
        _ = Self.areURIsAllowed
        guard try Self.isThere(path) else { return nil }
        self.path = path
        readsLog = try Self.hasLog(path)
        database = try Self.open(path, withLog: readsLog)
    }

    /// Which of these files were admitted before, as they are; where only inode, device or ctime differ, the content would be
    /// compared. Blocks.
    ///
    /// - Parameter tolerance: nanoseconds that their file system's mtime may be off.
    /// - Returns: nil for those that are new.
    package mutating func recall(
        _ arrivals: [FoundFile], tolerance: Int64
    ) throws(JournalError) -> [(job: Int64, state: FileState)?] {
        try read { database in
            try arrivals.map { arrival in
                guard let last = try Journal.remembered(arrival, database),
                    last.status(of: arrival, tolerance) != .new
                else { return nil }
                return (last.id, last.state)
            }
        }
    }

    /// When a watched folder was first seen, or a volume by its key; nil = never. Blocks.
    package mutating func firstSeen(_ root: FilePath) throws(JournalError) -> WallTime? {
        try read { database in try database.row("SELECT first_seen FROM root WHERE path = ?", root) { $0.time(0) } }
    }

    /// Whether there is a journal with anything in it. Throws for one that we may not see: taken for missing, it would make every
    /// file seem new.
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
        // An agent that has started or ended since has its newest commits in the log, or no longer.
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
            default: "%\(byte < 16 ? "0" : "")\(String(byte, radix: 16, uppercase: true))"
            }
        }.joined()
    }
}
