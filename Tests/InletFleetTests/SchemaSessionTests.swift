import Foundation
import InletCore
import InletTestSupport
import Testing

@testable import InletFleet

/// Identity, sessions, restarts and lost commits.
@Suite(.enabled(if: PostgresCluster.isThere, Comment(rawValue: PostgresCluster.reason)))
struct SchemaSessionTests {
    private let fleet: SchemaFleet

    init() throws { fleet = try SchemaFleet() }

    private func code(_ call: () throws -> Void) -> FleetError.Code? { SchemaFleet.code(call) }

    @Test func `a wrong token, another's number and a retired agent are refused everywhere`() throws {
        let (one, two) = (try fleet.agent("one"), try fleet.agent("two"))
        let functions = try fleet.run(
            """
            SELECT p.proname, p.pronargs - 3 FROM pg_proc p WHERE p.pronamespace = 'inlet'::regnamespace
                AND p.proargnames[1:3] = '{p_agent,p_token,p_session}' AND p.proname LIKE 'v1\\_%'
            """)
        #expect(functions.count > 25)
        try fleet.run("UPDATE inlet.agent SET state = 'retired' WHERE name = 'two'")
        let callers: [[PostgresValue]] = [
            [.integer(one.id), .bytes(two.token), .integer(one.session)],
            [.integer(two.id), .bytes(two.token), .integer(two.session)],
            [.integer(one.id), .bytes([]), .integer(one.session)], [.integer(one.id), .null, .integer(one.session)],
        ]
        for function in functions {
            let name = function[0] ?? ""
            let others = try Self.arguments(of: name, fleet)
            for caller in callers {
                #expect(code { try one.call(name, caller + others) } == .unknownAgent, "\(name)")
            }
            let ended: [PostgresValue] = [.integer(one.id), .bytes(one.token), .integer(one.session - 1)]
            #expect(code { try one.call(name, ended + others) } == .sessionOver, "\(name)")
            let none: [PostgresValue] = [.integer(one.id), .bytes(one.token), .null]
            #expect(code { try one.call(name, none + others) } == .sessionOver, "\(name)")
        }
    }

    /// Arguments that pass the bounds, so that the caller is looked at.
    private static func arguments(of name: String, _ fleet: SchemaFleet) throws -> [PostgresValue] {
        let types = try fleet.run(
            """
            SELECT unnest(proargtypes::regtype[])::text, unnest(proargnames[1:pronargs]) FROM pg_proc
            WHERE pronamespace = 'inlet'::regnamespace AND proname = '\(name)'
            """)
        return types.dropFirst(3).map { argument in
            switch (argument[0], argument[1]) {
            case ("bytea", _): .bytes([UInt8](repeating: 1, count: 32))
            case ("jsonb", _): .text("[]")
            case ("text", "p_prefix"): .text("a/")
            case ("text", _): .text("a")
            case ("boolean", _): .boolean(true)
            case ("uuid", _): .text(UUID().uuidString)
            case ("text[]", _), ("bigint[]", _), ("integer[]", _): .texts([])
            case ("uuid[]", _): .uuids([])
            default: .integer(argument[1] == "p_seen" ? 0 : 1)
            }
        }
    }

    @Test func `joining needs the secret, a free name and a free tag`() throws {
        let one = try fleet.agent("one")
        let other = try SchemaAgent(fleet, "one")
        #expect(code { try other.join(secret: Array("wrong".utf8)) } == .unknownAgent)
        #expect(code { try other.join() } == .argument)
        // The same journal joins again: number and tag stay, the token before is dead.
        let number = one.id
        other.journal = one.journal
        try other.join()
        #expect(other.id == number)
        #expect(try fleet.value("SELECT tag FROM inlet.agent") == one.tag)
        #expect(code { try one.askMarked("v1_beat", [.boolean(true)]) } == .unknownAgent)
        try other.hello()
        try fleet.run("SELECT inlet.v1_admin_secret(NULL)")
        #expect(code { try SchemaAgent(fleet, "late").join() } == .unknownAgent)
    }

