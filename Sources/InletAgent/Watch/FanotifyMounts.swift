package import InletCore
internal import InletLinux
internal import SystemPackage

/// The fanotify marks of a root: the marked file systems, and their records that concern the root.
struct FanotifyMounts: ~Copyable {
    /// A change and the folder that it happened in; a loss of records, or of the root, appears as inotify would report
    /// it.
    typealias News = (record: InotifyRecord, directory: FilePath)

    private let root: FilePath
    private let ignore: IgnoreList
    /// The folder that the root's path led to.
    private let place: FolderIdentity
    private let fanotify: Fanotify
    /// By number: where each mount begins, relative to the root, and its file system; nil is not marked.
    private var mounts: [UInt64: (directory: FilePath, fileSystem: UInt64?)] = [:]
    private var places = HandleCache()
    /// Distinct from inotify's, which begin at 1.
    private var lastCookie: UInt32 = 1 << 31
    /// Descriptors for the records that are read together, closed after them: folders, and a mount by its number, with
    /// its beginning according to the kernel.
    private var turn: FolderCache
    private var reader: HandleReader?
    private var opened: (number: UInt64, beginning: FilePath)?
    /// Folders that the last listing found on marked file systems.
    var directories = 0

    init(root: FilePath, ignore: IgnoreList) throws(SystemError) {
        fanotify = try Fanotify()
        (self.root, self.ignore, place, turn) = (root, ignore, FolderIdentity(root), FolderCache(root))
    }

    // MARK: - Marks

    /// The decision about a folder.
    enum MarkStatus: Equatable {
        case marked
        case unmarked
        /// The first folder of its mount, which is marked from now on.
        case newlyMarked
        /// The first folder of a mount that cannot be marked.
        case refused(String)
        /// The first folder of a mount that other machines change unseen; a mark would not help.
        case remote
    }

    /// Whether changes in `directory` (relative to the root) are reported; marks its file system if needed. Throws when
    /// the folder is gone.
    mutating func coverage(of directory: FilePath, _ folder: Folder) throws(SystemError) -> MarkStatus {
        let number = try folder.itself { (path) throws(SystemError) in try MountTable.number(of: path) }
        // Each listing asks again about a mount's first folder: another mount may have its number by now.
        if let mount = mounts[number], mount.directory != directory, directory.isWithin(mount.directory) {
            return mount.fileSystem == nil ? .unmarked : .marked
        }
        let known = mounts.removeValue(forKey: number)
        let coverage = try judge(directory, folder, number)
        guard let known, known.directory == directory else { return coverage }
        // Logged already.
        return switch coverage {
        case .newlyMarked: known.fileSystem == nil ? .newlyMarked : .marked
        case .refused, .remote: known.fileSystem == nil ? .unmarked : coverage
        default: coverage
        }
    }

    private mutating func judge(
        _ directory: FilePath, _ folder: Folder, _ number: UInt64
    ) throws(SystemError) -> MarkStatus {
        mounts[number] = (directory, nil)
        do throws(SystemError) {
            let kind = try folder.itself { (path) throws(SystemError) in try FileSystemKind.of(path) }
            if kind.isNetwork { return .remote }
            if let refusal = refusal(of: kind) { return .refused(refusal) }
            let fileSystem = try folder.itself { (path) throws(SystemError) in try Self.probe(path) }
            if try isTaken(fileSystem) { return .refused("another mount of the same file system is marked") }
            try folder.itself { (path) throws(SystemError) in try fanotify.mark(path) }
            mounts[number] = (directory, fileSystem)
            return .newlyMarked
        } catch {
            if error.isMissing { throw error }
            return .refused("\(error)")
        }
    }

    /// The file system's number; throws when its folders have no handles.
    private static func probe(_ path: FilePath) throws(SystemError) -> UInt64 {
        let reader = try HandleReader(path)
        let handle = try reader.ownHandle()
        guard let found = try reader.find(handle),
            FolderIdentity(found.identity) == FolderIdentity(try reader.own().identity)
        else {
            throw SystemError(call: "open_by_handle_at", path: path, code: .staleNFSFileHandle)
        }
        return handle.fileSystem
    }

