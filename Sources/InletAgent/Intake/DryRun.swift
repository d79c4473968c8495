package import InletCore
package import InletJournal
package import InletLinux
package import InletPipelines
package import SystemPackage

/// What an agent would do with the files that are there now, one by one, without a trace: it lists as the intake does, asks the
/// routes, and looks into the journal. Memory grows with the depth of the tree, not with the files.
///
/// It lists once and ends. What the quiet time would bring is said of a file that is too young, and not waited for: an answer is
/// wanted, and watching would only give the same one later.
package struct DryRun {
    /// What would become of one file.
    package enum Verdict: Sendable {
        case planned(Plan, DeliverySteps)
        /// By the route of this name.
        case rejected(route: String, reason: String)
        /// No route takes it.
        case unmatched
        case known(job: Int64, state: FileState)
        /// It was there before the folder was first watched (`existing: skip`).
        case skipped
        /// The same, with `existing: adopt`: known as delivered, and not sent.
        case adopted
        /// With another file, to which it belongs.
        case along(main: FilePath)
        /// Nothing is done with it before this file is there.
        case awaited(marker: FilePath)
        /// A symlink, FIFO, socket or device.
        case irregular
        /// It, or the folder, cannot be read.
        case unreadable(String)
    }

    package struct Finding: Sendable {
        /// Whole.
        package var path: FilePath
        package var size: Int64
        package var verdict: Verdict
        /// The routes before the one that decided, and why they did not.
        package var passed: [RouteTrace] = []
        /// How long it would have to be quiet yet.
        package var quiet: Duration?
        /// The folder that is delivered with it as one.
        package var unit: FilePath?
    }

    /// What was passed over for its name.
    package private(set) var ignored = (files: 0, folders: 0)

    let routes: RouteTable
    let destinations: [String: Destination]
    let pool: BlockingPool
    private var journal: JournalGlance?

    /// Looked at together, so that the journal is asked once for all of them.
    private static let batch = 256

    /// - Parameter journal: nil where there is none yet.
    package init(_ routes: [Route], _ destinations: [Destination], journal: JournalGlance?, on pool: BlockingPool) {
        self.routes = RouteTable(routes)
        self.destinations = destinations.reduce(into: [:]) { $0[$1.name] = $1 }
        self.journal = journal
        self.pool = pool
    }

    /// Lists a watched folder, or those of a pattern, and hands out what is found as it is found. Blocks.
    package mutating func run(_ watch: WatchSettings, _ take: (Finding) throws -> Void) async throws {
        guard let pattern = watch.pattern else { return try await list(watch.path, watch, nil, take) }
        for root in WatchedFolders.now(pattern) {
            let found: VolumePlace
            do {
                found = try VolumePlace(of: root, pattern)
            } catch {
                try take(Finding(path: root, size: 0, verdict: .unreadable("\(error)")))
                continue
            }
            try await list(root, watch, found.volume, take)
        }
    }

    private mutating func list(
        _ root: FilePath, _ watch: WatchSettings, _ volume: Volume?, _ take: (Finding) throws -> Void
    ) async throws {
        let volume = try volume ?? Volume(name: VolumeFinder().identity(of: root).name)
        let before = try since(watch, volume.key.map { FilePath($0) } ?? root)
        let tolerance = try FileSystemKind.of(root).modifiedTolerance
        let ignore = IgnoreList(user: watch.ignore)
        var listing = Listing(root: root, isRecursive: watch.recursive)
        listing.add("")
        var arrivals: [Arrival] = []
        func note(_ path: FilePath, _ verdict: Verdict) throws {
            try take(Finding(path: root.pushing(path), size: 0, verdict: verdict))
        }
        var isListed = false
        while !isListed {
            switch listing.next(ignore) {
            case .file(let path):
                // What is gone meanwhile would not be there for the agent either.
                if let identity = (try? FileLook.look(at: RootedPath(root, path)))?.identity {
                    arrivals.append(Arrival(root: root, path: path, identity: identity, volume: volume))
                }
            case .irregular(let path): try note(path, .irregular)
            case .passedOver(let folder, let error), .trouble(let folder, let error):
                try note(folder, .unreadable("\(error)"))
            case .entered, .gone, .reading: continue
            case .finished: isListed = true
            }
            guard isListed || arrivals.count == Self.batch else { continue }
            for finding in try await judge(arrivals, watch, before, tolerance) { try take(finding) }
            arrivals = []
        }
        ignored.files += listing.ignored.files
        ignored.folders += listing.ignored.folders
    }

    /// Until when files were there before the folder was first watched; nil where that does not matter.
    private mutating func since(_ watch: WatchSettings, _ name: FilePath) throws -> WallTime? {
        guard watch.existing != .ingest else { return nil }
        return try journal?.firstSeen(name) ?? .now
    }

    private mutating func judge(
        _ arrivals: [Arrival], _ watch: WatchSettings, _ before: WallTime?, _ tolerance: Int64
    ) async throws -> [Finding] {
        let standings = try journal?.recall(arrivals, tolerance: tolerance)
        var findings: [Finding] = []
        for (index, arrival) in arrivals.enumerated() {
            let identity = arrival.identity
            let changed = WallTime(nanoseconds: max(identity.modified, identity.changed))
            var finding = Finding(
                path: arrival.root.pushing(arrival.path), size: identity.size, verdict: .unmatched)
            if case .known(let job, let state)? = standings?[index] {
                finding.verdict = .known(job: job, state: state)
            } else if let before, changed < before {
                finding.verdict = watch.existing == .skip ? .skipped : .adopted
            } else {
                await decide(arrival, &finding)
                let own = routes.settle(for: arrival.path) ?? watch.settle
                let settle = identity.size == 0 ? max(own, watch.settleEmpty) : own
                let age = WallTime.now - changed
                if case .planned = finding.verdict, age >= .zero, age < settle { finding.quiet = settle - age }
            }
            findings.append(finding)
        }
        return findings
    }
}
