package import Foundation
import Hummingbird
import Logging
import NIOCore
import NIOPosix
import ServiceLifecycle
import Synchronization

/// Thrown to callers that wait for a port that will never be bound.
package struct SandboxStopped: Error, CustomStringConvertible {
    package var description: String {
        "The sandbox ended before it was listening; the error that its run() threw says why."
    }
}

/// The connection, for a sandbox's router: faults close it.
struct ConnectionContext: InitializableFromSource {
    let channel: any Channel

    init(source: ApplicationRequestContextSource) { channel = source.channel }
}

/// The life of a sandbox's server on 127.0.0.1. Its router gives the answers.
package final class SandboxServer<Operation: SandboxOperation>: Sendable {
    let router: SandboxRouter<Operation>
    private let wantedPort: Int
    private let boundPort = MultiThreadedEventLoopGroup.singleton.any().makePromise(of: Int.self)

    /// - Parameter port: 0 = the system chooses one.
    init(port: Int, _ router: SandboxRouter<Operation>) {
        wantedPort = port
        self.router = router
    }

    // Callers that still wait for a server that never ran get an answer.
    deinit { boundPort.fail(SandboxStopped()) }

    /// The port, once it is bound; throws `SandboxStopped` if `run` ended before.
    func port() async throws -> Int { try await boundPort.futureResult.get() }

    /// Serves until the task is cancelled or a graceful shutdown begins. Running requests end first, except those that
    /// a fault holds. Call it once.
    func run() async throws {
        // Only the first outcome of a promise counts: a server that was listening keeps its port.
        defer { boundPort.fail(SandboxStopped()) }
        do {
            try await serve()
        } catch {
            if !Task.isCancelled { throw error }
        }
    }

    private func serve() async throws {
        let (boundPort, faults) = (boundPort, router.faults)
        let application = Application(
            responder: router,
            configuration: ApplicationConfiguration(address: .hostname("127.0.0.1", port: wantedPort)),
            onServerRunning: { channel in
                if let port = channel.localAddress?.port { boundPort.succeed(port) }
            },
            eventLoopGroupProvider: .singleton,
            logger: Logger(label: "inlet.sandbox", factory: { _ in SwiftLogNoOpLogHandler() }))
        try await withGracefulShutdownHandler {
            try await application.run()
        } onGracefulShutdown: {
            faults.closeForGood()
        }
    }
}

/// The common part of all sandboxes: a server on 127.0.0.1, faults, and counters.
package protocol LoopbackSandbox: Sendable {
    associatedtype Operation: SandboxOperation

    var server: SandboxServer<Operation> { get }
}

extension LoopbackSandbox {
    /// Serves until the task is cancelled or a graceful shutdown begins. Running requests end first, except those that
    /// a fault holds. Call it once.
    package func run() async throws { try await server.run() }

    /// The port on 127.0.0.1, once it is bound.
    ///
    /// - Throws: `SandboxStopped` if `run()` ended before.
    package func port() async throws -> Int { try await server.port() }

    /// Faults; may be changed at any time.
    package var faults: Faults<Operation> { server.router.faults }

    /// Requests, bytes and parts so far.
    package var traffic: RequestCounts<Operation> { server.router.traffic.withLock { $0 } }

    /// Requests so far, by the operation's `rawValue`; 0 for none.
    package func counts() -> [String: Int] {
        let counts = traffic.counts
        return Dictionary(uniqueKeysWithValues: Operation.allCases.map { ($0.rawValue, counts[$0] ?? 0) })
    }

    /// Bytes of request bodies so far, by the operation's `rawValue`; only if there were any.
    package func bytes() -> [String: Int64] {
        Dictionary(uniqueKeysWithValues: traffic.bytes.map { ($0.key.rawValue, $0.value) })
    }
}

/// Counts of received requests.
package struct RequestCounts<Operation: SandboxOperation>: Sendable, Equatable {
    /// Requests per operation, faulty ones included.
    package var counts: [Operation: Int] = [:]
    /// Part numbers in the order in which their requests began; at most the first 100,000.
    package var partOrder: [Int] = []
    /// The highest number of part requests that were open at once.
    package var peakParallelParts = 0
    /// Bytes of request bodies per operation, including failed requests.
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

/// The operations of a `ReportServer`.
package enum ReportOperation: String, SandboxOperation { case report }

/// A port on 127.0.0.1 that answers `GET /` with the content of other sandboxes, for programs that judge it from
/// another process. Everything else gets 404.
package final class ReportServer: LoopbackSandbox {
    package let server: SandboxServer<ReportOperation>

    /// - Parameters:
    ///   - port: 0 = the system chooses one.
    ///   - report: A JSON document, made anew for each request; its errors become 500.
    package init(port: Int = 0, _ report: @escaping @Sendable () throws -> Data) {
        let row = SandboxRoute<ReportOperation>("GET /", .report) { _ in
            do {
                return Response(
                    SandboxReply(200, type: "application/json", body: String(decoding: try report(), as: UTF8.self)))
            } catch {
                throw SandboxReply(500, body: "\(error)\n")
            }
        }
        server = SandboxServer(
            port: port, SandboxRouter(.none, [row]) { refusal, _ in SandboxReply(refusal.status, body: "") })
    }
}
