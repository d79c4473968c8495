import Foundation
import InletCore
import InletLinux
import InletSandbox
import InletTestSupport
import InletTransfer
import SystemPackage
import Testing

@testable import InletPipelines

/// What people ask of a Roboscope server from the command line.
@Suite(.timeLimit(.minutes(15))) struct RoboscopeAdminTests {
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

/// What other people at a session are told while it is written to: presence and the lock, for as long as it takes, and not
/// longer.
@Suite(.timeLimit(.minutes(15))) struct RoboscopeCourtesyTests {
    /// Cancels an attempt whose markers are never answered, once `body` has looked.
    private static func whileStalled(
        _ place: RoboscopePlace, _ body: (_ session: String) async throws -> Void
    ) async throws {
        place.sandbox.faults.add(RoboscopeFault(.stall, at: .bulkMarkers, times: nil))
        let order = try place.order("atrium/markers.json", markerList(20))
        let attempt = Notes().attempt()
        let task = Task { try await place.failure(order, attempt) }
        do {
            try await eventually("markers are under way") { place.count(.bulkMarkers) == 1 }
            try await body(try #require(place.sandbox.sessions().first?.id))
        } catch {
            task.cancel()
            throw error
        }
        task.cancel()
        #expect(try await task.value?.verdict == .cancelled)
    }

    @Test func `an attempt that is cancelled gives the lock back and leaves`() async throws {
        try await withRoboscope { place in
            try await Self.whileStalled(place) { session in
                #expect(place.sandbox.isLocked(session: session) && place.sandbox.present(in: session).count == 1)
            }
            let session = try #require(place.sandbox.sessions().first?.id)
            try await eventually("the lock is given back") { !place.sandbox.isLocked(session: session) }
            try await eventually("nobody is present") { place.sandbox.present(in: session).isEmpty }
            #expect(place.sandbox.visitors(of: session).count == 1 && place.sandbox.markers().isEmpty)
            // So that the next one need not wait for it.
            place.sandbox.faults.clear()
            _ = try await place.deliver(try place.order("atrium/markers.json", markerList(20)))
            #expect(place.count(.lock) == 2 && place.sandbox.markers().count == 20)
        }
    }

    @Test func `a cancelled attempt does not wait for a server that is silent`() async throws {
        try await withRoboscope { place in
            place.sandbox.faults.add(RoboscopeFault(.stall, at: .unlock, times: nil))
            place.sandbox.faults.add(RoboscopeFault(.stall, at: .leave, times: nil))
            // A request that is waited for takes 30 s.
            let clock = ContinuousClock()
            var start = clock.now
            try await Self.whileStalled(place) { _ in start = clock.now }
            #expect(clock.now - start < .seconds(15))
            try await eventually("both were said") { place.count(.unlock) == 1 && place.count(.leave) == 1 }
        }
    }

    @Test func `presence and lock last as long as the work`() async throws {
        let clock = HandClock()
        try await withRoboscope(beat: .milliseconds(20), clock: clock) { place in
            try await Self.whileStalled(place) { session in
                // Each round is shorter than what the server grants at once; together they are much longer.
                for round in 1...4 {
                    clock.advance(.seconds(25))
                    let (signs, extensions) = (place.count(.enter), place.count(.extendLock))
                    try await eventually("signs of life in round \(round)") {
                        place.count(.enter) >= signs + 2 && place.count(.extendLock) >= extensions + 2
                    }
                    #expect(place.sandbox.isLocked(session: session), "round \(round)")
                    #expect(place.sandbox.present(in: session).count == 1, "round \(round)")
                }
                #expect(place.count(.lock) == 1)
            }
        }
    }

    @Test func `a lock that is met later is waited for anew, however long another one was`() async throws {
        try await withRoboscope { place in
            let order = try place.order("atrium/markers.json", markerList(20))
            let notes = Notes(["locked": Array(String(WallTime.now.milliseconds - 700_000).utf8)])
            _ = try await place.deliver(order, notes)
            let session = try #require(place.sandbox.sessions().first?.id)
            place.sandbox.lock(session: session, for: .seconds(3600))
            let saying = try await place.attempt(order, notes.attempt()).get().wait().saying
            #expect(saying?.contains("locked") == true)
        }
    }

    @Test func `a server without locks is still told who is there`() async throws {
        let beat = Duration.milliseconds(20)
        try await withRoboscope(rules: RoboscopeRules(hasLocks: false), beat: beat) { place in
            try await Self.whileStalled(place) { session in
                try await eventually("signs of life") { place.count(.enter) >= 4 }
                #expect(place.count(.extendLock) == 0 && place.sandbox.present(in: session).count == 1)
            }
        }
    }
}

/// A whole unit through a bad line: whatever request is lost, each thing is there once in the end.
@Suite(.timeLimit(.minutes(15))) struct RoboscopeFaultTests {
    private static let member = OrderBatch(id: 9, name: "card", folder: "card")
    private static let closing = OrderBatch(id: 9, name: "card", folder: "card", isClosing: true, files: 6)

    /// Every fourth request goes wrong in one of four ways.
    private static let line: [RoboscopeFault] = [
        RoboscopeFault(.loseAnswer, times: nil, probability: 0.08),
        RoboscopeFault(.reset(afterBytes: 0), times: nil, probability: 0.06),
        RoboscopeFault(.status(500), times: nil, probability: 0.06),
        RoboscopeFault(.truncateAnswer(afterBytes: 20), times: nil, probability: 0.06),
    ]

    @Test(arguments: [false, true])
    func `a request ends when nothing comes, and when its answer drips on and on`(_ isDripping: Bool) async throws {
        let server = try ScriptedServer { connection in
            _ = try connection.readRequest()
            guard isDripping else { return connection.waitForEnd() }
            try connection.write("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
            while connection.linger(milliseconds: 20) { try connection.write(" ") }
        }
        let client = HTTPClient(userAgent: "inlet-tests/1")
        defer { client.shutdown() }
        let settings = try RoboscopeSettings(
            section(["url": .string("http://127.0.0.1:\(server.port)/api/v1"), "storage": .string("spiral")]))
        // What the reference allows, of nothing and in all; too long for a test that looks on.
        let usual = RoboscopeAPI(settings: settings, client: client).request("GET", "spaces", limit: 1)
        #expect(usual.stallTimeout == .seconds(30) && usual.answerDeadline == .seconds(30))
        let api = RoboscopeAPI(settings: settings, client: client, patience: .milliseconds(300))
        let error = await failure { () throws(DeliveryError) in try await api.objects(.spaces) }
        #expect(error?.code == .timedOut || !isDripping && error?.code == .stalled, "\(String(describing: error))")
        try await eventually("it was asked once") { server.connections == 1 }
    }

    @Test(arguments: [UInt64(1), 2, 3]) func `a unit arrives once over a bad line`(_ seed: UInt64) async throws {
        let settings: [String: ConfigValue?] = ["locks": .boolean(false), "chunk": .integer(40)]
        try await withRoboscope(seed: seed, faults: Self.line, settings: settings) { place in
            let fields = ["space": "hall"]
            let clips = try (0..<4).map { index in
                try place.order(FilePath("card/\(index).mp4"), stored: "u:\(index)", fields: fields, batch: Self.member)
            }
            let model = try place.order("card/m.glb", stored: "u:m", fields: fields, batch: Self.member)
            let markers = try place.order("card/markers.json", markerList(300), fields: fields, batch: Self.member)
            try await withThrowingTaskGroup(of: Void.self) { group in
                for order in clips + [model, markers] {
                    group.addTask { try await Self.insist(place, order) }
                }
                try await group.waitForAll()
            }
            try await Self.insist(place, try place.order("card/0.mp4", fields: fields, batch: Self.closing))
            #expect(try place.space("hall").modelGLBURL == "u:m")
            let session = try #require(place.sandbox.sessions().first)
            #expect(place.sandbox.sessions().count == 1 && session.status == "done")
            #expect(session.meta?["ingest_files"]?.number == 6)
            let stamps = place.sandbox.markers().compactMap { $0.customProps["ingest_id"]?.text }
            #expect(stamps.count == 300 && Set(stamps).count == 300)
            #expect(place.sandbox.markers().allSatisfy { $0.sessionID == session.id })
        }
    }

    @Test func `a server that lists only some markers is sent none of them twice`() async throws {
        var rules = RoboscopeRules()
        rules.longestList = 150
        try await withRoboscope(rules: rules) { place in
            let error = try await place.failure(try place.order("atrium/markers.json", markerList(420)))
            #expect(error?.verdict == .giveUp && error?.reason.contains("accepted 420 markers, but lists 150") == true)
            #expect(place.count(.bulkMarkers) == 5 && place.sandbox.markers().count == 420)
        }
    }

    @Test func `what a list shows late is waited for, not sent again`() async throws {
        try await withRoboscope { place in
            let order = try place.order("atrium/markers.json", markerList(250))
            let attempt = Notes().attempt()
            let late = FaultReply(200, type: "application/json", body: "[]")
            // The first list is empty anyway; the two after it are late.
            place.sandbox.faults.add(RoboscopeFault(.reply(late), at: .listMarkers, times: 3))
            try await place.attempt(order, attempt).get().proof()
            #expect(place.count(.bulkMarkers) == 3 && place.sandbox.markers().count == 250)
        }
    }

    @Test func `markers go to no second session while nobody can say whether the first is there`() async throws {
        try await withRoboscope { place in
            let order = try place.order("atrium/markers.json", markerList(120))
            let notes = Notes()
            place.sandbox.faults.add(RoboscopeFault(.status(500), at: .bulkMarkers, times: nil))
            #expect(try await place.failure(order, notes.attempt())?.code == .serverError)
            place.sandbox.faults.clear()
            let first = try #require(place.sandbox.sessions().first)
            // Somebody takes the stamp away that it would be found by.
            _ = try await place.admin.update(.sessions, first.id, ["meta": .object(["ingest_batch": .string("mine")])])
            place.sandbox.faults.add(RoboscopeFault(.status(500), at: .session))
            #expect(try await place.failure(order, notes.attempt())?.code == .serverError)
            #expect(place.sandbox.sessions().count == 1)
            _ = try await place.deliver(order, notes)
            #expect(place.sandbox.sessions().count == 1 && place.sandbox.markers().count == 120)
            _ = try await place.admin.delete(.sessions, first.id)
            _ = try await place.deliver(order, notes)
            #expect(place.sandbox.sessions().count == 1 && place.sandbox.markers().count == 120)
        }
    }

    @Test func `the lock of an attempt that was killed is gone on with, not waited for`() async throws {
        try await withRoboscope { place in
            let order = try place.order("atrium/markers.json", markerList(250))
            let notes = Notes()
            // As a killed agent: it never gives the lock back.
            place.sandbox.faults.add(RoboscopeFault(.status(500), at: .unlock, times: nil))
            place.sandbox.faults.add(RoboscopeFault(.status(500), at: .bulkMarkers, times: nil))
            #expect(try await place.failure(order, notes.attempt())?.code == .serverError)
            place.sandbox.faults.clear()
            try await place.attempt(order, notes.attempt()).get().proof()
            #expect(place.count(.lock) == 1 && place.count(.extendLock) == 1)
        }
    }

    /// Attempt after attempt, as the agent does it; nothing on this line is for good.
    private static func insist(_ place: RoboscopePlace, _ order: DeliveryOrder) async throws {
        let notes = Notes()
        for _ in 1...200 {
            switch try await place.attempt(order, notes.attempt()) {
            case .success(.delivered): return
            case .success(.waiting): continue
            case .failure(let error):
                switch error.verdict {
                case .retry, .outage: continue
                default: throw error
                }
            }
        }
        throw DeliveryError(.giveUp, .internalFault, "not delivered in 200 attempts")
    }
}
