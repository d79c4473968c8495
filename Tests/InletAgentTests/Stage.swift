import Foundation
import InletConfig
import InletCore
import InletJournal
import InletLinux
import InletTestSupport
import Synchronization
import SystemPackage
import Testing

@testable import InletAgent
@testable import InletPipelines

/// What an agent of a test is made of: one watched folder `drop`, one scripted destination `here`, every file taken.
struct Scene: Sendable {
    let directory: TemporaryDirectory
    var here = ScriptedPipeline()
    var destinations: [Destination]
    var watch: [WatchSettings]
    var route: Route
    /// Asked after `route`.
    var others: [Route] = []
    var workers = 4
    var grace = Duration.seconds(30)
    /// The first probe of an outage comes soon; the next one not before the test has ended.
    var pace = ProbePace(first: .milliseconds(100), interval: .seconds(60))
    /// A limit of 0 ends what it holds at once.
    var holdPatience = Duration.zero
    /// How much is remembered of each root.
    var places = Settler.Places()
    /// Before a big transfer that hangs keeps no place of the common pool.
    var silence = Duration.seconds(30)
    /// Makes a destination anew once its credentials were refused; nil = they are as they were.
    var renew: (@Sendable (String) -> Destination?)?
    /// Those who are told what happens.
    var notificationClients = NotificationClients()
    /// Where another configuration comes from; nil = there is none.
    var source: (any ReloadSource)?
    /// Sets the rates of destinations.
    var valve: BandwidthValve = { _, _ in }
    /// The fleet that it is a member of; nil = it is alone.
    var fleet: FleetSetup?
    /// As the configuration of the destination `here` has it.
    var fleetShare = FleetShareSettings()
    /// Called with every event, on the thread that emits it.
    var onEvent: @Sendable (AgentEvent) -> Void = { _ in }

    /// - Parameter directory: that of an earlier process; nil = a new one.
    init(in directory: TemporaryDirectory? = nil) throws {
        let directory = try directory ?? TemporaryDirectory()
        self.directory = directory
        try directory.makeDirectory("state")
        let root = try directory.makeDirectory("drop")
        watch = [WatchSettings(path: root, settle: .zero, rescan: nil)]
        destinations = [.scripted("here", here)]
        route = Route(name: "all", key: try KeyTemplate("{name}"), to: ["here"])
        route.retry.backoff = .milliseconds(1)
    }

    var root: FilePath { watch[0].path }
    var journalPath: FilePath { directory.path.pushing("state/journal.sqlite") }

    /// Puts a file in the watched folder.
    @discardableResult
    func drop(_ name: FilePath, _ content: String = "content") throws -> FilePath {
        try directory.write(Array(content.utf8), to: FilePath("drop").pushing(name))
    }

    /// Runs an agent, and `body` beside it; stops it in order when `body` returns.
    ///
    /// Some at a time: a user has 128 inotify instances (`max_user_instances`), and a folder that gets none is polled. So few,
    /// because a pass over polled folders that takes seconds, for want of a processor, is followed by minutes of rest.
    func run(_ body: (Stage) async throws -> Void) async throws {
        let seats = AgentSeats.next
        await seats?.take()
        defer { seats?.leave() }
        let stage = try await Stage(self)
        defer { stage.journal.close() }
        try await AgentSeats.$taken.withValue(AgentSeats.taken + 1) {
            try await whileRunning(stage.agent.services) {
                try await eventually("the agent runs") { stage.events.names.contains("agent.ready") }
                try await body(stage)
            }
        }
    }
}

extension Scene {
    /// The folder is polled.
    static func polled() throws -> Scene {
        var scene = try Scene()
        (scene.watch[0].mode, scene.watch[0].poll) = (.poll, .milliseconds(20))
        return scene
    }

    /// Folders below `gigs` are delivered as one.
    static func units(_ completion: Completion) throws -> Scene {
        var scene = try Scene()
        scene.route.match.paths = [try GlobPattern("gigs/**")]
        scene.route.key = try KeyTemplate("{dir}/{name}")
        (scene.route.unit, scene.route.completion) = (.folder, completion)
        return scene
    }

    /// Videos, each of which waits for its marker.
    static func marked() throws -> Scene {
        var scene = try Scene()
        scene.route.match.extensions = ["mp4"]
        scene.route.completion = .marker
        return scene
    }

    /// The configuration that runs, with destinations that `renew` makes anew; nil = they are as they were.
    fileprivate func renewing(_ settings: Settings) throws -> (any ReloadSource)? {
        guard let renew else { return nil }
        var config = try ReloadSite(ReloadSite.text()).load()
        config.settings = settings
        return RenewingSource(config: config, make: renew)
    }
}

