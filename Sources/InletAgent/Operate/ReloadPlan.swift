internal import InletConfig
internal import InletCore
internal import InletJournal
internal import InletLinux
internal import InletPipelines
internal import ServiceLifecycle
internal import SystemPackage

/// What a list of changes is about.
struct ReloadScope: Sendable, Equatable {
    /// Destinations that are new, or not as they were.
    var destinations: Set<String> = []
    /// Whether it changes what becomes of files: their routes, or what these know of destinations.
    var isRouted = false
    var isNotifying = false
    var isPinging = false
    var isBackingUp = false
    var isKeepingHistory = false

    init(_ changes: [ConfigChange]) {
        for change in changes {
            switch change.keys.first {
            case "destinations":
                guard change.keys.count > 1 else { continue }
                destinations.insert(change.keys[1])
                // A whole one: it came, went, or is of another type.
                if change.keys.count == 2 { isRouted = true }
            case "routes": isRouted = true
            case "limits": if change.keys.dropFirst().first == "zone" { isRouted = true }
            case "notify": isNotifying = true
            case "ping_url", "ping_interval", "ping_allow_http", "ping_ca_file": isPinging = true
            case "journal_backup": isBackingUp = true
            case "journal_history": isKeepingHistory = true
            default: break
            }
        }
    }
}

/// The steps by which another configuration takes the place of the one that holds, each harmless by itself: the process may
/// die between any two, and the next start goes by the file.
///
/// New destinations come before the routes that lead to them, and old ones go after whoever admits by the old routes has
/// ended. A file that settles meanwhile is not in the journal yet: who watches its folder next finds it. One that is in the
/// journal keeps its keys and destinations.
struct ReloadPlan: Sendable {
    let shared: Shared
    let intakes: RootSupervisor
    let bandwidth: BandwidthControl
    let notifications: NotificationStage
    let scheduler: Scheduler
    let tally: MetricsTally
    /// For what blocks.
    let pool = BlockingPool(name: "reload", threads: 1)

    private var journal: Journal { shared.journal }
    private var board: DestinationRegistry { shared.destinations }

    /// - Returns: how many deliveries wait for destinations that are gone.
    /// - Throws: before anything has changed: `JournalError`, `SystemError`.
    func take(
        _ settings: Settings, _ trial: ReloadTrial, _ scope: ReloadScope, _ output: EventLog.Prepared
    ) async throws -> Int {
        let old = shared.settings.settings
        let plan = IntakePlan(from: old.watch, to: settings.watch, isRouted: scope.isRouted)
        let beginning = try intakes.prepare(plan)
        let known = old.watch + shared.settings.knownRoots
        let former = FormerRoots(stateDirectory: old.stateDirectory)
        let left = try await pool.run { () throws(SystemError) in
            try former.remember(settings, former: known, isOwed: true)
        }
        let names = Set(settings.destinations.map(\.name))
        let changed = trial.destinations.filter { scope.destinations.contains($0.name) }
        let isNew = changed.contains { board[$0.name] == nil }
        let journalled = isNew ? try await self.known() : Known()
        // Before anything is sent there.
        let notifier = try await moving(changed) { try await self.notifier(settings, trial, scope) }

        shared.log.take(output)
        tally.add(destinations: settings.destinations.map(\.name), routes: settings.routes.map(\.name))
        board.take(changed, paused: journalled.paused, uptimes: journalled.uptimes, unproved: journalled.waiting)
        for destination in changed { board.probeNow(destination.name) }
        // Before anything is sent to them.
        bandwidth.replace(
            settings.bandwidth,
            destinations: board.names.filter { names.contains($0) && board[$0]?.folder == nil })
        await intakes.end(plan)
        shared.settings.replace(settings, former: left)
        intakes.begin(beginning, plan)
        let parked = await settle(names, isNew)
        await closeUnits(settings)
        shared.room.set(settings.queueLimit)
        renew(settings, trial, scope, notifier)
        // Everybody may have something to do now.
        shared.signals.raiseDeliverable()
        shared.signals.raise(.finishable, .leftover, .destination, .limit)
        return parked
    }

