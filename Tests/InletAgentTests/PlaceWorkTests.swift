import Foundation
import InletCore
import InletFleet
import InletJournal
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

@testable import InletAgent
@testable import InletPipelines

/// Work of a share that several stations watch: who sends, who goes on, who disposes of the source.
@Suite(
    .timeLimit(.minutes(10)),
    .enabled(if: PostgresCluster.isThere, Comment(rawValue: PostgresCluster.reason)))
struct PlaceWorkTests {
    private func whileSharing(
        _ scenes: (one: Scene, two: Scene), _ body: (Stage, Stage) async throws -> Void
    ) async throws {
        try await whileRunning(scenes.one, scenes.two) { one, two in
            try await one.hasShare()
            try await two.hasShare()
            try await body(one, two)
        }
    }

    @Test func `all members send, each version once`() async throws {
        let (fleet, gate) = (try FleetScene(), Gate())
        fleet.store.always(.hold(gate, .deliver))
        try await whileSharing(try fleet.sharing("one", "second")) { one, two in
            for number in 0..<6 {
                let path = try one.scene.directory.write([UInt8](), to: FilePath("\(number).mov"))
                // Big, and of no blocks: none takes more than two at once. It is there with its whole size.
                try #require(truncate(path.string, 200 << 20) == 0)
                try DurableFile.rename(path, over: one.root.appending("\(number).mov"))
            }
            try await eventually("both send") {
                one.agent.control.live?.inFlight.isEmpty == false && two.agent.control.live?.inFlight.isEmpty == false
            }
            gate.open()
            try await eventually("all is done") {
                try fleet.open == 0 && fleet.store.record.stored.count == 6
            }
            #expect(fleet.store.record.orders.count == 6)
            try await eventually("all sources are gone") { !(0..<6).contains { one.isThere(FilePath("\($0).mov")) } }
        }
    }

    @Test func `a killed holder's upload is taken over with its notes, and completed once`() async throws {
        let (fleet, gate) = (try FleetScene(ttl: "4 s"), Gate())
        fleet.store.script("a.mov", .note(.hold(gate, .complete(.deliver))), .complete(.deliver))
        try await whileSharing(try fleet.sharing("one", "second")) { one, two in
            try one.scene.drop("a.mov")
            try await eventually("its upload is noted") {
                try fleet.number("SELECT count(*) FROM inlet.work WHERE notes ? 'upload'") == 1
            }
            let first = try #require(try fleet.holder())
            let (stopped, other) = first == "one" ? (one, two) : (two, one)
            try fleet.cut(first)
            try await eventually("the other completes it") { fleet.store.record.completed == 1 }
            #expect(fleet.store.record.notes.last?["upload"] == [1])
            #expect(other.events.count("fleet.took_over") == 1)
            #expect(other.member?.figures.takeovers == 1)
            try await eventually("its source is gone") { !one.isThere("a.mov") }
            // The stopped one continues, late.
            gate.open()
            try await eventually("it has nothing on its way") { fleet.store.record.running == 0 }
            #expect(fleet.store.record.completed == 1 && fleet.store.record.stored.count == 1)
            try fleet.mend(first)
            try #require(stopped.member).link.lookAgain()
            try await stopped.isLive()
            try await eventually("it has let go") { try await stopped.journal.placeWork().isEmpty }
            #expect(stopped.events.count("job.finished") == 0)
            #expect(fleet.store.record.orders.count == 2)
        }
    }

    @Test func `an upload whose work another has is not completed, though the own session lives`() async throws {
        let (fleet, gate) = (try FleetScene(ttl: "30 s"), Gate())
        fleet.store.script("a.mov", .note(.hold(gate, .complete(.deliver))), .complete(.deliver))
        try await whileSharing(try fleet.sharing("one", "second")) { one, two in
            try one.scene.drop("a.mov")
            try await eventually("its upload is noted") {
                try fleet.number("SELECT count(*) FROM inlet.work WHERE notes ? 'upload'") == 1
            }
            let (first, other) = try #require(try fleet.holder()) == "one" ? (one, two) : (two, one)
            try fleet.takeClaim()
            gate.open()
            try await eventually("it has nothing on its way") { fleet.store.record.running == 0 }
            #expect(fleet.store.record.completed == 0)
            try await eventually("it says so") { first.events.count("fleet.fenced") == 1 }
            // The other learns of its claim.
            try #require(other.member).link.renew()
            try await eventually("all is done") { try fleet.open == 0 && !one.isThere("a.mov") }
            #expect(fleet.store.record.completed == 1 && fleet.store.record.orders.count == 2)
        }
    }

