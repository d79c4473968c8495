package import InletCore
package import InletJournal
internal import InletLinux
package import InletPipelines
package import ServiceLifecycle
internal import SystemPackage

/// The composition root. Files come in by `RootLoop`, wait in the `Journal`, go out by `DeliveryStage`, and are done with
/// by `FinishingStage`; the other services keep these four honest. Read `services` to see what runs, and in what order it stops.
package final class Agent: Sendable {
    /// What to call this agent in its first log line.
    package struct Label: Sendable {
        package var version: String
        package var configuration: String
        /// nil where the process does something else besides.
        package var confinement: ConfinementReport?

        package init(version: String, configuration: String, confinement: ConfinementReport? = nil) {
            self.confinement = confinement
            self.version = version
            self.configuration = configuration
        }
    }

    package let view: AgentView
    package let commands: AgentCommands
    /// Takes another configuration; nil for an agent that has no file of one.
    package let reload: Reload?
    /// In start order; a service group stops them in reverse: first nothing new comes in, then running parts end, then
    /// what has ended is finished.
    package let services: [any Service]

    /// Puts the journal in order and builds the services; nothing runs yet. The caller holds the state directory's lock.
    ///
    /// - Parameters:
    ///   - sendRoots: of an agent that is there for `send` alone, whose settings name no watched folders: those that the
    ///     configuration has. Their files go on as far as they are in the journal; nobody is told. nil = an agent that watches.
    ///   - outlets: those who are told what happens.
    ///   - valve: where the rates are set at which may be sent.
    ///   - pace: how often destinations are probed.
    ///   - holdPatience: how long a limit of 0 may hold what is under way: one that is 0 for a moment ends nothing.
    ///   - renew: makes a destination anew from the configuration as it is now, for changed credentials.
    ///   - places: how much is remembered of each root.
    ///   - silence: after so long without a byte a big transfer keeps no place of those that all destinations share.
    ///   - source: where another configuration comes from; nil = there is none but this.
    ///   - goesOn: asked after an error of the journal's disk or of the journal; says whether to try again.
    ///   - door: raised when the agent can be asked, before which it is not ready; nil where nobody asks it.
    /// - Throws: `JournalError`; `SystemError` when the system gives no descriptors.
    package init(
        settings: Settings, destinations: [Destination], journal: Journal, log: EventLog, label: Label,
        sendRoots: [WatchSettings]? = nil, outlets: Outlets = Outlets(), valve: BandwidthValve = BandwidthValve(),
        pace: ProbePace = .configured, holdPatience: Duration = .seconds(10),
        places: Settler.Places = Settler.Places(), silence: Duration = .seconds(30),
        renew: @escaping @Sendable (String) -> Destination? = { _ in nil }, source: ReloadSource? = nil,
        door: WakeSignal? = nil, goesOn: (any Error) async throws -> Bool = { _ in false }
    ) async throws {
        // First of all, so that it counts what the start finds.
        let tally = MetricsTally(destinations: destinations.map(\.name), routes: settings.routes.map(\.name))
        _ = log.listen(tally.count)
        log.emit(.agentStarted(version: label.version, configuration: label.configuration))
        if let confinement = label.confinement { log.emit(confinement.event) }
        let whole = settings.watching(sendRoots ?? settings.watch)
        let former = FormerRoots(stateDirectory: settings.stateDirectory)
        let (notifier, board, left) = try await Self.again(while: goesOn) {
            let notifier = try await Notifier(
                AgentParts.receivers(settings.notify, outlets), journal: journal, log: log)
            let board = try await Self.recover(journal, destinations, whole, pace, log)
            return (notifier, board, try await Self.remember(former, whole, journal))
        }
        let parts = try AgentParts(
            live: LiveSettings(settings, sendRoots: sendRoots, former: left + (sendRoots ?? [])), board: board,
            journal: journal,
            log: log, version: label.version,
            begun: try await journal.begunDeliveries(limit: DeliveryAttempts.mostResumable),
            resume: ResumeWatch(try await journal.waitingFiles(limit: ResumeWatch.most), log: log),
            valve: valve, holdPatience: holdPatience, notifier: notifier, ping: outlets.ping, places: places,
            silence: silence)
        reload = source.map { Reload($0, parts.reloadSteps(former, tally), log: log, manager: parts.manager) }
        let renewals = parts.renewals
        services =
            [parts.journalWatch] + (sendRoots == nil ? [renewals.notifier, renewals.pinger] : []) + [
                parts.sweeper, parts.probes(Self.renewal(renew, source, reload)), renewals.keepAlive,
                parts.limits, parts.manifests(label.version), parts.finisher, parts.workers,
                parts.housekeeper, renewals.backups, renewals.history, parts.strays, parts.intakes,
                try parts.mounts(), parts.watchdog(door),
            ] + (reload.map { [$0] } ?? [])
        commands = AgentCommands(journal: journal, live: parts.commands(reload))
        view = AgentView(journal: journal, live: parts.liveView(label, reload, tally))
    }

    /// The folders of an earlier configuration of which something is left to do.
    private static func remember(
        _ former: FormerRoots, _ settings: Settings, _ journal: Journal
    ) async throws -> [WatchSettings] {
        try former.remember(
            settings, former: try former.beside(settings.watch).roots, isOwed: try await journal.mayFinishMore())
    }

    /// A start waits for the disk of the journal where somebody says that it shall.
    private static func again<Value>(
        while goesOn: (any Error) async throws -> Bool, _ body: () async throws -> Value
    ) async throws -> Value {
        while true {
            do {
                return try await body()
            } catch {
                guard try await goesOn(error) else { throw error }
            }
        }
    }

    /// With a configuration file, only what stands behind the same text is taken from it: the rest is for a reload.
    private static func renewal(
        _ renew: @escaping @Sendable (String) -> Destination?, _ source: ReloadSource?, _ reload: Reload?
    ) -> @Sendable (String) -> Destination? {
        guard let source, let reload else { return renew }
        return { name in source.renew(name, reload.config) }
    }

    /// Frees the claims of a process that died, and finds out how the destinations stand: those for which work waits are asked
    /// before any of it goes.
    private static func recover(
        _ journal: Journal, _ destinations: [Destination], _ settings: Settings, _ pace: ProbePace, _ log: EventLog
    ) async throws -> DestinationRegistry {
        try await journal.setAddresses(Destination.addresses(destinations))
        let recovery = try await journal.recover(destinations: destinations.map(\.name), boot: Boot.number(), at: .now)
        Failpoint.recovered.reached()
        if !recovery.isEmpty {
            log.emit(
                .jobRecovered(claims: recovery.freedClaims, parked: recovery.parked, unparked: recovery.unparked))
        }
        for crashed in recovery.crashed { log.emit(.jobFailed(.init(crashed), state: .failed, crashed.error)) }
        let board = DestinationRegistry(
            destinations, paused: try await journal.paused(), uptimes: try await journal.uptimes(),
            workers: settings.workers, log: log, unproved: try await waitingFor(journal), pace: pace)
        _ = try await journal.closeUnits(
            exceptOf: settings.watch, uptimes: board.uptimes(), closing: board.closers, at: .now)
        return board
    }

    /// The destinations for which something waits that may go, or that work on something.
    static func waitingFor(_ journal: Journal) async throws(JournalError) -> Set<String> {
        Set(try await journal.queueCounts().filter { $0.value.waiting + $0.value.working > 0 }.keys)
    }
}

extension Settings {
    /// The same with other watched folders.
    fileprivate func watching(_ watch: [WatchSettings]) -> Settings {
        var settings = self
        settings.watch = watch
        return settings
    }
}
