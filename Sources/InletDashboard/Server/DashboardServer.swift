internal import HTTPTypes
internal import Hummingbird
internal import HummingbirdCore
package import InletAgent
package import InletCore
internal import InletLinux
internal import InletWeb
internal import NIOCore
internal import ServiceLifecycle
internal import Synchronization
package import SystemPackage

/// Serves the page and the API on a port: the page's files to everybody, the API to those with rights. An unavailable
/// port stops nothing: it is tried again until it works.
package struct DashboardServer: Service {
    private static let firstWait = Duration.seconds(1)
    private static let longestWait = Duration.seconds(60)

    private let listen: ListenAddress
    private let responder: APIResponder
    private let authenticator: Authenticator
    /// The page's files, embedded in the program (`Sources/InletWeb/page`), by path: `/` for the page itself,
    /// `/cards` for the kiosk, `/assets/NAME` for all others.
    private let files = Self.pageFiles()
    private let manual: ManualFiles
    private let bounds: ServerBounds
    private let status: DashboardStatus
    private let log: EventLog

    /// - Parameter logins: the file that keeps login sessions; nil forgets them with the process.
    package init(
        _ settings: DashboardSettings, control: LocalControl, feed: ActivityFeed, status: DashboardStatus,
        log: EventLog, logins: FilePath? = nil, bounds: ServerBounds = ServerBounds(),
        manual: ManualFiles = ManualFiles()
    ) {
        listen = settings.listen
        responder = APIResponder(
            context: APIContext(control: control, feed: feed, largeAnswers: Semaphore(bounds.largeAnswers)),
            table: Endpoints.all.filter { $0.need != .socket })
        authenticator = Authenticator(settings, log: log, links: status.links, logins: logins)
        (self.bounds, self.manual) = (bounds, manual)
        self.status = status
        self.log = log
    }

    /// Its addresses on this machine's networks.
    package static func url(_ listen: ListenAddress, port: Int? = nil) -> String {
        let host = listen.address?.isUnspecified == true ? ProcessSetup.hostName : listen.host
        return "http://\(ListenAddress(host: host, port: port ?? listen.port).text)/"
    }

    package func run() async throws {
        try await withThrowingDiscardingTaskGroup { group in
            group.addTask { await authenticator.keepSessions() }
            group.addTask { await responder.context.keepHome() }
            try await serve()
            group.cancelAll()
        }
    }

    private func serve() async throws {
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
            // It fails only when the service must end, which the loop checks next.
            try? await cancelWhenGracefulShutdown { try await Task.sleep(for: pause) }
            wait = min(wait * 2, Self.longestWait)
        }
    }

    private func server() throws -> any Service {
        let limiter = ConnectionLimiter(most: bounds.connectionsOfOne)
        let isOpen = authenticator.filter.isOpen
        return try httpService(at: .hostname(listen.bindHost, port: listen.port), bounds) {
            [ConnectionGuard(limiter, refusesOldProtocol: isOpen)]
        } isOpen: { channel in
            let url = Self.url(listen, port: channel.localAddress?.port)
            status.listens(at: url)
            log.emit(.dashboardReady(url: url))
        } answer: { request, deadline in
            await respond(to: request, deadline, from: deadline.channel.remoteAddress?.ipAddress)
        }
    }

    // MARK: - Answers

    /// Bytes of a path with its query.
    private static let longestPath = 8 << 10
    /// Health checks reach these under any host name.
    private static let openToAllHosts: Set<String> = ["/healthz", "/readyz"]

    private func respond(
        to request: Request, _ deadline: ConnectionDeadline, from peer: String?
    ) async -> Reply {
        var reply = await answer(request, deadline, from: peer)
        for field in Self.alwaysSent where reply.response.headers[field.name] == nil {
            reply.response.headers[field.name] = field.value
        }
        if reply.response.headers[.cacheControl] == nil { reply.response.headers[.cacheControl] = "no-store" }
        if reply.closes { reply.response.headers[.connection] = "close" }
        return reply
    }

    private func answer(_ request: Request, _ deadline: ConnectionDeadline, from peer: String?) async -> Reply {
        if (request.head.path ?? "").utf8.count > Self.longestPath {
            let fault = APIFault.tooLarge("the path is longer than \(Self.longestPath) bytes")
            return await request.refuse(.fault(fault), deadline)
        }
        let hostFault = authenticator.filter.hostFault(request.head)
        if let hostFault, !Self.openToAllHosts.contains(request.uri.path) {
            return await request.refuse(.fault(hostFault), deadline)
        }
        if let response = files[request.uri.path]?.response(to: request) {
            return await request.refuse(response, deadline)
        }
        if let response = await manual.response(to: request) { return await request.refuse(response, deadline) }
        let principal: Principal
        // A liveness check needs no secret; under another host's name no secret is examined.
        if hostFault != nil || request.uri.path == "/healthz" {
            principal = Principal(access: .none, name: "dashboard")
        } else {
            do throws(APIFault) {
                let filter = authenticator.filter
                if let fault = filter.proxyFault(request.head) ?? filter.crossFault(request.head) { throw fault }
                principal = try authenticator.principal(request, from: peer)
            } catch {
                return await request.refuse(.fault(error), deadline)
            }
        }
        let access = principal.access
        return await responder.respond(to: request, from: principal, deadline) { endpoint in
            if let fault = RequestFilter.accessFault(access, endpoint.need) { throw fault }
        }
    }

    private static let pages = ["index.html": "/", "kiosk.html": "/cards"]

    private static func pageFiles() -> [String: PageFile] {
        var files: [String: PageFile] = [:]
        for index in 0... {
            guard let file = inlet_web_file(index)?.pointee else { break }
            let (name, text) = (String(cString: file.name), String(cString: file.text))
            files[pages[name] ?? "/assets/\(name)"] = PageFile(
                type: String(cString: file.type), Array(text.utf8))
        }
        return files
    }

    /// The page loads nothing from other hosts, and appears in no other page's frame.
    private static let alwaysSent: [HTTPField] = [
        HTTPField(
            name: .contentSecurityPolicy,
            value: """
                default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
                form-action 'self'; frame-ancestors 'none'; base-uri 'none'
                """),
        HTTPField(name: .xContentTypeOptions, value: "nosniff"),
        HTTPField(name: .named("Referrer-Policy"), value: "no-referrer"),
        HTTPField(name: .named("X-Frame-Options"), value: "DENY"),
        HTTPField(name: .named("Cross-Origin-Resource-Policy"), value: "same-origin"),
        HTTPField(name: .named("Cross-Origin-Opener-Policy"), value: "same-origin"),
        HTTPField(
            name: .named("Permissions-Policy"),
            value: "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()"),
    ]
}

