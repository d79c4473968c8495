import Foundation
import InletCore
import InletJournal
import InletJournalSupport
import InletLinux
import InletTestSupport
import ServiceLifecycle
import SystemPackage

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
    let standing: DashboardStatus
    let server: DashboardServer

    static let route = Route(name: "all", to: ["disk"])

    init(
        token: String? = nil, password: String? = nil, reader: String? = nil, port: Int = 0,
        proxy: Bool = false, roots: [RootStatus] = [], resuming: [Int64] = [],
        bounds: DashboardServer.Bounds = DashboardServer.Bounds()
    ) throws {
        directory = try TemporaryDirectory()
        journal = try Journal(path: directory.path.appending("journal.sqlite"), now: .now)
        log = try EventLog(nil)
        feed = ActivityFeed(log)
        let settings = DashboardSettings(
            listen: ListenAddress(host: "127.0.0.1", port: port), token: token.map { Secret($0) },
            password: password.map { Secret($0) }, readOnlyToken: reader.map { Secret($0) }, hosts: ["inlet.example"],
            proxy: proxy)
        standing = DashboardStatus(url: DashboardServer.url(settings.listen))
        control = LocalControl(
            AgentControl(try Self.running(journal, directory.path, roots, resuming: resuming, log)), dashboard: standing
        )
        server = DashboardServer(
            settings, control: control, feed: feed, status: standing, log: log, bounds: bounds)
    }

    private static func running(
        _ journal: Journal, _ folder: FilePath, _ roots: [RootStatus], resuming: [Int64], _ log: EventLog
    ) throws -> AgentControl.Running {
        var settings = Settings(stateDirectory: folder)
        (settings.watch, settings.routes) = ([WatchSettings(path: folder)], [route])
        let shown = ShownConfig(file: "/etc/inlet/inlet.yaml", text: "workers: 4\n", loadedAt: .now)
        let board = DestinationRegistry([], paused: [], uptimes: [:], workers: 1, log: log)
        let shared = Shared(LiveSettings(settings, shown: shown), journal, board, log)
        for status in roots {
            let mailbox = try RootMailbox(status.root)
            mailbox.publish(status)
            shared.roots.enter(mailbox)
        }
        return AgentControl.Running(
            shared: shared, label: Agent.Label(version: "1.2.3", configuration: "test"),
            tally: MetricsTally(destinations: ["disk"], routes: ["all"]),
            resumes: ResumeReport(resuming, log: log), bandwidth: BandwidthControl(shared),
            reload: nil)
    }

    /// Runs `body` while the port is served.
    func serving(_ body: (_ port: Int) async throws -> Void) async throws {
        let server = server
        defer { journal.close() }
        try await whileServing({ try await server.run() }) {
            try await eventually("it listens") { standing.current.state == .listening }
            try await body(port)
        }
    }

    /// Where it listens.
    var port: Int { URL(string: standing.current.url)?.port ?? 0 }

    /// A file that waits for `disk`.
    @discardableResult
    func admit(_ name: String, size: Int64 = 9) async throws -> Int64 {
        let plan = Plan(
            route: "all", category: "videos", key: name, mediaType: "video/mp4", destinations: ["disk"])
        let identity = FileIdentity(size: size, modified: 1, changed: 1, inode: 1, device: 1)
        let admission = FileAdmission(
            Arrival(root: "/in", path: FilePath(name), identity: identity), plan: plan, lanes: [:], uptimes: [:])
        guard case .admitted(let id) = try await journal.admit(admission, at: .now) else { return 0 }
        return id
    }

    /// What our page sends with whatever changes something.
    static let marks = ["Content-Type": "application/json", "X-Inlet": "1"]

    static func bearer(_ token: String) -> [String: String] {
        ["Authorization": "Bearer \(token)", "Content-Type": "application/json"]
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