    private func refusal(of kind: FileSystemKind) -> String? {
        // Their handles take room on the disk, and are refused once the kernel has forgotten the folder.
        ["vfat", "exfat"].contains(kind.name) ? "\(kind.name) has no stable file handles" : nil
    }

    /// The folders at which marked mounts begin.
    var beginnings: [FilePath] { mounts.values.compactMap { $0.fileSystem == nil ? nil : $0.directory } }

    /// Whether the file system is marked through another mount that is still there.
    private mutating func isTaken(_ fileSystem: UInt64) throws(SystemError) -> Bool {
        for (number, mount) in mounts where mount.fileSystem == fileSystem {
            if try isThere(number, at: root.pushing(mount.directory)) { return true }
            mounts[number] = nil
        }
        return false
    }

    private func isThere(_ number: UInt64, at beginning: FilePath) throws(SystemError) -> Bool {
        do throws(SystemError) {
            return try MountTable.number(of: beginning) == number
        } catch  where error.isMissing {
            return false
        }
    }

    /// Something was mounted or unmounted: a known folder may be covered now, and another one visible.
    mutating func forgetPlaces() { places.forgetAll() }

    // MARK: - Records

    var number: CInt { fanotify.number }

    var isDrained: Bool {
        get throws(SystemError) { try fanotify.isDrained }
    }

    /// The meaning of the waiting records for the root. Blocks on the disk for unknown folders.
    mutating func read() throws(SystemError) -> [News] {
        var news: [News] = []
        var (isLost, mayHaveMoved) = (false, false)
        defer {
            turn.close()
            reader = nil
            opened = nil
        }
        for record in try fanotify.read() {
            if record.isOverflow || record.place == nil {
                isLost = true
                continue
            }
            lastCookie &+= 1
            do throws(SystemError) {
                let found = try translate(record)
                if record.mask.contains(.isDirectory), record.isMove {
                    if found.isEmpty { mayHaveMoved = true } else { places.forgetAll() }
                }
                news += found
            } catch {
                // Its subject is unknown now: everything is listed.
                isLost = true
            }
        }
        if isLost { news.append((InotifyRecord(watch: -1, mask: .overflow), "")) }
        // Renaming a folder above the root removes the root.
        if mayHaveMoved, !place.isThere || FolderIdentity(root) != place {
            news.append((InotifyRecord(watch: -1, mask: .selfMoved), ""))
        }
        return news
    }

    private mutating func translate(_ record: FanotifyRecord) throws(SystemError) -> [News] {
        var news: [News] = []
        for (place, part) in record.parts(cookie: lastCookie) {
            guard let folder = try self.place(of: place.directory),
                let (directory, name) = Self.subject(folder, place.name)
            else { continue }
            var part = part
            part.nameBytes = name[...]
            let isLeft = part.mask.contains(.movedFrom) && part.cookie != 0
            part.mask = Self.meaning(part.mask) {
                // An unreadable name counts as present: intake looks itself.
                FileLook.mayBeThere(RootedPath(root, directory.pushing(FilePath(bytes: name))))
            }
            // A new file of that name hides that another one left it.
            if isLeft, !part.mask.contains(.movedFrom) {
                var half = part
                half.mask = .movedFrom
                news.append((half, directory))
            }
            news.append((part, directory))
        }
        return news
    }

