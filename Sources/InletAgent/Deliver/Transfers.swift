package import InletCore
internal import InletLinux
internal import InletPipelines
internal import Synchronization

/// The running deliveries: their progress, and a way to end one.
package final class Transfers: Sendable {
    /// A running delivery; its values are those of the moment.
    package struct RunningTransfer: Sendable {
        package let ref: AgentEvent.JobRef
        package let size: Int64
        package let since: WallTime
        /// nil for a small file that was sent with others.
        fileprivate let attempt: Attempt?
        fileprivate let cancel: @Sendable () -> Void
        /// Ended by a limit of 0, not by a person.
        fileprivate var isSentBack = false

        package var sent: Int64 { attempt?.bytesSent ?? 0 }
        /// Whether it waits for bytes under a limit now. One of many small ones is asked for only while it may.
        package var isHeld: Bool { attempt?.isHeld ?? false }
        /// Its progress, where bytes do not show it.
        package var step: StepProgress? { attempt?.progress }
    }

    private struct State {
        var entries: [Int64: RunningTransfer] = [:]
        /// Deliveries cancelled while they were not listed: just claimed, or ended. Nobody asks about ended ones again,
        /// so only the newest are kept.
        var missed: Set<Int64> = []
        var missedBefore: Set<Int64> = []
        /// The progress of deliveries that their destinations process, and what was logged about it.
        var steps: [Int64: (progress: StepProgress, pace: ProgressPace)] = [:]
        /// Files that were touched during their delivery, and may have changed. They are checked again when one of
        /// their deliveries ends, which may leave a checksum to compare with.
        var touched: Set<Int64> = []

        /// - Returns: whether it may have been cancelled before it was listed.
        mutating func forgetMissed(_ delivery: Int64) -> Bool {
            let isNew = missed.remove(delivery) != nil
            let isOld = missedBefore.remove(delivery) != nil
            return isNew || isOld
        }
    }

    /// Beyond this many processing deliveries, their steps are forgotten; the next check brings them back.
    private static let mostSteps = 10_000
    /// Far more than are ever claimed and not yet started.
    static let mostMissed = 10_000
    /// Many times what is on its way at one moment.
    private static let mostTouched = 100_000

    private let state = Mutex(State())

    /// Lists a delivery until `remove`.
    /// - Returns: a signal for its cancellation, and whether that may have come before it was listed.
    func add(
        _ ref: AgentEvent.JobRef, size: Int64, since: WallTime, attempt: Attempt
    ) -> (cancel: WakeSignal, mayBeCancelled: Bool) {
        let signal = WakeSignal()
        let entry = RunningTransfer(ref: ref, size: size, since: since, attempt: attempt, cancel: { signal.raise() })
        return state.withLock { state in
            state.entries[ref.delivery] = entry
            return (signal, state.forgetMissed(ref.delivery))
        }
    }

    /// Lists small deliveries that are sent together, until `remove`.
    ///
    /// - Parameter cancel: ends the one with this place among them.
    /// - Returns: the places of those whose cancellation may have come before they were listed.
    func add(
        _ burst: [(ref: AgentEvent.JobRef, size: Int64)], since: WallTime, cancel: @escaping @Sendable (Int) -> Void
    ) -> [Int] {
        state.withLock { state in
            for (index, one) in burst.enumerated() {
                state.entries[one.ref.delivery] = RunningTransfer(
                    ref: one.ref, size: one.size, since: since, attempt: nil, cancel: { cancel(index) })
            }
            if state.missed.isEmpty, state.missedBefore.isEmpty { return [] }
            return burst.indices.filter { index in
                let delivery = burst[index].ref.delivery
                return state.missed.contains(delivery) || state.missedBefore.contains(delivery)
            }
        }
    }

    func remove(_ deliveries: Int64...) { remove(deliveries) }

    func remove(_ deliveries: [Int64]) {
        state.withLock { state in for delivery in deliveries { state.entries[delivery] = nil } }
    }

    /// Ends deliveries to `destination` that wait for bytes under a limit; they continue later. - Returns: whether any
    /// runs there.
    func sendBack(heldAt destination: String) -> Bool {
        let (runs, cancels) = state.withLock { state -> (Bool, [@Sendable () -> Void]) in
            let there = state.entries.filter { $0.value.ref.destination == destination }
            // One of many small files then goes on by itself, and is held.
            let held = there.filter { $0.value.attempt?.isHeld ?? true }
            for id in held.keys { state.entries[id]?.isSentBack = true }
            return (!there.isEmpty, held.values.map(\.cancel))
        }
        for cancel in cancels { cancel() }
        return runs
    }

    func isSentBack(_ delivery: Int64) -> Bool { state.withLock { $0.entries[delivery]?.isSentBack ?? false } }

    /// Ends a running delivery. One that was sent with others then has an attempt, which must hear of it too.
    func cancel(_ delivery: Int64) {
        let cancel = state.withLock { state -> (@Sendable () -> Void)? in
            let running = state.entries[delivery]
            if let running, running.attempt != nil { return running.cancel }
            if state.missed.count >= Self.mostMissed { (state.missed, state.missedBefore) = ([], state.missed) }
            state.missed.insert(delivery)
            return running?.cancel
        }
        cancel?()
    }

    func cancelAll() { for entry in state.withLock({ Array($0.entries.values) }) { entry.cancel() } }

    /// How much of each has been sent, by delivery.
    var sent: [Int64: Int64] { state.withLock(\.entries).mapValues(\.sent) }

    package var running: [RunningTransfer] {
        state.withLock { Array($0.entries.values) }.sorted { $0.ref.delivery < $1.ref.delivery }
    }

    // MARK: - Touched files

    /// Has the file checked again when one of its deliveries ends.
    func keepTouched(_ file: Int64) {
        state.withLock { if $0.touched.count < Self.mostTouched { $0.touched.insert(file) } }
    }

    /// - Returns: whether it was noted.
    @discardableResult
    func takeTouched(_ file: Int64) -> Bool { state.withLock { $0.touched.remove(file) != nil } }

    // MARK: - Steps between attempts

    /// The progress that a delivery reported last, also between two attempts.
    package func step(_ delivery: Int64) -> StepProgress? { state.withLock { $0.steps[delivery]?.progress } }

    /// Records the progress of a waiting delivery. - Returns: whether to log it.
    func note(_ step: StepProgress, of delivery: Int64, at now: ContinuousClock.Instant) -> Bool {
        state.withLock { state in
            if state.steps.count >= Self.mostSteps { state.steps = [:] }
            var pace = state.steps[delivery]?.pace ?? ProgressPace()
            defer { state.steps[delivery] = (step, pace) }
            return pace.isDue(step.percent, at: now)
        }
    }

    func forgetStep(of delivery: Int64) { state.withLock { $0.steps[delivery] = nil } }
}

