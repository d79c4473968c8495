internal import InletCore
internal import InletLinux
internal import SystemPackage

/// Lists a tree a little at a time, so that a scan of millions never holds up the events: each directory by name, a huge one
/// in several runs of names. Memory grows with the depth and the number of sub-directories that wait, not with the files.
struct TreeScan: ~Copyable {
    enum Step: Sendable {
        case file(FilePath)
        /// A directory is about to be listed: watch it first.
        case enter(FilePath)
        /// A symlink, FIFO, socket or device.
        case irregular(FilePath)
        case trouble(FilePath, SystemError)
        /// So many names were read of a directory, which come in their order later.
        case reading(Int)
        case finished
    }

    /// Names that are read between two looks at the events.
    private static let mostRead = 1024

    private let isRecursive: Bool
    private var waiting: [FilePath] = []
    private var isWaiting: Set<FilePath> = []
    private var current: FilePath = ""
    private var stream: DirectoryStream?
    /// Of the current directory.
    private var names: NameRun
    /// Its folders, which are listed by name as well.
    private var folders: [FilePath] = []
    private var isUnderWay = false
    private var failure: SystemError?
    private var turn: FolderTurn
    /// The device of the root, and those of other file systems below it that are the kernel's own, as far as they were seen.
    private var device: UInt64?
    private var kinds: [UInt64: String?] = [:]
    /// What was entered, until it is listed.
    private var entered: Folder?
    /// What was passed over for its name, with all that is below such a folder.
    private(set) var ignored = (files: 0, folders: 0)

    /// - Parameter most: names that are held at once.
    init(root: FilePath, isRecursive: Bool, most: Int = NameRun.most) {
        names = NameRun(most: most)
        turn = FolderTurn(root)
        self.isRecursive = isRecursive
    }

    /// Whether it was stopped, or has said that it is finished.
    var isIdle: Bool { !isUnderWay }

    /// Lists `directory` (relative; empty = the root), and what is below it, after what waits already.
    mutating func add(_ directory: FilePath) {
        isUnderWay = true
        if isWaiting.insert(directory).inserted { waiting.append(directory) }
    }

    mutating func stop() {
        waiting = []
        isWaiting = []
        stream = nil
        failure = nil
        names.empty()
        folders = []
        isUnderWay = false
        rest()
    }

    /// No more is asked for in this turn of the loop: folders are let go of.
    mutating func rest() {
        turn.close()
        entered = nil
    }

    /// The next thing found. Blocks on the disk.
    mutating func next(_ ignore: IgnoreList) -> Step {
        while true {
            if let entry = names.next() {
                if let found = consider(entry, ignore) { return found }
            } else if stream != nil {
                if let read = read() { return read }
            } else if let error = failure {
                failure = nil
                return .trouble(current, error)
            } else if let directory = nextDirectory() {
                isWaiting.remove(directory)
                return enter(directory)
            } else {
                isUnderWay = false
                rest()
                return .finished
            }
        }
    }

    /// Those of the directory that was listed come before what waits already, the first by name first.
    private mutating func nextDirectory() -> FilePath? {
        waiting += folders.reversed()
        folders = []
        return waiting.popLast()
    }

    /// Reads on in the current directory. - Returns: nil when names are ready to be handed out, or there are none.
    private mutating func read() -> Step? {
        do throws(SystemError) {
            if try stream?.next(Self.mostRead, to: &names) == false { stream = nil }
        } catch {
            stream = nil
            failure = error
        }
        if stream != nil, !names.isFull { return .reading(Self.mostRead) }
        names.sort()
        return nil
    }

    private mutating func enter(_ directory: FilePath) -> Step {
        (current, entered) = (directory, nil)
        return .enter(directory)
    }

    /// The directory that was entered: it is the one that is listed. Blocks.
    mutating func folder() throws(SystemError) -> Folder {
        if let entered { return entered }
        let folder = try turn.folder(current)
        if let kind = try pseudo(folder) {
            throw SystemError(
                call: "open", path: folder.path, code: .notSupported, refusal: .pseudo(kind))
        }
        entered = folder
        return folder
    }

    /// The file system that the folder is on, where that is none for files.
    private mutating func pseudo(_ folder: Folder) throws(SystemError) -> String? {
        let now = try folder.identity().device
        if device == nil { device = try turn.folder("").identity().device }
        if now == device { return nil }
        if let known = kinds[now] { return known }
        let kind = folder.kind.flatMap { $0.isPseudo ? $0.name : nil }
        kinds[now] = .some(kind)
        return kind
    }

    /// Something was mounted or unmounted: numbers of devices may be others' now.
    mutating func forgetKinds() { kinds = [:] }

    /// Opens the directory that was entered, once it is watched.
    mutating func open() -> Step? {
        defer { entered = nil }
        do throws(SystemError) {
            stream = try folder().list()
            return nil
        } catch {
            return error.isMissing ? nil : .trouble(current, error)
        }
    }

    private mutating func found(_ directory: FilePath) {
        if isWaiting.insert(directory).inserted { folders.append(directory) }
    }

    private mutating func consider(_ entry: DirectoryEntry, _ ignore: IgnoreList) -> Step? {
        let path = current.appending(entry.name)
        switch entry.kind {
        case .directory:
            guard isRecursive else { return nil }
            if ignore.ignoresName(path, isDirectory: true) { ignored.folders += 1 } else { found(path) }
            return nil
        case .regular:
            guard ignore.ignoresName(path, isDirectory: false) else { return .file(path) }
            ignored.files += 1
            return nil
        case .symlink, .other: return ignore.ignoresName(path, isDirectory: false) ? nil : .irregular(path)
        case .unknown: return nil
        }
    }
}
