internal import InletConfig
internal import InletCore
internal import InletLinux
internal import InletMedia
internal import InletPipelines
internal import SystemPackage

/// What the routes say of a file, and what has to be read for it.
extension DryRun {
    func decide(_ arrival: Arrival, _ finding: inout Finding) async {
        do {
            if let belonging = try routes.belonging(of: arrival) {
                finding.verdict = .along(main: arrival.root.pushing(belonging.main))
                return
            }
            var facts = try await firstFacts(arrival)
            finding.passed = routes.trace(arrival, mediaType: facts.mediaType).filter { !$0.isMatch }
            guard
                let route = routes.route(for: arrival.path, size: arrival.identity.size, mediaType: facts.mediaType)
            else { return }
            if let marker = try missingMarker(of: arrival, route) {
                finding.verdict = .awaited(marker: marker)
                return
            }
            do {
                facts.add(
                    try await SidecarFile.metadata(
                        beside: arrival, routes, mediaType: facts.mediaType, on: pool))
            } catch let error as ConfigErrors {
                finding.verdict = .rejected(route: route.name, reason: SidecarFile.reason(error))
                return
            }
            finding.unit = route.unit(of: arrival.path)
            finding.verdict = try await verdict(arrival, facts)
        } catch {
            finding.verdict = .unreadable("\(error)")
        }
    }

    private func verdict(_ arrival: Arrival, _ first: Facts) async throws -> Verdict {
        var facts = first
        // A number for {seq} is only given out when a file is admitted.
        facts.sequence = 0
        while true {
            switch routes.plan(arrival, facts: facts, at: .now) {
            case .unmatched: return .unmatched
            case .rejected(let route, let reason): return .rejected(route: route.name, reason: reason)
            case .needs(let wanted): try await learn(facts.missing(of: wanted), arrival, &facts)
            case .plan(let plan):
                let storages = destinations.compactMapValues(\.storage)
                    .filter { $0.value.isNeeded(arrival.path, fields: plan.with) }.mapValues(\.destination)
                return .planned(plan, DeliverySteps(plan.destinations, storages: storages))
            }
        }
    }

    /// What the file is by its content, where the choice of a route depends on it.
    private func firstFacts(_ arrival: Arrival) async throws -> Facts {
        var facts = Facts()
        let candidates = routes.candidates(for: arrival.path, size: arrival.identity.size)
        if candidates.contains(where: { !$0.match.mediaTypes.isEmpty }) {
            try await learn([.mediaType], arrival, &facts)
        }
        return facts
    }

    private func learn(_ wanted: Set<Fact>, _ arrival: Arrival, _ facts: inout Facts) async throws {
        let source = try SourceFile(opening: arrival.place)
        if wanted.contains(.mediaType) {
            facts.mediaType = try await pool.run { () throws in try ContentType.read(from: source) }
        }
        if wanted.contains(.captured) {
            facts.captured = try await pool.run { () throws(SystemError) in
                Captured(try CaptureDate.read(from: source))
            }
        }
        let algorithms = Set(wanted.compactMap(\.algorithm))
        if !algorithms.isEmpty { facts.add(try await Fingerprint.digests(algorithms, of: source, on: pool)) }
    }

    /// The marker that the file waits for.
    private func missingMarker(of arrival: Arrival, _ route: Route) throws(SystemError) -> FilePath? {
        guard route.wantsMarker else { return nil }
        for companion in route.companions(of: arrival.path) where companion.kind == .marker {
            let marker = RootedPath(arrival.root, companion.path)
            if try FileLook.look(at: marker) == .missing { return marker.whole }
        }
        return nil
    }
}
