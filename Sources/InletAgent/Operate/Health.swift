internal import InletCore
package import InletJournal
internal import Logging
package import ServiceLifecycle
internal import Synchronization
internal import SystemPackage

/// How well the agent is: whether its journal can be written, its loops live, and its parts go on.
final class AgentHealth: Sendable {
    let journal: JournalHealth
    let heartbeat: Heartbeat
    let restarts: ServiceRestarts

    /// - Parameter roots: as `Heartbeat` has them.
    init(_ log: EventLog, roots: [FilePath]) {
        (journal, restarts) = (JournalHealth(log: log), ServiceRestarts(log: log))
        heartbeat = Heartbeat(roots: roots)
    }
}

/// Says once that the journal cannot be written, and once that it can again.
package final class JournalHealth: Sendable {
    /// Who asks it beside those that write what is admitted and delivered: one that finds it well says nothing of what
    /// another one needs of it.
    package enum Asker: Sendable { case queue, finisher, sweeper, watch }

    /// Why each of them cannot use it.
    private let failing = Mutex<[Asker: String]>([:])
    private let log: EventLog

    package init(log: EventLog) { self.log = log }

    package var isFailing: Bool { failing.withLock { !$0.isEmpty } }

    /// Why it fails, as the log has it; nil when it does not. That it was displaced comes first: all else may follow of it.
    package var reason: String? { failing.withLock { $0[.watch] ?? $0.values.min() } }

    package func fails(_ error: JournalError, for asker: Asker = .queue) {
        let isNew = failing.withLock { failing in
            defer { failing[asker] = error.description }
            // That it was displaced is said also where others have failed before.
            return failing.isEmpty || asker == .watch && failing[asker] == nil
        }
        guard isNew else { return }
        log.emit(
            error.isFull ? .journalFull(reason: error.description) : .journalFailing(reason: error.description))
    }

    package func works(for asker: Asker = .queue) {
        let isOver = failing.withLock { failing in failing.removeValue(forKey: asker) != nil && failing.isEmpty }
        if isOver { log.emit(.journalRecovered) }
    }
}

/// Who has passed its loop lately: the watchdog's evidence that the agent does more than exist.
final class Heartbeat: Sendable {
    /// The loops that must live.
    enum Part: Hashable, Sendable {
        case intake(FilePath)
        case journal
        case workers
    }

    /// When each part passed last, as one count for all of them: it never goes back, so that a part that is forgotten and
    /// expected again is not behind what was seen of it.
    private struct State {
        var passes: [Part: Int]
        var total = 0
    }

    private let state: Mutex<State>

    /// - Parameter roots: the watched folders that do not come and go, each with a loop of its own. A card that does not answer
    ///   for minutes is no reason to end what goes on elsewhere.
    init(roots: [FilePath]) {
        let parts = roots.map(Part.intake) + [.journal, .workers]
        state = Mutex(State(passes: Dictionary(parts.map { ($0, 0) }, uniquingKeysWith: { first, _ in first })))
    }

    /// One that must live from now on.
    func expect(_ part: Part) { state.withLock { $0.passes[part] = $0.passes[part] ?? $0.total } }

    /// One that has ended in order.
    func forget(_ part: Part) { state.withLock { $0.passes[part] = nil } }

    /// Others than those that must live are not counted.
    func beat(_ part: Part) {
        state.withLock { state in
            guard state.passes[part] != nil else { return }
            state.total += 1
            state.passes[part] = state.total
        }
    }

    /// Whether every part has passed since `last`, which is brought up to date if so.
    func haveAllPassed(since last: inout [Part: Int]) -> Bool {
        let now = state.withLock(\.passes)
        guard now.allSatisfy({ $0.value > last[$0.key] ?? 0 }) else { return false }
        last = now
        return true
    }
}

/// A part of the agent that has ended although nobody asked it to.
package struct ServiceIncident: Sendable, Equatable {
    /// What it does, in words.
    package var service: String
    package var reason: String

    package init(service: String, reason: String) { (self.service, self.reason) = (service, reason) }
}

/// Runs parts of the agent that have no end of their own. One that ends unasked is an incident: it is said, shown until the
/// part has run for a while again, and the part begins anew after a pause.
final class ServiceRestarts: Sendable {
    private struct Entry {
        var reason: String
        /// When it began anew; nil while that is waited for.
        var since: ContinuousClock.Instant?
    }

    private let entries = Mutex<[String: Entry]>([:])
    private let log: EventLog
    private let first: Duration

    private static let longest = Duration.seconds(60)
    /// What has run for so long is well.
    private static let calm = Duration.seconds(60)

    /// - Parameter first: how long is waited before it begins anew; twice as long each time, up to a minute.
    init(log: EventLog, first: Duration = .seconds(1)) { (self.log, self.first) = (log, first) }

    func incidents(at now: ContinuousClock.Instant = .now) -> [ServiceIncident] {
        entries.withLock { entries in
            entries.filter { entry in entry.value.since.map { $0.duration(to: now) < Self.calm } ?? true }
        }.map { ServiceIncident(service: $0.key, reason: $0.value.reason) }.sorted { $0.service < $1.service }
    }

    /// Runs `work` until the task is cancelled or the agent stops.
    ///
    /// - Parameter service: what it does, as a person is told.
    func keep(_ service: String, _ work: () async throws -> Void) async {
        var pause = first
        while !Self.isAsked {
            let begun = ContinuousClock.now
            let reason: String
            do {
                try await work()
                reason = "it ended without a reason"
            } catch {
                reason = "\(error)"
            }
            if Self.isAsked { break }
            if begun.duration(to: .now) > Self.calm { pause = first }
            entries.withLock { $0[service] = Entry(reason: reason) }
            log.emit(.serviceFailed(service: service, reason: reason, wait: pause))
            // Ends early only when it is asked to, which the loop sees.
            try? await cancelWhenGracefulShutdown { [pause] in try await Task.sleep(for: pause) }
            pause = min(pause * 2, Self.longest)
            entries.withLock { $0[service]?.since = .now }
        }
        entries.withLock { $0[service] = nil }
    }

    private static var isAsked: Bool { Task.isCancelled || Task.isShuttingDownGracefully }
}

extension ServiceGroup {
    /// A group that says nothing in anybody's log.
    ///
    /// Services are named by their types: left to itself a group makes a dump of all that each one holds, and keeps it.
    package init(quietly services: [any Service]) {
        let logger = Logger(label: "lifecycle") { _ in SwiftLogNoOpLogHandler() }
        let configured = services.map { service in
            ServiceGroupConfiguration.ServiceConfiguration(
                service: service, serviceName: String(describing: type(of: service)))
        }
        self.init(configuration: ServiceGroupConfiguration(services: configured, logger: logger))
    }
}
