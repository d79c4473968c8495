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

/// A folder that a station watched alone becomes a share: what it took before is its own.
@Suite(
    .timeLimit(.minutes(10)),
    .enabled(if: PostgresCluster.isThere, Comment(rawValue: PostgresCluster.reason)))
struct PlaceOwnTests {
    /// A station that has watched the folder alone: it has sent `a.mov`, and `b.mov` waits.
    private func alone(_ fleet: FleetScene, _ share: Share, _ onSuccess: Route.OnSuccess = .keep) async throws -> Scene
    {
        var scene = try fleet.station("one")
        scene.watch[0].path = share.root
        scene.route.onSuccess = onSuccess
        try await scene.run { one in
            try await one.isLive()
            try share.drop("a.mov")
            try await one.finished("a.mov")
            try await one.pause(true)
            try share.drop("b.mov")
            try await one.job("b.mov")
        }
        #expect(fleet.store.record.orders.count == 1)
        return scene
    }

    @Test func `what a station took before its folder was a share is sent once, whoever lists the share`() async throws
    {
        let (fleet, share) = (try FleetScene(), try Share())
        let scene = try await alone(fleet, share)
        try await fleet.placed("one", share, in: scene.directory).run { one in
            try await one.lists()
            #expect(try fleet.number("SELECT count(*) FROM inlet.file WHERE state = 'f'") == 2)
        }
        try await fleet.placed("two", share, seat: 2).run { two in
            try await two.lists()
            try share.drop("c.mov")
            try await eventually("the new one is delivered") { fleet.store.record.stored["c.mov"] != nil }
            #expect(try fleet.admitted == 3 && fleet.store.record.orders.count == 2)
        }
        try await fleet.placed("one", share, in: scene.directory).run { one in
            try await one.pause(false)
            try await one.finished("b.mov")
            #expect(try fleet.admitted == 3 && fleet.store.record.orders.count == 3)
        }
    }

    @Test func `a station does not list a share before the fleet knows its own files there`() async throws {
        let (fleet, share) = (try FleetScene(), try Share())
        let scene = try await alone(fleet, share)
        try fleet.refuseOwnVersions()
        try await fleet.placed("one", share, in: scene.directory).run { one in
            try await one.hasShare()
            try await eventually("it says so") {
                one.events.field("reason", of: "agent.error").map { "\($0)".contains("own files of media") } ?? false
            }
            #expect(one.places?.holds(share.root) == false)
            try fleet.takeOwnVersions()
            try await one.lists()
            #expect(try fleet.admitted == 2)
        }
    }

    @Test func `the rules under which a station took a file dispose of its source`() async throws {
        let (fleet, share) = (try FleetScene(), try Share())
        let scene = try await alone(fleet, share, .delete)
        try await fleet.placed("one", share, in: scene.directory).run { one in
            try await one.lists()
            try await one.pause(false)
            #expect(try await one.finished("b.mov").file.disposition == Disposition.deleted)
            #expect(!one.isThere("b.mov"))
            // `a.mov` was deleted before: what is dropped there later is new.
            #expect(try fleet.admitted == 1)
        }
    }

    @Test func `an own file that went away before it was sent is a new one when it is back`() async throws {
        let (fleet, share) = (try FleetScene(), try Share())
        let scene = try await alone(fleet, share)
        let (path, aside) = (share.root.appending("b.mov"), share.directory.path.appending("aside.mov"))
        try await fleet.placed("one", share, in: scene.directory).run { one in
            try await one.lists()
            try DurableFile.rename(path, over: aside)
            try await one.pause(false)
            try await one.finished("b.mov", .gone)
            try await eventually("the fleet forgets it") { try fleet.admitted == 1 }
            try DurableFile.rename(aside, over: path)
            try await eventually("it is delivered") { fleet.store.record.stored.count == 2 }
            #expect(try fleet.admitted == 2 && fleet.store.record.orders.count == 2)
        }
    }

    @Test func `an own file that is back before the fleet has forgotten it is a new one, too`() async throws {
        let (fleet, share) = (try FleetScene(), try Share())
        let scene = try await alone(fleet, share)
        let (path, aside) = (share.root.appending("b.mov"), share.directory.path.appending("aside.mov"))
        try await fleet.placed("one", share, in: scene.directory).run { one in
            try await one.lists()
            try fleet.refuseOwnVersions()
            try DurableFile.rename(path, over: aside)
            try await one.pause(false)
            try await one.finished("b.mov", .gone)
            try DurableFile.rename(aside, over: path)
            try share.drop("c.mov")
            try await eventually("the next one is delivered") { fleet.store.record.stored["c.mov"] != nil }
            #expect(fleet.store.record.stored.count == 2)
            try fleet.takeOwnVersions()
            try await eventually("it is delivered") { fleet.store.record.stored.count == 3 }
        }
    }
}

extension FleetScene {
    fileprivate func refuseOwnVersions() throws {
        try run("ALTER FUNCTION inlet.v1_own_versions RENAME TO hidden_versions")
        try run(
            """
            CREATE FUNCTION inlet.v1_own_versions(int, bytea, bigint, bigint, int, uuid[], uuid[], boolean)
            RETURNS TABLE (mark bigint, own boolean[]) LANGUAGE plpgsql AS $$
            BEGIN
                RAISE EXCEPTION 'out of bounds' USING ERRCODE = 'IN011';
            END $$
            """)
    }

    fileprivate func takeOwnVersions() throws {
        // At once: an agent that finds no function takes the schema for an old one.
        try run(
            """
            DO $$ BEGIN
                DROP FUNCTION inlet.v1_own_versions;
                ALTER FUNCTION inlet.hidden_versions RENAME TO v1_own_versions;
            END $$
            """)
    }
}
