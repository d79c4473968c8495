package import InletCore
internal import InletJournal
internal import InletLinux
internal import Synchronization

/// Counts events for `/metrics`. An event costs a look-up or two and builds no text: there may be thousands a second.
///
/// Labels are the names of destinations and routes of the present and former configurations. All other names count together, so
/// that neither the journal nor a file can make this grow.
package final class MetricsCollector: Sendable {
    /// The label of whatever the configuration does not name.
    package static let other = "other"
    /// Destinations or routes that are counted by name, be it after a thousand reloads.
    static let mostNames = 1000

    private let state = Mutex(MetricsCounts())
    /// Beside the counters since the start: the last 30 days.
    private let ends = Mutex(RecentEnds())
    private let fleetSource = Mutex<(@Sendable () -> FleetFigures)?>(nil)

    /// - Parameters:
    ///   - destinations: the names of the configuration, as `routes` are.
    package init(destinations: [String], routes: [String]) { add(destinations: destinations, routes: routes) }

    /// Counts these by name from now on, beside those it knows: a counter never goes back.
    package func add(destinations: [String], routes: [String]) {
        state.withLock { state in
            for name in [Self.other] + destinations
            where state.destinations[name] == nil && state.destinations.count < Self.mostNames {
                state.destinations[name] = MetricsCounts.Destination()
            }
            for name in [Self.other] + routes
            where state.files[name] == nil && state.files.count < Self.mostNames {
                state.files[name] = [:]
            }
        }
    }

    /// Asks `source` for the figures of the fleet from now on.
    package func addFleet(_ source: @escaping @Sendable () -> FleetFigures) {
        fleetSource.withLock { $0 = source }
    }

    /// nil for an agent without a fleet.
    package var fleet: FleetFigures? { fleetSource.withLock { $0 }?() }

    /// As they are now.
    package var figures: MetricsCounts { state.withLock { $0 } }

    /// How the files of the last 30 days ended.
    package func recent(at now: WallTime) -> (ok: Int, failed: Int) { ends.withLock { $0.sums(at: now) } }

    /// Adds files that finished before the agent's start.
    func add(_ earlier: [EndedFiles.End]) {
        ends.withLock { ends in for end in earlier { ends.add(end.job, end.state, at: end.at) } }
    }

    /// To be called with every event, on any thread.
    package func count(_ event: AgentEvent) {
        switch event {
        case .jobDelivered(let ref, let proof, let duration):
            at(ref.destination) { destination in
                destination.ends[.delivered, default: 0] += 1
                destination.deliveredBytes += proof.method == .link ? 0 : proof.size
                destination.durations.add(duration)
            }
        case .jobFinished(let job, _, let end, _, let route):
            fileEnded(route, end)
            ends.withLock { $0.add(job, end, at: .now) }
        case .jobStarted(let ref, _, _, _, _, let isResumed):
            if isResumed { at(ref.destination) { $0.resumed += 1 } }
        case .jobRetry(let ref, let error, _, _):
            // A person or a limit has ended it, and nothing has failed.
            if error.verdict != .cancelled { at(ref.destination) { $0.retries += 1 } }
        // Its name is not a file's state where the delivery has not ended.
        case .jobFailed(let ref, let end, _): ended([ref.destination], FileState(rawValue: end.rawValue))
        case .jobExpired(_, _, _, let destinations): ended(destinations, .expired)
        case .jobDuplicate(_, _, _, let destinations, _): ended(destinations, .duplicate)
        case .watchOverflow: state.withLock { $0.overflows += 1 }
        case .jobRecovered(let claims, _, _): state.withLock { $0.recovered += claims }
        case .queueResumed(let summary): state.withLock { $0.resume = summary }
        default: break
        }
    }

    private func ended(_ destinations: [String], _ result: FileState?) {
        guard let result else { return }
        for name in destinations { at(name) { $0.ends[result, default: 0] += 1 } }
    }

    private func fileEnded(_ route: String, _ end: FileState) {
        state.withLock { state in
            let index = state.files.index(forKey: route) ?? state.files.index(forKey: Self.other)
            if let index { state.files.values[index][end, default: 0] += 1 }
        }
    }

    /// Changes the figures of a destination in their place.
    private func at(_ name: String, _ change: (inout MetricsCounts.Destination) -> Void) {
        state.withLock { state in
            let index = state.destinations.index(forKey: name) ?? state.destinations.index(forKey: Self.other)
            if let index { change(&state.destinations.values[index]) }
        }
    }
}

/// Counters since the agent's start.
package struct MetricsCounts: Sendable {
    /// Of one destination.
    package struct Destination: Sendable, Equatable {
        /// How deliveries ended; of a duplicate nothing was sent, because the destination has the content already.
        package var ends: [FileState: Int] = [:]
        /// Of the files delivered there.
        package var deliveredBytes: Int64 = 0
        /// How long the attempts took that delivered.
        package var durations = Histogram.ofDeliveries
        /// Failed attempts that are retried.
        package var retries = 0
        /// Attempts that continued from the checkpoints of an earlier process.
        package var resumed = 0

        /// Whether nothing has happened there.
        package var isEmpty: Bool { self == Destination() }
    }

    package var destinations: [String: Destination] = [:]
    /// Finished files, by route and state.
    package var files: [String: [FileState: Int]] = [:]
    /// The kernel's event queue overflowed; a new listing finds the lost changes.
    package var overflows = 0
    /// Deliveries that an earlier process left unfinished, freed at the start.
    package var recovered = 0
    /// The result for the files that waited at the start; nil until all have been tried.
    package var resume: ResumeSummary?
}
