package import InletConfig
package import InletCore
internal import InletJournal
internal import InletLinux
package import InletPipelines
internal import ServiceLifecycle
internal import Synchronization
package import SystemPackage

/// Applies another configuration while the agent runs, one at a time: first all of it is read and tried, then it
/// replaces the old one without touching running work. An invalid one changes nothing.
package final class Reload: Service {
    private typealias Asking = [CheckedContinuation<ReloadOutcome, Never>]

    /// The parts that use the configuration, other than those that ask `Shared` each time.
    struct Parts: Sendable {
        let roots: RootSupervisor
        let bandwidth: BandwidthControl
        let notifications: NotificationStage
        let scheduler: Scheduler
        let tally: MetricsCollector
    }

    private let shared: Shared
    let source: any ReloadSource
    private let parts: Parts
    private let manager: SystemdNotifier
    private let state: Mutex<(config: LoadedConfig, isWanted: Bool, asking: Asking, isClosed: Bool)>
    private let signal = WakeSignal()
    private let isStopping = StopFlag()
    /// The only place where it blocks.
    private let pool = BlockingPool(name: "reload", threads: 1)

    private var journal: Journal { shared.journal }
    private var registry: DestinationRegistry { shared.destinations }

    init(_ shared: Shared, _ source: any ReloadSource, _ parts: Parts, _ manager: SystemdNotifier) {
        (self.shared, self.source, self.parts, self.manager) = (shared, source, parts, manager)
        state = Mutex((source.config, false, [], false))
        show(source.config)
    }

    /// The configuration in effect.
    var running: LoadedConfig { state.withLock(\.config) }

    /// Publishes the configuration.
    private func show(_ config: LoadedConfig) {
        let text = ConfigPrinter.show(config, types: source.types)
        shared.settings.show(RunningConfig(file: config.file, text: text, loadedAt: .now))
    }

    /// A destination with the present secrets behind the same text; all other changes need a reload. Blocks.
    func renewed(_ destination: String) -> Destination? { source.renew(destination, state.withLock(\.config)) }

    /// Requests a reload without waiting for the result: for a signal.
    package func request() {
        state.withLock { $0.isWanted = true }
        signal.raise()
    }

    /// Reloads. All requests during a reload share the next one.
    package func reload() async -> ReloadOutcome {
        await withCheckedContinuation { continuation in
            let isClosed = state.withLock { state in
                if !state.isClosed { state.asking.append(continuation) }
                return state.isClosed
            }
            if isClosed { continuation.resume(returning: Self.stopping) } else { signal.raise() }
        }
    }

    private static let stopping = ReloadOutcome.failed("the agent is stopping")

    package func run() async throws {
        await withGracefulShutdownHandler {
            while !isStopping.isSet, !Task.isCancelled {
                await signal.wait(until: nil)
                let (isWanted, asking) = take()
                answer(asking, isWanted && !isStopping.isSet ? await reloadNow() : Self.stopping)
            }
        } onGracefulShutdown: {
            self.isStopping.set()
            self.signal.raise()
        }
        state.withLock { $0.isClosed = true }
        answer(take().asking, Self.stopping)
    }

    private func take() -> (isWanted: Bool, asking: Asking) {
        state.withLock { state in
            defer { (state.isWanted, state.asking) = (false, []) }
            return (state.isWanted || !state.asking.isEmpty, state.asking)
        }
    }

    private func answer(_ asking: Asking, _ outcome: ReloadOutcome) {
        for continuation in asking { continuation.resume(returning: outcome) }
    }

    private func reloadNow() async -> ReloadOutcome {
        manager.reloading()
        defer { manager.reloaded() }
        let outcome = await attempt()
        let file = state.withLock(\.config.file)
        switch outcome {
        case .done(let changes, let parked, let warnings):
            let restart = changes.filter(\.needsRestart).map(\.path)
            shared.log.emit(
                .configReloaded(
                    file: file, changes: changes.map(\.path), parked: parked, restart: restart,
                    warnings: warnings.map(\.text)))
        case .refused(let errors): shared.log.emit(.configRefused(file: file, errors: errors.map(\.text)))
        case .failed(let reason): shared.log.emit(.configRefused(file: file, errors: [reason]))
        }
        return outcome
    }

    private func attempt() async -> ReloadOutcome {
        let trial: PreparedReload
        do throws(ConfigErrors) {
            trial = try await pool.run { [source] () throws(ConfigErrors) in try source.read() }
        } catch {
            return .refused(error.list.map { ConfigFault($0) })
        }
        let running = state.withLock(\.config)
        let changes = ConfigDiff.changes(from: running, to: trial.config, types: source.types)
        let next = trial.config.taking(over: running)
        do {
            // Opened first, where that may take its time; it is used only when everything else is sure.
            let output = try await pool.run { [log = shared.log] () throws(SystemError) in
                try log.prepare(next.settings.log)
            }
            let parked = try await swap(to: next.settings, trial, changes, output)
            state.withLock { $0.config = next }
            show(next)
            return .done(
                changes: changes, parked: parked, warnings: trial.config.warnings.map { ConfigFault($0) })
        } catch {
            return .failed("no change: \(error)")
        }
    }

    // MARK: - The steps

    /// Replaces the configuration in effect, by steps of which each is harmless: after a crash between two, the next
    /// start uses the file.
    ///
    /// New destinations come before the routes to them, and old ones go after the last admission by the old routes. A
    /// file that settles meanwhile is not in the journal yet: the folder's next watcher finds it. A file in the journal
    /// keeps its keys and destinations.
    /// - Returns: how many deliveries wait for removed destinations.
    /// - Throws: before anything has changed: `JournalError`, `SystemError`.
    private func swap(
        to settings: Settings, _ trial: PreparedReload, _ diff: [ConfigChange], _ output: EventLog.Setup?
    ) async throws -> Int {
        let old = shared.settings.settings
        let plan = WatchChanges(from: old.watch, to: settings.watch, isRouted: diff.isRouted)
        let beginning = try parts.roots.prepare(plan)
        let former = FormerRoots(stateDirectory: old.stateDirectory)
        let left = try await pool.run { () throws(SystemError) in
            try former.remember(settings, former: shared.settings.knownRoots, isOwed: true)
        }
        let names = Set(settings.destinations.map(\.name))
        let changed = diff.changed(trial.destinations)
        let isNew = changed.contains { registry[$0.name] == nil }
        let paused = isNew ? try await journal.paused() : []
        let uptimes = isNew ? try await journal.uptimes() : [:]
        let unproved = isNew ? try await journal.awaited() : []
        // Before a file is admitted for them.
        try await shared.fleet.keys.begin(at: destinations(with: changed), settings)
        let receivers = diff.has("notify") ? NotificationReceiver.all(settings.notify, trial.notificationClients) : nil
        // Before the first delivery there.
        let notifier = try await register(changed, receivers)

        shared.log.take(output)
        parts.tally.add(destinations: settings.destinations.map(\.name), routes: settings.routes.map(\.name))
        registry.take(changed, paused: paused, uptimes: uptimes, unproved: unproved)
        for destination in changed { registry.probeNow(destination.name) }
        // Before the first notification to them.
        replaceBandwidth(settings, names)
        await parts.roots.end(plan)
        shared.settings.replace(settings, former: left)
        // Once nobody lists what was a share, or becomes one.
        await beginPlaces(settings)
        parts.roots.begin(beginning, plan)
        let parked = await park(exceptOf: names, isNew)
        await closeUnits(settings)
        shared.room.set(settings.queueLimit)
        replace(notifier, settings, trial, diff)
        wakeAll()
        return parked
    }

    /// The present ones, but for those that have changed.
    private func destinations(with changed: [Destination]) -> [Destination] {
        registry.names.filter { name in !changed.contains { $0.name == name } }.compactMap { registry[$0] } + changed
    }

    /// Any service may have work now, and a destination be back that has the files of a card.
    private func wakeAll() {
        shared.signals.raiseDeliverable()
        shared.signals.raise(.finishable, .leftover, .destination, .limit)
        shared.arrivals.signal.raise()
        for card in shared.cards.all { card.touch() }
    }

    private func replace(
        _ notifier: NotificationSender?, _ settings: Settings, _ trial: PreparedReload, _ diff: [ConfigChange]
    ) {
        if let notifier { parts.notifications.replace(by: notifier) }
        let scheduler = parts.scheduler
        if diff.has("ping_url", "ping_interval", "ping_allow_http", "ping_ca_file") {
            scheduler.replace(.ping, by: Pinger(shared, trial.notificationClients.ping, settings.ping))
        }
        if diff.has("journal_backup") {
            scheduler.replace(.backup, by: BackupJob(journal, settings.journalBackup, shared.log))
        }
        if diff.has("journal_history") {
            scheduler.replace(.history, by: HistoryPruner(shared, settings.historyAfter))
        }
        if diff.hasDestinations { scheduler.replace(.keepAlive, by: KeepAlive(shared)) }
    }

    private func replaceBandwidth(_ settings: Settings, _ names: Set<String>) {
        let remote = registry.names.filter { names.contains($0) && registry[$0]?.folder == nil }
        parts.bandwidth.replace(settings.bandwidth, destinations: remote)
    }

    private func beginPlaces(_ settings: Settings) async {
        do throws(JournalError) {
            try await shared.fleet.places.begin(settings)
        } catch {
            shared.log.emit(.agentError(reason: "the shares of the fleet wait for the next reload or start: \(error)"))
        }
    }

    /// Units of folders that are no longer watched: nobody else would close them.
    private func closeUnits(_ settings: Settings) async {
        do {
            _ = try await journal.closeUnits(
                exceptOf: settings.watch, uptimes: registry.uptimes(), closing: registry.closers, at: .now)
        } catch {
            let what = "units of folders that are no longer watched wait for the next reload or start"
            shared.log.emit(.agentError(reason: "\(what): \(error)"))
        }
    }

    /// Removes all destinations but these, and parks their deliveries; resumes parked deliveries of new ones.
    private func park(exceptOf names: Set<String>, _ isNew: Bool) async -> Int {
        let left = registry.keep(only: names)
        if left.isEmpty, !isNew { return 0 }
        for (name, uptime) in left where uptime > 0 { await journal.keepUptime(name, uptime) }
        defer { registry.strays.raise() }
        do throws(JournalError) {
            return try await journal.setDestinations(Array(names), at: .now).parked
        } catch {
            // `RemovedDestinationStage` asks the journal again.
            registry.hasStrays()
            return 0
        }
    }

    /// Stores the destinations' addresses, and restores them if the rest fails: one transaction, and the last step that
    /// can.
    ///
    /// - Parameter receivers: the new receivers; nil keeps the present ones.
    private func register(
        _ changed: [Destination], _ receivers: [NotificationReceiver]?
    ) async throws(JournalError) -> NotificationSender? {
        try await journal.setAddresses(Destination.addresses(changed))
        guard let receivers else { return nil }
        do throws(JournalError) {
            return try await NotificationSender(receivers, journal: journal, log: shared.log, listens: false)
        } catch {
            try await journal.setAddresses(Destination.addresses(changed.compactMap { registry[$0.name] }))
            throw error
        }
    }
}

