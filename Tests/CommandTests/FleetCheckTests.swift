import Foundation
import InletCore
import InletFleet
import InletTestSupport
import SystemPackage
import Testing

/// The lines of `inlet check` about the PostgreSQL that agents share.
@Suite(.enabled(if: PostgresCluster.isThere, Comment(rawValue: PostgresCluster.reason)))
struct FleetCheckTests {
    /// A cluster with a fleet, and roles with more rights and fewer.
    private static func cluster(in folder: TemporaryDirectory) throws -> PostgresCluster {
        let cluster = try PostgresCluster(in: folder.path)
        let address = try PostgresAddress(cluster.url, allowsUnverified: false)
        var connection = try PostgresConnection(address, application: "test")
        try connection.runScript(FleetSchema.sql)
        for sql in [
            "CREATE ROLE station LOGIN PASSWORD 'kanarienvogel' IN ROLE inlet_agent",
            "CREATE ROLE curious LOGIN IN ROLE inlet_agent",
            "GRANT SELECT ON inlet.agent TO curious", "CREATE ROLE boss LOGIN IN ROLE inlet_admin",
        ] { _ = try connection.run(sql) }
        return cluster
    }

    private static func url(_ cluster: PostgresCluster, _ user: String, _ database: String = "postgres") -> String {
        cluster.url(user: user, password: "kanarienvogel", database: database)
    }

    private static func place(_ url: String, destination: String? = nil, key: String? = nil) throws -> Place {
        try Place(
            key: key, destination: destination, top: ["fleet: { url: \"\(url)\", name: station-3 }"])
    }

    @Test func `a role with least rights is fine, and its password is not shown`() async throws {
        let folder = try TemporaryDirectory()
        let cluster = try Self.cluster(in: folder)
        let check = try await Self.place(Self.url(cluster, "station")).inlet(
            "check", says: "connected to 127.0.0.1:\(cluster.port)", "a call takes",
            "the connection is not encrypted; it stays on this machine", "the server's clock and this machine's agree",
            "the role station can read no table", "the schema has all")
        #expect(!check.output.contains("! fleet") && !check.output.contains("✗ fleet"), "\(check.output)")
        #expect(!(check.output + check.errors).contains("kanarienvogel"))
    }

    @Test func `rights beyond those of an agent are warned of`() async throws {
        let folder = try TemporaryDirectory()
        let cluster = try Self.cluster(in: folder)
        try await Self.place(Self.url(cluster, "curious")).inlet(
            "check", says: "the role curious can read tables of the fleet (agent)", "a member of inlet_agent only")
        try await Self.place(Self.url(cluster, "boss")).inlet(
            "check", says: "the role boss can read tables of the fleet", "may administer the fleet")
        try await Self.place(Self.url(cluster, "postgres")).inlet("check", says: "the role postgres is a superuser")
    }

    @Test func `a database without a fleet, and one with an older schema, name the command that helps`() async throws {
        let folder = try TemporaryDirectory()
        let cluster = try Self.cluster(in: folder)
        try cluster.createDatabase("other")
        try await Self.place(Self.url(cluster, "station", "other")).inlet(
            "check", code: 78, says: "the database other has no fleet", "inlet fleet init")
        _ = try cluster.run("ALTER FUNCTION inlet.v1_bye RENAME TO v0_bye")
        try await Self.place(Self.url(cluster, "station")).inlet(
            "check", code: 78, says: "the schema is older than this version of Inlet: it has no v1_bye")
    }

    @Test func `a log that would show tokens is warned of`() async throws {
        let folder = try TemporaryDirectory()
        let cluster = try Self.cluster(in: folder)
        _ = try cluster.run("ALTER DATABASE postgres RESET log_parameter_max_length")
        try await Self.place(Self.url(cluster, "station")).inlet(
            "check", says: "the server's log may show the tokens of agents (log_parameter_max_length is -1)",
            "ALTER DATABASE \"postgres\" SET log_parameter_max_length = 0")
    }

