import InletCore
import InletTestSupport
import SystemPackage
import Testing

@testable import InletFleet

/// Standbys that have all commits, and those that may miss some.
@Suite(.enabled(if: PostgresCluster.isThere, Comment(rawValue: PostgresCluster.reason)))
struct SchemaFailoverTests {
    private func code(_ call: () throws -> Void) -> FleetError.Code? { SchemaFleet.code(call) }

    /// Makes the database `fleet`, with leases that last longer than a test does.
    private func makeFleet(at cluster: PostgresCluster) throws {
        try cluster.createDatabase("fleet")
        var people = FleetAdministration(try SchemaFleet.connect(cluster.url(user: "postgres", database: "fleet")))
        _ = try people.initialise()
        try people.settings(name: nil, ttl: .seconds(300), days: nil)
        try cluster.run("SELECT inlet.v1_admin_secret('\\x\(SchemaFleet.secret.hex)')", database: "fleet")
        try cluster.run("CREATE ROLE schema_station LOGIN IN ROLE inlet_agent")
    }

    private func agent(_ name: String, at cluster: PostgresCluster, in fleet: String = "fleet") throws -> SchemaAgent {
        try SchemaAgent(at: cluster.url(user: "schema_station", database: fleet), name)
    }

    /// Waits until the standby has all that was written before.
    private func follow(_ primary: PostgresCluster) async throws {
        let now = try primary.run("SELECT pg_current_wal_flush_lsn()")[0][0] ?? ""
        try await eventually("the standby has \(now)") {
            try primary.run("SELECT FROM pg_stat_replication WHERE flush_lsn >= '\(now)'").count == 1
        }
    }

    /// What may be different about a promoted fleet, and its state after the first hello.
    private static let fleets: [(name: String, change: String, state: String)] = [
        ("trusted", "synchronous_at = clock_timestamp()", "confirming"),
        ("lost", "synchronous_at = clock_timestamp()", "recovering"),
        ("unpromised", "synchronous_at = NULL", "recovering"),
        ("late", "synchronous_at = clock_timestamp() - interval '2 min'", "recovering"),
        ("ahead", "synchronous_at = clock_timestamp() + interval '1 hour'", "recovering"),
        ("twice", "synchronous_at = clock_timestamp(), timeline = '00000000'", "recovering"),
        ("other", "synchronous_at = clock_timestamp(), system_id = system_id - 1", "recovering"),
    ]

    @Test func `a promoted standby counts as a restart only where commits waited for it`() async throws {
        let folder = try TemporaryDirectory()
        let primary = try PostgresCluster(in: folder.path)
        try makeFleet(at: primary)
        let standby = try PostgresCluster(in: folder.path.appending("standby"), standbyOf: primary)
        try await follow(primary)
        try primary.run("ALTER SYSTEM SET synchronous_standby_names = 'walreceiver'")
        try primary.reload()
        let (one, off) = (try self.agent("one", at: primary), try self.agent("off", at: primary))
        for agent in [one, off] {
            try agent.join()
            try agent.hello()
        }
        try letWait(one, at: primary)
        let destination = try one.destination()
        #expect(try one.reserve(destination, ["a"], [1]) == [true])
        try await follow(primary)
        primary.stop(immediate: true)
        try standby.promote()
        for fleet in Self.fleets {
            try standby.run("CREATE DATABASE \(fleet.name) TEMPLATE fleet")
            try standby.run("UPDATE inlet.fleet SET \(fleet.change)", database: fleet.name)
            let agent = try self.agent("one", at: standby, in: fleet.name)
            agent.goOn(one)
            if fleet.name == "lost" { agent.seen += 1 }
            #expect(try agent.hello() == fleet.state, "\(fleet.name)")
            if fleet.name == "trusted" { try goOn(agent, off, destination, at: standby) }
        }
    }