    /// The rules of hello, as a table: who comes, and what is answered.
    @Test(
        arguments: [
            (same: true, live: true, counts: 0, seat: true, code: nil), (true, true, 1, true, nil),
            (false, true, 1, true, nil), (false, true, 1, false, .isAlive), (false, false, 1, false, nil),
            (false, true, 0, true, .usedTwice), (false, false, 0, false, .usedTwice),
            (true, true, -1, true, .usedTwice),
            (false, false, -1, true, .usedTwice),
        ] as [(same: Bool, live: Bool, counts: Int64, seat: Bool, code: FleetError.Code?)])
    func `a hello is taken or refused`(
        _ row: (same: Bool, live: Bool, counts: Int64, seat: Bool, code: FleetError.Code?)
    ) throws {
        let agent = try fleet.agent("one")
        try agent.hello()
        if !row.live { try fleet.run("UPDATE inlet.beat SET until = clock_timestamp() - interval '1 s'") }
        if !row.same { agent.instance = UUID().uuidString }
        if !row.seat { agent.seat = [1] }
        agent.hellos += row.counts
        let before = agent.session
        #expect(code { try agent.hello(counted: false) } == row.code)
        if row.code == nil {
            #expect(agent.session != before)
            #expect(throws: Never.self) { try agent.askMarked("v1_beat", [.boolean(true)]) }
            agent.session = before
            #expect(code { try agent.askMarked("v1_beat", [.boolean(true)]) } == .sessionOver)
        }
    }

    @Test func `a session ends without beats, and a beat renews it`() throws {
        let agent = try fleet.agent("one")
        try fleet.run("UPDATE inlet.beat SET until = clock_timestamp() + interval '1 min'")
        #expect((try agent.askMarked("v1_beat", [.boolean(false)]).integer(0, 0) ?? 0) == 300_000)
        #expect(try fleet.value("SELECT until > clock_timestamp() + interval '2 min' FROM inlet.beat") == "t")
        try fleet.run("UPDATE inlet.beat SET until = clock_timestamp() - interval '1 ms'")
        #expect(code { try agent.askMarked("v1_beat", [.boolean(false)]) } == .sessionOver)
    }

    @Test func `after a restart all sessions are over, and nothing is granted until all are back`() throws {
        let folder = try TemporaryDirectory()
        let cluster = try PostgresCluster(in: folder.path)
        var connection = try SchemaFleet.connect(cluster.url)
        try connection.runScript(FleetSchema.sql)
        _ = try connection.run("SELECT inlet.v1_admin_secret($1)", [.bytes(SchemaFleet.secret)])
        try cluster.run("CREATE ROLE schema_station LOGIN IN ROLE inlet_agent")
        func agents() throws -> [SchemaAgent] {
            try ["one", "two"].map { try SchemaAgent(at: cluster.url(user: "schema_station"), $0) }
        }
        let before = try agents()
        for agent in before {
            try agent.join()
            try agent.hello()
        }
        cluster.stop(immediate: true)
        try cluster.start()
        let after = try agents()
        for (agent, former) in zip(after, before) { agent.goOn(former) }
        #expect(try after[0].hello() == "confirming")
        // The other one's session is not its any more, though somebody said hello to the new server.
        #expect(code { try after[1].askMarked("v1_beat", [.boolean(true)]) } == .sessionOver)
        let destination = try after[0].destination()
        #expect(code { _ = try after[0].reserve(destination, ["a"], [1]) } == .nothingGranted)
        #expect(try after[1].hello() == "open")
        #expect(try after[0].reserve(destination, ["a"], [1]) == [true])
    }

    @Test func `confirming ends with its time, though an agent stays away`() throws {
        let agent = try fleet.agent("one")
        _ = try fleet.agent("away")
        try fleet.run(
            "UPDATE inlet.fleet SET state = 'confirming', confirm_until = clock_timestamp() + interval '1 hour'")
        let destination = try agent.destination()
        #expect(code { _ = try agent.reserve(destination, ["a"], [1]) } == .nothingGranted)
        try fleet.run("UPDATE inlet.fleet SET confirm_until = clock_timestamp()")
        #expect(try agent.reserve(destination, ["a"], [1]) == [true])
        #expect(try agent.askMarked("v1_beat", [.boolean(false)])[0, 3] == "open")
    }

    @Test func `a mark that went back makes the fleet recover, until all have reported`() throws {
        let (one, two) = (try fleet.agent("one"), try fleet.agent("two"))
        let destination = try one.destination()
        #expect(try one.reserve(destination, ["a", "b"], [1, 2]) == [true, true])
        // As a restored database: the key and the mark are gone.
        try fleet.run("DELETE FROM inlet.key")
        try fleet.run("UPDATE inlet.beat SET mark = mark - 1 WHERE agent = \(one.id)")
        #expect(code { try one.askMarked("v1_beat", [.boolean(false)]) } == .wentBack)
        #expect(try one.hello() == "recovering")
        #expect(code { _ = try two.reserve(destination, ["a"], [9]) } == .reportFirst)
        // Once an epoch, not once an agent.
        try two.hello()
        #expect(try fleet.value("SELECT epoch FROM inlet.fleet") == "2")
        try report(two)
        #expect(code { _ = try two.reserve(destination, ["a"], [9]) } == .nothingGranted)
        let again = try one.ask(
            "v1_again_keys", [.integer(destination), .texts(["a", "b"]), .integers([1, 2]), .null])
        #expect(again.count == 0)
        #expect(try report(one) == "open")
        #expect(try two.reserve(destination, ["a", "c"], [9, 10]) == [false, true])
        #expect(try one.reserve(destination, ["a", "b"], [1, 2]) == [true, true])
    }

