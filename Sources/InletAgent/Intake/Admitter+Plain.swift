internal import InletCore
internal import InletJournal
internal import InletLinux

/// Files that stand for themselves, and of which the routes need to know no more than their names: nearly all of the thousands
/// that come at once.
extension Admitter {
    /// Admissions in one transaction of files that come one by one: more would keep what is being delivered from the journal.
    static let group = 64

    /// What the journal remembers of files; nil when it cannot be read now.
    func recall(_ arrivals: [Arrival], _ journal: Journal, _ tolerance: Int64) async -> [KnownFile]? {
        if arrivals.isEmpty { return [] }
        do {
            return try await journal.recall(arrivals, tolerance: tolerance)
        } catch {
            health.fails(error)
            return nil
        }
    }

    /// Those of `candidates`, and those that are left.
    func plain(_ candidates: [Candidate]) -> (plain: [PlainAdmission], others: [Candidate]) {
        var plain: [PlainAdmission] = []
        var others: [Candidate] = []
        for candidate in candidates {
            guard case .main(let companions) = candidate.role, companions.isEmpty, !mayDerive(candidate.arrival),
                case .plan(let plan) = routes.plan(candidate.arrival, facts: Facts(), at: .now)
            else {
                others.append(candidate)
                continue
            }
            var admission = admission(candidate.arrival, plan, path: candidate.arrival.path)
            admission.unit = routes.named(plan.route)?.unit(of: candidate.arrival.path)
            plain.append(PlainAdmission(admission: admission, plan: plan))
        }
        return (plain, others)
    }

    /// Admits them, many in one transaction. - Returns: what became of them.
    func admit(_ files: [PlainAdmission]) async -> [(Arrival, Result)] {
        var results: [(Arrival, Result)] = []
        for start in stride(from: 0, to: files.count, by: Self.group) {
            let group = Array(files[start..<min(start + Self.group, files.count)])
            results += Self.results(group, await commit(group, within: room.limit))
        }
        return results
    }

    static func results(_ files: [PlainAdmission], _ outcomes: [AdmissionOutcome?]) -> [(Arrival, Result)] {
        zip(files, outcomes).map { ($0.admission.arrival, result($1)) }
    }

    private static func result(_ outcome: AdmissionOutcome?) -> Result {
        switch outcome {
        case .admitted?: Result(outcome: .admitted)
        case let outcome?: Result(outcome: outcome.refusal)
        case nil: Result(outcome: .later)
        }
    }

    /// Durable point 1 for all of them, and what is said of it; nil for those that the journal does not take now.
    ///
    /// - Parameter limit: none for what a person asks for.
    func commit(_ files: [PlainAdmission], within limit: QueueLimit) async -> [AdmissionOutcome?] {
        if files.isEmpty { return [] }
        do {
            Failpoint.admitting.reached()
            let outcomes = try await journal.admit(files.map(\.admission), within: limit, at: .now) { tell(files, $0) }
            health.works()
            return outcomes
        } catch {
            // One that the journal refuses must not keep the others out.
            var outcomes: [AdmissionOutcome?] = []
            for file in files {
                let outcome = await commitSet(file.admission, within: limit) { main, _ in tell([file], [main]) }
                outcomes.append(outcome?.main)
            }
            return outcomes
        }
    }
}
