import InletCore
import InletTestSupport
import SystemPackage
import Testing

@testable import InletFleet

/// The schema is made, made again, and refused; its rights.
@Suite(.enabled(if: PostgresCluster.isThere, Comment(rawValue: PostgresCluster.reason)))
struct SchemaInitTests {
    private let fleet: SchemaFleet

    init() throws { fleet = try SchemaFleet() }

    /// Everything that the schema is made of, but for the rows.
    private func shape() throws -> [[String?]] {
        try fleet.run(
            """
            SELECT c.oid::regclass::text, c.relkind::text, c.relacl::text, c.reloptions::text, pg_get_userbyid(c.relowner),
                (SELECT string_agg(a.attname || ' ' || a.atttypid::regtype, ',' ORDER BY a.attnum)
                    FROM pg_attribute a WHERE a.attrelid = c.oid)
            FROM pg_class c WHERE c.relnamespace = 'inlet'::regnamespace
            UNION ALL SELECT p.oid::regprocedure::text, p.prosecdef::text, p.proacl::text, p.proconfig::text,
                pg_get_userbyid(p.proowner), md5(p.prosrc)
            FROM pg_proc p WHERE p.pronamespace = 'inlet'::regnamespace ORDER BY 1
            """)
    }

    @Test func `init twice changes nothing, and says from which version it came`() throws {
        let agent = try fleet.agent("one")
        let before = (try shape(), try fleet.run("SELECT * FROM inlet.fleet, inlet.migration"))
        var administration = try fleet.administration()
        let report = try administration.initialise()
        #expect(report.before == FleetSchema.version && report.after == FleetSchema.version)
        let defaults = "SELECT column_default FROM information_schema.columns WHERE table_name = 'fleet'"
        #expect(try fleet.value("\(defaults) AND column_name = 'ttl'") == "'00:00:15'::interval")
        #expect(try shape() == before.0)
        #expect(try fleet.run("SELECT * FROM inlet.fleet, inlet.migration") == before.1)
        #expect(throws: Never.self) { try agent.askMarked("v1_beat", [.boolean(true)]) }
        #expect(try fleet.value("SELECT max(version) FROM inlet.migration") == "\(FleetSchema.version)")
    }

