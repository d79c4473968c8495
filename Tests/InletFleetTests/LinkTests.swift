import InletCore
import InletFleet
import InletLinux
import InletTestSupport
import Testing

/// A link to a real server: the session's life.
@Suite(
    .timeLimit(.minutes(10)),
    .enabled(if: PostgresCluster.isThere, Comment(rawValue: PostgresCluster.reason)))
struct LinkTests {
    @Test func `a member says hello, beats, and keeps the marks that it hears`() async throws {
        let world = try LinkWorld(ttl: "12 s")
        let station = try world.link(try world.join("station-1"))
        try await station.whileLive {
            let standing = station.link.standing
            #expect(standing.name == "station-1" && standing.ttl == .seconds(12) && standing.message == nil)
            #expect(standing.figures.isConnected && standing.server == "127.0.0.1:\(world.port)")
            let session = station.session
            try await eventually("beats are answered") {
                station.link.standing.figures.calls["v1_beat"]?.results["ok"] ?? 0 >= 3
            }
            #expect(station.session == session && station.memory.hellos == 1)
            try await eventually("the mark is kept") { station.memory.seen == 1 }
        }
        #expect(try world.run("SELECT version, about->>'machine' FROM inlet.agent") == [["1.0", "test"]])
    }

    @Test func `the own deadline comes before the server's`() async throws {
        let world = try LinkWorld(ttl: "10 s")
        let station = try world.link(try world.join("station-1"))
        try await station.whileLive {
            // Ours is read first: what passes until the server's is read makes that one smaller.
            try await eventually("ours is the shorter one") {
                guard let own = station.link.standing.sessionLeft else { return false }
                let left = try world.run(
                    "SELECT (extract(epoch FROM until - clock_timestamp()) * 1000)::int FROM inlet.beat")
                return own < .milliseconds(Int(left[0][0] ?? "") ?? 0)
            }
        }
    }

    @Test func `a session whose line hangs refuses calls by its own deadline, without asking`() async throws {
        let world = try LinkWorld(ttl: "4 s")
        let proxy = try ChaosProxy(to: world.port)
        // The connection for beats comes first. It hangs some beats after the hello.
        proxy.add(.stall(.answer, after: 4000))
        let station = try world.link(try world.join("station-1"), port: Int(proxy.port))
        try await station.whileLive {
            let destination = try await station.destination()
            _ = try await station.link.reserve(destination, ["a.mov"], [1])
            try await eventually("the line hangs") { proxy.injected == 1 }
            proxy.close()
            try await eventually("the session is over") { station.session == nil }
            let error = try await refusal { _ = try await station.link.reserve(destination, ["a.mov"], [1]) }
            #expect(error.isAway && error.function == "v1_reserve")
            #expect(station.link.standing.figures.calls["v1_reserve"]?.results == ["ok": 1])
            try proxy.open()
            try await eventually("it is back with another session") { station.isLive }
        }
    }

    @Test func `after a crash of the server nothing is granted until the others are back, for one lease at most`()
        async throws
    {
        let world = try LinkWorld(ttl: "4 s", isAlone: true)
        let station = try world.link(try world.join("station-1"))
        // Known, and never back.
        _ = try world.join("station-2")
        try await station.whileLive {
            let session = station.session
            world.stop(immediate: true)
            try world.start()
            try await eventually("it confirms") { station.said.contains { $0.state == .confirming } }
            try await eventually("it is live again") { station.isLive }
            #expect(station.session != session && station.memory.hellos > 1)
        }
    }

    @Test func `a server that is away is named with the time, and found again`() async throws {
        let world = try LinkWorld(ttl: "4 s", isAlone: true)
        let station = try world.link(try world.join("station-1"))
        try await station.whileLive {
            let before = WallTime.now
            world.stop()
            try await eventually("it is away") { station.state == .connecting && station.link.standing.error != nil }
            let standing = station.link.standing
            #expect(standing.error?.isAway == true && !standing.figures.isConnected)
            #expect(standing.message?.contains("127.0.0.1:\(world.port)") == true)
            try await eventually("it says so") { station.said.last?.state == .connecting }
            #expect(try #require(station.said.last).since >= before)
            let error = try await refusal { _ = try await station.link.overview() }
            #expect(error.isAway)
            try world.start()
            try await eventually("it is back") { station.isLive }
            #expect(station.link.standing.message == nil)
        }
    }

