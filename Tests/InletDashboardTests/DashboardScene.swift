import Foundation
import InletCore
import InletJournal
import InletJournalSupport
import InletLinux
import InletTestSupport
import ServiceLifecycle
import SystemPackage
import Testing

@testable import InletAgent
@testable import InletDashboard
@testable import InletPipelines

/// An agent as far as the dashboard sees one, with a journal of its own, served on a port that the system chooses.
struct DashboardScene: Sendable {
    let directory: TemporaryDirectory
    let journal: Journal
    let log: EventLog
    let feed: ActivityFeed
    let control: LocalControl
    let status: DashboardStatus
    let server: DashboardServer

    static let route = Route(name: "all", to: ["disk"])

    init(
        token: String? = nil, password: String? = nil, reader: String? = nil, kiosk: String? = nil, port: Int = 0,
        proxy: Bool = false, roots: [RootStatus] = [], resuming: [Int64] = [],
        bounds: ServerBounds = ServerBounds(), manual: [FilePath] = []
    ) throws {
        directory = try TemporaryDirectory()
        journal = try Journal(path: directory.path.appending("journal.sqlite"), now: .now)
        log = try EventLog(nil)
        feed = ActivityFeed(log)
        let settings = DashboardSettings(
            listen: ListenAddress(host: "127.0.0.1", port: port), token: token.map { Secret($0) },
            password: password.map { Secret($0) }, readOnlyToken: reader.map { Secret($0) },
            kioskToken: kiosk.map { Secret($0) }, hosts: ["inlet.example"],
            proxy: proxy)
        status = DashboardStatus(url: DashboardServer.url(settings.listen))
        control = LocalControl(
            AgentControl(try Self.running(journal, directory.path, roots, resuming: resuming, log)), dashboard: status
        )
        server = DashboardServer(
            settings, control: control, feed: feed, status: status, log: log, bounds: bounds,
            manual: ManualFiles(manual))
    }

    private static func running(
        _ journal: Journal, _ folder: FilePath, _ roots: [RootStatus], resuming: [Int64], _ log: EventLog
    ) throws -> AgentControl.Running {
        var settings = Settings(stateDirectory: folder)
        (settings.watch, settings.routes) = ([WatchSettings(path: folder)], [route])
        let topic = MessageService.ntfy(topic: Secret("https://ntfy.sh/a-topic"), token: nil)
        settings.notify = [
            NotifySettings(name: "phone", receiver: .service(topic), events: [.failed, .volumeDone]),
            NotifySettings(name: "hook", receiver: .webhook(Secret("https://hooks.example/canary"))),
        ]
        let shown = RunningConfig(file: "/etc/inlet/inlet.yaml", text: "workers: 4\n", loadedAt: .now)
        let board = DestinationRegistry([], paused: [], uptimes: [:], workers: 1, log: log)
        let shared = Shared(LiveSettings(settings, shown: shown), journal, board, log)
        for status in roots {
            let mailbox = try RootMailbox(status.root)
            mailbox.publish(status)
            shared.roots.enter(mailbox)
        }
        return AgentControl.Running(
            shared: shared, label: ("1.2.3", "test", nil),
            tally: MetricsCollector(destinations: ["disk"], routes: ["all"]),
            resumes: ResumeReport(resuming, log: log), bandwidth: BandwidthControl(shared),
            reload: nil)
    }

    /// Runs `body` while the port is served.
    func serving(_ body: (_ port: Int) async throws -> Void) async throws {
        let server = server
        defer { journal.close() }
        try await whileServing({ try await server.run() }) {
            try await eventually("it listens") { status.current.state == .listening }
            try await body(port)
        }
    }

    /// Where it listens.
    var port: Int { URL(string: status.current.url)?.port ?? 0 }

    /// A file that waits for `disk`.
    @discardableResult
    func admit(_ name: String) async throws -> Int64 { try await journal.take(name, for: "disk") }

    /// What our page sends with whatever changes something.
    static let marks = ["Content-Type": "application/json", "X-Inlet": "1"]

    static func bearer(_ token: String) -> [String: String] {
        ["Authorization": "Bearer \(token)", "Content-Type": "application/json"]
    }
}

extension Journal {
    /// Takes a file by the route `all`. - Returns: its job.
    @discardableResult
    func take(
        _ name: String, size: Int64 = 9, in root: FilePath = "/in", for destination: String, at time: WallTime = .now,
        _ change: (inout FileAdmission) -> Void = { _ in }
    ) async throws -> Int64 {
        let plan = Plan(
            route: "all", category: "videos", key: name, mediaType: "video/mp4", destinations: [destination])
        let identity = FileIdentity(size: size, modified: 1, changed: 1, inode: 1, device: 1)
        var admission = FileAdmission(
            FoundFile(root: root, path: FilePath(name), identity: identity), plan: plan, lanes: [destination: .big],
            uptimes: [:])
        change(&admission)
        let outcome = try await admit(admission, at: time)
        guard case .admitted(let id) = outcome else {
            Issue.record("\(outcome)")
            return 0
        }
        return id
    }

    /// Ends the delivery to `destination` whose turn it is.
    func settle(_ settlement: ClaimOutcome, for destination: String) async throws {
        let room = ClaimCapacity(destination: destination, limits: [.big: 1])
        let done = try await withClaim(.big, rooms: [room], clock: { .now }) { _ in (settlement, ()) }
        #expect(done != nil)
    }
}

extension RawClient {
    /// Connections on which an answer has come.
    static func connected(_ count: Int, to port: Int) async throws -> [RawClient] {
        var clients: [RawClient] = []
        for _ in 0..<count {
            let client = try RawClient(port: port)
            #expect(try await client.request("GET", "/healthz").status == 200)
            clients.append(client)
        }
        return clients
    }

    func get(_ path: String, _ headers: [String: String] = [:]) async throws -> RawAnswer {
        try await request("GET", Endpoint.base + path, headers: headers)
    }

    /// An order as our page gives it, or with a program's headers.
    func post(
        _ path: String, _ body: String = "{}", _ headers: [String: String] = DashboardScene.marks
    ) async throws -> RawAnswer {
        try await request("POST", Endpoint.base + path, headers: headers, body: body)
    }
}

extension RawAnswer {
    /// The code of a refusal.
    var error: String? { object["error"] as? String }

    var object: [String: Any] {
        (try? JSONSerialization.jsonObject(with: Data(body.utf8))) as? [String: Any] ?? [:]
    }

    var list: [[String: Any]] {
        (try? JSONSerialization.jsonObject(with: Data(body.utf8))) as? [[String: Any]] ?? []
    }
}

/// A destination that takes nothing.
struct Nowhere: Pipeline {
    func deliver(
        _ source: SourceFile, _ order: DeliveryOrder, _ attempt: Attempt
    ) async throws(DeliveryError) -> DeliveryOutcome { throw DeliveryError(.giveUp, .badRequest, "nothing is taken") }

    func abandon(_ order: DeliveryOrder, checkpoint: [String: [UInt8]]) async throws(DeliveryError) {}
    func probe() async throws(DeliveryError) -> String { "nowhere" }
}
