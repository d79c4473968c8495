package import InletCore
package import InletJournal
internal import InletLinux
internal import InletMedia
package import InletPipelines
package import SystemPackage

/// All questions and orders to an agent from outside: its socket, its page and the commands use this, and nothing else.
/// It serves a running agent, or its journal alone.
package struct AgentControl: Sendable {
    package let journal: Journal
    /// nil when no agent runs and only its journal is used.
    package let live: Running?
    /// Makes a destination by its name, where no running agent has it.
    private let make: @Sendable (String) -> Destination?
    private let configured: [(name: String, type: String)]
    /// For files that are moved back from quarantine.
    let returning = BlockingPool(name: "quarantine", threads: 1)

    /// For a journal whose lock the caller holds.
    ///
    /// - Parameters:
    ///   - configured: the destinations' names and types.
    ///   - make: makes one by its name.
    package init(
        journal: Journal, configured: [(name: String, type: String)] = [],
        make: @escaping @Sendable (String) -> Destination? = { _ in nil }
    ) {
        (self.journal, self.configured, self.make) = (journal, configured, make)
        live = nil
    }

    init(_ live: Running) {
        (journal, self.live, configured) = (live.shared.journal, live, [])
        make = { _ in nil }
    }

    /// The destinations' names and types. A running agent's may change.
    package var destinations: [(name: String, type: String)] {
        live.map { $0.destinations.map { ($0.name, $0.type) } } ?? configured
    }

    func destination(_ name: String) -> Destination? { live.map { $0.shared.destinations[name] } ?? make(name) }

    /// Facts that only a running agent knows.
    package struct Running: Sendable {
        let shared: Shared
        let label: Agent.Label
        package let startedAt = WallTime.now
        /// Counters of all events since the start.
        package let tally: MetricsCollector
        let resumes: ResumeReport
        let bandwidth: BandwidthControl
        /// A folder of another machine may take its time.
        let asking = BlockingPool(name: "send", threads: 2)
        let viewer = FileViewer()
        /// nil for an agent that has no configuration file.
        let reload: Reload?
        /// The same.
        package var editor: ConfigEditor?

        /// nil for an agent without a fleet.
        var fleet: FleetParts?

        /// The watched folders, by their configured paths, in which Landlock let the agent change files at its start;
        /// nil where it lets it change all.
        var changeable: Set<FilePath>?

        package var version: String { label.version }
        package var confinement: ConfinementReport? { label.confinement }
        package var destinations: [DestinationState] { shared.destinations.statuses() }
        package var roots: [RootStatus] {
            shared.arrivals.describe(shared.roots.statuses, shared.settings.watch)
        }
        /// Whether a folder is watched and there, as its watcher last saw it.
        func isPresent(_ root: FilePath) -> Bool {
            shared.roots.statuses.contains { $0.root == root && ($0.state == .watching || $0.state == .starting) }
        }
        /// The file that was admitted last; nil before any.
        package var newest: Arrival? { shared.arrivals.newest }
        /// How the files of the last 30 days ended.
        package var recent: (ok: Int, failed: Int) { tally.recent(at: shared.clock.now()) }
        package var inFlight: [Transfers.RunningTransfer] { shared.transfers.running }
        /// The progress of a delivery that its destination processes, as far as it is known.
        package func step(_ delivery: Int64) -> StepProgress? { shared.transfers.step(delivery) }
        /// The progress of the files that waited at the start; nil once all have been tried.
        package var resume: ResumeSummary? { resumes.summary }
        package var journalIsFailing: Bool { shared.health.journal.isFailing }
        /// The reason, as logged.
        package var journalTrouble: String? { shared.health.journal.reason }
        /// The log's fault; nil when it works.
        package var logStanding: LogStatus? { shared.log.status }
        /// Parts that failed, and restart.
        package var incidents: [(service: String, reason: String)] { shared.health.restarts.incidents() }
        /// The limits in effect, the common one first.
        package var limits: [BandwidthPolicy.Status] { bandwidth.statuses() }
        /// The windows of the routes that have one.
        package var windows: [(route: String, window: DeliveryWindow)] {
            shared.settings.settings.routes.compactMap { route in route.window.map { (route.name, $0) } }
        }
        /// The configuration in effect; nil for an agent without a file.
        package var config: RunningConfig? { shared.settings.shown }
        /// The receivers of notifications.
        package var receivers: [NotifySettings] { shared.settings.settings.notify }
        /// The watched folders with a path of their own, in the configuration's order.
        package var watched: [FilePath] { shared.settings.fixedRoots }
        /// The watched folders that are patterns: cards are found by them.
        package var cardPatterns: [FilePath] {
            shared.settings.settings.watch.filter { $0.pattern != nil }.map(\.path)
        }

        /// The routes' plan for a file by its full path, and optionally a size; the file is not read. It is looked at
        /// only inside watched folders, so that nobody learns about files elsewhere.
        package func route(_ path: FilePath, _ size: Int64?) async -> RouteDryRun {
            let settings = shared.settings.settings
            let place = RouteSource(path, in: settings.watch)
            let file = place.root.map { RootedPath($0, place.relative) }
            // An unreadable file is judged by its name.
            let identity = await asking.run { file.flatMap { FileLook.file(at: $0) } }
            return RouteDryRun(
                place, identity: identity, size: size, table: RouteTable(settings.routes),
                destination: { shared.destinations[$0] }, at: .now)
        }
    }

    /// Where the open deliveries are.
    package struct Queue: Sendable {
        /// By destination, as the journal counts them; claims at hand count as waiting.
        package var counts: [String: QueueCounts] = [:]
        /// When the file of the oldest of `waiting` was admitted.
        package var oldest: WallTime?
        /// In transfer, or processing at their destination.
        package var inFlight: Int { sum { $0.claimed + $0.working } }
        /// Waiting for a worker or for their time, in the journal or at hand.
        package var waiting: Int { sum(\.waiting) }
        /// The tried ones of `waiting`.
        package var retrying: Int { sum(\.retrying) }
        /// Waiting for another file, or for their unit.
        package var held: Int { sum(\.held) }
        /// Whose destination is not configured.
        package var parked: Int { sum(\.parked) }
        /// `waiting` by destination; destinations without any are left out.
        package var byDestination: [String: Int] { counts.mapValues(\.waiting).filter { $0.value > 0 } }

        private func sum(_ count: (QueueCounts) -> Int) -> Int { counts.values.reduce(0) { $0 + count($1) } }
    }

    /// The state of the open deliveries. Transfers of a process that died count as waiting.
    package func queue() async throws(JournalError) -> Queue {
        let atHand = live?.shared.lanes.waiting ?? [:]
        var queue = Queue()
        for (name, var counts) in try await journal.queueCounts() {
            if counts.waiting > 0, let oldest = counts.oldest { queue.oldest = min(queue.oldest ?? oldest, oldest) }
            let waitingClaims = live == nil ? counts.claimed : min(atHand[name] ?? 0, counts.claimed)
            (counts.waiting, counts.claimed) = (counts.waiting + waitingClaims, counts.claimed - waitingClaims)
            queue.counts[name] = counts
        }
        if queue.waiting > 0, queue.oldest == nil { queue.oldest = try await journal.oldestPending() }
        return queue
    }

    /// The files that pass a filter, newest first. Claims at hand appear as waiting, without an attempt.
    package func jobs(_ filter: FileFilter) async throws(JournalError) -> [Job] {
        try await journal.jobs(filter).map(asSeen)
    }

    /// The same for one file; nil when the journal has no such id.
    package func job(_ id: Int64) async throws(JournalError) -> Job? { try await journal.job(id).map(asSeen) }

    /// The same for many files, in their order; ends after the first for which `goesOn` returns false. nil for files
    /// that are not in the journal.
    package func jobs(
        _ ids: [Int64], while goesOn: @escaping @Sendable (Job) -> Bool
    ) async throws(JournalError) -> [Job?] {
        try await journal.jobs(ids) { goesOn(asSeen($0)) }.map { $0.map(asSeen) }
    }

    private func asSeen(_ job: Job) -> Job {
        guard let live else { return job }
        var job = job
        for index in job.deliveries.indices
        where job.deliveries[index].state == .claimed && live.shared.lanes.isWaiting(job.deliveries[index].id) {
            job.deliveries[index].state = .ready
            job.deliveries[index].attempts -= 1
            job.isAtHand = true
        }
        return job
    }

    /// The balance: every file seen is in exactly one state.
    package func balance() async throws(JournalError) -> (
        totals: [FileState: StateTotal], ignored: Int, seen: Int, pending: Int
    ) {
        let totals = try await journal.totals()
        let ignored = live?.roots.reduce(0) { $0 + $1.ignored } ?? 0
        let seen = totals.values.reduce(ignored) { $0 + $1.files }
        return (totals, ignored, seen, totals[.pending]?.files ?? 0)
    }

    /// The small picture in a JPEG file, as its camera made it. nil without one, where the admitted file is no longer in
    /// its place, and where it is not read in time.
    package func picture(of id: Int64) async throws(JournalError) -> [UInt8]? {
        guard let live, let file = try await journal.job(id)?.file, file.mayHavePicture else { return nil }
        // Files that were sent singly have no folder.
        guard file.root.isEmpty || live.isPresent(file.root) else { return nil }
        let found = await live.viewer.look(within: .seconds(5)) { () -> [UInt8]? in
            // A file that cannot be read now has no picture now.
            guard let source = try? SourceFile(opening: file.place), source.opened.isKnown(as: file.identity) else {
                return nil
            }
            // Nor has one that fails while it is read.
            return try? EmbeddedPicture.read(from: source)
        }
        return found ?? nil
    }

    /// The details of a file beside its row: the proved parts of unfinished deliveries, its receipt as JSON, and whether
    /// it may have a picture.
    package typealias JobRecord = (
        parts: [(destination: String, number: Int, size: Int64, etag: String)], receipt: [UInt8]?, mayHavePicture: Bool
    )

    /// - Returns: without a receipt while the file is unfinished, and when it ended long ago; nil when it is not in the
    ///   journal.
    package func story(_ id: Int64) async throws(JournalError) -> JobRecord? {
        guard let job = try await job(id) else { return nil }
        let notes = try await journal.checkpoints(ofJob: id)
        let parts = job.deliveries.flatMap { delivery in
            StoredPart.all(in: notes[delivery.id] ?? [:], fileSize: job.file.identity.size)
                .map { (destination: delivery.destination, number: $0.number, size: $0.size, etag: $0.etag) }
        }
        return (parts, try await journal.receipt(ofJob: id), live != nil && job.file.mayHavePicture)
    }
}

extension FileRow {
    /// By its type and its name alone: a rejected file has no type.
    fileprivate var mayHavePicture: Bool {
        mediaType == "image/jpeg" || ["jpg", "jpeg"].contains(path.extension?.lowercased())
    }
}
