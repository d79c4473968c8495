internal import InletCore
internal import InletJournal
internal import InletLinux
internal import SystemPackage

/// The disposal of a source whose deliveries have ended: decided here, done by the finisher.
enum FinishAction: String, Sendable, Equatable, Codable {
    case keep
    case archive
    case delete
    case quarantine

    /// A person's answer, or the route's choice for this end. Expired, cancelled, changed and vanished files stay
    /// untouched.
    init(_ file: FileRow) {
        switch file.state {
        case _ where file.policy.answer == .left: self = .keep
        case .duplicate where file.policy.answer == .aside: self = .archive
        case .duplicate where file.policy.answer == .removed: self = .delete
        case .rejected where file.policy.answer == .aside: self = .quarantine
        case .delivered, .duplicate:
            self =
                switch file.policy.onSuccess {
                case .keep: .keep
                case .archive: .archive
                case .delete: .delete
                }
        case .failed, .rejected: self = file.policy.onFailure == .quarantine ? .quarantine : .keep
        default: self = .keep
        }
    }
}

extension FileRow {
    /// Whether a person has it put away or removed.
    var isOrdered: Bool { policy.answer == .aside || policy.answer == .removed }

    /// Whether a person has it removed, rather than its route.
    var isOnOrder: Bool { state == .duplicate && policy.answer == .removed }
}

extension DisposalStep {
    static func pause(_ now: WallTime, _ pause: Duration, _ note: String) -> DisposalStep {
        .wait(until: now + pause, note: note)
    }

    static func held(_ until: WallTime) -> DisposalStep {
        .wait(until: until, note: "held until \(until.rfc3339): writers are unknown here")
    }

    static var superseded: DisposalStep {
        .end(Disposition.untouched("it was changed after it was delivered"), state: .superseded, place: nil)
    }

    static func doubtful(_ file: FileRow) -> DisposalStep {
        let why =
            "it was touched after the delivery, and no checksum shows whether its content changed; "
            + "compare it with the delivered file, and remove it yourself"
        if file.isOrdered { return .stays(file, why) }
        return .end(Disposition.untouched(why), state: nil, place: file.fullPath)
    }

    /// Inlet does nothing with it. A person's order ends with the reason.
    static func kept(_ file: FileRow) -> DisposalStep {
        if file.isOrdered { return .stays(file, "Inlet does not change this volume (volume_writes)") }
        return .end(Disposition.kept, state: nil, place: file.fullPath)
    }

    /// A person wanted the file to go, and it stays.
    static func stays(_ file: FileRow, _ why: String) -> DisposalStep {
        let what = file.isOnOrder ? "not removed" : "not moved"
        return .end(Disposition.kept(because: "\(what): \(why)"), state: nil, place: file.fullPath)
    }
}

/// How a source compares with the delivered file, by its numbers.
enum SourceStatus: Sendable, Equatable {
    case same
    /// Its size or mtime is another one, and so is its content.
    case changed
    /// Size and mtime can be restored (`touch -r`, `exiftool -P`), while ctime, inode and device change without a
    /// change of content (a chmod, a remount): only a checksum decides.
    case unclear

    /// - Parameter ignoringChangeTime: after the agent's own rename, which changes it too.
    init(_ now: FileIdentity, since proved: FileIdentity, ignoringChangeTime: Bool) {
        self =
            if now.isUntouched(since: proved, ignoringChangeTime: ignoringChangeTime) {
                .same
            } else {
                now.isKnown(as: proved) ? .unclear : .changed
            }
    }
}

extension FileIdentity {
    /// Whether it is another name of the same file, or was one at that check.
    func isFile(_ other: FileIdentity) -> Bool { inode == other.inode && device == other.device }
}

/// Whether a source is the delivered file. Where only ctime, device or inode differ, the content decides.
enum SourceMatch: Sendable, Equatable {
    case same, changed
    /// Touched, and its content is unknown.
    case doubtful
    /// Touched, with a checksum to compare.
    case unread

    /// - Parameter ours: the ctime after the agent's own rename; ctime is ignored where that is unknown.
    init(_ now: FileIdentity, of file: FileRow, isRenamed: Bool = false, ours: Int64? = nil) {
        var proved = file.identity
        if let ours { proved.changed = ours }
        let isUnknown = isRenamed && ours == nil
        switch SourceStatus(now, since: proved, ignoringChangeTime: isUnknown) {
        // After a crash an edit under its private name cannot be excluded.
        case .same: self = isUnknown && file.hasChecksum ? .unread : .same
        case .changed: self = .changed
        case .unclear where file.hasChecksum: self = .unread
        case .unclear:
            // Without a checksum only its numbers tell, and a remount or a server renumbers the same file.
            self = now.isFile(proved) || now.changed == proved.changed || file.volume != nil ? .doubtful : .changed
        }
    }
}

