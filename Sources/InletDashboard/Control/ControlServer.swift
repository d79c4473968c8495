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
    private let control: LocalControl

    package init(path: FilePath, control: LocalControl) {
        self.path = path
        self.control = control
    }

    package func run() async throws {
        let path = path
        let quiet = Logger(label: "control") { _ in SwiftLogNoOpLogHandler() }
        let responder = ControlRoutes(control: control).router.buildResponder()
        // Not Hummingbird's Application: that wakes up every second to keep a date for a header that nobody reads here.
        let server = try HTTPServerBuilder.http1().buildServer(
            configuration: ServerConfiguration(address: .unixDomainSocket(path: path.string)),
            eventLoopGroup: MultiThreadedEventLoopGroup.singleton, logger: quiet
        ) { request, writer, channel in
            let context = ControlContext(source: ApplicationRequestContextSource(channel: channel, logger: quiet))
            let response: Response
            do {
                response = try await responder.respond(to: request, context: context)
            } catch {
                response = Response(status: .internalServerError)
            }
            try await writer.write(response: response.head, body: response.body)
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

struct ControlContext: RequestContext {
    var coreContext: CoreRequestContextStorage
    let channel: any Channel

    init(source: ApplicationRequestContextSource) {
        coreContext = CoreRequestContextStorage(source: source)
        channel = source.channel
    }
}

/// The API's paths.
struct ControlRoutes: Sendable {
    let control: LocalControl

    var router: Router<ControlContext> {
        let router = Router(context: ControlContext.self)
        let api = router.group("api/v1")
        api.get("status") { _, _ in try await JSONAnswer(control.status()) }
        api.get("receipts") { request, _ in
            try await JSONAnswer(control.receipts(limit: Self.limit(request)))
        }
        // Asked for by POST, because there can be many numbers; it changes nothing.
        api.post("proofs") { request, _ in
            let wish = try await JSONDecoder().decode(
                ProofWish.self, from: Data(request.body.collect(upTo: 1 << 20).readableBytesView))
            return try await JSONAnswer(control.proofs(wish))
        }
        addJobs(api)
        addBatches(api)
        addSelections(api)
        addUndo(api)
        addTokens(api)
        addLimits(api)
        addLog(api)
        addCommands(api)
        return router
    }

    private func addJobs(_ api: RouterGroup<ControlContext>) {
        api.get("jobs") { request, _ in
            let query = request.uri.queryParameters
            let states = try (query["state"].map(String.init)?.split(separator: ",") ?? []).map { name in
                guard let state = FileState(rawValue: String(name)) else { throw HTTPError(.badRequest) }
                return state
            }
            return try await JSONAnswer(
                control.jobs(
                    states: states, destination: query["destination"].map(String.init), limit: Self.limit(request)))
        }
        api.get("jobs/:id") { _, context in
            guard let job = try await control.job(context.parameters.require("id", as: Int64.self)) else {
                throw HTTPError(.notFound)
            }
            return JSONAnswer(job)
        }
        api.post("jobs/:id/:action") { _, context in
            let id = try context.parameters.require("id", as: Int64.self)
            guard let action = JobAction(rawValue: try context.parameters.require("action")) else {
                throw HTTPError(.notFound)
            }
            return try await JSONAnswer(control.act(action, on: id))
        }
    }

    private func addBatches(_ api: RouterGroup<ControlContext>) {
        api.get("batches") { request, _ in
            try await JSONAnswer(control.batches(limit: Self.limit(request)))
        }
        api.get("batches/:id/offload") { _, context in
            let isLast = try context.parameters.require("id") == "last"
            let id = isLast ? nil : try context.parameters.require("id", as: Int64.self)
            guard let report = try await control.offload(id) else { throw HTTPError(.notFound) }
            return JSONAnswer(report)
        }
    }

    private func addSelections(_ api: RouterGroup<ControlContext>) {
        api.post("queue/list") { request, _ in try await JSONAnswer(control.jobs(Self.selection(request))) }
        for action in JobAction.allCases {
            api.post("queue/\(RouterPath(action.rawValue))") { request, _ in
                let isDryRun = request.uri.queryParameters["dry_run"] == "1"
                return try await JSONAnswer(control.act(action, on: Self.selection(request), dryRun: isDryRun))
            }
        }
    }

    private static func selection(_ request: Request) async throws -> JobSelection {
        let body = Data(try await request.body.collect(upTo: 1 << 20).readableBytesView)
        do {
            return try JSONDecoder().decode(JobSelection.self, from: body)
        } catch {
            throw HTTPError(.badRequest)
        }
    }

    private func addUndo(_ api: RouterGroup<ControlContext>) {
        api.post("jobs/:id/undo/:type") { _, context in
            let id = try context.parameters.require("id", as: Int64.self)
            return try await JSONAnswer(control.undo(id, type: context.parameters.require("type")))
        }
    }

    private func addTokens(_ api: RouterGroup<ControlContext>) {
        api.post("tokens/:destination") { request, context in
            let control = control.acting(for: await Self.asker(context))
            let body = Data(try await request.body.collect(upTo: 1 << 16).readableBytesView)
            let wish = body.isEmpty ? nil : try JSONDecoder().decode(TokenWish.self, from: body)
            let destination = try context.parameters.require("destination")
            return try await JSONAnswer(
                control.accessToken(destination, after: wish.map { Secret($0.refused) }))
        }
    }

    /// Who asks, for the log.
    static func asker(_ context: ControlContext) async -> String {
        await PeerCredentials.of(context.channel).map { "uid \($0.user)" } ?? "a person"
    }

    private func addCommands(_ api: RouterGroup<ControlContext>) {
        api.post("queue/clear") { _, _ in try await JSONAnswer(control.clear()) }
        api.post("queue/backup") { request, context in
            let order = try await JSONDecoder().decode(
                BackupOrder.self, from: Data(request.body.collect(upTo: 1 << 16).readableBytesView))
            return try await JSONAnswer(control.backUp(to: order.path.map { FilePath(bytes: $0) }))
        }
        addSending(api)
        api.post("contents") { request, _ in
            let wish = try await JSONDecoder().decode(
                ContentQuestion.self, from: Data(request.body.collect(upTo: 1 << 20).readableBytesView))
            return try await JSONAnswer(control.originals(wish))
        }
        api.post("roots/resume") { request, context in
            let order = try await JSONDecoder().decode(
                RootOrder.self, from: Data(request.body.collect(upTo: 1 << 16).readableBytesView))
            let control = control.acting(for: await Self.asker(context))
            return try await JSONAnswer(control.resume(root: FilePath(bytes: order.path)))
        }
        for (name, paused) in [("pause", true), ("resume", false)] {
            api.post("\(RouterPath(name))") { request, context in
                let control = control.acting(for: await Self.asker(context))
                let destination = request.uri.queryParameters["destination"].map(String.init)
                return try await JSONAnswer(control.setPaused(paused, destination: destination))
            }
        }
    }

    private static func limit(_ request: Request) -> Int {
        min(max(request.uri.queryParameters["limit"].flatMap { Int($0) } ?? 100, 1), 10_000)
    }
}

/// What `resume` posts; the path as bytes, because names need not be text.
struct RootOrder: Codable, Sendable {
    var path: [UInt8]
}

/// What `queue backup` posts; no path for one in the state directory.
struct BackupOrder: Codable, Sendable {
    var path: [UInt8]?
}

/// A JSON answer.
struct JSONAnswer<Value: Encodable & Sendable>: ResponseGenerator {
    private let value: Value

    init(_ value: Value) { self.value = value }

    func response(from request: Request, context: some RequestContext) throws -> Response {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return Response(
            status: .ok, headers: [.contentType: "application/json; charset=utf-8"],
            body: ResponseBody(byteBuffer: ByteBuffer(bytes: try encoder.encode(value))))
    }
}
