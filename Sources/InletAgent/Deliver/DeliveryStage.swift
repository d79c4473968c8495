internal import InletCore
internal import InletJournal
internal import InletLinux
internal import ServiceLifecycle
internal import Synchronization

/// Delivers what is due: each destination has two lanes, one of small files, which share its connections, and one of big ones,
/// of which `workers` bounds how many run. Lanes come and go with their destinations; all of them run on the pool's few threads.
final class DeliveryStage: Service {
    let journal: Journal
    /// What the lanes hold.
    let slots: Lanes
    let board: DestinationRegistry
    let deliverOne: DeliveryAttempts
    let signals: Signals
    let ends: DeliveryEnds
    let transferPool: TransferPool
    let limitHold: LimitHold
    private let pool: BlockingPool
    private let live: LiveSettings
    let health: JournalHealth
    let heartbeat: Heartbeat
    let isStopping: StopFlag
    private let running = Mutex<Set<LaneID>>([])

    init(
        journal: Journal, slots: Lanes, board: DestinationRegistry, deliverOne: DeliveryAttempts, signals: Signals,
        ends: DeliveryEnds, transferPool: TransferPool, limitHold: LimitHold, pool: BlockingPool, live: LiveSettings,
        health: JournalHealth, heartbeat: Heartbeat, isStopping: StopFlag
    ) {
        (self.journal, self.slots, self.board, self.deliverOne) = (journal, slots, board, deliverOne)
        (self.signals, self.ends, self.transferPool, self.limitHold) = (signals, ends, transferPool, limitHold)
        (self.pool, self.live, self.health) = (pool, live, health)
        (self.heartbeat, self.isStopping) = (heartbeat, isStopping)
    }

    func run() async throws {
        await withGracefulShutdownHandler {
            await withTaskGroup(of: Bool.self) { group in
                group.addTask {
                    await withTaskExecutorPreference(self.pool) { await self.runLanes() }
                    return true
                }
                group.addTask {
                    await self.endAfterGrace()
                    return true
                }
                // Both go on until they are cancelled.
                group.addTask {
                    await self.transferPool.freeStalled()
                    return false
                }
                group.addTask {
                    await self.limitHold.run()
                    return false
                }
                for await isOver in group where isOver { break }
                group.cancelAll()
            }
        } onGracefulShutdown: {
            self.isStopping.set()
            self.signals.raiseDeliverable()
        }
    }

    /// Begins the lanes of each destination that comes. Returns when the agent is stopping and all lanes have ended.
    private func runLanes() async {
        await withDiscardingTaskGroup { group in
            while !isStopping.isSet, !Task.isCancelled {
                for name in board.names {
                    for lane in Lane.allCases {
                        let id = LaneID(destination: name, lane: lane)
                        guard running.withLock({ $0.insert(id).inserted }) else { continue }
                        group.addTask { await self.run(id) }
                    }
                }
                await signals.wait(for: .lanes)
            }
        }
    }

    private func run(_ id: LaneID) async {
        await DeliveryLane(id: id, stage: self).run()
        slots.remove(id)
        running.withLock { _ = $0.remove(id) }
        // Its destination may be there again.
        signals.raise(.lanes)
    }

    /// Lets running parts end for `grace`, then ends the rest.
    private func endAfterGrace() async {
        await isStopping.wait()
        // Ends early only when the task is cancelled, with which the rest ends too.
        try? await Task.sleep(for: live.settings.shutdownGrace)
        deliverOne.cancelAll()
    }
}
