import Foundation
import InletCore
import InletSandbox
import Testing

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
            sandbox.rules.mergesObjects = true
            let merged = try await client.send("PATCH", "/spaces/\(id)", ["meta": ["c": 4]])
            #expect(merged.value["meta"] == ["b": 3, "c": 4])
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

    @Test(arguments: refusals)
    func `what is wrong or missing is refused`(
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

    @Test func `sets and guides are read only, and there are none`() async throws {
        try await withRoboscope { sandbox, client async throws in
            let space = sandbox.addSpace(key: "hall")
            #expect(try await client.get("/spaces/\(space.id)/reference-sets").value == [])
            #expect(try await client.get("/spaces/\(space.id)/laser-guide").status == 404)
            #expect(try await client.get("/spaces/x/reference-sets").status == 404)
        }
    }

    @Test func `times come with a fraction or without`() async throws {
        try await withRoboscope { sandbox, client async throws in
            let space = sandbox.addSpace(key: "hall")
            let long = try await client.get("/spaces/\(space.id)").value["created_at"]
            #expect(long == "2027-01-15T08:00:00.000Z")
            sandbox.rules.tellsFractions = false
            let short = try await client.get("/spaces/\(space.id)").value["created_at"]
            #expect(short == "2027-01-15T08:00:00Z")
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
