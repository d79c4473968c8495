import InletAgent
import InletConfig
import InletCore
import InletDashboard
import InletFleet
import InletLinux
import InletPipelines
import SystemPackage

// The checks of the PostgreSQL that agents share. They ask with the agent's own role, and change nothing.

extension Findings {
    /// Nothing without `fleet:`; libpq is not even loaded then.
    mutating func checkFleet(_ settings: Settings, _ destinations: [Destination]) {
        guard let fleet = settings.fleet else { return }
        checkPrefixes(settings)
        checkShares(settings)
        var server = "PostgreSQL"
        do throws(FleetError) {
            let text = try fleet.url.read()
            let address = try PostgresAddress(text, allowsUnverified: fleet.allowsUnverified)
            server = address.display
            var connection = try PostgresConnection(address, application: "inlet check")
            add(.fine, Self.fleetName, "connected to \(server)")
            checkEncryption(connection.isEncrypted, connection.tlsVersion, text, fleet)
            try checkServer(&connection)
            guard try checkRole(&connection) else { return }
            try checkPrivacy(&connection)
            if try checkSchema(&connection) { try checkOverlaps(&connection, fleet, settings, destinations) }
        } catch {
            add(error, at: server)
        }
        if let admin = fleet.adminURL { checkAdmin(admin, fleet, settings.watch.compactMap(\.place)) }
    }

    private static let fleetName = "fleet"
    private static let verified = "remove 'allow_unverified'; for another machine, write sslmode=verify-full in the URL"

    /// An error of the fleet, with its remedy.
    private mutating func add(_ error: FleetError, at server: String, _ what: String = fleetName) {
        var text = error.sentence(FleetError.Circumstances(server: server))
        if text.hasPrefix("fleet: ") { text.removeFirst("fleet: ".count) }
        add(error.isAway ? .unavailable : .wrong, what, text, remedy: error.advice)
    }

    // MARK: - The server

    /// Whether the connection is encrypted, and who vouches for the server.
    private mutating func checkEncryption(
        _ isEncrypted: Bool, _ version: String?, _ text: String, _ fleet: FleetSettings
    ) {
        // The address was read before.
        let url = try? FleetURL(text)
        let mode = url?["sslmode"] ?? ProcessSetup.environment("PGSSLMODE") ?? "prefer"
        guard isEncrypted else {
            let isOpen = fleet.allowsUnverified
            return add(
                isOpen ? .warning : .fine, Self.fleetName,
                isOpen
                    ? "the connection is not encrypted" : "the connection is not encrypted; it stays on this machine",
                remedy: isOpen ? Self.verified : nil)
        }
        let words = version ?? "TLS"
        if mode == "verify-full" || mode == "verify-ca" {
            let authority =
                url?["sslrootcert"] ?? ProcessSetup.environment("PGSSLROOTCERT") ?? "~/.postgresql/root.crt"
            let name = mode == "verify-full" ? "" : ", but nobody checks the server's name"
            return add(
                name.isEmpty ? .fine : .warning, Self.fleetName,
                "\(words); \(DisplayText.escape(authority)) vouches for the server's certificate\(name)",
                remedy: name.isEmpty ? nil : "write sslmode=verify-full in the URL")
        }
        add(
            fleet.allowsUnverified ? .warning : .fine, Self.fleetName,
            "\(words); nobody vouches for the server's certificate",
            remedy: fleet.allowsUnverified ? Self.verified : nil)
    }

    /// Its version, the time of a call, its clock, and a pooler in between.
    private mutating func checkServer(_ connection: inout PostgresConnection) throws(FleetError) {
        var pids: Set<Int64> = []
        var best = Duration.seconds(60)
        var difference: Int64 = 0
        for _ in 0..<Self.calls {
            let (start, wall) = (ContinuousClock.now, WallTime.now)
            let rows = try connection.run(
                "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint, pg_backend_pid()")
            let time = ContinuousClock.now - start
            if time < best {
                best = time
                difference = (rows.integer(0, 0) ?? wall.milliseconds) - wall.milliseconds - time.milliseconds / 2
            }
            pids.insert(rows.integer(0, 1) ?? 0)
        }
        let version = connection.serverVersion
        let text = "PostgreSQL \(version / 10_000).\(version % 10_000)"
        if version < Self.leastVersion {
            add(.wrong, Self.fleetName, "\(text) is too old for a fleet", remedy: "use PostgreSQL 15 or newer")
        } else {
            add(.fine, Self.fleetName, "\(text); a call takes \(Self.tenths(best)) ms")
        }
        let gap = DurationText.format(.milliseconds(abs(difference)))
        add(
            .fine, Self.fleetName,
            abs(difference) < 1000
                ? "the server's clock and this machine's agree"
                : "the server's clock is \(gap) \(difference > 0 ? "ahead of" : "behind") this machine's; nothing depends on it"
        )
        if pids.count > 1 {
            add(.fine, Self.fleetName, "calls go through a pooler in transaction mode, such as pgbouncer")
        }
    }