private struct RenewingSource: ReloadSource {
    let config: LoadedConfig
    let make: @Sendable (String) -> Destination?
    var types: [DestinationType] { [ReloadSite.type] }

    func read() throws(ConfigErrors) -> PreparedReload {
        (config, [], NotificationClients())
    }
    func check(_ text: [UInt8]) throws(ConfigErrors) -> PreparedReload { try read() }
    func restartReason(_ config: LoadedConfig) -> String? { nil }
    func renew(_ name: String, _ held: LoadedConfig) -> Destination? { make(name) }
}

/// An agent beside another one of its test has a seat of another row: tests that each keep a seat and wait for a second
/// one of the same would wait for each other.
private enum AgentSeats {
    /// By the test that runs.
    @TaskLocal static var taken = 0
    private static let rows = [Seats(12), Seats(6)]

    /// nil: the third one of a test needs none.
    static var next: Seats? { taken < rows.count ? rows[taken] : nil }
}

/// A running agent.
struct Stage: Sendable {
    let scene: Scene
    let root: FilePath
    let journal: Journal
    let agent: Agent
    let events: EventRecord

    init(_ scene: Scene) async throws {
        self.scene = scene
        root = scene.root
        journal = try Journal(path: scene.journalPath, now: .now)
        var settings =
            scene.source?.config.settings
            ?? Settings(
                stateDirectory: scene.directory.path.appending("state"), workers: scene.workers,
                shutdownGrace: scene.grace, watch: scene.watch, routes: [scene.route] + scene.others)
        if let fleet = scene.fleet {
            settings.fleet = fleet.settings
            settings.destinations = [scene.shared]
        }
        let log = try EventLog(nil)
        events = EventRecord(log)
        log.listen(scene.onEvent)
        var bounds = Agent.Bounds()
        (bounds.probes, bounds.holdPatience) = (scene.pace, scene.holdPatience)
        (bounds.places, bounds.silence) = (scene.places, scene.silence)
        agent = try await Agent(
            settings: settings, destinations: scene.destinations, journal: journal, log: log,
            label: ("test", "test", nil), notificationClients: scene.notificationClients,
            valve: scene.valve, source: scene.source ?? scene.renewing(settings), fleet: scene.fleet, bounds: bounds)
    }

    func jobs() async throws -> [Job] { try await journal.jobs(FileFilter(limit: 10_000)) }

    /// The newest job of a path, once it satisfies `condition`.
    @discardableResult
    func job(
        _ path: FilePath, _ what: String = "there", _ condition: (Job) -> Bool = { _ in true }
    ) async throws -> Job {
        var found: Job?
        try await eventually("\(path) is \(what)") {
            found = try await jobs().first { $0.file.path == path && condition($0) }
            return found != nil
        }
        return try #require(found)
    }

    /// The newest job of a path, once it is finished in `state`.
    @discardableResult
    func finished(_ path: FilePath, _ state: FileState = .delivered) async throws -> Job {
        try await job(path, "finished as \(state)") { $0.file.finishedAt != nil && $0.file.state == state }
    }

    /// Drops a file, and waits until `here` has begun with it, and has nothing else.
    @discardableResult
    func start(_ name: FilePath, _ content: String = "content") async throws -> FilePath {
        let path = try scene.drop(name, content)
        try await eventually("\(name) is on its way") { scene.here.record.running == 1 }
        return path
    }

    /// Drops a file, and waits until the journal has it.
    @discardableResult
    func admit(_ name: FilePath, _ content: String = "content") async throws -> Job {
        try scene.drop(name, content)
        return try await job(name)
    }

    /// Has a person send a file that ended again, and waits until it is delivered.
    @discardableResult
    func retry(_ job: Job) async throws -> Job {
        #expect(try await agent.control.act(.retry, on: job.file.id) == .done)
        return try await finished(job.file.path)
    }

    /// Drops a file, and waits until it is finished in `state`.
    @discardableResult
    func process(
        _ name: FilePath, _ content: String = "content", as state: FileState = .delivered
    ) async throws -> Job {
        try scene.drop(name, content)
        return try await finished(name, state)
    }
}

extension Stage {
    /// That of the first watched folder.
    var rootStatus: RootStatus? { agent.control.live?.roots.first }
    var isGuarded: Bool {
        agent.control.live?.roots.contains { if case .guarded = $0.state { true } else { false } } == true
    }

