internal import InletCore
internal import InletLinux
internal import Synchronization

/// Limits the number of large bodies sent to one destination at once to what `UploadPace` finds that the line carries.
///
/// The delivery with the fewest bodies in transit is next; among equals, the one that came first. So a file of one body
/// does not wait for all the parts of larger ones, and the longest waiting delivery with none in transit is always
/// next.
final class UploadLane: Sendable {
    /// Smaller files bypass it: the store's answer, not the line, determines their time.
    static let smallest: Int64 = 4 << 20

    private struct State {
        var pace = UploadPace()
        var running = 0
        /// The bodies in transit of each delivery.
        var shares: [Int64: Int] = [:]
        var waiting: [(delivery: Int64, waiter: Waiter<UploadPace.Body>)] = []

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

        /// - Returns: the closure that lets waiting bodies begin, to be called once the lock is released.
        mutating func end(
            _ body: UploadPace.Body, of delivery: Int64, _ bytes: Int64?, at now: Duration
        ) -> [@Sendable () -> Void] {
            pace.end(body, bytes: bytes, wanted: wanted, at: now)
            running -= 1
            let left = shares[delivery, default: 1] - 1
            shares[delivery] = left > 0 ? left : nil
            var begun: [@Sendable () -> Void] = []
            while running < pace.limit, let index = next {
                let (delivery, waiter) = waiting.remove(at: index)
                if let goOn = waiter.take(begin(delivery, at: now)) { begun.append(goOn) }
            }
            return begun
        }

        /// Among equals `min` takes the first.
        private var next: Int? {
            waiting.indices.min { share(of: waiting[$0].delivery) < share(of: waiting[$1].delivery) }
        }

        private func share(of delivery: Int64) -> Int { shares[delivery, default: 0] }
    }

    private let state = Mutex(State())
    private let start = ContinuousClock.now

    /// Bodies in transit, and bodies that wait for their turn.
    var wanted: Int { state.withLock { $0.wanted } }

    private var now: Duration { start.duration(to: .now) }

    /// Runs `work`, which sends `bytes` of `delivery`, once it may begin.
    ///
    /// - Throws: the errors of `work`; `.cancelled` when the task is cancelled, or the agent begins to stop, while it
    ///   waits.
    func carry<Value: Sendable>(
        _ bytes: Int64, of delivery: Int64, isStopping: () -> Bool, _ work: () async throws(DeliveryError) -> Value
    ) async throws(DeliveryError) -> Value {
        guard bytes >= Self.smallest else { return try await work() }
        let body = try await begin(delivery, isStopping)
        do throws(DeliveryError) {
            let value = try await work()
            leave(body, delivery, bytes)
            return value
        } catch {
            leave(body, delivery, nil)
            throw error
        }
    }

    /// The store answered SlowDown or 429 to a request that began at `began`.
    func refused(since began: ContinuousClock.Instant) {
        state.withLock { $0.pace.refused(since: start.duration(to: began), at: now) }
    }

    /// As `UploadPace.partSize`; a configured size stays.
    func partSize(_ limits: PartLimits, fileSize: Int64) -> Int64 {
        state.withLock {
            $0.pace.partSize(
                fileSize: fileSize, smallest: limits.partSize, largest: limits.largestPart, parallel: limits.parallel)
        }
    }

    private func begin(_ delivery: Int64, _ isStopping: () -> Bool) async throws(DeliveryError) -> UploadPace.Body {
        let waiter = Waiter<UploadPace.Body>()
        let free = state.withLock { state in
            let body = state.beginNow(delivery, at: now)
            if body == nil { state.waiting.append((delivery, waiter)) }
            return body
        }
        if let free { return free }
        guard let body = await waiter.wait() else {
            state.withLock { $0.waiting.removeAll { $0.waiter === waiter } }
            throw DeliveryError(.cancelled, .cancelled, "cancelled while it waited for its turn")
        }
        guard isStopping() else { return body }
        leave(body, delivery, nil)
        throw .stopping
    }

    private func leave(_ body: UploadPace.Body, _ delivery: Int64, _ bytes: Int64?) {
        let begun = state.withLock { $0.end(body, of: delivery, bytes, at: now) }
        for goOn in begun { goOn() }
    }
}