    @discardableResult
    private func report(_ agent: SchemaAgent, roster: String = "[]") throws -> String? {
        let rows = try agent.ask("v1_again_done", [.integer(agent.seen), .text(roster)])
        agent.seen = rows.integer(0, 0) ?? 0
        return rows[0, 1]
    }

    @Test func `a key that two agents report is a clash of the second, and an event`() throws {
        let (one, two) = (try fleet.agent("one"), try fleet.agent("two"))
        let destination = try one.destination()
        for (agent, found) in [(one, []), (two, ["2"])] as [(SchemaAgent, [String])] {
            let rows = try agent.ask(
                "v1_again_keys",
                [.integer(destination), .texts(["\(agent.name)", "same"]), .integers([1, agent.id]), .null])
            #expect((0..<rows.count).map { rows[$0, 0] } == found)
        }
        #expect(
            try fleet.run("SELECT body ->> 'key', agent FROM inlet.event WHERE name = 'fleet.key_clash'")
                == [["same", "\(two.id)"]])
    }

    @Test func `a recovering fleet waits for agents that only others know, and waiving opens it`() throws {
        let one = try fleet.agent("one")
        var people = try fleet.administration()
        try people.restored("restored from a backup")
        #expect(try people.status().why == "restored from a backup")
        let lost = try SchemaAgent(fleet, "lost")
        let roster = """
            [{"name": "lost", "tag": "\(lost.tag)", "journal": "\(lost.journal)"}, {"name": "", "tag": "?"}]
            """
        #expect(try report(one, roster: roster) == "recovering")
        #expect(try people.status().waitingFor == ["lost"])
        #expect(try people.waive("lost") == "open")
        // It is still there for when it comes back with its journal.
        try lost.join(seen: 5)
        #expect(try people.agents().map(\.state) == ["active", "active"])
        #expect(code { try people.waive("nobody") } == .argument)
    }

    @Test func `an agent that the database forgot makes it recover when it joins`() throws {
        _ = try fleet.agent("one")
        let lost = try SchemaAgent(fleet, "lost")
        try lost.join(seen: 17)
        #expect(try fleet.value("SELECT state FROM inlet.fleet") == "recovering")
        #expect(try lost.hello() == "recovering")
    }

    @Test func `an agent claims its own prefixes again while it reports`() throws {
        let (one, two) = (try fleet.agent("one"), try fleet.agent("two"))
        let destination = try one.destination()
        try fleet.run("SELECT inlet.v1_admin_restored(NULL)")
        #expect(try one.askMarked("v1_own_prefix", [.integer(destination), .text("one/")])[0, 0] == nil)
        try report(one)
        #expect(code { try one.askMarked("v1_own_prefix", [.integer(destination), .text("new/")]) } == .nothingGranted)
        try report(two)
        #expect(try two.reserve(destination, ["one/a", "a"], [1, 2]) == [false, true])
    }

    @Test func `bye and leave free all at once, and one that left is never let in again`() throws {
        let (one, two) = (try fleet.agent("one"), try fleet.agent("two"))
        let destination = try one.destination()
        let digest = SHA256.bytes(of: "content".utf8)
        func content(_ agent: SchemaAgent) throws -> String? {
            try agent.askMarked(
                "v1_content",
                [.integer(destination), .bytes(digest), .integer(1), .integer(7), .integer(agent.id)])[0, 1]
        }
        #expect(try content(one) == "own")
        #expect(try content(two) == "wait")
        try one.ask("v1_bye")
        #expect(code { try one.askMarked("v1_beat", [.boolean(false)]) } == .sessionOver)
        #expect(try content(two) == "own")
        try one.call("v1_leave", [.integer(one.id), .bytes(one.token)])
        #expect(code { try one.hello() } == .unknownAgent)
        #expect(code { try one.join() } == .argument)
        #expect(code { try one.call("v1_leave", [.integer(two.id), .bytes(one.token)]) } == .unknownAgent)
        #expect(try fleet.value("SELECT state FROM inlet.agent WHERE name = 'two'") == "active")
    }
}
