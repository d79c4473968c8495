internal import CSQLite
internal import GRDB
package import InletCore
package import SystemPackage

/// The journal's memory of a path.
package enum KnownFile: Sendable, Equatable {
    case new
    /// The file is unchanged.
    case known
    /// Only inode, device or ctime differ, so the content hash decides.
    case touched(FileRow)

    package var isNew: Bool { if case .new = self { true } else { false } }
    package var isKnown: Bool { if case .known = self { true } else { false } }
}

/// A known file has another path now; and whether it waits and no destination has heard of it, so that its key may
/// still change.
package typealias RenamedFile = (file: FileRow, isUntold: Bool)

extension Journal {
    /// Whether files of these identities were admitted before, by `FileIdentity.isKnown(as:tolerance:)`.
    ///
    /// - Parameter tolerance: the possible error of its file system's mtime, in nanoseconds.
    package func recall(_ arrivals: [FoundFile], tolerance: Int64) async throws(JournalError) -> [KnownFile] {
        try await read { database in
            try zip(arrivals, Self.remembered(arrivals, database)).map { arrival, last in
                guard let last else { return .new }
                return switch last.status(of: arrival, tolerance) {
                case .new: .new
                case .known: .known
                case .touched: .touched(try Self.file(last.id, database))
                }
            }
        }
    }

    /// Which of these files were admitted before, unchanged; nil for new files.
    ///
    /// - Parameter tolerance: as in `recall`.
    package func known(
        _ arrivals: [FoundFile], tolerance: Int64
    ) async throws(JournalError) -> [(job: Int64, state: FileState)?] {
        try await read { try Self.known(arrivals, tolerance, $0) }
    }

    fileprivate static func known(
        _ arrivals: [FoundFile], _ tolerance: Int64, _ database: Database
    ) throws -> [(job: Int64, state: FileState)?] {
        try zip(arrivals, remembered(arrivals, database)).map { arrival, last in
            guard let last, last.status(of: arrival, tolerance) != .new else { return nil }
            return (last.id, last.state)
        }
    }

    /// When a watched folder, or a volume by its key, was first seen; nil = never.
    package func firstSeen(_ root: FilePath) async throws(JournalError) -> WallTime? {
        try await read { try Self.firstSeen(root, $0) }
    }

    fileprivate static func firstSeen(_ root: FilePath, _ database: Database) throws -> WallTime? {
        try database.row("SELECT first_seen FROM root WHERE path = ?", root) { $0.time(0) }
    }

    /// The facts about the newest file of a path that tell whether another is the same: needed for every file that a
    /// scan finds.
    struct LatestFile {
        var id: Int64
        var identity: FileIdentity
        var state: FileState
        /// Finishing removed or moved the file that was there.
        var wasVacated: Bool
        /// A person retries it, and it is on its way back to this path.
        var isReturning: Bool

        static let columns = "id, size, modified, changed, inode, device, state, finished_at, disposition, intent"

        init(_ row: SQLRow) {
            (id, identity) = (row.integer(0), row.identity(1))
            state = row.text(6).flatMap(FileState.init) ?? .failed
            let isFinished = !row.isNull(7)
            wasVacated = isFinished && Disposition.vacates(row.text(8))
            isReturning = isFinished && !row.isNull(9)
        }

        enum ChangeStatus { case new, known, touched }

        func status(of arrival: FoundFile, _ tolerance: Int64) -> ChangeStatus {
            let identity = arrival.identity
            // A file that we removed, or one whose delivery came to nothing, was dropped again on purpose.
            guard state != .gone, state != .superseded else { return .new }
            if isReturning { return identity.isKnown(as: self.identity, tolerance: tolerance) ? .known : .new }
            // The same inode and times: it was examined just before we removed it, and is not a new file.
            if wasVacated { return identity == self.identity ? .known : .new }
            guard identity.isKnown(as: self.identity, tolerance: tolerance) else { return .new }
            // A card is not read completely each time it is inserted.
            let isSame =
                arrival.volume?.key == nil
                ? identity == self.identity : identity.isSame(onVolumeAs: self.identity, tolerance: tolerance)
            return isSame ? .known : .touched
        }
    }

    static func remembered(_ arrival: FoundFile, _ database: Database) throws -> LatestFile? {
        try newest(LatestFile.columns, arrival.root, arrival.path, arrival.volume?.key, database) { LatestFile($0) }
    }

    private static func place(_ volume: String?) -> String {
        volume == nil ? "root = ? AND path = ? AND volume IS NULL" : "volume = ? AND path = ?"
    }

    /// The columns of the newest file of a path. Everything in the history is older than everything outside it.
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

    /// The newest file of a path: on a removable volume wherever it was mounted, and never of another volume.
    static func latest(_ root: FilePath, _ path: FilePath, _ volume: String?, _ database: Database) throws -> FileRow? {
        try newest(FileRow.columns, root, path, volume, database) { try FileRow($0) }
    }

