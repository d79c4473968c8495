import Foundation
import InletCore
import InletLinux
import InletTestSupport
import Testing

@testable import InletFleet

/// Keys, prefixes and contents.
@Suite(.enabled(if: PostgresCluster.isThere, Comment(rawValue: PostgresCluster.reason)))
struct SchemaKeyTests {
    private let fleet: SchemaFleet

    init() throws { fleet = try SchemaFleet() }

    private func code(_ call: () throws -> Void) -> FleetError.Code? { SchemaFleet.code(call) }

    @Test(arguments: [3, 1415, 92_653] as [UInt64])
    func `of two that reserve a key at once exactly one has it, and asking again says the same`(
        seed: UInt64
    ) async throws {
        // No session ends meanwhile, however busy the machine is.
        try fleet.run("UPDATE inlet.fleet SET ttl = '10 min'")
        let agents = [try fleet.agent("one"), try fleet.agent("two")]
        let destination = try agents[0].destination()
        let pools = [BlockingPool(name: "one", threads: 1), BlockingPool(name: "two", threads: 1)]
        var generator = SeededGenerator(seed: seed)
        for round in 0..<40 {
            let keys = (0..<20).map { "\(round)/\($0)" }
            let orders = [keys.shuffled(using: &generator), keys.shuffled(using: &generator)]
            let refs = (0..<2).map { who in
                keys.map { _ in Int64(who) << 32 | Int64.random(in: 1..<1 << 31, using: &generator) }
            }
            @Sendable func reserve(_ who: Int) throws -> [Bool] {
                try agents[who].reserve(destination, orders[who], refs[who])
            }
            async let first = pools[0].run { Result { try reserve(0) } }
            async let second = pools[1].run { Result { try reserve(1) } }
            let granted = [try await first.get(), try await second.get()]
            let winners = (0..<2).flatMap { who in zip(orders[who], granted[who]).filter(\.1).map(\.0) }
            #expect(winners.sorted() == keys.sorted(), "round \(round)")
            #expect(try [reserve(0), reserve(1)] == granted, "round \(round)")
        }
        let (lines, owned) = (try fleet.value("SELECT count(*) FROM inlet.key"), "\(40 * 20)")
        #expect(lines == owned)
    }

    @Test func `keys with another's tag and below another's prefix are refused, one's own are granted`() throws {
        let (one, two) = (try fleet.agent("one"), try fleet.agent("two"))
        let (destination, other) = (try one.destination(), try one.destination("other"))
        let tagged = ["a_\(two.tag).mov", "a_\(two.tag)", "a_\(two.tag)_2.mov", "d_\(two.tag)/a.mov", "\(two.tag).mov"]
        #expect(try one.reserve(destination, tagged, [1, 2, 3, 4, 5]) == [false, false, false, true, true])
        #expect(try two.reserve(destination, Array(tagged.prefix(3)), [1, 2, 3]) == [true, true, true])
        #expect(try two.askMarked("v1_own_prefix", [.integer(destination), .text("two/")])[0, 0] == nil)
        #expect(try one.reserve(destination, ["two/a", "two", "twofold/a"], [6, 7, 8]) == [false, true, true])
        #expect(try two.reserve(destination, ["two/a"], [9]) == [true])
        #expect(try one.reserve(other, ["two/a"], [6]) == [true])
    }

    @Test func `an own prefix that overlaps with another's is refused, and names its agent`() throws {
        let (one, two) = (try fleet.agent("one"), try fleet.agent("two"))
        let (destination, other) = (try one.destination(), try one.destination("other"))
        func own(_ agent: SchemaAgent, _ prefix: String, at destination: Int64) throws -> String? {
            try agent.askMarked("v1_own_prefix", [.integer(destination), .text(prefix)])[0, 0]
        }
        func overlap(_ name: String, _ prefix: String) throws -> String? {
            let address = SHA256.bytes(of: "archive".utf8)
            return try two.call("v1_prefix_overlap", [.text(name), .bytes(address), .text(prefix)])[0, 0]
        }
        #expect(try own(one, "a/b/", at: destination) == nil)
        #expect(try own(one, "a/b/", at: destination) == nil)
        for prefix in ["a/b/", "a/", "a/b/c/"] {
            #expect(try own(two, prefix, at: destination) == "one")
            // The question needs no agent.
            for (name, other) in [("two", "one"), ("three", "one"), ("one", nil)] as [(String, String?)] {
                #expect(try overlap(name, prefix) == other, "\(name), \(prefix)")
            }
        }
        #expect(try own(two, "a/bc/", at: destination) == nil)
        #expect(try own(two, "a/", at: other) == nil)
        #expect(code { _ = try own(one, "no-slash", at: destination) } == .argument)
        #expect(try fleet.value("SELECT count(*) FROM inlet.prefix") == "3")
    }