/// When to log the progress of one delivery: every 5 % or 5 s, whichever is later.
struct ProgressPace: Sendable, Equatable {
    private var told = 0.0
    private var toldAt: ContinuousClock.Instant?

    private static let stride = 5.0
    private static let interval = Duration.seconds(5)

    init() {}

    /// Whether to log `percent` now; it then counts as logged. Progress may fall when a step restarts.
    mutating func isDue(_ percent: Double, at now: ContinuousClock.Instant) -> Bool {
        told = min(told, percent)
        guard percent - told >= Self.stride else { return false }
        if let toldAt, toldAt.duration(to: now) < Self.interval { return false }
        told = percent
        toldAt = now
        return true
    }
}

extension Attempt {
    /// Smaller files have no progress lines: they are sent at once, and only their answers can take long.
    static let smallestShown: Int64 = 1 << 20

    /// Logs the progress of a delivery until the task is cancelled: every 5 % or 5 s, whichever is later. Deliveries
    /// that end sooner, and small files, have no such line.
    func sayProgress(
        of ref: AgentEvent.JobRef, size: Int64, to log: EventLog, _ heartbeat: Heartbeat,
        every interval: Duration = .seconds(5)
    ) async {
        var told: Int64 = 0
        var pace = ProgressPace()
        // Cancelled when the attempt has ended.
        while await Task.rest(for: interval) {
            // A worker that waits for an answer is alive, even if no byte moves for longer than the watchdog's time. A
            // server may take minutes, and every request ends by its own timeout. This reports that its threads run.
            heartbeat.beat(.workers)
            let sent = bytesSent
            if let step = progress {
                guard pace.isDue(step.percent, at: .now) else { continue }
                log.emit(.transferProgress(ref, sent: sent, size: size, step: step))
            } else if size > Self.smallestShown, (sent - told) * 20 >= size {
                told = sent
                log.emit(.transferProgress(ref, sent: sent, size: size))
            }
        }
    }
}
