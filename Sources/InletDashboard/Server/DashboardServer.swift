internal import HTTPTypes
internal import Hummingbird
internal import HummingbirdCore
package import InletAgent
package import InletCore
internal import InletLinux
internal import Logging
internal import NIOCore
internal import NIOPosix
internal import ServiceLifecycle

/// Serves the page and the API on a port. A port that cannot be had stops nothing: it is tried again until it can.
package struct DashboardServer: Service {
    /// How long and how much: for a few people and programs, on small machines.
    package struct Bounds: Sendable {
        /// Connections at once; others wait to be accepted.
        package var connections = 64
        /// Of these from one address; more of them are closed.
        package var connectionsOfOne = 24
        /// Answers of thousands of lines at once.
        package var largeAnswers = 2
        /// Bytes of a request's head.
        package var head = 16 << 10
        /// For a connection on which nothing is asked, and for a request's head.
        package var idle = Duration.seconds(30)
        /// For a request's body.
        package var reading = Duration.seconds(20)
        /// For an answer, or for one piece of a stream.
        package var writing = Duration.seconds(60)

        package init() {}
    }

    private static let firstWait = Duration.seconds(1)
    private static let longestWait = Duration.seconds(60)

    private let listen: ListenAddress
    private let handler: DashboardHandler
    private let bounds: Bounds
    private let status: DashboardStatus
    private let log: EventLog

    package init(
        _ settings: DashboardSettings, control: LocalControl, pulse: Pulse, status: DashboardStatus, log: EventLog,
        bounds: Bounds = Bounds()
    ) {
        listen = settings.listen
        handler = DashboardHandler(
            responder: APIResponder(
                context: APIContext(control: control, pulse: pulse, largeAnswers: Semaphore(bounds.largeAnswers)),
                table: Endpoints.all.filter { $0.need != .socket }),
            authenticator: Authenticator(settings, log: log), assets: WebAssets(WebFiles.all), bounds: bounds)
        self.bounds = bounds
        self.status = status
        self.log = log
    }

    /// Where it is reached from this machine's networks.
    package static func url(_ listen: ListenAddress, port: Int? = nil) -> String {
        let host = listen.address?.isUnspecified == true ? ProcessSetup.hostName : listen.host
        return "http://\(ListenAddress(host: host, port: port ?? listen.port).text)/"
    }

    package func run() async throws {
        var wait = Self.firstWait
        while !Task.isCancelled, !Task.isShuttingDownGracefully {
            do {
                return try await server().run()
            } catch {
                if Task.isCancelled { return }
                let reason = ListenFault(error, listen).words
                if status.fails(reason) { log.emit(.dashboardFailed(address: listen.text, reason: reason)) }
            }
            let pause = wait
            // It fails only when the service is to end, which the loop asks next.
            try? await cancelWhenGracefulShutdown { try await Task.sleep(for: pause) }
            wait = min(wait * 2, Self.longestWait)
        }
    }

    private func server() throws -> any Service {
        let quiet = Logger(label: "dashboard") { _ in SwiftLogNoOpLogHandler() }
        let (handler, status, log, listen) = (handler, status, log, listen)
        let decoder = HTTP1Channel.Configuration.DecoderConfiguration(
            maxHeaderFieldSize: bounds.head, maxHeaderListSize: bounds.head, maxHeaderFieldCount: 100)
        let limiter = ConnectionLimiter(most: bounds.connectionsOfOne)
        let isOpen = handler.authenticator.filter.isOpen
        let channel = HTTP1Channel.Configuration(
            additionalChannelHandlers: [ConnectionGuard(limiter, refusesOldProtocol: isOpen)],
            idleTimeout: .init(bounds.idle),
            httpDecoderConfiguration: decoder)
        // Not Hummingbird's Application: that wakes up every second to keep a date for a header that nobody reads here.
        return try HTTPServerBuilder.http1(configuration: channel).buildServer(
            configuration: ServerConfiguration(
                address: .hostname(listen.bindHost, port: listen.port), backlog: 128,
                availableConnectionsDelegate: .maximum(bounds.connections, logger: quiet)),
            eventLoopGroup: MultiThreadedEventLoopGroup.singleton, logger: quiet
        ) { request, writer, channel in
            let reply = await handler.respond(to: request, on: channel)
            // A stream looks after each of its pieces.
            let isStream = reply.response.body.contentLength == nil
            let deadline = handler.deadline(channel)
            let alarm = isStream ? nil : deadline.begin(deadline.writing)
            defer { alarm?.cancel() }
            try await writer.write(response: reply.response.head, body: reply.response.body)
            if reply.closes { try await channel.close() }
        } onServerRunning: { channel in
            let url = Self.url(listen, port: channel.localAddress?.port)
            status.listens(at: url)
            log.emit(.dashboardReady(url: url))
        }
    }
}
