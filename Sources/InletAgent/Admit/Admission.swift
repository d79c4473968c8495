internal import InletConfig
internal import InletCore
internal import InletJournal
internal import InletLinux
internal import SystemPackage

/// The one door into the journal: what must be known of a complete file -> its route -> its key -> durable point 1. It has no
/// state of its own; what differs by who asks is in `AdmissionRules`.
///
/// A retry, a rename and a derived file are no admissions: a row goes on, gets another path, or comes along with its original.
struct Admission: Sendable {
    let shared: Shared
    let routes: RouteTable
    /// Of the root whose files these are; nil where nothing is made of any.
    var deriver: Deriver?

    /// - Parameter routes: nil = those that hold now.
    init(_ shared: Shared) { (self.shared, routes) = (shared, shared.settings.routes) }

    var journal: Journal { shared.journal }
    var board: DestinationRegistry { shared.destinations }
    var log: EventLog { shared.log }
    var health: JournalHealth { shared.health.journal }

    private typealias Outcome = AdmissionResult.Outcome

    /// Takes files into the journal, those that are known by name first.
    ///
    /// - Parameter hashing: where the others are read.
    /// - Returns: what came of each, in any order.
    func admit(_ candidates: [Candidate], _ rules: AdmissionRules, _ hashing: Hashing) async -> [AdmissionResult] {
        let (named, others) = split(candidates, rules)
        return await admit(named, rules) + admit(others: others, rules, hashing)
    }

    /// Apart: those of which the routes need to know no more than their names, nearly all of the thousands that come at once,
    /// and those that must be read, have companions, or something is made of.
    func split(_ candidates: [Candidate], _ rules: AdmissionRules) -> (named: [PlannedFile], others: [Candidate]) {
        var named: [PlannedFile] = []
        var others: [Candidate] = []
        for candidate in candidates {
            if let file = byName(candidate, rules) { named.append(file) } else { others.append(candidate) }
        }
        return (named, others)
    }

    /// Many in one transaction.
    func admit(_ named: [PlannedFile], _ rules: AdmissionRules) async -> [AdmissionResult] {
        zip(named, await commit(named, rules)).map { AdmissionResult(arrival: $0.record.arrival, outcome: $1) }
    }

    /// Side by side: one that must be read holds no other up.
    func admit(others: [Candidate], _ rules: AdmissionRules, _ hashing: Hashing) async -> [AdmissionResult] {
        await withTaskGroup(of: AdmissionResult.self) { group in
            for candidate in others { group.addTask { await admitAlone(candidate, rules, hashing) } }
            return await group.reduce(into: []) { $0.append($1) }
        }
    }

    /// What the journal remembers of files.
    func recall(_ arrivals: [Arrival], tolerance: Int64) async -> Result<[KnownFile], JournalError> {
        if arrivals.isEmpty { return .success([]) }
        do throws(JournalError) {
            return .success(try await journal.recall(arrivals, tolerance: tolerance))
        } catch {
            health.fails(error)
            return .failure(error)
        }
    }

    // MARK: - Where a file goes

    /// nil for a file of which more than its name must be known, or that has companions.
    private func byName(_ candidate: Candidate, _ rules: AdmissionRules) -> PlannedFile? {
        guard case .main(let companions) = candidate.role, companions.isEmpty,
            deriver == nil || routes.derivations(of: candidate.arrival, facts: candidate.facts).isEmpty,
            case .plan(let plan) = routes.plan(candidate.arrival, facts: candidate.facts, at: .now)
        else { return nil }
        return planned(candidate.arrival, plan, rules)
    }

    /// What `routes` say of a file, with every fact that they ask for.
    func decide(
        _ arrival: Arrival, by routes: RouteTable, at place: RootedPath, _ facts: inout Facts, _ hashing: Hashing
    ) async throws -> RouteDecision {
        while true {
            let decision = routes.plan(arrival, facts: facts, at: .now)
            guard case .needs(let wanted) = decision else { return decision }
            if facts.missing(of: wanted).contains(.sequence) { facts.sequence = try await journal.nextSequence() }
            try await hashing.learn(wanted, of: place, &facts)
        }
    }

