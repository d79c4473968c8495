internal import InletCore
internal import InletLinux
internal import Synchronization

/// A fault of the log; `inlet status` and the page show it.
package struct LogStatus: Codable, Sendable, Equatable {
    package var reason: String
    /// Lines lost since the fault began.
    package var lost: Int
}

/// Queues lines for an output and writes them on a thread of its own, so that `emit` never waits for a slow reader. The
/// queue is bounded; lines that do not fit are counted as lost.
final class LogWriter: Sendable {
    private typealias Batch = (lines: [EventLine], style: LineStyle, time: WallTime, weight: Int)

    private struct State {
        var batches: [Batch] = []
        /// Approximate size in bytes of the queue and the write in progress.
        var weight = 0
        /// When the write in progress began.
        var since: ContinuousClock.Instant?
        var looksAgain = false
        var isStarted = false
        var isAsleep = false
        var isClosed = false
        /// A call of `flush` waits until the queue is empty.
        var isAwaited = false
        var trouble: String?
        /// Lost lines that no event has reported yet.
        var lost = 0
    }

    private let output: any LogOutput
    /// Gets the events about the log itself; on any thread.
    private let tell: @Sendable (AgentEvent) -> Void
    private let limit: Int
    private let state = Mutex(State())
    private let waker: Waker
    private let idle: Waker

    /// Some 10,000 lines.
    static let usualLimit = 4 << 20
    /// A write that takes longer is reported as trouble.
    private static let patience = Duration.seconds(10)

    init(
        _ output: any LogOutput, limit: Int = usualLimit, tell: @escaping @Sendable (AgentEvent) -> Void
    ) throws(SystemError) {
        (self.output, self.limit, self.tell) = (output, limit, tell)
        (waker, idle) = (try Waker(), try Waker())
    }

    /// Queues the lines, all or none. Never waits.
    ///
    /// - Parameter isUrgent: accepts lines about the log itself, which are rare, even when the queue is full.
    /// - Returns: false when the queue is full, and the lines are lost.
    @discardableResult
    func put(_ lines: [EventLine], _ style: LineStyle, at time: WallTime, isUrgent: Bool = false) -> Bool {
        let batch: Batch = (lines, style, time, lines.reduce(0) { $0 + $1.weight })
        let (isTaken, isNews) = state.withLock { state in
            guard isUrgent || state.weight == 0 || state.weight + batch.weight <= limit else {
                state.lost += lines.count
                defer { state.trouble = state.trouble ?? output.silence }
                return (false, state.trouble == nil)
            }
            state.batches.append(batch)
            state.weight += batch.weight
            wake(&state)
            return (true, false)
        }
        if isNews { tell(.logError(reason: output.silence)) }
        return isTaken
    }

    /// Makes the output look its file up by name again before the next write.
    func lookAgain() {
        state.withLock { state in
            state.looksAgain = true
            wake(&state)
        }
    }

    /// Ends the thread once it has written what waits.
    func close() {
        state.withLock { state in
            state.isClosed = true
            if state.isAsleep { waker.wake() }
        }
    }

    /// Blocks until everything queued before is written, or for `bound`; returns at once when the output has been stuck for
    /// that long already. For one caller at a time.
    ///
    /// - Returns: whether everything is written.
    @discardableResult
    func flush(within bound: Duration) -> Bool {
        let start = ContinuousClock.now
        let end = start.advanced(by: bound)
        while true {
            let (isDone, since) = state.withLock { state in
                let isDone = state.batches.isEmpty && state.since == nil
                state.isAwaited = !isDone
                return (isDone, state.since)
            }
            if isDone { return true }
            if ContinuousClock.now >= end || since.map({ $0.advanced(by: bound) <= start }) == true { return false }
            idle.rest(until: end)
        }
    }

    /// The current fault; nil when it works.
    func status(at now: ContinuousClock.Instant = .now) -> LogStatus? {
        state.withLock { state in
            let isStuck = state.since.map { now - $0 >= Self.patience } ?? false
            guard let reason = state.trouble ?? (isStuck ? output.silence : nil) else { return nil }
            return LogStatus(reason: reason, lost: state.lost)
        }
    }

    // MARK: - The thread

    private func wake(_ state: inout State) {
        if state.isStarted {
            if state.isAsleep { waker.wake() }
            state.isAsleep = false
        } else {
            // Without a thread the lines wait; the next one tries again to start it.
            state.isStarted = (try? LoopThread(name: "log", body: { self.run() })) != nil
        }
    }

    private func run() {
        while let (batches, looksAgain) = next() {
            if looksAgain { output.reopen() }
            for batch in batches {
                let now = ContinuousClock.now
                state.withLock { $0.since = now }
                ended(batch, output.write(batch.lines, batch.style, at: batch.time))
            }
        }
    }

    /// Waits for lines; nil once closed and empty.
    private func next() -> (batches: [Batch], looksAgain: Bool)? {
        while true {
            let (work, isOver) = state.withLock { state -> ((batches: [Batch], looksAgain: Bool)?, Bool) in
                if !state.batches.isEmpty || state.looksAgain {
                    defer { (state.batches, state.looksAgain) = ([], false) }
                    // `run` sets it anew for each batch.
                    state.since = .now
                    return ((state.batches, state.looksAgain), false)
                }
                state.since = nil
                state.isAsleep = true
                if state.isAwaited { idle.wake() }
                state.isAwaited = false
                return (nil, state.isClosed)
            }
            if let work { return work }
            if isOver { return nil }
            waker.rest(until: nil)
        }
    }

    private func ended(_ batch: Batch, _ result: LogWrite) {
        let (began, lost) = state.withLock { state -> (String?, Int) in
            state.weight -= batch.weight
            state.lost += result.lost
            if let trouble = result.trouble {
                defer { state.trouble = trouble }
                return (state.trouble == nil ? trouble : nil, 0)
            }
            // Reported once half the queue is free, not each time that a slow reader takes a line.
            guard state.trouble != nil, state.weight <= limit / 2 else { return (nil, 0) }
            defer { (state.trouble, state.lost) = (nil, 0) }
            return (nil, state.lost)
        }
        if let began { tell(.logError(reason: began)) }
        if lost > 0 { tell(.logLost(lines: lost)) }
    }
}