    @Test func `after commits were lost, what a share has finished is reported, and not sent again`() async throws {
        let fleet = try FleetScene()
        let scenes = try fleet.sharing("one", "second") { $0.route.onSuccess = .keep }
        try await whileSharing(scenes) { one, two in
            try one.scene.drop("a.mov")
            try await eventually("it is finished") {
                try fleet.number("SELECT count(*) FROM inlet.file WHERE state = 'f'") == 1
            }
            for stage in [one, two] { try await stage.pause(true) }
            try one.scene.drop("b.mov")
            try await eventually("the next is admitted") { try fleet.open == 1 }
            try fleet.loseShares()
            for stage in [one, two] {
                try await eventually("it has reported") { stage.events.count("fleet.reported") == 1 }
            }
            #expect(try fleet.run("SELECT state::text FROM inlet.file ORDER BY 1") == [["f"], ["o"]])
            for stage in [one, two] { try await stage.pause(false) }
            try await eventually("all is done") {
                try fleet.number("SELECT count(*) FROM inlet.file WHERE state = 'f'") == 2
            }
            #expect(fleet.store.record.orders.count == 2)
        }
    }

    /// Two destinations, each of which one station pauses: so each station has one delivery of a file.
    private func whileSplit(
        _ fleet: FleetScene, _ other: ScriptedPipeline, _ body: (Stage, Stage) async throws -> Void
    ) async throws {
        let scenes = try fleet.sharing("one", "second") { scene in
            var destination = Destination.scripted("there", other)
            destination.address = "other.example/bucket"
            scene.destinations.append(destination)
            scene.route.to = ["here", "there"]
        }
        try await whileSharing(scenes) { one, two in
            try await one.pause(true, "there")
            try await two.pause(true, "here")
            try await body(one, two)
        }
    }

    @Test func `the agent of the last delivery disposes of the source, once`() async throws {
        let (fleet, other, gate) = (try FleetScene(), ScriptedPipeline(), Gate())
        other.script("a.mov", .hold(gate, .deliver))
        try await whileSplit(fleet, other) { one, two in
            try one.scene.drop("a.mov")
            try await eventually("one has done its part") { try fleet.open == 1 && !fleet.store.record.stored.isEmpty }
            #expect(one.isThere("a.mov"))
            gate.open()
            try await eventually("all is done") { try fleet.open == 0 }
            #expect(!one.isThere("a.mov"))
            try await eventually("it is said") { two.events.count("job.finished") == 1 }
            let disposed = [one, two].map { stage in
                stage.events.all.count { "\($0.line.fields)".contains("deleted") && $0.line.name == "job.finished" }
            }
            #expect(disposed == [0, 1])
            try await one.finished("a.mov")
        }
    }

    @Test func `a failure at one agent's destination leaves the source, whoever finishes it`() async throws {
        let (fleet, other, gate) = (try FleetScene(), ScriptedPipeline(), Gate())
        fleet.store.script("a.mov", .fail(.hopeless))
        other.script("a.mov", .hold(gate, .deliver))
        try await whileSplit(fleet, other) { one, two in
            try one.scene.drop("a.mov")
            try await eventually("one has failed") {
                try fleet.number("SELECT count(*) FROM inlet.file WHERE state = 'x'") == 1
            }
            gate.open()
            try await eventually("all is done") { try fleet.open == 0 }
            let job = try await two.finished("a.mov", .failed)
            #expect(job.deliveries.map(\.state) == [.delivered])
            #expect(one.isThere("a.mov"))
        }
    }

