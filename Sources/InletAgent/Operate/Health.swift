internal import InletCore
package import InletJournal
internal import InletLinux
internal import Logging
package import ServiceLifecycle
internal import Synchronization
internal import SystemPackage

/// Logs once that the journal fails, and once that it recovered.
package final class JournalHealth: Sendable {
    /// The users of the journal: `queue` stands for all that write admissions and deliveries. Each reports for itself:
    /// one success proves nothing about another user's needs.
    package enum JournalUser: Sendable { case queue, finisher, sweeper, watch }

    /// Why each of them cannot use it.
    private let failing = Mutex<[JournalUser: String]>([:])
    private let log: EventLog

    package init(log: EventLog) { self.log = log }

    package var isFailing: Bool { failing.withLock { !$0.isEmpty } }

    /// The reason, as logged; nil when it works. Displacement comes first: all other failures may follow from it.
    package var reason: String? { failing.withLock { $0[.watch] ?? $0.values.min() } }

    package func fails(_ error: JournalError, for asker: JournalUser = .queue) {
        let isNew = failing.withLock { failing in
            defer { failing[asker] = error.description }
            // Displacement is logged also after other failures.
            return failing.isEmpty || asker == .watch && failing[asker] == nil
        }
        guard isNew else { return }
        log.emit(
            error.isFull ? .journalFull(reason: error.description) : .journalFailing(reason: error.description))
    }

    package func works(for asker: JournalUser = .queue) {
        let isOver = failing.withLock { failing in failing.removeValue(forKey: asker) != nil && failing.isEmpty }
        if isOver { log.emit(.journalRecovered) }
    }
}

extension Journal {
    /// Whether a read succeeds now: a sign of life.
    var answers: Bool {
        get async {
            do throws(JournalError) {
                _ = try await totals()
                return true
            } catch {
                // The services that use it report its failure.
                return false
            }
        }
    }
}

/// The latest passes of the loops: the watchdog's evidence that the agent works.
final class Heartbeat: Sendable {
    /// The loops that must live.
    enum Part: Hashable, Sendable {
        case intake(FilePath)
        case journal
        case workers
    }

    /// The last pass of each part, as one count for all of them. It never goes back, so a part that is removed and
    /// added again is not behind its former count.
    private let state: Mutex<(passes: [Part: Int], total: Int)>

    /// - Parameter roots: the watched folders that do not come and go, each with a loop of its own. A card without an
    ///   answer for minutes must not end the rest.
    init(roots: [FilePath]) {
        let parts = roots.map(Part.intake) + [.journal, .workers]
        state = Mutex((Dictionary(parts.map { ($0, 0) }, uniquingKeysWith: { first, _ in first }), 0))
    }

    /// Adds a part that must live.
    func expect(_ part: Part) { state.withLock { $0.passes[part] = $0.passes[part] ?? $0.total } }

    /// Removes a part that has ended in order.
    func forget(_ part: Part) { state.withLock { $0.passes[part] = nil } }

    /// Ignores parts that need not live.
    func beat(_ part: Part) {
        state.withLock { state in
            guard state.passes[part] != nil else { return }
            state.total += 1
            state.passes[part] = state.total
        }
    }

    /// Whether every part has passed since `last`, which is then updated.
    func haveAllPassed(since last: inout [Part: Int]) -> Bool {
        let now = state.withLock { $0.passes }
        guard now.allSatisfy({ $0.value > last[$0.key] ?? 0 }) else { return false }
        last = now
        return true
    }
}

extension Duration {
    /// The pause after so many failures in a row: `first`, twice as long after each further one, up to `longest`.
    static func backoff(_ first: Duration, upTo longest: Duration, after failures: Int) -> Duration {
        min(longest, first * (1 << min(max(failures - 1, 0), 20)))
    }
}

/// Runs endless parts of the agent. A part that ends is a failure: it is logged, shown until the part has run for a
/// while again, and the part restarts after a pause.
final class ServiceSupervisor: Sendable {
    /// Why each has failed, and when it restarted; nil during the pause.
    private let entries = Mutex<[String: (reason: String, since: ContinuousClock.Instant?)]>([:])
    private let log: EventLog
    private let first: Duration

    private static let longest = Duration.seconds(60)
    /// A part that has run for so long is well.
    private static let calm = Duration.seconds(60)

    /// - Parameter first: the pause before a restart; twice as long each time, up to a minute.
    init(log: EventLog, first: Duration = .seconds(1)) { (self.log, self.first) = (log, first) }

