package import InletAgent
package import InletCore
internal import InletJournal
internal import InletLinux

/// The answer of `/metrics`. The journal keeps its sums, so a page costs the same with a million files as with none.
package struct MetricsPage: Sendable {
    private let agent: AgentControl
    private let tally: MetricsCollector?

    /// The media type of `text`.
    package static let contentType = PrometheusText.contentType

    /// Every metric, for the manual's reference page.
    package static var reference: JSONValue {
        .array(
            Metric.allCases.map { metric in
                .object([
                    "name": .string(metric.rawValue), "type": .string(metric.kind.rawValue),
                    "labels": .array(metric.labels.map { .string($0) }), "help": .string(metric.help),
                ])
            })
    }

    /// - Parameter tally: nil uses the agent's; a page of a journal without an agent has only gauges.
    package init(_ agent: AgentControl, tally: MetricsCollector? = nil) {
        self.agent = agent
        self.tally = tally ?? agent.live?.tally
    }

    /// The page as it is now. Throws `JournalError`.
    package func text() async throws -> String {
        var page = PrometheusText()
        addAgent(to: &page)
        addFiles(try await agent.journal.totals(), to: &page)
        addQueue(try await agent.queue(), to: &page)
        if let figures = tally?.figures { addCounters(figures, to: &page) }
        if let live = agent.live {
            addDestinations(live, to: &page)
            addRoots(live.roots, to: &page)
            addRecovery(live.resume ?? tally?.figures.resume, to: &page)
        }
        if let fleet = tally?.fleet { addFleet(fleet, to: &page) }
        addProcess(.now(), to: &page)
        return page.text
    }

    private func addAgent(to page: inout PrometheusText) {
        if let live = agent.live {
            page.add(.info, true, [("version", live.version)])
            page.add(.startTime, .real(Double(live.startedAt.milliseconds) / 1000))
            page.add(.journalFailing, live.journalIsFailing)
        }
        page.add(.journalWrites, .histogram(agent.journal.writeTimes))
    }

    private func addFiles(_ totals: [FileState: StateTotal], to page: inout PrometheusText) {
        for state in FileState.allCases {
            page.add(.files, totals[state]?.files ?? 0, [("state", state.rawValue)])
            page.add(.fileBytes, .whole(totals[state]?.bytes ?? 0), [("state", state.rawValue)])
        }
    }

    private func addQueue(_ queue: AgentControl.Queue, to page: inout PrometheusText) {
        page.add(.queueWaiting, queue.waiting)
        let waited = queue.oldest.map { max(0, (WallTime.now - $0).seconds) } ?? 0
        page.add(.oldestWaiting, .real(waited))
        let configured = agent.live?.destinations.map(\.name) ?? []
        for name in Set(configured).union(queue.counts.keys) {
            let counts = queue.counts[name] ?? QueueCounts()
            let places = [
                ("waiting", counts.waiting - counts.retrying), ("retrying", counts.retrying), ("held", counts.held),
                ("parked", counts.parked), ("sending", counts.claimed), ("working", counts.working),
            ]
            for (place, count) in places {
                page.add(.deliveriesOpen, count, [("destination", name), ("state", place)])
            }
        }
    }

    /// The metrics of the process that makes the page: the agent's.
    private func addProcess(_ figures: ProcessUsage, to page: inout PrometheusText) {
        if let bytes = figures.residentBytes { page.add(.residentMemory, .whole(bytes)) }
        if let count = figures.openDescriptors { page.add(.openDescriptors, count) }
        if let time = figures.processorTime { page.add(.processorTime, .real(time.seconds)) }
    }

    // MARK: - What only a running agent has to say

    /// Series that always exist, even at 0: a series that begins with its first event shows no increase for it.
    private static let usualEnds: Set<FileState> = [.delivered, .failed, .expired, .rejected]
    private static let usualOutcomes: Set<FileState> = [.delivered, .failed, .expired]

    private func addCounters(_ figures: MetricsCounts, to page: inout PrometheusText) {
        for (route, ends) in figures.files where route != MetricsCollector.other || !ends.isEmpty {
            for state in Self.usualEnds.union(ends.keys) {
                page.add(.filesEnded, ends[state] ?? 0, [("route", route), ("state", state.rawValue)])
            }
        }
        for (name, destination) in figures.destinations where name != MetricsCollector.other || !destination.isEmpty {
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

    private func addDestinations(_ live: AgentControl.Running, to page: inout PrometheusText) {
        for destination in live.destinations {
            let label = [(name: "destination", value: destination.name)]
            let state = Self.word(destination.state)
            page.add(.destinationUp, Self.wordsOfUp.contains(state), label)
            page.add(.destinationPaused, destination.isPaused, label)
            for word in Self.wordsOfUp + Self.wordsOfDown {
                page.add(.destinationState, word == state, label + [(name: "state", value: word)])
            }
        }
        for limit in live.limits {
            guard let rate = limit.rate else { continue }
            page.add(.limit, .whole(rate), [("destination", limit.destination ?? "*")])
        }
        page.add(.bytesInFlight, .whole(live.inFlight.reduce(0) { $0 + $1.size }))
    }

    private static let wordsOfUp = ["up", "trial", "slowed"]
    private static let wordsOfDown = ["unproved", "down", "credentials_refused"]

    /// A breaker's state in one word.
    private static func word(_ state: CircuitBreaker.State) -> String {
        switch state {
        case .up: "up"
        case .trial: "trial"
        case .slowed: "slowed"
        case .unproved: "unproved"
        case .down: "down"
        case .credentialsRefused: "credentials_refused"
        }
    }

    func addRoots(_ roots: [RootStatus], to page: inout PrometheusText) {
        // A card in two slots, or one that arrives while it leaves, is still one series.
        let roots = Dictionary(roots.map { ($0.root.display, $0) }) { _, last in last }
        for (path, status) in roots {
            let label = [(name: "root", value: path)]
            // A folder that is being listed counts as there; before that it is unknown.
            page.add(.rootUp, status.state == .watching || (status.state == .starting && status.mode != nil), label)
            if let last = status.lastFile { page.add(.rootLastFile, .real(Double(last.milliseconds) / 1000), label) }
            if status.expect != nil { page.add(.rootQuiet, status.quietSince != nil, label) }
            page.add(.settling, status.settling, label)
            page.add(.watches, status.watches, label)
            page.add(.polled, status.polled, label)
        }
        page.add(.filesIgnored, roots.values.reduce(0) { $0 + $1.ignored })
        if let limit = WatchNeed.limit { page.add(.watchLimit, limit) }
    }

    /// - Parameter summary: nil when nothing waited at the start.
    private func addRecovery(_ summary: ResumeSummary?, to page: inout PrometheusText) {
        let ends = [
            ("delivered", summary?.resumed ?? 0), ("failed", summary?.failed ?? 0),
            ("waiting", summary?.waiting ?? 0),
        ]
        page.add(.resuming, ends.reduce(summary?.of ?? 0) { $0 - $1.1 })
        for (result, count) in ends { page.add(.resumed, count, [("result", result)]) }
    }

    private func addFleet(_ figures: FleetFigures, to page: inout PrometheusText) {
        page.add(.fleetConnected, figures.isConnected)
        page.add(.fleetSessionLeft, .real(max(0, figures.sessionLeft?.seconds ?? 0)))
        for (function, calls) in figures.calls {
            page.add(.fleetCallDuration, .histogram(calls.durations), [("function", function)])
            for (code, count) in calls.results {
                page.add(.fleetCalls, count, [("code", code), ("function", function)])
            }
        }
        page.add(.fleetKeysReserved, figures.reserved)
        page.add(.fleetKeysLost, figures.lost)
        page.add(.fleetKeysTagged, figures.tagged)
        page.add(.fleetTakeovers, figures.takeovers)
        page.add(.fleetFenced, figures.fenced)
        page.add(.fleetPlacesHeld, figures.placesHeld)
        for (place, isListed) in figures.places { page.add(.fleetPlaceListed, isListed, [("place", place)]) }
        page.add(.fleetReceiptsBehind, figures.receiptsBehind)
        page.add(.fleetRecovering, figures.isRecovering)
    }
}