    /// - Parameter arrival: the file as its routes see it.
    func planned(_ arrival: Arrival, _ plan: Plan, _ rules: AdmissionRules) -> PlannedFile {
        let size = arrival.identity.size
        let storages = board.storages(plan.destinations, path: arrival.path, fields: plan.with)
        let steps = DeliverySteps(plan.destinations, storages: storages)
        let lanes = Dictionary(uniqueKeysWithValues: steps.destinations.map { ($0, board.lane(of: size, to: $0)) })
        var record = FileAdmission(rules.row(of: arrival), plan: plan, lanes: lanes, uptimes: board.uptimes())
        record.storages = storages
        if rules.takesOthers { record.unit = routes.named(plan.route)?.unit(of: arrival.path) }
        return PlannedFile(record, plan)
    }

    // MARK: - One by one

    private func admitAlone(_ candidate: Candidate, _ rules: AdmissionRules, _ hashing: Hashing) async
        -> AdmissionResult
    {
        var result = AdmissionResult(arrival: candidate.arrival, outcome: .gone, facts: candidate.facts)
        do {
            switch candidate.role {
            case .late(let companion, let main): result.outcome = await admitLate(candidate.arrival, companion, main)
            case .main(let companions): try await admit(&result, companions, candidate.rule, rules, hashing)
            }
        } catch let error as DeliveryError where error.verdict == .sourceGone {
            result.outcome = .gone
        } catch let error as SystemError where error.isMissing {
            result.outcome = .gone
        } catch  where error.isOfFile {
            result.outcome = .unreadable(why: "\(error)")
        } catch {
            log.emit(.fileError(path: candidate.arrival.root.pushing(candidate.arrival.path), reason: "\(error)"))
            result.outcome = .unwritten
        }
        // Whatever it came to: what was made of it is needed only while the file comes back.
        if !result.outcome.comesBack { deriver?.close(candidate.arrival.path, kept: []) }
        return result
    }

    private func admit(
        _ result: inout AdmissionResult, _ companions: [FoundCompanion], _ rule: SourceRule, _ rules: AdmissionRules,
        _ hashing: Hashing
    ) async throws {
        let arrival = result.arrival
        try await hashing.learnFirst(of: arrival, by: routes, at: arrival.place, &result.facts)
        let mediaType = result.facts.mediaType
        if let route = routes.route(for: arrival.path, size: arrival.identity.size, mediaType: mediaType) {
            do {
                result.facts.add(try await sidecar(among: companions, rule, hashing.pool))
            } catch let error as ConfigErrors {
                return await reject(&result, route, SidecarFile.reason(error), .badSidecar, companions)
            }
        }
        guard let derived = derived(of: arrival, result.facts) else {
            return result.outcome = .later(after: .seconds(30), why: "waiting for its derived files")
        }
        switch try await decide(arrival, by: routes, at: arrival.place, &result.facts, hashing) {
        case .plan(let plan): await commit(&result, planned(arrival, plan, rules), companions + derived, rules)
        case .rejected(let route, let reason): await reject(&result, route, reason, .rejected, companions)
        case .unmatched, .needs: result.outcome = .unmatched
        }
    }

    /// What the sidecar among `companions` says of its file; nothing when there is none, or no longer.
    ///
    /// - Throws: `ConfigErrors` for one that cannot be understood.
    private func sidecar(
        among companions: [FoundCompanion], _ rule: SourceRule, _ pool: BlockingPool
    ) async throws -> Sidecar {
        guard let sidecar = companions.first(where: { $0.companion.kind == .metadata }) else { return Sidecar() }
        do {
            return try await SidecarFile.read(sidecar.arrival.place, by: rule, on: pool)
        } catch let error as SystemError where error.isMissing {
            return Sidecar()
        }
    }

    /// What was made of a file, each as a companion of it; nil while that is under way.
    private func derived(of arrival: Arrival, _ facts: Facts) -> [FoundCompanion]? {
        guard let deriver else { return [] }
        let rules = routes.derivations(of: arrival, facts: facts)
        if rules.isEmpty { return [] }
        return switch deriver.standing(of: arrival, rules) {
        case .underWay: nil
        case .made(let found): found
        }
    }

    // MARK: - Durable point 1