    /// As for `HandleCache`.
    private mutating func place(of handle: FileHandle) throws(SystemError) -> FilePath? {
        if let known = places[handle] { return known }
        guard let (number, mount) = mounts.first(where: { $0.value.fileSystem == handle.fileSystem }) else {
            return nil
        }
        if opened?.number != number {
            let beginning = root.pushing(mount.directory)
            // A file system may be unmounted or covered here, and continue elsewhere.
            guard try isThere(number, at: beginning) else { return nil }
            let reader = try HandleReader(beginning)
            opened = (number, try reader.own().path)
            self.reader = consume reader
        }
        guard let beginning = opened?.beginning, let found = try reader?.find(handle),
            let below = HandleReader.path(of: found.path, below: beginning)
        else {
            places.remember(handle, nil)
            return nil
        }
        let folder = mount.directory.pushing(below)
        // It may have been moved just now, which the next record reports, or be outside the mount.
        guard case .directory(let there) = try turn.look(folder),
            FolderIdentity(there) == FolderIdentity(found.identity)
        else { return nil }
        let place = !folder.isEmpty && ignore.ignores(folder, isDirectory: true) ? nil : folder
        places.remember(handle, place)
        return place
    }
}

extension FanotifyRecord {
    fileprivate var isMove: Bool { target != nil || !mask.isDisjoint(with: [.movedFrom, .movedTo]) }
}

/// The paths of folders that the kernel names by handle, as far as they are known. Bounded: a busy file system has more
/// folders than the root.
struct HandleCache: Sendable {
    /// Relative to the root; nil for a folder that is outside the root, to be ignored, or gone.
    private var known: [FileHandle: FilePath?] = [:]
    private let limit: Int

    init(limit: Int = 16_384) { self.limit = limit }

    var count: Int { known.count }

    subscript(handle: FileHandle) -> FilePath?? { known[handle] }

    mutating func remember(_ handle: FileHandle, _ place: FilePath?) {
        if known.count >= limit { known.removeAll(keepingCapacity: true) }
        known[handle] = place
    }

    /// A folder moved elsewhere, with everything below it.
    mutating func forgetAll() { known.removeAll(keepingCapacity: true) }
}

/// The meaning of a marked file system's records for a root, in inotify's terms.
extension FanotifyMounts {
    /// The kernel merges records about one name into the first: created, deleted and created again is one record, which
    /// may come before earlier ones. So the disk decides whether a name is gone.
    ///
    /// - Parameter isThere: whether the name exists now; called only for names reported as gone.
    /// - Returns: the bits to act on. A new folder needs no extra look: changes in it are reported.
    static func meaning(_ mask: InotifyRecord.Mask, isThere: () -> Bool) -> InotifyRecord.Mask {
        let gone = mask.intersection([.deleted, .movedFrom])
        let isDirectory = mask.contains(.isDirectory)
        guard !gone.isEmpty else { return isDirectory ? mask.subtracting(.created) : mask }
        guard isThere() else { return gone.union(mask.intersection(.isDirectory)) }
        // For a folder: everything remembered below it is dropped, and its present content is listed.
        return isDirectory ? gone.union([.movedTo, .isDirectory]) : .closedAfterWriting
    }

    /// The folder and the name of a record; nil for a record about the root itself. `.` is the folder itself.
    static func subject(_ directory: FilePath, _ name: [UInt8]) -> (directory: FilePath, name: [UInt8])? {
        guard name == [UInt8(ascii: ".")] else { return (directory, name) }
        guard let own = directory.lastComponent else { return nil }
        return (directory.removingLastComponent(), FilePath(root: nil, [own]).bytes)
    }
}

extension RootCheck {
    /// Why a root with `mode: fanotify` would be watched by inotify; nil when it would not. Tries it as the present
    /// user. A missing root has only the objections that apply to all.
    package static func fanotifyRefusal(_ watch: WatchSettings) -> String? {
        guard watch.recursive else { return oneFolder }
        do throws(SystemError) {
            var marks = try FanotifyMounts(root: watch.path, ignore: IgnoreList())
            // Faults of the folder itself are reported by the check of folders.
            guard FileLook.folder(at: watch.path) != nil, let folder = try? Folder(watch.path) else { return nil }
            return switch try marks.coverage(of: "", folder) {
            case .refused(let reason): reason
            case .remote: "other machines' changes are not reported"
            case .marked, .newlyMarked, .unmarked: nil
            }
        } catch {
            return "\(error)"
        }
    }

    static let oneFolder = "recursive: false needs one watch only"
}
