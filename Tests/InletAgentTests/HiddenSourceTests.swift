import Foundation
import InletCore
import InletTestSupport
import SystemPackage
import Testing

@testable import InletAgent
@testable import InletPipelines

/// Sources of a share that an agent has hidden before it died.
@Suite(
    .timeLimit(.minutes(10)),
    .enabled(if: PostgresCluster.isThere, Comment(rawValue: PostgresCluster.reason)))
struct HiddenSourceTests {
    /// Beside the file, and where files wait whose writers are unknown.
    private static func names(_ tag: String) -> [FilePath] {
        [FilePath(".inlet-finishing-\(tag)-7.tmp"), FilePath(".inlet/held/\(tag)-7/a.mov")]
    }

    private func isArchived(_ stage: Stage) -> Bool { stage.isThere(".inlet/done/a.mov") }

    /// One agent lists; the other one, whose tag `body` gets, has stopped a moment ago.
    private func whileAlone(
        _ fleet: FleetScene, _ body: (Stage, String) async throws -> Void
    ) async throws {
        let scenes = try fleet.sharing("one", "second") { $0.route.onSuccess = .archive }
        try await scenes.two.run { two in
            try await two.isLive()
            try await two.hasShare()
        }
        let found = try fleet.run("SELECT tag FROM inlet.agent WHERE name = 'second'").first?.first ?? nil
        let tag = try #require(found)
        try await scenes.one.run { one in
            try await one.isLive()
            try await one.hasShare()
            try await one.pause(true)
            try await body(one, tag)
        }
    }

    /// All have the same size and mtime.
    private func drop(_ one: Stage) throws -> FilePath {
        let made = try one.scene.directory.write(Array("content".utf8), to: "made")
        let path = one.root.appending("a.mov")
        try FileManager.default.setAttributes(
            [.modificationDate: Date(timeIntervalSince1970: 1_700_000_000)], ofItemAtPath: made.string)
        try FileManager.default.moveItem(atPath: made.string, toPath: path.string)
        return path
    }

    /// Drops a file, and hides it as an agent does that dies before it disposes of it. Its finishing is not due.
    private func hide(_ fleet: FleetScene, _ one: Stage, by tag: String, as name: FilePath) async throws {
        let path = try drop(one)
        try await eventually("it is admitted") { try fleet.open == 1 }
        try fleet.leaveFinishing(hiddenBy: tag)
        let hidden = one.root.pushing(name)
        try FileManager.default.createDirectory(
            atPath: hidden.removingLastComponent().string, withIntermediateDirectories: true)
        try FileManager.default.moveItem(atPath: path.string, toPath: hidden.string)
    }

    @Test(arguments: [0, 1])
    func `what a gone agent has hidden is disposed of by another`(_ name: Int) async throws {
        let fleet = try FleetScene()
        try await whileAlone(fleet) { one, _ in
            let hidden = Self.names("zzzzzz")[name]
            try await hide(fleet, one, by: "zzzzzz", as: hidden)
            try fleet.wakeFinishing()
            try await eventually("it is archived") { try fleet.open == 0 && isArchived(one) }
            #expect(!one.isThere(hidden) && !one.isThere("a.mov"))
            #expect(fleet.store.record.orders.isEmpty)
        }
    }

    @Test func `what an agent has hidden that may come back stays so, until it is retired`() async throws {
        let fleet = try FleetScene()
        try await whileAlone(fleet) { one, tag in
            let hidden = Self.names(tag)[1]
            try await hide(fleet, one, by: tag, as: hidden)
            try fleet.wakeFinishing()
            try await eventually("it waits for it") {
                try fleet.number("SELECT count(*) FROM inlet.work WHERE kind = 'f' AND reason LIKE 'second%'") == 1
            }
            #expect(one.isThere(hidden) && !one.isThere("a.mov"))
            try fleet.run("SELECT inlet.v1_admin_agent('second', 'retired')")
            try await eventually("it is archived") {
                try fleet.wakeFinishing()
                return try fleet.open == 0 && isArchived(one)
            }
            #expect(!one.isThere(hidden))
        }
    }

    @Test func `what is hidden waits for its name, and replaces nothing`() async throws {
        let fleet = try FleetScene()
        try await whileAlone(fleet) { one, _ in
            let hidden = Self.names("zzzzzz")[0]
            try await hide(fleet, one, by: "zzzzzz", as: hidden)
            try one.scene.drop("a.mov", "a new one")
            try fleet.wakeFinishing()
            try await eventually("it waits") {
                try fleet.number("SELECT count(*) FROM inlet.work WHERE reason LIKE '%its own name again'") == 1
            }
            #expect(one.isThere(hidden) && one.isThere("a.mov"))
            try await one.pause(false)
            try await eventually("both are archived") {
                try fleet.wakeFinishing()
                return try fleet.open == 0 && !one.isThere("a.mov") && !one.isThere(hidden)
            }
            let archived = try ["a.mov", "a_2.mov"].map { name in
                try String(contentsOfFile: one.root.pushing(FilePath(".inlet/done/\(name)")).string, encoding: .utf8)
            }
            #expect(archived.sorted() == ["a new one", "content"])
        }
    }

    @Test func `what is hidden waits for its name while a file that looks the same has it`() async throws {
        let fleet = try FleetScene()
        try await whileAlone(fleet) { one, _ in
            let hidden = Self.names("zzzzzz")[0]
            try await hide(fleet, one, by: "zzzzzz", as: hidden)
            let own = try drop(one)
            try fleet.wakeFinishing()
            try await eventually("it waits") {
                try fleet.number("SELECT count(*) FROM inlet.work WHERE reason LIKE '%its own name again'") == 1
            }
            #expect(one.isThere(hidden))
            try FileManager.default.removeItem(atPath: own.string)
            try await eventually("it is archived") {
                try fleet.wakeFinishing()
                return try fleet.open == 0 && isArchived(one)
            }
            #expect(!one.isThere(hidden))
        }
    }

