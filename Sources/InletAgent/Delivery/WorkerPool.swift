internal import InletCore
internal import InletJournal
internal import InletLinux
internal import ServiceLifecycle

/// Delivers what is due. Big files have `workers` loops, each: claim, deliver, settle; and others for those that hang. Small
/// ones share the destinations' connections in a lane of their own. Blocking calls stay on the pool's threads.
final class WorkerPool: Service {
    private let journal: Journal
    private let board: DestinationBoard
    let deliverOne: DeliveryAttempts
    private let smallFiles: SmallLane
    private let loops: Loops
    let signals: Signals
    let standIns: StandIns
    private let ends: DeliveryEnds
    private let pool: BlockingPool
    private let live: LiveSettings
    private let health: JournalHealth
    let heartbeat: Heartbeat
    let isStopping: StopFlag

    /// How many deliver at once.
    struct Loops: Sendable {
        var big: Int
        var small: Int
    }

    init(
        journal: Journal, smallWork: SmallWork, board: DestinationBoard, deliverOne: DeliveryAttempts, loops: Loops,
        signals: Signals, ends: DeliveryEnds, pool: BlockingPool, live: LiveSettings,
        health: JournalHealth,
        heartbeat: Heartbeat, isStopping: StopFlag, silence: Duration
    ) {
        self.journal = journal
        self.health = health
        self.board = board
        self.deliverOne = deliverOne
        self.loops = loops
        self.signals = signals
        standIns = StandIns(workers: loops.big, patience: silence)
        self.ends = ends
        self.pool = pool
        self.live = live
        self.heartbeat = heartbeat
        self.isStopping = isStopping
        smallFiles = SmallLane(
            journal: journal, work: smallWork, board: board, deliverOne: deliverOne, loops: loops.small,
            signals: signals,
            ends: ends, health: health, heartbeat: heartbeat, isStopping: isStopping)
    }

    func run() async throws {
        await withGracefulShutdownHandler {
            await withTaskGroup(of: Void.self) { group in
                group.addTask {
                    await withTaskExecutorPreference(self.pool) { await self.runLoops() }
                }
                group.addTask { await self.endAfterGrace() }
                await group.next()
                group.cancelAll()
            }
        } onGracefulShutdown: {
            self.isStopping.set()
            self.signals.raiseDeliverable()
            self.standIns.signal.raise()
        }
    }

    private func runLoops() async {
        await withDiscardingTaskGroup { group in
            group.addTask { await self.smallFiles.run() }
            group.addTask { await self.relieve() }
            for number in 0..<loops.big {
                group.addTask { await self.work(owner: "\(Lane.big)-\(number)") }
            }
        }
    }

    /// Lets running parts end for `grace`, then ends the rest.
    private func endAfterGrace() async {
        await isStopping.wait()
        // Ends early only when the task is cancelled, with which the rest ends too.
        try? await Task.sleep(for: live.settings.shutdownGrace)
        deliverOne.cancelAll()
    }

    private func work(owner: String) async {
        while !isStopping.isSet, !Task.isCancelled {
            heartbeat.beat(.workers)
            do {
                if try await takeOne(owner: owner) { continue }
                let due = try await journal.nextDue(.big, rooms: board.rooms())
                await signals.wait(
                    for: .deliverable(.big), until: due.map { .now.advanced(by: max($0 - .now, .milliseconds(10))) })
            } catch {
                // The journal is full or failing; whoever admits says so. Work goes on when it does.
                await signals.wait(for: .deliverable(.big), until: .now.advanced(by: .seconds(2)))
            }
        }
    }

    /// - Returns: false when nothing was due.
    func takeOne(owner: String, isStandIn: Bool = false) async throws -> Bool {
        var patience = JournalPatience()
        var refusal: String?
        let outcome = try await journal.withClaim(
            .big, rooms: board.rooms(), owner: owner, clock: { .now }, ending: Receipt.atOnce,
            damaged: { ends.tell($0) },
            refused: { claim, error in
                heartbeat.beat(.workers)
                refusal = ends.refused(claim.file, error, saidLast: refusal, health)
                return await patience.wait(isStopping)
            }
        ) { claim in
            standIns.begin(claim.delivery.id, byStandIn: isStandIn)
            defer { standIns.end(claim.delivery.id) }
            Failpoint.claimed.reached()
            let (settlement, report) = await deliverOne.deliver(claim)
            Failpoint.settling.reached()
            return (settlement, (claim.file, report))
        }
        guard let (settled, (file, report)) = outcome else { return false }
        health.works()
        ends.follow(report, file, settled, .big)
        if report.awaitsSource { await ends.freeReturned([file], journal, health) }
        return true
    }
}

