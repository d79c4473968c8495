package import InletAgent
internal import InletCore
internal import InletJournal
internal import InletLinux

/// What `/metrics` answers. The journal keeps its sums, so that a page costs the same with a million files as with none.
package struct MetricsPage: Sendable {
    private let agent: AgentControl
    private let tally: MetricsTally?

    /// The media type of `text`.
    package static let contentType = PrometheusText.contentType

    /// - Parameter tally: nil takes that of the agent; a page of a journal without an agent has only gauges.
    package init(_ agent: AgentControl, tally: MetricsTally? = nil) {
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

    /// Process figures are of whoever makes the page: the agent.
    private func addProcess(_ figures: ProcessFigures, to page: inout PrometheusText) {
        if let bytes = figures.residentBytes { page.add(.residentMemory, .whole(bytes)) }
        if let count = figures.openDescriptors { page.add(.openDescriptors, count) }
        if let time = figures.processorTime { page.add(.processorTime, .real(time.seconds)) }
    }
}