    @Test func `the role for orders must be an admin's`() async throws {
        let folder = try TemporaryDirectory()
        let cluster = try Self.cluster(in: folder)
        let station = Self.url(cluster, "station")
        for (user, words) in [("boss", "the role boss may order agents"), ("station", "is no member of inlet_admin")] {
            let file = try folder.write(Array(Self.url(cluster, user).utf8), to: FilePath("\(user).url"))
            let place = try Place(top: ["fleet: { url: \"\(station)\", admin_url_file: \"\(file)\" }"])
            try await place.inlet("check", says: words)
        }
    }

    @Test func `check says what a failover costs`() async throws {
        let folder = try TemporaryDirectory()
        let cluster = try Self.cluster(in: folder)
        let file = try folder.write(Array(Self.url(cluster, "boss").utf8), to: "boss.url")
        let fleet = "fleet: { url: \"\(Self.url(cluster, "station"))\", admin_url_file: \"\(file)\" }"
        for (set, words) in [
            ("NULL", "after the promotion of a standby all agents report"),
            ("clock_timestamp() + interval '1 hour'", "the fleet goes on after one lease at most"),
            ("clock_timestamp() - interval '2 min'", "no agent saw commits wait for them in the last 2 minutes"),
        ] {
            _ = try cluster.run("UPDATE inlet.fleet SET synchronous_at = \(set)")
            try await Place(top: [fleet]).inlet("check", says: words)
        }
    }

    @Test func `keys of routes outside the agent's own folder are warned of`() async throws {
        let folder = try TemporaryDirectory()
        let url = Self.url(try Self.cluster(in: folder), "station")
        let destination = "type: folder, path: library, prefix: station-3/"
        let warning = "do not begin with the prefix 'station-3/'"
        try await Self.place(url, destination: destination).inlet("check", says: warning)
        let own = try await Self.place(url, destination: destination, key: "station-3/{name}").inlet("check")
        #expect(!own.output.contains(warning))
    }

    @Test func `a prefix that overlaps with another agent's is warned of, also before a join`() async throws {
        let scene = try await FleetScene.prepared()
        let place = try scene.station("station-1")
        try place.configure(replacing: "path: library", with: "path: library, prefix: cards/a/")
        let agent = try await place.run()
        try await eventually("the prefix is its own") {
            try scene.run("SELECT prefix FROM inlet.prefix") == [["cards/a/"]]
        }
        let fine = "no prefix of another agent overlaps with"
        try await place.inlet("check", says: "\(fine) 'cards/a/'")
        #expect(try await agent.stop() == .code(0))
        try place.configure(replacing: "name: station-1", with: "name: station-2")
        for (former, prefix) in [("cards/a/", "cards/a/"), ("cards/a/", "cards/"), ("cards/", "cards/a/b/")] {
            try place.configure(replacing: "prefix: \(former) ", with: "prefix: \(prefix) ")
            let words = "the fleet refuses the prefix '\(prefix)': it overlaps with one of station-1"
            try await place.inlet("check", says: words, "give this agent another prefix")
        }
        try place.configure(replacing: "prefix: cards/a/b/", with: "prefix: cards/ab/")
        try await place.inlet("check", says: "\(fine) 'cards/ab/'")
    }
}

/// The same where nothing answers; these need no server, but libpq.
@Suite(.enabled(if: PostgresLibrary.version != nil, "needs libpq5")) struct FleetAwayCheckTests {
    @Test func `a server that is away is unavailable, and nothing is lost`() async throws {
        let url = "postgresql://station:kanarienvogel@127.0.0.1:1/inlet"
        let check = try await Place(top: ["fleet: { url: \"\(url)\" }"]).inlet(
            "check", code: 69, says: "cannot reach 127.0.0.1:1", "nothing is lost")
        #expect(!(check.output + check.errors).contains("kanarienvogel"))
    }

    @Test func `a server that nobody vouches for is refused before a connection`() async throws {
        let place = try Place(top: ["fleet: { url: \"postgresql://station@db.example/inlet?sslmode=require\" }"])
        try await place.inlet(
            "check", code: 78, says: "does not prove that db.example:5432 is your server", "sslrootcert=FILE")
    }

    @Test func `an agent alone has no line about a fleet`() async throws {
        let check = try await Place().inlet("check")
        #expect(!check.output.contains("fleet"))
    }
}
