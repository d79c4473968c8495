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

/// Files of a share: each version is admitted once, whoever lists the share.
@Suite(
    .timeLimit(.minutes(10)),
    .enabled(if: PostgresCluster.isThere, Comment(rawValue: PostgresCluster.reason)))
struct PlaceAdmissionTests {
    @Test func `equal names of a share and of a station's own folder arrive under keys of their own`() async throws {
        let (fleet, share) = (try FleetScene(), try Share())
        try await fleet.station("own", seat: 3).run { own in
            try await own.isLive()
            try own.scene.drop("a.mov", "its own")
            try await own.finished("a.mov")
            try await fleet.placed("one", share).run { one in
                try await one.lists()
                try share.drop("a.mov", "of the share")
                try await eventually("both are there") { fleet.store.record.stored.count == 2 }
                let stored = fleet.store.record.stored.mapValues { String(decoding: $0, as: UTF8.self) }
                #expect(stored == ["a.mov": "its own", "a_2.mov": "of the share"])
            }
        }
    }

    @Test func `an admission is repeated without harm where its answer was lost`() async throws {
        let (fleet, share) = (try FleetScene(), try Share())
        try await fleet.placed("one", share) { $0.rescan = nil }.run { one in
            try await one.lists()
            let places = try #require(one.places)
            let path = try share.drop(".inlet/unseen/a.mov")
            let identity = try #require(try FileLook.look(at: path).identity)
            let arrival = FoundFile(root: share.root, path: ".inlet/unseen/a.mov", identity: identity)
            let plan = Plan(
                route: "all", category: "videos", key: "a.mov", mediaType: "video/quicktime", destinations: ["here"])
            let file = FileAdmission(arrival, plan: plan, lanes: ["here": .small], uptimes: ["here": 0])
            for _ in 0..<2 {
                let results = try #require(await places.admit([file]))
                #expect(results.map(\.outcome) == [.journal(.known(id: 0))])
            }
            #expect(try fleet.admitted == 1)
            #expect(try fleet.number("SELECT count(*) FROM inlet.key") == 1)
            #expect(try await places.known([arrival]) == [true])
        }
    }

    @Test func `a new holder does not admit again what was admitted`() async throws {
        let (fleet, share) = (try FleetScene(), try Share())
        try await fleet.placed("one", share).run { one in
            try await one.lists()
            for name in ["a.mov", "b.mov"] { try share.drop(FilePath(name)) }
            try await eventually("all are delivered") { fleet.store.record.stored.count == 2 }
            try await eventually("all are finished") {
                try fleet.number("SELECT count(*) FROM inlet.file WHERE state = 'f'") == 2
            }
        }
        try await fleet.placed("two", share, seat: 2).run { two in
            try await two.lists()
            try share.drop("c.mov")
            try await eventually("the new one is delivered") { fleet.store.record.stored["c.mov"] != nil }
            #expect(fleet.store.record.stored.count == 3 && fleet.store.record.orders.count == 3)
            #expect(try fleet.admitted == 3)
        }
    }

    @Test func `a changed file is another version, and a renamed one another file`() async throws {
        let (fleet, share) = (try FleetScene(), try Share())
        try await fleet.placed("one", share).run { one in
            try await one.lists()
            let path = try share.drop("a.mov", "first")
            try await eventually("it is delivered") { fleet.store.record.stored.count == 1 }
            try share.drop("a.mov", "the second content")
            try await eventually("both contents are there") { fleet.store.record.stored.count == 2 }
            #expect(
                fleet.store.record.stored["a_2.mov"].map { String(decoding: $0, as: UTF8.self) }
                    == "the second content")
            try DurableFile.rename(path, over: share.root.appending("b.mov"))
            try await eventually("the other name too") { fleet.store.record.stored["b.mov"] != nil }
            #expect(try fleet.admitted == 3)
        }
    }

    @Test func `a rejected file is in the journal of the station that lists`() async throws {
        let (fleet, share) = (try FleetScene(), try Share())
        var scene = try fleet.placed("one", share)
        scene.route.validate.maxSize = 3
        try await scene.run { one in
            try await one.lists()
            try share.drop("big.mov", "more than that")
            try await one.job("big.mov", "rejected") { $0.file.state == .rejected }
            try share.drop("ok.mov", "ok")
            try await eventually("the other one is delivered") { fleet.store.record.stored["ok.mov"] != nil }
            #expect(try fleet.admitted == 1)
        }
    }

    @Test func `companions and units do not apply in a share`() throws {
        var route = Route(name: "all", key: try KeyTemplate("{name}"), to: ["here"])
        (route.unit, route.completion, route.dedupe) = (.folder, .marker, .skip)
        route.sidecars.extensions = ["xmp"]
        let table = RouteTable([route]).forPlaces
        #expect(!table.hasUnits && !table.hasCompanions && !table.hasDerivations)
        #expect(table.routes[0].dedupe == .off && table.routes[0].manifest == nil)
        #expect(table.routes[0].name == "all" && table.routes[0].to == ["here"])
    }
}
