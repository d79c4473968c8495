import Synchronization

/// What every sandbox has, whatever it speaks: a server on 127.0.0.1, faults, and counters.
package protocol LoopbackSandbox: Sendable {
    associatedtype Operation: SandboxOperation

    var server: SandboxServer<Operation> { get }
}

extension LoopbackSandbox {
    /// Serves until the task is cancelled or a graceful shutdown begins; requests under way then end first, but for those
    /// that a fault holds. Call it once.
    package func run() async throws { try await server.run() }

    /// The port on 127.0.0.1, once it is bound.
    ///
    /// - Throws: `SandboxStopped` when `run()` ended before.
    package func port() async throws -> Int { try await server.port() }

    /// What goes wrong; may be changed at any time.
    package var faults: Faults<Operation> { server.router.faults }

    /// Requests, bytes and parts so far.
    package var traffic: RequestCounts<Operation> { server.router.traffic.withLock { $0 } }

    /// Requests so far, by the operation's `rawValue`; 0 where none came.
    package func counts() -> [String: Int] {
        let counts = traffic.counts
        return Dictionary(uniqueKeysWithValues: Operation.allCases.map { ($0.rawValue, counts[$0] ?? 0) })
    }

    /// Bytes of request bodies so far, by the operation's `rawValue`; only where there were any.
    package func bytes() -> [String: Int64] {
        Dictionary(uniqueKeysWithValues: traffic.bytes.map { ($0.key.rawValue, $0.value) })
    }
}

/// What came in so far.
package struct RequestCounts<Operation: SandboxOperation>: Sendable, Equatable {
    /// Requests per operation, faulty ones included.
    package var counts: [Operation: Int] = [:]
    /// Part numbers in the order in which their requests began; the first 100,000.
    package var partOrder: [Int] = []
    /// The most part requests that were open at one time.
    package var peakParallelParts = 0
    /// Bytes of request bodies per operation, those of requests that failed included.
    package var bytes: [Operation: Int64] = [:]
    private var openParts = 0

    /// Bytes of request bodies.
    package var bytesReceived: Int64 { bytes.values.reduce(0, +) }

    mutating func began(_ operation: Operation, part: Int?) {
        counts[operation, default: 0] += 1
        guard let part else { return }
        openParts += 1
        peakParallelParts = max(peakParallelParts, openParts)
        if partOrder.count < 100_000 { partOrder.append(part) }
    }

    mutating func ended(part: Int?) { if part != nil { openParts -= 1 } }
}
