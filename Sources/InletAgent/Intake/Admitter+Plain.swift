internal import InletCore
internal import InletJournal
internal import InletLinux

/// Files that stand for themselves, and of which the routes need to know no more than their names: nearly all of the thousands
/// that come at once.
extension Admitter {
    /// Admissions in one transaction: more would keep what is being delivered from the journal.
    private static let group = 64

    /// Admits those of `candidates`, many in one transaction. - Returns: what became of them, and the candidates that are left.
    func admitPlain(_ candidates: [Candidate]) async -> (results: [(Arrival, Result)], others: [Candidate]) {
        var plain: [(admission: Admission, plan: Plan)] = []
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
            plain.append((admission, plan))
        }
        if plain.isEmpty { return ([], others) }
        var results: [(Arrival, Result)] = []
        for start in stride(from: 0, to: plain.count, by: Self.group) {
            let group = plain[start..<min(start + Self.group, plain.count)]
            let outcomes = await notices.during { now in
                let outcomes = await commitAll(group.map(\.admission), at: now)
                tellAdmitted(
                    zip(group, outcomes).compactMap { candidate, outcome in
                        guard case .admitted(let id)? = outcome else { return nil }
                        return (id, candidate.admission, candidate.plan)
                    })
                return outcomes
            }
            results += zip(group, outcomes).map { ($0.admission.arrival, Self.result($1)) }
        }
        return (results, others)
    }

    private static func result(_ outcome: AdmissionOutcome?) -> Result {
        switch outcome {
        case .admitted?: Result(outcome: .admitted)
        case let outcome?: Result(outcome: outcome.refusal)
        case nil: Result(outcome: .later)
        }
    }

    /// Durable point 1 for all of them; nil for those that the journal does not take now.
    private func commitAll(_ admissions: [Admission], at now: WallTime) async -> [AdmissionOutcome?] {
        do {
            Failpoint.admitting.reached()
            let outcomes = try await journal.admit(admissions, within: room.limit, at: now)
            health.works()
            return outcomes
        } catch {
            // One that the journal refuses must not keep the others out.
            var outcomes: [AdmissionOutcome?] = []
            for admission in admissions {
                outcomes.append(await commitSet(admission, within: room.limit, at: now)?.main)
            }
            return outcomes
        }
    }
}