    private static let calls = 5

    private static func tenths(_ duration: Duration) -> String {
        let tenths = Int64((duration / .microseconds(100)).rounded(.up))
        return "\(tenths / 10).\(tenths % 10)"
    }

    private static let leastVersion: Int32 = 150_000

    // MARK: - The role

    /// Whether the role may do what an agent does, and no more.
    ///
    /// - Returns: whether there is a schema to look at.
    private mutating func checkRole(_ connection: inout PostgresConnection) throws(FleetError) -> Bool {
        let rows = try connection.run(
            """
            SELECT current_user::text, current_database()::text, to_regnamespace('inlet') IS NOT NULL,
                coalesce((SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname = current_user), false),
                coalesce(has_schema_privilege(to_regnamespace('inlet')::oid, 'USAGE'), false)
            """)
        let role = DisplayText.escape(rows[0, 0] ?? "")
        guard rows.boolean(0, 2) == true else {
            let database = DisplayText.escape(rows[0, 1] ?? "")
            add(
                .wrong, Self.fleetName, "the database \(database) has no fleet",
                remedy: "run 'inlet fleet init --url-file FILE' with an administrator's address")
            return false
        }
        let readable = try tables(&connection)
        let remedy = "use a login role that is a member of inlet_agent only; 'inlet fleet init' prints how to make one"
        if rows.boolean(0, 3) == true {
            add(.warning, Self.fleetName, "the role \(role) is a superuser", remedy: remedy)
        } else if !readable.isEmpty {
            let names = readable.joined(separator: ", ")
            add(.warning, Self.fleetName, "the role \(role) can read tables of the fleet (\(names))", remedy: remedy)
        } else if rows.boolean(0, 4) == true {
            add(.fine, Self.fleetName, "the role \(role) can read no table")
        } else {
            add(
                .wrong, Self.fleetName, "the role \(role) may not use the schema inlet",
                remedy: "have an owner run: GRANT inlet_agent TO \(role)")
        }
        return true
    }

    /// The first tables and views that the role can read; it needs none.
    private func tables(_ connection: inout PostgresConnection) throws(FleetError) -> [String] {
        let rows = try connection.run(
            """
            SELECT c.relname::text FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
            WHERE n.nspname = 'inlet' AND c.relkind IN ('r', 'p', 'v') AND NOT c.relispartition
                AND has_table_privilege(c.oid, 'SELECT') ORDER BY 1 LIMIT 3
            """)
        return (0..<rows.count).compactMap { rows[$0, 0] }.map { DisplayText.escape($0) }
    }

    /// Whether the schema has what this version calls, and the role may call it.
    private mutating func checkSchema(_ connection: inout PostgresConnection) throws(FleetError) -> Bool {
        let rows = try connection.run(
            """
            SELECT p.proname::text, bool_or(has_function_privilege(p.oid, 'EXECUTE')) FROM pg_catalog.pg_proc p
            JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
            WHERE n.nspname = 'inlet' AND p.proname LIKE 'v1\\_%' GROUP BY 1
            """)
        let found = (0..<rows.count).compactMap { row in rows[row, 0].map { ($0, rows.boolean(row, 1) == true) } }
        let allowed = Dictionary(found) { first, _ in first }
        let missing = Self.functions.filter { allowed[$0] == nil }
        let refused = Self.functions.filter { allowed[$0] == false }
        if let first = missing.first {
            add(
                .wrong, Self.fleetName, "the schema is older than this version of Inlet: it has no \(first)",
                remedy: "run 'inlet fleet init --url-file FILE' with an administrator's address")
        } else if let first = refused.first {
            add(
                .wrong, Self.fleetName, "the role may not call \(first)",
                remedy: "use a login role that is a member of inlet_agent")
        } else {
            add(
                .fine, Self.fleetName,
                "the schema has all \(Self.functions.count) functions of version \(FleetSchema.version)")
        }
        if let name = found.first(where: { $0.0.hasPrefix("v1_admin_") && $0.1 })?.0 {
            add(
                .warning, Self.fleetName, "the role may administer the fleet (\(DisplayText.escape(name)))",
                remedy: "give agents a role that is a member of inlet_agent only, and admin_url_file another")
        }
        return missing.isEmpty && refused.isEmpty
    }

