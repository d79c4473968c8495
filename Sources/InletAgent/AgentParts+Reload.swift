internal import InletCore
internal import InletJournal
internal import InletLinux
internal import InletPipelines
internal import ServiceLifecycle

/// What changes while the agent runs, and by what.
extension AgentParts {
    static func renewals(
        _ settings: Settings, _ notifier: Notifier, _ ping: PingPlan, _ journal: Journal, _ log: EventLog,
        _ restarts: ServiceRestarts, keepAlive: KeepAlive, pinger: @escaping @Sendable (PingPlan) -> Pinger
    ) -> ReloadSteps.Renewals {
        ReloadSteps.Renewals(
            notifier: Renewed(notifier) { notifier in
                await restarts.keep("sending notifications") { try await notifier.run() }
            },
            pinger: Renewed(ping) { plan in
                await restarts.keep("pinging the dead man's switch") { try await pinger(plan).run() }
            },
            backups: Renewed(settings.journalBackup) { rule in
                guard let rule else { return }
                await restarts.keep("backing up the journal") {
                    try await BackupKeeper(backups: JournalBackups(journal), rule: rule, log: log).run()
                }
            },
            history: Renewed(settings.historyAfter) { age in
                guard let age else { return }
                await restarts.keep("moving old files to the history") {
                    try await HistoryKeeper(journal: journal, age: age, log: log).run()
                }
            },
            // Those that have such credentials may be others.
            keepAlive: Renewed(0) { _ in
                await restarts.keep("keeping logins alive") { try await keepAlive.run() }
            })
    }

    static func intakes(
        _ live: LiveSettings, _ roots: RootRegistry, _ admitter: Admission, _ heartbeat: Heartbeat,
        _ places: Settler.Places,
        _ restarts: ServiceRestarts
    ) throws -> RootSupervisor {
        try RootSupervisor(
            live.watch,
            RootSupervisor.Tools(
                admitter: admitter, live: live, roots: roots, journal: admitter.journal, log: admitter.log,
                heartbeat: heartbeat, restarts: restarts, stateDirectory: live.settings.stateDirectory,
                places: places))
    }

    static func pingers(
        _ admitter: Admission, _ heartbeat: Heartbeat, _ nudge: @escaping @Sendable () -> Void
    ) -> @Sendable (PingPlan) -> Pinger {
        { plan in
            Pinger(
                ping: plan.ping, interval: plan.interval, heartbeat: heartbeat, journal: admitter.journal,
                isJournalFailing: { admitter.health.isFailing }, log: admitter.log, nudge: nudge)
        }
    }

    var strays: StrayKeeper {
        StrayKeeper(
            board: board,
            retire: { [journal, board] in
                try await journal.parkStrays(except: { board.names }, at: .now)
            })
    }

    func mounts() throws -> MountWatcher { try MountWatcher(roots, log: log) }

    func reloadSteps(_ former: FormerRoots, _ tally: MetricsTally) -> ReloadSteps {
        ReloadSteps(
            live: live, former: former, journal: journal, board: board, intakes: intakes, limits: limits,
            room: admitter.room, renewals: renewals, log: log, tally: tally,
            pool: BlockingPool(name: "reload", threads: 1), signals: signals)
    }
}
