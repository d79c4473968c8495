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

@Suite struct RoboscopeSessionTests {
    @Test func `a change needs the version that it was made on`() async throws {
        try await withRoboscope { sandbox, client async throws in
            let id = try await client.session()
            let path = "/work-sessions/\(id)"
            let first = try await client.get(path).value
            #expect(first["version"] == 1 && first["status"] == "draft" && first["started_at"] == .null)
            let active = try await client.send("PATCH", path, ["status": "active", "version": 1])
            #expect(active.status == 200 && active.value["version"] == 2)
            #expect(try await client.send("PATCH", path, ["status": "done", "version": 1]).status == 409)
            #expect(try await client.send("PATCH", path, ["status": "gone", "version": 2]).status == 422)
            #expect(try await client.send("PATCH", path, ["status": "done"]).value["version"] == 3)
            sandbox.rules.needsVersion = true
            #expect(try await client.send("PATCH", path, ["status": "archived"]).status == 400)
            #expect(sandbox.sessions().map(\.status) == ["done"] && sandbox.sessions().map(\.version) == [3])
        }
    }

    @Test func `somebody else can come first`() async throws {
        let faults = [RoboscopeOperation.updateSession, .updateMarker].map { RoboscopeFault(.conflict, at: $0) }
        try await withRoboscope { sandbox, client async throws in
            for fault in faults { sandbox.faults.add(fault) }
            let session = try await client.session()
            let marker = try await client.make("/markers", RoboscopeClient.marker(session))
            for path in ["/work-sessions/\(session)", "/markers/\(marker)"] {
                let change: SandboxJSON = ["meta": ["a": 1], "version": 1]
                #expect(try await client.send("PATCH", path, change).status == 409)
                #expect(try await client.get(path).value["version"] == 2)
                #expect(try await client.send("PATCH", path, change).status == 409)
                #expect(try await client.send("PATCH", path, change.with(["version": 2])).status == 200)
            }
        }
    }

    @Test func `the list is filtered by space, status and type`() async throws {
        try await withRoboscope { sandbox, client async throws in
            let (hall, yard) = (sandbox.addSpace(key: "hall").id, sandbox.addSpace(key: "yard").id)
            for (space, type, status) in [
                (hall, "inspection", "active"), (hall, "repair", "done"), (yard, "other", "done"),
            ] {
                let body: SandboxJSON = [
                    "space_id": .string(space), "session_type": .string(type), "status": .string(status),
                    "started_at": "2026-01-02T03:04:05Z", "meta": ["ingest_batch": "b1"],
                ]
                _ = try await client.make("/work-sessions", body)
            }
            func count(_ query: String) async throws -> Int? {
                try await client.get("/work-sessions" + query).value.items?.count
            }
            #expect(try await count("") == 3)
            #expect(try await count("?space_id=\(hall.uppercased())") == 2)
            #expect(try await count("?space_id=\(hall)&status=done") == 1)
            #expect(try await count("?session_type=other") == 1)
            let kept = try #require(sandbox.sessions().first)
            #expect(kept.startedAt == "2026-01-02T03:04:05Z" && kept.meta?["ingest_batch"] == "b1")
        }
    }

    @Test func `who is there is told until its last sign of life is too old`() async throws {
        let clock = TestClock()
        try await withRoboscope(clock: clock) { sandbox, client async throws in
            let session = try await client.session()
            for user in ["ingest:nas", "Anna"] {
                let entered = try await client.send("POST", "/presence/\(session)", ["user_id": .string(user)])
                #expect(entered.status == 200)
            }
            #expect(try await client.get("/presence/\(session)").value == ["users": ["Anna", "ingest:nas"]])
            clock.pass(.seconds(20))
            _ = try await client.send("POST", "/presence/\(session)", ["user_id": "ingest:nas"])
            clock.pass(.seconds(10))
            #expect(sandbox.present(in: session) == ["ingest:nas"])
            #expect(try await client.send("DELETE", "/presence/\(session)/ingest:nas").status == 204)
            #expect(sandbox.present(in: session).isEmpty && sandbox.visitors(of: session) == ["Anna", "ingest:nas"])
        }
    }