/// The subjects of a list of changes.
extension [ConfigChange] {
    private var ofDestinations: [[String]] { map(\.keys).filter { $0.first == "destinations" && $0.count > 1 } }

    fileprivate var hasDestinations: Bool { !ofDestinations.isEmpty }

    /// The new and the changed ones.
    fileprivate func changed(_ destinations: [Destination]) -> [Destination] {
        let names = Set(ofDestinations.map { $0[1] })
        return destinations.filter { names.contains($0.name) }
    }

    /// Whether it changes the plans of files: routes, or facts about destinations that routes use.
    fileprivate var isRouted: Bool {
        // A whole destination: it came, went, or has another type.
        ofDestinations.contains { $0.count == 2 } || has("routes")
            || contains { $0.keys.starts(with: ["limits", "zone"]) }
    }

    /// Whether it is about one of these keys of the file.
    fileprivate func has(_ keys: String...) -> Bool { contains { $0.keys.first.map(keys.contains) ?? false } }
}

/// Parks deliveries that return to the queue for removed destinations. Sleeps while there are none.
struct RemovedDestinationStage: Service {
    let shared: Shared

    private static let pause = Duration.seconds(30)

    func run() async throws {
        let registry = shared.destinations
        await cancelWhenGracefulShutdown {
            var again: ContinuousClock.Instant?
            while !Task.isCancelled {
                await registry.strays.wait(until: again)
                // Recorded before the look: a delivery that ends meanwhile raises the signal again.
                registry.hasStrays()
                do throws(JournalError) {
                    let isOpen = try await shared.journal.parkStrays(except: { registry.names }, at: .now)
                    if !isOpen { registry.straysAreParked() }
                    again = nil
                } catch {
                    // A journal that accepts nothing now is asked again.
                    again = .now.advanced(by: Self.pause)
                }
            }
        }
    }
}

