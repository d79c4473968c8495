import Foundation
import InletCore
import InletSandbox
import InletTestSupport
import Testing

@Suite struct RoboscopeMarkerTests {
    @Test func `markers come many at once, in order, and are listed by session`() async throws {
        try await withRoboscope { sandbox, client async throws in
            let (session, other) = (try await client.session(), try await client.session())
            _ = try await client.make("/markers", RoboscopeClient.marker(other))
            let many = SandboxJSON.array((0..<100).map { RoboscopeClient.marker(session, $0) })
            let answer = try await client.send("POST", "/markers/bulk", ["markers": many])
            let labels = (0..<100).map { "m\($0)" }
            #expect(answer.status == 201 && answer.value.items?.compactMap { $0["label"]?.text } == labels)
            let listed = try await client.get("/markers?work_session_id=\(session)").value.items
            #expect(listed?.compactMap { $0["label"]?.text } == labels)
            #expect(listed?[7]["custom_props"] == ["ingest_id": "abc#7", "severity": "high"])
            #expect(listed?[7]["p3"] == [1, 0, 2] && listed?[7]["color"] == "#00ff7F")
            #expect(sandbox.markers().count == 101)
            #expect(sandbox.markers().last?.customProps["ingest_id"]?.text == "abc#99")
        }
    }

    static let wrong: [([String: SandboxJSON], Int)] = [
        (["p4": [0, 0]], 422), (["p4": [0, 0, "x"]], 422), (["p4": .null], 422), (["p1": [0, 0, 0, 0]], 422),
        (["color": "red"], 400), (["work_session_id": .null], 422),
        (["work_session_id": "00000000-0000-4000-8000-000000000000"], 404),
    ]

    @Test(arguments: wrong)
    func `one bad marker keeps all of them out`(_ fields: [String: SandboxJSON], _ status: Int) async throws {
        try await withRoboscope { sandbox, client async throws in
            let session = try await client.session()
            let good = RoboscopeClient.marker(session)
            let answer = try await client.send("POST", "/markers/bulk", ["markers": [good, good.with(fields), good]])
            #expect(answer.status == status && sandbox.markers().isEmpty)
            #expect(try await client.send("POST", "/markers", good.with(fields)).status == status)
        }
    }

    @Test func `a marker is changed by version, and deleted`() async throws {
        try await withRoboscope { sandbox, client async throws in
            let session = try await client.session()
            let id = try await client.make("/markers", RoboscopeClient.marker(session))
            let change: SandboxJSON = ["p1": [5, 5, 5], "custom_props": ["status": "done"], "version": 1]
            let changed = try await client.send("PATCH", "/markers/\(id)", change)
            #expect(changed.value["version"] == 2 && changed.value["custom_props"] == ["status": "done"])
            #expect(changed.value["p1"] == [5, 5, 5] && changed.value["p2"] == [1, 0, 0])
            #expect(try await client.send("PATCH", "/markers/\(id)", change).status == 409)
            #expect(try await client.send("PATCH", "/markers/\(id)", ["p1": [1]]).status == 422)
            #expect(sandbox.markers().first?.version == 2)
            #expect(try await client.send("DELETE", "/markers/\(id)").status == 204)
            #expect(try await client.get("/markers/\(id)").status == 404)
        }
    }

    @Test func `details are there once they were calculated`() async throws {
        try await withRoboscope { _, client async throws in
            let id = try await client.make("/markers", RoboscopeClient.marker(try await client.session()))
            #expect(try await client.get("/markers/\(id)/details").status == 404)
            let made = try await client.send("POST", "/markers/\(id)/details/calculate", [:]).value
            #expect(made["long_size"] == 2 && made["cross_size"] == 1 && made["center_location_long"] == 1)
            #expect(try await client.get("/markers/\(id)/details").value == made)
        }
    }

