internal import Foundation
internal import InletCore
internal import InletJournal
internal import InletLinux
internal import InletPipelines
internal import SystemPackage

/// How the stages are made of what all share.
extension Admission {
    init(_ shared: Shared) {
        let room = QueueRoom(shared.settings.settings.queueLimit, journal: shared.journal, log: shared.log)
        self.init(
            journal: shared.journal, routes: shared.settings.routes, board: shared.destinations, log: shared.log,
            signals: shared.signals, health: shared.health.journal, room: room)
    }
}

extension RootSupervisor {
    /// - Parameter places: how much is remembered of each root.
    convenience init(_ shared: Shared, _ admitter: Admission, _ places: Settler.Places) throws {
        try self.init(
            shared.settings.watch,
            Tools(
                admitter: admitter, live: shared.settings, roots: shared.roots, journal: shared.journal,
                log: shared.log, heartbeat: shared.health.heartbeat, restarts: shared.health.restarts,
                stateDirectory: shared.settings.settings.stateDirectory, places: places))
    }
}

extension DeliveryOrderFactory {
    init(_ shared: Shared) {
        self.init(journal: shared.journal, board: shared.destinations, live: shared.settings)
    }
}

extension DeliveryStage {
    /// - Parameters:
    ///   - begun: the deliveries that an earlier process began.
    ///   - patience: how long a limit of 0 may keep the places of what it holds.
    ///   - silence: after so long without a byte a big file's place is another's.
    convenience init(
        _ shared: Shared, _ admitter: Admission, _ transfers: Transfers, _ lanes: Lanes, begun: [Int64],
        patience: Duration, silence: Duration
    ) {
        // Short blocking calls; long ones have their own threads. More of them than processors only wake each other, but one must
        // go on while another waits for a disk.
        let threads = min(4, max(2, ProcessInfo.processInfo.activeProcessorCount))
        let io = BlockingPool(name: "worker", threads: threads)
        let isStopping = StopFlag()
        let deliverOne = DeliveryAttempts(
            journal: shared.journal, board: shared.destinations, orders: DeliveryOrderFactory(shared),
            inFlight: transfers, log: shared.log, health: shared.health.journal, heartbeat: shared.health.heartbeat,
            isStopping: isStopping, begun: begun, roots: shared.roots, hashing: io)
        let ends = DeliveryEnds(
            log: shared.log, signals: shared.signals, room: admitter.room, looks: admitter.looks,
            board: shared.destinations, roots: shared.roots)
        self.init(
            journal: shared.journal, slots: lanes, board: shared.destinations, deliverOne: deliverOne,
            signals: shared.signals, ends: ends,
            transferPool: TransferPool(
                workers: shared.settings.settings.workers, silence: silence, transfers: transfers,
                signals: shared.signals),
            limitHold: LimitHold(
                board: shared.destinations, inFlight: transfers, signals: shared.signals, patience: patience),
            pool: io, live: shared.settings, health: shared.health.journal, heartbeat: shared.health.heartbeat,
            isStopping: isStopping)
    }
}

extension Leftovers {
    init(_ shared: Shared) {
        self.init(
            journal: shared.journal, board: shared.destinations, orders: DeliveryOrderFactory(shared), log: shared.log,
            signals: shared.signals, health: shared.health.journal)
    }
}

extension Probes {
    init(_ shared: Shared, _ renew: @escaping @Sendable (String) -> Destination?) {
        self.init(board: shared.destinations, signals: shared.signals, renew: renew)
    }
}

extension FinishingStage {
    /// - Parameter pool: an archive on another file system takes as long as the copy, and must not hold up the hashing.
    init(_ shared: Shared, _ pool: BlockingPool, _ label: Agent.Label) {
        let receipts = ReceiptFiles(
            stateDirectory: shared.settings.settings.stateDirectory,
            origin: Receipt.Origin(version: label.version, host: ProcessSetup.hostName), log: shared.log)
        self.init(
            journal: shared.journal, live: shared.settings, log: shared.log, receipts: receipts, pool: pool,
            signals: shared.signals, health: shared.health.journal, roots: shared.roots)
    }
}

extension ManifestWriter {
    init(_ shared: Shared, _ admitter: Admission, _ pool: BlockingPool, _ label: Agent.Label) {
        self.init(
            journal: shared.journal, board: shared.destinations, admitter: admitter, log: shared.log,
            signals: shared.signals, pool: pool,
            home: shared.settings.settings.stateDirectory.appending("manifests"), live: shared.settings,
            version: label.version)
    }
}

extension Scheduler {
    /// - Parameter ping: who is told that the agent is well; nil = nobody.
    convenience init(_ shared: Shared, ping: DeadManPing?) {
        let settings = shared.settings.settings
        self.init([
            .backup: BackupJob(shared.journal, settings.journalBackup, shared.log),
            .history: HistoryPruner(shared, settings.historyAfter), .ping: Pinger(shared, ping, settings.ping),
            .keepAlive: KeepAlive(shared),
        ])
    }
}
