internal import InletCore
internal import InletJournal
internal import InletLinux
internal import InletPipelines
internal import SystemPackage

/// From a path whose quiet time is over to its place in the journal: what is known is left alone, what was touched is
/// compared by content, what is new is probed for writers and admitted in groups.
struct SettledFiles: Sendable {
    enum Considered: Sendable {
        case look(Settler.Look)
        case known
    }

    let root: FilePath
    let admitter: Admission
    let journal: Journal
    let log: EventLog
    let hashing: Hashing
    let tolerance: Int64
    /// The file system of the root.
    let volume: Volume?
    /// With `existing: skip`: files not touched since then are left alone.
    private let skipBefore: WallTime?

    /// With `existing: adopt`.
    var adopter: Adoption?
    /// Files taken over since it was last said how many.
    var adopted: (files: Int, bytes: Int64) = (0, 0)

    /// The time that looks have taken, for who sets it.
    var looking = Duration.zero
    var tally = IgnoreTally()
    /// What the rule of the root leaves out.
    var refused = RefusedFiles()
    let rule: SourceRule
    /// The quiet time of empty files; zero = that of any.
    let settleEmpty: Duration
    /// What is being fetched in the folders of this turn.
    var parts = PartNames()
    /// Files that could not be looked at, or read, since the last listing began.
    var unread = 0
    /// Of a removable volume, reset with each listing.
    var awaited = AwaitedFiles()
    /// Files whose marker is not there yet: only to say so once.
    private var unmarked = IgnoreTally()
    /// Units that could not be closed, because something of them cannot be read: only to say so once.
    var untold = IgnoreTally()
    var queued: [Candidate] = []
    /// What was read of files that the journal did not take yet.
    var learned: [FilePath: (identity: FileIdentity, facts: Facts)] = [:]
    static let mostLearned = 1000
    /// What the files under consideration belong to; those that stand for themselves are left out.
    var roles: [FilePath: Candidate.Role] = [:]
    var renames = Renames()
    private var wakes: [(companion: FilePath, main: FilePath)] = []
    let finder: CompanionFinder
    /// The quiet time of the root.
    let settle: Duration
    /// The folders of the files that are looked at in this turn.
    var turn: FolderTurn

    init(
        root: FilePath, admitter: Admission, journal: Journal, log: EventLog, heartbeat: Heartbeat,
        hashing: BlockingPool, tolerance: Int64, skipBefore: WallTime?, settle: Duration, settleEmpty: Duration = .zero,
        volume: Volume? = nil, adoptBefore: WallTime? = nil, adoptCheck: Bool = false, rule: SourceRule = SourceRule()
    ) {
        self.root = root
        self.rule = rule
        self.settleEmpty = settleEmpty
        turn = FolderTurn(root)
        self.admitter = admitter
        self.journal = journal
        self.log = log
        // A long hash holds up the loop, but it is not a loop that hangs.
        self.hashing = Hashing(pool: hashing, progress: { heartbeat.beat(.intake(root)) })
        self.tolerance = tolerance
        self.skipBefore = skipBefore
        self.volume = volume
        if let adoptBefore {
            adopter = Adoption(
                root: root, volume: volume, before: adoptBefore, isChecked: adoptCheck, admission: admitter,
                hashing: self.hashing)
        } else {
            adopter = nil
        }
        self.settle = settle
        finder = CompanionFinder(
            root: root, volume: volume, tolerance: tolerance, sources: rule,
            rule: CompanionRule(routes: admitter.routes, settle: settle, skipBefore: skipBefore), journal: journal)
    }

    var ignored: Int { tally.total + refused.total }

    /// The quiet time before a first look; nil = the root's.
    func settle(for path: FilePath) -> Duration? { admitter.routes.shortestSettle(for: path, root: settle) }

    /// A symlink, FIFO, socket or device: said once for each folder and extension.
    mutating func noteIrregular(_ path: FilePath) {
        guard tally.count(path) else { return }
        log.emit(
            .fileIgnored(
                path: root.pushing(path),
                reason: "not a regular file; symlinks, FIFOs, sockets and devices are never followed or read"))
    }

    /// With `existing: skip`: said once for each folder and extension.
    mutating func noteSkipped(_ path: FilePath) {
        guard tally.count(path) else { return }
        log.emit(
            .fileIgnored(
                path: root.pushing(path), reason: "it was there before this folder was watched (existing: skip)"))
    }

    func isSkipped(_ identity: FileIdentity) -> Bool {
        guard let skipBefore else { return false }
        return WallTime(nanoseconds: max(identity.modified, identity.changed)) < skipBefore
    }

    /// What is known is left alone, what was touched is compared, and what is new is looked at among those that it belongs
    /// together with, and probed for writers.
    ///
    /// - Parameter answer: what the journal says of the arrivals; when it cannot be read now every file is asked about again.
    mutating func consider(
        _ looked: Looked, _ answer: Result<[KnownFile], JournalError>
    ) async -> [(FilePath, Considered)] {
        defer {
            turn.close()
            parts.forget()
        }
        roles = [:]
        let arrivals = looked.arrivals
        guard case .success(let known) = answer else {
            return looked.judged
                + arrivals.map { ($0.path, .look(.later("the journal cannot be read", .seconds(1)))) }
        }
        var hashed: Int64 = 0
        let endings = await adopt(
            zip(arrivals, known).filter {
                $1 == .new && renames.origins(of: $0.path).isEmpty && looked.refused[$0.path] == nil
            }.map(\.0))
        var considered: [FilePath: Considered] = [:]
        for (arrival, known) in zip(arrivals, known) {
            considered[arrival.path] = await consider(arrival, known, looked, endings[arrival.path], &hashed)
        }
        let new = arrivals.filter { considered[$0.path] == nil }
        for (arrival, status) in zip(new, await finder.find(of: new, &turn, at: .now)) {
            considered[arrival.path] = await place(arrival, status)
        }
        return looked.judged + arrivals.compactMap { arrival in considered[arrival.path].map { (arrival.path, $0) } }
    }