/// Where the page and the API listen, or why they cannot.
package struct DashboardReport: Codable, Sendable, Equatable, NamedSchema {
    package enum State: String, Codable, Sendable, CaseIterable, SchemaSample {
        case starting
        case listening
        /// Tried again until it works.
        case failing
    }

    package var url: String
    package var state: State
    package var error: String?
}

/// The same, as it changes.
package final class DashboardStatus: Sendable {
    private let report: Mutex<DashboardReport>
    let links = LoginLinks()
    private let needsLogin: Bool

    /// - Parameter needsLogin: whether not everybody who reaches the port has access.
    package init(url: String, needsLogin: Bool = true) {
        report = Mutex(DashboardReport(url: url, state: .starting))
        self.needsLogin = needsLogin
    }

    package var current: DashboardReport { report.withLock { $0 } }

    /// A link to the page that logs a browser in, once; the page's own address where nobody has to log in.
    func loginLink() -> String { current.url + (needsLogin ? "#/enter/\(links.make(at: .now))" : "") }

    func listens(at url: String) { report.withLock { $0 = DashboardReport(url: url, state: .listening) } }

    /// - Returns: whether it changed.
    func fails(_ reason: String) -> Bool {
        report.withLock { report in
            defer { (report.state, report.error) = (.failing, reason) }
            return report.error != reason
        }
    }
}