    @Test func `a source that is gone or replaced before it is sent ends its version`() async throws {
        let fleet = try FleetScene()
        try await whileSharing(try fleet.sharing("one", "second")) { one, two in
            for stage in [one, two] { try await stage.pause(true) }
            try one.scene.drop("a.mov")
            try one.scene.drop("b.mov", "the former content")
            try await eventually("both are admitted") { try fleet.open == 2 }
            try FileManager.default.removeItem(atPath: one.root.appending("a.mov").string)
            try one.scene.drop("b.mov", "the new one")
            // The other one would leave it for seconds to the one that lists the share.
            try await (one.places?.holds(one.root) == true ? one : two).pause(false)
            try await eventually("all is done") { try fleet.open == 0 && !one.isThere("b.mov") }
            let stored = fleet.store.record.stored.values.map { String(decoding: $0, as: UTF8.self) }
            #expect(stored == ["the new one"])
        }
    }

    @Test func `a source with another inode than at its admission is sent and stays, which is said once a share`()
        async throws
    {
        let fleet = try FleetScene()
        try await whileSharing(try fleet.sharing("one", "second")) { one, two in
            for stage in [one, two] { try await stage.pause(true) }
            for name in ["a.mov", "b.mov"] as [FilePath] { try one.scene.drop(name) }
            // An agent that is paused claims work, and puts it off: then it has the plan already.
            try await eventually("both are admitted, and nobody's") {
                try fleet.number(
                    """
                    WITH changed AS (
                        UPDATE inlet.work SET plan = jsonb_set(plan, '{inode}', '1')
                        WHERE (SELECT count(*) FROM inlet.work WHERE state = 'r') = 2 RETURNING *)
                    SELECT count(*) FROM changed WHERE state = 'r'
                    """) == 2
            }
            #expect(two.events.count("fleet.source_left") == 0 && two.places?.troubles == [])
            try await two.pause(false)
            try await eventually("all is done") { try fleet.open == 0 && fleet.store.record.stored.count == 2 }
            #expect(one.isThere("a.mov") && one.isThere("b.mov"))
            #expect(two.events.count("fleet.source_left") == 1)
            let problems = two.places?.report([]).flatMap(\.problems) ?? []
            #expect(problems.count == 1 && problems[0].hasSuffix("(mount SMB with serverino)"), "\(problems)")
        }
    }

    @Test func `what an agent cannot send goes to others`() async throws {
        let fleet = try FleetScene()
        try await whileSharing(try fleet.sharing("one", "second")) { one, two in
            try await one.pause(true)
            for number in 0..<5 { try one.scene.drop(FilePath("\(number).mov")) }
            try await eventually("all is done") { try fleet.open == 0 && fleet.store.record.stored.count == 5 }
            #expect(one.events.count("job.started") == 0 && two.events.count("job.started") == 5)
        }
    }

    @Test func `without PostgreSQL a share pauses, and goes on afterwards`() async throws {
        let fleet = try FleetScene(isAlone: true)
        let scenes = try fleet.sharing("one", "second") { scene in
            let own = try scene.directory.makeDirectory("own")
            scene.watch.append(WatchSettings(path: own, settle: .zero, rescan: nil))
        }
        try await whileSharing(scenes) { one, two in
            try one.scene.drop("a.mov")
            try await eventually("it is delivered") { try fleet.open == 0 && !one.isThere("a.mov") }
            fleet.cluster.stop(immediate: true)
            for stage in [one, two] {
                try await eventually("it is away, and its root is guarded") {
                    stage.events.count("fleet.away") == 1 && stage.isGuarded
                }
            }
            try one.scene.drop("b.mov")
            for (number, stage) in [one, two].enumerated() {
                try stage.scene.directory.write(Array("content".utf8), to: FilePath("own/\(number).mov"))
            }
            try await eventually("folders of their own go on") { fleet.store.record.stored.count == 3 }
            #expect(fleet.store.record.orders.count == 3 && one.isThere("b.mov"))
            try fleet.cluster.start()
            try await eventually("it goes on") { fleet.store.record.stored.count == 4 && !one.isThere("b.mov") }
            #expect(fleet.store.record.orders.count == 4)
        }
    }

    // MARK: - Lost answers

