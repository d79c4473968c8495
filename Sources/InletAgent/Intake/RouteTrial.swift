package import InletCore
package import InletPipelines
internal import SystemPackage

/// What the routes would do with a file, by its name and size alone: nothing of it is read, and what only reading could tell
/// is assumed and said. Pure.
package struct RouteTrial: Sendable {
    package enum Outcome: Sendable {
        case plan(Plan, DeliverySteps)
        case rejected(route: String, reason: String)
        case unmatched
    }

    package let place: RoutePlace
    /// Each route tried, up to and including the one that takes it.
    package let traces: [RouteTrace]
    package let outcome: Outcome
    /// What was taken for granted, in sentences.
    package let assumed: [String]

    /// - Parameters:
    ///   - identity: of the file, where it is there.
    ///   - size: another size than it has.
    package init(
        _ place: RoutePlace, identity: FileIdentity?, size: Int64? = nil, table: RouteTable,
        destination: (String) -> Destination?, at now: WallTime
    ) {
        self.place = place
        var assumed: [String] = []
        var arrival = place.arrival(identity, at: now)
        if identity == nil {
            assumed.append(
                size == nil
                    ? "the file is not there: size 0 and the time now were assumed"
                    : "the file is not there: the time now was assumed")
        }
        if let size { arrival.identity.size = size }
        var facts = Facts()
        var decision = table.plan(arrival, facts: facts, at: now)
        // Each fact is asked for once.
        while case .needs(let wanted) = decision {
            for fact in wanted { assumed.append(Self.assume(fact, of: arrival.path, in: &facts)) }
            decision = table.plan(arrival, facts: facts, at: now)
        }
        self.assumed = assumed.sorted()
        guard place.ignoredBecause == nil else {
            (traces, outcome) = ([], .unmatched)
            return
        }
        traces = table.trace(arrival, mediaType: facts.mediaType)
        switch decision {
        case .plan(let plan):
            outcome = .plan(plan, DeliverySteps(plan, of: arrival.path, destination: destination))
        case .rejected(let route, let reason): outcome = .rejected(route: route.name, reason: reason)
        case .unmatched, .needs: outcome = .unmatched
        }
    }

    /// - Returns: what was assumed.
    private static func assume(_ fact: Fact, of path: FilePath, in facts: inout Facts) -> String {
        switch fact {
        case .sha256:
            facts.sha256 = Digest(.sha256, [UInt8](repeating: 0, count: 32))
            return "its checksum is not computed here: zeros stand for it"
        case .digest(let algorithm):
            facts.digests[algorithm] = Digest(algorithm, [UInt8](repeating: 0, count: 8))
            return "its \(algorithm.rawValue) for the unit's list is not computed here"
        case .sequence:
            facts.sequence = 0
            return "a number is given out when a file is admitted: 0 stands for it"
        case .captured:
            facts.captured = .unknown
            return "the date inside of the file is not read here: its time of change stands for it"
        case .mediaType:
            let type = MediaType.byExtension(FileName(path).plainExtension)
            facts.mediaType = type
            return "what it holds is not read here: \(type) was assumed, by its name"
        }
    }

    /// Why it went so, a sentence for each step.
    package var why: [String] {
        var why: [String] = []
        if place.root == nil { why.append("not below any watched folder; only 'inlet send' could take it") }
        if let ignored = place.ignoredBecause { return why + ["ignored: \(ignored)"] }
        why += traces.map { trace in
            trace.mismatch.map { "route \(trace.route): \($0)" } ?? "route \(trace.route) takes it"
        }
        switch outcome {
        case .plan: break
        case .rejected(_, let reason): why.append("rejected: \(reason)")
        case .unmatched: why.append("no route takes it: it would be ignored")
        }
        return why
    }
}