    /// A fleet in its first minute, or one whose dump was put back, has no statistics of its tables.
    @Test func `a reservation reads its own keys alone, however many there are`() throws {
        let one = try fleet.agent("one")
        let destination = try one.destination()
        try fleet.run(
            """
            INSERT INTO inlet.key (ref, hash, destination, owner)
            SELECT n, inlet._hash('k' || n), \(destination), 0 FROM generate_series(1, 20000) n
            """)
        _ = try one.run("BEGIN")
        let keys = (1...100).map { "new \($0)" }
        #expect(try one.reserve(destination, keys, Array(1...100)).allSatisfy { $0 })
        let read = try one.run(
            """
            SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0))::bigint FROM pg_stat_xact_user_tables
            WHERE schemaname = 'inlet' AND relname LIKE 'key\\_%'
            """
        ).integer(0, 0)
        _ = try one.run("COMMIT")
        #expect(read == 100)
    }

    @Test func `a key that is given back is free, but only its own agent gives it back`() throws {
        let (one, two) = (try fleet.agent("one"), try fleet.agent("two"))
        let destination = try one.destination()
        #expect(try one.reserve(destination, ["a"], [1]) == [true])
        for (agent, ref) in [(two, 1), (one, 2)] as [(SchemaAgent, Int64)] {
            try agent.askMarked("v1_unreserve", [.integer(destination), .texts(["a"]), .integers([ref])])
        }
        #expect(try two.reserve(destination, ["a"], [1]) == [false])
        try one.askMarked("v1_unreserve", [.integer(destination), .texts(["a"]), .integers([1])])
        #expect(try two.reserve(destination, ["a"], [1]) == [true])
    }

    @Test func `one content is brought by one agent, and the others hear where it is`() throws {
        let (one, two) = (try fleet.agent("one"), try fleet.agent("two"))
        let destination = try one.destination()
        let common: [PostgresValue] = [
            .integer(destination), .bytes(SHA256.bytes(of: "content".utf8)), .integer(7), .integer(1),
        ]
        func ask(_ agent: SchemaAgent, _ ref: Int64) throws -> [String?] {
            let rows = try agent.askMarked("v1_content", common + [.integer(ref)])
            return (1...4).map { rows[0, $0] }
        }
        func ended(_ agent: SchemaAgent, _ ref: Int64, key: PostgresValue) throws {
            try agent.askMarked("v1_content_there", common + [.integer(ref), key, .text("https://x")])
        }
        #expect(try ask(one, 1)[0] == "own")
        #expect(try ask(one, 1)[0] == "own")
        #expect(try ask(one, 2)[0] == "wait")
        #expect(try ask(two, 3)[0...1] == ["wait", "one"])
        try ended(two, 3, key: .null)
        #expect(try ask(two, 3)[0] == "wait")
        try ended(one, 1, key: .null)
        #expect(try ask(two, 3)[0] == "own")
        try ended(two, 3, key: .text("a/b"))
        #expect(try ask(one, 1) == ["there", "two", "a/b", "https://x"])
        // A late word of another changes nothing.
        try ended(one, 1, key: .text("late"))
        try ended(one, 1, key: .null)
        #expect(try ask(one, 1) == ["there", "two", "a/b", "https://x"])
        // Its own agent had it deleted.
        try ended(two, 3, key: .null)
        #expect(try ask(one, 1)[0] == "own")
    }

    @Test func `a content of an agent that died is another's once it was there for a whole ttl`() throws {
        let (one, two) = (try fleet.agent("one"), try fleet.agent("two"))
        let values: [PostgresValue] = [
            .integer(try one.destination()), .bytes(SHA256.bytes(of: "content".utf8)), .integer(7), .integer(1),
        ]
        try one.askMarked("v1_content", values + [.integer(1)])
        try fleet.run("UPDATE inlet.beat SET until = clock_timestamp() - interval '1 s' WHERE agent = \(one.id)")
        #expect(try two.askMarked("v1_content", values + [.integer(2)])[0, 1] == "wait")
        try fleet.run("UPDATE inlet.beat SET since = since - interval '6 min' WHERE agent = \(two.id)")
        #expect(try two.askMarked("v1_content", values + [.integer(2)])[0, 1] == "own")
    }

