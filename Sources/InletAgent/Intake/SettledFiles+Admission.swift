internal import InletCore
internal import InletJournal
internal import SystemPackage

/// Complete files on their way to the journal, a round at a time.
extension SettledFiles {
    mutating func queue(_ path: FilePath, _ identity: FileIdentity) {
        let arrival = Arrival(root: root, path: path, identity: identity, volume: volume)
        refused.forget(path)
        queued.append(Candidate(arrival: arrival, role: roles[path] ?? .main([]), rule: rule))
    }

    mutating func takeQueued() -> [Candidate] {
        defer { queued = [] }
        return queued
    }

    /// Admits what is queued, in group commits.
    mutating func admitQueued() async -> AdmissionRound {
        let candidates = takeQueued()
        let (plain, others) = admitter.plain(candidates)
        var round = round(await admitter.admit(plain))
        round.append(await admit(others))
        if !round.refused.isEmpty {
            // Some were asked for out of their turn.
            let refused = Set(round.refused)
            round.refused = candidates.map(\.arrival.path).filter(refused.contains)
        }
        return round
    }

    /// Those of which more than their names must be known, or that have companions.
    mutating func admit(_ candidates: [Candidate]) async -> AdmissionRound {
        if candidates.isEmpty { return AdmissionRound() }
        let results = await withTaskGroup(of: (Arrival, Admitter.Result).self) { group in
            for candidate in candidates {
                group.addTask { [admitter, hashing] in
                    (candidate.arrival, await admitter.admit(candidate, hashing: hashing))
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        return round(results)
    }

    mutating func round(_ results: [(Arrival, Admitter.Result)]) -> AdmissionRound {
        var round = AdmissionRound()
        for (arrival, result) in results {
            round.companions += result.companions
            for path in result.companions { awaited.remove(path) }
            switch result.outcome {
            case .later: round.later.append((arrival.path, result.why))
            case .full: round.refused.append(arrival.path)
            case .admitted, .settled: round.units += joined(arrival)
            case .unmatched:
                guard tally.count(arrival.path) else { continue }
                log.emit(
                    .fileIgnored(
                        path: root.pushing(arrival.path),
                        reason: "no route takes it; 'inlet route FILE' shows why"))
            }
        }
        return round
    }

    /// The unit that a file is in. It is told of even if nothing new came of the file: closing what is not open is harmless.
    private func joined(_ arrival: Arrival) -> [AdmissionRound.Joined] {
        guard admitter.routes.hasUnits else { return [] }
        return admitter.routes.candidates(for: arrival.path, size: arrival.identity.size).compactMap { route in
            guard let folder = route.unit(of: arrival.path) else { return nil }
            return AdmissionRound.Joined(
                unit: UnitClock.Unit(folder: folder, route: route.name), settle: route.settle ?? finder.settle,
                completion: route.completion)
        }
    }
}
