internal import InletCore
internal import InletJournal
internal import InletLinux
internal import SystemPackage

/// Lists a tree a little at a time, so that a listing of millions never delays events: each directory by name, a huge
/// one in several runs of names. Memory grows with the depth and the number of waiting sub-directories, not with the
/// files.
///
/// Each folder is watched first, then listed: a file created in between appears in one of the two.
struct Listing: ~Copyable {
    enum Step: Sendable {
        case file(FilePath)
        /// A symlink, FIFO, socket or device.
        case irregular(FilePath)
        /// A directory is watched, and its names come next.
        case entered(FilePath)
        /// A directory has gone since its name was seen.
        case gone(FilePath)
        /// It is on a file system of the kernel's own, with no files to deliver. Reported once.
        case passedOver(FilePath, SystemError)
        /// It cannot be watched, or listed (to its end).
        case trouble(FilePath, SystemError)
        /// So many names of a directory were read; they are handed out later, in order.
        case reading(Int)
        case finished
    }

    /// Names to read between two looks at the events.
    private static let mostRead = 1024
    /// Mounts that report their own changes.
    private static let mostPassedOver = 1000

    private let isRecursive: Bool
    private let pause: Duration?
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
    private var turn: FolderCache
    /// The device of the root, and the known devices below it that are the kernel's own file systems.
    private var device: UInt64?
    private var kinds: [UInt64: String?] = [:]
    private var passedOver: Set<FilePath> = []
    /// Names that are ignored, with everything below such a folder.
    private(set) var ignored = (files: 0, folders: 0)
    /// The first of them, up to `mostNamed`.
    private(set) var named: [(path: FilePath, isFolder: Bool)] = []
    var mostNamed = 0

    /// Found files without room in the settler: the listing waits for them.
    var held: [FilePath] = []
    /// Folders that could not be listed since the last full listing began.
    var unread = 0
    /// Whether a full listing has ended: before that the content is unknown.
    private(set) var hasEnded = false
    /// Whether another full listing was requested.
    private(set) var isAsked = false
    /// When the last full one began.
    private(set) var begunAt: ContinuousClock.Instant?
    /// The time of the next regular one.
    private(set) var next: ContinuousClock.Instant?

    /// - Parameters:
    ///   - pause: between two full listings; nil makes one only on request.
    ///   - most: names that are held at once.
    init(root: FilePath, isRecursive: Bool, pause: Duration? = nil, most: Int = NameRun.most) {
        names = NameRun(most: most)
        turn = FolderCache(root)
        (self.isRecursive, self.pause) = (isRecursive, pause)
    }

    // MARK: - The whole root

    /// Requests a full listing after the running one: one that restarts again and again would never end.
    mutating func ask() {
        isAsked = true
        next = nil
    }

    /// A full listing begins.
    mutating func begin() {
        isAsked = false
        begunAt = .now
        unread = 0
        forgetKinds()
        add("")
        next = pause.map { .now.advanced(by: $0 * Double.random(in: 0.75...1.25)) }
    }

    /// - Returns: whether it is the first one.
    mutating func ended() -> Bool {
        defer { hasEnded = true }
        return !hasEnded
    }

    /// Whether every found file has its place.
    var isDone: Bool { isIdle && held.isEmpty }
    /// Whether a requested one may begin.
    var mayBegin: Bool { isAsked && isDone }
    /// Whether the content is known: not before the first listing has ended, nor during another.
    var isComplete: Bool { hasEnded && isDone && !isAsked }

    // MARK: - Folders

    /// Whether it was stopped, or has said that it is finished.
    var isIdle: Bool { !isUnderWay }