    @Test func `of many hidden sources so many get their names at once, and the others later`() async throws {
        let fleet = try FleetScene()
        try await whileAlone(fleet) { one, tag in
            let (member, share) = (try #require(one.member), try #require(one.places?.share(one.root)))
            let last = Int64(HiddenSources.mostRenamed) + 3
            let sources = (1...last).map { number in
                let mark = HiddenMark(tag: number == 1 ? tag : "zzzzzz", file: number)
                return HiddenSources.Source(work: number, path: FilePath("\(number).mov"), mark: mark)
            }
            // The agent of the first may come back, and the last is not hidden.
            for source in sources.dropLast() {
                try one.scene.drop(FilePath(".inlet-finishing-\(source.mark.text).tmp"), "\(source.work)")
            }
            let hidden = HiddenSources(member: member, view: FleetView(member), shares: ShareLook())
            let findings = await hidden.find(sources, share, member.session)
            let pauses = findings.compactMapValues { finding -> Duration? in
                guard case .waits(_, let pause) = finding else { return nil }
                return pause
            }
            #expect(pauses == [1: HiddenSources.absence, last - 1: .seconds(10)] && findings[last] == nil)
            for number in 2...last - 2 {
                let path = one.root.appending("\(number).mov").string
                #expect(try String(contentsOfFile: path, encoding: .utf8) == "\(number)")
            }
        }
    }

    @Test func `before an agent hides a source, others can find it`() async throws {
        let (fleet, gate) = (try FleetScene(), Gate())
        fleet.store.script("a.mov", .hold(gate, .deliver))
        let scenes = try fleet.sharing("one", "second")
        try await scenes.one.run { one in
            try await one.isLive()
            try await one.hasShare()
            let path = try one.scene.drop("a.mov")
            try await eventually("it is on its way") { fleet.store.record.running == 1 }
            // The source waits for its writer.
            let writer = try #require(FileHandle(forWritingAtPath: path.string))
            gate.open()
            var said: String?
            try await eventually("it says so") {
                let rows = try fleet.run(
                    """
                    SELECT convert_from(decode(notes ->> 'hidden', 'base64'), 'UTF8') FROM inlet.work
                    WHERE kind = 'f' AND notes ? 'hidden'
                    """)
                said = rows.first?.first ?? nil
                return said != nil
            }
            let mark = try #require(HiddenMark(Array((said ?? "").utf8)))
            #expect(mark.tag == one.member?.identity?.tag)
            try writer.close()
        }
    }
}

extension FleetScene {
    /// As a delivery leaves it whose agent had the finishing, hid the source, and is gone. It is not due.
    fileprivate func leaveFinishing(hiddenBy tag: String) throws {
        try run(
            """
            WITH ended AS (DELETE FROM inlet.work WHERE kind = 'd' RETURNING *), left_over AS (
                UPDATE inlet.file f SET remaining = 0, state = 'd' FROM ended e
                WHERE f.place = e.place AND f.path = e.path AND f.version = e.version)
            INSERT INTO inlet.work (place, path, version, kind, next_at, name, size, plan, notes)
            SELECT place, path, version, 'f', now() + interval '1 hour', name, size, plan,
                jsonb_build_object('hidden', encode('\(tag)-7'::bytea, 'base64')) FROM ended
            """)
    }

    fileprivate func wakeFinishing() throws {
        try run("UPDATE inlet.work SET next_at = now() WHERE kind = 'f' AND state = 'r' AND next_at > now()")
    }
}

/// Without PostgreSQL.
@Suite struct HiddenMarkTests {
    @Test func `a mark names an agent and a file, and leads nowhere else`() {
        let mark = HiddenMark(tag: "k3f7q2", file: 12)
        #expect(HiddenMark(Array(mark.text.utf8)) == mark)
        for text in [
            "", "abcdef", "abcdef-", "abcdef-x", "abcdef-0", "abcdef-+5", "abcdef-05", "../../-5", "ABCDEF-5", "a-5",
        ] {
            #expect(HiddenMark(Array(text.utf8)) == nil, "\(text)")
        }
    }

    @Test func `an agent comes back that lives, or was heard of within an hour, by the server's clock`() throws {
        let body = """
            {"agents": [{"id": 1, "name": "own", "tag": "aaaaaa", "alive": true, "last_seen": "2026-01-02T12:00:00Z"},
            {"id": 2, "name": "late", "tag": "bbbbbb", "alive": false, "last_seen": "2026-01-02T11:10:00Z"},
            {"id": 3, "name": "gone", "tag": "cccccc", "alive": false, "last_seen": "2026-01-02T10:50:00Z"},
            {"id": 4, "name": "never", "tag": "dddddd", "state": "missing", "alive": false},
            {"id": 5, "name": "old", "tag": "eeeeee", "state": "retired", "last_seen": "2026-01-02T12:00:00Z"}]}
            """
        let found = try #require(FleetMembers(Array(body.utf8), own: "own"))
        #expect(found.returning.mapValues(\.name) == ["aaaaaa": "own", "bbbbbb": "late"])
    }

    @Test func `a version that looks changed at each try is tried more and more seldom`() {
        let pauses = [0, 1, 2, 3, 7, 8, 100].map { PlaceSettler.pause(afterChanges: $0) }
        #expect(pauses == [5, 5, 10, 20, 320, 600, 600].map { .seconds($0) })
    }
}
