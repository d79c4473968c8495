import Foundation
import InletCore
import InletFleet
import InletJournal
import InletLinux
import InletTestSupport
import Synchronization
import SystemPackage
import Testing

@testable import InletAgent
@testable import InletPipelines

/// Stations with a real PostgreSQL: keys, contents, limits, orders and reports of several agents.
@Suite(
    .timeLimit(.minutes(10)),
    .enabled(if: PostgresCluster.isThere, Comment(rawValue: PostgresCluster.reason)))
struct FleetTests {
    @Test func `equal names of two stations arrive under keys of their own`() async throws {
        let fleet = try FleetScene()
        try await whileRunning(try fleet.station("one"), try fleet.station("two")) { one, two in
            #expect(one.events.count("fleet.joined") == 1)
            try one.scene.drop("a.mov", "from one")
            try two.scene.drop("a.mov", "from two")
            try await one.finished("a.mov")
            try await two.finished("a.mov")
            let stored = fleet.store.record.stored
            #expect(Set(stored.keys) == ["a.mov", "a_2.mov"])
            #expect(Set(stored.values.map { String(decoding: $0, as: UTF8.self) }) == ["from one", "from two"])
            #expect(try fleet.number("SELECT count(*) FROM inlet.key") == 2)
            let lost = one.member?.standing.figures.lost ?? 0
            #expect(lost + (two.member?.standing.figures.lost ?? 0) == 1)
        }
    }

    @Test func `another file under a granted key sends a delivery to its next name, within one attempt`() async throws {
        let fleet = try FleetScene()
        fleet.store.script("a.mov", .fail(DeliveryError(.giveUp, .destinationExists, "an object has the key 'a.mov'")))
        try await fleet.station("one").run { stage in
            try await stage.isLive()
            let job = try await stage.process("a.mov")
            #expect(job.deliveries[0].key == "a_2.mov" && job.deliveries[0].attempts == 1)
            #expect(fleet.store.record.stored["a_2.mov"] != nil)
            // Both stay taken: something is there under the first one.
            #expect(try fleet.number("SELECT count(*) FROM inlet.key") == 2)
        }
    }

    @Test func `while PostgreSQL is away a prefix of its own goes on, and other files get the tag`() async throws {
        let fleet = try FleetScene(isAlone: true)
        var scene = try fleet.station("one")
        scene.fleetShare.prefix = "one/"
        scene.others = [scene.route]
        scene.others[0].name = "rest"
        scene.route.match.paths = [try GlobPattern("own/**")]
        scene.route.key = try KeyTemplate("one/{name}")
        try await scene.run { stage in
            try await stage.isLive()
            try await eventually("the prefix is its own") {
                try await stage.journal.ownPrefixes()[FleetScene.address] == "one/"
            }
            try stage.scene.drop("before.mov")
            try await stage.finished("before.mov")
            fleet.cluster.stop(immediate: true)
            try await eventually("it is away") { stage.events.count("fleet.away") == 1 }
            let own = try await stage.process("own/a.mov")
            #expect(own.deliveries[0].key == "one/a.mov")
            let tagged = try await stage.process("b.mov")
            let tag = try #require(stage.member?.identity?.tag)
            #expect(tagged.deliveries[0].key == "b_\(tag).mov")
            #expect(stage.events.count("fleet.key_tagged") == 1)
            try fleet.cluster.start()
            try await stage.isLive()
            // The receipts catch up: none is missing, and none is there twice.
            try await eventually("all receipts are up") {
                try fleet.number("SELECT count(*) FROM inlet.receipt") == 3
            }
            try stage.scene.drop("after.mov")
            try await stage.finished("after.mov")
            try await eventually("the next one too") { try fleet.number("SELECT count(*) FROM inlet.receipt") == 4 }
            #expect(try fleet.number("SELECT count(DISTINCT path) FROM inlet.receipt") == 4)
            #expect(stage.events.count("fleet.back") == 1)
        }
    }

    @Test func `a file waits for PostgreSQL where the configuration says so, and keeps its name`() async throws {
        let fleet = try FleetScene(isAlone: true)
        try await fleet.station("one") { $0.whenAway = .wait }.run { stage in
            try await stage.isLive()
            fleet.cluster.stop(immediate: true)
            try await eventually("it is away") { stage.events.count("fleet.away") == 1 }
            try stage.scene.drop("a.mov")
            let held = try await stage.job("a.mov", "held") { $0.deliveries[0].code == .fleetAway }
            #expect(held.deliveries[0].reason?.contains("cannot reach") == true)
            for number in 0..<KeyReserver.batch { try stage.scene.drop(FilePath("more-\(number).mov")) }
            try await eventually("all say why they wait") {
                try await stage.jobs().count { $0.deliveries[0].code == .fleetAway } == KeyReserver.batch + 1
            }
            try fleet.cluster.start()
            let job = try await stage.finished("a.mov")
            #expect(job.deliveries[0].key == "a.mov" && job.deliveries[0].code == nil)
        }
    }

