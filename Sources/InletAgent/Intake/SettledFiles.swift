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

    private let root: FilePath
    private let admitter: Admitter
    private let journal: Journal
    private let log: EventLog
    private let hashing: Hashing
    private let tolerance: Int64
    /// With `existing: skip`: files not touched since then are left alone.
    private let skipBefore: WallTime?
    /// Bytes of touched files that are hashed in one turn of the loop; the last one may exceed it.
    private static let hashBudget: Int64 = 16 << 20

    private var tally = IgnoreTally()
    private var queued: [Arrival] = []

    init(
        root: FilePath, admitter: Admitter, journal: Journal, log: EventLog, heartbeat: Heartbeat,
        hashing: BlockingPool, tolerance: Int64, skipBefore: WallTime?
    ) {
        self.root = root
        self.admitter = admitter
        self.journal = journal
        self.log = log
        // A long hash holds up the loop, but it is not a loop that hangs.
        self.hashing = Hashing(pool: hashing, progress: { heartbeat.beat(.intake(root)) })
        self.tolerance = tolerance
        self.skipBefore = skipBefore
    }

    var ignored: Int { tally.total }

    /// The quiet time that a route asks for; nil = the root's.
    func settle(for path: FilePath) -> Duration? { admitter.routes.settle(for: path) }

    /// Looks at due files. The journal is asked once for all of them, and only new ones are opened. Blocks.
    mutating func consider(_ paths: [FilePath]) async -> [(FilePath, Considered)] {
        var results: [(FilePath, Considered)] = []
        var arrivals: [Arrival] = []
        for path in paths {
            switch look(path) {
            case .regular(let identity, _, _):
                if isSkipped(identity) {
                    noteSkipped(path)
                    results.append((path, .known))
                } else {
                    arrivals.append(Arrival(root: root, path: path, identity: identity))
                }
            case .missing: results.append((path, .look(.gone)))
            case .directory, .symlink, .other, nil:
                noteIrregular(path)
                results.append((path, .look(.notRegular)))
            }
        }
        return results + (await considerNew(arrivals))
    }

    /// A symlink, FIFO, socket or device: said once for each folder and extension.
    mutating func noteIrregular(_ path: FilePath) {
        guard tally.count(path) else { return }
        log.emit(
            .fileIgnored(
                path: root.pushing(path),
                reason: "not a regular file; symlinks, FIFOs, sockets and devices are never followed or read"))
    }

    /// With `existing: skip`: said once for each folder and extension.
    private mutating func noteSkipped(_ path: FilePath) {
        guard tally.count(path) else { return }
        log.emit(
            .fileIgnored(
                path: root.pushing(path), reason: "it was there before this folder was watched (existing: skip)"))
    }

    private func look(_ path: FilePath) -> FileLook? {
        do throws(SystemError) {
            return try FileLook.look(at: root.pushing(path))
        } catch {
            log.emit(.fileTrouble(path: root.pushing(path), reason: "\(error)"))
            return nil
        }
    }

    private func isSkipped(_ identity: FileIdentity) -> Bool {
        guard let skipBefore else { return false }
        return WallTime(nanoseconds: max(identity.modified, identity.changed)) < skipBefore
    }

    private func considerNew(_ arrivals: [Arrival]) async -> [(FilePath, Considered)] {
        let known: [KnownFile]
        do {
            known = try await journal.recall(arrivals, tolerance: tolerance)
        } catch {
            // Not readable now: every file stays in the settler and is asked about again.
            admitter.health.fails(error)
            return arrivals.map { ($0.path, .look(.file($0.identity, busy: true))) }
        }
        var results: [(FilePath, Considered)] = []
        var hashed: Int64 = 0
        for (arrival, known) in zip(arrivals, known) {
            switch known {
            case .known: results.append((arrival.path, .known))
            case .new: results.append((arrival.path, .look(probe(arrival))))
            case .touched where hashed > Self.hashBudget:
                // Events must not wait for a remounted tree to be hashed: the rest comes back in a moment.
                results.append((arrival.path, .look(.file(arrival.identity, busy: true))))
            case .touched(let file):
                if file.content != nil { hashed += arrival.identity.size }
                let isSame = await isUnchanged(arrival, file)
                results.append((arrival.path, isSame ? .known : .look(probe(arrival))))
            }
        }
        return results
    }

    private func probe(_ arrival: Arrival) -> Settler.Look {
        let isBusy = Lease.probe(path: root.pushing(arrival.path)) == .busy
        if isBusy { log.emit(.fileSettling(path: root.pushing(arrival.path), busy: true)) }
        // After the probe: a writer that closed between the first look and the probe has left another file.
        return .file(look(arrival.path)?.identity ?? arrival.identity, busy: isBusy)
    }

    /// Whether a file of which only inode, device or ctime changed still has the content that was admitted.
    private func isUnchanged(_ arrival: Arrival, _ file: FileRow) async -> Bool {
        do {
            if let content = file.content {
                let source = try SourceFile(opening: root.pushing(arrival.path))
                guard try await Fingerprint.matches(content, source, on: hashing.pool, progress: hashing.progress)
                else {
                    return false
                }
            }
            try await journal.refresh(file.id, identity: arrival.identity)
            log.emit(.jobKnown(job: file.id, path: file.fullPath))
            return true
        } catch {
            if !Task.isCancelled { log.emit(.fileTrouble(path: root.pushing(arrival.path), reason: "\(error)")) }
            return true
        }
    }

    mutating func queue(_ path: FilePath, _ identity: FileIdentity) {
        queued.append(Arrival(root: root, path: path, identity: identity))
    }

    /// Admits what is queued, all in one group commit. - Returns: the files to look at again later.
    mutating func admitQueued() async -> [FilePath] {
        let arrivals = queued
        queued = []
        let outcomes = await withTaskGroup(of: (FilePath, Admitter.Outcome).self) { group in
            for arrival in arrivals {
                group.addTask { [admitter, hashing] in
                    (arrival.path, await admitter.admit(arrival, hashing: hashing))
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        for (path, outcome) in outcomes where outcome == .unmatched {
            guard tally.count(path) else { continue }
            log.emit(
                .fileIgnored(path: root.pushing(path), reason: "no route takes it; 'inlet route FILE' shows why"))
        }
        return outcomes.filter { $0.1 == .later }.map(\.0)
    }
}
