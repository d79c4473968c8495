import InletCore
import InletFleet
import InletTestSupport
import Testing

/// The calls of stations, answered by a real server.
@Suite(
    .timeLimit(.minutes(10)),
    .enabled(if: PostgresCluster.isThere, Comment(rawValue: PostgresCluster.reason)))
struct LinkCallTests {
    /// Two stations that are live.
    private func whileTwoAreLive(
        _ world: LinkWorld, port: Int? = nil, _ body: (Station, Station) async throws -> Void
    ) async throws {
        let one = try world.link(try world.join("station-1"), port: port)
        let two = try world.link(try world.join("station-2"), port: port)
        try await one.whileLive { try await two.whileLive { try await body(one, two) } }
    }

    /// Keys that are refused to the second station, and again granted to the first.
    private func reserves(_ one: Station, _ two: Station) async throws {
        let destination = try await one.destination()
        #expect(try await two.destination() == destination)
        let keys = ["a \"quoted\", {key}.mov", "b\\.mov"]
        let (mark, granted) = try await one.link.reserve(destination, keys, [1, 2])
        #expect(granted == [true, true] && mark > 1 && one.memory.seen >= mark)
        #expect(try await two.link.reserve(destination, keys + ["c.mov"], [5, 6, 7]).granted == [false, false, true])
        #expect(try await one.link.reserve(destination, keys, [1, 2]).granted == [true, true])
        let later = try await one.link.unreserve(destination, [keys[0]], [1])
        #expect(later > mark)
        #expect(try await two.link.reserve(destination, keys, [5, 6]).granted == [true, false])
    }

    @Test func `a key is one station's, whoever asks how often`() async throws {
        try await whileTwoAreLive(try LinkWorld()) { try await reserves($0, $1) }
    }

    @Test(.enabled(if: PoolerProcess.isThere, Comment(rawValue: PoolerProcess.reason)))
    func `the same through pgbouncer in transaction mode`() async throws {
        let world = try LinkWorld()
        let folder = try TemporaryDirectory()
        let pooler = try world.pooler(in: folder)
        try await whileTwoAreLive(world, port: pooler.port) { try await reserves($0, $1) }
    }

    @Test func `a destination is asked for once a session`() async throws {
        let world = try LinkWorld()
        let station = try world.link(try world.join("station-1"))
        try await station.whileLive {
            let number = try await station.destination()
            #expect(try await station.destination() == number)
            #expect(try await station.destination("other") != number)
            #expect(station.link.standing.figures.calls["v1_destination"]?.results == ["ok": 2])
            let session = station.session
            try world.run("UPDATE inlet.beat SET until = '-infinity'")
            // A beat may be the first to hear of it.
            _ = try? await station.link.overview()
            try await eventually("there is another session") { station.isLive && station.session != session }
            #expect(try await station.destination() == number)
            #expect(station.link.standing.figures.calls["v1_destination"]?.results == ["ok": 3])
        }
    }

    @Test func `a folder of a destination is one station's, and the other hears whose`() async throws {
        try await whileTwoAreLive(try LinkWorld()) { one, two in
            let destination = try await one.destination()
            #expect(try await one.link.ownPrefix(destination, "station-1/") == nil)
            #expect(try await one.link.ownPrefix(destination, "station-1/") == nil)
            #expect(try await two.link.ownPrefix(destination, "station-1/sub/") == "station-1")
            #expect(try await two.link.reserve(destination, ["station-1/a.mov"], [1]).granted == [false])
        }
    }

