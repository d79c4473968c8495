internal import InletCore
internal import InletLinux
internal import SystemPackage

/// Looks again and again at folders whose changes raise no events, a little at a time. Memory grows with these folders, not
/// with their files.
struct PollPass: ~Copyable {
    enum Step: Sendable {
        case file(FilePath)
        /// A symlink, FIFO, socket or device.
        case irregular(FilePath)
        /// Perhaps a new one.
        case directory(FilePath)
        case gone(FilePath)
        case trouble(FilePath, SystemError)
        /// A look without a finding.
        case nothing
        case finished
    }

    /// The folder in progress. `isComparing`: only compares the names with the last ones.
    private typealias ListedFolder = (
        directory: FilePath, modified: Int64, start: ContinuousClock.Instant, isComparing: Bool,
        names: UInt64
    )

    /// Files that settle for hours must not hold up the next pass.
    private static let longestDrain = Duration.seconds(30)

    private let isRecursive: Bool
    private let least: Duration
    /// The polled folders. A folder that `leave`s is watched otherwise from now on, and looked at once more.
    var book = PollState()
    /// The observed times of the mounts at these places.
    private var times: [FilePath: PollState.Times] = [:]
    /// Folders whose fault was logged.
    private var troubled: Set<FilePath> = []
    /// Whether a pass looks at folders now.
    private(set) var isLooking = false
    /// When the check of its findings began; that is part of the pass's cost.
    private var drainingSince: ContinuousClock.Instant?
    private var waiting: [FilePath] = []
    private var listing: ListedFolder?
    private var stream: DirectoryStream?
    private var turn: FolderCache
    private var cost = Duration.zero
    private var began: ContinuousClock.Instant?
    /// When the last finished pass began.
    private(set) var lastPass: ContinuousClock.Instant?
    /// When the next pass is due; nil during one, and while nothing is polled.
    private(set) var next: ContinuousClock.Instant?
    /// Units that wait for a pass, and since when.
    var awaited: [UnitClock.Unit: ContinuousClock.Instant] = [:]

    init(root: FilePath, isRecursive: Bool, least: Duration) {
        (self.isRecursive, self.least, turn) = (isRecursive, least, FolderCache(root))
    }

    /// Polls the folder from now on; its present content is found by a listing.
    mutating func add(_ directory: FilePath, modified: Int64, at now: ContinuousClock.Instant = .now) {
        book.enter(directory, modified: modified, at: now)
        if !isLooking, drainingSince == nil, next == nil { next = now.advanced(by: least) }
    }

    // MARK: - A pass

    mutating func begin(at now: ContinuousClock.Instant = .now) {
        rest()
        (isLooking, drainingSince, next, cost, began) = (true, nil, nil, .zero, now)
        waiting = book.directories
    }

    /// A turn of the loop has ended, perhaps with a part of the pass.
    ///
    /// - Parameter hasMore: whether files wait for a check.
    mutating func turnEnded(took: Duration, hasMore: Bool, at now: ContinuousClock.Instant = .now) {
        if isLooking { cost += took }
        guard let since = drainingSince else { return }
        cost += took
        if hasMore, since.duration(to: now) < Self.longestDrain { return }
        drainingSince = nil
        lastPass = began
        next = book.isEmpty ? nil : now.advanced(by: PollState.pause(after: cost, least: least))
    }

    /// The turn of the loop is over: folders are closed.
    mutating func rest() { turn.close() }

    /// The next finding. Blocks on the disk or the network.
    mutating func step(_ ignore: IgnoreList, _ modes: WatchModes, at now: ContinuousClock.Instant = .now) -> Step {
        guard let current = listing else { return nextDirectory(modes, now) }
        do throws(SystemError) {
            guard let entry = try stream?.next() else { return try ended(current, modes, now) }
            listing?.names &+= PollState.sum(of: entry.name.bytes)
            return current.isComparing ? .nothing : consider(entry, in: current.directory, ignore)
        } catch {
            return trouble(current.directory, error)
        }
    }

