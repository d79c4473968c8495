internal import HTTPTypes
internal import Hummingbird
internal import InletAgent
internal import InletCore
internal import InletLinux
internal import SystemPackage

/// The agent itself: its state, its limits, its configuration, its log.
extension Endpoints {
    package static let status = TypedEndpoint.get("status", "Transfers, the queue and problems.") {
        call in try await call.control.status()
    }

    static let home = TypedEndpoint.get("home", "The answer for a widget on a home page; every key is always there.") {
        call in try await call.context.homeReport()
    }

    static let route = TypedEndpoint.post(
        "route", "Where a file would go, and why; the file is not read.", RouteRequest.self, need: .read
    ) { call, question in try await call.control.route(question) }

    static let healthz = Endpoint(
        method: .get, path: "/healthz", summary: "Answers as long as the process runs.", need: .nothing,
        answer: .text, answerType: "text/plain"
    ) { _, _ in .text("ok\n") }

    static let readyz = Endpoint(
        method: .get, path: "/readyz", summary: "Whether the agent is ready, and if not, why.",
        need: .nothing, answer: .named(ReadyReport.self), others: [503]
    ) { call, _ in
        let reasons = ReadyReport.reasons(call.control.agent.live)
        let mayKnow = call.principal.access >= .read
        let report = ReadyReport(ready: reasons.isEmpty, reasons: reasons.isEmpty || !mayKnow ? nil : reasons)
        return try .json(report, status: reasons.isEmpty ? 200 : 503)
    }

    // MARK: - What is sent, and how fast

    package static func setPaused(_ isPaused: Bool) -> TypedEndpoint<NoBody, CommandReport> {
        .post(
            isPaused ? "pause" : "resume",
            isPaused ? "Pauses a destination until resume." : "Resumes a destination.", query: [.destination]
        ) { call in try await call.control.setPaused(isPaused, destination: call.text(.destination)) }
    }

    package static let resumeRoot = TypedEndpoint.post(
        "roots/resume", "Accepts a paused watched folder in its present state.", RootOrder.self
    ) { call, order in try await call.control.resume(root: order.root()) }

    package static let limits = TypedEndpoint.get("limits", "The bandwidth limits, the common one first.") {
        call in call.control.agent.live?.limits.map { LimitReport($0) } ?? []
    }

    package static let setLimit = TypedEndpoint.post(
        "limits", "Sets a bandwidth limit until auto or the next start.", LimitRequest.self
    ) { call, request in call.control.limit(request) }

    static let rates = TypedEndpoint.get("rates", "Bytes per second of the last hour, in steps of ten seconds.") {
        call in try feed(call).rates(call.control.agent.live?.inFlight ?? [])
    }

    /// For Prometheus.
    static let metrics = Endpoint(
        method: .get, path: "/metrics", summary: "Figures in Prometheus' text format.", need: .read,
        answer: .text, answerType: MetricsPage.contentType
    ) { call, _ in .text(try await MetricsPage(call.control.agent).text(), type: MetricsPage.contentType) }

    // MARK: - The configuration

    package static let config = TypedEndpoint.get("config", "The running configuration; secrets are ***.") {
        call throws -> ConfigReport in
        guard let config = call.control.agent.live?.config else {
            throw APIFault.notFound("this agent has no configuration file")
        }
        return ConfigReport(config)
    }

    /// Not for read-only logins: an address to subscribe to is a credential.
    package static let receivers = TypedEndpoint.get("receivers", "The receivers of notifications.", need: .full) {
        call in (call.control.agent.live?.receivers ?? []).map { ReceiverReport($0) }
    }

    /// A reload probes destinations, and waits for folders that end.
    package static let reload = TypedEndpoint.post(
        "reload", "Reloads the configuration file; an invalid one changes nothing.", within: .seconds(120)
    ) { call in ReloadReport(await call.control.agent.reload()) }

    static let document = Endpoint(
        method: .get, path: Endpoint.base + "openapi.json", summary: "This document.", need: .read,
        answer: .object([], more: .anything)
    ) { call, _ in try .json(openAPI(version: call.context.version)) }

