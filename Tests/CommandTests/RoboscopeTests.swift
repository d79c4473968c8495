import Foundation
import InletCore
import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

/// The built command against a Roboscope server: spaces, work sessions and markers for people.
@Suite(.serialized) struct RoboscopeTests {
    /// Runs `inlet roboscope …` and returns the one object that it prints.
    private func object(_ place: Place, _ arguments: String...) async throws -> [String: Any] {
        let result = try await place.inlet(["roboscope"] + arguments + ["--json"], code: 0)
        return try result.object()
    }

    @Test func `a model that is dropped is stored, and its space shows it`() async throws {
        try await withRoboscope { place, sandbox, spiral in
            let agent = try await place.run()
            let model = Data("glTF".utf8) + Data([2, 0, 0, 0, 12, 0, 0, 0])
            try place.put("atrium/spaceship.glb", model)
            try await agent.line("job.finished")
            let space = try #require(sandbox.spaces().first)
            #expect(sandbox.spaces().count == 1 && space.key == "atrium")
            let stored = try #require(spiral.objects().first)
            #expect(try place.content(stored.path) == model)
            #expect(space.modelGLBURL?.hasSuffix("/public/\(stored.key)") == true)
            let shown = try await place.inlet("roboscope", "spaces", "get", "atrium", says: "model_glb_url", stored.key)
            #expect(try await agent.stop() == .code(0))
            #expect(!(agent.errors + shown.output).contains("space-token-5521"))
        }
    }

    @Test func `route says what a file is to the server, and when its space is not known`() async throws {
        try await withRoboscope { place, sandbox, _ in
            func route(_ name: String) async throws -> String {
                let result = try await place.inlet("route", place.drop.string + "/" + name, code: 0)
                return result.output
            }
            let remedy = "no space is named; put the file into a folder named as its space, or set it with:"
            let model = try await route("atrium/ship.glb")
            #expect(model.contains("role: auto (model)") && model.contains("space: atrium"), "\(model)")
            #expect(!model.contains(remedy), "\(model)")
            let lone = try await route("ship.glb")
            #expect(lone.contains("role: auto (model)") && lone.contains("warning  \(remedy)"), "\(lone)")
            let markers = try await route("markers.json")
            #expect(markers.contains("role: auto (markers)"), "\(markers)")
            #expect(markers.contains("may name it themselves"), "\(markers)")
            let scan = try await route("atrium/scans/hall.obj")
            #expect(scan.contains("role: auto (scan)"), "\(scan)")
            let other = try await route("notes.txt")
            #expect(other.contains("role: auto (file)") && !other.contains("warning"), "\(other)")
            #expect(sandbox.counts().values.allSatisfy { $0 == 0 })
        }
    }