    @Test func `another process of the same agent waits for the end of the first`() async throws {
        let world = try LinkWorld(ttl: "12 s")
        let memory = try world.join("station-1")
        let first = try world.link(memory)
        let other = memory.copy()
        other.hellos = 5
        let second = try world.link(other, seat: 2)
        try await first.whileLive {
            try await second.whileRunning {
                try await eventually("it is refused") { second.state == .refused(.isAlive) }
                #expect(second.link.standing.message?.contains("station-1") == true)
                #expect(first.isLive)
            }
        }
        try await second.whileLive { #expect(second.session != nil) }
    }

    @Test func `a copy of a journal is refused, and does not count on`() async throws {
        let world = try LinkWorld()
        let memory = try world.join("station-1")
        let copy = memory.copy()
        try await world.link(memory).whileLive {}
        let original = try world.link(memory)
        let second = try world.link(copy)
        try await second.whileRunning {
            try await eventually("it is refused") { second.state == .refused(.usedTwice) }
            #expect(second.link.standing.message?.contains("rejoin") == true)
            try await eventually("that is remembered") { copy.identity?.isUsedTwice == true }
        }
        // Its next process would have a number that the fleet has not seen, and the original is down.
        let third = try world.link(copy)
        #expect(third.state == .refused(.usedTwice))
        try await third.whileRunning {
            try await eventually("it says why") { third.said.last?.message?.contains("rejoin") == true }
            third.link.lookAgain()
            try await original.whileLive {}
            #expect(third.state == .refused(.usedTwice) && third.link.standing.figures.calls.isEmpty)
            copy.identity = try FleetMembership.rejoinAsNew(
                world.address(), secret: LinkWorld.secret, name: "station-2", journal: Memory().journal, about: [:])
            third.link.lookAgain()
            try await eventually("it is another agent") { third.isLive }
        }
    }

    @Test func `a clean end frees the agent at once`() async throws {
        let world = try LinkWorld(ttl: "10 min")
        let memory = try world.join("station-1")
        let first = try world.link(memory)
        try await whileServing({ try await first.link.run() }) {
            try await eventually("it is live") { first.isLive }
        }
        #expect(first.session == nil)
        // With a lease that lasts it would be refused as alive.
        try await world.link(memory, seat: 2).whileLive {}
    }

    @Test func `a database that went back is noticed, and gets a report from its mark on`() async throws {
        let world = try LinkWorld(ttl: "12 s")
        let station = try world.link(try world.join("station-1"))
        try await station.whileLive {
            let destination = try await station.destination()
            let (mark, _) = try await station.link.reserve(destination, ["a.mov", "b.mov"], [1, 2])
            try world.run("DELETE FROM inlet.key")
            try world.run("UPDATE inlet.beat SET mark = 1")
            try await eventually("it reports") { station.isReporting }
            let standing = station.link.standing
            #expect(standing.owesReport && standing.reportFrom == 1 && standing.seen >= mark)
            #expect(standing.figures.isRecovering && standing.message != nil)
            let error = try await refusal { _ = try await station.link.reserve(destination, ["c.mov"], [3]) }
            #expect([.reportFirst, .nothingGranted].contains(error.code))
            // Another's meanwhile, as if it had been given away before.
            try world.run(
                "INSERT INTO inlet.key (ref, hash, destination, owner) SELECT 9, inlet._hash('b.mov'), \(destination), 99"
            )
            #expect(try await station.link.againKeys(destination, ["a.mov", "b.mov"], [1, 2]) == [1])
            var earlier = standing
            earlier.session = -1
            let late = try await refusal { try await station.link.againDone(earlier, seen: 9, roster: []) }
            #expect(late.code == .sessionOver && station.link.standing.owesReport)
            try await station.link.againDone(standing, seen: standing.seen, roster: [])
            try await eventually("the fleet is open") { station.isLive }
            #expect(try await station.link.reserve(destination, ["a.mov"], [1]).granted == [true])
        }
    }

    @Test func `agents that others know keep the fleet closed, and are named`() async throws {
        let world = try LinkWorld(ttl: "12 s")
        let station = try world.link(try world.join("station-1"))
        try await station.whileLive {
            try world.run("UPDATE inlet.beat SET mark = 0")
            try await eventually("it reports") { station.link.standing.owesReport }
            let lost = (name: "nas4", tag: "abcdef", journal: "00000000-0000-4000-8000-000000000001")
            try await station.link.againDone(station.link.standing, seen: 0, roster: [lost])
            _ = try await station.link.overview()
            let standing = station.link.standing
            #expect(!standing.owesReport && standing.waitingFor == ["nas4"] && station.isReporting)
            #expect(standing.message?.contains("nas4") == true)
        }
    }

    @Test func `a retired agent is refused, and says how to come back`() async throws {
        let world = try LinkWorld(ttl: "4 s")
        let station = try world.link(try world.join("station-1"))
        try await station.whileLive {
            try world.run("UPDATE inlet.agent SET state = 'retired'")
            try await eventually("it is refused") { station.state == .refused(.unknownAgent) }
            #expect(station.link.standing.message?.contains("inlet fleet rejoin") == true)
        }
    }

    @Test func `a schema without a function that is needed is refused by its name`() async throws {
        let world = try LinkWorld()
        let station = try world.link(try world.join("station-1"))
        try world.run("DROP FUNCTION inlet.v1_search")
        try await station.whileRunning {
            try await eventually("it is refused") { station.state == .refused(.schema) }
            #expect(station.link.standing.message?.contains("v1_search") == true)
        }
    }

    @Test func `an agent that joins while it runs is connected at once`() async throws {
        let world = try LinkWorld()
        let memory = Memory()
        let station = try world.link(memory)
        try await station.whileRunning {
            try await eventually("it waits for an identity") { station.said.last?.state == .alone }
            memory.identity = try world.join("station-1").identity
            station.link.lookAgain()
            try await eventually("it is live") { station.isLive }
            #expect(station.link.standing.name == "station-1")
        }
    }
}

struct SeatTests {
    @Test func `a seat is the boot, the device and the inode of a lock file`() {
        let seat = FleetLink.seat(boot: "one", device: 2, inode: 3)
        #expect(seat.count == 32 && seat == FleetLink.seat(boot: "one", device: 2, inode: 3))
        for other in [("other", 2, 3), ("one", 1, 3), ("one", 2, 4), ("one", 23, 0)] as [(String, UInt64, UInt64)] {
            #expect(seat != FleetLink.seat(boot: other.0, device: other.1, inode: other.2))
        }
    }
}
