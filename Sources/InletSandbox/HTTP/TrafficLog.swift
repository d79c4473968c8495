import Synchronization

/// What came in so far.
package struct Traffic<Operation: SandboxOperation>: Sendable, Equatable {
    /// Requests per operation, faulty ones included.
    package var counts: [Operation: Int] = [:]
    /// Part numbers in the order in which their requests began; the first 100,000.
    package var partOrder: [Int] = []
    /// The most part requests that were open at one time.
    package var peakParallelParts = 0
    /// Bytes of request bodies per operation, those of requests that failed included.
    package var bytes: [Operation: Int64] = [:]

    /// Bytes of request bodies.
    package var bytesReceived: Int64 { bytes.values.reduce(0, +) }
}

/// Counts requests as they come and go.
final class TrafficLog<Operation: SandboxOperation>: Sendable {
    private struct State {
        var traffic = Traffic<Operation>()
        var openParts = 0
    }

    private let state = Mutex(State())

    var traffic: Traffic<Operation> { state.withLock { $0.traffic } }

    func began(_ operation: Operation, part: Int?) {
        state.withLock { state in
            state.traffic.counts[operation, default: 0] += 1
            guard let part else { return }
            state.openParts += 1
            state.traffic.peakParallelParts = max(state.traffic.peakParallelParts, state.openParts)
            if state.traffic.partOrder.count < 100_000 { state.traffic.partOrder.append(part) }
        }
    }

    func ended(part: Int?) {
        guard part != nil else { return }
        state.withLock { $0.openParts -= 1 }
    }

    /// Requests so far, by the operation's name; 0 where none came.
    func counts() -> [String: Int] {
        let counts = traffic.counts
        return Dictionary(uniqueKeysWithValues: Operation.allCases.map { ($0.rawValue, counts[$0] ?? 0) })
    }

    func received(_ bytes: Int, _ operation: Operation) {
        state.withLock { $0.traffic.bytes[operation, default: 0] += Int64(bytes) }
    }
}