    @Test func `spaces are made, shown, changed and deleted`() async throws {
        try await withRoboscope { place, sandbox, _ in
            let made = try await object(
                place, "spaces", "create", "--key", "atrium", "--name", "The atrium", "--meta", #"{"floor": 2}"#)
            let id = try #require(made["id"] as? String)
            #expect(sandbox.spaces().map(\.name) == ["The atrium"])
            try await place.inlet("roboscope", "spaces", "create", "--key", "atrium", code: 1, errors: "already")
            #expect(sandbox.spaces().count == 1)
            _ = try await object(
                place, "spaces", "update", "atrium", "--description", "North wing", "--meta", #"{"wing": "north"}"#)
            let space = try #require(sandbox.spaces().first)
            #expect(space.description == "North wing" && space.name == "The atrium" && space.changes == 1)
            #expect(space.meta == ["floor": 2, "wing": "north"])
            try await place.inlet("roboscope", "spaces", says: "KEY", id, "atrium")
            let asked = sandbox.counts()["space"] ?? 0
            let got = try await object(place, "spaces", "get", id)
            #expect(sandbox.counts()["space"] == asked + 1, "GET /spaces/ID, once")
            #expect(got["id"] as? String == id && got["key"] as? String == "atrium")
            #expect(got["name"] as? String == "The atrium" && got["description"] as? String == "North wing")
            #expect((got["meta"] as? [String: Any])?["wing"] as? String == "north")
            let shown = try await place.inlet("roboscope", "spaces", "get", "atrium")
            for text in [id, "atrium", "The atrium", "North wing", "north"] {
                #expect(shown.output.contains(text), "\(text): \(shown.output)\(shown.errors)")
            }
            try await place.inlet(
                "roboscope", "spaces", "list", "--key", "cellar", says: "No space has the key 'cellar'")
            try await place.inlet("roboscope", "spaces", "delete", id, code: 64)
            try await place.inlet("roboscope", "spaces", "delete", "atrium", "--yes", code: 0)
            #expect(sandbox.spaces().isEmpty)
            try await place.inlet("roboscope", "spaces", "get", id, code: 1, errors: "[not_found]")
        }
    }

    @Test func `a work session goes from active to done, whoever else writes to it`() async throws {
        try await withRoboscope { place, sandbox, _ in
            sandbox.addSpace(key: "atrium")
            let made = try await object(
                place, "sessions", "create", "--space", "atrium", "--type", "repair", "--status", "active",
                "--started-at", "2026-11-21T08:00:00+01:00")
            let id = try #require(made["id"] as? String)
            #expect(made["session_type"] as? String == "repair" && made["status"] as? String == "active")
            #expect(sandbox.sessions().first?.startedAt == "2026-11-21T07:00:00Z")
            sandbox.faults.add(RoboscopeFault(.conflict, at: .updateSession, times: 2))
            let changed = try await object(
                place, "sessions", "update", id, "--status", "done", "--completed-at", "2026-11-21T17:00:00Z")
            #expect(changed["status"] as? String == "done")
            #expect(sandbox.sessions().map(\.status) == ["done"])
            sandbox.faults.add(RoboscopeFault(.conflict, at: .updateSession, times: nil))
            let late = try await place.inlet(
                "roboscope", "sessions", "update", id, "--status", "archived", errors: "[conflict]")
            #expect(late.ending != .code(0), "\(late.errors)")
            #expect(sandbox.sessions().map(\.status) == ["done"])
            let some = try await place.inlet(
                "roboscope", "sessions", "list", "--space", "atrium", "--status", "done", "--type", "repair", "--json")
            #expect(try some.objects().map { $0["id"] as? String } == [id], "\(some.errors)")
            try await place.inlet(
                "roboscope", "sessions", "list", "--status", "draft", says: "There are no such work sessions")
            try await place.inlet("roboscope", "sessions", "get", id, says: "locked", "done")
            sandbox.faults.clear()
            let archived = try await object(place, "sessions", "update", id, "--status", "archived")
            #expect(archived["status"] as? String == "archived" && sandbox.sessions().map(\.status) == ["archived"])
            try await place.inlet("roboscope", "sessions", "delete", id, "--yes", code: 0)
            #expect(sandbox.sessions().isEmpty)
        }
    }

    @Test func `markers have four corners and a colour, and keep what others put into them`() async throws {
        try await withRoboscope { place, sandbox, _ in
            sandbox.addSpace(key: "atrium")
            let session = try #require(
                try await object(place, "sessions", "create", "--space", "atrium")["id"] as? String)
            #expect(sandbox.sessions().map(\.status) == ["draft"], "what the server says of a new one")
            let made = try await object(
                place, "markers", "create", "--session", session, "--label", "Crack", "--color", "#ff8800",
                "--p1", "0,0,0", "--p2", "1,0,0", "--p3", "1,1.5,0", "--p4=-1,1,0", "--props", #"{"severity": "low"}"#)
            let id = try #require(made["id"] as? String)
            #expect(sandbox.markers().first?.corners == [[0, 0, 0], [1, 0, 0], [1, 1.5, 0], [-1, 1, 0]])
            _ = try await object(place, "markers", "update", id, "--props", #"{"inspector": "Ann"}"#)
            let marker = try #require(sandbox.markers().first)
            #expect(marker.customProps == ["severity": "low", "inspector": "Ann"] && marker.label == "Crack")
            #expect(marker.version == 2, "one change is one PATCH")
            sandbox.faults.add(RoboscopeFault(.conflict, at: .updateMarker, times: 2))
            _ = try await object(place, "markers", "update", id, "--label", "Crack, wide")
            #expect(sandbox.markers().first?.label == "Crack, wide" && sandbox.markers().first?.version == 5)
            sandbox.faults.add(RoboscopeFault(.conflict, at: .updateMarker, times: nil))
            let late = try await place.inlet(
                "roboscope", "markers", "update", id, "--label", "Late", errors: "[conflict]")
            #expect(late.ending != .code(0), "\(late.errors)")
            #expect(sandbox.markers().first?.label == "Crack, wide")
            try await place.inlet("roboscope", "markers", "list", "--session", session, says: "Crack", "#ff8800")
            try await place.inlet("roboscope", "markers", "get", id, says: "p3", "[1,1.5,0]")
            try await place.inlet("roboscope", "markers", "delete", id, "--yes", code: 0)
            #expect(sandbox.markers().isEmpty)
        }
    }

    @Test func `the trail of what was done is listed, where the server keeps one`() async throws {
        try await withRoboscope { place, sandbox, _ in
            sandbox.addSpace(key: "atrium")
            _ = try await object(place, "spaces", "update", "atrium", "--name", "Atrium")
            let events = try await place.inlet("roboscope", "events", "--json", code: 0)
            #expect(try events.objects().count == sandbox.events().count && !sandbox.events().isEmpty)
            sandbox.rules.hasEvents = false
            try await place.inlet("roboscope", "events", code: 1, errors: "[not_found]")
        }
    }

    @Test func `what servers cannot take is refused before it is sent`() async throws {
        try await withRoboscope { place, sandbox, _ in
            let wrong = [
                ["markers", "create", "--session", "s", "--p1", "0,0,0", "--p2", "1,0,0", "--p3", "1,1,0"],
                [
                    "markers", "create", "--session", "s", "--p1", "0,0", "--p2", "1,0,0", "--p3", "1,1,0", "--p4",
                    "0,0,1",
                ],
                ["markers", "update", "m", "--color", "red"], ["markers", "update", "m"],
                ["sessions", "update", "s", "--status", "dne"], ["sessions", "update", "s", "--started-at", "today"],
                ["spaces", "update", "atrium", "--meta", "[1]"], ["spaces", "update", "atrium"],
            ]
            for arguments in wrong {
                try await place.inlet(["roboscope"] + arguments, code: 64)
            }
            #expect(sandbox.counts().values.allSatisfy { $0 == 0 })
            try await place.inlet(["roboscope"] + wrong[4], errors: "did you mean 'done'?")
        }
    }

    @Test func `a token that is refused is 69, and so is a server that is down`() async throws {
        try await withRoboscope { place, _, _ in
            try place.configure(replacing: "space-token-5521", with: "another-token-88")
            let refused = try await place.inlet("roboscope", "spaces", code: 69)
            #expect(!refused.errors.contains("another-token-88"))
            let checked = try await place.inlet("check", code: 69)
            #expect(!checked.output.contains("public_url"), "\(checked.output)")
            try place.configure(replacing: "public_url:", with: "# public_url:")
            try await place.inlet("check", says: "'store' has no public_url")
            let address = try #require(
                String(decoding: try place.content(place.configuration), as: UTF8.self)
                    .firstMatch(of: /http:..127.0.0.1:\d+\/api/).map { String($0.0) })
            try place.configure(replacing: address, with: "http://127.0.0.1:\(try FreePort.any())/api")
            try await place.inlet("roboscope", "spaces", code: 69, errors: "[connect_failed]")
        }
    }
}
