internal import InletCore
internal import Synchronization

/// The way of one destination's large bodies: as many at once as `UploadPace` finds the line to carry.
///
/// Whose delivery has the fewest on their way is next, and of equal ones the one that came first: a file of one body does
/// not wait for all the parts of larger ones, and who waits longest with none on its way is always next.
final class UploadLane: Sendable {
    /// Smaller files pass by: their time is the store's answer, not the line's.
    static let smallest: Int64 = 4 << 20

    private struct Waiter {
        var id: Int
        var delivery: Int64
        var leave: CheckedContinuation<UploadPace.Body?, Never>
    }

    private struct State {
        var pace = UploadPace()
        var running = 0
        /// Of these, the bodies of each delivery.
        var shares: [Int64: Int] = [:]
        var waiting: [Waiter] = []
        var lastID = 0

        var wanted: Int { running + waiting.count }

        /// nil when the body has to wait.
        mutating func beginNow(_ delivery: Int64, at now: Duration) -> UploadPace.Body? {
            guard waiting.isEmpty, running < pace.limit else { return nil }
            return begin(delivery, at: now)
        }

        private mutating func begin(_ delivery: Int64, at now: Duration) -> UploadPace.Body {
            running += 1
            shares[delivery, default: 0] += 1
            return pace.begin(at: now)
        }

        /// Those that may begin now.
        mutating func end(
            _ body: UploadPace.Body, of delivery: Int64, _ bytes: Int64?, at now: Duration
        ) -> [(Waiter, UploadPace.Body)] {
            pace.end(body, bytes: bytes, wanted: wanted, at: now)
            running -= 1
            let left = shares[delivery, default: 1] - 1
            shares[delivery] = left > 0 ? left : nil
            var next: [(Waiter, UploadPace.Body)] = []
            while running < pace.limit, let waiter = takeNext() {
                next.append((waiter, begin(waiter.delivery, at: now)))
            }
            return next
        }

        private mutating func takeNext() -> Waiter? {
            // Of equal ones `min` takes the first.
            waiting.indices.min { share(of: waiting[$0]) < share(of: waiting[$1]) }.map { waiting.remove(at: $0) }
        }

        private func share(of waiter: Waiter) -> Int { shares[waiter.delivery, default: 0] }

        mutating func withdraw(_ id: Int) -> CheckedContinuation<UploadPace.Body?, Never>? {
            waiting.firstIndex { $0.id == id }.map { waiting.remove(at: $0).leave }
        }
    }

    private let state = Mutex(State())
    private let start = ContinuousClock.now

    /// Bodies that are under way, and those that wait for their turn.
    var wanted: Int { state.withLock { $0.wanted } }

    private var now: Duration { start.duration(to: .now) }

    /// Runs `work`, which sends `bytes` of `delivery`, once it may begin.
    ///
    /// - Throws: what `work` throws; `.cancelled` when the task is cancelled, or the agent begins to stop, while it waits.
    func carry<Value: Sendable>(
        _ bytes: Int64, of delivery: Int64, isStopping: () -> Bool, _ work: () async throws(DeliveryError) -> Value
    ) async throws(DeliveryError) -> Value {
        guard bytes >= Self.smallest else { return try await work() }
        let body: UploadPace.Body
        if let free = state.withLock({ $0.beginNow(delivery, at: now) }) {
            body = free
        } else {
            body = try await turn(delivery)
            if isStopping() {
                leave(body, delivery, nil)
                throw .stopping
            }
        }
        do throws(DeliveryError) {
            let value = try await work()
            leave(body, delivery, bytes)
            return value
        } catch {
            leave(body, delivery, nil)
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

    private func turn(_ delivery: Int64) async throws(DeliveryError) -> UploadPace.Body {
        let id = state.withLock { state in
            state.lastID += 1
            return state.lastID
        }
        let body = await withTaskCancellationHandler {
            await withCheckedContinuation { leave in
                // A cancellation before this look shows in the task, a later one finds the waiter.
                let answer = state.withLock { state -> UploadPace.Body?? in
                    if Task.isCancelled { return .some(nil) }
                    if let body = state.beginNow(delivery, at: now) { return body }
                    state.waiting.append(Waiter(id: id, delivery: delivery, leave: leave))
                    return .none
                }
                if let answer { leave.resume(returning: answer) }
            }
        } onCancel: {
            state.withLock { $0.withdraw(id) }?.resume(returning: nil)
        }
        guard let body else { throw DeliveryError(.cancelled, .cancelled, "cancelled while it waited for its turn") }
        return body
    }

    private func leave(_ body: UploadPace.Body, _ delivery: Int64, _ bytes: Int64?) {
        let next = state.withLock { $0.end(body, of: delivery, bytes, at: now) }
        for (waiter, body) in next { waiter.leave.resume(returning: body) }
    }
}
