import Foundation
import InletCore
import InletTestSupport
import Testing

@testable import InletFleet

/// Open work of places, its ends in batches, and versions of the schema side by side.
@Suite(.enabled(if: PostgresCluster.isThere, Comment(rawValue: PostgresCluster.reason)))
struct SchemaPlaceTests {
    private struct Claim {
        var work: Int64
        var fence: Int64

        func row(_ outcome: String) -> String {
            #"{"work": \#(work), "fence": \#(fence), "outcome": "\#(outcome)", "after_ms": 0}"#
        }
        func noting(_ notes: String) -> String { #"{"work": \#(work), "fence": \#(fence), "notes": \#(notes)}"# }
    }

    /// As a later version could have it.
    private static let migration =
        """
        BEGIN;
        SET LOCAL ROLE inlet_owner;
        ALTER TABLE inlet.agent ADD COLUMN site text NOT NULL DEFAULT 'here';
        ALTER TABLE inlet.beat ADD COLUMN load int;
        ALTER TABLE inlet.destination ADD COLUMN region text;
        ALTER TABLE inlet.content ADD COLUMN seen_by int[];
        ALTER TABLE inlet.receipt ADD COLUMN country text;
        ALTER TABLE inlet.work ADD COLUMN hint jsonb;
        ALTER TABLE inlet.share ADD COLUMN burst bigint;
        CREATE TABLE inlet.site (name text PRIMARY KEY);
        CREATE FUNCTION inlet.v2_reserve(p_agent int, p_token bytea, p_session bigint, p_keys text[]) RETURNS int
            LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS 'SELECT cardinality(p_keys)';
        GRANT EXECUTE ON FUNCTION inlet.v2_reserve TO inlet_agent;
        INSERT INTO inlet.migration (version) VALUES (2);
        COMMIT;
        """

    private let fleet: SchemaFleet
    private let marker = UUID().uuidString

    init() throws { fleet = try SchemaFleet() }

    private func code(_ call: () throws -> Void) -> FleetError.Code? { SchemaFleet.code(call) }

    private func member(_ name: String) throws -> SchemaAgent {
        let agent = try fleet.agent(name)
        try agent.ask("v1_place", [.text("media"), .text(marker)])
        return agent
    }

    /// Versions with a delivery each, admitted by `holder`.
    private func admit(_ holder: SchemaAgent, _ count: Int) throws {
        let held = try holder.askMarked("v1_hold", [.integers([1])])
        let rows = (0..<count).map { file in
            """
            {"path": "\(UUID().uuidString)", "version": "\(UUID().uuidString)", "name": "bg==", "size": 1, \
            "destination": 1, "ref": \(file), "key": "k\(file)"}
            """
        }
        let answer = try holder.askMarked(
            "v1_admit",
            [.integer(1), .integer(held.integer(0, 1) ?? 0), .text("[\(rows.joined(separator: ","))]")])
        #expect(answer.booleans(0, 1) == rows.map { _ in true })
    }

    private func claim(_ agent: SchemaAgent, _ count: Int) throws -> [Claim] {
        let rows = try agent.askMarked("v1_claim", [.integers([1]), .integer(Int64(count))])
        return (0..<rows.count).map { Claim(work: rows.integer($0, 0) ?? 0, fence: rows.integer($0, 1) ?? 0) }
            .sorted { $0.work < $1.work }
    }

    private func settle(_ agent: SchemaAgent, _ rows: [String]) throws -> [[String?]] {
        let answer = try agent.askMarked("v1_settle_many", [.text("[\(rows.joined(separator: ","))]")])
        return (0..<answer.count).map { row in (0..<3).map { answer[row, $0] } }
    }

