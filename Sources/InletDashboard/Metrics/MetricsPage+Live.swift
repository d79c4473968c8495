internal import InletAgent
internal import InletCore
internal import InletLinux

/// What only a running agent has to say.
extension MetricsPage {
    /// What is always there, be it 0: a series that begins with its first event shows no increase by it.
    private static let usualEnds: Set<FileState> = [.delivered, .failed, .expired, .rejected]
    private static let usualOutcomes: Set<FileState> = [.delivered, .failed, .expired]

    func addCounters(_ figures: MetricsFigures, to page: inout PrometheusText) {
        for (route, ends) in figures.files where route != MetricsTally.other || !ends.isEmpty {
            for state in Self.usualEnds.union(ends.keys) {
                page.add(.filesEnded, ends[state] ?? 0, [("route", route), ("state", state.rawValue)])
            }
        }
        for (name, destination) in figures.destinations where name != MetricsTally.other || !destination.isEmpty {
            let label = [(name: "destination", value: name)]
            for outcome in Self.usualOutcomes.union(destination.ends.keys) {
                page.add(
                    .deliveries, destination.ends[outcome] ?? 0, label + [(name: "result", value: outcome.rawValue)])
            }
            page.add(.deliveredBytes, .whole(destination.deliveredBytes), label)
            page.add(.deliveryDuration, .histogram(destination.durations), label)
            page.add(.retries, destination.retries, label)
            page.add(.continued, destination.resumed, label)
        }
        page.add(.overflows, figures.overflows)
        page.add(.recovered, figures.recovered)
    }

    func addDestinations(_ live: AgentControl.Running, to page: inout PrometheusText) {
        for destination in live.destinations {
            let label = [(name: "destination", value: destination.name)]
            let state = BreakerWord(destination.state)
            page.add(.destinationUp, state.isUp, label)
            page.add(.destinationPaused, destination.isPaused, label)
            for word in BreakerWord.allCases {
                page.add(.destinationState, word == state, label + [(name: "state", value: word.rawValue)])
            }
        }
        for limit in live.limits {
            guard let rate = limit.rate else { continue }
            page.add(.limit, .whole(rate), [("destination", limit.destination ?? "*")])
        }
        page.add(.bytesInFlight, .whole(live.inFlight.reduce(0) { $0 + $1.size }))
    }

    func addRoots(_ roots: [RootStatus], to page: inout PrometheusText) {
        // A card that is in two slots, or that comes while it goes, is one series all the same.
        let roots = Dictionary(roots.map { ($0.root.display, $0) }) { _, last in last }
        for (path, status) in roots {
            let label = [(name: "root", value: path)]
            // One that is being listed is there; before it was entered nobody knows.
            page.add(.rootUp, status.state == .watching || (status.state == .starting && status.mode != nil), label)
            page.add(.settling, status.settling, label)
            page.add(.watches, status.watches, label)
            page.add(.polled, status.polled, label)
        }
        page.add(.filesIgnored, roots.values.reduce(0) { $0 + $1.ignored })
        if let limit = WatchNeed.limit { page.add(.watchLimit, limit) }
    }

    /// - Parameter summary: nil when nothing waited at the start.
    func addRecovery(_ summary: ResumeSummary?, to page: inout PrometheusText) {
        let ends = [
            ("delivered", summary?.resumed ?? 0), ("failed", summary?.failed ?? 0),
            ("waiting", summary?.waiting ?? 0),
        ]
        page.add(.resuming, ends.reduce(summary?.of ?? 0) { $0 - $1.1 })
        for (result, count) in ends { page.add(.resumed, count, [("result", result)]) }
    }
}

/// A breaker's state in one word.
private enum BreakerWord: String, CaseIterable {
    case up
    /// Up again, and tried with one delivery.
    case trial
    case unproved
    /// It asks for time.
    case slowed
    case down
    case credentialsRefused = "credentials_refused"

    init(_ state: CircuitBreaker.State) {
        self =
            switch state {
            case .up: .up
            case .trial: .trial
            case .unproved: .unproved
            case .slowed: .slowed
            case .down: .down
            case .credentialsRefused: .credentialsRefused
            }
    }

    var isUp: Bool {
        switch self {
        case .up, .trial, .slowed: true
        case .unproved, .down, .credentialsRefused: false
        }
    }
}
