internal import InletCore
internal import Synchronization

/// The way of one destination's large bodies: as many at once as `UploadPace` finds the line to carry, the others in the
/// order in which they came.
final class UploadLane: Sendable {
    /// Smaller files pass by: their time is the store's answer, not the line's.
    static let smallest: Int64 = 4 << 20

    fileprivate struct Waiter {
        var id: Int
        var leave: CheckedContinuation<UploadPace.Body?, Never>
    }

    fileprivate struct State {
        var pace = UploadPace()
        var running = 0
        var waiting: [Waiter] = []
        var lastID = 0
    }

    private let state = Mutex(State())
    private let start = ContinuousClock.now

    init() {}

    /// Bodies that are under way, and those that wait for their turn.
    var wanted: Int { state.withLock { $0.wanted } }

    private var now: Duration { start.duration(to: .now) }

    /// Runs `work`, which sends `bytes`, once it may begin.
    ///
    /// - Throws: what `work` throws; `.cancelled` when the task is cancelled, or the agent begins to stop, while it waits.
    func carry<Value: Sendable>(
        _ bytes: Int64, isStopping: () -> Bool, _ work: () async throws(DeliveryError) -> Value
    ) async throws(DeliveryError) -> Value {
        guard bytes >= Self.smallest else { return try await work() }
        let body: UploadPace.Body
        if let free = state.withLock({ $0.beginNow(at: now) }) {
            body = free
        } else {
            body = try await turn()
            if isStopping() {
                leave(body, nil)
                throw .stopping
            }
        }
        do throws(DeliveryError) {
            let value = try await work()
            leave(body, bytes)
            return value
        } catch {
            leave(body, nil)
            throw error
        }
    }

    /// The store has answered a request that began at `began` with SlowDown or 429.
    func refused(since began: ContinuousClock.Instant) {
        state.withLock { $0.pace.refused(since: start.duration(to: began), at: now) }
    }

    /// As `UploadPace.partSize`; a configured size is kept.
    func partSize(_ limits: PartLimits, fileSize: Int64) -> Int64 {
        state.withLock {
            $0.pace.partSize(
                fileSize: fileSize, smallest: limits.partSize, largest: limits.largestPart, parallel: limits.parallel)
        }
    }

    private func turn() async throws(DeliveryError) -> UploadPace.Body {
        let id = state.withLock { state in
            state.lastID += 1
            return state.lastID
        }
        let body = await withTaskCancellationHandler {
            await withCheckedContinuation { wait(id, $0) }
        } onCancel: {
            state.withLock { $0.withdraw(id) }?.resume(returning: nil)
        }
        guard let body else { throw DeliveryError(.cancelled, .cancelled, "cancelled while it waited for its turn") }
        return body
    }

    private func wait(_ id: Int, _ leave: CheckedContinuation<UploadPace.Body?, Never>) {
        // A cancellation before this look shows in the task, a later one finds the waiter.
        let answer = state.withLock { state -> UploadPace.Body?? in
            if Task.isCancelled { return .some(nil) }
            if let body = state.beginNow(at: now) { return body }
            state.waiting.append(Waiter(id: id, leave: leave))
            return .none
        }
        if let answer { leave.resume(returning: answer) }
    }

    private func leave(_ body: UploadPace.Body, _ bytes: Int64?) {
        let next = state.withLock { $0.end(body, bytes, at: now) }
        for (waiter, body) in next { waiter.leave.resume(returning: body) }
    }
}

extension UploadLane.State {
    var wanted: Int { running + waiting.count }

    /// nil when the body has to wait.
    mutating func beginNow(at now: Duration) -> UploadPace.Body? {
        guard waiting.isEmpty, running < pace.limit else { return nil }
        running += 1
        return pace.begin(at: now)
    }

    /// Those that may begin now.
    mutating func end(
        _ body: UploadPace.Body, _ bytes: Int64?, at now: Duration
    ) -> [(UploadLane.Waiter, UploadPace.Body)] {
        pace.end(body, bytes: bytes, wanted: wanted, at: now)
        running -= 1
        var next: [(UploadLane.Waiter, UploadPace.Body)] = []
        while running < pace.limit, !waiting.isEmpty {
            running += 1
            next.append((waiting.removeFirst(), pace.begin(at: now)))
        }
        return next
    }

    mutating func withdraw(_ id: Int) -> CheckedContinuation<UploadPace.Body?, Never>? {
        waiting.firstIndex { $0.id == id }.map { waiting.remove(at: $0).leave }
    }
}
