internal import Foundation
internal import InletCore
internal import InletJournal
internal import InletLinux
internal import InletPipelines
internal import ServiceLifecycle
internal import SystemPackage

/// The agent's services and what they share: bells, flags, threads. Each service gets what it needs and no more.
struct AgentParts: Sendable {
    let intakes: Intakes
    private let settings: Settings
    private let board: DestinationBoard
    private let journal: Journal
    private let log: EventLog
    /// Inlet's, for receipts.
    private let version: String
    private let resume: ResumeWatch
    private let holdPatience: Duration
    private let admitter: Admitter
    /// The folders by which the place of a named file is found.
    private let sendRoots: [WatchSettings]
    let limits: BandwidthKeeper

    private let bells: WorkBells
    private let finisherBell: Doorbell
    private let sweeperBell = Doorbell()
    private let probeBell = Doorbell()
    private let heldBell = Doorbell()
    private let batchBell: Doorbell
    private let inFlight = InFlight()
    private let smallWork = SmallWork()
    private let earlier: EarlierNotes
    private let heartbeat: Heartbeat
    private let isStopping = StopFlag()
    /// Short blocking calls of the workers; long ones have their own threads. More of them than processors only wake each
    /// other, but one must go on while another waits for a disk.
    private let io = BlockingPool(name: "worker", threads: min(4, max(2, ProcessInfo.processInfo.activeProcessorCount)))
    /// The finisher's: an archive on another file system takes as long as the copy, and must not hold up the hashing.
    private let moving = BlockingPool(name: "finisher", threads: 2)
    /// What people ask for by `send`.
    private let asking = BlockingPool(name: "send", threads: 2)

    /// Small files share connections; a loop costs little, and destinations that hang must leave some to the others.
    private static let mostSmallLoops = 256

    init(
        settings: Settings, board: DestinationBoard, journal: Journal, log: EventLog, sendRoots: [WatchSettings],
        version: String, begun: [Int64], resume: ResumeWatch, valve: BandwidthValve, holdPatience: Duration
    ) throws {
        self.version = version
        earlier = EarlierNotes(begun)
        self.settings = settings
        self.sendRoots = sendRoots
        (self.board, self.journal, self.log, self.resume) = (board, journal, log, resume)
        self.holdPatience = holdPatience
        let connections = board.connections
        let bells = WorkBells(
            loops: [.big: settings.workers, .small: min(Self.mostSmallLoops, max(1, connections))])
        let (finisherBell, batchBell) = (Doorbell(), Doorbell())
        let heartbeat = Heartbeat(roots: settings.watch.filter { $0.pattern == nil }.map(\.path))
        let admitter = Admitter(
            journal: journal, routes: RouteTable(settings.routes), board: board, log: log, bells: bells,
            finisherBell: finisherBell, batchBell: batchBell, health: JournalHealth(log: log),
            room: QueueRoom(settings.queueLimit, journal: journal, log: log))
        intakes = try Intakes(
            settings.watch, admitter: admitter, journal: journal, log: log, heartbeat: heartbeat,
            stateDirectory: settings.stateDirectory,
            wake: {
                bells.ringAll()
                finisherBell.ring()
            })
        limits = BandwidthKeeper(
            settings.bandwidth, destinations: board.names.filter { board[$0]?.folder == nil }, valve: valve, log: log,
            shut: { [heldBell] names in
                board.setShut(names)
                bells.ringAll()
                heldBell.ring()
            })
        self.bells = bells
        self.finisherBell = finisherBell
        self.batchBell = batchBell
        self.heartbeat = heartbeat
        self.admitter = admitter
    }

    private var lookAgain: @Sendable (FileRow) -> Void {
        { [intakes] file in intakes.of(file.root)?.look(at: file.path) }
    }

    /// Those of removable volumes are told, which say when all of one has ended.
    private var ended: @Sendable (FileRow) -> Void {
        { [intakes] file in if file.volume != nil { intakes.of(file.root)?.fileEnded() } }
    }

    private var orders: OrderDesk { OrderDesk(journal: journal, board: board, roots: sendRoots) }

    var sweeper: Sweeper {
        Sweeper(journal: journal, board: board, orders: orders, log: log, bell: sweeperBell)
    }

    var keepAlive: KeepAlive { KeepAlive(board: board, log: log, bell: probeBell) }

    var heldDeliveries: HeldDeliveries {
        HeldDeliveries(board: board, inFlight: inFlight, bell: heldBell, patience: holdPatience)
    }

    func probes(_ renew: @escaping @Sendable (String) -> Destination?) -> Probes {
        Probes(board: board, bells: bells, bell: probeBell, renew: renew)
    }

    var finisher: Finisher {
        Finisher(
            journal: journal, roots: settings.watch, log: log,
            receipts: ReceiptFiles(
                stateDirectory: settings.stateDirectory,
                origin: Receipt.Origin(version: version, host: ProcessSetup.hostName), log: log),
            pool: moving, bell: finisherBell, batchBell: batchBell, states: intakes.states, ended: ended,
            lookAgain: lookAgain)
    }