    @Test func `in a batch of ends a stale row is refused, and the others count`() throws {
        let (one, two) = (try member("one"), try member("two"))
        try admit(one, 6)
        let claims = try claim(one, 6)
        let taken = try #require(claims.last)
        // Another has it meanwhile.
        try fleet.run(
            "UPDATE inlet.work SET agent = \(two.id), session = \(two.session), fence = 9 WHERE id = \(taken.work)")
        let old = Claim(work: claims[4].work, fence: claims[4].fence - 1)
        let answer = try settle(
            one,
            [
                claims[0].row("delivered"), taken.row("delivered"), claims[1].row("failed"), old.row("delivered"),
                claims[2].row("finished"), claims[2].row("park"), claims[0].row("delivered"), claims[3].row("retry"),
            ])
        #expect(answer.map { $0[1] } == [nil, "IN009", nil, "IN009", "IN011", nil, "IN011", nil])
        #expect(answer.map { $0[0] } == [0, 5, 1, 4, 2, 2, 0, 3].map { "\(claims[$0].work)" })
        #expect(answer.map { $0[2] != nil } == [true, false, true, false, false, false, false, false])
        let ends = [answer[0], answer[2]].map { Claim(work: Int64($0[2] ?? "") ?? 0, fence: 1) }
        #expect(try settle(one, ends.map { $0.row("finished") }).map { $0[1] } == [nil, nil])
        #expect(
            try fleet.run("SELECT state::text, count(*) FROM inlet.file GROUP BY 1 ORDER BY 1")
                == [["f", "1"], ["o", "4"], ["x", "1"]])
        #expect(
            try fleet.run("SELECT id, state::text FROM inlet.work ORDER BY 1")
                == [2, 3, 4, 5].map { ["\(claims[$0].work)", ["p", "r", "c", "c"][$0 - 2]] })
        #expect(code { _ = try settle(one, (0..<501).map { _ in old.row("retry") }) } == .argument)
        #expect(try settle(one, []).isEmpty)
    }

    @Test func `the last delivery of a version gives one finish, also when several end in one batch`() throws {
        let one = try member("one")
        try admit(one, 3)
        // Three deliveries of one version.
        try fleet.run(
            "UPDATE inlet.work w SET path = x.path, version = x.version FROM (SELECT * FROM inlet.work LIMIT 1) x")
        try fleet.run("DELETE FROM inlet.file f WHERE NOT EXISTS (SELECT FROM inlet.work w WHERE w.path = f.path)")
        try fleet.run("UPDATE inlet.file SET remaining = 3")
        let claims = try claim(one, 3)
        #expect(try settle(one, [claims[0].row("delivered")])[0][2] == nil)
        let answer = try settle(one, [claims[1].row("delivered"), claims[2].row("delivered")])
        #expect(answer.map { $0[2] != nil } == [false, true])
        #expect(try fleet.value("SELECT state::text || remaining FROM inlet.file") == "d0")
        // One by one it is the same function.
        let finish = Int64(answer[1][2] ?? "") ?? 0
        let end: [PostgresValue] = [.integer(finish), .integer(1), .text("finished"), .integer(0), .null, .null]
        #expect(try one.askMarked("v1_settle", end).count == 1)
        #expect(code { try one.askMarked("v1_settle", end) } == .fenced)
        #expect(try fleet.value("SELECT state::text FROM inlet.file") == "f")
    }

    @Test func `in a batch of notes a stale row is refused, and the others are kept`() throws {
        let one = try member("one")
        try admit(one, 3)
        let claims = try claim(one, 3)
        let old = Claim(work: claims[1].work, fence: 99)
        let rows = [
            claims[0].noting(#"{"upload": "u"}"#), old.noting(#"{"upload": "stale"}"#), claims[2].noting("null"),
        ]
        let answer = try one.askMarked("v1_note_many", [.text("[\(rows.joined(separator: ","))]")])
        #expect((0..<3).map { answer[$0, 1] } == [nil, "IN009", nil])
        #expect((answer.integer(0, 3) ?? 0) > 0)
        #expect(
            try fleet.run("SELECT notes::text FROM inlet.work ORDER BY id")
                == [[#"{"upload": "u"}"#], [nil], [nil]])
        let late: [PostgresValue] = [.integer(old.work), .integer(old.fence), .null]
        #expect(code { try one.askMarked("v1_note", late) } == .fenced)
        #expect(throws: Never.self) {
            try one.askMarked("v1_note", [.integer(claims[1].work), .integer(claims[1].fence), .null])
        }
    }

    @Test func `an agent that is no member of a place reports nothing of it`() throws {
        let (one, stranger) = (try member("one"), try fleet.agent("stranger"))
        try admit(one, 1)
        let file = try fleet.run("SELECT path, version FROM inlet.file")[0].map { $0 ?? "" }
        let finished: [PostgresValue] = [.integer(1), .uuids([file[0]]), .uuids([file[1]])]
        #expect(code { try stranger.ask("v1_again_finished", finished) } == .notMember)
        #expect(code { try stranger.ask("v1_again_admitted", [.integer(1), .text("[]")]) } == .notMember)
        #expect(code { try stranger.ask("v1_known", finished) } == .notMember)
        #expect(
            code { try stranger.ask("v1_again_keys", [.integer(1), .texts(["a"]), .integers([1]), .integer(1)]) }
                == .notMember)
        #expect(try one.ask("v1_known", finished).booleans(0, 0) == [true])
        try one.ask("v1_again_finished", finished)
        #expect(try fleet.value("SELECT count(*) FROM inlet.work") == "0")
    }

    @Test func `the claim finds due work by its index, however much waits`() throws {
        let one = try member("one")
        try fleet.run(
            """
            INSERT INTO inlet.work (place, path, version, priority, next_at, name, size, destination, ref, key)
            SELECT 1, gen_random_uuid(), gen_random_uuid(), n % 3, now() + (n % 2) * interval '1 day', '', 1, 1, n, 'k'
            FROM generate_series(1, 30000) n
            """)
        try fleet.run("ANALYZE inlet.work")
        // The statement of the function, with its values.
        let body = try #require(
            try fleet.value(
                "SELECT prosrc FROM pg_proc WHERE proname = 'v1_claim' AND pronamespace = 'inlet'::regnamespace"))
        let start = try #require(body.range(of: "WITH mine AS")), end = try #require(body.range(of: ";\nEND"))
        let values = [
            ("p_agent", "\(one.id)"), ("p_session", "\(one.session)"), ("ANY (p_places)", "ANY ('{1}'::int[])"),
            ("p_count", "20"), ("WHERE may ", "WHERE true "), (" t\n", " now()\n"), ("<= t -", "<= now() -"),
            ("< t ", "< now() "),
            ("< t)", "< now())"),
        ]
        let statement = values.reduce(String(body[start.lowerBound..<end.lowerBound])) {
            $0.replacing($1.0, with: $1.1)
        }
        let plan = try fleet.run("EXPLAIN \(statement)").map { $0[0] ?? "" }.joined(separator: "\n")
        #expect(plan.contains("using work_ready"), "\(plan)")
        #expect(!plan.contains("Seq Scan on work"), "\(plan)")
        let claims = try claim(one, 20)
        #expect(claims.count == 20)
        let urgent = try fleet.value("SELECT count(*) FROM inlet.work WHERE state = 'c' AND priority = 0")
        #expect(urgent == "20")
    }

    /// The rule for later versions: migrations add.
    @Test func `a migration that adds a column, a table and a function leaves agents of v1 working`() throws {
        let (one, two) = (try member("one"), try member("two"))
        let destination = try one.destination()
        for agent in [one, two] { try useAll(agent, destination, seq: 1) }
        var owner = try fleet.connect()
        try owner.runScript(Self.migration)
        // Sessions from before go on, and new ones begin.
        try two.hello()
        for agent in [one, two] {
            try useAll(agent, destination, seq: 2)
            #expect(try agent.ask("v2_reserve", [.texts(["x", "y"])]).integer(0, 0) == 2)
        }
        #expect(try one.ask("v1_search", [.text("a.mov"), .integer(5)]).count == 4)
        try fleet.agent("three").ask("v1_upkeep")
        try admit(one, 2)
        let claims = try claim(two, 2)
        #expect(try settle(two, claims.map { $0.row("delivered") }).map { $0[1] } == [nil, nil])
    }

    private func useAll(_ agent: SchemaAgent, _ destination: Int64, seq: Int64) throws {
        let key = "\(agent.name)/\(seq)"
        try agent.askMarked("v1_beat", [.boolean(true)])
        #expect(try agent.reserve(destination, [key], [1]) == [true])
        let content: [PostgresValue] = [
            .integer(destination), .bytes(SHA256.bytes(of: key.utf8)), .integer(1), .integer(1), .integer(1),
        ]
        #expect(try agent.askMarked("v1_content", content)[0, 1] == "own")
        try agent.askMarked("v1_content_there", content + [.text(key), .null])
        try agent.ask("v1_limit", [.integer(destination), .integer(100), .null])
        try agent.ask("v1_share", [.integer(destination), .integer(50), .integer(1), .integer(0)])
        let receipt = #"[{"seq": \#(seq), "state": "delivered", "path": "a.mov"}]"#
        #expect(try agent.ask("v1_receipts", [.text(receipt)]).integer(0, 0) == seq)
        try agent.ask("v1_report", [.text("{}")])
        #expect(try agent.ask("v1_overview").count == 1 && agent.ask("v1_commands").count == 0)
    }
}