    @Test func `a bulk whose answer is lost, or cut, has arrived`() async throws {
        try await withRoboscope { sandbox, client async throws in
            let session = try await client.session()
            let bulk: SandboxJSON = ["markers": [RoboscopeClient.marker(session)]]
            let body = String(decoding: try JSONEncoder().encode(bulk), as: UTF8.self)
            sandbox.faults.add(
                RoboscopeFault(.loseAnswer, at: .bulkMarkers),
                RoboscopeFault(.truncateAnswer(afterBytes: 20), at: .bulkMarkers),
                RoboscopeFault(.reset(afterBytes: 0), at: .bulkMarkers))
            var ends: [Int32] = []
            for _ in 0..<3 {
                ends.append(
                    try await SandboxClient.curl(
                        "-m", "120", "-H", "Content-Type: application/json", "-d", body,
                        client.http.origin + "/api/v1/markers/bulk"))
            }
            #expect([52, 56].contains(ends[0]) && [18, 56].contains(ends[1]) && [52, 55, 56].contains(ends[2]))
            #expect(sandbox.markers().count == 2 && sandbox.counts()["bulkMarkers"] == 3)
        }
    }

    @Test(arguments: RoboscopeOperation.allCases)
    func `every operation can be made to fail`(_ operation: RoboscopeOperation) async throws {
        try await withRoboscope { sandbox, client async throws in
            let session = try await client.session()
            let marker = try await client.make("/markers", RoboscopeClient.marker(session))
            let space = try #require(sandbox.spaces().first?.id)
            sandbox.faults.add(RoboscopeFault(.status(418), at: operation))
            let (method, path) = Self.call(operation, space: space, session: session, marker: marker)
            let answer = try await client.send(method, path, method == "POST" || method == "PATCH" ? [:] : nil)
            #expect(answer.status == 418 && sandbox.faults.injected(at: operation) == 1)
            #expect(sandbox.events().count == 3)
        }
    }

    private static func call(
        _ operation: RoboscopeOperation, space: String, session: String, marker: String
    ) -> (method: String, path: String) {
        switch operation {
        case .health: ("GET", "/health")
        case .events: ("GET", "/events")
        case .listSpaces: ("GET", "/spaces")
        case .createSpace: ("POST", "/spaces")
        case .space: ("GET", "/spaces/\(space)")
        case .updateSpace: ("PATCH", "/spaces/\(space)")
        case .deleteSpace: ("DELETE", "/spaces/\(space)")
        case .referenceSets: ("GET", "/spaces/\(space)/reference-sets")
        case .laserGuide: ("GET", "/spaces/\(space)/laser-guide")
        case .listSessions: ("GET", "/work-sessions")
        case .createSession: ("POST", "/work-sessions")
        case .session: ("GET", "/work-sessions/\(session)")
        case .updateSession: ("PATCH", "/work-sessions/\(session)")
        case .deleteSession: ("DELETE", "/work-sessions/\(session)")
        default: call(operation, session: session, marker: marker)
        }
    }

    private static func call(
        _ operation: RoboscopeOperation, session: String, marker: String
    ) -> (method: String, path: String) {
        switch operation {
        case .listMarkers: ("GET", "/markers")
        case .createMarker: ("POST", "/markers")
        case .bulkMarkers: ("POST", "/markers/bulk")
        case .marker: ("GET", "/markers/\(marker)")
        case .updateMarker: ("PATCH", "/markers/\(marker)")
        case .deleteMarker: ("DELETE", "/markers/\(marker)")
        case .markerDetails: ("GET", "/markers/\(marker)/details")
        case .presence: ("GET", "/presence/\(session)")
        case .enter: ("POST", "/presence/\(session)")
        case .leave: ("DELETE", "/presence/\(session)/me")
        case .lock: ("POST", "/locks/work-sessions/\(session)")
        case .extendLock: ("POST", "/locks/work-sessions/\(session)/extend")
        case .unlock: ("POST", "/locks/work-sessions/\(session)/unlock")
        case .lockStatus: ("GET", "/locks/work-sessions/\(session)/status")
        default: ("GET", "/nowhere")
        }
    }
}