    /// Of files that stand for themselves, and what is said of it. - Returns: what came of each, in their order.
    func commit(_ files: [PlannedFile], _ rules: AdmissionRules) async -> [AdmissionResult.Outcome] {
        let limit = rules.isLimited ? shared.room.limit : QueueLimit()
        var outcomes: [Outcome] = []
        for start in stride(from: 0, to: files.count, by: rules.group) {
            outcomes += await commit(Array(files[start..<min(start + rules.group, files.count)]), within: limit)
        }
        return outcomes
    }

    private func commit(_ files: [PlannedFile], within limit: QueueLimit) async -> [Outcome] {
        do {
            Failpoint.admitting.reached()
            let outcomes = try await journal.admit(files.map(\.record), within: limit, at: .now) { tell(files, $0) }
            health.works()
            return outcomes.map { Outcome($0) }
        } catch {
            // One that the journal refuses must not keep the others out.
            var outcomes: [Outcome] = []
            for file in files {
                let (main, _) = await commit(file.record, within: limit) { main, _ in tell([file], [main]) }
                outcomes.append(main)
            }
            return outcomes
        }
    }

    /// Of a file with its companions.
    ///
    /// - Parameter durable: told of the outcomes before any of the files can be claimed.
    private func commit(
        _ record: FileAdmission, within limit: QueueLimit,
        durable: @escaping @Sendable (AdmissionOutcome, _ companions: [AdmissionOutcome]) -> Void = { _, _ in }
    ) async -> (main: Outcome, companions: [AdmissionOutcome]) {
        do {
            Failpoint.admitting.reached()
            let (main, companions) = try await journal.admitSet(record, within: limit, at: .now, durable: durable)
            health.works()
            return (Outcome(main), companions)
        } catch {
            health.fails(error)
            return (.unwritten, [])
        }
    }

    private func commit(
        _ result: inout AdmissionResult, _ file: PlannedFile, _ companions: [FoundCompanion], _ rules: AdmissionRules
    ) async {
        var file = file
        file.record.companions = companions.map { companion(of: $0.companion, $0.arrival) }
        let (told, route, destinations) = (file, file.plan.route, file.record.steps.destinations)
        let (main, others) = await commit(file.record, within: rules.isLimited ? shared.room.limit : QueueLimit()) {
            main, others in
            tell([told], [main])
            if case .admitted = main { tell(companions, others, route, destinations) }
        }
        result.outcome = main
        closeDerived(of: result, zip(companions, others))
        if case .admitted = main { result.companions = await conclude(companions, others, route) }
    }

    private func reject(
        _ result: inout AdmissionResult, _ route: Route, _ reason: String, _ code: ErrorCode,
        _ companions: [FoundCompanion]
    ) async {
        let arrival = result.arrival
        var record = FileAdmission(arrival, rejectedBy: route, reason: reason, code: code)
        record.companions = companions.map { companion(of: $0.companion, $0.arrival) }
        record.unit = route.unit(of: arrival.path)
        let (main, others) = await commit(record, within: QueueLimit())
        result.outcome = main
        guard case .rejected(let id) = main else { return }
        Failpoint.admitted.reached()
        log.emit(
            .fileRejected(job: id, path: arrival.root.pushing(arrival.path), route: route.name, reason: reason))
        shared.signals.raise(.finishable)
        tell(companions, others, route.name, [])
        result.companions = await conclude(companions, others, route.name)
    }

    /// What the journal has taken stays until it is delivered; the rest is not needed any more.
    private func closeDerived(
        of result: AdmissionResult, _ companions: some Sequence<(FoundCompanion, AdmissionOutcome)>
    ) {
        guard let deriver, !result.outcome.comesBack else { return }
        var kept: Set<FilePath> = []
        for (found, outcome) in companions where found.companion.kind == .derived {
            if case .admitted = outcome { kept.insert(found.arrival.path) }
        }
        deriver.close(result.arrival.path, kept: kept)
    }

    private func companion(of companion: Companion, _ arrival: Arrival) -> CompanionAdmission {
        let ending = FileName(arrival.path).plainExtension
        return CompanionAdmission(
            arrival, companion, category: Category.byExtension(ending), mediaType: MediaType.byExtension(ending),
            lanes: companion.kind == .marker ? [:] : board.sidecarLanes(of: arrival.identity.size))
    }