    /// Records that a known file has another inode, device or ctime but the same content. A running delivery keeps the
    /// identity it began with, and notices the change itself. A file that awaits its disposal without a known checksum
    /// keeps the ctime of its delivery: nothing else tells whether it was edited since. So does a file of which a part
    /// was sent: the rest of another content must not follow it.
    ///
    /// Deliveries that lacked permission to read the file, even for too long, continue: a chmod or chown may have
    /// granted it.
    ///
    /// - Parameters:
    ///   - file: as it was when the content was judged: a delivery that has ended since may have proved another
    /// content.
    ///   - uptimes: the destinations' expiry clocks.
    /// - Returns: whether it was recorded, which is not the case while a delivery of the file runs or has sent a part.
    ///   Further: whether the judgement is outdated and must be repeated, and whether a delivery is newly due.
    @discardableResult
    package func refresh(
        _ file: FileRow, identity: FileIdentity, uptimes: [String: Int64] = [:], at now: WallTime
    ) async throws(JournalError) -> (isNoted: Bool, isOutdated: Bool, goesOn: Bool) {
        let id = file.id
        return try await commit { database in
            guard let known = try FileRow.one(id, database), known.state == file.state, known.content == file.content,
                known.digests == file.digests
            else { return (false, true, false) }
            // A server that only renumbers its files, or a remount, leaves ctime unchanged.
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
                goesOn = try Self.retry(id, uptimes, [:], of: RetryScope(states: [.expired]), now, database) || goesOn
            }
            return (isNoted, false, goesOn)
        }
    }

    /// Whether only the former ctime reveals another content: the file awaits its disposal, or one destination has
    /// found it edited and others have not looked yet.
    static let isUnprovable = """
        content IS NULL AND (state <> 'pending' AND finished_at IS NULL OR state = 'pending' AND EXISTS (
            SELECT 1 FROM delivery WHERE file_id = file.id AND delivery.state IN ('superseded', 'gone')))
        """

    /// Whether a destination holds part of its content and would continue from there.
    static func isSentInPart(_ file: Int64, _ database: Database) throws -> Bool {
        try database.exists(
            """
            SELECT 1 FROM delivery JOIN checkpoint ON checkpoint.delivery_id = delivery.id
            WHERE delivery.file_id = ? AND checkpoint.name <> '\(CheckpointName.mayBeVisible)' LIMIT 1
            """, file)
    }

    /// The newest file of each of these paths; nil for unknown paths.
    package func newest(
        _ root: FilePath, _ paths: [FilePath], volume: String? = nil
    ) async throws(JournalError) -> [FileRow?] {
        try await read { database in try paths.map { try Self.latest(root, $0, volume, database) } }
    }

    /// The same for files of which some may exist: members of a set are asked about at one moment.
    ///
    /// - Parameters:
    ///   - files: paths below `root`, each with the file that is there.
    ///   - tolerance: the possible error of its file system's mtime, in nanoseconds.
    /// - Returns: the newest row of each, and whether it is of the file that is there, touched or not.
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

    /// Whether the root was watched before; records it with the time of the first call. For `existing: skip`.
    package func firstSeen(root: FilePath, now: WallTime) async throws(JournalError) -> WallTime {
        try await commit { database in
            try database.change("INSERT OR IGNORE INTO root (path, first_seen) VALUES (?, ?)", root, now)
            return try database.time("SELECT first_seen FROM root WHERE path = ?", root) ?? now
        }
    }

    /// The file that was renamed from `old` to `arrival`, if it continues as the same file. Then inode, size and time
    /// are the same, it waits or is delivered, it belongs to no set and no share, and nothing was ever known of its new
    /// path.
    ///
    /// The caller must check that the content is the same, and that `old` no longer names it.
    package func renamed(from old: FilePath, to arrival: FoundFile) async throws(JournalError) -> RenamedFile? {
        try await read { database in try Self.renamed(from: old, to: arrival, database) }
    }

    private static func renamed(from old: FilePath, to arrival: FoundFile, _ database: Database) throws
        -> RenamedFile?
    {
        let volume = arrival.volume?.key
        guard try latest(arrival.root, arrival.path, volume, database) == nil,
            let file = try latest(arrival.root, old, volume, database), file.batchID == nil, file.role == nil,
            !file.policy.isOfPlace,
            arrival.identity.isUntouched(since: file.identity, ignoringChangeTime: true)
        else { return nil }
        switch file.state {
        case .pending: break
        case .delivered, .duplicate:
            // A file being disposed of has its old path in its notes.
            guard file.intent == nil, !Disposition.vacates(file.disposition) else { return nil }
        default: return nil
        }
        let told = try database.integer(
            """
            SELECT 1 FROM delivery WHERE file_id = ? AND (started_at IS NOT NULL OR state NOT IN ('ready', 'parked')
                OR interrupted > 0 OR waits > 0 OR EXISTS (SELECT 1 FROM checkpoint WHERE delivery_id = delivery.id)) LIMIT 1
            """, file.id)
        return (file, isUntold: file.state == .pending && told == nil)
    }

    /// Gives the file its new path.
    ///
    /// - Parameter plan: its routes' plan under the new path, for a file that no destination has heard of; every other
    ///   keeps its key.
    /// - Returns: false when it is being sent or has changed: look again.
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

    /// The parts of a plan that depend on a file's name.
    private static func replan(_ id: Int64, _ plan: Plan, _ database: Database) throws {
        try database.change(
            "UPDATE file SET category = ?, media_type = ?, labels = ? WHERE id = ?", plan.category, plan.mediaType,
            try JSON.column(plan.labels), id)
        let fields = try JSON.column(plan.with)
        // Its own keys must not block it.
        let deliveries = try job(file(id, database), database).deliveries
        try database.change("UPDATE delivery SET key = NULL WHERE file_id = ?", id)
        var keys: [Int64: String] = [:]
        for delivery in deliveries where delivery.key != nil {
            // A registration uses the key of the delivery that it registers.
            let wanted = delivery.afterID.flatMap { keys[$0] } ?? plan.key(at: delivery.destination)
            let key = try freeKey(wanted, delivery.destination, database)
            keys[delivery.id] = key
            try database.change("UPDATE delivery SET key = ?, fields = ? WHERE id = ?", key, fields, delivery.id)
        }
    }
}

