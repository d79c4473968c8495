import InletCore
import InletTestSupport
import Testing

@testable import InletFleet

/// Receipts, search, limits, orders and upkeep.
@Suite(.enabled(if: PostgresCluster.isThere, Comment(rawValue: PostgresCluster.reason)))
struct SchemaReceiptTests {
    private let fleet: SchemaFleet

    init() throws { fleet = try SchemaFleet() }

    private func code(_ call: () throws -> Void) -> FleetError.Code? { SchemaFleet.code(call) }

    private func receipt(_ seq: Int, _ name: String, at destination: Int64) -> String {
        """
        {"seq": \(seq), "destination": \(destination), "size": 3, "state": "delivered", "root": "/drop", \
        "path": "/drop/day/\(name)", "mtime": 5, "key": "in/\(name)", "url": "https://x/\(seq)", \
        "sha256": "\(SHA256.bytes(of: name.utf8).hex)", "labels": {"card": "A1", "n": 7}}
        """
    }

    private func publish(_ agent: SchemaAgent, _ rows: [String]) throws -> Int64? {
        try agent.ask("v1_receipts", [.text("[\(rows.joined(separator: ", "))]")]).integer(0, 0)
    }

    @Test(arguments: [5, 77] as [UInt64])
    func `receipts are there exactly once, whatever is repeated`(seed: UInt64) throws {
        let agent = try fleet.agent("one")
        let destination = try agent.destination()
        let rows = (1...60).map { receipt($0, "f\($0).mov", at: destination) }
        var (generator, last) = (SeededGenerator(seed: seed), 0)
        // Answers are lost: the next batch begins anywhere before the last one's end.
        while last < rows.count {
            let start = Int.random(in: max(0, last - 9)...last, using: &generator)
            let end = min(rows.count, start + Int.random(in: 1...15, using: &generator))
            let answer = try publish(agent, Array(rows[start..<end]))
            #expect(answer == Int64(max(last, end)))
            last = max(last, end)
            if Bool.random(using: &generator) { try agent.hello() }
        }
        #expect(try publish(agent, []) == 60)
        #expect(
            try fleet.run("SELECT count(*), count(DISTINCT seq), max(seq) FROM inlet.receipt") == [["60", "60", "60"]])
    }

    @Test func `a file is found by its name in any case, the beginning of its key, and its hash`() throws {
        let (one, two) = (try fleet.agent("one"), try fleet.agent("two"))
        let destination = try one.destination()
        _ = try publish(one, [receipt(1, "IMG_1.MOV", at: destination), receipt(2, "100%_a.jpg", at: destination)])
        _ = try publish(two, [receipt(1, "IMG_1.MOV", at: destination), receipt(2, "Über.wav", at: destination)])
        let long = String(repeating: "l", count: 4000)
        _ = try publish(two, [#"{"seq": 3, "state": "failed", "path": "\#(long)", "key": "\#(long)"}"#])
        var people = try fleet.administration()
        let hash = SHA256.bytes(of: "IMG_1.MOV".utf8).hex
        let found = [
            "img_1.mov": 2, "IMG_": 2, "in/IMG_1": 2, "in/img_1": 0, "100%": 1, "%": 0, "_MG": 0, "Über": 1, "1.MOV": 0,
            hash: 2, hash.uppercased(): 2, String(hash.dropLast()): 0, long: 1,
        ]
        for (text, count) in found {
            let text = String(text.prefix(1024))
            #expect(try people.search(text, limit: 10).count == count, "\(text)")
            #expect(
                try one.ask("v1_search", [.text(text), .integer(10)]).count == count, "\(text), by an agent")
        }
        let row = try people.search("img_1", limit: 1)[0]
        #expect(row.agent == "two" && row.destination == "archive" && row.key == "in/IMG_1.MOV" && row.sha256 == hash)
        #expect(row.size == 3 && row.labels == ["card": "A1", "n": "7"] && WallTime(rfc3339: row.at) != nil)
        #expect(code { _ = try people.search("", limit: 10) } == .argument)
        #expect(code { _ = try people.search("a", limit: 1001) } == .argument)
        var streamed: [String] = []
        try people.receipts(since: WallTime(milliseconds: 0)) {
            streamed.append($0.agent + ":" + String($0.name.prefix(9)))
        }
        #expect(
            streamed.sorted() == ["one:100%_a.jp", "one:IMG_1.MOV", "two:IMG_1.MOV", "two:lllllllll", "two:Über.wav"])
        var later = 0
        try people.receipts(since: WallTime(milliseconds: 4_000_000_000_000)) { _ in later += 1 }
        #expect(later == 0)
    }

    @Test func `upkeep makes the days ahead and drops old ones, whatever the zone, and a search still finds`() throws {
        let agent = try fleet.agent("one")
        func days() throws -> [String] {
            try fleet.run("SELECT relname FROM pg_class WHERE relname ~ '^receipt_[0-9]{8}$' ORDER BY 1").map {
                $0[0] ?? ""
            }
        }
        // A day may have begun since the schema was made.
        _ = try agent.ask("v1_upkeep")
        let made = try days()
        #expect(made.count >= 9)
        #expect(try agent.ask("v1_upkeep").integer(0, 0) == 0)
        _ = try publish(agent, [receipt(1, "a.mov", at: try agent.destination())])
        // As after a week and a half: the days ahead are gone, old ones are there.
        for day in made.suffix(3) { try fleet.run("DROP TABLE inlet.\(day)") }
        for day in ["20200101", "20200102"] {
            try fleet.run("CREATE TABLE inlet.receipt_\(day) (LIKE inlet.receipt INCLUDING DEFAULTS)")
            try fleet.run("ALTER TABLE inlet.receipt_\(day) OWNER TO inlet_owner")
            try fleet.run(
                """
                ALTER TABLE inlet.receipt ATTACH PARTITION inlet.receipt_\(day)
                FOR VALUES FROM ('\(day) 00:00+00') TO (timestamptz '\(day) 00:00+00' + interval '1 day')
                """)
        }
        var connection = try fleet.connect(user: "schema_station")
        let rows = try connection.run(
            "SELECT inlet.v1_upkeep($1, $2, $3) FROM set_config('timezone', 'Pacific/Kiritimati', false)",
            [.integer(agent.id), .bytes(agent.token), .integer(agent.session)])
        #expect(rows.integer(0, 0) == 5)
        #expect(try days() == made)
        #expect(try agent.ask("v1_search", [.text("a.mov"), .integer(9)]).count == 1)
    }

    @Test func `receipts come in after a week without upkeep`() throws {
        let agent = try fleet.agent("one")
        for day in try fleet.run("SELECT relname FROM pg_class WHERE relname ~ '^receipt_[0-9]{8}$'") {
            try fleet.run("DROP TABLE inlet.\(day[0] ?? "")")
        }
        #expect(try publish(agent, [receipt(1, "a.mov", at: try agent.destination())]) == 1)
    }

    @Test(arguments: [8, 99] as [UInt64])
    func `parts of a limit never sum to more than it, and a slot in use is kept`(seed: UInt64) throws {
        let agents = try (0..<4).map { try fleet.agent("agent \($0)") }
        let destination = try agents[0].destination()
        try agents[0].ask("v1_limit", [.integer(destination), .integer(1000), .integer(6)])
        var (generator, slots) = (SeededGenerator(seed: seed), [Int64](repeating: 0, count: 4))
        for step in 0..<150 {
            let who = Int.random(in: 0..<4, using: &generator)
            let rate = ([0, 50, 1000, .max] as [Int64]).randomElement(using: &generator) ?? 0
            let wanted = rate == 0 ? 0 : Int64.random(in: 0...9, using: &generator)
            let using = wanted == 0 ? 0 : Int64.random(in: 0...slots[who], using: &generator)
            let rows = try agents[who].ask(
                "v1_share", [.integer(destination), .integer(rate), .integer(wanted), .integer(using)])
            slots[who] = rows.count == 0 ? 0 : rows.integer(0, 1) ?? 0
            #expect(slots[who] >= min(using, rows.count == 0 ? 0 : using), "step \(step)")
            #expect(
                try fleet.value(
                    "SELECT coalesce(sum(rate), 0) <= 1000 AND coalesce(sum(slots), 0) <= 6 FROM inlet.share")
                    == "t", "step \(step)")
        }
        // All that want it come to a fair part within two rounds.
        for _ in 0..<2 {
            for agent in agents {
                try agent.ask("v1_share", [.integer(destination), .integer(.max), .integer(9), .integer(0)])
            }
        }
        #expect(try fleet.run("SELECT DISTINCT rate, slots FROM inlet.share") == [["250", "1"]])
    }

    @Test func `a limit of one kind leaves the other as it is asked for, and none is none`() throws {
        let agent = try fleet.agent("one")
        let destination = try agent.destination()
        func share() throws -> [Int64?] {
            let rows = try agent.ask("v1_share", [.integer(destination), .integer(.max), .integer(7), .integer(0)])
            return [rows.integer(0, 0), rows.integer(0, 1)]
        }
        #expect(try share() == [nil, nil])
        try agent.ask("v1_limit", [.integer(destination), .integer(1000), .null])
        #expect(try share() == [1000, 7])
        try agent.ask("v1_limit", [.integer(destination), .null, .integer(2)])
        #expect(try share() == [.max, 2])
    }

    @Test func `the first agent's limit holds, another one hears its name, and a person's comes before both`() throws {
        let (one, two) = (try fleet.agent("one"), try fleet.agent("two"))
        let destination = try one.destination()
        var people = try fleet.administration()
        func limit(_ agent: SchemaAgent, _ bandwidth: Int64?, _ slots: Int64? = nil) throws -> String? {
            try agent.ask(
                "v1_limit",
                [.integer(destination), bandwidth.map { .integer($0) } ?? .null, slots.map { .integer($0) } ?? .null])[
                    0, 0]
        }
        func holds() throws -> Int64? { try people.destinations()[0].bandwidth }
        #expect(try limit(one, 100) == nil)
        #expect(try limit(two, 100) == nil)
        #expect(try limit(two, 200) == "one")
        #expect(try limit(two, 100, 3) == "one")
        #expect(try limit(two, 200) == "one" && holds() == 100)
        try people.setLimit(destination: "archive", bandwidth: 7, slots: nil)
        #expect(try limit(two, 200) == nil && limit(one, 100) == nil && holds() == 7)
        #expect(try people.destinations()[0].limitedBy == "an administrator")
        try people.setLimit(destination: "\(destination)", bandwidth: nil, slots: nil)
        #expect(try holds() == 100)
        // The one that named it first names none any more; then the other's holds.
        #expect(try limit(one, nil) == nil && holds() == 200)
        #expect(try limit(one, 100) == "two")
        try people.setAgent("two", state: "retired")
        #expect(try holds() == 100)
        #expect(code { try people.setLimit(destination: "nowhere", bandwidth: 1, slots: nil) } == .argument)
    }

    @Test func `an order is listed until it is ended, once, and only for its agent`() throws {
        let (one, two) = (try fleet.agent("one"), try fleet.agent("two"))
        var people = try fleet.administration()
        let id = try people.order("one", verb: "pause", args: ["root": .string("/drop")])
        try people.order("one", verb: "retry", within: .seconds(1))
        try fleet.run("UPDATE inlet.command SET expires_at = now() - interval '1 s' WHERE verb = 'retry'")
        #expect(try one.askMarked("v1_beat", [.boolean(false)])[0, 5] == "t")
        #expect(try two.askMarked("v1_beat", [.boolean(false)])[0, 5] == "f")
        let rows = try one.ask("v1_commands")
        #expect(rows.count == 1 && rows[0, 0] == id && rows[0, 1] == "pause" && rows[0, 2] == #"{"root": "/drop"}"#)
        try two.ask("v1_command_ended", [.text(id), .boolean(true), .null])
        #expect(try one.ask("v1_commands").count == 1)
        try one.ask("v1_command_ended", [.text(id), .boolean(true), .text("{}")])
        try one.ask("v1_command_ended", [.text(id), .boolean(false), .null])
        #expect(
            try fleet.run("SELECT verb, state FROM inlet.command ORDER BY 1")
                == [["pause", "done"], ["retry", "expired"]])
        #expect(code { try people.order("one", verb: "explode") } == .argument)
        #expect(code { try people.order("nobody", verb: "pause") } == .argument)
    }

    @Test func `the overview has all agents with their reports, and no secret`() throws {
        let one = try fleet.agent("one")
        _ = try SchemaAgent(fleet, "two").join()
        try one.ask("v1_report", [.text(#"{"queue": 3}"#)])
        let text = try one.ask("v1_overview")[0, 0] ?? ""
        let overview = try JSON.decode(text.utf8, as: FleetOverview.self)
        #expect(overview.agents.map(\.name) == ["one", "two"] && overview.agents.map(\.isAlive) == [true, false])
        #expect(overview.agents[0].report == #"{"queue":3}"# && overview.agents[1].report == nil)
        #expect(overview.agents[1].lastSeen == nil && overview.status.state == "open" && overview.places.isEmpty)
        #expect(!text.contains(SHA256.bytes(of: one.token).hex) && !text.contains("hash"))
        var people = try fleet.administration()
        let agents = try people.agents()
        #expect(agents == overview.agents)
        #expect(try JSON.decode(JSON.encode(agents), as: [FleetAgentRow].self) == agents)
        #expect(code { try one.ask("v1_report", [.text("\"\(String(repeating: "é", count: 33_000))\"")]) } == .argument)
    }
}
