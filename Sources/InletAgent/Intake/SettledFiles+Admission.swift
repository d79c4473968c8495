internal import InletCore
internal import InletJournal
internal import SystemPackage

/// Complete files on their way to the journal, a round at a time.
extension SettledFiles {
    mutating func queue(_ path: FilePath, _ identity: FileIdentity) {
        let arrival = Arrival(root: root, path: path, identity: identity, volume: volume)
        refused.forget(path)
        let facts = learned[path].flatMap { $0.identity == identity ? $0.facts : nil } ?? Facts()
        queued.append(Candidate(arrival: arrival, role: roles[path] ?? .main([]), rule: rule, facts: facts))
    }

    mutating func takeQueued() -> [Candidate] {
        defer { queued = [] }
        return queued
    }

    /// Admits what is queued.
    mutating func admitQueued() async -> AdmissionRound {
        let candidates = takeQueued()
        var round = round(await admitter.admit(candidates, for: .found(inListing: false), hashing))
        if !round.refused.isEmpty {
            // Some were asked for out of their turn.
            let refused = Set(round.refused)
            round.refused = candidates.map(\.arrival.path).filter(refused.contains)
        }
        return round
    }

    /// What came of files that were queued, for the loop.
    mutating func round(_ results: [AdmissionResult]) -> AdmissionRound {
        var round = AdmissionRound()
        for result in results {
            let path = result.arrival.path
            round.companions += result.companions
            for companion in result.companions { awaited.remove(companion) }
            remember(result)
            switch result.outcome {
            case .busy, .later: round.later.append((path, nil))
            case .unreadable(let why): round.later.append((path, why))
            case .full: round.refused.append(path)
            case .admitted, .duplicate, .known, .rejected, .gone: round.units += joined(result.arrival)
            case .unmatched:
                guard tally.count(path) else { continue }
                log.emit(
                    .fileIgnored(
                        path: root.pushing(path), reason: "no route takes it; 'inlet route FILE' shows why"))
            }
        }
        return round
    }

    /// What was read of a file that comes back need not be read again, as long as it is the same. What its sidecar says is asked
    /// for anew.
    private mutating func remember(_ result: AdmissionResult) {
        var facts = result.facts
        facts.add(Sidecar())
        if !result.outcome.comesBack || facts == Facts() {
            if !learned.isEmpty { learned[result.arrival.path] = nil }
        } else if learned.count < Self.mostLearned {
            learned[result.arrival.path] = (result.arrival.identity, facts)
        }
    }

    /// The unit that a file is in. It is told of even if nothing new came of the file: closing what is not open is harmless.
    private func joined(_ arrival: Arrival) -> [AdmissionRound.Joined] {
        guard admitter.routes.hasUnits else { return [] }
        return admitter.routes.candidates(for: arrival.path, size: arrival.identity.size).compactMap { route in
            guard let folder = route.unit(of: arrival.path) else { return nil }
            return AdmissionRound.Joined(
                unit: UnitClock.Unit(folder: folder, route: route.name), settle: route.settle ?? settle,
                completion: route.completion)
        }
    }
}
