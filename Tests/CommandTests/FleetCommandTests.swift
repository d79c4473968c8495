import Foundation
import InletCore
import InletTestSupport
import SystemPackage
import Testing

/// `inlet fleet`, with a real PostgreSQL.
@Suite(.serialized, .enabled(if: PostgresCluster.isThere, FleetScene.reason)) struct FleetCommandTests {
    @Test func `init makes a fleet and shows its secret once; again it changes nothing and shows none`() async throws {
        let scene = try FleetScene()
        let first = try await scene.fleet("init", code: 0, says: "Made the schema 'inlet'")
        #expect(FleetScene.secrets(in: first.output).count == 1)
        #expect(first.output.contains("hostssl") && first.output.contains("CREATE ROLE inlet_station"))
        let before = try scene.run("SELECT id, join_hash, ttl FROM inlet.fleet")
        let second = try await scene.fleet("init", code: 0, says: "Nothing was changed")
        #expect(FleetScene.secrets(in: second.output).isEmpty && !second.output.contains("PASSWORD"))
        #expect(try scene.run("SELECT id, join_hash, ttl FROM inlet.fleet") == before)
        // The role that it showed is one with which an agent may join, and no more.
        try scene.run(FleetScene.loginRole(in: first.output))
        #expect(try scene.run("SELECT pg_has_role('inlet_station', 'inlet_agent', 'MEMBER')") == [["t"]])
        #expect(try scene.run("SELECT has_table_privilege('inlet_station', 'inlet.agent', 'SELECT')") == [["f"]])
    }

    @Test func `init sets the fleet's name and ttl, and refuses a ttl out of bounds`() async throws {
        let scene = try FleetScene()
        try await scene.fleet("init", "--ttl", "700s", code: 64, errors: "1s to 10m")
        try await scene.fleet("init", "--ttl", "2s", "--name", "studio", code: 0)
        #expect(try scene.run("SELECT name, ttl = '2 s' FROM inlet.fleet") == [["studio", "t"]])
    }

    @Test func `init promises lossless failovers only where commits wait for a standby`() async throws {
        let scene = try FleetScene()
        let refused = try await scene.fleet(
            "init", "--failover", "lossless", code: 1, errors: "set synchronous_standby_names")
        #expect(FleetScene.secrets(in: refused.output).count == 1, "it is shown once, by the first run")
        try await scene.fleet("init", "--failover", "reports", code: 0, says: "the promotion of a standby: reports")
        try await scene.fleet("init", "--failover", "x", code: 64, errors: "--failover")
    }

    @Test func `another secret ends the one before, and a closed fleet lets nobody in`() async throws {
        let scene = try await FleetScene.prepared()
        let former = try scene.station("station-1")
        let secret = try await scene.fleet("secret", code: 0)
        #expect(secret.output.wholeMatch(of: /[a-z2-7]{52}\n/) != nil)
        try await former.inlet("fleet", "join", code: 1, errors: "wrong or closed")
        try scene.keepSecret(in: secret.output)
        try await scene.fleet("secret", "--close", code: 0, says: "No agent can join")
        try await former.inlet("fleet", "join", code: 1, errors: "wrong or closed", "inlet fleet secret")
    }

    @Test func `an agent joins once, and the same command then says as whom`() async throws {
        let scene = try await FleetScene.prepared()
        let place = try scene.station("station-1")
        let joined = try await place.inlet("fleet", "join", code: 0, says: "Joined at 127.0.0.1", "as station-1, tag ")
        let again = try await place.inlet("fleet", "join", code: 0, says: "as station-1, tag ", "Nothing was changed")
        let tags = [joined, again].compactMap { $0.output.firstMatch(of: /tag ([a-z2-7]{6})\./)?.1 }
        #expect(tags.count == 2 && tags[0] == tags[1])
        #expect(try scene.run("SELECT name, state FROM inlet.agent") == [["station-1", "active"]])
        // Another machine cannot have the name.
        try await scene.station("station-1").inlet(
            "fleet", "join", code: 1, errors: "is taken", "IN011", "another fleet.name")
        let without = try scene.station("station-2", joins: false)
        try await without.inlet("fleet", "join", code: 78, errors: "--secret-file FILE")
        try await without.inlet("fleet", "join", "--secret-file", scene.joinSecret.string, code: 0, says: "station-2")
    }

    @Test func `a running agent joins by itself, and everybody finds what it delivered`() async throws {
        let scene = try await FleetScene.prepared()
        let place = try scene.station("station-1")
        let agent = try await place.run()
        try await agent.line("fleet.connected")
        try await place.inlet("fleet", "join", code: 0, says: "as station-1", "Nothing was changed")
        for name in ["clip, 1.mov", "=cmd.mov"] { try await place.deliver(FilePath(name), bytes(100), by: agent) }
        try await scene.fleet("search", "=cmd.mov", prints: "station-1")
        // The agent itself answers the same, without an administrator's address.
        try await place.inlet("fleet", "search", "=cmd.mov", code: 0, says: "station-1")
        try await place.inlet("fleet", "search", "other.mov", code: 1, errors: "no receipt matches")
        try await place.inlet("fleet", "status", code: 0, says: "studio", "station-1 (this)", "alive")
        let report = try await scene.fleet("status", "--json", code: 0).object()
        #expect((report["agents"] as? [[String: Any]])?.map { $0["name"] as? String } == ["station-1"])
        let found = try await scene.fleet("search", "=cmd.mov", "--json", code: 0).objects()
        #expect(found.map { $0["key"] as? String } == ["=cmd.mov"])
        try await exportIsWhole(scene)
        #expect(try await agent.stop() == .code(0))
    }

    /// Each receipt once, in a form that programs and spreadsheets read.
    private func exportIsWhole(_ scene: FleetScene) async throws {
        try await scene.fleet("search", "clip", prints: "station-1")
        let table = try await scene.fleet("export", code: 0).output
        let lines = table.components(separatedBy: "\r\n").filter { !$0.isEmpty }
        #expect(
            lines.count == 3 && lines[0].hasPrefix("at,agent,destination,state,root,path,name,size,key,url"), "\(table)"
        )
        #expect(lines.contains { $0.contains(",\"clip, 1.mov\",") }, "\(table)")
        // A spreadsheet computes nothing.
        #expect(lines.contains { $0.contains(",'=cmd.mov,") } && !table.contains(",=cmd"), "\(table)")
        let objects = try await scene.fleet("export", "--format", "json", code: 0).objects()
        #expect(Set(objects.compactMap { $0["name"] as? String }) == ["clip, 1.mov", "=cmd.mov"])
        let lately = try await scene.fleet("receipts", "--since", "1h", "--json", code: 0).objects()
        #expect(lately.count == 2)
        try await scene.fleet("receipts", "--since", "2126-01-01T00:00:00Z", code: 0, says: "No receipts")
        try await scene.fleet("places", code: 0, says: "No agent watches a share")
    }

    @Test func `takeover asks, refuses the living, and retires the dead`() async throws {
        let scene = try await FleetScene.prepared()
        let place = try scene.station("station-1")
        let agent = try await place.run()
        try await agent.line("fleet.connected")
        try await scene.fleet("takeover", "station-1", "--yes", code: 75, errors: "station-1 is alive")
        try await scene.fleet("takeover", "station-7", "--yes", code: 1, errors: "no agent is called 'station-7'")
        try await agent.kill()
        try await scene.fleet("agents", prints: "silent")
        try await scene.fleet("takeover", "station-1", code: 64, errors: "confirm with --yes")
        #expect(try scene.run("SELECT state FROM inlet.agent") == [["active"]])
        try await scene.fleet("takeover", "station-1", "--yes", code: 0, says: "station-1 is retired")
        #expect(try scene.run("SELECT state FROM inlet.agent") == [["retired"]])
    }

    @Test func `orders reach the fleet, and say what does not exist`() async throws {
        let scene = try await FleetScene.prepared()
        let place = try scene.station("station-1")
        try await place.inlet("fleet", "join", code: 0)
        try await scene.fleet("drain", "station-1", code: 0, says: "station-1 is draining")
        #expect(try scene.run("SELECT state FROM inlet.agent") == [["draining"]])
        try await scene.fleet("drain", "station-1", "--wait", code: 75, errors: "does not run")
        try await scene.fleet("undrain", "station-1", code: 0)
        #expect(try scene.run("SELECT state FROM inlet.agent") == [["active"]])
        try await scene.fleet("drain", "station-7", code: 1, errors: "no agent station-7 (IN011)")
        try scene.run("INSERT INTO inlet.destination (address, type, label) VALUES (sha256('a'), 's3', 'archive')")
        try await scene.fleet("limit", "archive", "5MiB/s", "--slots", "4", code: 0, says: "for all agents together")
        #expect(try scene.run("SELECT bandwidth, slots FROM inlet.destination") == [["5242880", "4"]])
        try await scene.fleet("limit", "archive", "off", code: 0)
        #expect(try scene.run("SELECT bandwidth, slots FROM inlet.destination") == [[nil, nil]])
        try await scene.fleet("limit", "attic", "off", code: 1, errors: "no destination attic")
        try await scene.fleet("limit", "archive", "5MiB", code: 64, errors: "did you mean '5MiB/s'?")
    }

    @Test func `places says who lists a share, what waits there, and why nobody does`() async throws {
        let scene = try await FleetScene.prepared()
        try await scene.station("station-1").inlet("fleet", "join", code: 0)
        try scene.run(
            """
            INSERT INTO inlet.place (name, marker) VALUES ('media', gen_random_uuid());
            INSERT INTO inlet.member SELECT p.id, a.id FROM inlet.place p, inlet.agent a;
            INSERT INTO inlet.work (place, path, version, state, name, size)
            SELECT p.id, gen_random_uuid(), gen_random_uuid(), s, '', 1
            FROM inlet.place p, unnest('{r,r,c}'::"char"[]) s
            """)
        try await scene.fleet("places", code: 0, says: "nobody lists it: none of its agents runs")
        try await scene.fleet("status", code: 0, says: "media")
        let place = try #require(try await scene.fleet("places", "--json", code: 0).objects().first)
        #expect(place["name"] as? String == "media" && place["is_held"] as? Bool == false)
        #expect(place["members"] as? [String] == ["station-1"])
        #expect(place["waiting"] as? Int == 2 && place["claimed"] as? Int == 1)
    }

    @Test func `after a restore the fleet names whom it waits for, and waive says what it risks`() async throws {
        let scene = try await FleetScene.prepared()
        try await scene.station("station-1").inlet("fleet", "join", code: 0)
        try await scene.fleet("waive", "station-1", "--yes", code: 0, says: "does not wait for station-1")
        try await scene.fleet("restored", "--why", "backup of 03:00", code: 0, says: "It waits for station-1")
        try await scene.fleet("status", code: 0, says: "Waits for station-1")
        try await scene.fleet("waive", "station-1", code: 64, errors: "may overwrite its files; confirm with --yes")
        #expect(try scene.run("SELECT state FROM inlet.fleet") == [["recovering"]])
        try await scene.fleet("waive", "station-1", "--yes", code: 0, says: "it is open")
        #expect(try scene.run("SELECT state FROM inlet.fleet") == [["open"]])
    }

    @Test func `who leaves is retired, and its machine is in no fleet`() async throws {
        let scene = try await FleetScene.prepared()
        let place = try scene.station("station-1")
        try await place.inlet("fleet", "join", code: 0)
        try await place.inlet("fleet", "leave", code: 64, errors: "confirm with --yes")
        try await place.inlet("fleet", "leave", "--yes", code: 0, says: "station-1 has left the fleet")
        #expect(try scene.run("SELECT state FROM inlet.agent") == [["retired"]])
        try await place.inlet("fleet", "leave", "--yes", code: 0, says: "in no fleet")
    }

    @Test func `an agent that the fleet forgot rejoins as itself, and a retired one under another name`() async throws {
        let scene = try await FleetScene.prepared()
        let place = try scene.station("station-1")
        let joined = try await place.inlet("fleet", "join", code: 0)
        let tag = try #require(joined.output.firstMatch(of: /tag [a-z2-7]{6}/)?.0)
        try scene.run("DELETE FROM inlet.beat")
        try scene.run("DELETE FROM inlet.agent")
        try await place.inlet("fleet", "join", code: 0, says: "Nothing was changed")
        try await place.inlet("fleet", "rejoin", code: 0, says: "station-1, \(tag)")
        try await scene.fleet("takeover", "station-1", "--yes", code: 0)
        try await place.inlet("fleet", "rejoin", code: 1, errors: "another fleet.name", "rejoin --new-identity")
        try place.configure(replacing: "name: station-1", with: "name: station-2")
        try await place.inlet("fleet", "rejoin", "--new-identity", code: 0, says: "station-2, tag ")
    }

    @Test func `a copy of a journal comes back as another agent, a restored one as itself`() async throws {
        let scene = try await FleetScene.prepared()
        let place = try scene.station("station-1")
        try await place.inlet("fleet", "rejoin", code: 1, errors: "run 'inlet fleet join'")
        try await place.inlet("fleet", "join", code: 0)
        let before = try scene.run("SELECT id, tag, token_hash FROM inlet.agent")
        try await place.inlet("fleet", "rejoin", code: 0, says: "station-1, tag \(before[0][1] ?? "?")")
        let after = try scene.run("SELECT id, tag, token_hash FROM inlet.agent")
        #expect(after[0][0] == before[0][0] && after[0][2] != before[0][2])
        try await place.inlet("fleet", "rejoin", "--new-identity", code: 1, errors: "is taken")
        try place.configure(replacing: "name: station-1", with: "name: station-2")
        try await place.inlet("fleet", "rejoin", "--new-identity", code: 0, says: "station-2, tag ")
        #expect(try scene.run("SELECT name FROM inlet.agent ORDER BY id") == [["station-1"], ["station-2"]])
        // While the agent runs, its journal is its own.
        let agent = try await place.run()
        try await place.inlet("fleet", "rejoin", code: 75, errors: "another inlet is running")
        #expect(try await agent.stop() == .code(0))
    }
}

