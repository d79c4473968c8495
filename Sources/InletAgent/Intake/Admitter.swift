internal import InletConfig
internal import InletCore
internal import InletJournal
internal import InletLinux
internal import InletMedia
internal import InletPipelines
internal import SystemPackage

/// Where files are read, for their checksums and dates, and who is told that this goes on.
struct Hashing: Sendable {
    let pool: BlockingPool
    /// Called at every chunk.
    var progress: @Sendable () -> Void = {}
}

/// Takes a settled file into the journal: facts, route, key, durable point 1.
struct Admitter: Sendable {
    enum Outcome: Sendable, Equatable {
        case admitted
        /// Rejected, ignored or known: nothing more to do.
        case settled
        case unmatched
        /// Look again later: an older content is still on its way, the disk is full, the file cannot be read now.
        case later
        /// There is no room in the queue: it stays where it is until there is.
        case full
    }

    let journal: Journal
    var routes: RouteTable
    let board: DestinationBoard
    let log: EventLog
    let signals: Signals
    let health: JournalHealth
    let room: QueueRoom
    var looks = KeptLooks()
    /// Of the root whose files these are; nil where nothing is made of any.
    var deriver: Deriver?

    /// What became of a file, and which of its companions are in the journal now.
    struct Result: Sendable {
        var outcome: Outcome
        var companions: [FilePath] = []
        /// Of a file that cannot be read now: said with others of its folder.
        var why: String?
    }

    func admit(_ candidate: Candidate, hashing: Hashing) async -> Result {
        let result = await take(candidate, hashing)
        // Whatever it came to: what was made of it is needed only while the file comes back.
        if result.outcome != .later, result.outcome != .full { deriver?.close(candidate.arrival.path, kept: []) }
        return result
    }

    private func take(_ candidate: Candidate, _ hashing: Hashing) async -> Result {
        let arrival = candidate.arrival
        do {
            switch candidate.role {
            case .late(let companion, let main): return Result(outcome: await admitLate(arrival, companion, main))
            case .main(let companions): return try await admit(arrival, companions, candidate.rule, hashing)
            }
        } catch let error as DeliveryError where error.verdict == .sourceGone {
            return Result(outcome: .settled)
        } catch let error as SystemError where error.isMissing {
            return Result(outcome: .settled)
        } catch  where error.isOfFile {
            return Result(outcome: .later, why: "\(error)")
        } catch {
            log.emit(.fileTrouble(path: arrival.root.pushing(arrival.path), reason: "\(error)"))
            return Result(outcome: .later)
        }
    }

    private func admit(
        _ arrival: Arrival, _ companions: [SetFinder.Found], _ rule: SourceRule, _ hashing: Hashing
    ) async throws -> Result {
        var facts = try await firstFacts(of: arrival, at: arrival.place, hashing)
        if let route = routes.route(for: arrival.path, size: arrival.identity.size, mediaType: facts.mediaType) {
            do {
                facts.add(try await sidecar(among: companions, rule, hashing.pool))
            } catch let error as ConfigErrors {
                return await reject(arrival, route, SidecarFile.reason(error), .badSidecar, companions)
            }
        }
        guard let derived = derived(of: arrival, facts) else { return Result(outcome: .later) }
        switch try await decide(arrival, by: routes, at: arrival.place, facts: facts, hashing: hashing) {
        case .plan(let plan): return await admit(arrival, plan, companions + derived)
        case .rejected(let route, let reason): return await reject(arrival, route, reason, .rejected, companions)
        case .unmatched, .needs: return Result(outcome: .unmatched)
        }
    }

    /// What `routes` say of the file at `path`, with every fact that they ask for.
    func decide(
        _ arrival: Arrival, by routes: RouteTable, at path: RootedPath, facts: Facts = Facts(), hashing: Hashing
    ) async throws -> RouteDecision {
        var facts = facts
        while true {
            let decision = routes.plan(arrival, facts: facts, at: .now)
            guard case .needs(let wanted) = decision else { return decision }
            try await learn(wanted, of: path, &facts, hashing)
        }
    }

    private func learn(
        _ wanted: Set<Fact>, of path: RootedPath, _ facts: inout Facts, _ hashing: Hashing
    ) async throws {
        let missing = facts.missing(of: wanted)
        if missing.contains(.sequence) { facts.sequence = try await journal.nextSequence() }
        if missing.contains(.mediaType) { facts.mediaType = try await Self.mediaType(path, hashing.pool) }
        if missing.contains(.captured) { facts.captured = try await captured(path, hashing.pool) }
        let algorithms = Set(missing.compactMap(\.algorithm))
        if algorithms.isEmpty { return }
        let source = try SourceFile(opening: path)
        facts.add(
            try await Fingerprint.digests(algorithms, of: source, on: hashing.pool, progress: hashing.progress))
    }

    /// A file that cannot be read now is looked at again later: a key is made once, and must not hold the mtime because
    /// a disk was slow to wake.
    private func captured(_ path: RootedPath, _ pool: BlockingPool) async throws -> Captured {
        try await pool.run { () throws(SystemError) in
            Captured(try CaptureDate.read(from: try SourceFile(opening: path)))
        }
    }

