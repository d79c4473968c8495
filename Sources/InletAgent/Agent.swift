package import InletCore
package import InletJournal
internal import InletLinux
package import InletPipelines
package import ServiceLifecycle
internal import SystemPackage

/// The agent on one screen. Files come in by `RootSupervisor`, which runs a `RootLoop` for each watched folder, wait in the
/// `Journal`, go out by `DeliveryStage`, and are done with by `FinishingStage`, unless nothing is to be done with their source.
/// The other services support these. What they share is in `Shared`; no stage holds another. `Reload` and `AgentControl`
/// hold those that they change and ask.
package final class Agent: Sendable {
    /// What may be asked and ordered.
    package let control: AgentControl
    /// Takes another configuration; nil for an agent that has no file of one.
    package let reload: Reload?
    /// In start order. A service group stops them in reverse, each when the one before has ended: first nothing new comes in,
    /// then running parts end, then what has ended is finished, then told; last of all the journal's files are looked at.
    package let services: [any Service]

    /// Puts the journal in order and builds the services; nothing runs yet. The caller holds the state directory's lock.
    ///
    /// - Parameters:
    ///   - sendRoots: of an agent that is there for `send` alone, whose settings name no watched folders: those that the
    ///     configuration has. Their files go on as far as they are in the journal; nobody is told. nil = an agent that watches.
    ///   - notificationClients: those who are told what happens.
    ///   - valve: where the rates are set at which may be sent.
    ///   - source: where another configuration comes from; nil = there is none but this.
    ///   - door: raised when the agent can be asked, before which it is not ready; nil where nobody asks it.
    ///   - goesOn: asked after an error of the journal's disk or of the journal; says whether to try again.
    /// - Throws: `JournalError`; `SystemError` when the system gives no descriptors.
    package init(
        settings: Settings, destinations: [Destination], journal: Journal, log: EventLog, label: Label,
        sendRoots: [WatchSettings]? = nil, notificationClients: NotificationClients = NotificationClients(),
        valve: @escaping BandwidthValve = { _, _ in },
        source: (any ReloadSource)? = nil, door: WakeSignal? = nil, bounds: Bounds = Bounds(),
        goesOn: (any Error) async throws -> Bool = { _ in false }
    ) async throws {
        // First of all, so that it counts what the start finds.
        let tally = Self.announce(settings, destinations, label, log)
        let (shared, notifier) = try await Self.again(while: goesOn) {
            try await Self.recover(settings, sendRoots, destinations, notificationClients, journal, bounds.probes, log)
        }
        let begun = try await journal.begunDeliveries(limit: DeliveryAttempt.mostResumable)
        let resumes = ResumeReport(try await journal.waitingFiles(limit: ResumeReport.most), log: log)
        let (systemd, finishing) = (SystemdNotifier(SystemdSocket()), BlockingPool(name: "finisher", threads: 2))
        let parts = Reload.Parts(
            roots: try RootSupervisor(shared, bounds.places), bandwidth: BandwidthControl(shared, valve),
            notifications: NotificationStage(notifier, shared.health.restarts),
            scheduler: Scheduler(shared, ping: sendRoots == nil ? notificationClients.ping : nil), tally: tally)
        reload = source.map { Reload(shared, $0, parts, systemd) }

        let all: [(any Service)?] = [
            JournalMonitor(shared: shared),
            sendRoots == nil ? parts.notifications : nil,
            parts.scheduler,
            UploadCleaner(shared: shared), Probes(shared: shared, renew: { [reload] in reload?.renewed($0) }),
            parts.bandwidth,
            ManifestWriter(shared: shared, pool: finishing, version: label.version),
            FinishingStage(shared, finishing, version: label.version),
            DeliveryStage(shared, begun: begun, patience: bounds.holdPatience, silence: bounds.silence),
            ExpiryClocks(shared: shared), RemovedDestinationStage(shared: shared),
            parts.roots,
            Watchdog(shared: shared, manager: systemd, door: door), reload,
        ]
        services = all.compactMap(\.self)
        let live = AgentControl.Running(
            shared: shared, label: label, tally: tally, resumes: resumes, bandwidth: parts.bandwidth, reload: reload)
        control = AgentControl(live)
    }

    /// - Returns: what counts all that is said from now on.
    private static func announce(
        _ settings: Settings, _ destinations: [Destination], _ label: Label, _ log: EventLog
    ) -> MetricsCollector {
        let tally = MetricsCollector(destinations: destinations.map(\.name), routes: settings.routes.map(\.name))
        log.listen(tally.count)
        log.emit(.agentStarted(version: label.version, configuration: label.configuration))
        if let confinement = label.confinement { log.emit(confinement.event) }
        return tally
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

    /// Registers the notification receivers, frees the claims of a process that died, finds out how the destinations stand, and takes
    /// up the folders of an earlier configuration of which something is left to do. Destinations for which work waits are asked
    /// before any of it goes.
    private static func recover(
        _ settings: Settings, _ sendRoots: [WatchSettings]?, _ destinations: [Destination],
        _ notificationClients: NotificationClients,
        _ journal: Journal, _ pace: ProbePace, _ log: EventLog
    ) async throws -> (Shared, NotificationSender) {
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
        for crashed in recovery.crashed { log.emit(.jobFailed(.init(crashed), state: .failed, crashed.error)) }
        let registry = DestinationRegistry(
            destinations, paused: try await journal.paused(), uptimes: try await journal.uptimes(),
            workers: settings.workers, log: log, unproved: try await journal.awaited(), pace: pace)
        var whole = settings
        whole.watch = sendRoots ?? settings.watch
        _ = try await journal.closeUnits(
            exceptOf: whole.watch, uptimes: registry.uptimes(), closing: registry.closers, at: .now)
        let former = FormerRoots(stateDirectory: settings.stateDirectory)
        let left = try former.remember(
            whole, former: try former.beside(whole.watch).roots, isOwed: try await journal.mayFinishMore())
        let live = LiveSettings(settings, sendRoots: sendRoots, former: left + (sendRoots ?? []))
        return (Shared(live, journal, registry, log), notifier)
    }

    /// What to call this agent in its first log line; no confinement where the process does something else besides.
    package typealias Label = (version: String, configuration: String, confinement: ConfinementReport?)

    /// What only tests set otherwise.
    package struct Bounds: Sendable {
        /// How often destinations are probed.
        package var probes = ProbePace.configured
        /// How long a limit of 0 may hold what is under way: one that is 0 for a moment ends nothing.
        package var holdPatience = Duration.seconds(10)
        /// After so long without a byte a big transfer keeps no place of those that all destinations share.
        package var silence = Duration.seconds(30)
        /// How much is remembered of each root.
        package var places = Settler.Places()

        package init() {}
    }
}

extension Journal {
    /// The destinations for which something waits, or that work on something. One that is configured from the start has nothing
    /// parked.
    func awaited() async throws(JournalError) -> Set<String> {
        Set(try await queueCounts().filter { $0.value.waiting + $0.value.working + $0.value.parked > 0 }.keys)
    }
}