    @Test func `a claim whose answer was lost comes back with the next session`() async throws {
        let fleet = try FleetScene(ttl: "30 s")
        let scenes = try fleet.sharing("one", "second")
        try await scenes.one.run { one in
            try await one.isLive()
            try await one.hasShare()
            try await one.pause(true)
            try one.scene.drop("a.mov")
            try await eventually("it is ready") {
                try fleet.number("SELECT count(*) FROM inlet.work WHERE state = 'r'") == 1
            }
            try fleet.loseClaim(by: "one")
            try await one.pause(false)
            try #require(one.member).link.renew()
            try await eventually("it is done") { try fleet.open == 0 && !one.isThere("a.mov") }
            #expect(fleet.store.record.orders.count == 1)
        }
    }

    @Test func `a settlement whose answer was lost is not sent again while others are open`() async throws {
        let (fleet, other, sent) = (try FleetScene(ttl: "30 s"), ScriptedPipeline(), Gate())
        fleet.store.script("a.mov", .after(.deliver, sent))
        try await whileSplit(fleet, other) { one, two in
            try await two.pause(true, "there")
            try one.scene.drop("a.mov")
            try await eventually("it is stored") { fleet.store.record.stored.count == 1 }
            // Either agent may have the other delivery for a moment, to find that it cannot send it.
            try fleet.run(
                """
                DELETE FROM inlet.work USING inlet.destination d
                WHERE d.id = destination AND d.label = 'here'
                """)
            try fleet.run("UPDATE inlet.file SET remaining = remaining - 1")
            try #require(one.member).link.renew()
            sent.open()
            try await eventually("it has let go") { try await one.journal.placeWork().isEmpty }
            try await two.pause(false, "there")
            try await eventually("all is done") { try fleet.open == 0 && !one.isThere("a.mov") }
            #expect(fleet.store.record.orders.count == 1 && other.record.orders.count == 1)
        }
    }

    @Test func `the finishing that a lost settlement made comes back, and is done once`() async throws {
        let (fleet, sent) = (try FleetScene(ttl: "30 s"), Gate())
        fleet.store.script("a.mov", .after(.deliver, sent))
        let scenes = try fleet.sharing("one", "second")
        try await scenes.one.run { one in
            try await one.isLive()
            try await one.hasShare()
            try one.scene.drop("a.mov")
            try await eventually("it is stored") { fleet.store.record.stored.count == 1 }
            try fleet.loseSettlement()
            try #require(one.member).link.renew()
            sent.open()
            try await eventually("it is done") { try fleet.open == 0 && !one.isThere("a.mov") }
            #expect(fleet.store.record.orders.count == 1)
            try await eventually("nothing is left") { try await one.journal.placeWork().isEmpty }
        }
    }

    // MARK: - Drain, names

    @Test func `a drained agent hands over what does not run`() async throws {
        let fleet = try FleetScene()
        let scenes = try fleet.sharing("one", "second") { $0.route.retry.backoff = .seconds(300) }
        fleet.store.script("a.mov", .fail(.passing))
        try await whileSharing(scenes) { one, two in
            try one.scene.drop("a.mov")
            try await eventually("it waits for its next try") {
                fleet.store.record.orders.count == 1 && fleet.store.record.running == 0
            }
            let name = try #require(try fleet.holder())
            let drained = name == "one" ? one : two
            try fleet.run("SELECT inlet.v1_admin_agent('\(name)', 'draining')")
            try await eventually("the other sends it") { fleet.store.record.stored.count == 1 }
            try await eventually("it says so") { drained.events.count("fleet.drained") == 1 }
            #expect(try await drained.journal.placeWork().isEmpty)
            try await eventually("all is done") { try fleet.open == 0 && !one.isThere("a.mov") }
        }
    }

