package import InletCore

/// The fleet for people: makes and migrates its schema, reads its views, gives its orders.
///
/// Blocks. `initialise` needs a superuser, or a role that may create roles and schemas; the orders need a member of
/// `inlet_admin`, the views one of `inlet_reader`.
package struct FleetAdministration: ~Copyable {
    private var connection: PostgresConnection

    package init(_ connection: consuming PostgresConnection) { self.connection = connection }

    // MARK: - The schema

    /// Makes the schema, or brings it to this program's version, in one transaction. Again, it changes nothing.
    ///
    /// - Throws: `.schema` for a newer schema, an older server, and a database that is not UTF8; `.refused` for a role that
    ///   may not.
    package mutating func initialise() throws(FleetError) -> FleetSchemaReport {
        let found = try connection.run(
            """
            SELECT current_setting('server_version_num')::int, current_setting('server_version'),
                current_setting('server_encoding'), current_database(), to_regclass('inlet.migration') IS NOT NULL,
                current_user, (SELECT r.rolsuper OR r.rolcreaterole
                        AND has_database_privilege(current_database(), 'CREATE')
                    FROM pg_roles r WHERE r.rolname = current_user)
            """)
        let database = found[0, 3] ?? ""
        try Self.check(server: found)
        let before = found.boolean(0, 4) == true ? try version() : nil
        if let before, before > FleetSchema.version {
            throw FleetError(
                .schema,
                """
                the schema in \(DisplayText.escape(database)) has version \(before), this program knows \
                \(FleetSchema.version); update Inlet on this machine
                """)
        }
        try connection.runScript(FleetSchema.sql)
        let hidden = try connection.run(
            """
            SELECT current_setting('log_parameter_max_length') = '0' OR EXISTS (
                SELECT FROM pg_db_role_setting s JOIN pg_database d ON d.oid = s.setdatabase
                WHERE d.datname = current_database() AND s.setrole = 0
                    AND 'log_parameter_max_length=0' = ANY (s.setconfig))
            """)
        return FleetSchemaReport(
            before: before, database: database, hidesParameters: hidden.boolean(0, 0) == true)
    }

    private mutating func version() throws(FleetError) -> Int? {
        try connection.run("SELECT max(version) FROM inlet.migration").integer(0, 0).map { Int($0) }
    }

    private static func check(server found: PostgresRows) throws(FleetError) {
        guard let number = found.integer(0, 0), number >= 150_000 else {
            throw FleetError(
                .schema,
                """
                a fleet needs PostgreSQL 15 or newer; this server is \(DisplayText.escape(found[0, 1] ?? "older")). \
                Update it, or use another server
                """)
        }
        guard found[0, 2] == "UTF8" else {
            throw FleetError(
                .schema,
                """
                the database has the encoding \(DisplayText.escape(found[0, 2] ?? "?")), and a fleet needs UTF8; \
                use another one: CREATE DATABASE inlet ENCODING 'UTF8' TEMPLATE template0
                """)
        }
        guard found.boolean(0, 6) == true else {
            throw FleetError(
                .refused,
                """
                the role \(DisplayText.escape(found[0, 5] ?? "")) may not make roles and schemas; connect as a \
                superuser, or as a role with CREATEROLE and CREATE on the database
                """)
        }
    }

    // MARK: - Orders

    /// A new secret to join with; the one before is void. This is the only time that it is seen.
    package mutating func newSecret() throws(FleetError) -> String {
        let secret = Base32.text([UInt8].unforeseeable(32))
        try order("v1_admin_secret($1::bytea)", [.bytes(Array(secret.utf8))])
        return secret
    }

    /// No agent can join any more. Members stay.
    package mutating func closeSecret() throws(FleetError) {
        try order("v1_admin_secret(NULL::bytea)", [])
    }

    /// nil leaves it as it is.
    package mutating func settings(name: String?, ttl: Duration?, days: Int?) throws(FleetError) {
        try order(
            "v1_admin_settings($1::text, $2::bigint * interval '1 ms', $3::int)",
            [.text(or: name), .integer(or: ttl?.milliseconds), .integer(or: days.map { Int64($0) })])
    }

    /// Whether only standbys are promoted for which commits wait: then agents need not report after a failover.
    package mutating func promise(isLossless: Bool) throws(FleetError) {
        try order("v1_admin_failover($1::boolean)", [.boolean(isLossless)])
    }

    /// Sets the limit of a destination for all agents together. It holds instead of those in configurations; without a
    /// bandwidth and slots these hold again.
    ///
    /// - Parameter destination: its label, or its number where two have the same label.
    package mutating func setLimit(destination: String, bandwidth: Int64?, slots: Int?) throws(FleetError) {
        let all = try destinations()
        let meant = all.filter { $0.label == destination }
        let byNumber = all.first { "\($0.id)" == destination }
        guard meant.count <= 1 || byNumber != nil else {
            let numbers = meant.map { "\($0.id) (\(DisplayText.escape($0.type)))" }.joined(separator: ", ")
            throw FleetError(
                .argument,
                "\(meant.count) destinations are called \(DisplayText.escape(destination)); use a number: \(numbers)")
        }
        guard let row = meant.count == 1 ? meant.first : byNumber else {
            let labels = all.map { DisplayText.escape($0.label) }.joined(separator: ", ")
            throw FleetError(
                .argument,
                """
                the fleet has no destination \(DisplayText.escape(destination)); \
                \(all.isEmpty ? "no agent has used one yet" : "it has \(labels)")
                """)
        }
        try order(
            "v1_admin_limit($1::int, $2::bigint, $3::int)",
            [.integer(Int64(row.id)), .integer(or: bandwidth), .integer(or: slots.map { Int64($0) })])
    }

    /// The database was restored: all agents report again before anything is granted.
    package mutating func restored(_ why: String?) throws(FleetError) {
        try order("v1_admin_restored($1::text)", [.text(or: why)])
    }

    /// Goes on without the report of an agent: its keys may be given again.
    /// - Returns: the fleet's state.
    @discardableResult
    package mutating func waive(_ name: String) throws(FleetError) -> String {
        try order("v1_admin_waive($1::text)", [.text(name)]) ?? ""
    }

    /// - Parameter state: `active`, `draining` or `retired`; a retired agent stays so.
    package mutating func setAgent(_ name: String, state: String) throws(FleetError) {
        try order("v1_admin_agent($1::text, $2::text)", [.text(name), .text(state)])
    }

    /// Gives an agent an order, which is void after `time`.
    /// - Returns: the order's UUID.
    @discardableResult
    package mutating func order(
        _ agent: String, verb: String, args: JSONObject = [:], within time: Duration = .seconds(86_400)
    ) throws(FleetError) -> String {
        try order(
            "v1_admin_order($1::text, $2::text, $3::jsonb, $4::bigint * interval '1 ms')",
            [.text(agent), .text(verb), .text(JSONValue.object(args).text), .integer(time.milliseconds)]) ?? ""
    }

    @discardableResult
    private mutating func order(_ call: String, _ values: [PostgresValue]) throws(FleetError) -> String? {
        try connection.run("SELECT inlet.\(call)", values)[0, 0]
    }
}

