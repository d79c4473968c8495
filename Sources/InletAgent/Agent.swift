package import InletCore
package import InletJournal
internal import InletLinux
package import InletPipelines
package import ServiceLifecycle
internal import SystemPackage

/// The agent on one screen. `RootSupervisor` runs a `RootLoop` for each watched folder, files wait in the `Journal`,
/// `DeliveryStage` delivers them, and `FinishingStage` disposes of their sources if needed. The other services support
/// these. They share `Shared`; no stage holds another. `Reload` and `AgentControl` hold the parts that they change and
/// ask.
package final class Agent: Sendable {
    /// Questions and orders from outside.
    package let control: AgentControl
    /// Applies another configuration; nil for an agent without a configuration file.
    package let reload: Reload?
    /// In start order. A service group stops them in reverse, each after the one before has ended. New files stop
    /// first, then running parts, then the finishing of sources, then notifications. The journal's files are checked
    /// last.
    package let services: [any Service]

    /// Puts the journal in order and builds the services; nothing runs yet. The caller holds the state directory's
    /// lock.
    ///
    /// - Parameters:
    ///   - sendRoots: the configured watched folders, for an agent that serves `send` alone. Its own settings watch
    ///     none; files in the journal continue, and no notification is sent. nil is an agent that watches.
    ///   - notificationClients: clients for the configured receivers.
    ///   - valve: sets the bandwidth limits.
    ///   - source: reads another configuration; nil disables reloads.
    ///   - fleet: the fleet that it is a member of; nil is an agent alone.
    ///   - door: raised when the agent is ready for questions; nil where nobody asks.
    ///   - goesOn: called after an error of the journal or its disk; returns whether to try again.
    /// - Throws: `JournalError`; `SystemError` when the system has no descriptors.
    package init(
        settings: Settings, destinations: [Destination], journal: Journal, log: EventLog, label: Label,
        sendRoots: [WatchSettings]? = nil, notificationClients: NotificationClients = NotificationClients(),
        valve: @escaping BandwidthValve = { _, _ in },
        source: (any ReloadSource)? = nil, fleet: FleetSetup? = nil, door: WakeSignal? = nil, bounds: Bounds = Bounds(),
        goesOn: (any Error) async throws -> Bool = { _ in false }
    ) async throws {
        // Before everything else, so that it counts the events of the start.
        let tally = Self.announce(settings, destinations, label, log)
        let (shared, notifier, joined) = try await Self.again(while: goesOn) {
            try await Self.recover(
                settings, sendRoots, destinations, notificationClients, journal, bounds.probes, fleet, log)
        }
        let begun = try await journal.begunDeliveries(limit: DeliveryAttempt.mostResumable)
        let resumes = ResumeReport(try await journal.waitingFiles(limit: ResumeReport.most), log: log)
        let (systemd, finishing) = (SystemdNotifier(SystemdSocket()), BlockingPool(name: "finisher", threads: 2))
        let ping = sendRoots == nil ? notificationClients.ping : nil
        let parts = try Reload.Parts(shared, notifier, tally, valve, ping, bounds.places)
        let reload = source.map { Reload(shared, $0, parts, systemd) }

        let control = AgentControl(
            .init(
                shared: shared, label: label, tally: tally, resumes: resumes, bandwidth: parts.bandwidth,
                reload: reload, editor: reload.map { ConfigEditor(shared, $0, label.confinement) }, fleet: joined,
                changeable: Self.changeable(shared.settings.knownRoots, label.confinement)))
        let all: [(any Service)?] = [
            JournalMonitor(shared: shared), joined.map { FleetStage($0, shared, control, parts.bandwidth) },
            joined.map { PlaceStage(parts: $0, shared: shared) },
            sendRoots == nil ? parts.notifications : nil,
            parts.scheduler, ArrivalMonitor(shared, tally, parts.notifications),
            UploadCleaner(shared: shared), Probes(shared: shared, renew: { [reload] in reload?.renewed($0) }),
            parts.bandwidth, ManifestWriter(shared: shared, pool: finishing, version: label.version),
            FinishingStage(shared, finishing, version: label.version),
            DeliveryStage(shared, begun: begun, patience: bounds.holdPatience, silence: bounds.silence),
            ExpiryClocks(shared: shared), RemovedDestinationStage(shared: shared),
            RecoveredDestinations(shared: shared), try CardStage(shared),
            parts.roots, Watchdog(shared: shared, manager: systemd, door: door), reload,
        ]
        (self.control, self.reload, services) = (control, reload, all.compactMap(\.self))
    }

    /// The folders in which confinement lets the agent change files; nil without confinement. A later configuration
    /// changes nothing in that.
    static func changeable(_ watch: [WatchSettings], _ confinement: ConfinementReport?) -> Set<FilePath>? {
        guard let confinement, confinement.landlock != nil else { return nil }
        return Set(watch.filter { confinement.mayWrite(in: $0.pattern?.parent ?? $0.path) }.map(\.path))
    }

    /// - Returns: the counters of all events from now on.
    private static func announce(
        _ settings: Settings, _ destinations: [Destination], _ label: Label, _ log: EventLog
    ) -> MetricsCollector {
        let tally = MetricsCollector(destinations: destinations.map(\.name), routes: settings.routes.map(\.name))
        log.listen(tally.count)
        log.emit(.agentStarted(version: label.version, configuration: label.configuration))
        if let confinement = label.confinement { log.emit(confinement.event) }
        return tally
    }

    /// The start waits for the journal's disk if the caller wants that.
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

    /// Registers the notification receivers, frees the claims of a process that died, reads the destinations' state,
    /// and resumes folders of an earlier configuration with unfinished files. A destination with waiting work is
    /// checked before its first delivery.
    private static func recover(
        _ settings: Settings, _ sendRoots: [WatchSettings]?, _ destinations: [Destination],
        _ notificationClients: NotificationClients,
        _ journal: Journal, _ pace: ProbePace, _ setup: FleetSetup?, _ log: EventLog
    ) async throws -> (Shared, NotificationSender, FleetParts?) {
        let receivers = NotificationReceiver.all(settings.notify, notificationClients)
        let notifier = try await NotificationSender(receivers, journal: journal, log: log)
        try await journal.setAddresses(Destination.addresses(destinations))
        let recovery = try await journal.recover(
            destinations: destinations.map(\.name), boot: ProcessSetup.bootNumber(), at: .now)
        Failpoint.recovered.reached()
        if !recovery.isEmpty {
            log.emit(
                .jobRecovered(claims: recovery.freedClaims, parked: recovery.parked, unparked: recovery.unparked))
        }
        if recovery.knowsCleanNames, !settings.undecidedNames.isEmpty {
            log.emit(.namesKept(destinations: settings.undecidedNames))
        }
        for crashed in recovery.crashed { log.emit(.jobFailed(.init(crashed), state: .failed, crashed.error)) }
        let registry = DestinationRegistry(
            destinations, paused: try await journal.paused(), uptimes: try await journal.uptimes(),
            workers: settings.workers, log: log, unproved: try await journal.awaited(),
            outages: try await journal.outages(of: destinations.map(\.name)), pace: pace)
        var whole = settings
        whole.watch = sendRoots ?? settings.watch
        _ = try await journal.closeUnits(
            exceptOf: whole.watch, uptimes: registry.uptimes(), closing: registry.closers, at: .now)
        let former = FormerRoots(stateDirectory: settings.stateDirectory)
        let left = try former.remember(
            whole, former: try former.beside(whole.watch).roots, isOwed: try await journal.mayFinishMore())
        let live = LiveSettings(settings, sendRoots: sendRoots, former: left + (sendRoots ?? []))
        let fleet = try await FleetParts(setup, journal, log)
        let shared = Shared(live, journal, registry, log, fleet?.seams)
        try await shared.fleet.keys.begin(at: destinations, settings)
        try await shared.fleet.places.begin(settings)
        return (shared, notifier, fleet)
    }

    /// The agent's name in its first log line; no confinement where the process does other work too.
    package typealias Label = (version: String, configuration: String, confinement: ConfinementReport?)

    /// Settings for tests.
    package struct Bounds: Sendable {
        /// How often destinations are probed.
        package var probes = ProbePace.configured
        /// How long a limit of 0 may hold running deliveries: a short one ends none.
        package var holdPatience = Duration.seconds(10)
        /// A big transfer without a byte for so long frees its place among those that all destinations share.
        package var silence = Duration.seconds(30)
        /// The limits of what is remembered of each root.
        package var places = Settler.Places()

        package init() {}
    }
}

extension Reload.Parts {
    /// Of an agent that begins.
    fileprivate init(
        _ shared: Shared, _ notifier: NotificationSender, _ tally: MetricsCollector, _ valve: @escaping BandwidthValve,
        _ ping: HealthPing?, _ places: Settler.Places
    ) throws {
        self.init(
            roots: try RootSupervisor(shared, places), bandwidth: BandwidthControl(shared, valve),
            notifications: NotificationStage(notifier, shared.health.restarts),
            scheduler: Scheduler(shared, ping: ping),
            tally: tally)
    }
}

extension Journal {
    /// The destinations with waiting or processing deliveries. A destination that was configured from the start has no
    /// parked ones.
    func awaited() async throws(JournalError) -> Set<String> {
        Set(try await queueCounts().filter { $0.value.waiting + $0.value.working + $0.value.parked > 0 }.keys)
    }
}
