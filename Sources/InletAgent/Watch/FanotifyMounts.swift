package import InletCore
internal import InletLinux
internal import SystemPackage

/// What fanotify reports of a root: the file systems that are marked, and their records as far as they concern the root.
struct FanotifyMounts: ~Copyable {
    /// What happened, and in which folder of the root; a loss of records, or of the root, comes as inotify would say it.
    typealias News = (record: InotifyRecord, directory: FilePath)

    private let root: FilePath
    private let ignore: IgnoreList
    /// The folder that the root's path led to.
    private let place: FolderIdentity
    private let fanotify: Fanotify
    /// By their numbers: where each begins, relative to the root, and its file system; nil = not marked.
    private var mounts: [UInt64: (directory: FilePath, fileSystem: UInt64?)] = [:]
    private var places = HandleCache()
    /// Apart from inotify's, which begin at 1.
    private var lastCookie: UInt32 = 1 << 31
    /// What is opened for the records that are read together, and closed after them: folders, and a mount by its number, with
    /// where the kernel says that it begins.
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

    /// What is decided of a folder.
    enum MarkStatus: Equatable {
        case marked
        case unmarked
        /// It is the first of its mount, which is marked from now on.
        case newlyMarked
        /// It is the first of its mount, which cannot be marked.
        case refused(String)
        /// It is the first of its mount, of which other machines tell nothing; no mark would help.
        case remote
    }

    /// Whether what happens in `directory` (relative to the root) is reported; marks its file system if need be. Throws when
    /// the folder is not there.
    mutating func coverage(of directory: FilePath, _ folder: Folder) throws(SystemError) -> MarkStatus {
        let number = try folder.itself { (path) throws(SystemError) in try MountTable.number(of: path) }
        // The first folder of a mount is asked anew by each listing: another mount may have the number by now.
        if let mount = mounts[number], mount.directory != directory, directory.isWithin(mount.directory) {
            return mount.fileSystem == nil ? .unmarked : .marked
        }
        let known = mounts.removeValue(forKey: number)
        let coverage = try judge(directory, folder, number)
        guard let known, known.directory == directory else { return coverage }
        // Said already.
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

    /// The file system's number; throws when its folders cannot be found by handle.
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
        // Their handles hold places on the disk, and are refused once the kernel has forgotten the folder.
        ["vfat", "exfat"].contains(kind.name) ? "\(kind.name) has no stable file handles" : nil
    }

    /// The folders at which mounts that are marked begin.
    var beginnings: [FilePath] { mounts.values.compactMap { $0.fileSystem == nil ? nil : $0.directory } }

    /// Whether that file system is marked by way of another mount that is still there.
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

    /// Something was mounted or unmounted: a folder that was found may be covered now, and another one seen.
    mutating func forgetPlaces() { places.forgetAll() }

    // MARK: - Records

    var number: CInt { fanotify.number }

    var isDrained: Bool {
        get throws(SystemError) { try fanotify.isDrained }
    }

    /// What the records that wait mean for the root. Blocks on the disk for folders that are not known yet.
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
                // What it is about cannot be said now: everything is looked at.
                isLost = true
            }
        }
        if isLost { news.append((InotifyRecord(watch: -1, mask: .overflow), "")) }
        // Renaming a folder above the root takes it away.
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
                // What cannot be looked at is told as there: intake looks itself.
                FileLook.mayBeThere(RootedPath(root, directory.pushing(FilePath(bytes: name))))
            }
            // A file that has that name again by now hides that another one left it.
            if isLeft, !part.mask.contains(.movedFrom) {
                var half = part
                half.mask = .movedFrom
                news.append((half, directory))
            }
            news.append((part, directory))
        }
        return news
    }

    /// As `HandleCache` has it.
    private mutating func place(of handle: FileHandle) throws(SystemError) -> FilePath? {
        if let known = places[handle] { return known }
        guard let (number, mount) = mounts.first(where: { $0.value.fileSystem == handle.fileSystem }) else {
            return nil
        }
        if opened?.number != number {
            let beginning = root.pushing(mount.directory)
            // A file system may be unmounted here, or covered, and go on elsewhere.
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
        // It may have been moved just now, which is told next, or lie where the mount does not reach.
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

/// Where folders are that the kernel names by handle, as far as that was asked already. What is remembered is bounded: a busy
/// file system has more folders than the root.
struct HandleCache: Sendable {
    /// Relative to the root; nil for one that is not in the root, to be left alone, or gone.
    private var known: [FileHandle: FilePath?] = [:]
    private let limit: Int

    init(limit: Int = 16_384) { self.limit = limit }

    var count: Int { known.count }

    subscript(handle: FileHandle) -> FilePath?? { known[handle] }

    mutating func remember(_ handle: FileHandle, _ place: FilePath?) {
        if known.count >= limit { known.removeAll(keepingCapacity: true) }
        known[handle] = place
    }

    /// A folder went elsewhere, and everything below it with it.
    mutating func forgetAll() { known.removeAll(keepingCapacity: true) }
}

/// What the records of a marked file system mean for a root, in inotify's words.
extension FanotifyMounts {
    /// The kernel puts several records about one name into the place of the first: what was created, deleted and created
    /// again is one record, and may come before others that were earlier. So the disk decides what has gone.
    ///
    /// - Parameter isThere: whether something has that name now; only asked of what is said to have gone.
    /// - Returns: the bits that are to be acted on. A new folder needs no look of its own: what happens in it is told.
    static func meaning(_ mask: InotifyRecord.Mask, isThere: () -> Bool) -> InotifyRecord.Mask {
        let gone = mask.intersection([.deleted, .movedFrom])
        let isDirectory = mask.contains(.isDirectory)
        guard !gone.isEmpty else { return isDirectory ? mask.subtracting(.created) : mask }
        guard isThere() else { return gone.union(mask.intersection(.isDirectory)) }
        // Of a folder what was below it is forgotten, and what is below it now is listed.
        return isDirectory ? gone.union([.movedTo, .isDirectory]) : .closedAfterWriting
    }

    /// The folder and the name that a record is about; nil for one that is about the root itself. `.` is the folder itself.
    static func subject(_ directory: FilePath, _ name: [UInt8]) -> (directory: FilePath, name: [UInt8])? {
        guard name == [UInt8(ascii: ".")] else { return (directory, name) }
        guard let own = directory.lastComponent else { return nil }
        return (directory.removingLastComponent(), FilePath(root: nil, [own]).bytes)
    }
}

extension RootCheck {
    /// Why a root that asks for `mode: fanotify` would be watched by inotify; nil when it would not. It is tried, as by this user
    /// now. A root that is not there has nothing against it but what all have.
    package static func fanotifyRefusal(_ watch: WatchSettings) -> String? {
        guard watch.recursive else { return oneFolder }
        do throws(SystemError) {
            var marks = try FanotifyMounts(root: watch.path, ignore: IgnoreList())
            // What is wrong with the folder itself is said by the check of folders.
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
