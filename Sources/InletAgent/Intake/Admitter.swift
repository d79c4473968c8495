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
    }

    let journal: Journal
    let routes: RouteTable
    let board: DestinationBoard
    let log: EventLog
    let bells: WorkBells
    let finisherBell: Doorbell
    let health: JournalHealth

    func admit(_ arrival: Arrival, hashing: Hashing) async -> Outcome {
        let path = arrival.root.pushing(arrival.path)
        do {
            switch try await decide(arrival, by: routes, at: path, hashing: hashing) {
            case .plan(let plan): return await admit(arrival, plan)
            case .rejected(let route, let reason): return await reject(arrival, route, reason)
            case .unmatched, .needs: return .unmatched
            }
        } catch let error as DeliveryError where error.verdict == .sourceGone {
            return .settled
        } catch let error as SystemError where error.isMissing {
            return .settled
        } catch {
            log.emit(.fileTrouble(path: path, reason: "\(error)"))
            return .later
        }
    }

    /// What `routes` say of the file at `path`, with every fact that they ask for.
    func decide(
        _ arrival: Arrival, by routes: RouteTable, at path: FilePath, hashing: Hashing
    ) async throws -> RouteDecision {
        var facts = Facts()
        while true {
            let decision = routes.plan(arrival, facts: facts, at: .now)
            guard case .needs(let wanted) = decision else { return decision }
            try await learn(wanted, of: path, &facts, hashing)
        }
    }

    private func learn(
        _ wanted: Set<Fact>, of path: FilePath, _ facts: inout Facts, _ hashing: Hashing
    ) async throws {
        for fact in facts.missing(of: wanted) {
            switch fact {
            case .sequence: facts.sequence = try await journal.nextSequence()
            case .sha256:
                let source = try SourceFile(opening: path)
                facts.sha256 = try await Fingerprint.sha256(of: source, on: hashing.pool, progress: hashing.progress)
            case .captured: facts.captured = try await captured(path, hashing.pool)
            }
        }
    }

    /// A file that cannot be read now is looked at again later: a key is made once, and must not hold the mtime because
    /// a disk was slow to wake.
    private func captured(_ path: FilePath, _ pool: BlockingPool) async throws -> Captured {
        try await pool.run { () throws(SystemError) in
            Captured(try CaptureDate.read(from: try SourceFile(opening: path)))
        }
    }

    private func admit(_ arrival: Arrival, _ plan: Plan) async -> Outcome {
        guard let outcome = await commit(arrival, plan) else { return .later }
        guard case .admitted = outcome else { return outcome.isBusy ? .later : .settled }
        return .admitted
    }

    /// Durable point 1 for a file with a plan; nil when the journal cannot be written.
    ///
    /// - Parameter newerThan: see `Admission.newerThan`.
    func commit(_ arrival: Arrival, _ plan: Plan, newerThan: Int64? = nil) async -> AdmissionOutcome? {
        let size = arrival.identity.size
        let lanes = Dictionary(uniqueKeysWithValues: plan.destinations.map { ($0, board.lane(of: size, to: $0)) })
        var admission = Admission(arrival, plan: plan, lanes: lanes, uptimes: board.uptimes())
        admission.newerThan = newerThan
        let outcome = await commit(admission)
        guard case .admitted(let id)? = outcome else { return outcome }
        Failpoint.admitted.reached()
        let path = arrival.root.pushing(arrival.path)
        log.emit(.jobAdmitted(job: id, path: path, route: plan.route, size: size, deliveries: plan.destinations))
        for note in plan.notes { log.emit(.fileNote(job: id, path: path, route: plan.route, note: note)) }
        for lane in lanes.values { bells.ring(lane) }
        return outcome
    }

    private func reject(_ arrival: Arrival, _ route: Route, _ reason: String) async -> Outcome {
        guard let outcome = await commit(Admission(arrival, rejectedBy: route, reason: reason)) else { return .later }
        guard case .rejected(let id) = outcome else { return outcome.isBusy ? .later : .settled }
        log.emit(
            .fileRejected(
                job: id, path: arrival.root.pushing(arrival.path), route: route.name, reason: reason))
        finisherBell.ring()
        return .settled
    }

    private func commit(_ admission: Admission) async -> AdmissionOutcome? {
        do {
            let outcome = try await journal.admit(admission, at: .now)
            health.works()
            return outcome
        } catch {
            health.fails(error)
            return nil
        }
    }
}

extension AdmissionOutcome {
    fileprivate var isBusy: Bool { if case .busy = self { true } else { false } }
}