    /// - Parameters:
    ///   - ending: what its adoption came to.
    ///   - hashed: the bytes read in this turn.
    /// - Returns: nil for a new file that goes its way.
    private mutating func consider(
        _ arrival: Arrival, _ known: KnownFile, _ looked: Looked, _ ending: Adoption.Ending?, _ hashed: inout Int64
    ) async -> Considered? {
        switch known {
        case .known: return .known
        case .new where isRefused(arrival.path, looked): return .known
        case .new where !renames.isEmpty && hashed > Hashing.budget: return .look(.comparedLater)
        case .new: return await considerUnknown(arrival, ending, &hashed)
        // Events must not wait for a remounted tree to be hashed: the rest comes back in a moment.
        case .touched where hashed > Hashing.budget: return .look(.comparedLater)
        case .touched(let file):
            if file.hasChecksum { hashed += arrival.identity.size }
            return await considerTouched(arrival, file, looked)
        }
    }

    /// A file that is new, among those that it belongs together with.
    private mutating func place(_ arrival: Arrival, _ status: Result<CompanionStatus, any Error>) async -> Considered {
        let path = arrival.path
        do {
            let status = try status.get()
            note(path, isAwaited: status.isAwaited)
            switch status {
            case .alone: return .look(whenFilled(path, probe(arrival)))
            case .main(let companions, let isWhole, let quiet):
                roles[path] = .main(companions)
                let look = probe(arrival, isWhole ? nil : (quiet, "waiting for its sidecars"))
                return .look(whenFilled(path, look))
            case .marked(let companions):
                roles[path] = .main(companions)
                return .look(probe(arrival, (.zero, "")))
            case .unmarked(let marker):
                noteUnmarked(path, marker)
                return .known
            case .unsettled: return .look(.belongingsUnsettled)
            case .corrected(let main, let job):
                guard try await journal.retake(job) else { return .look(.belongingsUnsettled) }
                wakes.append((path, main))
                return .look(.waiting(for: .seconds(1), why: "waiting for its file \(Self.name(main))"))
            case .waiting(let main, let wait):
                wakes.append((path, main))
                return .look(.waiting(for: wait, why: "waiting for its file \(Self.name(main))"))
            case .dormant: return .known
            case .late(let companion, let main, let quiet):
                roles[path] = .late(companion, main: main)
                return .look(probe(arrival, quiet.map { ($0, "waiting for its file") }))
            case .orphan(let quiet): return .look(probe(arrival, (quiet, "waiting for its file")))
            }
        } catch {
            return .look(failed(path, error))
        }
    }

    /// Companions, and the files that they wait for, which should be looked at now.
    mutating func takeWakes() -> [(companion: FilePath, main: FilePath)] {
        defer { wakes = [] }
        return wakes
    }

    private static func name(_ path: FilePath) -> String { DisplayText.escape(FileName(path).bytes) }

    private mutating func note(_ path: FilePath, isAwaited: Bool) {
        guard volume?.key != nil else { return }
        if isAwaited { awaited.insert(path) } else { awaited.remove(path) }
    }

    /// Said once for each folder and extension. Such files are not kept in memory: their markers tell of them.
    private mutating func noteUnmarked(_ path: FilePath, _ marker: FilePath) {
        guard unmarked.count(path) else { return }
        log.emit(.fileAwaited(path: root.pushing(path), reason: "waiting for its marker \(Self.name(marker))"))
    }

    /// A file of which only inode, device or ctime changed: known while it has the content that was admitted. What cannot be
    /// read now is compared later.
    ///
    /// - Returns: nil when it is another one.
    private mutating func considerTouched(_ arrival: Arrival, _ file: FileRow, _ looked: Looked) async -> Considered? {
        do {
            if file.hasChecksum {
                guard try await file.hasContent(try SourceFile(opening: arrival.place), hashing)
                else { return isRefused(arrival.path, looked) ? .known : nil }
            } else if file.state == .pending {
                // Before the journal is asked whether it is on its way: it may end at any time.
                admitter.looks.keep(file.id)
            }
            let touch = try await journal.refresh(
                file, identity: arrival.identity, uptimes: admitter.board.uptimes(), at: .now)
            if touch.isNoted || touch.isOutdated { admitter.looks.take(file.id) }
            if touch.isOutdated { return .look(.comparedLater) }
            if touch.goesOn { admitter.signals.raiseDeliverable() }
            log.emit(.jobKnown(job: file.id, path: file.fullPath))
            return .known
        } catch let error as SystemError where error.isMissing {
            return .look(.gone)
        } catch {
            return .look(failed(arrival.path, error))
        }
    }
}