    /// Promises that commits wait. The beats of an agent confirm it; one whose own commits do not wait is refused.
    private func letWait(_ agent: SchemaAgent, at primary: PostgresCluster) throws {
        try primary.run("SELECT inlet.v1_admin_failover(true)", database: "fleet")
        _ = try agent.run("SET synchronous_commit = local")
        #expect(code { try agent.askMarked("v1_beat", [.boolean(true)]) } == .away)
        _ = try agent.run("RESET synchronous_commit")
        try primary.run("UPDATE inlet.fleet SET synchronous_at = '-infinity'", database: "fleet")
        try agent.askMarked("v1_beat", [.boolean(false)])
        #expect(try primary.run("SELECT isfinite(synchronous_at) FROM inlet.fleet", database: "fleet") == [["t"]])
    }

    /// After at most one lease keys are granted though an agent is off, until that one tells of a mark that is gone.
    private func goOn(
        _ agent: SchemaAgent, _ off: SchemaAgent, _ destination: Int64, at standby: PostgresCluster
    ) throws {
        #expect(code { _ = try agent.reserve(destination, ["b"], [2]) } == .nothingGranted)
        let told = "SELECT name, (SELECT confirm_until <= clock_timestamp() + ttl FROM inlet.fleet) FROM inlet.event"
        #expect(try standby.run(told, database: "trusted") == [["fleet.promoted", "t"]])
        try standby.run("UPDATE inlet.fleet SET confirm_until = clock_timestamp()", database: "trusted")
        #expect(try agent.reserve(destination, ["a", "b"], [1, 2]) == [true, true])
        let late = try self.agent("off", at: standby, in: "trusted")
        late.goOn(off)
        late.seen += 9
        #expect(try late.hello() == "recovering")
        #expect(code { _ = try agent.reserve(destination, ["c"], [3]) } == .reportFirst)
    }

    @Test func `a restored backup is no promoted standby`() throws {
        let fleet = try SchemaFleet()
        let agent = try fleet.agent("one")
        try fleet.run(
            """
            UPDATE inlet.fleet SET timeline = '00000000', started = started - interval '1 day',
                synchronous_at = clock_timestamp()
            """)
        #expect(try agent.hello() == "recovering")
        #expect(try fleet.value("SELECT failover FROM inlet.status") == "doubtful")
    }

    @Test func `when commits no longer wait, nothing is written until no standby is trusted`() throws {
        let fleet = try SchemaFleet()
        var people = try fleet.administration()
        try people.settings(name: nil, ttl: .seconds(300), days: nil)
        #expect(code { try people.promise(isLossless: true) } == .argument)
        let agent = try fleet.agent("one")
        let destination = try agent.destination()
        try fleet.run("UPDATE inlet.fleet SET synchronous_at = clock_timestamp() + interval '1 hour'")
        #expect(code { _ = try agent.reserve(destination, ["a"], [1]) } == .away)
        #expect(code { try agent.askMarked("v1_beat", [.boolean(true)]) } == .away)
        #expect(code { try agent.hello() } == .away)
        #expect(code { try people.promise(isLossless: false) } == .away)
        #expect(throws: Never.self) { try agent.askMarked("v1_beat", [.boolean(false)]) }
        try fleet.run("UPDATE inlet.fleet SET synchronous_at = clock_timestamp() - interval '3 min'")
        #expect(try agent.reserve(destination, ["a"], [1]) == [true])
        try people.promise(isLossless: false)
        #expect(try fleet.value("SELECT failover FROM inlet.status") == "reports")
    }

    @Test(
        arguments: [
            (names: "a", commit: "on", waits: true), ("a", "remote_apply", true), ("2 (a, b)", "on", true),
            ("ANY 2 (a, \"b-1\")", "on", true), ("", "on", false), ("a", "remote_write", false), ("a", "local", false),
            ("a", "off", false), ("*", "on", false), ("a, b", "on", false), ("FIRST 1 (a, b)", "on", false),
            ("any 1 (a, b)", "on", false),
        ] as [(names: String, commit: String, waits: Bool)])
    func `commits wait where each standby that is named must have them`(
        _ row: (names: String, commit: String, waits: Bool)
    ) throws {
        let waits = try SchemaFleet().value("SELECT inlet._is_synchronous('\(row.names)', '\(row.commit)')")
        #expect(waits == (row.waits ? "t" : "f"))
    }
}
