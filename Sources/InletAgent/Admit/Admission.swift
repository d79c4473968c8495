internal import InletConfig
internal import InletCore
internal import InletJournal
internal import InletLinux
internal import SystemPackage

/// The one door into the journal: facts about a complete file -> its route -> its key -> durable point 1. It has no
/// state of its own. `AdmissionReason` holds all differences by the cause of an admission.
///
/// A retry, a rename and a derived file are not admissions: a row continues, gets another path, or comes along with its
/// original.
struct Admission: Sendable {
    let shared: Shared
    let routes: RouteTable
    /// The derived files of the root; nil where no rule derives any.
    var deriver: Deriver?

    /// - Parameter isOfPlace: whether it is for the files of a share, each of which goes alone.
    init(_ shared: Shared, isOfPlace: Bool = false) {
        let table = shared.settings.routes
        (self.shared, routes) = (shared, isOfPlace ? table.forPlaces : table)
    }

    var journal: Journal { shared.journal }
    var registry: DestinationRegistry { shared.destinations }
    var log: EventLog { shared.log }
    var health: JournalHealth { shared.health.journal }

    /// Admits files to the journal, those whose routes need only a name first.
    ///
    /// - Parameter hashing: where the other files are read.
    /// - Returns: the result for each file, in their order.
    func admit(_ candidates: [Candidate], _ why: AdmissionReason, _ hashing: Hashing) async -> [AdmissionResult] {
        let (named, others) = split(candidates, why)
        var results = await commit(named, why)
        if others.isEmpty { return results }
        results += await admit(others: others, why, hashing)
        let places = Dictionary(candidates.enumerated().map { ($1.arrival.path, $0) }) { first, _ in first }
        return results.sorted { places[$0.arrival.path] ?? 0 < places[$1.arrival.path] ?? 0 }
    }

    /// Separates files whose routes need only their names, nearly all in a burst of thousands, from files that must be
    /// read, have companions or have derived files.
    func split(_ candidates: [Candidate], _ why: AdmissionReason) -> (named: [FileAdmission], others: [Candidate]) {
        var named: [FileAdmission] = []
        var others: [Candidate] = []
        named.reserveCapacity(candidates.count)
        let terms = registry.terms()
        for candidate in candidates {
            if candidate.late == nil, candidate.companions.isEmpty,
                deriver == nil || routes.derivations(of: candidate.arrival, facts: candidate.facts).isEmpty,
                case .plan(let plan) = routes.plan(candidate.arrival, facts: candidate.facts, at: .now)
            {
                named.append(planned(candidate.arrival, plan, why, terms))
            } else {
                others.append(candidate)
            }
        }
        return (named, others)
    }

    /// Side by side: a file that must be read delays no other.
    func admit(others: [Candidate], _ why: AdmissionReason, _ hashing: Hashing) async -> [AdmissionResult] {
        await withTaskGroup(of: AdmissionResult.self) { group in
            for candidate in others { group.addTask { await admitAlone(candidate, why, hashing) } }
            return await group.reduce(into: []) { $0.append($1) }
        }
    }

    /// The journal's record of the files, and the fleet's of those in a share. - Returns: or why nobody can tell now.
    func recall(_ arrivals: [FoundFile], tolerance: Int64) async -> Result<[KnownFile], Refusal> {
        if arrivals.isEmpty { return .success([]) }
        var known: [KnownFile]
        do throws(JournalError) {
            known = try await journal.recall(arrivals, tolerance: tolerance)
        } catch {
            health.fails(error)
            return .failure(Refusal("the journal cannot be read"))
        }
        let new = known.indices.filter { known[$0].isNew }
        do throws(FleetError) {
            if let answer = try await shared.fleet.places.known(new.map { arrivals[$0] }) {
                for (place, isKnown) in zip(new, answer) where isKnown { known[place] = .known }
            }
        } catch {
            return .failure(Refusal("waiting for the fleet: \(error.message)"))
        }
        return .success(known)
    }

    // MARK: - Where a file goes

    /// The plan of `routes` for a file, with every fact that they ask for.
    func decide(
        _ arrival: FoundFile, by routes: RouteTable, at place: RootedPath, _ facts: inout FileProperties,
        _ hashing: Hashing
    ) async throws -> RoutingResult {
        try await hashing.decide(arrival, by: routes, at: place, &facts) { try await journal.nextSequence() }
    }