    private func admit(_ arrival: Arrival, _ plan: Plan, _ companions: [SetFinder.Found]) async -> Result {
        var admission = admission(arrival, plan, path: arrival.path)
        admission.companions = admissions(of: companions)
        admission.unit = routes.named(plan.route)?.unit(of: arrival.path)
        let file = PlainAdmission(admission: admission, plan: plan)
        let destinations = admission.steps.destinations
        let outcome = await commitSet(admission, within: room.limit) { main, others in
            tell([file], [main])
            if case .admitted = main { tell(companions, others, plan.route, destinations) }
        }
        guard let (main, others) = outcome else { return Result(outcome: .later) }
        closeDerived(of: arrival, main, zip(companions, others))
        guard case .admitted = main else { return Result(outcome: main.refusal) }
        return Result(outcome: .admitted, companions: await conclude(companions, others, plan.route))
    }

    /// - Parameter path: the file's below its root, as routes see it.
    func admission(_ arrival: Arrival, _ plan: Plan, path: FilePath) -> FileAdmission {
        let size = arrival.identity.size
        let storages = board.storages(plan.destinations, path: path, fields: plan.with)
        let steps = DeliverySteps(plan.destinations, storages: storages)
        let lanes = Dictionary(uniqueKeysWithValues: steps.destinations.map { ($0, board.lane(of: size, to: $0)) })
        var admission = FileAdmission(arrival, plan: plan, lanes: lanes, uptimes: board.uptimes())
        admission.storages = storages
        return admission
    }

    /// Says that files are in the journal, before anybody can claim them: on the thread that writes it, so that it is quick. All
    /// lines before any signal, for who is woken by it.
    func tell(_ files: [PlainAdmission], _ outcomes: [AdmissionOutcome]) {
        var admitted: [(id: Int64, file: PlainAdmission)] = []
        for (file, outcome) in zip(files, outcomes) {
            switch outcome {
            case .admitted(let id): admitted.append((id, file))
            case .duplicate(let id, let first): tellDuplicate(id, file, sameAs: first)
            case .rejected, .known, .busy, .full: break
            }
        }
        for _ in admitted { Failpoint.admitted.reached() }
        log.emit(admitted.flatMap { Self.events($0.id, $0.file) })
        for (_, file) in admitted {
            let (size, steps) = (file.admission.arrival.identity.size, file.admission.steps)
            for lane in Set(steps.first.map { board.lane(of: size, to: $0) }) { signals.raise(.deliverable(lane)) }
            board.admitted(for: steps.destinations)
        }
    }

    private static func events(_ id: Int64, _ file: PlainAdmission) -> [AgentEvent] {
        let (arrival, plan) = (file.admission.arrival, file.plan)
        let path = arrival.root.pushing(arrival.path)
        let admitted = AgentEvent.jobAdmitted(
            job: id, path: path, route: plan.route, size: arrival.identity.size,
            deliveries: file.admission.steps.destinations, labels: plan.labels)
        return [admitted] + file.notes.map { .fileNote(job: id, path: path, route: plan.route, note: $0) }
    }

    private func tellDuplicate(_ id: Int64, _ file: PlainAdmission, sameAs first: Int64) {
        Failpoint.admitted.reached()
        let arrival = file.admission.arrival
        log.emit(
            .jobDuplicate(
                job: id, path: arrival.root.pushing(arrival.path), route: file.plan.route,
                destinations: file.admission.steps.destinations, sameAs: first))
        signals.raise(.finishable)
    }

    private func reject(
        _ arrival: Arrival, _ route: Route, _ reason: String, _ code: ErrorCode, _ companions: [SetFinder.Found]
    ) async -> Result {
        var admission = FileAdmission(arrival, rejectedBy: route, reason: reason, code: code)
        admission.companions = admissions(of: companions)
        admission.unit = route.unit(of: arrival.path)
        guard let (main, others) = await commitSet(admission) else { return Result(outcome: .later) }
        guard case .rejected(let id) = main else { return Result(outcome: main.refusal) }
        Failpoint.admitted.reached()
        log.emit(
            .fileRejected(
                job: id, path: arrival.root.pushing(arrival.path), route: route.name, reason: reason))
        signals.raise(.finishable)
        tell(companions, others, route.name, [])
        return Result(outcome: .settled, companions: await conclude(companions, others, route.name))
    }

    /// Durable point 1 for a file with its companions; nil when the journal does not take them now.
    ///
    /// - Parameters:
    ///   - limit: none for what a person asks for.
    ///   - durable: told of the outcomes before any of the files can be claimed.
    func commitSet(
        _ admission: FileAdmission, within limit: QueueLimit = QueueLimit(),
        durable: @escaping @Sendable (AdmissionOutcome, _ companions: [AdmissionOutcome]) -> Void = { _, _ in }
    ) async -> (main: AdmissionOutcome, companions: [AdmissionOutcome])? {
        do {
            Failpoint.admitting.reached()
            let outcome = try await journal.admitSet(admission, within: limit, at: .now, durable: durable)
            health.works()
            return outcome
        } catch {
            health.fails(error)
            return nil
        }
    }
}

extension AdmissionOutcome {
    /// Something of the path must end first.
    var isBusy: Bool { if case .busy = self { true } else { false } }

    /// Whether the journal has a row for the file that it had not before.
    var isNew: Bool {
        switch self {
        case .admitted, .rejected, .duplicate: true
        case .known, .busy, .full: false
        }
    }

    /// What becomes of a file of which nothing is to be sent.
    var refusal: Admitter.Outcome {
        switch self {
        case .busy: .later
        case .full: .full
        case .admitted, .rejected, .duplicate, .known: .settled
        }
    }
}