/// Who is told of the end of a delivery, once it is durable.
struct DeliveryEnds: Sendable {
    let log: EventLog
    let signals: Signals
    let room: QueueRoom
    let looks: KeptLooks
    let board: DestinationBoard
    let roots: RootRegistry

    /// Says and passes on what has ended.
    func follow(_ report: DeliveryAttempts.Report, _ file: FileRow, _ settled: SettledFile, _ lane: Lane) {
        log.emit(Self.events(report, file, settled))
        pass(report, file, settled, lane)
    }

    /// Says what nobody can read, and so nobody sends.
    func tell(_ damaged: [DamagedDelivery]) {
        log.emit(damaged.map { .fileTrouble(path: $0.path, reason: $0.reason) })
    }

    /// Says that the journal does not take the end of a delivery, once for each cause.
    /// - Returns: the cause.
    func refused(_ file: FileRow, _ error: JournalError, saidLast: String?, _ health: JournalHealth) -> String {
        if error.isFull {
            health.fails(error)
        } else if error.description != saidLast {
            let reason = "what became of it cannot be written down, which is tried again: \(error)"
            log.emit(.fileTrouble(path: file.fullPath, reason: reason))
        }
        return error.description
    }

    /// - Parameter report: nil for a delivery that was never begun.
    static func events(_ report: DeliveryAttempts.Report?, _ file: FileRow, _ settled: SettledFile) -> [AgentEvent] {
        if report != nil { Failpoint.delivered.reached() }
        let told = report.map { [$0.event] } ?? []
        guard let finish = settled.finish else { return told }
        Failpoint.finished.reached()
        let finished = AgentEvent.jobFinished(
            job: file.id, path: file.fullPath, state: settled.state, disposition: finish.disposition,
            route: file.route ?? "")
        return told + [finished] + (finish.endedBatch.map { [.batchEnded($0)] } ?? [])
    }

    /// What came back while it was written down that it is away goes on at once: who took the volume up did not see it waiting.
    func freeReturned(_ files: [FileRow], _ journal: Journal, _ health: JournalHealth) async {
        let returned = Set(
            files.filter { $0.volume != nil && (roots.hasMoved($0) || !roots.isAway($0)) }.compactMap(\.volume))
        do {
            for volume in returned { try await journal.volumeIsBack(volume, at: .now) }
        } catch {
            health.fails(error)
        }
        if !returned.isEmpty { signals.raiseDeliverable() }
    }

    /// Wakes and tells whoever has to do with it now.
    func pass(_ report: DeliveryAttempts.Report?, _ file: FileRow, _ settled: SettledFile, _ lane: Lane) {
        if settled.isFinal { room.left() }
        board.deliveryEnded()
        // What ended with it, a companion or the marker of a unit, is still to be finished.
        if settled.isFinal, settled.finish == nil || file.batchID != nil || settled.hasReleased {
            signals.raise(.finishable)
        }
        if settled.finish?.endedBatch != nil { signals.raise(.batch) }
        // What is only being worked on leaves nothing to compare with.
        let isWorkedOn = if case .jobWaiting = report?.event { true } else { false }
        let isKept = !isWorkedOn && looks.take(file.id)
        // While it was gone for one destination and another had it still, what came back as it was is only known.
        let mayBeBack = settled.isFinal && settled.state == .gone
        switch report?.event {
        case .jobDelivered, .jobWaiting: break
        case nil where !settled.isFinal: break
        default:
            signals.raise(.leftover, .destination)
        }
        if let changed = report?.wantsLook ?? (isKept || mayBeBack ? file : nil) { roots.look(again: changed) }
        roots.ended(file)
        // A place is free again, or others were waiting for this one: a loop that found nothing may have work now. The small
        // files' feeder looks by itself.
        if report?.destinationIsBack == true || settled.hasReleased {
            signals.raiseDeliverable()
        } else if lane == .big {
            signals.raise(.deliverable(.big))
        }
    }
}