    /// Blocks for a look at the folder when a name has several spellings.
    ///
    /// - Parameters:
    ///   - arrival: the file as its routes see it.
    ///   - terms: what the destinations say; nil asks them.
    func planned(
        _ arrival: FoundFile, _ plan: Plan, _ why: AdmissionReason, _ terms: AdmissionTerms? = nil
    ) -> FileAdmission {
        let terms = terms ?? registry.terms()
        var file = FileAdmission(why.row(of: arrival), plan: plan, lanes: [:], uptimes: terms.uptimes)
        let storages = terms.storages(plan.destinations, path: arrival.path, fields: plan.with)
        if !storages.isEmpty { file.storages = storages }
        for step in file.steps.steps {
            file.lanes[step.destination] = terms.lane(of: arrival.identity.size, to: step.destination)
        }
        if routes.hasUnits, !why.isAsked { file.unit = routes.named(plan.route)?.unit(of: arrival.path) }
        if let note = file.arrival.normalizationConflict, routes.named(plan.route)?.cleansNames(for: plan) != false {
            file.plan?.notes.append(note)
        }
        return file
    }

    // MARK: - One by one

    private func admitAlone(_ candidate: Candidate, _ why: AdmissionReason, _ hashing: Hashing) async
        -> AdmissionResult
    {
        var facts = candidate.facts
        var result = AdmissionResult(arrival: candidate.arrival, outcome: .later)
        do {
            if let (companion, main) = candidate.late {
                result.outcome = await admitLate(candidate.arrival, companion, main)
            } else {
                result = try await admit(candidate, why, hashing, &facts)
            }
        } catch let error as DeliveryError where error.verdict == .sourceGone {
            result.outcome = .gone
        } catch let error as SystemError where error.isMissing {
            result.outcome = .gone
        } catch  where error.isOfFile {
            result.outcome = .unreadable(why: "\(error)")
        } catch {
            log.emit(.fileError(path: candidate.arrival.root.pushing(candidate.arrival.path), reason: "\(error)"))
        }
        // Derived files are kept only while the file will be admitted again.
        if !result.outcome.comesBack { deriver?.close(candidate.arrival.path, kept: []) }
        result.facts = facts
        return result
    }

    private func admit(
        _ candidate: Candidate, _ why: AdmissionReason, _ hashing: Hashing, _ facts: inout FileProperties
    ) async throws -> AdmissionResult {
        let (arrival, companions) = (candidate.arrival, candidate.companions)
        try await hashing.learnFirst(of: arrival, by: routes, at: arrival.place, &facts)
        if let route = routes.route(for: arrival.path, size: arrival.identity.size, facts: facts) {
            do {
                facts.add(try await sidecar(among: companions, candidate.rule, hashing.pool))
            } catch let error as ConfigErrors {
                let reason = SidecarFile.reason(error)
                return await commit(
                    FileAdmission(arrival, rejectedBy: route, reason: reason, code: .badSidecar), companions, why)
            }
        }
        guard let derived = derived(of: arrival, facts) else {
            return AdmissionResult(arrival: arrival, outcome: .later)
        }
        switch try await decide(arrival, by: routes, at: arrival.place, &facts, hashing) {
        case .plan(let plan): return await commit(planned(arrival, plan, why), companions + derived, why)
        case .rejected(let route, let reason):
            return await commit(FileAdmission(arrival, rejectedBy: route, reason: reason), companions, why)
        case .needs(let wanted):
            return AdmissionResult(arrival: arrival, outcome: .later, awaited: Set(wanted.compactMap(\.label)))
        case .unmatched: return AdmissionResult(arrival: arrival, outcome: .unmatched)
        }
    }

    /// The content of the sidecar among `companions`; empty when there is none, or no longer.
    ///
    /// - Throws: `ConfigErrors` for a sidecar that is not valid.
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

    /// The derived files of a file, each as a companion; nil while a program still runs.
    private func derived(of arrival: FoundFile, _ facts: FileProperties) -> [FoundCompanion]? {
        guard let deriver else { return [] }
        let rules = routes.derivations(of: arrival, facts: facts)
        if rules.isEmpty { return [] }
        return deriver.made(of: arrival, rules)
    }

    // MARK: - Durable point 1

