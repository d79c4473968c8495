import InletCore
import InletFleet
import InletJournal
import InletTestSupport
import SystemPackage
import Testing

@testable import InletAgent
@testable import InletPipelines

/// Reports after PostgreSQL lost commits, and the prefixes that are claimed again with them.
@Suite(
    .timeLimit(.minutes(10)),
    .enabled(if: PostgresCluster.isThere, Comment(rawValue: PostgresCluster.reason)))
struct FleetRecoveryTests {
    /// A station that delivered `a.mov`, after the fleet forgot that. Its next process calls the destination `there`.
    private func station(_ fleet: FleetScene, at address: String) async throws -> Scene {
        let scene = try fleet.station("one")
        try await scene.run { stage in
            try await stage.isLive()
            try await stage.process("a.mov")
            try await eventually("its receipt is up") { try fleet.number("SELECT count(*) FROM inlet.receipt") == 1 }
        }
        try fleet.loseCommits(of: "one")
        var next = try fleet.station("one", in: scene.directory)
        var destination = Destination.scripted("there", fleet.store)
        destination.address = address
        (next.destinations, next.route.to) = ([destination], ["there"])
        return next
    }

    @Test func `a key is reported at its address, whatever its destination is called now`() async throws {
        let fleet = try FleetScene()
        try await station(fleet, at: FleetScene.address).run { stage in
            try await eventually("it is reported") { stage.events.count("fleet.reported") == 1 }
            #expect(try fleet.number("SELECT count(*) FROM inlet.key") == 1)
            #expect(stage.events.count("agent.error") == 0)
        }
    }

    @Test func `keys of a destination that left the configuration are not reported elsewhere, but counted`()
        async throws
    {
        let fleet = try FleetScene()
        try await station(fleet, at: "elsewhere.example/bucket").run { stage in
            try await eventually("it is reported") { stage.events.count("fleet.reported") == 1 }
            #expect(try fleet.number("SELECT count(*) FROM inlet.key") == 0)
            let reason = stage.events.field("reason", of: "agent.error").map { "\($0)" } ?? ""
            #expect(reason.contains("1 key was not reported"))
            try await eventually("the fleet is open") { try fleet.run("SELECT state FROM inlet.fleet") == [["open"]] }
        }
    }

    @Test func `a prefix is its agent's again before the fleet opens`() async throws {
        let fleet = try FleetScene()
        // The fleet waits for it, and stays closed.
        try await fleet.station("two").run { stage in try await stage.isLive() }
        var scene = try fleet.station("one")
        scene.fleetShare.prefix = "one/"
        try await scene.run { stage in
            try await stage.isLive()
            try await eventually("the prefix is its own") {
                try await stage.journal.ownPrefixes()[FleetScene.address] == "one/"
            }
            try fleet.run("DELETE FROM inlet.prefix")
            try fleet.run("SELECT inlet.v1_admin_restored('a test')")
            try await eventually("it is reported") { stage.events.count("fleet.reported") == 1 }
            #expect(try fleet.run("SELECT state FROM inlet.fleet") == [["recovering"]])
            #expect(try fleet.run("SELECT prefix FROM inlet.prefix") == [["one/"]])
        }
    }

    @Test func `waiting files are gone through again only where a prefix has changed`() async throws {
        let fleet = try FleetScene()
        var scene = try fleet.station("one")
        scene.fleetShare.prefix = "one/"
        try await scene.run { stage in
            try await stage.isLive()
            let (member, own) = (try #require(stage.member), [FleetScene.address: "one/"])
            // Its own claim comes first.
            try await eventually("the prefix is its own") { try await stage.journal.ownPrefixes() == own }
            _ = try await member.reserveKeys(besides: own)
            #expect(try await !member.reserveKeys(besides: own))
            #expect(try await member.reserveKeys(besides: [:]))
            #expect(try await member.reserveKeys(besides: own))
        }
    }
}