    @Test func `a drained agent hands over a source that a program has open`() async throws {
        let (fleet, gate) = (try FleetScene(), Gate())
        fleet.store.script("a.mov", .hold(gate, .deliver))
        try await whileSharing(try fleet.sharing("one", "second")) { one, two in
            let path = try one.scene.drop("a.mov")
            try await eventually("it is on its way") { fleet.store.record.running == 1 }
            let writer = try #require(FileHandle(forWritingAtPath: path.string))
            gate.open()
            try await eventually("its source waits") {
                try fleet.number("SELECT count(*) FROM inlet.work WHERE kind = 'f' AND notes ? 'hidden'") == 1
            }
            let name = try #require(try fleet.holder())
            let drained = name == "one" ? one : two
            try fleet.run("SELECT inlet.v1_admin_agent('\(name)', 'draining')")
            try await eventually("it says so") { drained.events.count("fleet.drained") == 1 }
            #expect(try await drained.journal.placeWork().isEmpty)
            try await eventually("the other has it") { try fleet.holder().map { $0 != name } ?? false }
            #expect(one.isThere("a.mov") && fleet.store.record.orders.count == 1)
            try writer.close()
        }
    }

    @Test func `another file under its key sends a delivery to its next name, within one attempt`() async throws {
        let fleet = try FleetScene()
        fleet.store.script("a.mov", .fail(DeliveryError(.giveUp, .destinationExists, "an object has the key 'a.mov'")))
        let scenes = try fleet.sharing("one", "second")
        try await scenes.one.run { one in
            try await one.isLive()
            try one.scene.drop("a.mov")
            let job = try await one.finished("a.mov")
            #expect(job.deliveries[0].key == "a_2.mov" && job.deliveries[0].attempts == 1)
            #expect(fleet.store.record.stored.keys.sorted() == ["a_2.mov"])
            try await eventually("all is done") { try fleet.open == 0 }
            #expect(try fleet.number("SELECT count(*) FROM inlet.key") == 2)
        }
    }

    @Test func `an agent that stops says how its last deliveries ended`() async throws {
        let fleet = try FleetScene()
        fleet.store.script("a.mov", .untilStopping(.deliver))
        let scenes = try fleet.sharing("one", "second")
        try await scenes.one.run { one in
            try await one.isLive()
            try one.scene.drop("a.mov")
            try await eventually("it is on its way") { fleet.store.record.running == 1 }
        }
        #expect(fleet.store.record.stored.count == 1)
        #expect(try fleet.number("SELECT count(*) FROM inlet.work WHERE kind = 'd'") == 0)
    }

    @Test func `an agent that stops and starts again sends nothing twice`() async throws {
        let fleet = try FleetScene()
        fleet.store.script("b.mov", .untilStopping(.fail(.passing)))
        let scenes = try fleet.sharing("one", "second")
        try await scenes.one.run { one in
            try await one.isLive()
            try one.scene.drop("a.mov")
            try await one.finished("a.mov")
            try one.scene.drop("b.mov")
            try await eventually("it is on its way") { fleet.store.record.running == 1 }
        }
        try await fleet.again(scenes.one, "one").run { one in
            try await one.finished("b.mov")
            try await eventually("all is done") { try fleet.open == 0 && !one.isThere("b.mov") }
            #expect(fleet.store.attempts(at: "a.mov") == 1 && fleet.store.attempts(at: "b.mov") == 2)
            #expect(one.events.count("fleet.fenced") == 0)
        }
    }
}

/// Notes of deliveries, without PostgreSQL.
@Suite struct PlaceNotesTests {
    @Test func `notes of other agents are read, and anything else is none`() {
        let text = Array(#"{"upload": "AQI="}"#.utf8)
        #expect(PlaceNotes.notes(text) == ["upload": [1, 2]])
        #expect(PlaceNotes.notes(nil).isEmpty && PlaceNotes.notes(Array("[1]".utf8)).isEmpty)
    }

    @Test func `one big file does not keep small ones out`() {
        func hold(_ size: Int64) -> FleetPlaces.Hold {
            FleetPlaces.Hold(work: 1, fence: 1, session: 1, root: "/in", isFinishing: false, size: size)
        }
        #expect(PlaceIntake.room(besides: []) == PlaceWorker.mostBytes)
        #expect(PlaceIntake.room(besides: [hold(1 << 40)]) == PlaceWorker.mostBytes)
        #expect(PlaceIntake.room(besides: [hold(1 << 40), hold(PlaceWorker.mostBytes)]) == 0)
    }
}