    /// - Parameter isAgain: for a file that the journal refused once, alone or beside others.
    /// - Returns: the result for each file, in their order.
    func commit(_ files: [FileAdmission], _ why: AdmissionReason, isAgain: Bool = false) async -> [AdmissionResult] {
        if let placed = await shared.fleet.places.admit(files.filter { $0.plan != nil }) {
            for result in placed where !result.outcome.comesBack {
                let arrival = result.arrival
                let path = arrival.root.pushing(arrival.path)
                shared.arrivals.note(Arrival(job: 0, path: path, at: .now), in: arrival.root)
            }
            // A rejected file is this journal's.
            return placed + (await commit(files.filter { $0.plan == nil }, why))
        }
        let limit = why.isAsked ? QueueLimit() : shared.room.limit
        var results: [AdmissionResult] = []
        for group in files.groups(of: why.group) {
            do throws(JournalError) {
                Failpoint.admitting.reached()
                let admitted = try await journal.admit(group, within: limit, at: .now) { tell(group, $0) }
                health.works()
                for (file, admitted) in zip(group, admitted) {
                    var result = AdmissionResult(arrival: file.arrival, outcome: .journal(admitted.main))
                    closeDerived(of: file, admitted)
                    if !file.companions.isEmpty {
                        result.companions = await conclude(file.companions, admitted.companions, file.route)
                    }
                    results.append(result)
                }
            } catch {
                // One refused file must not keep the others out, nor other writes in the same transaction.
                if !isAgain {
                    for file in group { results += await commit([file], why, isAgain: true) }
                } else {
                    health.fails(error)
                    results += group.map { AdmissionResult(arrival: $0.arrival, outcome: .later) }
                }
            }
        }
        return results
    }

    private func commit(
        _ file: FileAdmission, _ companions: [FoundCompanion], _ why: AdmissionReason
    ) async -> AdmissionResult {
        var file = file
        file.companions = companions.map { companion(of: $0.companion, $0.arrival) }
        return await commit([file], why)[0]
    }

    /// Files in the journal are kept until they are delivered; the others are no longer needed.
    private func closeDerived(of file: FileAdmission, _ admitted: AdmittedFile) {
        guard let deriver, !admitted.main.comesBack else { return }
        var kept: Set<FilePath> = []
        for (companion, outcome) in zip(file.companions, admitted.companions) where companion.companion.kind == .derived
        {
            if case .admitted = outcome { kept.insert(companion.arrival.path) }
        }
        deriver.close(file.arrival.path, kept: kept)
    }

    private func companion(of companion: Companion, _ arrival: FoundFile) -> CompanionAdmission {
        let ending = FileName(arrival.path).plainExtension
        return CompanionAdmission(
            arrival, companion, category: MediaType.category(byExtension: ending),
            mediaType: MediaType.byExtension(ending),
            lanes: companion.kind == .marker ? [:] : registry.sidecarLanes(of: arrival.identity.size))
    }

    /// A companion whose file is in the journal.
    private func admitLate(
        _ arrival: FoundFile, _ companion: Companion, _ main: Int64
    ) async -> AdmissionResult.Outcome {
        let companion = self.companion(of: companion, arrival)
        do throws(JournalError) {
            Failpoint.admitting.reached()
            let outcome = try await journal.admitLate(companion, main: main, uptimes: registry.uptimes(), at: .now) {
                outcome, job in
                switch outcome {
                case .admitted, .rejected, .duplicate: Failpoint.admitted.reached()
                case .known, .busy, .full: break
                }
                guard let job else { return }
                log.emit(
                    Self.events([companion], [outcome], job.file.route ?? "", job.deliveries.map(\.destination)))
            }
            health.works()
            if !outcome.comesBack {
                _ = await conclude([companion], [outcome], try await journal.job(main)?.file.route ?? "")
            }
            return .journal(outcome)
        } catch {
            health.fails(error)
            return .later
        }
    }

    // MARK: - Log lines and signals after admission