    var workers: WorkerPool {
        let deliverOne = DeliverOne(
            journal: journal, board: board, orders: orders, notices: admitter.notices, inFlight: inFlight, log: log,
            health: admitter.health, heartbeat: heartbeat, isStopping: isStopping, earlier: earlier,
            roots: intakes.states)
        let ends = DeliveryEnds(
            log: log, bells: bells, finisherBell: finisherBell, sweeperBell: sweeperBell, probeBell: probeBell,
            batchBell: batchBell, lookAgain: lookAgain, ended: ended, room: admitter.room)
        return WorkerPool(
            journal: journal, smallWork: smallWork, board: board, deliverOne: deliverOne, bells: bells, ends: ends,
            pool: io, grace: settings.shutdownGrace, health: admitter.health, heartbeat: heartbeat,
            isStopping: isStopping)
    }

    var housekeeper: Housekeeper {
        Housekeeper(
            journal: journal, board: board, smallWork: smallWork, log: log, bells: bells, finisherBell: finisherBell,
            sweeperBell: sweeperBell, queueWarning: settings.queueWarning)
    }

    func manifests(_ version: String) -> ManifestWriter {
        ManifestWriter(
            journal: journal, board: board, admitter: admitter, log: log, bell: batchBell, pool: moving,
            home: settings.stateDirectory.appending("manifests"), roots: settings.watch, version: version)
    }

    /// Those that look after the journal, as far as the configuration wants them.
    var keepers: [any Service] {
        var keepers: [any Service] = []
        if let backups { keepers.append(backups) }
        if let history { keepers.append(history) }
        return keepers
    }

    private var backups: BackupKeeper? {
        settings.journalBackup.map { BackupKeeper(backups: JournalBackups(journal), rule: $0, log: log) }
    }

    private var history: HistoryKeeper? {
        settings.historyAfter.map { HistoryKeeper(journal: journal, age: $0, log: log) }
    }

    var watchdog: Watchdog {
        Watchdog(
            notify: ServiceNotify(), heartbeat: heartbeat, journal: journal, log: log,
            ready: .agentReady(roots: settings.watch.count, destinations: board.count),
            nudge: nudge)
    }

    /// Makes sleeping loops pass once.
    private var nudge: @Sendable () -> Void {
        { [bells, intakes] in
            bells.ringAll()
            for intake in intakes.all { intake.nudge() }
        }
    }

    /// Programs have a thread each, so that one that hangs holds nobody else up.
    static func receivers(_ notify: [NotifySettings], _ outlets: Outlets) -> [NoticeOutlet] {
        let pool = BlockingPool(name: "hook", threads: notify.count)
        return notify.map { NoticeOutlet($0, webhook: outlets.webhooks[$0.name], pool: pool) }
    }

    func pinger(_ ping: DeadManPing?) -> Pinger {
        Pinger(
            ping: ping, interval: settings.ping?.interval ?? .seconds(300), heartbeat: heartbeat, journal: journal,
            isJournalFailing: { [admitter] in admitter.health.isFailing }, log: log,
            nudge: nudge)
    }

    // MARK: - What is seen and commanded from outside

    var live: AgentCommands.Live {
        let (board, bells, journal, asking) = (board, bells, journal, asking)
        let desk = SendDesk(
            admitter: admitter, journal: journal, board: board, hashing: asking, roots: sendRoots,
            retry: { job in
                defer { bells.ringAll() }
                return try await journal.retry(job, uptimes: board.uptimes(), at: .now)
            })
        return AgentCommands.Live(
            board: board, inFlight: inFlight, smallWork: smallWork, bells: bells, finisherBell: finisherBell,
            sweeperBell: sweeperBell, probeBell: probeBell, log: log, limits: limits,
            resumed: { [intakes] root in intakes.of(root)?.nudge() },
            send: { paths, destination in
                await withTaskExecutorPreference(asking) { await desk.send(paths, to: destination) }
            })
    }

    func liveView(_ version: String, _ tally: MetricsTally) -> AgentView.LiveView {
        AgentView.LiveView(
            version: version, startedAt: .now, destinations: board.statuses,
            roots: { [intakes] in intakes.all.map(\.status) }, inFlight: inFlight.snapshots,
            waiting: { [smallWork] in smallWork.waiting }, isWaiting: smallWork.isWaiting, step: inFlight.step,
            resume: { [resume] in resume.summary }, journalIsFailing: { [admitter] in admitter.health.isFailing },
            limits: limits.standings,
            windows: settings.routes.compactMap { route in route.window.map { (route.name, $0) } },
            route: trial, watched: settings.watch.filter { $0.pattern == nil }.map(\.path), tally: tally)
    }

    /// Looks at a file only where it could be taken from: nobody learns here what there is elsewhere.
    private var trial: @Sendable (FilePath, Int64?) async -> RouteTrial {
        { [watch = settings.watch, table = RouteTable(settings.routes), board, asking] path, size in
            let place = RoutePlace(path, in: watch)
            // A folder of another machine may take its time.
            let look = place.root == nil ? nil : try? await asking.run { () throws in try FileLook.look(at: path) }
            let identity = look?.identity
            return RouteTrial(
                place, identity: identity, size: size, table: table, destination: { board[$0] }, at: .now)
        }
    }
}
