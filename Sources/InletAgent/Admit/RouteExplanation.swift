internal import InletConfig
package import InletCore
package import InletJournal
package import InletLinux
package import InletPipelines
package import SystemPackage

/// Reports, file by file, what an agent would do with the present files, and changes nothing. It lists as the intake
/// does, asks the routes, and reads the journal. Memory grows with the depth of the tree, not with the files.
///
/// It lists once. A file that is too young is reported as such, without a wait for its quiet time.
package struct DryRun {
    /// The outcome for one file.
    package enum Verdict: Sendable {
        case planned(Plan, DeliverySteps)
        /// By the route of this name.
        case rejected(route: String, reason: String)
        /// It matches no route.
        case unmatched
        case known(job: Int64, state: FileState)
        /// It existed before the folder was first watched (`existing: skip`).
        case skipped
        /// The same with `existing: adopt`: it would count as delivered without being sent.
        case adopted
        /// It goes with another file.
        case along(main: FilePath)
        /// It waits until this file is there.
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
        /// The routes before the deciding one, and why they did not match.
        package var passed: [(route: String, mismatch: String?)] = []
        /// How much longer it must be quiet.
        package var quiet: Duration?
        /// Its unit: the folder that is delivered as one.
        package var unit: FilePath?
    }

    /// When to stop listing; nil lists all.
    package var end: ContinuousClock.Instant?
    /// Names that were ignored.
    package private(set) var ignored = (files: 0, folders: 0)

    private let routes: RouteTable
    private let destinations: [String: Destination]
    private let hashing: Hashing
    private var past: Past?

    /// Checked together, so that one question to the journal serves all.
    private static let batch = 256

    /// A journal's memory of files.
    package enum Past {
        /// Of an agent that may not run.
        case stored(ReadOnlyJournal)
        /// Of the agent in this process.
        case live(Journal)

        fileprivate mutating func known(
            _ arrivals: [FoundFile], tolerance: Int64
        ) async throws(JournalError) -> [(job: Int64, state: FileState)?] {
            switch self {
            case .live(let journal): return try await journal.known(arrivals, tolerance: tolerance)
            case .stored(var journal):
                defer { self = .stored(journal) }
                return try journal.recall(arrivals, tolerance: tolerance)
            }
        }

        fileprivate mutating func firstSeen(_ root: FilePath) async throws(JournalError) -> WallTime? {
            switch self {
            case .live(let journal): return try await journal.firstSeen(root)
            case .stored(var journal):
                defer { self = .stored(journal) }
                return try journal.firstSeen(root)
            }
        }
    }

    /// - Parameter past: nil where there is no journal yet.
    package init(_ routes: [Route], _ destinations: [Destination], past: Past?, on pool: BlockingPool) {
        self.routes = RouteTable(routes)
        self.destinations = destinations.reduce(into: [:]) { $0[$1.name] = $1 }
        self.past = past
        hashing = Hashing(pool: pool)
    }

    /// Lists a watched folder, or the folders of a pattern, and reports each file as it is found. Blocks.
    package mutating func run(_ watch: WatchSettings, _ take: (Finding) throws -> Void) async throws {
        guard let pattern = watch.pattern else { return try await list(watch.path, watch, nil, take) }
        for root in RootCheck.folders(of: pattern) {
            let found: VolumeMount
            do {
                found = try VolumeMount(of: root, pattern)
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
        let before = try await since(watch, volume.key.map { FilePath($0) } ?? root)
        let tolerance = try FileSystemKind.of(root).modifiedTolerance
        let ignore = IgnoreList(user: watch.ignore)
        var listing = Listing(root: root, isRecursive: watch.recursive)
        listing.add("")
        var arrivals: [FoundFile] = []
        func note(_ path: FilePath, _ verdict: Verdict) throws {
            try take(Finding(path: root.pushing(path), size: 0, verdict: verdict))
        }
        var isListed = false
        while !isListed {
            if let end, .now >= end { break }
            switch listing.next(ignore) {
            case .file(let path):
                // A file that went away meanwhile would be missing for the agent too.
                if let identity = FileLook.file(at: RootedPath(root, path)) {
                    arrivals.append(FoundFile(root: root, path: path, identity: identity, volume: volume))
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

    /// The time before which files count as existing; nil where that does not matter.
    private mutating func since(_ watch: WatchSettings, _ name: FilePath) async throws -> WallTime? {
        guard watch.existing != .ingest else { return nil }
        return try await past?.firstSeen(name) ?? .now
    }

    private mutating func judge(
        _ arrivals: [FoundFile], _ watch: WatchSettings, _ before: WallTime?, _ tolerance: Int64
    ) async throws -> [Finding] {
        let known = try await past?.known(arrivals, tolerance: tolerance)
        var findings: [Finding] = []
        for (index, arrival) in arrivals.enumerated() {
            let identity = arrival.identity
            let changed = WallTime(nanoseconds: max(identity.modified, identity.changed))
            var finding = Finding(
                path: arrival.root.pushing(arrival.path), size: identity.size, verdict: .unmatched)
            if let (job, state) = known?[index] {
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

    // MARK: - Plans and facts

    private func decide(_ arrival: FoundFile, _ finding: inout Finding) async {
        do {
            if let belonging = try routes.belonging(of: arrival) {
                finding.verdict = .along(main: arrival.root.pushing(belonging.main))
                return
            }
            var facts = FileProperties()
            try await hashing.learnFirst(of: arrival, by: routes, at: arrival.place, &facts)
            finding.passed = routes.trace(arrival, facts: facts).filter { $0.mismatch != nil }
            guard
                let route = routes.route(for: arrival.path, size: arrival.identity.size, facts: facts)
            else { return }
            if let marker = try missingMarker(of: arrival, route) {
                finding.verdict = .awaited(marker: marker)
                return
            }
            do {
                facts.add(
                    try await SidecarFile.metadata(
                        beside: arrival, routes, facts: facts, on: hashing.pool))
            } catch let error as ConfigErrors {
                finding.verdict = .rejected(route: route.name, reason: SidecarFile.reason(error))
                return
            }
            finding.unit = route.unit(of: arrival.path)
            finding.verdict = try await verdict(arrival, &facts)
        } catch {
            finding.verdict = .unreadable("\(error)")
        }
    }

    private func verdict(_ arrival: FoundFile, _ facts: inout FileProperties) async throws -> Verdict {
        // A number for {seq} is assigned at admission only.
        switch try await hashing.decide(arrival, by: routes, at: arrival.place, &facts, sequence: { 0 }) {
        case .unmatched, .needs: .unmatched
        case .rejected(let route, let reason): .rejected(route: route.name, reason: reason)
        case .plan(let plan): .planned(plan, DeliverySteps(plan, of: arrival.path) { destinations[$0] })
        }
    }

    /// The marker that the file waits for.
    private func missingMarker(of arrival: FoundFile, _ route: Route) throws(SystemError) -> FilePath? {
        guard route.wantsMarker else { return nil }
        for companion in route.companions(of: arrival.path) where companion.kind == .marker {
            let marker = RootedPath(arrival.root, companion.path)
            if try FileLook.look(at: marker) == .missing { return marker.whole }
        }
        return nil
    }
}

/// The routes' plan for a file by name and size alone. The file is not read; every assumption is listed. Pure.
package struct RouteDryRun: Sendable {
    package let place: RouteSource
    /// Each route that was tried, up to the one that matched.
    package let traces: [(route: String, mismatch: String?)]
    /// The plan; nil where no route matches, or the matching one rejects the file.
    package let planned: (plan: Plan, steps: DeliverySteps)?
    package let rejection: (route: String, reason: String)?
    /// The assumptions, in sentences.
    package let assumed: [String]

    /// - Parameters:
    ///   - identity: the file's, if it exists.
    ///   - size: a size to assume instead of its own.
    package init(
        _ place: RouteSource, identity: FileIdentity?, size: Int64? = nil, table: RouteTable,
        destination: (String) -> Destination?, at now: WallTime
    ) {
        self.place = place
        var assumed: [String] = []
        var arrival = place.arrival(identity, at: now)
        if identity == nil {
            assumed.append(
                size == nil
                    ? "the file is not there: size 0 and the time now were assumed"
                    : "the file is not there: the time now was assumed")
        }
        if let size { arrival.identity.size = size }
        var facts = FileProperties()
        var decision = table.plan(arrival, facts: facts, at: now)
        // Each fact is asked for once.
        while case .needs(let wanted) = decision {
            for fact in wanted { assumed.append(Self.assume(fact, of: arrival.path, in: &facts)) }
            decision = table.plan(arrival, facts: facts, at: now)
        }
        self.assumed = Set(assumed).sorted()
        guard place.ignoredBecause == nil else {
            (traces, planned, rejection) = ([], nil, nil)
            return
        }
        traces = table.trace(arrival, facts: facts)
        switch decision {
        case .plan(let plan):
            planned = (plan, DeliverySteps(plan, of: arrival.path, destination: destination))
            rejection = nil
        case .rejected(let route, let reason): (planned, rejection) = (nil, (route.name, reason))
        case .unmatched, .needs: (planned, rejection) = (nil, nil)
        }
    }

    /// - Returns: the assumptions.
    private static func assume(_ fact: FileProperty, of path: FilePath, in facts: inout FileProperties) -> String {
        switch fact {
        case .digest(.sha256):
            facts.digests[.sha256] = Digest(.sha256, [UInt8](repeating: 0, count: 32))
            return "its checksum is not computed here: zeros take its place"
        case .digest(let algorithm):
            facts.digests[algorithm] = Digest(algorithm, [UInt8](repeating: 0, count: 8))
            return "its \(algorithm.rawValue) for the unit's list is not computed here"
        case .sequence:
            facts.sequence = 0
            return "numbers are assigned at admission: 0 takes its place"
        case .captured:
            facts.captured = .unknown
            return "the date in the file is not read here: its modification time takes its place"
        case .mediaType:
            let type = MediaType.byExtension(FileName(path).plainExtension)
            facts.mediaType = type
            return "its content is not read here: \(type) was assumed from its name"
        case .camera:
            let camera = Camera(system: CameraStructure(of: path))
            facts.camera = camera
            return camera.name.map { "its camera is not read here: \($0) was assumed from its path" }
                ?? "its camera is not read here"
        case .card:
            facts.card = CardLabels()
            return "the labels of its card are not known here"
        }
    }

    /// The reasons, one sentence per step.
    package var why: [String] {
        var why: [String] = []
        if place.root == nil { why.append("not in a watched folder; only 'inlet send' can send it") }
        if let ignored = place.ignoredBecause { return why + ["ignored: \(ignored)"] }
        why += traces.map { trace in
            trace.mismatch.map { "route \(trace.route): \($0)" } ?? "route \(trace.route) takes it"
        }
        if let rejection { return why + ["rejected: \(rejection.reason)"] }
        return planned == nil ? why + ["no route matches it: it would be ignored"] : why
    }
}

/// The watched folder that would admit a file, whether the file exists or not.
package struct RouteSource: Sendable {
    /// The watched folder that contains it; nil when only `inlet send` could send it.
    package let root: FilePath?
    /// The path below the root; a file elsewhere counts by its bare name.
    package let relative: FilePath
    /// Why no route applies, where its name or that of a folder above it is ignored.
    package let ignoredBecause: String?

    package init(_ path: FilePath, in watch: [WatchSettings]) {
        let settings = watch.first { $0.root(of: path) != nil }
        root = settings?.root(of: path)
        let below = RootedPath(path, roots: [root].compactMap(\.self)).path
        relative = below
        ignoredBecause = settings.flatMap { IgnoreList(user: $0.ignore).reason(below, isDirectory: false) }
    }

    /// As the routes see it.
    ///
    /// - Parameter identity: the file's, if it exists; otherwise it counts as an empty file of now.
    package func arrival(_ identity: FileIdentity?, volume: Volume? = nil, at now: WallTime) -> FoundFile {
        FoundFile(
            root: root ?? "", path: relative,
            identity: identity
                ?? FileIdentity(size: 0, modified: now.milliseconds * 1_000_000, changed: 0, inode: 0, device: 0),
            volume: volume)
    }
}

extension DeliverySteps {
    /// The outcome of a plan for the file at `path` below its root: its destinations, and their order.
    ///
    /// - Parameter destination: makes one by its name; nil for one that cannot be made.
    package init(_ plan: Plan, of path: FilePath, destination: (String) -> Destination?) {
        let needs = plan.destinations.compactMap { name in
            destination(name)?.storage.flatMap { $0.isNeeded(path, plan.with) ? (name, $0.destination) : nil }
        }
        self.init(plan.destinations, storages: Dictionary(needs) { first, _ in first })
    }
}

/// Where a file is, as routes and destinations see it.
extension RootedPath {
    /// A named file as its route would see it in a watched root; elsewhere its bare name in its folder.
    init(_ path: FilePath, roots: [FilePath]) {
        for root in roots {
            var relative = path
            guard relative.removePrefix(root) else { continue }
            self.init(root, relative)
            return
        }
        self.init(path.removingLastComponent(), path.lastComponent.map { FilePath(root: nil, [$0]) } ?? path)
    }

    /// - Parameter roots: the watched folders, for files outside of any.
    init(_ file: FileRow, roots: [FilePath]) {
        self = file.root.isEmpty ? RootedPath(file.path, roots: roots) : file.place
    }
}

extension FoundFile {
    /// Its place on the disk.
    var place: RootedPath { RootedPath(root, path) }
}

extension FileRow {
    /// Its place on the disk.
    var place: RootedPath { RootedPath(root, path) }
}