    /// Of a companion whose file is in the journal.
    private func admitLate(_ arrival: Arrival, _ companion: Companion, _ main: Int64) async -> Outcome {
        let found = FoundCompanion(companion: companion, arrival: arrival)
        do throws(JournalError) {
            Failpoint.admitting.reached()
            let outcome = try await journal.admitLate(
                self.companion(of: companion, arrival), main: main, uptimes: board.uptimes(), at: .now
            ) { outcome, job in
                if outcome.isNew { Failpoint.admitted.reached() }
                guard let job else { return }
                tell([found], [outcome], job.file.route ?? "", job.deliveries.map(\.destination))
            }
            health.works()
            if !Outcome(outcome).comesBack {
                _ = await conclude([found], [outcome], try await journal.job(main)?.file.route ?? "")
            }
            return Outcome(outcome)
        } catch {
            health.fails(error)
            return .unwritten
        }
    }

    // MARK: - What is said of files once they are in the journal, and who is woken by it

    /// Says that files are in the journal, before anybody can claim them: on the thread that writes it, so that it is quick. All
    /// lines before any signal, for who is woken by it.
    func tell(_ files: [PlannedFile], _ outcomes: [AdmissionOutcome]) {
        var admitted: [(id: Int64, file: PlannedFile)] = []
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
            let steps = file.record.steps
            for name in steps.first {
                let lane = LaneID(destination: name, lane: file.record.lanes[name] ?? .big)
                shared.signals.raise(.deliverable(lane))
            }
            board.admitted(for: steps.destinations)
        }
    }

    private static func events(_ id: Int64, _ file: PlannedFile) -> [AgentEvent] {
        let (arrival, plan) = (file.record.arrival, file.plan)
        let path = arrival.root.pushing(arrival.path)
        let admitted = AgentEvent.jobAdmitted(
            job: id, path: path, route: plan.route, size: arrival.identity.size,
            deliveries: file.record.steps.destinations, labels: plan.labels)
        return [admitted] + file.notes.map { .fileNote(job: id, path: path, route: plan.route, note: $0) }
    }

    private func tellDuplicate(_ id: Int64, _ file: PlannedFile, sameAs first: Int64) {
        Failpoint.admitted.reached()
        let arrival = file.record.arrival
        log.emit(
            .jobDuplicate(
                job: id, path: arrival.root.pushing(arrival.path), route: file.plan.route,
                destinations: file.record.steps.destinations, sameAs: first))
        shared.signals.raise(.finishable)
    }

    /// The same of companions.
    func tell(
        _ companions: [FoundCompanion], _ outcomes: [AdmissionOutcome], _ route: String, _ destinations: [String]
    ) {
        for (found, outcome) in zip(companions, outcomes) {
            guard case .admitted(let id) = outcome else { continue }
            log.emit(
                .jobAdmitted(
                    job: id, path: found.arrival.root.pushing(found.arrival.path), route: route,
                    size: found.arrival.identity.size, deliveries: destinations))
        }
    }

    /// Says which companions were rejected, and wakes who has to do with all of them. - Returns: those that the journal has now.
    func conclude(
        _ companions: [FoundCompanion], _ outcomes: [AdmissionOutcome], _ route: String
    ) async -> [FilePath] {
        var known: [FilePath] = []
        for (found, outcome) in zip(companions, outcomes) {
            switch outcome {
            case .busy, .full: continue
            case .known, .duplicate, .admitted: break
            case .rejected(let id):
                // The file is rejected, and status says why; only this line of the log lacks the reason.
                let reason = try? await journal.job(id)?.file.reason
                let path = found.arrival.root.pushing(found.arrival.path)
                log.emit(.fileRejected(job: id, path: path, route: route, reason: reason ?? ""))
            }
            known.append(found.arrival.path)
        }
        if !companions.isEmpty {
            shared.signals.raiseDeliverable()
            shared.signals.raise(.finishable)
        }
        return known
    }
}

extension AdmissionOutcome {
    /// Whether the journal has a row for the file that it had not before.
    var isNew: Bool {
        switch self {
        case .admitted, .rejected, .duplicate: true
        case .known, .busy, .full: false
        }
    }
}