    /// Lists `directory` (relative; empty is the root) and everything below it, after the waiting ones.
    mutating func add(_ directory: FilePath) {
        // Another folder may have taken the place of the open one.
        rest()
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

    /// The turn of the loop is over: folders are closed.
    mutating func rest() { turn.close() }

    /// The next finding, without watching. Blocks on the disk.
    mutating func next(_ ignore: IgnoreList) -> Step {
        var nobody: Void = ()
        return next(ignore, &nobody) { (_, _, _) throws(SystemError) in }
    }

    /// The next finding. Blocks on the disk.
    ///
    /// - Parameter follow: watches the folder before it is listed.
    mutating func next<Watch: ~Copyable>(
        _ ignore: IgnoreList, _ watch: inout Watch,
        follow: (inout Watch, FilePath, Folder) throws(SystemError) -> Void
    ) -> Step {
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
                current = directory
                do throws(SystemError) {
                    let folder = try open()
                    try follow(&watch, directory, folder)
                    stream = try folder.list()
                    return .entered(directory)
                } catch {
                    if let step = failed(directory, error) { return step }
                }
            } else {
                isUnderWay = false
                rest()
                return .finished
            }
        }
    }

    /// Sub-directories of the listed one come before the waiting ones, in order of their names.
    private mutating func nextDirectory() -> FilePath? {
        waiting += folders.reversed()
        folders = []
        return waiting.popLast()
    }

    /// Reads on in the current directory. - Returns: nil when names are ready, or none are left.
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

    private mutating func failed(_ directory: FilePath, _ error: SystemError) -> Step? {
        if error.isMissing { return .gone(directory) }
        guard error.isPseudo else { return .trouble(directory, error) }
        guard passedOver.count < Self.mostPassedOver, passedOver.insert(directory).inserted else { return nil }
        return .passedOver(directory, error)
    }

    /// The current directory.
    private mutating func open() throws(SystemError) -> Folder {
        let folder = try turn.folder(current)
        if let kind = try pseudo(folder) {
            throw SystemError(call: "open", path: folder.path, code: .notSupported, refusal: .pseudo(kind))
        }
        return folder
    }

    /// The folder's file system, where it is the kernel's own.
    private mutating func pseudo(_ folder: Folder) throws(SystemError) -> String? {
        let now = try folder.identity().device
        if device == nil { device = try turn.folder("").identity().device }
        if now == device { return nil }
        if let known = kinds[now] { return known }
        let kind = folder.kind.flatMap { $0.isPseudo ? $0.name : nil }
        kinds[now] = .some(kind)
        return kind
    }

    /// Something was mounted or unmounted: device numbers may have other meanings now.
    mutating func forgetKinds() { kinds = [:] }

    private mutating func found(_ directory: FilePath) {
        if isWaiting.insert(directory).inserted { folders.append(directory) }
    }

    private mutating func consider(_ entry: DirectoryEntry, _ ignore: IgnoreList) -> Step? {
        let path = current.appending(entry.name)
        switch entry.kind {
        case .directory:
            guard isRecursive else { return nil }
            guard ignore.ignoresName(path, isDirectory: true) else {
                found(path)
                return nil
            }
            ignored.folders += 1
            if named.count < mostNamed { named.append((path, true)) }
            return nil
        case .regular:
            guard ignore.ignoresName(path, isDirectory: false) else { return .file(path) }
            ignored.files += 1
            if named.count < mostNamed { named.append((path, false)) }
            return nil
        case .symlink, .other: return ignore.ignoresName(path, isDirectory: false) ? nil : .irregular(path)
        case .unknown: return nil
        }
    }
}

/// The findings of a listing, from the directory to the journal.
///
/// A complete file goes straight to the journal. The settler keeps only files that must be checked again. The journal
/// takes one batch while the next is checked.
extension RootLoop {
    /// Entries listed between two looks at the events.
    private static let listingBudget = 4000
    /// Files per transaction: few enough for the work behind it, many enough for a disk that syncs slowly.
    private static let batch = 512

    mutating func startListing() {
        stage.checker.unread = 0
        stage.awaited = AwaitedFiles()
        watch.listingBegins()
        listing.begin()
    }

    private mutating func endListing() {
        watch.listingEnded()
        guard listing.ended() else { return }
        log.emit(
            .watchAdded(
                root: settings.path, directories: watch.directories,
                writerCheck: RootCheck.writerCheck(settings.path)))
    }

    /// A folder that cannot be listed now. An existing one is listed again until it works; logged once.
    mutating func tell(_ directory: FilePath, _ error: SystemError) {
        if !error.isMissing {
            listing.unread += 1
            guard settler.stuckFolders.leave(folder: directory, "\(error)", at: .now) else { return }
        }
        log.emit(.fileError(path: settings.path.pushing(directory), reason: "\(error)"))
    }