    /// The failed parts, by what they do, with the reasons.
    func incidents(at now: ContinuousClock.Instant = .now) -> [(service: String, reason: String)] {
        entries.withLock { entries in
            entries.filter { entry in entry.value.since.map { $0.duration(to: now) < Self.calm } ?? true }
        }.map { ($0.key, $0.value.reason) }.sorted { $0.0 < $1.0 }
    }

    /// Runs `work` until the task is cancelled or the agent stops.
    ///
    /// - Parameter service: what it does, for people.
    func keep(_ service: String, _ work: () async throws -> Void) async {
        var failures = 0
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
            failures = begun.duration(to: .now) > Self.calm ? 1 : failures + 1
            let pause = Duration.backoff(first, upTo: Self.longest, after: failures)
            entries.withLock { $0[service] = (reason, nil) }
            log.emit(.serviceFailed(service: service, reason: reason, wait: pause))
            await Task.restUntilStop(for: pause)
            entries.withLock { $0[service]?.since = .now }
        }
        entries.withLock { $0[service] = nil }
    }

    private static var isAsked: Bool { Task.isCancelled || Task.isShuttingDownGracefully }
}

/// Tells systemd that the agent is ready, stopping, and alive. `WATCHDOG=1` goes out only when intake, journal and
/// workers have each passed their loop since the last one (sd_notify(3), sd_watchdog_enabled(3)).
struct Watchdog: Service {
    let shared: Shared
    let manager: SystemdNotifier
    /// Raised when the agent is ready for questions; nil where nobody asks.
    let door: WakeSignal?

    func run() async throws {
        // Ready means that the socket answers.
        if let door { await cancelWhenGracefulShutdown { await door.wait(until: nil) } }
        if !Task.isShuttingDownGracefully {
            let roots = shared.settings.watch.count
            shared.log.emit(.agentReady(roots: roots, destinations: shared.destinations.count))
            manager.ready()
        }
        if let notify = manager.notify, let interval = notify.watchdogInterval {
            await watch(notify, every: interval / 3)
        } else {
            await Task.waitForStop()
        }
        shared.log.emit(.agentStopping)
        manager.stopping()
    }

    private func watch(_ notify: SystemdSocket, every interval: Duration) async {
        let heartbeat = shared.health.heartbeat
        var last: [Heartbeat.Part: Int] = [:]
        _ = heartbeat.haveAllPassed(since: &last)
        while !Task.isShuttingDownGracefully, !Task.isCancelled {
            shared.nudge()
            // A silent journal gives no sign of life: the watchdog is for that.
            if await shared.journal.answers { heartbeat.beat(.journal) }
            await Task.restUntilStop(for: interval)
            if heartbeat.haveAllPassed(since: &last) { _ = notify.send("WATCHDOG=1") }
        }
    }
}

/// Notifies the service manager (sd_notify(3)) in order: ready first, stopping last. A reload is reported only in
/// between, because `READY=1` ends it. A reload before the end of the start is not reported, and one that ends during
/// the stop does not cancel the stop.
final class SystemdNotifier: Sendable {
    private enum Phase {
        case starting
        case ready
        case reloading
        case stopping
    }

    /// nil: nobody listens.
    let notify: SystemdSocket?
    private let phase = Mutex(Phase.starting)

    init(_ notify: SystemdSocket?) { self.notify = notify }

    func ready() { change(from: [.starting], to: .ready) { $0.send("READY=1") } }
    func reloading() { change(from: [.ready], to: .reloading) { $0.reloading() } }
    func reloaded() { change(from: [.reloading], to: .ready) { $0.send("READY=1") } }
    func stopping() { change(from: [.starting, .ready, .reloading], to: .stopping) { $0.send("STOPPING=1") } }

    /// Sent while the phase is held, so that simultaneous messages keep the order of the phases; sending does not
    /// block.
    private func change(from: Set<Phase>, to next: Phase, _ tell: (SystemdSocket) -> Void) {
        phase.withLock { phase in
            guard from.contains(phase) else { return }
            phase = next
            if let notify { tell(notify) }
        }
    }
}

extension ServiceGroup {
    /// A service group without a log.
    ///
    /// Services are named by their types: by default a group dumps everything that each one holds, and keeps the dump.
    package init(quietly services: [any Service]) {
        let logger = Logger(label: "lifecycle") { _ in SwiftLogNoOpLogHandler() }
        let configured = services.map { service in
            ServiceGroupConfiguration.ServiceConfiguration(
                service: service, serviceName: String(describing: type(of: service)))
        }
        self.init(configuration: ServiceGroupConfiguration(services: configured, logger: logger))
    }
}