    /// Those of folders that are no longer watched: nobody else would close them.
    private func closeUnits(_ settings: Settings) async {
        do {
            _ = try await journal.closeUnits(
                exceptOf: settings.watch, uptimes: board.uptimes(), closing: board.closers, at: .now)
        } catch {
            let what = "units of folders that are no longer watched wait until the next reload or start"
            shared.log.emit(.agentError(reason: "\(what): \(error)"))
        }
    }

    /// What the journal knows of destinations, before they are put on the board.
    private struct Known {
        var paused: Set<String> = []
        var uptimes: [String: Int64] = [:]
        /// For which something waits.
        var waiting: Set<String> = []
    }

    private func known() async throws(JournalError) -> Known {
        let counts = try await journal.queueCounts()
        return Known(
            paused: try await journal.paused(), uptimes: try await journal.uptimes(),
            waiting: Set(counts.filter { $0.value.waiting + $0.value.working + $0.value.parked > 0 }.keys))
    }

    /// Lets go of all destinations but these, and parks what waits for them; takes up what was parked for those that came.
    private func settle(_ names: Set<String>, _ isNew: Bool) async -> Int {
        let left = board.keep(only: names)
        if left.isEmpty, !isNew { return 0 }
        // Where the journal takes nothing, the clock goes on from what it had last: files expire later, none too soon.
        for (name, uptime) in left where uptime > 0 { _ = try? await journal.setUptime(name, uptime, at: .now) }
        // Where it takes nothing now, `StrayParking` asks it again.
        let arranged = try? await journal.setDestinations(Array(names), at: .now)
        if arranged == nil { board.hasStrays() }
        board.strays.raise()
        return arranged?.parked ?? 0
    }

    /// Takes note of where destinations are, and back where what follows fails: one transaction, and the last step that can.
    private func moving(
        _ changed: [Destination], _ last: () async throws -> Notifier?
    ) async throws -> Notifier? {
        try await journal.setAddresses(Destination.addresses(changed))
        do {
            return try await last()
        } catch {
            try await journal.setAddresses(Destination.addresses(changed.compactMap { board[$0.name] }))
            throw error
        }
    }

    private func notifier(
        _ settings: Settings, _ trial: ReloadTrial, _ scope: ReloadScope
    ) async throws(JournalError) -> Notifier? {
        guard scope.isNotifying else { return nil }
        return try await Notifier(
            NotificationReceiver.all(settings.notify, trial.outlets), journal: journal, log: shared.log, listens: false)
    }

    private func renew(_ settings: Settings, _ trial: ReloadTrial, _ scope: ReloadScope, _ notifier: Notifier?) {
        if let notifier { notifications.replace(by: notifier) }
        if scope.isPinging {
            scheduler.replace(.ping, by: Pinger(shared, trial.outlets.ping, settings.ping))
        }
        if scope.isBackingUp {
            scheduler.replace(.backup, by: BackupJob(journal, settings.journalBackup, shared.log))
        }
        if scope.isKeepingHistory {
            scheduler.replace(.history, by: HistoryPruner(shared, settings.historyAfter))
        }
        if !scope.destinations.isEmpty { scheduler.replace(.keepAlive, by: KeepAlive(shared)) }
    }
}

/// Parks what comes back to the queue for destinations that a reload has taken away. Sleeps while there are none.
struct StrayParking: Service {
    let shared: Shared

    private static let pause = Duration.seconds(30)

    func run() async throws {
        let board = shared.destinations
        await cancelWhenGracefulShutdown {
            await board.strays.wait(until: nil)
            await board.strays.loop {
                // Said while they are looked for: a delivery that ends meanwhile raises the signal again.
                board.hasStrays()
                let isOpen = try? await shared.journal.parkStrays(except: { board.names }, at: .now)
                if isOpen == false { board.straysAreParked() }
                // A journal that takes nothing now is asked again.
                return isOpen == nil ? .now.advanced(by: Self.pause) : nil
            }
        }
    }
}
