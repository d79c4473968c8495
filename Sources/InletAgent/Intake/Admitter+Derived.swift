internal import InletCore
internal import InletJournal
internal import SystemPackage

/// What is made of files before they are admitted, and goes with them.
extension Admitter {
    /// What was made of a file, each as a companion of it; nil while that is under way.
    func derived(of arrival: Arrival, _ facts: Facts) -> [SetFinder.Found]? {
        guard let deriver else { return [] }
        let rules = routes.derivations(of: arrival, facts: facts)
        if rules.isEmpty { return [] }
        return switch deriver.standing(of: arrival, rules) {
        case .underWay: nil
        case .made(let found): found
        }
    }

    /// Whether a file may have to wait for something that is made of it; told without reading it.
    func mayDerive(_ arrival: Arrival) -> Bool {
        deriver != nil && !routes.derivations(of: arrival, facts: Facts()).isEmpty
    }

    /// What the journal has taken stays until it is delivered; the rest is not needed any more.
    func closeDerived(
        of arrival: Arrival, _ main: AdmissionOutcome,
        _ companions: some Sequence<(SetFinder.Found, AdmissionOutcome)>
    ) {
        guard let deriver else { return }
        switch main {
        // It comes back.
        case .busy, .full: return
        case .admitted, .rejected, .duplicate, .known: break
        }
        var kept: Set<FilePath> = []
        for (found, outcome) in companions where found.companion.kind == .derived {
            if case .admitted = outcome { kept.insert(found.arrival.path) }
        }
        deriver.close(arrival.path, kept: kept)
    }
}
