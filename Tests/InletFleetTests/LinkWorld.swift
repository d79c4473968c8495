import Foundation
import InletCore
import InletFleet
import InletLinux
import InletTestSupport
import Synchronization

/// A fleet's database, with agents whose memories are in this process.
final class LinkWorld: Sendable {
    static let secret = Array("a secret of thirty-two bytes....".utf8)
    static let role = "inlet_station"

    /// One for all tests that do not stop it. Its statements have connections of their own.
    private static let shared = Result {
        let folder = try TemporaryDirectory()
        return (folder, try PostgresCluster(in: folder.path))
    }
    /// Roles belong to the whole cluster: two tests that make them would meet.
    private static let making = Mutex(0)

    private let cluster: PostgresCluster
    private let folder: TemporaryDirectory?
    let database: String

    /// - Parameter isAlone: with a server of its own, which may be stopped.
    init(ttl: String = "30 s", isAlone: Bool = false) throws {
        let folder = isAlone ? try TemporaryDirectory() : nil
        let cluster = try folder.map { try PostgresCluster(in: $0.path) } ?? Self.shared.get().1
        (self.folder, self.cluster) = (folder, cluster)
        database = try Self.making.withLock { count in
            count += 1
            let name = "fleet_\(count)"
            try cluster.createDatabase(name)
            let address = try PostgresAddress(
                cluster.url(user: "postgres", database: name), allowsUnverified: false)
            var administration = FleetAdministration(try PostgresConnection(address, application: "test"))
            _ = try administration.initialise()
            try cluster.run(
                """
                DO $$ BEGIN
                    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '\(Self.role)') THEN
                        CREATE ROLE \(Self.role) LOGIN IN ROLE inlet_agent;
                    END IF;
                END $$
                """)
            try cluster.run(
                "UPDATE inlet.fleet SET ttl = '\(ttl)', join_hash = sha256('\\x\(Self.secret.hex)')", database: name)
            return name
        }
    }

    /// - Parameter port: of a proxy before it.
    func address(port: Int? = nil) throws -> PostgresAddress {
        try PostgresAddress(
            "postgresql://\(Self.role)@127.0.0.1:\(port ?? cluster.port)/\(database)", allowsUnverified: false)
    }

    var port: Int { cluster.port }

    func stop(immediate: Bool = false) { cluster.stop(immediate: immediate) }

    func start() throws { try cluster.start() }

    func pooler(in folder: TemporaryDirectory) throws -> PoolerProcess {
        try PoolerProcess(before: cluster, in: folder.path, users: [Self.role])
    }

    /// As the superuser.
    @discardableResult
    func run(_ sql: String) throws -> [[String?]] { try cluster.run(sql, database: database) }

    func join(_ name: String) throws -> Memory {
        let memory = Memory()
        memory.identity = try FleetMembership.join(
            address(), secret: Self.secret, name: name, journal: memory.journal, seen: 0, about: ["machine": name])
        return memory
    }

    /// - Parameter seat: of the process; the same for all unless a test says otherwise.
    func link(_ memory: Memory, port: Int? = nil, seat: UInt64 = 1) throws -> Station {
        Station(try address(port: port), memory, seat)
    }
}

/// A link with what it has said.
final class Station: Sendable {
    let link: FleetLink
    let memory: Memory
    private let log: Log

    private final class Log: Sendable {
        let standings = Mutex<[FleetStanding]>([])
    }

    init(_ address: PostgresAddress, _ memory: Memory, _ seat: UInt64) {
        let log = Log()
        (self.memory, self.log) = (memory, log)
        link = FleetLink(
            address, memory, identity: memory.identity, version: "1.0", about: ["machine": "test"],
            seat: FleetLink.seat(boot: "boot", device: 1, inode: seat),
            onChange: { standing in
                log.standings.withLock { $0.append(standing) }
                Happening.ring()
            })
    }

    var said: [FleetStanding] { log.standings.withLock(\.self) }
    var state: FleetSession.State { link.standing.state }
    var session: Int64? { link.standing.session }

    var isLive: Bool { if case .live = state { true } else { false } }
    var isReporting: Bool { if case .reporting = state { true } else { false } }

    /// Runs the link beside `body`, and ends it in order.
    func whileRunning<Result: Sendable>(_ body: () async throws -> Result) async throws -> Result {
        try await withThrowingTaskGroup(of: Void.self) { tasks in
            tasks.addTask { [link] in try await link.run() }
            let result = try await body()
            tasks.cancelAll()
            try await tasks.waitForAll()
            return result
        }
    }

    func whileLive<Result: Sendable>(_ body: () async throws -> Result) async throws -> Result {
        try await whileRunning {
            try await eventually("the session is live") { isLive }
            return try await body()
        }
    }

    func destination(_ name: String = "r2") async throws -> Int32 {
        try await link.destination(address: "https://store.example/\(name)", type: "s3", label: name)
    }
}

/// A journal's memory of its fleet, without a journal.
final class Memory: FleetMemory {
    private struct State {
        var identity: FleetIdentity?
        var hellos: Int64 = 0
        var seen: Int64 = 0
    }

    let journal: String
    private let state: Mutex<State>

    init() {
        journal = UUID().uuidString.lowercased()
        state = Mutex(State())
    }

    private init(journal: String, _ state: State) {
        self.journal = journal
        self.state = Mutex(state)
    }

    /// As a copied state directory.
    func copy() -> Memory { Memory(journal: journal, state.withLock(\.self)) }

    var identity: FleetIdentity? {
        get { state.withLock(\.identity) }
        set { state.withLock { $0.identity = newValue } }
    }
    var hellos: Int64 {
        get { state.withLock(\.hellos) }
        set { state.withLock { $0.hellos = newValue } }
    }
    var seen: Int64 { state.withLock(\.seen) }

    func fleetIdentity() async throws -> FleetIdentity? { identity }

    func keepFleetIdentity(_ identity: FleetIdentity?, isFresh: Bool) async throws {
        state.withLock { $0 = State(identity: identity, hellos: isFresh ? 0 : $0.hellos, seen: isFresh ? 0 : $0.seen) }
    }

    func nextHello() async throws -> Int64 {
        state.withLock { state in
            state.hellos += 1
            return state.hellos
        }
    }

    func fleetSeen() async throws -> Int64 { seen }

    func saw(mark: Int64) async throws { state.withLock { $0.seen = max($0.seen, mark) } }
}

/// The error of a call that must fail.
func refusal(_ call: () async throws -> Void) async throws -> FleetError {
    do { try await call() } catch let error as FleetError { return error }
    throw NotInTime("the call was answered")
}