/// The source of a running agent's configurations. Its calls block.
package protocol ReloadSource: Sendable {
    /// The configuration of the start.
    var config: LoadedConfig { get }
    /// Those with which it is read.
    var types: [DestinationType] { get }
    /// Reads the present file and tries all of it, without an effect on running work.
    func read() throws(ConfigErrors) -> PreparedReload
    /// Checks a text in place of the file's, as at a start.
    func check(_ text: [UInt8]) throws(ConfigErrors) -> PreparedReload
    /// Why a checked configuration takes effect only after a restart; nil where a reload suffices.
    func restartReason(_ config: LoadedConfig) -> String?
    /// Makes a destination anew with the present secrets behind the same text; nil where the text differs from `held`,
    /// or is unreadable.
    func renew(_ name: String, _ held: LoadedConfig) -> Destination?
}

/// A usable configuration, with its destinations and clients.
package typealias PreparedReload = (
    config: LoadedConfig, destinations: [Destination], notificationClients: NotificationClients
)

/// The result of a reload.
package enum ReloadOutcome: Sendable, Equatable {
    /// The new configuration is in effect, except for changes that need a restart.
    case done(changes: [ConfigChange], parked: Int, warnings: [ConfigFault] = [])
    /// The old one stays.
    case refused([ConfigFault])
    /// The old one stays, for a reason outside the file.
    case failed(String)
}

/// One error or warning in a configuration file, with its place; holds no secrets.
package struct ConfigFault: Codable, Sendable, Equatable {
    package var file: String
    /// Both count from 1.
    package var line: Int
    package var column: Int
    package var message: String
    /// The source line and a caret under the place; empty for an empty line.
    package var excerpt: String
    /// The whole text, as `inlet check` prints it.
    package var text: String

    init(_ error: ConfigError) {
        (file, line, column) = (error.file, error.line, error.column)
        (message, excerpt, text) = (error.message, error.excerpt, error.description)
    }
}

/// A running agent's configuration, for display.
package struct RunningConfig: Sendable, Equatable {
    package var file: FilePath
    /// As `inlet config show` prints it.
    package var text: String
    package var loadedAt: WallTime
}