    @Test func `a content that another station has brought is not sent again`() async throws {
        let fleet = try FleetScene(ttl: "30 s")
        func scene(_ name: String) throws -> Scene {
            var scene = try fleet.station(name)
            (scene.route.dedupe, scene.route.onSuccess) = (.skip, .keep)
            return scene
        }
        try await whileRunning(try scene("one"), try scene("two")) { one, two in
            let first = try await one.process("a.mov", "the same")
            try await eventually("it is known to be there") {
                try fleet.number("SELECT count(*) FROM inlet.content WHERE there") == 1
            }
            let job = try await two.process("b.mov", "the same", as: .duplicate)
            let proof = try #require(job.deliveries[0].proof)
            #expect(proof.method == .link && proof.sameAsAgent == "one" && proof.key == "a.mov")
            #expect(job.deliveries[0].key == nil && fleet.store.record.orders.count == 1)
            // Its own key goes back.
            try await eventually("its key is free") { try fleet.number("SELECT count(*) FROM inlet.key") == 1 }
            try await eventually("all is published") { try fleet.number("SELECT count(*) FROM inlet.receipt") == 2 }
            // A person has it deleted at the store: nobody links to it any more.
            one.agent.control.live?.fleet?.contents.deleted(first.deliveries[0], of: first.file)
            try await eventually("it is forgotten") { try fleet.number("SELECT count(*) FROM inlet.content") == 0 }
        }
    }

    @Test func `others need not wait for a content whose agent is paused before its next try`() async throws {
        let (fleet, gate) = (try FleetScene(ttl: "30 s"), Gate())
        fleet.store.script("a.mov", .hold(gate, .fail(.passing)))
        var scene = try fleet.station("one")
        scene.route.dedupe = .skip
        try await scene.run { stage in
            try await stage.isLive()
            try stage.scene.drop("a.mov", "the same")
            try await eventually("it is on its way") { fleet.store.record.running == 1 }
            #expect(try fleet.number("SELECT count(*) FROM inlet.content") == 1)
            _ = try await stage.agent.control.setPaused(true, "here", by: "the test")
            gate.open()
            try await eventually("the content is free") { try fleet.number("SELECT count(*) FROM inlet.content") == 0 }
        }
    }

    @Test func `a content that another station sends now is waited for, and sent where that fails`() async throws {
        let fleet = try FleetScene(ttl: "30 s")
        let gate = Gate()
        fleet.store.script("a.mov", .hold(gate, .fail(.hopeless)))
        func scene(_ name: String) throws -> Scene {
            var scene = try fleet.station(name)
            scene.route.dedupe = .skip
            return scene
        }
        try await whileRunning(try scene("one"), try scene("two")) { one, two in
            try one.scene.drop("a.mov", "the same")
            try await eventually("it is on its way") { fleet.store.record.running == 1 }
            try two.scene.drop("b.mov", "the same")
            let waiting = try await two.job("b.mov", "waiting") {
                $0.deliveries[0].reason?.contains("one sends") == true
            }
            #expect(waiting.deliveries[0].attempts == 0)
            gate.open()
            try await one.finished("a.mov", .failed)
            try await eventually("the content is free") { try fleet.number("SELECT count(*) FROM inlet.content") == 0 }
            // Its own next look may come first.
            _ = try await two.agent.control.act(.retry, on: waiting.file.id)
            try await two.finished("b.mov")
        }
    }