    /// What `watch.mode` said, in its order.
    var modes: [String] {
        events.all.compactMap { event in if case .watchMode(_, _, let mode, _) = event { mode.rawValue } else { nil } }
    }

    /// How each mount of the root is watched, as it was said last.
    var modePaths: [FilePath: WatchMode] {
        var modes: [FilePath: WatchMode] = [:]
        for event in events.all { if case .watchMode(_, let path, let mode, _) = event { modes[path] = mode } }
        return modes
    }
}

extension AgentControl {
    /// What comes of one file that a person names.
    func send(_ path: FilePath, to destination: String?) async -> SendResult {
        await send([path], to: destination).first ?? .refused("there is no answer")
    }
}

extension SendResult {
    /// The job of a file that was queued.
    var job: Int64? { if case .queued(let job) = self { job } else { nil } }
    /// That of one that was delivered before.
    var knownJob: Int64? { if case .known(let job, _) = self { job } else { nil } }
    var refusal: String? { if case .refused(let reason) = self { reason } else { nil } }
}

extension ActionOutcome {
    var refusal: String? { if case .skipped(let reason) = self { reason } else { nil } }
}

/// Every event of an agent, in order.
final class EventRecord: Sendable {
    private let events = Mutex<[AgentEvent]>([])
    private let kept = AgentLog()

    init(_ log: EventLog) {
        log.listen { [self] event in
            events.withLock { $0.append(event) }
            kept.add("\(event.line.name) \(event.line.fields)")
            Happening.ring()
        }
    }

    var all: [AgentEvent] { events.withLock(\.self) }
    var names: [String] { all.map(\.line.name) }
    func count(_ name: String) -> Int { names.count { $0 == name } }

    /// What the last event of that name says in one of its fields.
    func field(_ field: String, of name: String) -> EventValue? {
        all.map(\.line).last { $0.name == name }?.fields.first { $0.0 == field }?.1
    }
}

extension Destination {
    static func scripted(
        _ name: String, _ pipeline: ScriptedPipeline, smallLimit: Int64 = 1 << 20, connections: Int = 8,
        maxInFlight: Int? = nil
    ) -> Destination {
        Destination(
            name: name, type: "scripted", pipeline: pipeline, smallLimit: smallLimit, connections: connections,
            maxInFlight: maxInFlight)
    }

    /// A real folder that is there.
    static func folder(_ name: String, _ path: FilePath) -> Destination {
        let values = ConfigSection(
            values: ["path": .string(path.string)], positions: [:], position: SourcePosition(line: 0, column: 0))
        let pool = BlockingPool(name: "folder", threads: 2)
        return Destination(
            name: name, type: "folder", pipeline: FolderPipeline(settings: FolderSettings(values), pool: pool),
            smallLimit: 1 << 20, connections: 4)
    }
}

extension FileAdmission {
    /// That of a file which is on no disk.
    static func made(
        _ name: String, inode: UInt64 = 1, in root: FilePath = "/in", key: String? = nil,
        to destination: String = "here",
        _ lane: Lane = .small, _ change: (inout Plan) -> Void = { _ in }
    ) -> FileAdmission {
        let identity = FileIdentity(size: 1, modified: 1, changed: 1, inode: inode, device: 1)
        var plan = Plan(
            route: "all", category: "other", key: key ?? name, mediaType: "text/plain", destinations: [destination])
        change(&plan)
        return FileAdmission(
            FoundFile(root: root, path: FilePath(name), identity: identity), plan: plan, lanes: [destination: lane],
            uptimes: [destination: 0])
    }
}

extension DestinationRegistry {
    /// The rooms of all destinations that are up.
    func rooms() -> [ClaimCapacity] { names.compactMap(room) }
}

extension LiveSettings {
    /// A configuration that watches nothing.
    static func test(_ change: (inout Settings) -> Void = { _ in }) -> LiveSettings {
        var settings = Settings(stateDirectory: "/")
        change(&settings)
        return LiveSettings(settings)
    }
}

extension Shared {
    /// What a part of the agent that runs alone is given.
    static func test(
        _ journal: Journal, _ log: EventLog, _ destinations: [Destination] = [], paused: Set<String> = [],
        clock: AgentClock = AgentClock(), _ change: (inout Settings) -> Void = { _ in }
    ) -> Shared {
        let board = DestinationRegistry(destinations, paused: paused, uptimes: [:], workers: 1, log: log, clock: clock)
        return Shared(.test(change), journal, board, log)
    }
}