    private mutating func nextDirectory(_ modes: WatchModes, _ now: ContinuousClock.Instant) -> Step {
        guard let directory = waiting.popLast() else {
            (isLooking, drainingSince) = (false, now)
            return .finished
        }
        // Removed, or watched, since the pass began.
        guard book.contains(directory) else { return .nothing }
        do throws(SystemError) {
            guard case .directory(let identity) = try turn.look(directory) else {
                book.remove(directory)
                troubled.remove(directory)
                return .gone(directory)
            }
            // That look may have taken long.
            let now = max(now, .now)
            let (time, times) = (identity.touched, known(directory, modes.way(for: directory)))
            switch book.act(on: directory, modified: time, times: times, at: now, wall: .now) {
            case .skip: break
            case .names: try open(directory, time, now, isComparing: true)
            case .files: try open(directory, time, now, isComparing: false)
            }
            return .nothing
        } catch {
            return error.isMissing ? .nothing : trouble(directory, error)
        }
    }

    private mutating func open(
        _ directory: FilePath, _ modified: Int64, _ start: ContinuousClock.Instant, isComparing: Bool
    ) throws(SystemError) {
        book.begin(directory, modified: modified, at: start)
        stream = try turn.folder(directory).list()
        listing = (directory, modified, start, isComparing, 0)
    }

    private mutating func ended(
        _ last: ListedFolder, _ modes: WatchModes, _ now: ContinuousClock.Instant
    ) throws(SystemError) -> Step {
        listing = nil
        stream = nil
        troubled.remove(last.directory)
        if last.isComparing, book.names(in: last.directory) != last.names {
            try open(last.directory, last.modified, now, isComparing: false)
            return .nothing
        }
        let place = modes.way(for: last.directory).place
        switch book.listed(last.directory, modified: last.modified, names: last.names, from: last.start) {
        case true?: if times[place] == nil { times[place] = .always }
        case false?: times[place] = .never
        case nil: break
        }
        return .nothing
    }

    /// An observation of a file system outweighs its type. Folders below a mount point show nothing about the mount
    /// point: it may be the top of a FAT disk.
    private func known(_ directory: FilePath, _ way: (place: FilePath, way: WatchStrategy)) -> PollState.Times {
        switch (way.way.times, times[way.place]) {
        case (.whenSeen, .always) where directory == way.place: .whenSeen
        case (.never, _), (_, .never): .never
        case (.always, _), (_, .always): .always
        case (.whenSeen, _): .whenSeen
        }
    }

    private mutating func trouble(_ directory: FilePath, _ error: SystemError) -> Step {
        listing = nil
        stream = nil
        return troubled.insert(directory).inserted ? .trouble(directory, error) : .nothing
    }

    private func consider(_ entry: DirectoryEntry, in directory: FilePath, _ ignore: IgnoreList) -> Step {
        let path = directory.appending(entry.name)
        if entry.kind == .unknown || ignore.ignoresName(path, isDirectory: entry.kind == .directory) { return .nothing }
        switch entry.kind {
        case .directory: return isRecursive ? .directory(path) : .nothing
        case .regular: return .file(path)
        case .symlink, .other, .unknown: return .irregular(path)
        }
    }
}

/// Folders whose changes raise no events: those of mounts that hide changes, and those for which there is no watch.
extension RootLoop {
    /// Entries looked at between two looks at the events.
    private static let pollBudget = 500

    /// Something was mounted or unmounted below the root: its content is watched and listed.
    mutating func followMounts() {
        listing.forgetKinds()
        let changes = watch.followMounts()
        if changes.contains("") { return listing.ask() }
        for place in changes { listing.add(place) }
    }

    /// When the next pass may begin: not before the first listing has ended, nor while files find no room.
    var nextPass: ContinuousClock.Instant? { listing.hasEnded && listing.held.isEmpty ? watch.polls.next : nil }

    mutating func advancePass() {
        guard listing.held.isEmpty, !isLost else { return }
        if let due = nextPass, due <= .now { beginPass() }
        guard watch.polls.isLooking, !isLost else { return }
        defer { watch.polls.rest() }
        for _ in 0..<Self.pollBudget {
            switch watch.nextPolled() {
            case .file(let path): if !take(path) { return }
            case .irregular(let path): stage.checker.noteIrregular(path)
            case .directory(let path): listing.add(path)
            case .gone(let directory):
                if directory.isEmpty { return loseRoot() }
            case .trouble(let directory, let error): tell(directory, error)
            case .nothing: break
            case .finished: return
            }
        }
    }

    private mutating func beginPass() {
        followMounts()
        if let loss = watch.beginPass() { loseRoot(loss) }
    }
}