/// A journal opened only to look, beside any user of it: takes no lock, changes nothing, and creates no file beside it.
package struct ReadOnlyJournal {
    private let path: FilePath
    private var database: DatabaseQueue
    private var readsLog: Bool

    private static let areURIsAllowed = inlet_sqlite_allow_uris() == SQLITE_OK

    /// nil where there is no journal yet.
    ///
    /// - Throws: `JournalError.failed` also for a journal of another version, and without permission.
    package init?(path: FilePath) throws(JournalError) {
        _ = Self.areURIsAllowed
        guard try Self.isThere(path) else { return nil }
        self.path = path
        readsLog = try Self.hasLog(path)
        database = try Self.open(path, withLog: readsLog)
    }

    /// Which of these files were admitted before, unchanged. Where only inode, device or ctime differ, the agent would
    /// compare the content. Blocks.
    ///
    /// - Parameter tolerance: the possible error of their file system's mtime, in nanoseconds.
    /// - Returns: nil for new files.
    package mutating func recall(
        _ arrivals: [FoundFile], tolerance: Int64
    ) throws(JournalError) -> [(job: Int64, state: FileState)?] {
        try read { database in try Journal.known(arrivals, tolerance, database) }
    }

    /// When a watched folder, or a volume by its key, was first seen; nil = never. Blocks.
    package mutating func firstSeen(_ root: FilePath) throws(JournalError) -> WallTime? {
        try read { try Journal.firstSeen(root, $0) }
    }

    /// Whether it has files from before `names:`, which became clean in keys without anybody asking for it. Blocks.
    package mutating func hasCleanNames() throws(JournalError) -> Bool { try read { try Journal.hasCleanNames($0) } }

    /// Reads the whole structure, where that takes a second at most.
    ///
    /// - Returns: false for a larger journal, which is left unread. Blocks.
    /// - Throws: where the journal is damaged, or its disk does not read.
    package mutating func requireSound() throws(JournalError) -> Bool {
        let size: Int64
        do { size = try Journal.size(path.string) } catch { throw .from(error, at: path) }
        guard size <= Self.checkedAtOnce else { return false }
        try read { try Journal.requireSound($0) }
        return true
    }

    /// About 10 ms a MiB.
    private static let checkedAtOnce: Int64 = 64 << 20

    /// Whether a journal with content exists. Throws when we may not look: if it were taken for missing, every file
    /// would seem new.
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
        // An agent that started or ended since has its newest commits in the log, or has just moved them out of it.
        let hasLog = try Self.hasLog(path)
        if hasLog != readsLog { (database, readsLog) = (try Self.open(path, withLog: hasLog), hasLog) }
        do {
            return try database.read(body)
        } catch {
            throw .from(error, at: path)
        }
    }

    /// Whether the write-ahead log holds anything: an agent is running, or was killed.
    private static func hasLog(_ path: FilePath) throws(JournalError) -> Bool {
        do {
            return try Journal.size(path.string + "-wal") > 0
        } catch {
            throw .from(error, at: path)
        }
    }

    /// - Parameter withLog: also reads the write-ahead log. Without one SQLite would create it and its index, so it is
    ///   opened as immutable.
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

    /// The path as a URI (RFC 3986).
    private static func escaped(_ path: FilePath) -> String {
        path.bytes.map { byte -> String in
            switch byte {
            case 0x2D...0x39, 0x41...0x5A, 0x5F, 0x61...0x7A: String(UnicodeScalar(byte))
            default: "%\(byte < 16 ? "0" : "")\(String(byte, radix: 16, uppercase: true))"
            }
        }.joined()
    }
}