    /// Logs admissions before a worker can claim them: on the journal's writer thread, so it must be quick. All lines
    /// come before any signal, so that woken services find them in the log.
    private func tell(_ files: [FileAdmission], _ outcomes: [AdmittedFile]) {
        var events: [AgentEvent] = []
        events.reserveCapacity(files.count)
        var news = AdmissionNews()
        for (file, admitted) in zip(files, outcomes) {
            guard let job = admitted.main.newRow else { continue }
            let path = file.arrival.root.pushing(file.arrival.path)
            let (route, steps) = (file.route, file.steps)
            news.note(Arrival(job: job, path: path, at: .now), in: file.arrival.root)
            switch admitted.main {
            case .admitted(let id):
                events.append(
                    .jobAdmitted(
                        job: id, path: path, route: route, size: file.arrival.identity.size,
                        deliveries: steps.destinations, labels: file.plan?.labels ?? [:]))
                events += (file.plan?.notes ?? []).map { .fileNote(job: id, path: path, route: route, note: $0) }
                events += Self.events(file.companions, admitted.companions, route, steps.destinations)
                news.note(steps, file.lanes)
            case .duplicate(let id, let first):
                events.append(
                    .jobDuplicate(job: id, path: path, route: route, destinations: steps.destinations, sameAs: first))
                news.finishable += 1
            case .rejected(let id):
                let reason = file.rejection?.reason ?? ""
                events.append(.fileRejected(job: id, path: path, route: route, reason: reason))
                news.finishable += 1
            case .known, .busy, .full: continue
            }
            Failpoint.admitted.reached()
        }
        for (root, arrival) in news.arrivals { shared.arrivals.note(arrival, in: root) }
        log.emit(events)
        for (lane, count) in news.lanes { shared.signals.raise(.deliverable(lane), times: count) }
        shared.signals.raise(.fleet(.keys), .fleet(.shares))
        if news.finishable > 0 { shared.signals.raise(.finishable, times: news.finishable) }
        registry.admitted(for: news.destinations)
    }

    private static func events(
        _ companions: [CompanionAdmission], _ outcomes: [AdmissionOutcome], _ route: String, _ destinations: [String]
    ) -> [AgentEvent] {
        zip(companions, outcomes).compactMap { companion, outcome in
            guard case .admitted(let id) = outcome else { return nil }
            let arrival = companion.arrival
            return .jobAdmitted(
                job: id, path: arrival.root.pushing(arrival.path), route: route, size: arrival.identity.size,
                deliveries: destinations)
        }
    }

    /// Logs rejected companions, and signals the services that handle the others. - Returns: those that are in the
    /// journal now.
    private func conclude(
        _ companions: [CompanionAdmission], _ outcomes: [AdmissionOutcome], _ route: String
    ) async -> [FilePath] {
        var known: [FilePath] = []
        for (companion, outcome) in zip(companions, outcomes) {
            let arrival = companion.arrival
            switch outcome {
            case .busy, .full: continue
            case .known, .duplicate, .admitted: break
            case .rejected(let id):
                let reason = await journal.fileIfKnown(id)?.reason
                let path = arrival.root.pushing(arrival.path)
                log.emit(.fileRejected(job: id, path: path, route: route, reason: reason ?? ""))
            }
            known.append(arrival.path)
        }
        if !outcomes.isEmpty {
            shared.signals.raiseDeliverable()
            shared.signals.raise(.finishable)
        }
        return known
    }
}

/// The news of a transaction's files for other services, once for all files. Its lists are short.
private struct AdmissionNews {
    /// The newest file of each root.
    private(set) var arrivals: [(root: FilePath, newest: Arrival)] = []
    private(set) var destinations: [String] = []
    /// With the number of new deliveries.
    private(set) var lanes: [(lane: LaneID, count: Int)] = []
    /// How many files have ended.
    var finishable = 0

    mutating func note(_ arrival: Arrival, in root: FilePath) {
        if let place = arrivals.firstIndex(where: { $0.root == root }) {
            // A file that came back has an older row.
            if arrivals[place].newest.job < arrival.job { arrivals[place].newest = arrival }
        } else {
            arrivals.append((root, arrival))
        }
    }

    mutating func note(_ steps: DeliverySteps, _ sizes: [String: Lane]) {
        for step in steps.steps {
            if !destinations.contains(step.destination) { destinations.append(step.destination) }
            guard step.after == nil else { continue }
            let lane = LaneID(destination: step.destination, lane: sizes[step.destination] ?? .big)
            if let place = lanes.firstIndex(where: { $0.lane == lane }) {
                lanes[place].count += 1
            } else {
                lanes.append((lane, 1))
            }
        }
    }
}
