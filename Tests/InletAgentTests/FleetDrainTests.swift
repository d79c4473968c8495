import InletCore
import InletFleet
import InletJournal
import InletLinux
import InletTestSupport
import Synchronization
import SystemPackage
import Testing

@testable import InletAgent

/// Stations that the fleet drains.
@Suite(
    .timeLimit(.minutes(10)),
    .enabled(if: PostgresCluster.isThere, Comment(rawValue: PostgresCluster.reason)))
struct FleetDrainTests {
    private func drain(_ fleet: FleetScene) throws { try fleet.run("SELECT inlet.v1_admin_agent('one', 'draining')") }
    private func undrain(_ fleet: FleetScene) throws { try fleet.run("SELECT inlet.v1_admin_agent('one', 'active')") }

    @Test func `a draining station sends what it has, says so once, and takes new files when it is taken back`()
        async throws
    {
        let (fleet, gate) = (try FleetScene(), Gate())
        fleet.store.script("a.mov", .hold(gate, .deliver))
        try await fleet.station("one").run { stage in
            try await stage.isLive()
            try stage.scene.drop("a.mov")
            try await eventually("it is on its way") { fleet.store.record.running == 1 }
            try drain(fleet)
            let report = try await stage.fleet("draining") { report in
                report.isDraining && report.agents.first?.activity?.isDraining == true
            }
            #expect(report.agents.first?.state == .draining && report.state == .live)
            #expect(stage.events.count("fleet.drained") == 0, "a file is on its way")
            try stage.scene.drop("b.mov")
            gate.open()
            try await stage.finished("a.mov")
            try await eventually("all is sent") { stage.events.count("fleet.drained") == 1 }
            _ = try await stage.fleet("said to be empty") { report in
                report.agents.first?.activity.map { $0.isDraining && $0.waiting + $0.inFlight + $0.held == 0 } ?? false
            }
            #expect(try await stage.jobs().map(\.file.path) == ["a.mov"])
            try undrain(fleet)
            try await stage.finished("b.mov")
            // The folder said nothing of a queue that is full.
            #expect(stage.events.count("queue.full") == 0 && stage.events.count("queue.recovered") == 0)
            #expect(stage.events.count("fleet.drained") == 1)
            _ = try await stage.fleet("active again") { !$0.isDraining }
        }
    }

    @Test func `a draining station takes no new file after a restart, though PostgreSQL is away`() async throws {
        let fleet = try FleetScene(isAlone: true)
        let scene = try fleet.station("one")
        try await scene.run { stage in
            try await stage.isLive()
            try drain(fleet)
            try await eventually("it is draining") { stage.member?.isDraining == true }
        }
        fleet.cluster.stop(immediate: true)
        try scene.drop("b.mov")
        try await fleet.station("one", in: scene.directory).run { stage in
            try await eventually("it is away") { stage.events.count("fleet.away") == 1 }
            #expect(stage.agent.control.live?.shared.room.isHeld == true)
            #expect(try await stage.jobs().isEmpty)
            try fleet.cluster.start()
            try await eventually("all is sent") { stage.events.count("fleet.drained") == 1 }
            #expect(try await stage.jobs().isEmpty)
            try undrain(fleet)
            try await stage.finished("b.mov")
        }
        // Nor does the next process believe that it is draining.
        let journal = try Journal(path: scene.journalPath, now: .now)
        defer { journal.close() }
        #expect(try await !journal.fleetIsDraining())
    }

    @Test func `a person's file is sent by a draining station`() async throws {
        let fleet = try FleetScene()
        try await fleet.station("one").run { stage in
            try await stage.isLive()
            try drain(fleet)
            try await eventually("it is draining") { stage.member?.isDraining == true }
            let path = try stage.scene.directory.write(Array("content".utf8), to: "other/c.mov")
            let job = try #require(await stage.agent.control.send(path, to: "here").job)
            try await eventually("it is delivered") { try await stage.journal.job(job)?.file.state == .delivered }
        }
    }
}

/// The hold itself.
@Suite struct QueueHoldTests {
    @Test func `a held queue has no room, wakes its roots at the end, and is not said to be full`() async throws {
        let directory = try TemporaryDirectory()
        let journal = try Journal(path: directory.path.appending("journal.sqlite"), now: .now)
        defer { journal.close() }
        let log = try EventLog(nil)
        let events = EventRecord(log)
        let woken = Mutex(0)
        let room = QueueCapacity(QueueLimit(), isHeld: true, journal: journal, log: log)
        #expect(await room.places() == 0 && room.limit == .closed)
        await room.refuse("/in") { woken.withLock { $0 += 1 } }
        room.hold(false)
        #expect(await room.places() == nil && woken.withLock(\.self) == 1)
        room.release("/in")
        #expect(events.names.isEmpty)
    }

    @Test func `a queue that was full before it was held is said to have room again`() async throws {
        let directory = try TemporaryDirectory()
        let journal = try Journal(path: directory.path.appending("journal.sqlite"), now: .now)
        defer { journal.close() }
        let log = try EventLog(nil)
        let events = EventRecord(log)
        let room = QueueCapacity(QueueLimit(files: 1), journal: journal, log: log)
        await room.refuse("/in") {}
        room.hold(true)
        await room.refuse("/in") {}
        room.hold(false)
        room.release("/in")
        #expect(events.names == ["queue.full", "queue.recovered"])
    }
}
