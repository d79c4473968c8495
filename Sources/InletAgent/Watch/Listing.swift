internal import InletCore
internal import InletJournal
internal import InletLinux
internal import SystemPackage

/// Lists a tree a little at a time, so that a listing of millions never holds up the events: each directory by name, a huge one
/// in several runs of names. Memory grows with the depth and the number of sub-directories that wait, not with the files.
///
/// Each folder is watched first, then listed: what is created in between shows up in one of the two.
struct Listing: ~Copyable {
    enum Step: Sendable {
        case file(FilePath)
        /// A symlink, FIFO, socket or device.
        case irregular(FilePath)
        /// A directory is watched, and its names come next.
        case entered(FilePath)
        /// A directory has gone since its name was seen.
        case gone(FilePath)
        /// It is on a file system of the kernel's own, whose files are none to deliver. Told once.
        case passedOver(FilePath, SystemError)
        /// It cannot be watched, or listed (to its end).
        case trouble(FilePath, SystemError)
        /// So many names were read of a directory, which come in their order later.
        case reading(Int)
        case finished
    }

    /// Names that are read between two looks at the events.
    private static let mostRead = 1024
    /// Mounts that are told of by themselves.
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
    /// The device of the root, and those of other file systems below it that are the kernel's own, as far as they were seen.
    private var device: UInt64?
    private var kinds: [UInt64: String?] = [:]
    private var passedOver: Set<FilePath> = []
    /// What is ignored for its name, with all that is below such a folder.
    private(set) var ignored = (files: 0, folders: 0)

    /// Files that were found, and for which the settler has no room: the listing waits for them.
    var held: [FilePath] = []
    /// Folders that could not be listed since the last listing of the whole root began.
    var unread = 0
    /// Whether one of the whole root has ended: before that nobody knows what is there.
    private(set) var hasEnded = false
    /// Whether another one of the whole root was asked for.
    private(set) var isAsked = false
    /// When that is asked for by itself.
    private(set) var next: ContinuousClock.Instant?

    /// - Parameters:
    ///   - pause: between two listings of the whole root; nil = one is made when it is needed.
    ///   - most: names that are held at once.
    init(root: FilePath, isRecursive: Bool, pause: Duration? = nil, most: Int = NameRun.most) {
        names = NameRun(most: most)
        turn = FolderCache(root)
        (self.isRecursive, self.pause) = (isRecursive, pause)
    }

    // MARK: - The whole root

    /// Has the whole root listed, after the listing that runs: one that starts over again and again would never see the end.
    mutating func ask() {
        isAsked = true
        next = nil
    }

    /// A listing of the whole root begins.
    mutating func begin() {
        isAsked = false
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

    /// Whether all that was found until now has its place.
    var isDone: Bool { isIdle && held.isEmpty }
    /// Whether one that was asked for may begin.
    var mayBegin: Bool { isAsked && isDone }
    /// Whether it is known which files are there: not before the first listing has ended, nor while another runs.
    var isComplete: Bool { hasEnded && isDone && !isAsked }

    // MARK: - Folders

    /// Whether it was stopped, or has said that it is finished.
    var isIdle: Bool { !isUnderWay }

    /// Lists `directory` (relative; empty = the root), and what is below it, after what waits already.
    mutating func add(_ directory: FilePath) {
        // Another folder may have come to the place of the one that is open.
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

    /// No more is asked for in this turn of the loop: folders are let go of.
    mutating func rest() { turn.close() }

    /// The next thing found, where nobody watches. Blocks on the disk.
    mutating func next(_ ignore: IgnoreList) -> Step {
        var nobody: Void = ()
        return next(ignore, &nobody) { (_, _, _) throws(SystemError) in }
    }

    /// The next thing found. Blocks on the disk.
    ///
    /// - Parameter follow: has the folder watched, before it is listed.
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

/// What a listing shows, from the directory to the journal.
///
/// A file that is complete goes there without a stay in the settler, which keeps only those that must be looked at again. The
/// journal takes one batch while the next is looked at.
extension RootLoop {
    /// Entries listed between two looks at the events.
    private static let listingBudget = 4000
    /// Files in one transaction: few enough for what waits behind it, many enough for a disk that syncs slowly.
    private static let batch = 256

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

    /// A folder that cannot be listed now. One that is there is listed again until it can be, which is said once.
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
        volume.question.reopen()
        var budget = Self.listingBudget
        guard shared.room.limit.isOff else { return trackListed(&budget) }
        let (admission, tolerance) = (stage.admission, stage.tolerance)
        var looked = stage.checker.look(listed(&budget))
        var ready: [FileAdmission] = []
        var last: [AdmissionResult] = []
        var failure: SystemError?
        while !looked.isEmpty || !ready.isEmpty {
            let (arrivals, files) = (looked.arrivals, ready)
            // In this order: what the journal is asked must not wait for what it is given.
            async let known = admission.recall(arrivals, tolerance: tolerance)
            async let results = admission.commit(files, .listed)
            await Task.yield()
            await apply(last)
            // Meanwhile, the journal answers.
            let ahead = stage.checker.look(listed(&budget))
            let seen = await known
            // Events tell which files of the listing were renamed.
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

    /// Sorts what was looked at into what is complete and needs no more than its name, which is returned, and the rest. What must
    /// be read is admitted before the events are read again: what is in flight must not be renamed or removed meanwhile.
    private mutating func judge(
        _ looked: FileChecker.Looks, _ known: Result<[KnownFile], JournalError>
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

    /// The next files of the listing that nothing is known of yet; none when the turn is over.
    private mutating func listed(_ budget: inout Int) -> [FilePath] {
        var paths: [FilePath] = []
        while budget > 0, paths.count < Self.batch, listing.held.isEmpty, !mailbox.isStopped,
            let path = nextListed(&budget)
        {
            if !settler.isTracked(path), !isMarker(path) { paths.append(path) }
        }
        return paths
    }

    /// All that is listed waits its turn: there is not room for every file.
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

    /// Files for which there was no room before. False = there is none yet.
    private mutating func trackHeld() -> Bool {
        while let path = listing.held.last {
            if !discover(path) { return false }
            listing.held.removeLast()
        }
        return true
    }

    /// A listing shows a file. False = no room: the listing waits until files have settled, so that memory stays bounded.
    mutating func take(_ path: FilePath) -> Bool {
        if isMarker(path) || discover(path) { return true }
        listing.held.append(path)
        return false
    }

    /// Markers are found with what they mark.
    private mutating func isMarker(_ path: FilePath) -> Bool {
        guard let unit = routes.unitMarked(by: path) else { return routes.fileMarked(by: path) != nil }
        units.markerSeen(in: unit, at: .now)
        return true
    }
}