    @Test func `init says how agents get in, with a new password each time`() throws {
        var administration = try fleet.administration()
        let (first, second) = (try administration.initialise(), try administration.initialise())
        #expect(first.loginRole != second.loginRole && first.warnings.isEmpty)
        #expect(first.hostRules.last == "hostssl \"\(fleet.name)\" inlet_station samenet scram-sha-256")
        // The lines work as they stand.
        let role = "station_\(fleet.name)"
        for line in first.loginRole.replacing("inlet_station", with: role).split(separator: ";") where line.count > 1 {
            try fleet.run(String(line))
        }
        var connection = try fleet.connect(user: role)
        #expect(try connection.run("SHOW statement_timeout")[0, 0] == "15s")
        #expect(
            try connection.run("SELECT has_function_privilege('inlet.v1_bye(int, bytea, bigint)', 'EXECUTE')")[0, 0]
                == "t")
    }

    @Test func `a server that may log tokens is a warning that names the remedy`() throws {
        let role = "maker_\(fleet.name)"
        let database = "\(fleet.name)_made"
        try fleet.run("CREATE ROLE \(role) LOGIN CREATEROLE")
        try fleet.run("GRANT inlet_owner TO \(role) WITH ADMIN OPTION")
        try fleet.run("CREATE DATABASE \(database)")
        defer { _ = try? fleet.run("DROP DATABASE \(database) WITH (FORCE)") }
        try fleet.run("GRANT CREATE ON DATABASE \(database) TO \(role)")
        let url = fleet.cluster.url(user: role, database: database)
        var administration = FleetAdministration(try SchemaFleet.connect(url))
        let report = try administration.initialise()
        #expect(report.before == nil)
        #expect(report.warnings.count == 1 && report.warnings[0].contains("log_parameter_max_length = 0"))
        let secret = try administration.newSecret()
        #expect(secret.count == 52 && secret.allSatisfy { $0.isLowercase || $0.isNumber })
        #expect(try administration.status().isJoinable)
        try administration.closeSecret()
        #expect(try !administration.status().isJoinable)
    }

    @Test func `a newer schema is refused and left alone`() throws {
        try fleet.run("INSERT INTO inlet.migration (version) VALUES (99)")
        let before = try shape()
        var administration = try fleet.administration()
        do {
            _ = try administration.initialise()
            Issue.record("not refused")
        } catch {
            #expect(error.code == .schema && error.message.contains("99") && error.message.contains("update Inlet"))
        }
        // The script refuses by itself, where psql runs it.
        var connection = try fleet.connect()
        #expect(SchemaFleet.code { try connection.runScript(FleetSchema.sql) } == .schema)
        #expect(try shape() == before)
    }

    @Test func `a database that is not UTF8 and a role without the right are refused with the remedy`() throws {
        let database = "\(fleet.name)_latin"
        try fleet.run("CREATE DATABASE \(database) ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
        defer { _ = try? fleet.run("DROP DATABASE \(database) WITH (FORCE)") }
        var latin = FleetAdministration(
            try SchemaFleet.connect(fleet.cluster.url(user: "postgres", database: database)))
        do {
            _ = try latin.initialise()
            Issue.record("not refused")
        } catch {
            #expect(error.code == .schema && error.message.contains("LATIN1") && error.message.contains("UTF8"))
        }
        var station = FleetAdministration(try fleet.connect(user: "schema_station"))
        do {
            _ = try station.initialise()
            Issue.record("not refused")
        } catch {
            #expect(error.code == .refused && error.message.contains("CREATEROLE"))
        }
        #expect(try fleet.run("SELECT FROM pg_class WHERE relname = 'beat'").count == 1)
    }

    /// Enumerated from the catalog, so that a new table or function is covered.
    @Test func `an agent's role reads no table, and calls no inner and no administrator's function`() throws {
        let agent = try SchemaAgent(fleet, "none")
        let tables = try agent.run(
            """
            SELECT c.oid::regclass::text FROM pg_class c
            WHERE c.relnamespace = 'inlet'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm', 'S')
            """)
        #expect(tables.count > 60)
        for index in 0..<tables.count {
            let name = tables[index, 0] ?? ""
            #expect(throws: FleetError.self, "\(name)") { try agent.run("SELECT * FROM \(name)") }
        }
        let rights = try agent.run(
            """
            SELECT count(*) FROM pg_class c WHERE c.relnamespace = 'inlet'::regnamespace AND c.relkind IN ('r', 'p', 'v')
                AND has_table_privilege(c.oid, 'SELECT, INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER')
            """)
        #expect(rights.integer(0, 0) == 0)
        let functions = try agent.run(
            """
            SELECT p.proname, p.pronargs, p.oid::regprocedure::text,
                p.proname LIKE 'v1\\_%' AND p.proname !~ '^v1_(admin|reader)_'
            FROM pg_proc p WHERE p.pronamespace = 'inlet'::regnamespace
            """)
        #expect(functions.count > 55)
        for index in 0..<functions.count {
            let isOurs = functions.boolean(index, 3) == true
            let (name, count) = (functions[index, 0] ?? "", Int(functions.integer(index, 1) ?? 0))
            let arguments = repeatElement("NULL", count: count).joined(separator: ", ")
            do {
                _ = try agent.run("SELECT * FROM inlet.\(name)(\(arguments))")
                #expect(isOurs, "\(name)")
            } catch let error as FleetError {
                #expect(error.message.contains("permission denied") != isOurs, "\(name): \(error.message)")
            }
        }
    }

    @Test func `a reader sees the views and searches, and gives no order`() throws {
        let role = "reader_\(fleet.name)"
        try fleet.run("CREATE ROLE \(role) LOGIN IN ROLE inlet_reader")
        _ = try fleet.agent("one")
        var reader = FleetAdministration(try fleet.connect(user: role))
        #expect(try reader.status().state == "open")
        #expect(try reader.agents().map(\.name) == ["one"])
        #expect(try reader.places().isEmpty && reader.search("x", limit: 5).isEmpty)
        #expect(throws: FleetError.self) { try reader.restored(nil) }
        #expect(throws: FleetError.self) { try reader.setAgent("one", state: "retired") }
    }
}