    /// Class XX is an internal error of PostgreSQL. The seed is an argument, so that a failure can be repeated.
    @Test(arguments: [27, 182_818] as [UInt64])
    func `no argument makes an internal error, or changes another's rows`(seed: UInt64) throws {
        let (one, two) = (try fleet.agent("one"), try fleet.agent("two"))
        _ = try two.reserve(try two.destination(), ["a"], [1])
        try two.ask("v1_report", [.text("{}")])
        func others() throws -> [[String?]] {
            try fleet.run(
                """
                SELECT a::text, (SELECT b::text FROM inlet.beat b WHERE b.agent = a.id), (SELECT string_agg(k::text, ',')
                    FROM inlet.key k WHERE k.owner = a.id), (SELECT r::text FROM inlet.report r WHERE r.agent = a.id)
                FROM inlet.agent a WHERE a.id = \(two.id)
                """)
        }
        let before = try others()
        let functions = try fleet.run(
            """
            SELECT proname, array_to_string(proargtypes::regtype[], ',') FROM pg_proc
            WHERE pronamespace = 'inlet'::regnamespace AND proname LIKE 'v1\\_%' AND proname !~ '^v1_(admin|reader)_'
            ORDER BY proname
            """)
        var fuzzer = ArgumentFuzzer(seed: seed, agent: one)
        for _ in 0..<400 {
            let function = functions.randomElement(using: &fuzzer.generator) ?? []
            let types = (function[1] ?? "").split(separator: ",").map(String.init)
            let values = fuzzer.values(types)
            do { try one.call(function[0] ?? "", values) } catch let error as FleetError {
                #expect(!error.message.contains("internal") && !error.message.contains("XX0"), "\(function): \(error)")
                #expect(!error.isAway, "\(function): \(error)")
                // A bye, or a hello of its own making: it goes on with a new session.
                if [.sessionOver, .usedTwice, .wentBack].contains(error.code) { try renew(one) }
            }
        }
        #expect(try others() == before)
        #expect(try fleet.value("SELECT state FROM inlet.agent WHERE name = 'two'") == "active")
    }

    private func renew(_ agent: SchemaAgent) throws {
        try fleet.run(
            "UPDATE inlet.agent SET state = 'active', token_hash = sha256('\\x\(agent.token.hex)') WHERE name = 'one'")
        try fleet.run(
            "UPDATE inlet.beat SET hello = 0, mark = 0, instance = NULL, until = '-infinity' WHERE agent = \(agent.id)")
        (agent.hellos, agent.seen) = (0, 0)
        try agent.hello()
    }
}

/// Arguments that are right, nearly right, and wrong.
private struct ArgumentFuzzer {
    var generator: SeededGenerator
    let agent: SchemaAgent

    init(seed: UInt64, agent: SchemaAgent) { (generator, self.agent) = (SeededGenerator(seed: seed), agent) }

    private mutating func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &generator) < percent }

    mutating func values(_ types: [String]) -> [PostgresValue] {
        let isMember = types.starts(with: ["integer", "bytea", "bigint"]) && chance(90)
        let caller: [PostgresValue] = [.integer(agent.id), .bytes(agent.token), .integer(agent.session)]
        return types.enumerated().map { index, type in isMember && index < 3 ? caller[index] : value(type) }
    }

    private mutating func value(_ type: String) -> PostgresValue {
        if chance(10) { return .null }
        let numbers: [Int64] = [0, 1, 2, -1, 3, 1000, Int64(Int32.max), Int64(Int32.min)]
        let wide = numbers + [.max, .min, 1 << 40]
        let texts = ["", "a", "a/", "%_\\", "é\u{1F4F7}", "'; DROP", String(repeating: "x", count: 5000), "retry"]
        let json = [
            "[]", "{}", "null", "1", "\"a\"", "[{}]", "[[]]", "[null]",
            #"[{"work":1,"fence":1,"outcome":"delivered"}]"#,
            #"[{"seq":1,"path":"a","state":"x","labels":[1]}]"#, #"[{"seq":"x"}]"#, #"[{"name":"q","tag":"aaaaaa"}]"#,
        ]
        func pick<Element>(_ list: [Element]) -> Element { list[Int.random(in: 0..<list.count, using: &generator)] }
        switch type {
        case "integer": return .integer(pick(numbers))
        case "bigint": return .integer(pick(wide))
        case "boolean": return .boolean(chance(50))
        case "bytea":
            return .bytes((0..<pick([0, 1, 32, 33])).map { _ in UInt8.random(in: 0...255, using: &generator) })
        case "jsonb": return .text(pick(json))
        case "uuid": return .text(UUID().uuidString)
        case "uuid[]": return .uuids(pick([[], [UUID().uuidString]]))
        case "bigint[]": return .integers(pick([[], [1], [nil], [1, 2], wide.map { $0 }]))
        case "integer[]": return .integers(pick([[], [1], [nil], [1, 2]]))
        case "text[]": return .texts(pick([[], ["a"], [nil], ["a", "b"], texts.map { $0 }]))
        default: return .text(pick(texts))
        }
    }
}
