import InletCore
import InletTestSupport
import Testing

@testable import InletFleet

/// Statements and their errors, at one PostgreSQL that all tests share.
@Suite(.enabled(if: PostgresCluster.isThere, Comment(rawValue: PostgresCluster.reason)))
struct PostgresConnectionTests {
    private let cluster: PostgresCluster

    init() throws { cluster = try PostgresCluster.shared() }

    private func connect(_ url: String? = nil) throws -> PostgresConnection {
        let address = try PostgresAddress(url ?? cluster.url, allowsUnverified: false)
        return try PostgresConnection(address, application: "inlet")
    }

    @Test func `each kind of value arrives as it was sent`() throws {
        var connection = try connect()
        let words = ["a,b", "quote \" and \\", nil, "NULL", "", "{}", " ü ", "line\nend"]
        let bytes: [UInt8] = [0, 1, 0x5C, 0xFF, 0]
        let rows = try connection.run(
            """
            SELECT $1::text, $2::bigint, $3::boolean, $4, $5::text[], $6::bigint[], $7::uuid[], $8::bytea[], $9::text,
                ARRAY[true, NULL, false], array_length($5, 1), length($4)
            """,
            [
                .text("it's \"ü\" \\"), .integer(.min), .boolean(true), .bytes(bytes), .texts(words),
                .integers([1, nil, .max]), .uuids(["2f1c0d9e-0000-4000-8000-00000000000a"]),
                .byteArrays([[], [0, 0xFF]]), .null,
            ])
        #expect(rows.count == 1)
        #expect(rows[0, 0] == "it's \"ü\" \\")
        #expect(rows.integer(0, 1) == .min)
        #expect(rows.boolean(0, 2) == true)
        #expect(rows.bytes(0, 3) == bytes)
        #expect(rows.texts(0, 4) == words)
        #expect(rows.texts(0, 5) == ["1", nil, String(Int64.max)])
        #expect(rows.texts(0, 6) == ["2f1c0d9e-0000-4000-8000-00000000000a"])
        #expect(rows.texts(0, 7) == ["\\x", "\\x00ff"])
        #expect(rows[0, 8] == nil && rows.columns.count == 12)
        #expect(rows.booleans(0, 9) == [true, false, false])
        #expect(rows.integer(0, 10) == 8 && rows.integer(0, 11) == 5)
    }

    @Test func `empty arrays and no bytes are values`() throws {
        var connection = try connect()
        let rows = try connection.run(
            "SELECT $1::text[] = '{}', $2::bytea = '', $3::bytea[] = '{}'", [.texts([]), .bytes([]), .byteArrays([])])
        #expect((0..<3).map { rows.boolean(0, $0) } == [true, true, true])
    }

    @Test func `a text that PostgreSQL cannot hold is refused before it is cut`() throws {
        var connection = try connect()
        #expect(Self.code { _ = try connection.run("SELECT $1::text", [.text("a\0b")]) } == .argument)
        #expect(Self.code { _ = try connection.run("SELECT $1::text[]", [.texts(["a\0b"])]) } == .argument)
    }

    @Test(
        arguments: [
            ("IN001", .schema), ("IN002", .unknownAgent), ("IN003", .sessionOver), ("IN004", .isAlive),
            ("IN005", .usedTwice), ("IN006", .reportFirst), ("IN007", .wentBack), ("IN008", .nothingGranted),
            ("IN009", .fenced), ("IN010", .notMember), ("IN011", .argument), ("IN099", .fault), ("08006", .away),
            ("53100", .away), ("57014", .away), ("25006", .away), ("55P03", .away), ("28000", .refused),
            ("42501", .refused), ("3D000", .argument), ("XX000", .fault), ("23505", .fault),
        ] as [(String, FleetError.Code)])
    func `a SQLSTATE becomes the code that callers branch on`(sqlstate: String, code: FleetError.Code) throws {
        var connection = try connect()
        let sql = "DO $$ BEGIN RAISE EXCEPTION 'said v1_x' USING ERRCODE = '\(sqlstate)', DETAIL = 'more'; END $$"
        let error = try #require(throws: FleetError.self) { _ = try connection.run(sql) }
        #expect(error.code == code)
        #expect(error.message.contains("said v1_x") && error.detail == "more" && error.function == "v1_x")
        #expect(code != .fault || error.message.hasPrefix("v1_x failed"))
        #expect(try connection.run("SELECT 1")[0, 0] == "1")
    }

    @Test func `a database without a fleet says how it gets one`() throws {
        var connection = try connect()
        let error = try #require(throws: FleetError.self) { _ = try connection.run("SELECT nowhere.v1_hello(1)") }
        #expect(error.code == .schema)
        #expect(error.message.contains("inlet fleet init"))
    }