    @Test func `a lock holds for its time, for whoever has its token`() async throws {
        let clock = TestClock()
        try await withRoboscope(clock: clock) { sandbox, client async throws in
            let session = try await client.session()
            let path = "/locks/work-sessions/\(session)"
            let lock = try await client.send("POST", path, ["ttl_seconds": 30]).value
            let token = try #require(lock["token"])
            #expect(lock["acquired"] == true)
            #expect(try await client.send("POST", path, ["ttl_seconds": 30]).value["acquired"] == false)
            clock.pass(.seconds(29))
            let extended = try await client.send("POST", path + "/extend", ["token": token, "ttl_seconds": 30])
            #expect(extended.value == ["extended": true])
            clock.pass(.seconds(29))
            #expect(try await client.get(path + "/status").value == ["locked": true])
            #expect(try await client.send("POST", path + "/unlock", ["token": "x"]).value == ["released": false])
            #expect(try await client.send("POST", path + "/unlock", ["token": token]).value == ["released": true])
            #expect(!sandbox.isLocked(session: session))
            sandbox.lock(session: session, for: .seconds(5))
            #expect(try await client.send("POST", path, [:]).value["acquired"] == false)
            clock.pass(.seconds(5))
            #expect(try await client.send("POST", path, [:]).value["acquired"] == true)
        }
    }

    @Test func `presence, locks and events may not exist`() async throws {
        let rules = RoboscopeRules(hasPresence: false, hasLocks: false, hasEvents: false)
        try await withRoboscope(rules: rules) { sandbox, client async throws in
            let session = try await client.session()
            for path in ["/presence/\(session)", "/locks/work-sessions/\(session)/status", "/events"] {
                #expect(try await client.get(path).status == 404)
            }
            #expect(try await client.send("POST", "/presence/\(session)", ["user_id": "a"]).status == 404)
            #expect(try await client.send("POST", "/locks/work-sessions/\(session)", [:]).status == 404)
            #expect(sandbox.visitors(of: session).isEmpty)
        }
    }
}

@Suite struct RoboscopeSpaceTests {
    @Test func `a space is made, found by its key and changed field by field`() async throws {
        try await withRoboscope { sandbox, client async throws in
            let id = try await client.make("/spaces", ["key": "hall", "name": "Hall", "meta": ["a": 1, "b": 2]])
            _ = try await client.make("/spaces", ["key": "yard", "name": "Yard"])
            let found = try await client.get("/spaces?key=hall").value.items
            #expect(found?.count == 1 && found?.first?["id"]?.text == id && found?.first?["model_glb_url"] == .null)
            let change: SandboxJSON = ["model_glb_url": "https://cdn.example/a.glb", "meta": ["b": 3], "name": .null]
            let changed = try await client.send("PATCH", "/spaces/\(id.uppercased())", change)
            #expect(changed.status == 200 && changed.value["meta"] == ["b": 3] && changed.value["name"] == "Hall")
            #expect(changed.value["created_at"] == "2027-01-15T08:00:00.000Z")
            #expect(try await client.send("PATCH", "/spaces/\(id)", ["meta": ["c": 4]]).value["meta"] == ["c": 4])
            let kept = try #require(sandbox.spaces().first)
            #expect(kept.modelGLBURL == "https://cdn.example/a.glb" && kept.changes == 2 && kept.previewURL == nil)
            #expect(sandbox.events().map(\.action).suffix(2) == ["space.updated", "space.updated"])
        }
    }

    static let refusals: [(String, String, SandboxJSON?, Int)] = [
        ("POST", "/spaces", ["key": "a"], 422), ("POST", "/spaces", ["key": "", "name": "x"], 400),
        ("POST", "/spaces", ["key": 1, "name": "x"], 422),
        ("GET", "/spaces/00000000-0000-4000-8000-000000000000", nil, 404), ("PUT", "/spaces", [:], 404),
        ("POST", "/work-sessions", ["space_id": "x", "session_type": "inspection"], 404),
        ("POST", "/work-sessions", ["space_id": "x", "session_type": "holiday"], 422),
        ("POST", "/work-sessions", ["space_id": "x"], 422), ("GET", "/nowhere", nil, 404),
    ]

    @Test(arguments: refusals) func `what is wrong or missing is refused`(
        _ method: String, _ path: String, _ body: SandboxJSON?, _ status: Int
    ) async throws {
        try await withRoboscope { sandbox, client async throws in
            #expect(try await client.send(method, path, body).status == status)
            #expect(sandbox.spaces().isEmpty && sandbox.sessions().isEmpty)
        }
    }

