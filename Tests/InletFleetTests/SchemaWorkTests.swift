import Foundation
import InletCore
import InletTestSupport
import Testing

@testable import InletFleet

/// Whose a place and its work are, when agents die, drain and come back.
@Suite(.enabled(if: PostgresCluster.isThere, Comment(rawValue: PostgresCluster.reason)))
struct SchemaWorkTests {
    private struct Claim: Equatable {
        var work: Int64
        var fence: Int64
        var kind: String
        var notes: String?
        var takenFrom: Int64?
        var code: String?
        var key: String?
    }

    private let fleet: SchemaFleet
    private let marker = UUID().uuidString

    init() throws { fleet = try SchemaFleet() }

    private func code(_ call: () throws -> Void) -> FleetError.Code? { SchemaFleet.code(call) }

    private func member(_ name: String) throws -> SchemaAgent {
        let agent = try fleet.agent(name)
        try agent.ask("v1_place", [.text("media"), .text(marker)])
        return agent
    }

    private func hold(_ agent: SchemaAgent) throws -> Int64? {
        let rows = try agent.askMarked("v1_hold", [.integers([1])])
        return rows.count > 0 ? rows.integer(0, 1) : nil
    }

    /// - Parameter deliveries: how many the version has.
    private func row(
        _ path: String, _ version: String, destination: Int64, key: String, of deliveries: Int = 1
    ) -> String {
        """
        {"path": "\(path)", "version": "\(version)", "name": "bg==", "size": 1, "destination": \(destination), \
        "ref": \(destination), "key": "\(key)", "plan": {"route": "all", "deliveries": \(deliveries)}}
        """
    }

    /// Admits a version with a delivery to each of `destinations`.
    private func admit(_ holder: SchemaAgent, _ path: String, _ version: String, to destinations: [Int64]) throws
        -> [Bool]
    {
        let rows = destinations.map { row(path, version, destination: $0, key: "\(path)/\($0)") }
        return try holder.askMarked(
            "v1_admit",
            [.integer(1), .integer(try hold(holder) ?? 0), .text("[\(rows.joined(separator: ","))]")]
        ).booleans(0, 1)
    }

    private func claim(_ agent: SchemaAgent, _ count: Int = 100) throws -> [Claim] {
        let rows = try agent.askMarked("v1_claim", [.integers([1]), .integer(Int64(count))])
        func column(_ name: String) throws -> Int { try #require(rows.columns.firstIndex(of: name)) }
        return try (0..<rows.count).map { row in
            Claim(
                work: rows.integer(row, try column("work")) ?? 0, fence: rows.integer(row, try column("fence")) ?? 0,
                kind: rows[row, try column("kind")] ?? "", notes: rows[row, try column("notes")],
                takenFrom: rows.integer(row, try column("taken_from")), code: rows[row, try column("code")],
                key: rows[row, try column("key")])
        }.sorted { $0.work < $1.work }
    }

    /// - Returns: refused, finish, failed.
    @discardableResult
    private func settle(_ agent: SchemaAgent, _ claim: Claim, _ outcome: String, code: String = "x") throws
        -> (refused: String?, finish: Claim?, failed: Bool)
    {
        let row = """
            [{"work": \(claim.work), "fence": \(claim.fence), "outcome": "\(outcome)", "code": "\(code)"}]
            """
        let rows = try agent.askMarked("v1_settle_many", [.text(row)])
        let finish = rows.integer(0, 2).map { Claim(work: $0, fence: 1, kind: "f") }
        return (rows[0, 1], finish, rows.boolean(0, 5) == true)
    }

    private func kill(_ agent: SchemaAgent) throws {
        try fleet.run("UPDATE inlet.beat SET until = '-infinity' WHERE agent = \(agent.id)")
    }

    /// As if its session were older than a lease: it may take over from others.
    private func age(_ agent: SchemaAgent) throws {
        try fleet.run("UPDATE inlet.beat SET since = now() - interval '1 hour' WHERE agent = \(agent.id)")
    }

    private func ids() -> (path: String, version: String) {
        (UUID().uuidString.lowercased(), UUID().uuidString.lowercased())
    }

    // MARK: - Places

    @Test func `a holder stays one while another looks, and one that drains gives the place up`() throws {
        let (one, two) = (try member("one"), try member("two"))
        let fence = try #require(try hold(one))
        #expect(try hold(two) == nil)
        // Another call has the row locked for a moment.
        var other = try fleet.connect()
        try other.runScript("BEGIN; SELECT FROM inlet.place FOR UPDATE")
        #expect(try hold(one) == fence)
        try other.runScript("ROLLBACK")
        try fleet.run("SELECT inlet.v1_admin_agent('one', 'draining')")
        #expect(try hold(one) == nil)
        #expect(try hold(two) == fence + 1)
        let (path, version) = ids()
        #expect(
            code {
                try one.askMarked(
                    "v1_admit",
                    [.integer(1), .integer(fence), .text("[\(row(path, version, destination: 1, key: "k"))]")])
            } == .fenced)
    }