/// The finisher's journal entry before it touches a file, so that after a crash it can continue.
struct FinishIntent: Sendable, Equatable, Codable {
    var action: FinishAction
    /// The file's place before its last check, in its own directory or in `.inlet/held`.
    var privatePath: [UInt8]
    /// For `archive` and `quarantine`: its last name.
    var target: [UInt8]?
    /// Set with the last name, right before the move: a file under that name may be the agent's own work.
    var isMoving: Bool?
    /// The name of an incomplete copy to another file system. A new name for each try.
    var copy: [UInt8]?
    /// Its ctime under its private name: equal while it is untouched since.
    var changed: Int64?
    /// It waits in `.inlet/held` until then, because writers are unknown here.
    var heldUntil: WallTime?

    var privateFile: FilePath { FilePath(bytes: privatePath) }
    var targetFile: FilePath? { target.map { FilePath(bytes: $0) } }
    var copyFile: FilePath? { copy.map { FilePath(bytes: $0) } }

    init(action: FinishAction, privateFile: FilePath, target: FilePath?, heldUntil: WallTime? = nil) {
        self.action = action
        privatePath = privateFile.bytes
        self.target = target?.bytes
        self.heldUntil = heldUntil
    }

    /// Whether it has everything that its action needs.
    var isWhole: Bool {
        switch action {
        case .delete: true
        case .archive, .quarantine: target != nil
        case .keep: false
        }
    }

    init(_ note: [UInt8]) throws { self = try JSON.decode(note) }

    var note: [UInt8] { get throws { try JSON.encode(self) } }
}

/// The finisher's folders for one root.
struct FinishFolders: Sendable {
    let root: FilePath
    var archive: FilePath
    var quarantine: FilePath
    var hold: Duration
    /// Whether the agent may move, delete or write here: a card is left untouched.
    let mayWrite: Bool
    /// Before the numbers in private names; empty where no other agent hides files.
    private let mark: String

    /// For a root that left the configuration: the defaults below it.
    init(root: FilePath, settings: WatchSettings?, isVolume: Bool = false, mark: String = "") {
        (self.root, self.mark) = (root, mark)
        archive = root.pushing(settings?.archiveDirectory ?? ".inlet/done")
        quarantine = root.pushing(settings?.quarantineDirectory ?? ".inlet/failed")
        hold = settings?.hold ?? .seconds(86_400)
        mayWrite = settings.map { $0.pattern == nil || $0.volumeWrites } ?? !isVolume
    }

    /// Whether other agents may have renamed a hidden file, and have it to dispose of.
    var isShared: Bool { !mark.isEmpty }

    /// A unique name beside the file, which every watcher ignores.
    func privateFile(_ file: FileRow) -> FilePath { Self.privateFile(file.fullPath, "\(mark)\(file.id)") }

    func heldFile(_ file: FileRow, below folder: FilePath) -> FilePath {
        Self.heldFile(file.fullPath, "\(mark)\(file.id)", below: folder)
    }

    /// The possible places of a file that has neither its own name nor a last one.
    func privateNames(_ file: FileRow) -> [FilePath] {
        Self.privateNames(of: file.fullPath, below: root, mark: "\(mark)\(file.id)")
    }

    /// The same, by the mark in the private names.
    static func privateNames(of path: FilePath, below root: FilePath, mark: String) -> [FilePath] {
        let beside = path.removingLastComponent()
        return [privateFile(path, mark), heldFile(path, mark, below: root), heldFile(path, mark, below: beside)]
    }

    private static func privateFile(_ path: FilePath, _ mark: String) -> FilePath {
        path.removingLastComponent().appending(".inlet-finishing-\(mark).tmp")
    }

    private static func heldFile(_ path: FilePath, _ mark: String, below folder: FilePath) -> FilePath {
        folder.appending(".inlet").appending("held").appending(mark).pushing(
            FilePath(root: nil, path.lastComponent.map { [$0] } ?? []))
    }

    /// The relative path is kept below the archive or quarantine.
    func target(_ file: FileRow, _ action: FinishAction) -> FilePath? {
        switch action {
        case .archive: archive.pushing(file.path)
        case .quarantine: quarantine.pushing(file.path)
        case .keep, .delete: nil
        }
    }

    /// `name_2.ext`, `name_3.ext`… for a taken name, shortened to at most `limit` bytes.
    static func numbered(
        _ name: FilePath.Component, _ number: Int, limit: Int = FilePath.Component.longest
    ) -> FilePath.Component {
        number > 1 ? name.fitting(tail: "_\(number)", limit: limit) : name
    }
}