    @Test func `a full disk is told in the server's words`() throws {
        var connection = try connect()
        let words = "could not extend file \"base/1/2\": No space left on device"
        let error = try #require(throws: FleetError.self) {
            _ = try connection.run("DO $$ BEGIN RAISE EXCEPTION '\(words)' USING ERRCODE = '53100'; END $$")
        }
        #expect(error.isAway && error.message.contains(words))
    }

    @Test(arguments: ["40001", "40P01"])
    func `a conflict is tried again until it passes`(sqlstate: String) throws {
        var connection = try connect()
        let name = "conflict_\(sqlstate.lowercased())"
        try connection.runScript(
            """
            CREATE SEQUENCE \(name);
            CREATE FUNCTION \(name)() RETURNS bigint LANGUAGE plpgsql AS $$
            DECLARE n bigint := nextval('\(name)'); BEGIN
                IF n < 3 THEN RAISE EXCEPTION 'conflict' USING ERRCODE = '\(sqlstate)'; END IF;
                RETURN n;
            END $$
            """)
        #expect(try connection.run("SELECT \(name)()")[0, 0] == "3")
    }

    @Test func `a conflict within a transaction is the caller's`() throws {
        var connection = try connect()
        _ = try connection.run("BEGIN")
        #expect(
            Self.code { _ = try connection.run("DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '40001'; END $$") }
                == .away)
        #expect(Self.code { _ = try connection.run("SELECT 1") } == .fault)
    }

    @Test func `a script that fails leaves nothing behind, no transaction either`() throws {
        var connection = try connect()
        let failure = Self.code {
            try connection.runScript("BEGIN; CREATE TABLE half (a int); SELECT 1 / 0; COMMIT")
        }
        #expect(failure == .fault)
        #expect(try connection.run("SELECT to_regclass('half')")[0, 0] == nil)
        try connection.runScript("BEGIN; CREATE TABLE whole (a int); INSERT INTO whole VALUES (1); COMMIT")
        #expect(try connection.run("SELECT count(*) FROM whole")[0, 0] == "1")
    }

    @Test func `rows are streamed one by one, and the connection goes on`() throws {
        var connection = try connect()
        var (sum, most) = (Int64(0), 0)
        try connection.stream("SELECT generate_series(1, $1::int)", [.integer(20_000)]) { row in
            sum += row.integer(0, 0) ?? 0
            most = max(most, row.count)
        }
        #expect(sum == 200_010_000 && most == 1)
        let isUsable = connection.isUsable
        #expect(isUsable)
        #expect(try connection.run("SELECT 2")[0, 0] == "2")
    }

    @Test func `a stream that breaks off is an error after the rows that came`() throws {
        var connection = try connect()
        var rows: [String?] = []
        let error = Self.code {
            try connection.stream("SELECT 6 / (3 - g) FROM generate_series(1, 5) g", []) { rows.append($0[0, 0]) }
        }
        #expect(error == .fault && rows == ["3", "6"])
        let isUsable = connection.isUsable
        #expect(!isUsable)
    }

    @Test func `a stream that its reader leaves makes the connection unusable`() throws {
        struct Enough: Error {}
        var connection = try connect()
        #expect(throws: Enough.self) {
            try connection.stream("SELECT generate_series(1, 1000)", []) { _ in throw Enough() }
        }
        #expect(Self.code { _ = try connection.run("SELECT 1") } == .away)
    }

    @Test func `the server is described`() throws {
        var connection = try connect()
        let version = try #require(try connection.run("SELECT current_setting('server_version_num')").integer(0, 0))
        let (found, isEncrypted, tls) = (connection.serverVersion, connection.isEncrypted, connection.tlsVersion)
        #expect(Int64(found) == version && !isEncrypted && tls == nil)
        #expect(try connection.run("SELECT current_setting('application_name')")[0, 0] == "inlet")
    }

    @Test func `a server's words are one line of plain text`() throws {
        var connection = try connect()
        let sql =
            "DO $$ BEGIN RAISE EXCEPTION E'one\\n\\ttwo \\x1b[31m %', repeat('x', 400) USING ERRCODE = 'IN009'; END $$"
        let error = try #require(throws: FleetError.self) { _ = try connection.run(sql) }
        #expect(error.message.hasPrefix("one two \\x1B[31m"))
        #expect(error.message.count <= 300)
    }

    @Test func `a server that repeats the password does not get it into a message`() throws {
        let canary = Canary("canary-0815-word")
        var connection = try connect(cluster.url(user: "postgres", password: canary.text))
        let error = try #require(throws: FleetError.self) { _ = try connection.run("SELECT '\(canary.text)'::int") }
        #expect(error.message.contains("***"))
        #expect(canary.trace(in: "\(error) \(String(reflecting: error))") == nil)
        let detail = try #require(throws: FleetError.self) {
            _ = try connection.run("DO $$ BEGIN RAISE EXCEPTION 'x' USING DETAIL = '\(canary.text)'; END $$")
        }
        #expect(detail.detail == "***")
    }

    static func code(_ body: () throws -> Void) -> FleetError.Code? {
        do {
            try body()
            return nil
        } catch { return (error as? FleetError)?.code }
    }
}