    @Test func `a lapsed holder is followed by one that was here for a lease`() throws {
        let (one, two) = (try member("one"), try member("two"))
        let fence = try #require(try hold(one))
        try kill(one)
        #expect(try hold(two) == nil, "it has just come")
        try age(two)
        #expect(try hold(two) == fence + 1)
        try one.hello()
        #expect(try hold(one) == nil)
        #expect(try fleet.value("SELECT count(*) FROM inlet.event WHERE name = 'fleet.place_taken'") == "1")
    }

    @Test func `one share under two names is refused with the name it has`() throws {
        let one = try member("one")
        do {
            try one.ask("v1_place", [.text("video"), .text(marker)])
            Issue.record("not refused")
        } catch let error as FleetError {
            #expect(error.code == .argument && error.message.contains("media"))
        }
        #expect(code { try one.ask("v1_place", [.text(""), .text(UUID().uuidString)]) } == .argument)
        let other = try one.ask("v1_place", [.text("media"), .text(UUID().uuidString)])
        #expect(other[0, 1] == marker.lowercased() && other[0, 2] == "f")
    }

    // MARK: - Claims

    @Test func `work of a lapsed agent is another's with its notes, and the first one's end is refused`() throws {
        let (one, two) = (try member("one"), try member("two"))
        let (path, version) = ids()
        #expect(try admit(one, path, version, to: [1]) == [true])
        let first = try #require(try claim(one).first)
        try one.askMarked("v1_note", [.integer(first.work), .integer(first.fence), .text(#"{"upload": "u"}"#)])
        try age(two)
        #expect(try claim(two).isEmpty)
        try kill(one)
        let taken = try #require(try claim(two).first)
        #expect(taken.work == first.work && taken.fence == first.fence + 1 && taken.takenFrom == one.id)
        #expect(taken.notes == #"{"upload": "u"}"#)
        try one.hello()
        #expect(try claim(one).isEmpty)
        #expect(try settle(one, first, "delivered").refused == "IN009")
        #expect(code { try one.askMarked("v1_note", [.integer(first.work), .integer(first.fence), .null]) } == .fenced)
        // What goes back keeps its notes too.
        #expect(try settle(two, taken, "retry").refused == nil)
        let again = try #require(try claim(one).first)
        #expect(again.notes == taken.notes && again.takenFrom == nil && again.fence == taken.fence + 1)
        let end = try settle(one, again, "delivered")
        #expect(end.refused == nil && end.finish != nil && !end.failed)
    }

    @Test func `the right fence is not enough: the claim must be of this agent, and of this session`() throws {
        let (one, two) = (try member("one"), try member("two"))
        let (path, version) = ids()
        #expect(try admit(one, path, version, to: [1]) == [true])
        let claim = try #require(try claim(one).first)
        func isRefused(_ agent: SchemaAgent) throws -> Bool {
            let isNoted = [PostgresValue.integer(claim.work), .integer(claim.fence), .text("{}")]
            let end = try settle(agent, claim, "delivered")
            return end.refused == "IN009" && code { try agent.askMarked("v1_note", isNoted) } == .fenced
        }
        #expect(try isRefused(two))
        try one.hello()
        #expect(try isRefused(one))
        #expect(try fleet.value("SELECT state || fence FROM inlet.work") == "c\(claim.fence)")
    }

    @Test func `a new session gets its own work first, also while its agent drains`() throws {
        let (one, two) = (try member("one"), try member("two"))
        for _ in 0..<2 {
            let (path, version) = ids()
            #expect(try admit(one, path, version, to: [1]) == [true])
        }
        let first = try #require(try claim(one, 1).first)
        try fleet.run("UPDATE inlet.work SET attempts = 32000")
        try fleet.run("SELECT inlet.v1_admin_agent('one', 'draining')")
        #expect(try claim(one).isEmpty)
        try one.hello()
        let back = try claim(one)
        #expect(back.map(\.work) == [first.work] && back[0].fence == first.fence + 1 && back[0].takenFrom == nil)
        #expect(try fleet.value("SELECT max(attempts) FROM inlet.work") == "32000")
        #expect(try claim(two).count == 1)
        // Its end frees what it has.
        try one.ask("v1_bye")
        #expect(try claim(two).map(\.work) == [first.work])
    }

    @Test func `work of one key gets another, and loses the notes of the former`() throws {
        let (one, two) = (try member("one"), try member("two"))
        let destination = try one.destination()
        let (path, version) = ids()
        #expect(try admit(one, path, version, to: [destination]) == [true])
        #expect(try two.reserve(destination, ["taken"], [77]) == [true])
        let work = try #require(try claim(two).first)
        try two.askMarked("v1_note", [.integer(work.work), .integer(work.fence), .text(#"{"upload": "u"}"#)])
        func rename(_ agent: SchemaAgent, _ key: String) throws -> Bool? {
            try agent.askMarked("v1_rename", [.integer(work.work), .integer(work.fence), .text(key)]).boolean(0, 1)
        }
        #expect(try rename(two, "taken") == false)
        #expect(try rename(two, "a_\(one.tag).mov") == false, "a tag is of one agent's own files")
        #expect(try rename(two, "free") == true)
        #expect(try rename(two, "free") == true)
        #expect(try fleet.run("SELECT key, notes FROM inlet.work") == [["free", nil]])
        #expect(code { _ = try rename(one, "other") } == .fenced)
        #expect(code { _ = try rename(two, "") } == .argument)
        #expect(try one.reserve(destination, ["free"], [78]) == [false])
        let finish = try #require(try settle(two, work, "delivered").finish)
        let values: [PostgresValue] = [.integer(finish.work), .integer(1), .text("k")]
        #expect(code { try two.askMarked("v1_rename", values) } == .argument)
    }

    // MARK: - Ends

    @Test func `two agents end the last deliveries of a version at once, and one of them finishes it`() async throws {
        // Nobody beats here.
        try fleet.run("UPDATE inlet.fleet SET ttl = '10 min'")
        let (one, two) = (try member("one"), try member("two"))
        for round in 0..<10 {
            let (path, version) = ids()
            #expect(try admit(one, path, version, to: [1, 2]) == [true, true])
            let (first, second) = (try #require(try claim(one, 1).first), try #require(try claim(two, 1).first))
            async let left = Task { try settle(one, first, round % 2 == 0 ? "failed" : "delivered") }.value
            async let right = Task { try settle(two, second, "delivered") }.value
            let ends = [try await left, try await right]
            let finishes = ends.filter { $0.finish != nil }
            #expect(finishes.count == 1 && ends.allSatisfy { $0.refused == nil })
            #expect(finishes.map(\.failed) == [round % 2 == 0], "whoever finishes hears of a failure at the other")
        }
    }

    @Test func `the finishing of a failed version says so, whoever has it after whatever`() throws {
        let (one, two) = (try member("one"), try member("two"))
        let (path, version) = ids()
        #expect(try admit(one, path, version, to: [1]) == [true])
        let end = try settle(one, try #require(try claim(one).first), "failed", code: "too_large")
        let finish = try #require(end.finish)
        #expect(end.failed)
        #expect(try settle(one, finish, "retry", code: "busy").refused == nil)
        let next = try #require(try claim(two).first)
        #expect(next.kind == "f" && next.code == "failed" && next.key == nil)
        #expect(try fleet.run("SELECT plan->>'route', reason FROM inlet.work") == [["all", nil]])
        #expect(try settle(two, next, "finished").refused == nil)
        #expect(try fleet.value("SELECT state FROM inlet.file") == "x")
        #expect(try admit(one, path, version, to: [1]) == [false])
    }

    @Test func `a version of which nothing was sent is admitted again, another one never`() throws {
        let one = try member("one")
        for outcomes in [["superseded", "superseded"], ["delivered", "superseded"], ["superseded", "failed"]] {
            let (path, version) = ids()
            #expect(try admit(one, path, version, to: [1, 2]) == [true, true])
            let ends = try zip(try claim(one), outcomes).map { try settle(one, $0, $1) }
            #expect(ends.map { $0.finish != nil } == [false, true] && ends[1].failed)
            let isKnown: [PostgresValue] = [.integer(1), .uuids([path]), .uuids([version])]
            #expect(try one.ask("v1_known", isKnown).booleans(0, 0) == [true])
            try settle(one, try #require(ends[1].finish), "finished")
            let isFruitless = outcomes == ["superseded", "superseded"]
            #expect(try one.ask("v1_known", isKnown).booleans(0, 0) == [!isFruitless])
            #expect(try admit(one, path, version, to: [1, 2]) == [isFruitless, isFruitless])
            try fleet.run("DELETE FROM inlet.work")
        }
    }

    @Test func `an own version of two agents is forgotten once neither has sent it`() throws {
        let (one, two) = (try member("one"), try member("two"))
        let (path, version) = ids()
        func own(_ agent: SchemaAgent, _ isOwn: Bool) throws -> [Bool] {
            try agent.askMarked(
                "v1_own_versions", [.integer(1), .uuids([path]), .uuids([version]), .boolean(isOwn)]
            ).booleans(0, 1)
        }
        for agent in [one, two, one] { #expect(try own(agent, true) == [true]) }
        // It went away at one agent, said again as after a lost answer. The other one may have sent it.
        for _ in 0..<2 { #expect(try own(two, false) == [true]) }
        #expect(try admit(two, path, version, to: [1]) == [false])
        #expect(try own(one, false) == [false])
        #expect(try admit(two, path, version, to: [1]) == [true])
        #expect(try own(one, false) == [false])
        #expect(try fleet.value("SELECT count(*) FROM inlet.work") == "1")
    }

    // MARK: - After a loss

    @Test func `what agents report after a loss is there once, and nobody claims before all have`() throws {
        let (one, two) = (try member("one"), try member("two"))
        let (both, done) = (ids(), ids())
        // The database forgot everything about these.
        try fleet.run("SELECT inlet.v1_admin_restored(NULL)")
        let rows = [1, 2].map { row(both.path, both.version, destination: $0, key: "k\($0)") }
        let ended = row(done.path, done.version, destination: 1, key: "k3")
        try one.ask("v1_again_admitted", [.integer(1), .text("[\(rows[0]), \(ended)]")])
        #expect(code { _ = try claim(two) } == .reportFirst)
        try two.ask("v1_again_admitted", [.integer(1), .text("[\(rows[0]), \(rows[1])]")])
        try two.ask("v1_again_finished", [.integer(1), .uuids([done.path]), .uuids([done.version])])
        // In the other order too.
        try one.ask("v1_again_admitted", [.integer(1), .text("[\(ended), \(rows[1])]")])
        try two.ask("v1_again_done", [.integer(two.seen), .text("[]")])
        #expect(code { _ = try claim(two) } == .nothingGranted)
        #expect(code { _ = try hold(two) } == .nothingGranted)
        try one.ask("v1_again_done", [.integer(one.seen), .text("[]")])
        let claims = try claim(two)
        #expect(claims.map(\.key) == ["k1", "k2"])
        #expect(try settle(two, claims[0], "delivered").finish == nil)
        #expect(try settle(two, claims[1], "delivered").finish != nil)
        #expect(try admit(one, done.path, done.version, to: [1]) == [false])
    }

    @Test(arguments: [true, false])
    func `a version ends as failed where only a waived agent knows of a delivery`(isTold: Bool) throws {
        let (one, two, _) = (try member("one"), try member("two"), try member("gone"))
        let (path, version) = ids()
        try fleet.run("SELECT inlet.v1_admin_restored(NULL)")
        let rows = [1, 2].map { row(path, version, destination: $0, key: "k\($0)", of: 2) }
        // As after a report that broke off.
        for _ in 0..<2 { try one.ask("v1_again_admitted", [.integer(1), .text("[\(rows[0])]")]) }
        if isTold { try two.ask("v1_again_admitted", [.integer(1), .text("[\(rows[1])]")]) }
        for agent in [one, two] { try agent.ask("v1_again_done", [.integer(agent.seen), .text("[]")]) }
        #expect(code { _ = try claim(one) } == .nothingGranted)
        #expect(try fleet.value("SELECT inlet.v1_admin_waive('gone')") == "open")
        let ends = try claim(one).map { try settle(one, $0, "delivered") }
        #expect(ends.count == (isTold ? 2 : 1))
        let finish = try #require(ends.last?.finish)
        #expect(ends.last?.failed == !isTold)
        #expect(try settle(one, finish, "finished").refused == nil)
        #expect(try fleet.value("SELECT state::text FROM inlet.file") == (isTold ? "f" : "x"))
        #expect(try admit(one, path, version, to: [1, 2]) == [false, false])
    }

    @Test func `the source waits for what a waived agent had claimed before the backup`() throws {
        let (one, lost) = (try member("one"), try member("gone"))
        let (path, version) = ids()
        #expect(try admit(one, path, version, to: [1, 2]) == [true, true])
        let (own, _) = (try #require(try claim(one, 1).first), try #require(try claim(lost, 1).first))
        try fleet.run("SELECT inlet.v1_admin_restored(NULL)")
        try one.ask("v1_again_done", [.integer(one.seen), .text("[]")])
        #expect(try fleet.value("SELECT inlet.v1_admin_waive('gone')") == "open")
        #expect(try settle(one, own, "delivered").finish == nil)
        try kill(lost)
        try age(one)
        let taken = try #require(try claim(one).first)
        #expect(taken.takenFrom == lost.id)
        let end = try settle(one, taken, "delivered")
        #expect(end.finish != nil && !end.failed)
    }

    @Test func `an init that has no column to add waits for nobody who reads`() throws {
        var reader = try fleet.connect()
        try reader.runScript("BEGIN; LOCK TABLE inlet.fleet, inlet.file, inlet.work IN ACCESS SHARE MODE")
        var administration = try fleet.administration()
        #expect(try administration.initialise().before == FleetSchema.version)
    }

    @Test func `init brings a database of an earlier state to this one`() throws {
        var owner = try fleet.connect()
        try owner.runScript(
            """
            DROP FUNCTION inlet.v1_settle_many(int, bytea, bigint, bigint, jsonb);
            DROP FUNCTION inlet.v1_rename;
            CREATE FUNCTION inlet.v1_settle_many(int, bytea, bigint, bigint, jsonb) RETURNS TABLE (work bigint)
                LANGUAGE sql AS 'SELECT 1::bigint';
            ALTER FUNCTION inlet.v1_settle_many(int, bytea, bigint, bigint, jsonb) OWNER TO inlet_owner;
            ALTER TABLE inlet.file DROP COLUMN sent, DROP COLUMN whole, DROP COLUMN told, DROP COLUMN own;
            DROP VIEW inlet.status;
            ALTER TABLE inlet.fleet DROP COLUMN synchronous_at;
            ALTER TABLE inlet.work ADD CONSTRAINT work_place_fkey FOREIGN KEY (place) REFERENCES inlet.place;
            """)
        var administration = try fleet.administration()
        _ = try administration.initialise()
        let one = try member("one")
        let (path, version) = ids()
        #expect(try admit(one, path, version, to: [1]) == [true])
        #expect(try settle(one, try #require(try claim(one).first), "delivered").finish != nil)
    }
}
