import Foundation
import InletAgent
import InletCore
import InletFleet
import InletLinux
import InletSandbox
import SystemPackage
import UnixSignals

/// `inlet demo --fleet`: a PostgreSQL of its own, a store, and three agents, which are processes of this program.
struct FleetDemo: Sendable {
    private let folders: FleetDemoFolders
    private let isOnce: Bool
    private let postgres: PrivatePostgres
    private let store: S3Sandbox
    private let page: Int
    private let pool = BlockingPool(name: "stations", threads: 4)
    private let kills = FleetDemoKills()

    private static let role = "inlet_station"
    private static let lifetime = Duration.seconds(315_360_000)

    /// Runs until a signal, or with `isOnce` until all samples have ended. All that it made is gone then.
    ///
    /// - Throws: an exit code where it cannot start, or an object differs.
    static func run(in base: FilePath, isOnce: Bool) async throws {
        let folders = FleetDemoFolders(base)
        let lock = try folders.take()
        let signals = await UnixSignalsSequence(trapping: .sigterm, .sigint)
        let outcome: Result<Void, any Error>
        do {
            outcome = .success(try await FleetDemo(folders, isOnce: isOnce).serve(until: signals))
        } catch {
            outcome = .failure(error)
        }
        folders.removeAll()
        // It is held until here.
        _ = consume lock
        do {
            try outcome.get()
        } catch let error where error is Refusal || error is SystemError {
            throw ExitStatus.failed.saying("\(error)")
        }
    }

    private init(_ folders: FleetDemoFolders, isOnce: Bool) async throws {
        (self.folders, self.isOnce) = (folders, isOnce)
        let ports = try await Self.freePorts(2)
        page = ports[1]
        Console.print(
            """
            \(Console.tint("inlet demo --fleet", .strong)): everything stays on this machine, and is removed at the end.
            Making a PostgreSQL cluster, a store, and three agents below \(folders.base.display)…
            """)
        postgres = try await PrivatePostgres(in: folders.cluster, port: ports[0])
        store = try S3Sandbox(
            directory: folders.store,
            account: .init(
                bucket: DemoServers.bucket, accessKey: DemoServers.accessKey,
                secretKey: Secret(DemoServers.secretKey), region: "us-east-1"))
    }

    /// Ports of loopback at which nobody listens now.
    private static func freePorts(_ count: Int) async throws -> [Int] {
        let servers = (0..<count).map { _ in ReportServer { Data() } }
        return try await withThrowingTaskGroup(of: Void.self) { group in
            for server in servers { group.addTask { try await server.run() } }
            var ports: [Int] = []
            for server in servers { ports.append(try await server.port()) }
            group.cancelAll()
            return ports
        }
    }

    private func serve(until signals: UnixSignalsSequence) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { for await _ in signals { return } }
            group.addTask { try await store.run() }
            group.addTask { try await postgres.run() }
            group.addTask { try await play() }
            try await group.endWithFirst()
        }
    }

    private func play() async throws {
        let admin = try await prepare()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for station in folders.stations { group.addTask { try await keep(station) } }
            group.addTask { try await show(FleetDemoProgress(folders, store, admin), admin) }
            try await group.endWithFirst()
        }
    }

    private func show(_ progress: FleetDemoProgress, _ admin: PostgresAddress) async throws {
        try await progress.awaitAgents()
        let samples = try progress.drop()
        try await progress.awaitDeliveries(of: samples)
        let isGood = try await progress.tell(samples)
        let isWhole = try await FleetDemoTakeover(folders, store, admin, kills).play()
        guard !isOnce else {
            if !(isGood && isWhole) { throw ExitStatus.failed.code }
            return
        }
        try await progress.invite()
        try await Task.sleep(for: Self.lifetime)
    }

    /// Makes the fleet, and a login of the least rights. - Returns: the administrator's address.
    private func prepare() async throws -> PostgresAddress {
        let admin = try await postgres.ready()
        let password = PrivatePostgres.password()
        let secret = try await FleetConnection.use(admin) { fleet in
            _ = try fleet.initialise()
            try fleet.settings(name: "demo", ttl: .seconds(3), days: nil)
            return try fleet.newSecret()
        }
        try await FleetConnection.run(at: admin) {
            var connection = try PostgresConnection(admin, application: "inlet")
            try connection.runScript("CREATE ROLE \(Self.role) LOGIN PASSWORD '\(password)' IN ROLE inlet_agent")
        }
        for (text, file) in [
            (postgres.url(Self.role, password), folders.url), (secret, folders.joinSecret),
            (postgres.url.reveal(), folders.adminURL),
        ] {
            try DurableFile.write(Array((text + "\n").utf8), to: file, mode: 0o600)
        }
        let port = try await store.port()
        for (number, station) in folders.stations.enumerated() {
            try folders.writeConfiguration(station, store: port, page: number == 0 ? page : nil)
        }
        return admin
    }

    /// Runs an agent until the task is cancelled, again after the demo has killed it.
    ///
    /// - Throws: where it ends by itself.
    private func keep(_ station: FleetDemoFolders.Station) async throws {
        while let failure = try await run(station) {
            guard let pause = kills.pause(of: station) else {
                throw Refusal("\(station.name) ended: \(failure); see \(station.log.display)")
            }
            for await _ in pause {}
            try Task.checkCancellation()
        }
    }

    /// Runs an agent to its end. It also ends with this process, however that ends.
    ///
    /// - Returns: how it ended; nil after the task was cancelled.
    private func run(_ station: FleetDemoFolders.Station) async throws -> String? {
        let leash = ProgramFinder.find("setpriv").map { [$0.string, "--pdeathsig=TERM"] } ?? []
        guard let program = DurableFile.target(ofLink: "/proc/self/exe") else {
            throw Refusal("/proc is not visible here, so that the demo cannot start agents; mount it")
        }
        var agent = ChildProcess(
            leash + [program.string, "run", "--config", station.configuration.string],
            environment: [("PATH", Array(ProgramFinder.path.utf8)), ("HOME", station.folder.bytes)],
            timeout: Self.lifetime)
        agent.grace = .seconds(20)
        let outcome = try await agent.run(on: pool)
        return outcome.end == .cancelled ? nil : outcome.failure ?? "nobody knows why"
    }
}