// MARK: - Views

extension FleetAdministration {
    package mutating func status() throws(FleetError) -> FleetStatus {
        let found: [FleetStatus] = try rows(of: "inlet.status r")
        guard let status = found.first else {
            throw FleetError(.fault, "the schema has lost its fleet; run 'inlet fleet init' again")
        }
        return status
    }

    /// By name.
    package mutating func agents() throws(FleetError) -> [FleetAgentRow] {
        try rows(of: "inlet.agents r ORDER BY r.name")
    }

    /// By name.
    package mutating func places() throws(FleetError) -> [FleetPlaceRow] {
        try rows(of: "inlet.places r ORDER BY r.name")
    }

    /// By label.
    package mutating func destinations() throws(FleetError) -> [FleetDestinationRow] {
        try rows(of: "inlet.destinations r ORDER BY r.label, r.id")
    }

    /// The newest receipts whose file's name (in any case) or key begins with `text`, or that have this SHA-256.
    package mutating func search(_ text: String, limit: Int) throws(FleetError) -> [FleetReceiptRow] {
        try rows(of: "inlet.v1_reader_search($1::text, $2::int) r", [.text(text), .integer(Int64(limit))])
    }

    /// Gives the receipts that the fleet has heard of since then, one by one and about in their order. Sorting them would
    /// keep the first one until the last is read.
    package mutating func receipts(since time: WallTime, _ body: (FleetReceiptRow) throws -> Void) throws {
        try connection.stream(
            "SELECT to_jsonb(r) FROM inlet.receipts r WHERE r.at >= to_timestamp($1::bigint / 1000.0)",
            [.integer(time.milliseconds)]
        ) { rows in
            let row: FleetReceiptRow = try Self.row(rows, 0)
            try body(row)
        }
    }

    private mutating func rows<Row: Decodable>(
        of view: String, _ values: [PostgresValue] = []
    ) throws(FleetError) -> [Row] {
        let found = try connection.run("SELECT to_jsonb(r) FROM \(view)", values)
        var rows: [Row] = []
        for index in 0..<found.count { rows.append(try Self.row(found, index)) }
        return rows
    }

    private static func row<Row: Decodable>(_ rows: PostgresRows, _ index: Int) throws(FleetError) -> Row {
        guard let row: Row = JSON.note(rows[index, 0].map { Array($0.utf8) }) else {
            throw FleetError(
                .schema, "a view of the schema has another shape than this program knows; update Inlet on this machine")
        }
        return row
    }
}

extension PostgresValue {
    fileprivate static func text(or text: String?) -> Self { text.map { .text($0) } ?? .null }
    fileprivate static func integer(or number: Int64?) -> Self { number.map { .integer($0) } ?? .null }
}
