import Hummingbird
import Logging
import NIOCore
import NIOPosix
import ServiceLifecycle

/// Thrown to those who wait for a port that will never be bound.
package struct SandboxStopped: Error, CustomStringConvertible {
    package var description: String {
        "The sandbox ended before it was listening; the error that its run() threw says why."
    }
}

/// What a sandbox's router needs of the connection: faults close it.
struct ConnectionContext: InitializableFromSource {
    let channel: any Channel

    init(source: ApplicationRequestContextSource) { channel = source.channel }
}

/// The life of a sandbox's server on 127.0.0.1; what it answers is its router's.
package final class SandboxServer<Operation: SandboxOperation>: Sendable {
    let router: SandboxRouter<Operation>
    private let wantedPort: Int
    private let boundPort = MultiThreadedEventLoopGroup.singleton.any().makePromise(of: Int.self)

    /// - Parameter port: 0 = one that the system chooses.
    init(port: Int, _ router: SandboxRouter<Operation>) {
        wantedPort = port
        self.router = router
    }

    // Whoever still waits for a server that was never run gets an answer.
    deinit { boundPort.fail(SandboxStopped()) }

    /// The port, once it is bound; throws `SandboxStopped` when `run` ended before.
    func port() async throws -> Int { try await boundPort.futureResult.get() }

    /// Serves until the task is cancelled or a graceful shutdown begins; requests under way then end first, but for those
    /// that a fault holds. Call it once.
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
