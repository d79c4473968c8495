import Foundation
import InletCore
import InletFleet
import InletTestSupport
import SystemPackage

@testable import InletAgent
@testable import InletPipelines

extension FleetScene {
    /// Two stations that watch the folder of the first as the share `media`, and delete what was delivered. Each has a
    /// role of its own at PostgreSQL, so that one can be cut off.
    func sharing(
        _ first: String, _ second: String, _ change: (inout Scene) throws -> Void = { _ in }
    ) throws -> (one: Scene, two: Scene) {
        var (one, two) = (try member(first), try member(second))
        two.watch[0].path = one.watch[0].path
        try change(&one)
        try change(&two)
        return (one, two)
    }

    private func member(_ name: String) throws -> Scene {
        let role = role(of: name)
        try run("DROP ROLE IF EXISTS \(role)")
        try run("CREATE ROLE \(role) LOGIN IN ROLE inlet_agent")
        let scene = try station(name)
        // An empty folder may be one under a missing mount.
        try scene.directory.makeDirectory("drop/in")
        return try again(scene, name)
    }

    /// The next process of a member.
    func again(_ former: Scene, _ name: String) throws -> Scene {
        var scene = try station(name, in: former.directory, seat: UInt8(name.utf8.count))
        scene.watch[0].path = former.watch[0].path
        scene.watch[0].place = "media"
        scene.route.onSuccess = .delete
        scene.fleet?.address = try PostgresAddress(url(user: role(of: name)), allowsUnverified: false)
        return scene
    }

    private func role(of name: String) -> String {
        let scene = url(user: "").utf8.reduce(UInt32(7)) { $0 &* 31 &+ UInt32($1) }
        return "share_\(name)_\(scene)"
    }

    /// Cuts a station off from PostgreSQL, as a stopped process or a broken network does. An agent that is refused, as by NOLOGIN,
    /// asks again only after a minute.
    func cut(_ name: String) throws {
        try run("ALTER ROLE \(role(of: name)) CONNECTION LIMIT 0")
        try run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '\(role(of: name))'")
    }

    func mend(_ name: String) throws { try run("ALTER ROLE \(role(of: name)) CONNECTION LIMIT -1") }

    /// How many deliveries and finishings are open.
    var open: Int { get throws { try number("SELECT count(*) FROM inlet.work") } }

    /// Who has the one that is open, by the agent's name.
    func holder() throws -> String? {
        try run("SELECT a.name FROM inlet.work w JOIN inlet.agent a ON a.id = w.agent").first?.first ?? nil
    }

    /// As a claim leaves it whose answer was lost.
    func loseClaim(by name: String) throws {
        try run(
            """
            UPDATE inlet.work SET state = 'c', fence = fence + 1, agent = a.id, session = b.session
            FROM inlet.agent a JOIN inlet.beat b ON b.agent = a.id WHERE a.name = '\(name)' AND work.state = 'r'
            """)
    }

    /// As if the other of two agents had taken over what one has.
    func takeClaim() throws {
        try run(
            """
            UPDATE inlet.work w SET fence = w.fence + 1, agent = b.agent, session = b.session
            FROM inlet.beat b WHERE w.state = 'c' AND b.agent <> w.agent
            """)
    }

    /// As a backup from before the fleet knew anything of its shares' files would be, put back under its agents.
    func loseShares() throws {
        for table in ["work", "file", "key"] { try run("DELETE FROM inlet.\(table)") }
        try run("UPDATE inlet.beat SET mark = 0")
    }

    /// As a settlement of everything leaves it whose answer was lost.
    func loseSettlement() throws {
        try run(
            """
            WITH ended AS (DELETE FROM inlet.work WHERE kind = 'd' RETURNING *), left_over AS (
                UPDATE inlet.file f SET remaining = 0, state = 'd' FROM ended e
                WHERE f.place = e.place AND f.path = e.path AND f.version = e.version)
            INSERT INTO inlet.work (place, path, version, kind, state, agent, session, fence, name, size, plan)
            SELECT place, path, version, 'f', 'c', agent, session, 1, name, size, plan FROM ended
            """)
    }
}

extension Stage {
    /// Waits until the share of the test is usable here.
    func hasShare() async throws {
        try await eventually("the share is there") { agent.control.live?.fleet?.places.usable.count == 1 }
    }

    func isThere(_ name: FilePath) -> Bool { FileManager.default.fileExists(atPath: root.pushing(name).string) }
    func pause(_ isPaused: Bool, _ destination: String = "here") async throws {
        _ = try await agent.control.setPaused(isPaused, destination, by: "the test")
    }
}
