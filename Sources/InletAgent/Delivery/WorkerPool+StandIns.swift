internal import InletCore
internal import InletJournal
internal import InletLinux
internal import Synchronization

/// Who is at work on big files, and who stands in for those that hang.
final class StandIns: Sendable {
    private struct State {
        var relief: WorkerRelief
        /// Stand-ins that have begun and not ended, at work or about to be.
        var count = 0
        /// The last one found nothing to do; until a signal is raised.
        var isDry = false
    }

    private let state: Mutex<State>
    /// Raised when no worker is free any more.
    let signal = WakeSignal()

    init(workers: Int, patience: Duration) {
        state = Mutex(State(relief: WorkerRelief(workers: workers, patience: patience)))
    }

    func begin(_ delivery: Int64, byStandIn isStandIn: Bool) {
        let isFull = state.withLock { state in
            state.relief.begin(delivery, byStandIn: isStandIn, at: .now)
            return state.relief.isFull
        }
        if isFull { signal.raise() }
    }

    func end(_ delivery: Int64) { state.withLock { $0.relief.end(delivery) } }

    /// How many more are to begin, who are then counted.
    func take(_ sent: [Int64: Int64]) -> Int {
        state.withLock { state in
            state.relief.note(sent, at: .now)
            if state.isDry { return 0 }
            let more = max(0, state.relief.standIns(at: .now) - state.count)
            state.count += more
            return more
        }
    }

    /// One has done its work, or found none. - Returns: whether it goes on; otherwise it is no longer counted.
    func goesOn(hasWork: Bool) -> Bool {
        let goesOn = state.withLock { state in
            if hasWork, state.count <= state.relief.standIns(at: .now) { return true }
            state.isDry = !hasWork
            state.count -= 1
            return false
        }
        if !goesOn { signal.raise() }
        return goesOn
    }

    /// There may be work again.
    func mayHaveWork() { state.withLock { $0.isDry = false } }

    /// When to look again; nil = at the signal. `needsWork`: more could be at work, if there was any.
    var next: (look: ContinuousClock.Instant?, needsWork: Bool) {
        state.withLock { state in
            (state.relief.nextLook(at: .now), state.relief.standIns(at: .now) > state.count)
        }
    }
}

extension WorkerPool {
    /// Has others stand in for workers whose deliveries hang. Sleeps while a worker is free.
    func relieve() async {
        await withDiscardingTaskGroup { group in
            while !isStopping.isSet, !Task.isCancelled {
                for _ in 0..<standIns.take(deliverOne.inFlight.sent) { group.addTask { await self.standIn() } }
                let (look, needsWork) = standIns.next
                guard let look else {
                    await standIns.signal.wait(until: nil)
                    continue
                }
                heartbeat.beat(.workers)
                if needsWork {
                    // All who else wait for work are busy.
                    await signals.wait(for: .deliverable(.big), until: look)
                    standIns.mayHaveWork()
                    // One of them is not any more: it may be the signal that it waits for.
                    if standIns.next.look == nil { signals.raise(.deliverable(.big)) }
                } else {
                    await standIns.signal.wait(until: look)
                }
            }
        }
    }

    private func standIn() async {
        var hasWork = true
        repeat {
            // The workers that it stands in for ask the same of the journal, and say that it fails.
            hasWork = (try? await takeOne(owner: "\(Lane.big)-stand-in", isStandIn: true)) ?? false
        } while standIns.goesOn(hasWork: hasWork && !isStopping.isSet && !Task.isCancelled)
    }
}
