internal import Foundation
internal import InletCore
internal import InletJournal
internal import InletLinux
internal import InletPipelines
internal import ServiceLifecycle
internal import SystemPackage

/// The agent's services and what they share: signals, flags, threads. Each service gets what it needs and no more.
struct AgentParts: Sendable {
    let intakes: RootSupervisor
    /// As it was at the start; `live` has what holds now.
    private let settings: Settings
    let live: LiveSettings
    let roots: RootRegistry
    let board: DestinationRegistry
    let journal: Journal
    let log: EventLog
    /// Inlet's, for receipts.
    private let version: String
    private let resume: ResumeWatch
    private let holdPatience: Duration
    private let silence: Duration
    let admitter: Admission
    let limits: BandwidthKeeper
    let renewals: ReloadSteps.Renewals

    let signals: Signals
    private let inFlight = Transfers()
    private let lanes = Lanes()
    private let begun: [Int64]
    let heartbeat: Heartbeat
    private let restarts: ServiceRestarts
    private let isStopping = StopFlag()
    /// One for all who speak to it.
    let manager = ManagerNews(ServiceNotify())
    /// Short blocking calls of the workers; long ones have their own threads. More of them than processors only wake each
    /// other, but one must go on while another waits for a disk.
    private let io = BlockingPool(name: "worker", threads: min(4, max(2, ProcessInfo.processInfo.activeProcessorCount)))
    /// The finisher's: an archive on another file system takes as long as the copy, and must not hold up the hashing.
    private let moving = BlockingPool(name: "finisher", threads: 2)
    /// What people ask for by `send`.
    private let asking = BlockingPool(name: "send", threads: 2)

    init(
        live: LiveSettings, board: DestinationRegistry, journal: Journal, log: EventLog, version: String,
        begun: [Int64], resume: ResumeWatch, valve: BandwidthValve, holdPatience: Duration, notifier: Notifier,
        ping: DeadManPing?, places: Settler.Places, silence: Duration
    ) throws {
        let settings = live.settings
        let roots = RootRegistry()
        (self.live, self.roots) = (live, roots)
        self.version = version
        self.begun = begun
        self.settings = settings
        (self.board, self.journal, self.log, self.resume) = (board, journal, log, resume)
        (self.holdPatience, self.silence, restarts) = (holdPatience, silence, ServiceRestarts(log: log))
        let signals = Signals()
        let heartbeat = Heartbeat(roots: settings.watch.filter { $0.pattern == nil }.map(\.path))
        let admitter = Admission(
            journal: journal, routes: live.routes, board: board, log: log, signals: signals,
            health: JournalHealth(log: log),
            room: QueueRoom(settings.queueLimit, journal: journal, log: log))
        intakes = try Self.intakes(live, roots, admitter, heartbeat, places, restarts)
        limits = BandwidthKeeper(
            settings.bandwidth, destinations: board.names.filter { board[$0]?.folder == nil }, valve: valve, log: log,
            shut: { names in
                board.setShut(names)
                signals.raiseDeliverable()
                signals.raise(.limit)
            })
        self.signals = signals
        self.heartbeat = heartbeat
        self.admitter = admitter
        renewals = Self.renewals(
            settings, notifier, PingPlan(ping: ping, settings.ping), journal, log, restarts,
            keepAlive: KeepAlive(board: board, log: log, signals: signals),
            pinger: Self.pingers(admitter, heartbeat, Self.nudge(signals, roots)))
    }

    private var orders: DeliveryOrderFactory {
        DeliveryOrderFactory(journal: journal, board: board, live: live)
    }

    var sweeper: Leftovers {
        Leftovers(journal: journal, board: board, orders: orders, log: log, signals: signals, health: admitter.health)
    }

    func probes(_ renew: @escaping @Sendable (String) -> Destination?) -> Probes {
        Probes(board: board, signals: signals, renew: renew)
    }

    var finisher: FinishingStage {
        FinishingStage(
            journal: journal, live: live, log: log,
            receipts: ReceiptFiles(
                stateDirectory: settings.stateDirectory,
                origin: Receipt.Origin(version: version, host: ProcessSetup.hostName), log: log),
            pool: moving, signals: signals, health: admitter.health, roots: roots)
    }

    var workers: DeliveryStage {
        let deliverOne = DeliveryAttempts(
            journal: journal, board: board, orders: orders, inFlight: inFlight, log: log,
            health: admitter.health, heartbeat: heartbeat, isStopping: isStopping, begun: begun,
            roots: roots, hashing: io)
        let ends = DeliveryEnds(
            log: log, signals: signals, room: admitter.room, looks: admitter.looks,
            board: board, roots: roots)
        return DeliveryStage(
            journal: journal, slots: lanes, board: board, deliverOne: deliverOne, signals: signals, ends: ends,
            transferPool: TransferPool(
                workers: settings.workers, silence: silence, transfers: inFlight, signals: signals),
            limitHold: LimitHold(board: board, inFlight: inFlight, signals: signals, patience: holdPatience),
            pool: io, live: live, health: admitter.health, heartbeat: heartbeat, isStopping: isStopping)
    }

    var journalWatch: JournalWatch { JournalWatch(journal: journal, health: admitter.health, log: log) }

    var housekeeper: Housekeeper {
        Housekeeper(
            journal: journal, board: board, lanes: lanes, log: log, signals: signals,
            live: live)
    }

    func manifests(_ version: String) -> ManifestWriter {
        ManifestWriter(
            journal: journal, board: board, admitter: admitter, log: log, signals: signals, pool: moving,
            home: settings.stateDirectory.appending("manifests"), live: live,
            version: version)
    }

    func watchdog(_ door: WakeSignal?) -> Watchdog {
        Watchdog(
            manager: manager, heartbeat: heartbeat, journal: journal, log: log,
            ready: .agentReady(roots: settings.watch.count, destinations: board.count), door: door,
            nudge: Self.nudge(signals, roots))
    }

    /// Makes sleeping loops pass once.
    private static func nudge(_ signals: Signals, _ roots: RootRegistry) -> @Sendable () -> Void {
        {
            signals.raiseDeliverable()
            roots.nudge()
        }
    }

    /// Programs have a thread each, so that one that hangs holds nobody else up.
    static func receivers(_ notify: [NotifySettings], _ outlets: Outlets) -> [NoticeOutlet] {
        let pool = BlockingPool(name: "hook", threads: notify.count)
        return notify.map { NoticeOutlet($0, webhook: outlets.webhooks[$0.name], pool: pool) }
    }

    // MARK: - What is seen and commanded from outside

    func commands(_ reload: Reload?) -> AgentCommands.Live {
        AgentCommands.Live(
            board: board, inFlight: inFlight, lanes: lanes, signals: signals, log: log, limits: limits,
            roots: roots,
            sending: SendService(admission: admitter, live: live, reading: asking), reload: reload)
    }

    func liveView(_ label: Agent.Label, _ reload: Reload?, _ tally: MetricsTally) -> AgentView.LiveView {
        AgentView.LiveView(
            version: label.version, confinement: label.confinement, startedAt: .now, tally: tally, live: live,
            board: board,
            registry: roots, transfers: inFlight, lanes: lanes, resumes: resume, health: admitter.health,
            log: log, restarts: restarts, bandwidth: limits, asking: asking, shown: { reload?.shown })
    }
}