    @Test func `a content is brought by one station, and then there for the other`() async throws {
        try await whileTwoAreLive(try LinkWorld()) { one, two in
            let destination = try await one.destination()
            let content = FleetContent(digest: SHA256.bytes(of: "film".utf8), size: 4, purpose: -7, ref: 1)
            var others = content
            others.ref = 2
            #expect(try await one.link.content(destination, content) == .own)
            #expect(try await two.link.content(destination, others) == .wait(by: "station-1"))
            try await one.link.contentThere(destination, content, key: nil, url: nil)
            #expect(try await two.link.content(destination, others) == .own)
            try await two.link.contentThere(destination, others, key: "film.mov", url: "https://x.example/film.mov")
            #expect(
                try await one.link.content(destination, content)
                    == .there(key: "film.mov", url: "https://x.example/film.mov", by: "station-2"))
        }
    }

    @Test func `a limit is the fleet's, with its parts for a lease, and another one names its agent`() async throws {
        try await whileTwoAreLive(try LinkWorld()) { one, two in
            let destination = try await one.destination()
            #expect(try await one.link.share(destination, rate: 1000, slots: 4, using: 0) == nil)
            #expect(try await one.link.limit(destination, bandwidth: 1000, slots: 4) == nil)
            #expect(try await two.link.limit(destination, bandwidth: 2000, slots: 4) == "station-1")
            let share = try #require(try await one.link.share(destination, rate: 5000, slots: 9, using: 0))
            #expect(share.rate == 1000 && share.slots == 4)
            #expect(share.until > .now && share.until < .now + .seconds(30))
            #expect(try await one.link.share(destination, rate: 0, slots: 0, using: 0) == nil)
        }
    }

    @Test func `receipts are taken once, found by name, and the last one is known at the next hello`() async throws {
        let world = try LinkWorld()
        let memory = try world.join("station-1")
        let station = try world.link(memory)
        try await station.whileLive {
            try await station.link.upkeep()
            let destination = try await station.destination()
            let rows = (1...3).map { seq in
                FleetReceipt(
                    seq: Int64(seq), destination: destination, size: 4, state: "delivered", root: "/mnt",
                    path: "day/Film \(seq) \"a\".mov", mtime: 5, key: "k/\(seq)", url: nil,
                    sha256: SHA256.bytes(of: "\(seq)".utf8).hex, labels: ["camera": "A"])
            }
            #expect(try await station.link.receipts(rows) == 3)
            #expect(try await station.link.receipts(rows) == 3)
            #expect(try world.run("SELECT count(*) FROM inlet.receipt") == [["3"]])
            let found = try await station.link.search("film 2", limit: 10)
            #expect(found.count == 1 && found.first?.agent == "station-1")
        }
        let next = try world.link(memory)
        try await next.whileLive { #expect(next.link.standing.receipts == 3) }
    }

    @Test func `an order is announced by a beat, listed until it ended, and then no more`() async throws {
        let world = try LinkWorld(ttl: "12 s")
        let station = try world.link(try world.join("station-1"))
        try await station.whileLive {
            #expect(try await station.link.commands().isEmpty)
            try world.run(
                """
                INSERT INTO inlet.command (agent, verb, args, asked_by, expires_at)
                SELECT id, 'pause', '{"destination": "r2"}', 'admin', now() + interval '1 hour' FROM inlet.agent
                """)
            try await eventually("it is announced") { station.link.standing.hasCommands }
            let commands = try await station.link.commands()
            #expect(commands.map(\.verb) == ["pause"] && commands.first?.args["destination"]?.string == "r2")
            #expect(commands.first?.askedBy == "admin")
            let before = station.said.count
            #expect(try await station.link.commands() == commands, "until it has ended")
            try await eventually("it is announced again") {
                station.said.dropFirst(before).contains { $0.hasCommands }
            }
            let id = try #require(commands.first).id
            try await station.link.commandEnded(id, done: true, result: Array(#"{"paused": true}"#.utf8))
            #expect(try await station.link.commands().isEmpty)
            #expect(try world.run("SELECT state, result->>'paused' FROM inlet.command") == [["done", "true"]])
        }
    }

    @Test func `a report is what the others see`() async throws {
        try await whileTwoAreLive(try LinkWorld()) { one, two in
            try await one.link.report(Array(#"{"state": "ok", "waiting": 3}"#.utf8))
            let view = try #require(JSON.value(try await two.link.overview()))
            let agent = try #require(view["agents"]?.array?.first { $0["name"]?.string == "station-1" })
            #expect(agent["report"]?["waiting"]?.integer == 3 && agent["alive"]?.boolean == true)
        }
    }

    @Test func `calls are counted by function and by how they ended`() async throws {
        let world = try LinkWorld()
        let station = try world.link(try world.join("station-1"))
        try await station.whileLive {
            let error = try await refusal { _ = try await station.link.search("", limit: 0) }
            #expect(error.code == .argument && error.function == "v1_search")
            station.link.count { $0.lost += 1 }
            let figures = station.link.standing.figures
            #expect(figures.calls["v1_search"]?.results == ["IN011": 1] && figures.lost == 1)
            #expect(figures.calls["v1_hello"]?.durations.count == 1)
        }
    }
}

/// Joining and leaving.
@Suite(
    .timeLimit(.minutes(10)),
    .enabled(if: PostgresCluster.isThere, Comment(rawValue: PostgresCluster.reason)))
struct LinkMembershipTests {
    private func join(_ world: LinkWorld, _ name: String, _ journal: String, secret: [UInt8] = LinkWorld.secret) throws
        -> FleetIdentity
    {
        try FleetMembership.join(world.address(), secret: secret, name: name, journal: journal, seen: 0, about: [:])
    }

    private let journal = "00000000-0000-4000-8000-00000000000a"

    @Test func `joining again with the same journal keeps number and tag, and ends the token of before`() async throws {
        let world = try LinkWorld()
        let first = try join(world, "station-1", journal)
        let second = try join(world, "station-1", journal)
        #expect(second.agent == first.agent && second.tag == first.tag && second.token != first.token)
        let memory = Memory()
        memory.identity = first
        let station = try world.link(memory)
        try await station.whileRunning {
            try await eventually("it is refused") { station.state == .refused(.unknownAgent) }
        }
    }

    @Test func `a wrong secret and a taken name are refused in words`() async throws {
        let world = try LinkWorld()
        _ = try join(world, "station-1", journal)
        let wrong = try await refusal { _ = try join(world, "station-2", journal, secret: [1, 2, 3]) }
        #expect(wrong.code == .unknownAgent && wrong.message.contains("join secret"))
        let taken = try await refusal {
            _ = try join(world, "station-1", "00000000-0000-4000-8000-00000000000b")
        }
        #expect(taken.code == .argument && taken.message.contains("station-1"))
    }

    @Test func `a restored journal that joins again is let in, and its keys stay taken`() async throws {
        let world = try LinkWorld()
        let memory = try world.join("station-1")
        let old = memory.copy()
        let identity = try #require(memory.identity)
        let station = try world.link(memory)
        try await station.whileLive {
            _ = try await station.link.reserve(try await station.destination(), ["a.mov"], [1])
        }
        old.identity = try FleetMembership.rejoin(
            world.address(), identity, secret: LinkWorld.secret, seen: old.seen, about: [:])
        let restored = try world.link(old)
        try await restored.whileLive {
            let destination = try await restored.destination()
            #expect(restored.link.standing.tag == identity.tag)
            #expect(try await restored.link.reserve(destination, ["a.mov"], [2]).granted == [false])
        }
    }

    @Test func `a copy becomes an agent of its own beside its original`() async throws {
        let world = try LinkWorld()
        let memory = try world.join("station-1")
        let copy = Memory()
        copy.identity = try FleetMembership.rejoinAsNew(
            world.address(), secret: LinkWorld.secret, name: "station-2", journal: copy.journal, about: [:])
        #expect(copy.identity?.tag != memory.identity?.tag && copy.identity?.agent != memory.identity?.agent)
        let (one, two) = (try world.link(memory), try world.link(copy))
        try await one.whileLive { try await two.whileLive { #expect(one.isLive && two.isLive) } }
    }

    @Test func `who leaves is retired, and known no more`() async throws {
        let world = try LinkWorld()
        let memory = try world.join("station-1")
        try FleetMembership.leave(world.address(), try #require(memory.identity))
        #expect(try world.run("SELECT state FROM inlet.agent") == [["retired"]])
        let station = try world.link(memory)
        try await station.whileRunning {
            try await eventually("it is refused") { station.state == .refused(.unknownAgent) }
        }
    }
}
