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
        let result = try await place.inlet(["roboscope"] + arguments + ["--json"])
        #expect(result.ending == .code(0), "\(arguments): \(result.errors)")
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
            let shown = try await place.inlet("roboscope", "spaces", "get", "atrium")
            #expect(shown.output.contains("model_glb_url") && shown.output.contains(stored.key), "\(shown.errors)")
            #expect(try await agent.stop() == .code(0))
            #expect(!(agent.errors + shown.output).contains("space-token-5521"))
        }
    }

    @Test func `route says what a file is to the server, and when its space is not known`() async throws {
        try await withRoboscope { place, sandbox, _ in
            func route(_ name: String) async throws -> String {
                let result = try await place.inlet("route", place.drop.string + "/" + name)
                #expect(result.ending == .code(0), "\(result.errors)")
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
            let taken = try await place.inlet("roboscope", "spaces", "create", "--key", "atrium")
            #expect(taken.ending == .code(1) && taken.errors.contains("already") && sandbox.spaces().count == 1)
            _ = try await object(
                place, "spaces", "update", "atrium", "--description", "North wing", "--meta", #"{"wing": "north"}"#)
            let space = try #require(sandbox.spaces().first)
            #expect(space.description == "North wing" && space.name == "The atrium" && space.changes == 1)
            #expect(space.meta == ["floor": 2, "wing": "north"])
            let listed = try await place.inlet("roboscope", "spaces")
            #expect(listed.output.contains("KEY") && listed.output.contains(id) && listed.output.contains("atrium"))
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
            let filtered = try await place.inlet("roboscope", "spaces", "list", "--key", "cellar")
            #expect(filtered.output.contains("No space has the key 'cellar'"))
            #expect(try await place.inlet("roboscope", "spaces", "delete", id).ending == .code(64))
            let deleted = try await place.inlet("roboscope", "spaces", "delete", "atrium", "--yes")
            #expect(deleted.ending == .code(0) && sandbox.spaces().isEmpty, "\(deleted.errors)")
            let gone = try await place.inlet("roboscope", "spaces", "get", id)
            #expect(gone.ending == .code(1) && gone.errors.contains("[not_found]"), "\(gone.errors)")
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
            let late = try await place.inlet("roboscope", "sessions", "update", id, "--status", "archived")
            #expect(late.ending != .code(0) && late.errors.contains("[conflict]"), "\(late.errors)")
            #expect(sandbox.sessions().map(\.status) == ["done"])
            let some = try await place.inlet(
                "roboscope", "sessions", "list", "--space", "atrium", "--status", "done", "--type", "repair", "--json")
            #expect(try some.objects().map { $0["id"] as? String } == [id], "\(some.errors)")
            let none = try await place.inlet("roboscope", "sessions", "list", "--status", "draft")
            #expect(none.output.contains("There are no such work sessions"))
            let shown = try await place.inlet("roboscope", "sessions", "get", id)
            #expect(shown.output.contains("locked") && shown.output.contains("done"), "\(shown.output)")
            sandbox.faults.clear()
            let archived = try await object(place, "sessions", "update", id, "--status", "archived")
            #expect(archived["status"] as? String == "archived" && sandbox.sessions().map(\.status) == ["archived"])
            let deleted = try await place.inlet("roboscope", "sessions", "delete", id, "--yes")
            #expect(deleted.ending == .code(0) && sandbox.sessions().isEmpty, "\(deleted.errors)")
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
            let late = try await place.inlet("roboscope", "markers", "update", id, "--label", "Late")
            #expect(late.ending != .code(0) && late.errors.contains("[conflict]"), "\(late.errors)")
            #expect(sandbox.markers().first?.label == "Crack, wide")
            let listed = try await place.inlet("roboscope", "markers", "list", "--session", session)
            #expect(listed.output.contains("Crack") && listed.output.contains("#ff8800"), "\(listed.errors)")
            let shown = try await place.inlet("roboscope", "markers", "get", id)
            #expect(shown.output.contains("p3") && shown.output.contains("[1,1.5,0]"), "\(shown.output)")
            let deleted = try await place.inlet("roboscope", "markers", "delete", id, "--yes")
            #expect(deleted.ending == .code(0) && sandbox.markers().isEmpty, "\(deleted.errors)")
        }
    }

    @Test func `the trail of what was done is listed, where the server keeps one`() async throws {
        try await withRoboscope { place, sandbox, _ in
            sandbox.addSpace(key: "atrium")
            _ = try await object(place, "spaces", "update", "atrium", "--name", "Atrium")
            let events = try await place.inlet("roboscope", "events", "--json")
            #expect(events.ending == .code(0), "\(events.errors)")
            #expect(try events.objects().count == sandbox.events().count && !sandbox.events().isEmpty)
            sandbox.rules.hasEvents = false
            let none = try await place.inlet("roboscope", "events")
            #expect(none.ending == .code(1) && none.errors.contains("[not_found]"), "\(none.errors)")
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
                let result = try await place.inlet(["roboscope"] + arguments)
                #expect(result.ending == .code(64), "\(arguments): \(result.errors)")
            }
            #expect(sandbox.counts().values.allSatisfy { $0 == 0 })
            let hinted = try await place.inlet(["roboscope"] + wrong[4])
            #expect(hinted.errors.contains("did you mean 'done'?"))
        }
    }

    @Test func `a token that is refused is 69, and so is a server that is down`() async throws {
        try await withRoboscope { place, _, _ in
            try place.configure(replacing: "space-token-5521", with: "another-token-88")
            let refused = try await place.inlet("roboscope", "spaces")
            #expect(refused.ending == .code(69), "\(refused.errors)")
            #expect(!refused.errors.contains("another-token-88"))
            let checked = try await place.inlet("check")
            #expect(checked.ending == .code(69) && !checked.output.contains("public_url"), "\(checked.output)")
            try place.configure(replacing: "public_url:", with: "# public_url:")
            #expect(try await place.inlet("check").output.contains("'store' has no public_url"))
            let address = try #require(
                String(decoding: try place.content(place.configuration), as: UTF8.self)
                    .firstMatch(of: /http:..127.0.0.1:\d+\/api/).map { String($0.0) })
            try place.configure(replacing: address, with: "http://127.0.0.1:\(try FreePort.any())/api")
            let down = try await place.inlet("roboscope", "spaces")
            #expect(down.ending == .code(69) && down.errors.contains("[connect_failed]"), "\(down.errors)")
        }
    }
}
