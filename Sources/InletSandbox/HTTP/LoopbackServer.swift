import Hummingbird
import Logging
import NIOCore
import ServiceLifecycle

/// What a sandbox's responder needs of the connection: faults close it.
struct ConnectionContext: InitializableFromSource {
    let channel: any Channel

    init(source: ApplicationRequestContextSource) { channel = source.channel }
}

/// The life of a sandbox's server on 127.0.0.1.
final class LoopbackServer: Sendable {
    private let boundPort = BoundPort()
    private let wantedPort: Int
    private let held: HeldConnections

    /// - Parameters:
    ///   - port: 0 = one that the system chooses.
    ///   - held: Connections that would keep the server from ending.
    init(port: Int, held: HeldConnections) {
        wantedPort = port
        self.held = held
    }

    /// The port, once it is bound; throws `SandboxStopped` when `run` ended before.
    func port() async throws -> Int { try await boundPort.value() }

    /// Serves until the task is cancelled or a graceful shutdown begins.
    func run<Responder: HTTPResponder>(_ responder: Responder) async throws
    where Responder.Context == ConnectionContext {
        defer { boundPort.stop() }
        do {
            try await serve(responder)
        } catch {
            if !Task.isCancelled { throw error }
        }
    }

    private func serve<Responder: HTTPResponder>(_ responder: Responder) async throws
    where Responder.Context == ConnectionContext {
        let (boundPort, held) = (boundPort, held)
        let application = Application(
            responder: responder,
            configuration: ApplicationConfiguration(address: .hostname("127.0.0.1", port: wantedPort)),
            onServerRunning: { channel in
                if let port = channel.localAddress?.port { boundPort.bind(port) }
            },
            eventLoopGroupProvider: .singleton,
            logger: Logger(label: "inlet.sandbox", factory: { _ in SwiftLogNoOpLogHandler() }))
        try await withGracefulShutdownHandler {
            try await application.run()
        } onGracefulShutdown: {
            held.closeForGood()
        }
    }
}
