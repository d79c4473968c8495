internal import Foundation
internal import InletCore
internal import InletJournal
internal import InletLinux
internal import InletPipelines
internal import SystemPackage

/// How the stages are made of what all share.
extension Admitter {
    init(_ shared: Shared) {
        let room = QueueRoom(shared.settings.settings.queueLimit, journal: shared.journal, log: shared.log)
        self.init(
            journal: shared.journal, routes: shared.settings.routes, board: shared.destinations, log: shared.log,
            signals: shared.signals, health: shared.health.journal, room: room)
    }
}

extension Intakes {
    /// - Parameter places: how much is remembered of each root.
    convenience init(_ shared: Shared, _ admitter: Admitter, _ places: Settler.Places) throws {
        try self.init(
            shared.settings.watch,
            Tools(
                admitter: admitter, live: shared.settings, roots: shared.roots, journal: shared.journal,
                log: shared.log, heartbeat: shared.health.heartbeat, restarts: shared.health.restarts,
                stateDirectory: shared.settings.settings.stateDirectory, places: places))
    }
}

extension OrderDesk {
    init(_ shared: Shared) {
        self.init(journal: shared.journal, board: shared.destinations, live: shared.settings)
    }
}

extension WorkerPool {
    /// Small files share connections; a loop costs little, and destinations that hang must leave some to the others.
    private static let mostSmallLoops = 256
    /// Destinations may come with a reload.
    private static let leastSmallLoops = 32

    /// - Parameters:
    ///   - earlier: the deliveries that an earlier process began.
    ///   - silence: after so long without a byte another worker stands in for that of a big file.
    convenience init(
        _ shared: Shared, _ admitter: Admitter, _ transfers: InFlight, _ smallWork: SmallWork, _ earlier: EarlierNotes,
        silence: Duration
    ) {
        // Short blocking calls; long ones have their own threads. More of them than processors only wake each other, but one must
        // go on while another waits for a disk.
        let threads = min(4, max(2, ProcessInfo.processInfo.activeProcessorCount))
        let io = BlockingPool(name: "worker", threads: threads)
        let isStopping = StopFlag()
        let deliverOne = DeliverOne(
            journal: shared.journal, board: shared.destinations, orders: OrderDesk(shared), inFlight: transfers,
            log: shared.log, health: shared.health.journal, heartbeat: shared.health.heartbeat, isStopping: isStopping,
            earlier: earlier, roots: shared.roots, hashing: io)
        let ends = DeliveryEnds(
            log: shared.log, signals: shared.signals, room: admitter.room, looks: admitter.looks,
            board: shared.destinations, roots: shared.roots)
        let small = min(Self.mostSmallLoops, max(Self.leastSmallLoops, shared.destinations.connections))
        self.init(
            journal: shared.journal, smallWork: smallWork, board: shared.destinations, deliverOne: deliverOne,
            loops: Loops(big: shared.settings.settings.workers, small: small), signals: shared.signals, ends: ends,
            pool: io, live: shared.settings, health: shared.health.journal, heartbeat: shared.health.heartbeat,
            isStopping: isStopping, silence: silence)
    }
}

extension Sweeper {
    init(_ shared: Shared) {
        self.init(
            journal: shared.journal, board: shared.destinations, orders: OrderDesk(shared), log: shared.log,
            signals: shared.signals, health: shared.health.journal)
    }
}

extension Probes {
    init(_ shared: Shared, _ renew: @escaping @Sendable (String) -> Destination?) {
        self.init(board: shared.destinations, signals: shared.signals, renew: renew)
    }
}

extension HeldDeliveries {
    init(_ shared: Shared, _ transfers: InFlight, patience: Duration) {
        self.init(board: shared.destinations, inFlight: transfers, signals: shared.signals, patience: patience)
    }
}

extension Finisher {
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
    init(_ shared: Shared, _ admitter: Admitter, _ pool: BlockingPool, _ label: Agent.Label) {
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