    /// The functions of the schema that agents may call, sorted.
    private static let functions = Set(
        FleetSchema.sql.matches(of: /FUNCTION (?:inlet\.)?(v1_\w+)\(/).map { String($0.1) }
            .filter { !$0.hasPrefix("v1_admin_") && !$0.hasPrefix("v1_reader_") }
    ).sorted()

    /// Whether the server's log may hold the tokens of agents, which are parameters.
    private mutating func checkPrivacy(_ connection: inout PostgresConnection) throws(FleetError) {
        let names = ["log_parameter_max_length", "log_parameter_max_length_on_error"]
        for name in names {
            let rows = try connection.run("SELECT current_setting($1), current_database()::text", [.text(name)])
            guard let value = rows[0, 0], value != "0" else { continue }
            let database = DisplayText.escape(rows[0, 1] ?? "")
            add(
                .warning, Self.fleetName, "the server's log may show the tokens of agents (\(name) is \(value))",
                remedy: "have a superuser run: ALTER DATABASE \"\(database)\" SET \(name) = 0")
        }
    }

    private mutating func checkAdmin(_ source: FleetSettings.Source, _ fleet: FleetSettings, _ places: [String]) {
        let what = "fleet, admin_url_file"
        var server = "PostgreSQL"
        do throws(FleetError) {
            let address = try PostgresAddress(try source.read(), allowsUnverified: fleet.allowsUnverified)
            server = address.display
            var connection = try PostgresConnection(address, application: "inlet check")
            let rows = try connection.run(
                """
                SELECT current_user::text, bool_or(has_function_privilege(p.oid, 'EXECUTE')) FROM pg_catalog.pg_proc p
                JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
                WHERE n.nspname = 'inlet' AND p.proname = 'v1_admin_order'
                """)
            let role = DisplayText.escape(rows[0, 0] ?? "")
            guard rows.boolean(0, 1) == true else {
                return add(
                    .wrong, what, "the role \(role) is no member of inlet_admin",
                    remedy: "have an owner run: GRANT inlet_admin TO \(role)")
            }
            let found = try connection.run("SELECT max(version) FROM inlet.migration").integer(0, 0) ?? 0
            add(.fine, what, "the role \(role) may order agents; the schema's version is \(found)")
            try checkHolders(&connection, places)
            try checkFailover(&connection, what)
        } catch {
            add(error, at: server, what)
        }
    }

    /// Whether agents must report after a failover. An older schema does not say.
    private mutating func checkFailover(_ connection: inout PostgresConnection, _ what: String) throws(FleetError) {
        switch try connection.run("SELECT to_jsonb(s) ->> 'failover' FROM inlet.status s")[0, 0] {
        case "lossless"?:
            add(.fine, what, "after the promotion of a synchronous standby the fleet goes on after one lease at most")
        case "reports"?: add(.fine, what, "after the promotion of a standby all agents report")
        case "doubtful"?:
            add(
                .warning, what,
                """
                standbys are said to have all commits, but no agent saw commits wait for them in the last 2 minutes: \
                agents report after a failover
                """,
                remedy: """
                    name each standby in synchronous_standby_names, keep synchronous_commit on, and start an agent; or \
                    run 'inlet fleet init --failover reports'
                    """)
        default: break
        }
    }

    // MARK: - Shares

    /// Whether a share has its marker. Which one it should have only the fleet knows: the agent compares them.
    mutating func checkMarker(_ root: FilePath, _ place: String, _ name: String) {
        let (share, seen) = (DisplayText.escape(place), PlaceMarker.read(in: root))
        let trouble =
            seen.trouble(in: root, expected: nil) ?? "it has no marker (\(PlaceMarker.path(in: root).display))"
        switch seen {
        case .found(let marker):
            add(.fine, name, "it is the fleet's share '\(share)', with the marker \(marker)")
            // Without the table of mounts nobody can tell.
            guard (try? MountTable.current())?.mount(of: root.resolved)?.inventsInodes == true else { return }
            add(
                .warning, name,
                "it is mounted without 'serverino': files of other agents look replaced here, and their sources stay",
                remedy: "mount it with 'serverino' on all machines")
        case .missing:
            // Without the table of mounts the agent makes no first marker, and says why.
            let doubt = (try? FileSystemLayout.current()).flatMap { PlaceMarker.doubt(about: root, in: $0) }
            if let doubt {
                return add(
                    .warning, name, "no agent makes the first marker of the fleet's share '\(share)': \(doubt)",
                    remedy: "mount the share; an empty folder that is no mount gets its marker with its first file")
            }
            add(
                .warning, name, "\(trouble): the first agent of the fleet's share '\(share)' makes it",
                remedy: "mount the share, if an agent has watched it before; without its marker nothing is read")
        case .away, .unreadable:
            add(.warning, name, trouble, remedy: "mount the share, and let Inlet read its marker")
        }
    }

    /// The holder of each share, as an administrator's role sees it.
    private mutating func checkHolders(
        _ connection: inout PostgresConnection, _ places: [String]
    ) throws(FleetError) {
        guard !places.isEmpty else { return }
        let rows = try connection.run("SELECT name, CASE WHEN held THEN holder END FROM inlet.places")
        for row in 0..<rows.count {
            guard let name = rows[row, 0], places.contains(name) else { continue }
            let holder = rows[row, 1].map { "\(DisplayText.escape($0)) lists it" } ?? "no agent lists it now"
            add(.fine, "share \(DisplayText.escape(name))", holder)
        }
    }

    /// Reports what the files of shares do without, and the destinations that enforce nothing.
    private mutating func checkShares(_ settings: Settings) {
        let shares = settings.watch.compactMap(\.place).map { "share \(DisplayText.escape($0))" }
        guard let first = shares.first else { return }
        let what = shares.count == 1 ? first : "shares"
        for route in settings.routes {
            let idle = Self.idleInShares(route)
            guard !idle.isEmpty else { continue }
            add(
                .warning, what,
                "the route '\(route.name)' has \(idle.joined(separator: ", ")), which does not apply there: each file "
                    + "of a share goes alone")
        }
        for destination in settings.destinations {
            guard let type = DestinationKinds.named(destination.type)?.type, type.folderKey != nil else { continue }
            add(
                .fine, what,
                "destination '\(destination.name)' is a folder: it must be the same one for all agents of the share")
        }
        add(
            .fine, what,
            "two agents never send to one key, but a late request may still arrive; stores with create-only "
                + "(If-None-Match) refuse it, others get the same bytes; test with 'inlet check --upload'")
    }

    /// The features of a route that its files in shares do without.
    private static func idleInShares(_ route: Route) -> [String] {
        var idle: [String] = []
        if route.sidecars.metadata || !route.sidecars.extensions.isEmpty { idle.append("sidecars") }
        if route.unit != .file { idle.append("unit: folder") }
        if route.completion != .quiet { idle.append("completion: marker") }
        if !route.derive.isEmpty { idle.append("derive") }
        if route.dedupe != .off { idle.append("dedupe") }
        if route.manifest != nil { idle.append("manifest") }
        return idle
    }

    // MARK: - Prefixes

    /// Whether the keys of routes lie in the folder that this agent has for itself.
    private mutating func checkPrefixes(_ settings: Settings) {
        for destination in settings.destinations {
            guard let prefix = destination.fleet.prefix,
                let type = DestinationKinds.named(destination.type)?.type
            else { continue }
            for route in settings.routes where route.to.contains(destination.name) {
                let form = route.names[destination.name] ?? type.nameForm(destination.values)
                let fields = KeyFields(
                    path: "folder/file.ext", modified: 0, category: "c", admitted: .now, sequence: 1, zone: "UTC")
                if route.key.key(fields, form).hasPrefix(prefix) { continue }
                add(
                    .warning, "destination \(destination.name)",
                    "keys of the route '\(route.name)' do not begin with the prefix '\(DisplayText.escape(prefix))': "
                        + "each asks PostgreSQL",
                    remedy: "begin the route's 'key' with \(DisplayText.escape(prefix))")
            }
        }
    }

    /// Whether the fleet would refuse a prefix, because another agent has it, a part of it, or a folder around it.
    private mutating func checkOverlaps(
        _ connection: inout PostgresConnection, _ fleet: FleetSettings, _ settings: Settings,
        _ destinations: [Destination]
    ) throws(FleetError) {
        for destination in destinations {
            guard let address = destination.address,
                let own = settings.destinations.first(where: { $0.name == destination.name })?.fleet.prefix
            else { continue }
            let hash = FleetLink.hash(of: address, type: destination.type)
            let rows = try connection.run(
                "SELECT inlet.v1_prefix_overlap($1, $2, $3)", [.text(fleet.agentName), .bytes(hash), .text(own)])
            let (what, prefix) = ("destination \(destination.name)", DisplayText.escape(own))
            if let other = rows[0, 0] {
                add(
                    .warning, what,
                    "the fleet refuses the prefix '\(prefix)': it overlaps with one of \(DisplayText.escape(other))",
                    remedy: "give this agent another prefix")
            } else {
                add(.fine, what, "no prefix of another agent overlaps with '\(prefix)'")
            }
        }
    }
}
