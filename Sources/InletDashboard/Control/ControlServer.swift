internal import Foundation
internal import HTTPTypes
internal import Hummingbird
internal import HummingbirdCore
internal import InletAgent
internal import InletCore
internal import InletJournal
internal import InletLinux
internal import Logging
internal import NIOCore
internal import NIOPosix
internal import ServiceLifecycle
package import SystemPackage

/// Serves the control API on the agent's Unix socket, mode 0660: who may write to it may command the agent.
package struct ControlServer: Service {
    private let path: FilePath
    private let responder: APIResponder

    /// - Parameter pulse: what is told of what happened lately.
    package init(path: FilePath, control: LocalControl, pulse: Pulse? = nil) {
        self.path = path
        responder = APIResponder(desk: APIDesk(control: control, pulse: pulse), table: Endpoints.all)
    }

    package func run() async throws {
        let (path, responder) = (path, responder)
        let quiet = Logger(label: "control") { _ in SwiftLogNoOpLogHandler() }
        // Not Hummingbird's Application: that wakes up every second to keep a date for a header that nobody reads here.
        let server = try HTTPServerBuilder.http1().buildServer(
            configuration: ServerConfiguration(address: .unixDomainSocket(path: path.string)),
            eventLoopGroup: MultiThreadedEventLoopGroup.singleton, logger: quiet
        ) { request, writer, channel in
            // Whom the kernel lets write here may do everything.
            let name = await PeerCredentials.of(channel).map { "uid \($0.user)" } ?? "a person"
            let reply = await responder.respond(
                to: request, from: Visitor(access: .full, name: name), ConnectionDeadline(channel: channel))
            try await writer.write(response: reply.response.head, body: reply.response.body)
            if reply.closes { try await channel.close() }
        } onServerRunning: { _ in
            try? FileMode.set(path, 0o660)
        }
        try await server.run()
        try? DurableFile.remove(path)
    }
}

/// Who is at the other end of the socket, as the kernel says (SO_PEERCRED, unix(7)).
struct PeerCredentials: Sendable {
    var process: Int32 = 0
    var user: UInt32 = 0
    var group: UInt32 = 0

    static func of(_ channel: any Channel) async -> PeerCredentials? {
        guard let provider = channel as? any SocketOptionProvider else { return nil }
        let option = NIOBSDSocket.Option(rawValue: 17)
        return try? await provider.unsafeGetSocketOption(level: .socket, name: option).get()
    }
}