    // MARK: - The log

    package static let logLevel = TypedEndpoint.get(
        "log/level", "The least important level that is logged."
    ) { call throws -> LogLevelReport in
        guard let report = call.control.logLevel else { throw APIFault.conflict("no agent is running") }
        return report
    }

    package static let setLogLevel = TypedEndpoint.post(
        "log/level", "Sets the log level until the next start or reload.", LogLevelRequest.self
    ) { call, request in call.control.setLogLevel(request) }

    static let log = TypedEndpoint.get("log", "The newest events, newest last.", query: [.level, .job, before, .limit])
    {
        call in
        try feed(call).newest(
            call.limit(200), level: level(call), job: call.number(.job), before: call.number(before))
    }

    private static let before = Parameter("before", .integer, "Only those of smaller numbers (seq).")
    private static let after = Parameter("after", .integer, "As the header Last-Event-ID: continue after this seq.")

    static let events = Endpoint(
        method: .get, path: Endpoint.base + "events",
        summary: "An event stream: hello, then log (an Event each), status (a Status) and rates, as they happen.",
        need: .read,
        query: [Parameter("level", .level, "The lowest level of log events; default info."), after], answer: .text,
        answerType: "text/event-stream"
    ) { call, exchange in
        let last = exchange.request.headers[.lastEventID]
        // Without it the stream would begin now, and silently miss earlier events.
        if last != nil, last.flatMap({ Int64($0) }) == nil {
            throw APIFault.badRequest("'Last-Event-ID' must be a number (seq)")
        }
        let stream = EventStream(
            call: call, exchange: exchange, feed: try feed(call), level: level(call),
            after: last.flatMap { Int64($0) } ?? call.number(after))
        guard let permit = call.context.streams.permit() else {
            throw APIFault(
                503, "streams", "\(Semaphore.streams) streams are open, which is the limit; close another page",
                wait: .seconds(30))
        }
        return stream.response(permit)
    }

    private static func feed(_ call: APICall) throws -> ActivityFeed {
        guard let feed = call.context.feed else { throw APIFault.conflict("no agent is running") }
        return feed
    }

    private static func level(_ call: APICall) -> LogSettings.Level {
        call.text(.level).flatMap(LogSettings.Level.init) ?? .info
    }

    // MARK: - Who asks

    static let session = TypedEndpoint.get(
        "session", "Your rights, and the ways to log in.", need: .nothing
    ) { call in report(call.principal.access, call) }

    static let login = Endpoint(
        method: .post, path: Endpoint.base + "login", summary: "Logs in and sets the session's cookie.", need: .nothing,
        body: Endpoint.Body(schema: .named(LoginRequest.self)), answer: .named(SessionReport.self)
    ) { call, exchange in
        guard let logIn = call.principal.logIn else { return try .json(report(call.principal.access, call)) }
        let (access, cookie) = try logIn(Secret(JSON.decode(exchange.body, as: LoginRequest.self).secret))
        var response = try Response.json(report(access, call))
        response.headers[.setCookie] = cookie
        return response
    }

    static let logout = Endpoint(
        method: .post, path: Endpoint.base + "logout", summary: "Logs out.", need: .nothing,
        answer: .named(SessionReport.self)
    ) { call, _ in
        let cookie = call.principal.logOut?()
        var response = try Response.json(report(call.principal.login == .none ? call.principal.access : .none, call))
        if let cookie { response.headers[.setCookie] = cookie }
        return response
    }

    private static func report(_ access: Access, _ call: APICall) -> SessionReport {
        SessionReport(access: access, login: call.principal.login, version: call.context.version)
    }
}

extension HTTPField.Name {
    /// The browser's description of the requesting page (W3C Fetch Metadata).
    static var fetchSite: Self { named("Sec-Fetch-Site") }
    /// The event after which a reader of an event stream wants to continue (WHATWG HTML, server-sent events).
    static var lastEventID: Self { named("Last-Event-ID") }
    /// A header that a page of another site cannot send without asking first.
    static var mark: Self { named("X-Inlet") }
    /// Makes a proxy pass each piece on as it arrives (nginx).
    static var buffering: Self { named("X-Accel-Buffering") }
    static var forwardedProto: Self { named("X-Forwarded-Proto") }
    static var forwardedFor: Self { named("X-Forwarded-For") }

