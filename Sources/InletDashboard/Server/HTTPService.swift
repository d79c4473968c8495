internal import Hummingbird
internal import HummingbirdCore
package import InletCore
internal import Logging
internal import NIOCore
internal import NIOPosix
internal import ServiceLifecycle
internal import SystemPackage

/// The limits of a server, for all clients together and for each: for a few people and programs, on small machines.
package struct ServerBounds: Sendable {
    /// Connections at once; others wait to be accepted.
    var connections = 64
    /// On a port, the connections of one address; more are closed.
    var connectionsOfOne = 24
    /// Connections that wait to be accepted.
    var backlog = 128
    /// On a port, answers of thousands of lines at once.
    var largeAnswers = 2
    /// Bytes of a request's head.
    var head = 16 << 10
    /// The time for an idle connection, and for a request's head.
    var idle = Duration.seconds(30)
    /// The time for a request's body after its head.
    var reading = Duration.seconds(20)
    /// The time for an answer, or for one piece of a stream.
    var writing = Duration.seconds(60)

    package init() {}
}

/// Ends a connection whose other end takes too long to send its request, or to read the answer. A timer exists only
/// while something is awaited.
struct ConnectionDeadline: Sendable {
    let channel: any Channel
    /// See `ServerBounds`.
    let reading, writing: TimeAmount

    /// Until it is cancelled.
    func begin(_ time: TimeAmount) -> Scheduled<Void> {
        channel.eventLoop.scheduleTask(in: time) { [channel] in channel.close(promise: nil) }
    }
}

/// Answers HTTP/1.1 at an address. Not Hummingbird's Application: that wakes up every second to maintain a date header
/// that nobody reads here.
///
/// - Parameters:
///   - guards: made for each connection.
///   - isOpen: called once it listens.
func httpService(
    at address: BindAddress, _ bounds: ServerBounds,
    guards: @escaping @Sendable () -> [any RemovableChannelHandler] = { [] },
    isOpen: @escaping @Sendable (any Channel) -> Void,
    answer: @escaping @Sendable (Request, ConnectionDeadline) async -> Reply
) throws -> any Service {
    let quiet = Logger(label: "http") { _ in SwiftLogNoOpLogHandler() }
    let decoder = HTTP1Channel.Configuration.DecoderConfiguration(
        maxHeaderFieldSize: bounds.head, maxHeaderListSize: bounds.head, maxHeaderFieldCount: 100)
    let channel = HTTP1Channel.Configuration(
        additionalChannelHandlers: guards(), idleTimeout: .init(bounds.idle), httpDecoderConfiguration: decoder)
    return try HTTPServerBuilder.http1(configuration: channel).buildServer(
        configuration: ServerConfiguration(
            address: address, backlog: bounds.backlog,
            availableConnectionsDelegate: .maximum(bounds.connections, logger: quiet)),
        eventLoopGroup: MultiThreadedEventLoopGroup.singleton, logger: quiet
    ) { request, writer, channel in
        let deadline = ConnectionDeadline(
            channel: channel, reading: .init(bounds.reading), writing: .init(bounds.writing))
        let reply = await answer(request, deadline)
        // A stream checks after each of its pieces.
        let alarm = reply.response.body.contentLength == nil ? nil : deadline.begin(deadline.writing)
        defer { alarm?.cancel() }
        try await writer.write(response: reply.response.head, body: reply.response.body)
        if reply.closes { try await channel.close() }
    } onServerRunning: {
        isOpen($0)
    }
}

/// Why a port is not available, and the remedy.
package struct ListenFault: Sendable {
    package let reason: String
    package let remedy: String?

    /// Both, as one line.
    var words: String { remedy.map { "\(reason); \($0)" } ?? reason }

    init(_ error: any Error, _ listen: ListenAddress) {
        guard let error = error as? IOError else {
            reason = "'\(DisplayText.escape(listen.host))' is not an address of this machine (\(error))"
            remedy = nil
            return
        }
        (reason, remedy) =
            switch Errno(rawValue: error.errnoCode) {
            case .addressInUse:
                (
                    "another program listens there, or an agent that you may not query",
                    "choose another port for dashboard.listen, or end that program"
                )
            case .addressNotAvailable:
                (
                    "this machine does not have the address (yet)",
                    "set dashboard.listen to one of its own addresses, or 127.0.0.1"
                )
            case .permissionDenied:
                ("ports below 1024 need a privilege", "choose a port from 1024 for dashboard.listen")
            case let other: ("\(other)", nil)
            }
    }

    /// Listens there for a moment, as the dashboard would; nil when that works.
    package static func of(_ listen: ListenAddress) async -> ListenFault? {
        do {
            // An address that was just released may be reused, as by the server.
            let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
                .bind(host: listen.bindHost, port: listen.port).get()
            // It worked, which was the question.
            try? await channel.close()
            return nil
        } catch {
            return ListenFault(error, listen)
        }
    }
}