    @Test func `broken JSON, other types and long bodies are refused`() async throws {
        try await withRoboscope(rules: RoboscopeRules(bodyLimit: 1000)) { _, client async throws in
            func post(_ body: String, _ type: String) async throws -> Int {
                let url = client.http.origin + "/api/v1/spaces"
                return try await client.http.send("POST", url, Data(body.utf8), headers: ["Content-Type": type]).status
            }
            #expect(try await post("{", "application/json") == 400)
            #expect(try await post(#"{"key":"a","name":"b"}"#, "text/plain") == 415)
            #expect(try await post(String(repeating: " ", count: 1001), "application/json") == 413)
            #expect(try await post(#"{"key":"a","name":"b"}"#, "application/json; charset=utf-8") == 201)
        }
    }

    @Test func `a token, where one is set, is asked for everywhere but at health`() async throws {
        try await withRoboscope(token: Secret("canary")) { _, client async throws in
            #expect(try await client.get("/spaces").status == 200)
            for given in [nil, "wrong"] {
                var other = client
                other.token = given
                #expect(try await other.get("/spaces").status == 401)
                #expect(try await other.get("/health").text.contains("healthy"))
            }
            #expect(try await client.http.send("GET", client.http.origin + "/health").status == 200)
        }
    }

    @Test func `a space goes with its sessions and markers`() async throws {
        try await withRoboscope { sandbox, client async throws in
            let session = try await client.session()
            _ = try await client.make("/markers", RoboscopeClient.marker(session))
            let space = try #require(sandbox.spaces().first?.id)
            let gone = try await client.send("DELETE", "/spaces/\(space)")
            #expect(gone.status == 204 && gone.body.isEmpty)
            #expect(sandbox.spaces().isEmpty && sandbox.sessions().isEmpty && sandbox.markers().isEmpty)
            #expect(try await client.send("DELETE", "/spaces/\(space)").status == 404)
            #expect(try await client.get("/events").value.items?.last?["action"] == "space.deleted")
        }
    }
}

/// Runs a Roboscope sandbox while `body` talks to it over real sockets.
func withRoboscope(
    token: Secret? = nil, rules: RoboscopeRules = RoboscopeRules(), faults: RoboscopeFault...,
    clock: TestClock = TestClock(),
    _ body: @Sendable @escaping (RoboscopeSandbox, RoboscopeClient) async throws -> Void
) async throws {
    let sandbox = RoboscopeSandbox(token: token, rules: rules, faults: FaultPlan(faults), clock: { clock.now })
    try await whileServing({ try await sandbox.run() }) {
        try await body(
            sandbox, RoboscopeClient(http: SandboxClient(port: try await sandbox.port()), token: token?.reveal()))
    }
}

/// What a small, honest client of Roboscope does.
struct RoboscopeClient: Sendable {
    typealias Answer = SandboxClient.Answer

    let http: SandboxClient
    var token: String?

    func send(_ method: String, _ path: String, _ body: SandboxJSON? = nil) async throws -> Answer {
        var fields: [String: String] = [:]
        if let token { fields["Authorization"] = "Bearer \(token)" }
        if body != nil { fields["Content-Type"] = "application/json" }
        let data = try body.map { try JSONEncoder().encode($0) }
        return try await http.send(method, http.origin + "/api/v1" + path, data, headers: fields)
    }

    func get(_ path: String) async throws -> Answer { try await send("GET", path) }

    /// POSTs; the id of what was made.
    func make(_ path: String, _ body: SandboxJSON) async throws -> String {
        let answer = try await send("POST", path, body)
        guard answer.status == 201, let id = answer.value["id"]?.text else { throw Refused(answer: answer.text) }
        return id
    }

    /// A session in a space of its own.
    func session() async throws -> String {
        let space = try await make("/spaces", ["key": "hall", "name": "Hall"])
        return try await make("/work-sessions", ["space_id": .string(space), "session_type": "inspection"])
    }

    /// The body of one marker, with an ingest id.
    static func marker(_ session: String, _ number: Int = 0) -> SandboxJSON {
        [
            "work_session_id": .string(session), "label": .string("m\(number)"), "p1": [0, 0, 0], "p2": [1, 0, 0],
            "p3": [1, 0, 2], "p4": [0, 0, 2], "color": "#00ff7F",
            "custom_props": ["ingest_id": .string("abc#\(number)"), "severity": "high"],
        ]
    }
}

extension SandboxJSON {
    /// The same object with other fields.
    func with(_ fields: [String: SandboxJSON]) -> SandboxJSON {
        .object((self.fields ?? [:]).merging(fields) { $1 })
    }
}
