internal import Foundation
internal import InletCore
internal import InletJournal
internal import InletLinux
internal import ServiceLifecycle
internal import Synchronization

/// Delivers due files. Each destination has two lanes: one of small files, which share its connections, and one of big
/// files, whose number `workers` bounds. Lanes come and go with their destinations, and share the pool's few threads.
final class DeliveryStage: Service {
    let shared: Shared
    /// Places of big transfers. The waiting lanes got fewer than they wanted.
    private let places: Mutex<(detector: StallDetector, waiting: Set<LaneID>)>
    /// Raised when a lane begins to wait for a place.
    private let isShortOfPlaces = WakeSignal()
    /// A shorter limit of 0 ends nothing: a restarted part costs its bytes.
    private let holdPatience: Duration
    /// For short blocking calls; long ones have their own threads. More threads than processors only wake each other,
    /// but one must run while another waits for a disk.
    let pool = BlockingPool(
        name: "worker", threads: min(4, max(2, ProcessInfo.processInfo.activeProcessorCount)))
    let isStopping = StopFlag()
    /// Deliveries that an earlier process began: their first attempt in this one is marked as resumed.
    let resumable: Mutex<Set<Int64>>
    let faults = Mutex(LocalFaults())
    /// The size of the small files that were sent together and have not been answered.
    let burstBytes = Atomic<Int64>(0)
    private let running = Mutex<Set<LaneID>>([])

    /// - Parameters:
    ///   - begun: the deliveries that an earlier process began.
    ///   - patience: how long deliveries under a limit of 0 may keep their places.
    ///   - silence: a big file without a byte for so long frees its place.
    init(_ shared: Shared, begun: [Int64], patience: Duration, silence: Duration) {
        self.shared = shared
        resumable = Mutex(Set(begun))
        places = Mutex((StallDetector(workers: shared.settings.settings.workers, patience: silence), []))
        holdPatience = patience
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
                    await self.freeStalled()
                    return false
                }
                group.addTask {
                    await self.endHeld()
                    return false
                }
                for await isOver in group where isOver { break }
                group.cancelAll()
            }
        } onGracefulShutdown: {
            self.isStopping.set()
            self.shared.signals.raiseDeliverable()
        }
    }

    /// Starts the lanes of each new destination. Returns when the agent is stopping and all lanes have ended.
    private func runLanes() async {
        await withDiscardingTaskGroup { group in
            while !isStopping.isSet, !Task.isCancelled {
                for name in shared.destinations.names {
                    for lane in Lane.allCases {
                        let id = LaneID(destination: name, lane: lane)
                        guard running.withLock({ $0.insert(id).inserted }) else { continue }
                        group.addTask { await self.run(id) }
                    }
                }
                await shared.signals[.lanes].wait(until: nil)
            }
        }
    }

    private func run(_ id: LaneID) async {
        await DeliveryLane(id: id, stage: self).run()
        shared.lanes.remove(id)
        running.withLock { _ = $0.remove(id) }
        // Its destination may be there again.
        shared.signals.raise(.lanes)
    }

    /// Ends deliveries that a limit of 0 holds: they continue later, and others use their places. Deliveries that only
    /// wait for an answer, or read back what they sent, run to their end. Sleeps while no limit is 0.
    private func endHeld() async {
        var clock = ZeroLimitClock(patience: holdPatience)
        await shared.signals[.limit].loop {
            let now = ContinuousClock.now
            let busy = clock.due(shared.destinations.shut, at: now).filter { shared.transfers.sendBack(heldAt: $0) }
            return clock.nextLook(busy, at: now)
        }
    }

    /// Lets running parts end for `grace`, then ends the rest.
    private func endAfterGrace() async {
        await isStopping.wait()
        await Task.rest(for: shared.settings.settings.shutdownGrace)
        shared.transfers.cancelAll()
    }
}

/// The places of big transfers, and the lanes that wait for one.
extension DeliveryStage {
    /// As `StallDetector.take`; the lane is woken when there may be more.
    func takePlaces(_ most: Int, for lane: LaneID) -> Int {
        if most == 0 { return 0 }
        let sent = shared.transfers.sent
        let (count, isFirst) = places.withLock { places in
            places.detector.note(sent, at: .now)
            let count = places.detector.take(most, for: lane, at: .now)
            if count == most { return (count, false) }
            defer { places.waiting.insert(lane) }
            return (count, places.waiting.isEmpty)
        }
        if isFirst { isShortOfPlaces.raise() }
        return count
    }

    /// As `StallDetector.begin`. A lane that needs fewer places than it got waits for no more.
    func keepPlaces(_ deliveries: [Int64], of count: Int, in lane: LaneID) {
        places.withLock { places in
            places.detector.begin(deliveries, of: count, in: lane, at: .now)
            if deliveries.count < count { places.waiting.remove(lane) }
        }
        if deliveries.count < count { wakeWaiting() }
    }

    func freePlaces(_ deliveries: [Int64]) {
        places.withLock { places in for delivery in deliveries { places.detector.end(delivery) } }
        wakeWaiting()
    }

    /// Wakes the lanes that wait for a place.
    private func wakeWaiting() {
        let waiting = places.withLock { places in
            defer { places.waiting = [] }
            return places.waiting
        }
        for lane in waiting { shared.signals.raise(.deliverable(lane)) }
    }

    /// Frees the places of stalled transfers, until the task is cancelled. Sleeps while no lane waits for one.
    func freeStalled() async {
        while !Task.isCancelled {
            let sent = shared.transfers.sent
            let next = places.withLock { places -> ContinuousClock.Instant? in
                places.detector.note(sent, at: .now)
                return places.waiting.isEmpty ? nil : places.detector.nextLook(at: .now)
            }
            await isShortOfPlaces.wait(until: next)
            if let next, next <= .now { wakeWaiting() }
        }
    }
}
