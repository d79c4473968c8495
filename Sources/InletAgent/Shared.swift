internal import InletCore
internal import InletJournal
internal import InletLinux
internal import Synchronization
internal import SystemPackage

/// Given to all parts of the agent. No part holds another: they share the journal, wake each other by `signals`, and
/// ask here for facts about other parts.
final class Shared: Sendable {
    let settings: LiveSettings
    let journal: Journal
    let destinations: DestinationRegistry
    let roots = RootRegistry()
    let arrivals = ArrivalRegistry()
    let cards = CardRegistry()
    let cardLabels = CardLabelsRegistry()
    let signals: Signals
    /// Decisions in which other agents have a part.
    let fleet: FleetSeams
    let log: EventLog
    /// Whether the journal can be written, the loops are alive, and the parts run.
    let health: (journal: JournalHealth, heartbeat: Heartbeat, restarts: ServiceSupervisor)
    let room: QueueCapacity
    let transfers = Transfers()
    let readers = DiskReaders()
    let lanes = Lanes()
    var clock: AgentClock { destinations.clock }

    init(
        _ settings: LiveSettings, _ journal: Journal, _ destinations: DestinationRegistry, _ log: EventLog,
        _ fleet: FleetSeams? = nil
    ) {
        (self.settings, self.journal, self.destinations, self.log) = (settings, journal, destinations, log)
        self.fleet = fleet ?? .local(journal)
        signals = self.fleet.signals
        health = (
            JournalHealth(log: log), Heartbeat(roots: settings.fixedRoots), ServiceSupervisor(log: log)
        )
        room = QueueCapacity(
            settings.settings.queueLimit, isHeld: self.fleet.isDraining, journal: journal, log: log)
    }

    /// As `WakeSignal.loop`, for a service whose work comes from the journal. After an error the journal is asked again
    /// after `pause`.
    ///
    /// - Parameter doDue: returns whether there may be more, and otherwise when something is due.
    func loop(
        on signal: Signals.Signal, for asker: JournalHealth.JournalUser, pause: Duration,
        _ doDue: () async throws(JournalError) -> (hasMore: Bool, next: WallTime?)
    ) async {
        await signals[signal].loop {
            do throws(JournalError) {
                let (hasMore, next) = try await doDue()
                health.journal.works(for: asker)
                return hasMore ? .now : next.map { .now.advanced(by: max($0 - .now, .seconds(1))) }
            } catch {
                if Task.isCancelled { return nil }
                health.journal.fails(error, for: asker)
                return .now.advanced(by: pause)
            }
        }
    }

    /// Makes sleeping loops pass once, so that they show that they live.
    func nudge() {
        signals.raiseDeliverable()
        roots.nudge()
    }
}

/// The configuration in effect; a reload replaces it. Read it here whenever an older one must not be used.
final class LiveSettings: Sendable {
    private let state: Mutex<(settings: Settings, routes: RouteTable, former: [WatchSettings], shown: RunningConfig?)>
    /// The folders by which `send` finds a file's route, if they are not the watched ones.
    private let named: [WatchSettings]?

    /// - Parameters:
    ///   - former: watched folders that left the configuration while files of theirs were under way.
    ///   - shown: the configuration for display; nil where it comes from no file.
    init(
        _ settings: Settings, sendRoots: [WatchSettings]? = nil, former: [WatchSettings] = [],
        shown: RunningConfig? = nil
    ) {
        named = sendRoots
        state = Mutex((settings, RouteTable(settings.routes), former, shown))
    }

    var settings: Settings { state.withLock { $0.settings } }
    var routes: RouteTable { state.withLock { $0.routes } }
    var watch: [WatchSettings] { state.withLock { $0.settings.watch } }
    /// The watched folders with a path of their own, in the configuration's order.
    var fixedRoots: [FilePath] { watch.filter { $0.pattern == nil }.map(\.path) }
    /// The folders in which a named file is looked up.
    var sendRoots: [WatchSettings] { named ?? watch }
    /// The watched folders, then the former ones.
    var knownRoots: [WatchSettings] { state.withLock { $0.settings.watch + $0.former } }
    var shown: RunningConfig? { state.withLock { $0.shown } }

    func replace(_ settings: Settings, former: [WatchSettings]) {
        let routes = RouteTable(settings.routes)
        state.withLock { ($0.settings, $0.routes, $0.former) = (settings, routes, former) }
    }

    func show(_ config: RunningConfig) { state.withLock { $0.shown = config } }
}

/// The agent's two clocks: civil time, and one that never jumps and stops while the machine sleeps. Tests set both.
struct AgentClock: Sendable {
    var now: @Sendable () -> WallTime = { .now }
    var instant: @Sendable () -> SuspendingClock.Instant = { .now }
}

/// A refusal, in words for a person.
package struct Refusal: Error, Sendable, CustomStringConvertible {
    package let description: String

    package init(_ description: String) { self.description = description }
}
