package import InletCore
package import InletJournal
internal import InletLinux
package import InletPipelines
package import ServiceLifecycle
internal import SystemPackage

/// The composition root. Files come in by `RootIntake`, wait in the `Journal`, go out by `WorkerPool`, and are done with
/// by `Finisher`; the other services keep these four honest. Read `services` to see what runs, and in what order it stops.
package final class Agent: Sendable {
    /// What to call this agent in its first log line.
    package struct Label: Sendable {
        package var version: String
        package var configuration: String

        package init(version: String, configuration: String) {
            self.version = version
            self.configuration = configuration
        }
    }

    package let view: AgentView
    package let commands: AgentCommands
    /// In start order; a service group stops them in reverse: first nothing new comes in, then running parts end, then
    /// what has ended is finished.
    package let services: [any Service]

    /// Puts the journal in order and builds the services; nothing runs yet. The caller holds the state directory's lock.
    ///
    /// - Throws: `JournalError`; `SystemError` when the system gives no descriptors.
    package init(
        settings: Settings, destinations: [Destination], journal: Journal, log: EventLog, label: Label,
        sendRoots: [WatchSettings]? = nil
    ) async throws {
        let names = destinations.map(\.name)
        log.emit(.agentStarted(version: label.version, configuration: label.configuration))
        let recovery = try await journal.recover(destinations: names, at: .now)
        if !recovery.isEmpty {
            log.emit(
                .jobRecovered(claims: recovery.freedClaims, parked: recovery.parked, unparked: recovery.unparked))
        }
        let board = DestinationBoard(
            destinations, paused: try await journal.paused(), uptimes: try await journal.uptimes(),
            workers: settings.workers, log: log)
        let shared = Shared(settings: settings, connections: destinations.map(\.connections).reduce(0, +))

        let admitter = Admitter(
            journal: journal, routes: RouteTable(settings.routes), board: board, log: log, bells: shared.bells,
            finisherBell: shared.finisherBell, health: JournalHealth(log: log), pool: shared.bulk)
        let intakes = try settings.watch.map { root in
            try RootIntake(
                root, admitter: admitter, journal: journal, log: log, heartbeat: shared.heartbeat,
                hashing: shared.bulk)
        }
        let lookAgain: @Sendable (FileRow) -> Void = { file in
            intakes.first { $0.settings.path == file.root }?.look(at: file.path)
        }
        let workers = WorkerPool(
            journal: journal, board: board,
            deliverOne: DeliverOne(
                journal: journal, board: board, inFlight: shared.inFlight, log: log, heartbeat: shared.heartbeat,
                isStopping: shared.isStopping),
            log: log, bells: shared.bells, ends: shared.ends(lookAgain), pool: shared.io,
            grace: settings.shutdownGrace, heartbeat: shared.heartbeat, isStopping: shared.isStopping)

        services =
            [
                Sweeper(journal: journal, board: board, log: log, bell: shared.sweeperBell),
                Probes(board: board, bells: shared.bells, bell: shared.probeBell),
                Finisher(
                    journal: journal, roots: settings.watch, log: log, pool: shared.bulk, bell: shared.finisherBell,
                    lookAgain: lookAgain),
                workers,
                Housekeeper(
                    journal: journal, board: board, log: log, finisherBell: shared.finisherBell,
                    sweeperBell: shared.sweeperBell, queueWarning: settings.queueWarning),
            ] + intakes + [
                Watchdog(
                    notify: ServiceNotify(), heartbeat: shared.heartbeat, journal: journal, log: log,
                    ready: .agentReady(roots: intakes.count, destinations: names.count),
                    nudge: {
                        shared.bells.ringAll()
                        for intake in intakes { intake.nudge() }
                    })
            ]
        let desk = SendDesk(
            admitter: admitter, journal: journal, board: board, roots: sendRoots ?? settings.watch,
            retry: { job in
                defer { shared.bells.ringAll() }
                return try await journal.retry(job, uptimes: board.uptimes(), at: .now)
            })
        commands = AgentCommands(
            journal: journal,
            live: AgentCommands.Live(
                board: board, inFlight: shared.inFlight, bells: shared.bells, finisherBell: shared.finisherBell,
                sweeperBell: shared.sweeperBell, log: log, send: { path, to in await withTaskExecutorPreference(shared.bulk) { await desk.send(path, to: to) } }))
        view = AgentView(
            journal: journal,
            live: AgentView.LiveView(
                version: label.version, startedAt: .now, destinations: board.statuses,
                roots: { intakes.map(\.status) }, inFlight: shared.inFlight.snapshots,
                journalIsFailing: { admitter.health.isFailing }))
    }
}

/// What several services share: bells, flags, threads.
private struct Shared: Sendable {
    let bells: WorkBells
    let finisherBell = Doorbell()
    let sweeperBell = Doorbell()
    let probeBell = Doorbell()
    let inFlight = InFlight()
    let heartbeat = Heartbeat()
    let isStopping = StopFlag()
    /// Short blocking calls of the workers; long ones (hashing, copying) have their own threads.
    let io = BlockingPool(name: "worker", threads: 4)
    let bulk = BlockingPool(name: "bulk", threads: 4)

    init(settings: Settings, connections: Int) {
        bells = WorkBells(loops: [.big: settings.workers, .small: min(64, max(1, connections))])
    }

    func ends(_ lookAgain: @escaping @Sendable (FileRow) -> Void) -> DeliveryEnds {
        DeliveryEnds(
            finisherBell: finisherBell, sweeperBell: sweeperBell, probeBell: probeBell, lookAgain: lookAgain)
    }
}