    mutating func advanceListing() async throws(SystemError) {
        guard !listing.isDone, trackHeld() else { return }
        defer { listing.rest() }
        hasVolumeNews = true
        var budget = Self.listingBudget
        guard shared.room.limit.isOff else { return trackListed(&budget) }
        let (admission, tolerance) = (stage.admission, stage.tolerance)
        var looked = stage.checker.look(listed(&budget))
        var ready: [FileAdmission] = []
        var last: [AdmissionResult] = []
        var failure: SystemError?
        while !looked.isEmpty || !ready.isEmpty {
            let (arrivals, files) = (looked.arrivals, ready)
            // In this order: the question to the journal must not wait for the write.
            async let known = admission.recall(arrivals, tolerance: tolerance)
            async let results = admission.commit(files, .listed)
            await Task.yield()
            await apply(last)
            // Meanwhile, the journal answers.
            let ahead = stage.checker.look(listed(&budget))
            let seen = await known
            // Events show which files of the listing were renamed.
            do throws(SystemError) {
                for event in try watch.read() { apply(event) }
            } catch {
                failure = failure ?? error
            }
            if failure != nil { budget = 0 }
            ready = await judge(looked, seen)
            looked = ahead
            last = await results
        }
        await apply(last)
        if let failure { throw failure }
    }

    /// Separates complete files that need no more than their names, which it returns, from the rest. Files that must be
    /// read are admitted before the next events are read: files in flight must not be renamed or removed meanwhile.
    private mutating func judge(
        _ looked: FileChecker.Looks, _ known: Result<[KnownFile], Refusal>
    ) async -> [FileAdmission] {
        if losesPassing() { return [] }
        let considered = await stage.consider(looked, known)
        if losesPassing() { return [] }
        var complete: [Candidate] = []
        for (path, verdict) in considered {
            guard case .look(let look) = verdict else { continue }
            let settle = settle(for: path)
            let isForeign = watch.isForeign(path)
            if let identity = settler.complete(look, settle: settle, isForeign: isForeign, at: .now, wall: .now) {
                complete.append(stage.candidate(path, identity))
            } else if !settler.discover(path, settle: settle, at: .now) {
                listing.held.append(path)
            } else if case .settled(let identity) = settler.judge(
                path, look, isForeign: isForeign, at: .now, wall: .now)
            {
                complete.append(stage.candidate(path, identity))
            }
        }
        let (named, others) = stage.admission.split(complete, .listed)
        if !others.isEmpty { await apply(stage.admission.admit(others: others, .listed, stage.hashing)) }
        return named
    }

    /// The next unknown files of the listing; none when the turn is over.
    private mutating func listed(_ budget: inout Int) -> [FilePath] {
        var paths: [FilePath] = []
        while budget > 0, paths.count < Self.batch, listing.held.isEmpty, !mailbox.isStopped,
            let path = nextListed(&budget)
        {
            if !settler.isTracked(path), !isMarker(path) { paths.append(path) }
        }
        return paths
    }

    /// Listed files wait their turn: there is not room for all.
    private mutating func trackListed(_ budget: inout Int) {
        while budget > 0, let path = nextListed(&budget) {
            if !take(path) { return }
        }
    }

    /// The next file of the listing, complete or not.
    private mutating func nextListed(_ budget: inout Int) -> FilePath? {
        while budget > 0, !listing.isIdle {
            budget -= 1
            let step = listing.next(ignore, &watch) { (watch, directory, folder) throws(SystemError) in
                try watch.follow(directory, folder)
            }
            switch step {
            case .file(let path): return path
            case .irregular(let path): stage.checker.noteIrregular(path)
            case .entered(let directory): settler.stuckFolders.entered(directory)
            case .gone(let directory): if directory.isEmpty { loseRoot() }
            case .passedOver(let directory, let error):
                log.emit(.fileIgnored(path: settings.path.pushing(directory), reason: "\(error)"))
            case .trouble(let directory, let error): tell(directory, error)
            case .reading(let names): budget -= names
            case .finished: endListing()
            }
        }
        return nil
    }

    /// Files that had no room before. False means there is still none.
    private mutating func trackHeld() -> Bool {
        while let path = listing.held.last {
            if !discover(path) { return false }
            listing.held.removeLast()
        }
        return true
    }

    /// A file of a listing. False means no room: the listing waits until files have settled, so that memory stays
    /// bounded.
    mutating func take(_ path: FilePath) -> Bool {
        if isMarker(path) || discover(path) { return true }
        listing.held.append(path)
        return false
    }

    /// Markers are found with their files.
    private mutating func isMarker(_ path: FilePath) -> Bool {
        guard let unit = routes.unitMarked(by: path) else { return routes.fileMarked(by: path) != nil }
        units.markerSeen(in: unit, at: .now)
        return true
    }
}