    @Test func `the parts of a limit never exceed it`() async throws {
        let fleet = try FleetScene()
        let limit: Int64 = 8 << 20
        let rates = Mutex<[String: Int64]>([:])
        fleet.store.always(.stall)
        func scene(_ name: String) throws -> Scene {
            var scene = try fleet.station(name)
            scene.fleetShare.bandwidth = limit
            // What hangs at the end is not waited for.
            scene.grace = .zero
            scene.valve = { rate, destination in
                guard destination == "here" else { return }
                rates.withLock { $0[name] = rate }
                Happening.ring()
            }
            return scene
        }
        try await whileRunning(try scene("one"), try scene("two")) { one, two in
            try one.scene.drop("a.mov")
            try await eventually("one has all of it") { rates.withLock { $0["one"] } == limit }
            try two.scene.drop("b.mov")
            try await eventually("two has a part") { rates.withLock { ($0["two"] ?? 0) > 0 } }
            try await eventually("both send") { fleet.store.record.running == 2 }
            try await eventually("together they keep to it") {
                rates.withLock { $0.values.reduce(0, +) } <= limit
            }
            #expect(try fleet.number("SELECT sum(rate) FROM inlet.share") <= Int(limit))
        }
    }

    @Test func `two limits for one destination are an error that names both agents`() async throws {
        let fleet = try FleetScene()
        func scene(_ name: String, _ limit: Int64) throws -> Scene {
            var scene = try fleet.station(name)
            scene.fleetShare.bandwidth = limit
            return scene
        }
        try await scene("one", 1 << 20).run { one in
            try await one.isLive()
            try await one.process("a.mov")
            try await scene("two", 2 << 20).run { two in
                try await two.isLive()
                try await two.process("b.mov")
                let reason = two.events.field("reason", of: "agent.error").map { "\($0)" } ?? ""
                #expect(reason.contains("two names another limit than one"))
            }
        }
    }

    @Test func `an order is carried out once, though its answer was lost`() async throws {
        let fleet = try FleetScene()
        try await fleet.station("one").run { stage in
            try await stage.isLive()
            try fleet.run(
                "SELECT inlet.v1_admin_order('one', 'pause', '{\"destination\": \"here\"}'::jsonb, interval '1 hour')")
            try await eventually("it is paused") { stage.events.count("destination.paused") == 1 }
            try await eventually("the order has ended") {
                try fleet.run("SELECT state FROM inlet.command") == [["done"]]
            }
            _ = try await stage.agent.control.setPaused(false, "here", by: "the test")
            // As if the answer had not come.
            try fleet.run("UPDATE inlet.command SET state = 'open', result = NULL")
            try await eventually("the order has ended again") {
                try fleet.run("SELECT state FROM inlet.command") == [["done"]]
            }
            #expect(try fleet.run("SELECT result ->> 'text' FROM inlet.command") == [["here"]], "the same answer")
            #expect(stage.events.count("destination.paused") == 1 && stage.events.count("fleet.command") == 1)
        }
    }