    /// For names known to be valid.
    static func named(_ text: String) -> Self { Self(text) ?? .userAgent }
}

/// The answer to `GET session`.
struct SessionReport: Codable, Sendable, NamedSchema {
    var access: Access
    var login: LoginKind
    var version: String
}

/// The body of `POST login`. Plain text only in the request.
struct LoginRequest: Codable, Sendable, NamedSchema {
    var secret: String

    static var schemaName: String { "Login" }
    static let notes: [String: SchemaDescription] = ["secret": "The token or the password."]
}

/// The question of `POST route`: where a file would go, whether it exists or not.
struct RouteRequest: Codable, Sendable, NamedSchema {
    var path: String
    var root: String?
    var size: Int64?

    static let notes: [String: SchemaDescription] = [
        "path": "The full path, or one below root.",
        "root": "A watched folder; default: the first.",
        "size": .schema(.from(0, to: nil), "A size to assume instead of the file's own."),
    ]
}

/// Where the file would go, and why.
struct RouteResponse: Codable, Sendable, NamedSchema {
    struct Delivery: Codable, Sendable, NamedSchema {
        var destination: String
        var key: String
        /// The destination that must have the file first.
        var after: String?

        static var schemaName: String { "RouteDelivery" }
    }

    var matched: Bool
    var route: String?
    var root: String?
    /// The facts examined, a sentence for each step.
    var why: [String]
    var category: String?
    var media_type: String?
    var deliveries: [Delivery]
    /// The assumptions made because nothing of the file was read.
    var assumed: [String]

    init(_ trial: RouteDryRun) {
        root = trial.place.root?.display
        why = trial.why
        assumed = trial.assumed
        matched = trial.planned != nil
        let plan = trial.planned?.plan
        (route, category, media_type) = (plan?.route ?? trial.rejection?.route, plan?.category, plan?.mediaType)
        deliveries = (trial.planned?.steps.steps ?? []).map {
            Delivery(
                destination: $0.destination, key: DisplayText.escape(plan?.key(at: $0.destination) ?? ""),
                after: $0.after)
        }
    }
}

extension LocalControl {
    /// The watched folder that is meant, by its name or its displayed form: a name that is not text is displayed
    /// escaped.
    func watched(_ root: FilePath) -> FilePath {
        let known = agent.live?.watched ?? []
        if known.contains(root) { return root }
        return known.first { $0.display == root.string } ?? root
    }

    /// A folder that is watched now, also one of a pattern, by its name in the status.
    func rootNow(_ text: String) -> FilePath {
        agent.live?.roots.first { $0.root.display == text }?.root ?? FilePath(text)
    }

    /// PATH_MAX and NAME_MAX of Linux.
    private static let (longestPath, longestName) = (4096, 255)

    /// - Throws: `APIFault` where the question cannot be answered.
    func route(_ question: RouteRequest) async throws -> RouteResponse {
        guard let live = agent.live else { throw APIFault.conflict("no agent is running; ask with 'inlet route'") }
        guard !question.path.isEmpty, !question.path.utf8.contains(0) else {
            throw APIFault.badRequest("'path' does not name a file")
        }
        // No file can have such a name, and each rule would examine all of it.
        guard question.path.utf8.count <= Self.longestPath,
            question.path.utf8.split(separator: 0x2F).allSatisfy({ $0.count <= Self.longestName })
        else { throw APIFault.badRequest("'path' is longer than any path") }
        if let size = question.size, size < 0 { throw APIFault.badRequest("'size' must not be negative") }
        var path = FilePath(question.path)
        if path.isRelative {
            guard let root = question.root.map({ watched(FilePath($0)) }) ?? live.watched.first, root.isAbsolute
            else {
                throw APIFault.badRequest("'path' must be the full path of a file, or one below 'root'")
            }
            path = root.pushing(path)
        }
        return RouteResponse(await live.route(path.lexicallyNormalized(), question.size))
    }
}
