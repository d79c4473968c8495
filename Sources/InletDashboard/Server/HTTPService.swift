internal import Hummingbird
internal import HummingbirdCore
internal import Logging
internal import NIOCore
internal import NIOPosix
internal import ServiceLifecycle

/// How much a server takes, of all clients together and of each.
struct ServerBounds: Sendable {
    /// Connections at once; others wait to be accepted.
    var connections = 64
    /// Connections that wait to be accepted.
    var backlog = 256
    /// For a connection on which nothing is asked, and for a request's head.
    var idle: TimeAmount
    /// Bytes of a request's head.
    var head = 16 << 10
}

/// Answers HTTP/1.1 at an address. Not Hummingbird's Application: that wakes up every second to keep a date for a header that
/// nobody reads here.
///
/// - Parameters:
///   - guards: made for each connection.
///   - isOpen: called once it listens.
func httpService(
    at address: BindAddress, _ bounds: ServerBounds,
    guards: @escaping @Sendable () -> [any RemovableChannelHandler] = { [] },
    isOpen: @escaping @Sendable (any Channel) -> Void,
    answer: @escaping @Sendable (Request, any Channel) async -> (reply: Reply, deadline: ConnectionDeadline)
) throws -> any Service {
    let quiet = Logger(label: "http") { _ in SwiftLogNoOpLogHandler() }
    let decoder = HTTP1Channel.Configuration.DecoderConfiguration(
        maxHeaderFieldSize: bounds.head, maxHeaderListSize: bounds.head, maxHeaderFieldCount: 100)
    let channel = HTTP1Channel.Configuration(
        additionalChannelHandlers: guards(), idleTimeout: bounds.idle, httpDecoderConfiguration: decoder)
    return try HTTPServerBuilder.http1(configuration: channel).buildServer(
        configuration: ServerConfiguration(
            address: address, backlog: bounds.backlog,
            availableConnectionsDelegate: .maximum(bounds.connections, logger: quiet)),
        eventLoopGroup: MultiThreadedEventLoopGroup.singleton, logger: quiet
    ) { request, writer, channel in
        let (reply, deadline) = await answer(request, channel)
        // A stream looks after each of its pieces.
        let alarm = reply.response.body.contentLength == nil ? nil : deadline.begin(deadline.writing)
        defer { alarm?.cancel() }
        try await writer.write(response: reply.response.head, body: reply.response.body)
        if reply.closes { try await channel.close() }
    } onServerRunning: {
        isOpen($0)
    }
}
