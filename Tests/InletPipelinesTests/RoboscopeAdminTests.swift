import Foundation
import InletCore
import InletPipelines
import InletSandbox
import InletTestSupport
import InletTransfer
import SystemPackage
import Testing

/// What people ask of a Roboscope server from the command line.
@Suite(.timeLimit(.minutes(8))) struct RoboscopeAdminTests {
    private static let corners: JSONObject = [
        "p1": point(0, 0), "p2": point(1, 0), "p3": point(1, 1), "p4": point(0, 1),
    ]

    private static func point(_ x: Int, _ y: Int) -> JSONValue { .array([JSONValue(x), JSONValue(y), JSONValue(0)]) }

    @Test func `spaces are made, found by key or id, changed and deleted`() async throws {
        try await withRoboscope { place in
            let made = try await place.admin.create(.spaces, ["key": .string("atrium"), "name": .string("Atrium")])
            let id = try #require(made["id"]?.string)
            #expect(try await place.admin.list(.spaces, query: [("key", "atrium")]).count == 1)
            #expect(try await place.admin.list(.spaces, query: [("key", "other")]).isEmpty)
            #expect(try await place.admin.get(.spaces, "atrium")["id"]?.string == id)
            #expect(try await place.admin.get(.spaces, id)["key"]?.string == "atrium")
            let changed = try await place.admin.update(.spaces, "atrium", ["name": .string("Hall")])
            #expect(changed["name"]?.string == "Hall" && place.count(.updateSpace) == 1)
            try await place.admin.delete(.spaces, "atrium")
            #expect(place.sandbox.spaces().isEmpty)
            let error = await #expect(throws: DeliveryError.self) { try await place.admin.get(.spaces, id) }
            #expect(error?.code == .notFound)
        }
    }

    @Test func `a key that is not there, and one that is there twice`() async throws {
        try await withRoboscope { place in
            let none = await #expect(throws: DeliveryError.self) { try await place.admin.get(.spaces, "my space") }
            #expect(none?.code == .notFound && none?.reason.contains("'my space'") == true)
            place.sandbox.addSpace(key: "atrium")
            place.sandbox.addSpace(key: "atrium")
            let twice = await #expect(throws: DeliveryError.self) { try await place.admin.delete(.spaces, "atrium") }
            #expect(twice?.code == .conflict && place.sandbox.spaces().count == 2)
        }
    }

    /// The statuses of the reference (`WorkSessionStatus`).
    @Test(arguments: ["draft", "active", "done", "archived"])
    func `a session is made with a status, changed to it, and found by it`(_ status: String) async throws {
        try await withRoboscope { place in
            let space = place.sandbox.addSpace(key: "atrium")
            func make(_ status: String) async throws -> JSONValue {
                try await place.admin.create(
                    .sessions,
                    [
                        "space_id": .string(space.id), "session_type": .string("inspection"),
                        "status": .string(status),
                    ])
            }
            #expect(try await make(status)["status"]?.string == status)
            #expect(place.sandbox.sessions().map(\.status) == [status])
            let id = try #require(try await make(status == "draft" ? "done" : "draft")["id"]?.string)
            #expect(try await place.admin.list(.sessions, query: [("status", status)]).count == 1)
            let changed = try await place.admin.update(.sessions, id, ["status": .string(status)])
            #expect(changed["status"]?.string == status && place.sandbox.sessions().map(\.status) == [status, status])
            #expect(try await place.admin.list(.sessions, query: [("status", status)]).count == 2)
        }
    }

    @Test(arguments: [
        (RoboscopeAPI.Kind.sessions, "work-sessions", "status"), (RoboscopeAPI.Kind.markers, "markers", "label"),
    ]) func `a change names the version that was read, and after a 409 the one that is there then`(
        _ kind: RoboscopeAPI.Kind, _ path: String, _ field: String
    ) async throws {
        // Somebody else writes between our reading and our writing. The versions are such as only 64 bits tell apart.
        let (before, after) = ("9007199254740992", "9007199254740993")
        let server = try VOPIServer { asked, count in
            if asked.method == "PATCH", count < 2 { return .json(409, "Version conflict - resource was modified") }
            return .json(200, #"{"id":"one","\#(field)":"old","version":\#(count < 2 ? before : after)}"#)
        }
        let client = HTTPClient(userAgent: "inlet-tests/1")
        defer { client.shutdown() }
        let settings = try RoboscopeSettings(
            section(["url": .string(server.address + "/api/v1"), "storage": .string("spiral")]))
        _ = try await RoboscopeAPI(settings: settings, client: client).update(kind, "one", [field: .string("done")])
        let asked = server.asked
        #expect(asked.map(\.method) == ["GET", "PATCH", "GET", "PATCH", "GET"])
        #expect(asked.allSatisfy { $0.target == "/api/v1/\(path)/one" })
        let bodies = asked.filter { $0.method == "PATCH" }.map { String(decoding: $0.body, as: UTF8.self) }
        #expect(bodies == [before, after].map { #"{"\#(field)":"done","version":\#($0)}"# })
    }

    @Test func `a session is changed with its version, again after a conflict, in one PATCH without`() async throws {
        try await withRoboscope(rules: RoboscopeRules(needsVersion: true)) { place in
            let space = place.sandbox.addSpace(key: "atrium")
            let made = try await place.admin.create(
                .sessions,
                [
                    "space_id": .string(space.id), "session_type": .string("repair"),
                    "meta": .object(["crew": .string("Ann"), "deep": .object(["x": .array([JSONValue(1)])])]),
                ])
            let id = try #require(made["id"]?.string)
            #expect(made["status"]?.string == "draft" && made["version"]?.integer == 1)
            var session = try await place.admin.update(
                .sessions, id, ["status": .string("active"), "meta": .object(["note": .string("n")])])
            #expect(session["status"]?.string == "active" && place.count(.updateSession) == 1)
            #expect(session["meta"]?["crew"]?.string == "Ann" && session["meta"]?["note"]?.string == "n")
            #expect(session["meta"]?["deep"]?["x"]?.array == [JSONValue(1)])
            place.sandbox.faults.add(RoboscopeFault(.conflict, at: .updateSession, times: 2))
            session = try await place.admin.update(.sessions, id, ["status": .string("done")])
            #expect(session["status"]?.string == "done" && place.count(.updateSession) == 4)
            place.sandbox.faults.add(RoboscopeFault(.conflict, at: .updateSession, times: 3))
            let error = await #expect(throws: DeliveryError.self) {
                try await place.admin.update(.sessions, id, ["status": .string("archived")])
            }
            #expect(error?.code == .conflict && place.count(.updateSession) == 7)
            #expect(
                try await place.admin.list(.sessions, query: [("space_id", space.id), ("status", "done")]).count == 1)
            #expect(try await place.admin.list(.sessions, query: [("session_type", "other")]).isEmpty)
            try await place.admin.delete(.sessions, id)
            #expect(place.sandbox.sessions().isEmpty)
        }
    }

    @Test func `markers are checked, made, moved, measured and deleted`() async throws {
        try await withRoboscope { place in
            let space = place.sandbox.addSpace(key: "atrium")
            let session = try await place.admin.create(
                .sessions, ["space_id": .string(space.id), "session_type": .string("inspection")])
            let home: JSONObject = ["work_session_id": session["id"] ?? .null]
            let wrong = await #expect(throws: DeliveryError.self) {
                try await place.admin.create(.markers, home.merging(["p1": .null]) { $1 })
            }
            #expect(wrong?.reason.contains("p1 is missing") == true && place.count(.createMarker) == 0)
            let made = try await place.admin.create(.markers, home.merging(Self.corners) { $1 })
            let id = try #require(made["id"]?.string)
            #expect(try await place.admin.details(ofMarker: id) == nil)
            let moved = try await place.admin.update(.markers, id, ["label": .string("crack"), "p1": Self.point(5, 5)])
            #expect(
                moved["label"]?.string == "crack" && moved["p1"] == Self.point(5, 5) && moved["version"]?.integer == 2)
            let mine = [("work_session_id", session["id"]?.string ?? "")]
            #expect(try await place.admin.list(.markers, query: mine).count == 1)
            try await place.admin.delete(.markers, id)
            #expect(place.sandbox.markers().isEmpty)
        }
    }

    @Test func `events, presence and locks are read, where there are any`() async throws {
        try await withRoboscope { place in
            let space = place.sandbox.addSpace(key: "atrium")
            let session = try await place.admin.create(
                .sessions, ["space_id": .string(space.id), "session_type": .string("other")])
            let id = try #require(session["id"]?.string)
            #expect(try await place.admin.presence(inSession: id) == [])
            #expect(try await place.admin.isLocked(session: id) == false)
            place.sandbox.lock(session: id, for: .seconds(60))
            #expect(try await place.admin.isLocked(session: id) == true)
            #expect(try await place.admin.list(.events).compactMap { $0["action"]?.string }.contains("session.created"))
            let error = await #expect(throws: DeliveryError.self) { try await place.admin.delete(.events, "1") }
            #expect(error?.verdict == .giveUp)
        }
        let bare = RoboscopeRules(hasPresence: false, hasLocks: false, hasEvents: false)
        try await withRoboscope(rules: bare) { place in
            let present = try await place.admin.presence(inSession: "a-b")
            #expect(present == nil)
            #expect(try await place.admin.isLocked(session: "a-b") == nil)
            let error = await #expect(throws: DeliveryError.self) { try await place.admin.list(.events) }
            #expect(error?.code == .notFound)
        }
    }

    @Test func `no id leads out of its folder`() async throws {
        try await withRoboscope { place in
            for id in ["../spaces", "a/b", "", "a?x=1"] {
                let error = await #expect(throws: DeliveryError.self) { try await place.admin.delete(.markers, id) }
                #expect(error?.verdict == .giveUp && error?.code == .badRequest)
            }
            #expect(place.requests == 0)
        }
    }
}