/// What is said without a server that can be used.
@Suite struct FleetRefusalTests {
    private static let password = "canary-61f0c7"

    private func fleet(
        _ command: [String], environment: [String: String] = [:], code: Int32, errors: String...,
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        let folder = try TemporaryDirectory()
        let done = try await InletProcess.run(
            ["fleet"] + command, in: folder.path, environment: environment, code: code, sourceLocation: sourceLocation)
        for text in errors { #expect(done.errors.contains(text), "\(done.errors)", sourceLocation: sourceLocation) }
        #expect(!(done.output + done.errors).contains(Self.password), sourceLocation: sourceLocation)
    }

    @Test func `a server that is not there is 69, and its password is in no message`() async throws {
        let url = "postgresql://admin:\(Self.password)@127.0.0.1:9/inlet"
        let variable = ["INLET_FLEET_ADMIN": url]
        let words = ["cannot reach 127.0.0.1:9", "check the server and the network"]
        try await fleet(["init", "--url", url], code: 69, errors: words[0], words[1])
        try await fleet(["status"], environment: variable, code: 69, errors: words[0])
        try await fleet(["export"], environment: variable, code: 69, errors: words[0])
    }

    @Test func `an address that proves no server is 78, with the words to write`() async throws {
        for mode in ["", "?sslmode=require", "?sslmode=verify-ca"] {
            let url = "postgresql://admin:\(Self.password)@db.example/inlet\(mode)"
            try await fleet(
                ["init", "--url", url], code: 78, errors: "db.example", "sslmode=verify-full", "allow_unverified")
        }
        try await fleet(["init", "--url", "mysql://\(Self.password)"], code: 78, errors: "postgresql://USER@HOST")
    }

    @Test func `without an address each command names the ways to give one`() async throws {
        for command in [["init"], ["secret"], ["receipts"], ["takeover", "x"], ["limit", "x", "off"], ["restored"]] {
            try await fleet(command, code: 78, errors: "--url-file FILE", "INLET_FLEET_ADMIN", "fleet.admin_url_file")
        }
        try await fleet(["status"], code: 75, errors: "no agent runs here", "--url-file FILE")
        try await fleet(["init", "--url-file", "absent.url"], code: 78, errors: "absent.url")
        try await fleet(["init", "--url", "a", "--url-file", "b"], code: 64, errors: "either --url or --url-file")
        try await fleet(["receipts", "--since", "soon"], code: 64, errors: "'soon' is not a time")
    }

    @Test func `a configuration without a fleet is 78 for the commands of an agent`() async throws {
        let place = try Place()
        for command in ["join", "rejoin", "leave"] {
            try await place.inlet("fleet", command, code: 78, errors: "has no 'fleet:'", "url_file: FILE")
        }
        let agent = try await place.run()
        try await place.inlet("fleet", "status", code: 78, errors: "in no fleet")
        #expect(try await agent.stop() == .code(0))
    }
}