    @Test func `an agent with an administrator's address orders the others, one without it nobody`() async throws {
        let fleet = try FleetScene()
        let address = FleetSettings.Source.text(Secret(fleet.url(user: "postgres")))
        let boss = try fleet.station("one") { $0.adminURL = address }
        try await whileRunning(boss, try fleet.station("two")) { one, two in
            let (first, second) = (one.agent.control, two.agent.control)
            #expect(try await first.orderFleet(.pause, to: "two", by: "the test"))
            try await eventually("it is paused") { two.events.count("destination.paused") == 1 }
            #expect(try await first.orderFleet(.drain, to: "two", by: "the test"))
            try await eventually("it drains") { two.member?.isDraining == true }
            for order in [FleetOrder.undrain, .resume, .rescan] {
                #expect(try await first.orderFleet(order, to: "two", by: "the test"))
            }
            try await eventually("it goes on") {
                two.events.count("destination.resumed") == 1 && two.member?.isDraining == false
            }
            #expect(one.events.count("fleet.command") == 5)
            await #expect(throws: FleetError.self) {
                try await first.orderFleet(.drain, to: "three", by: "the test")
            }
            #expect(try await !second.orderFleet(.pause, to: "one", by: "the test"))
            let mayOrder = [await first.fleet?.mayOrder, await second.fleet?.mayOrder]
            #expect(mayOrder == [true, false])
        }
    }

    @Test func `an order that an earlier process carried out is only answered`() async throws {
        let fleet = try FleetScene()
        let scene = try fleet.station("one")
        try await scene.run { stage in
            try await stage.isLive()
            try fleet.run("SELECT inlet.v1_admin_order('one', 'rescan', '{}'::jsonb, interval '1 hour')")
            try await eventually("the order has ended") {
                try fleet.run("SELECT state FROM inlet.command") == [["done"]]
            }
        }
        try fleet.run("UPDATE inlet.command SET state = 'open', result = NULL")
        try await fleet.station("one", in: scene.directory).run { stage in
            try await eventually("the order has ended again") {
                try fleet.run("SELECT state FROM inlet.command") == [["done"]]
            }
            #expect(stage.events.count("fleet.command") == 0)
        }
    }

    @Test func `a changed url_file holds from the next connection on`() async throws {
        let fleet = try FleetScene(isAlone: true)
        var scene = try fleet.station("one")
        let file = try scene.directory.write(Array(fleet.url(user: "inlet_station").utf8), to: "fleet.url")
        scene.fleet?.settings.url = .file(file)
        try await scene.run { stage in
            try await stage.isLive()
            // As a password that was changed.
            try fleet.run("ALTER ROLE inlet_station RENAME TO inlet_station_of_today")
            try scene.directory.write(Array(fleet.url(user: "inlet_station_of_today").utf8), to: "fleet.url")
            fleet.cluster.stop(immediate: true)
            try await eventually("it is away") { stage.events.count("fleet.away") == 1 }
            try fleet.cluster.start()
            try await stage.isLive()
            try await stage.process("a.mov")
        }
    }

    @Test func `after commits were lost, keys are reported before anything is granted`() async throws {
        let fleet = try FleetScene()
        try await whileRunning(try fleet.station("one"), try fleet.station("two")) { one, two in
            try await one.process("a.mov", "from one")
            try await eventually("its receipt is up") { try fleet.number("SELECT count(*) FROM inlet.receipt") == 1 }
            try fleet.loseCommits(of: "one")
            try one.scene.drop("b.mov")
            try await eventually("it is reported") { one.events.count("fleet.reported") == 1 }
            try await one.finished("b.mov")
            try await eventually("the fleet is open") { try fleet.run("SELECT state FROM inlet.fleet") == [["open"]] }
            try await eventually("both say so") {
                one.events.count("fleet.open") == 1 && two.events.count("fleet.open") == 1
            }
            #expect(one.events.count("fleet.recovering") == 1 && two.events.count("fleet.recovering") == 1)
            let job = try await two.process("a.mov", "from two")
            #expect(job.deliveries[0].key == "a_2.mov")
            #expect(fleet.store.record.stored["a.mov"] == Array("from one".utf8))
            try await eventually("all receipts are up") { try fleet.number("SELECT count(*) FROM inlet.receipt") == 3 }
        }
    }

    @Test func `each station shows the others, and finds their files`() async throws {
        let fleet = try FleetScene()
        try await whileRunning(try fleet.station("one"), try fleet.station("two")) { one, two in
            try await one.process("a.mov")
            let report = try await two.fleet("complete") { report in
                report.state == .live && report.agents.count == 2
                    && report.agents.allSatisfy { $0.activity?.version == "test" && $0.isAlive }
            }
            #expect(report.name == "two" && report.message == nil)
            #expect(report.agents.map(\.name) == ["one", "two"] && report.agents.map(\.isSelf) == [false, true])
            try await eventually("the receipt is found") {
                // While its session is over nothing is found: on a busy machine a beat may come too late.
                let found = try? await two.agent.control.searchFleet("a.mov")
                return found?.map(\.agent) == ["one"]
            }
            // For the report after a loss of commits.
            #expect(try await two.journal.fleetRoster().map(\.name) == ["one", "two"])
        }
    }

    @Test func `a copy of a station asks for no key and gives no tag`() async throws {
        let fleet = try FleetScene()
        let scene = try fleet.station("one")
        try await scene.run { stage in try await stage.isLive() }
        try fleet.run("UPDATE inlet.beat SET hello = hello + 5")
        try await fleet.station("one", in: scene.directory) { $0.patience = .zero }.run { stage in
            try await eventually("it is refused") { stage.events.count("fleet.identity_twice") == 1 }
            try stage.scene.drop("a.mov")
            let held = try await stage.job("a.mov", "held") { $0.deliveries[0].code == .fleetAway }
            #expect(held.deliveries[0].reason?.contains("rejoin") == true)
            #expect(fleet.store.record.orders.isEmpty)
        }
    }

    @Test func `an agent without a secret says how to join, and its files wait`() async throws {
        let fleet = try FleetScene()
        var scene = try fleet.station("one")
        scene.fleet?.secret = nil
        try await scene.run { stage in
            try await eventually("it says how to join") {
                stage.events.field("reason", of: "agent.error").map { "\($0)" }?.contains("inlet fleet join") == true
            }
            try stage.scene.drop("a.mov")
            _ = try await stage.job("a.mov", "held") { $0.deliveries[0].code == .fleetAway }
            #expect(fleet.store.record.orders.isEmpty)
        }
    }
}
