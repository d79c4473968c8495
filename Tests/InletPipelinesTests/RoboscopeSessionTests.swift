import Foundation
import InletCore
import InletLinux
import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

@testable import InletPipelines

/// Sessions of folders: one each, active while files arrive, and done after the last.
@Suite(.timeLimit(.minutes(15))) struct RoboscopeSessionTests {
    private static let first = WallTime(milliseconds: 1_760_954_400_000)
    private static let last = WallTime(milliseconds: 1_760_958_000_000)
    private static let member = OrderBatch(id: 3, name: "card/one", folder: "card/one")
    private static let closing = OrderBatch(
        id: 3, name: "card/one", folder: "card/one", isClosing: true, files: 2, firstCaptured: first, lastCaptured: last
    )

    private static func clip(
        _ place: RoboscopePlace, _ name: String = "a.mp4", _ batch: OrderBatch? = member
    ) throws -> DeliveryOrder {
        try place.order(
            FilePath("card/one/\(name)"), stored: "u:\(name)", fields: ["space": "atrium"], batch: batch)
    }

    @Test func `the files of a unit make one session, and its end makes it done`() async throws {
        try await withRoboscope { place in
            let orders = try (0..<12).map { try Self.clip(place, "\($0).mp4") }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for order in orders { group.addTask { _ = try await place.deliver(order) } }
                try await group.waitForAll()
            }
            var session = try #require(place.sandbox.sessions().first)
            #expect(place.sandbox.sessions().count == 1 && place.count(.listSessions) == 1)
            #expect(session.status == "active" && session.type == "inspection" && session.completedAt == nil)
            let stamp = session.meta?["ingest_batch"]?.text
            #expect(stamp?.hasSuffix(":card/one#3") == true)
            let proof = try await place.deliver(try Self.clip(place, "0.mp4", Self.closing))
            session = try #require(place.sandbox.sessions().first)
            #expect(session.status == "done" && session.startedAt == "2025-10-20T10:00:00Z")
            #expect(session.completedAt == "2025-10-20T11:00:00Z" && session.meta?["ingest_files"]?.number == 2)
            #expect(session.meta?["ingest_batch"]?.text == stamp)
            #expect(proof.method == .registered && proof.details?["session_id"] == session.id)
            #expect(proof.details?["status"] == "done" && proof.details?["files"] == "2")
            let version = session.version
            _ = try await place.deliver(try Self.clip(place, "0.mp4", Self.closing))
            #expect(place.sandbox.sessions().first?.version == version && place.sandbox.sessions().count == 1)
        }
    }

    @Test func `an end without its source, or without a session yet, is an end all the same`() async throws {
        try await withRoboscope { place in
            let order = try Self.clip(place, "a.mp4", Self.closing)
            let path = place.root.path.pushing(order.path)
            try place.root.write(Array("changed".utf8), to: order.path)
            _ = try await place.deliver(order)
            #expect(place.sandbox.sessions().map(\.status) == ["done"])
            try FileManager.default.removeItem(atPath: path.string)
            try #require(try await place.pipeline.conclude(path, order, Notes().attempt())).proof()
            #expect(place.sandbox.sessions().count == 1)
        }
    }

    @Test func `another unit of the same name has a session of its own`() async throws {
        try await withRoboscope { place in
            _ = try await place.deliver(try Self.clip(place))
            var later = Self.member
            later.id = 4
            _ = try await place.deliver(try Self.clip(place, "b.mp4", later))
            #expect(Set(place.sandbox.sessions().compactMap { $0.meta?["ingest_batch"]?.text }).count == 2)
        }
    }

    @Test func `lost answers make no second session, and no second end`() async throws {
        try await withRoboscope(
            faults: RoboscopeFault(.loseAnswer, at: .createSession), RoboscopeFault(.loseAnswer, at: .updateSession)
        ) { place in
            _ = try await place.deliver(try Self.clip(place))
            _ = try await place.deliver(try Self.clip(place, "a.mp4", Self.closing))
            let session = try #require(place.sandbox.sessions().first)
            #expect(place.sandbox.sessions().count == 1 && place.count(.createSession) == 1)
            #expect(session.status == "done" && session.version == 2)
        }
    }

    @Test func `someone else's change is read and ours made on top of it, three times at most`() async throws {
        try await withRoboscope(rules: RoboscopeRules(needsVersion: true)) { place in
            _ = try await place.deliver(try Self.clip(place))
            place.sandbox.faults.add(RoboscopeFault(.conflict, at: .updateSession, times: 2))
            _ = try await place.deliver(try Self.clip(place, "a.mp4", Self.closing))
            #expect(place.sandbox.sessions().first?.status == "done" && place.count(.updateSession) == 3)
        }
        try await withRoboscope { place in
            place.sandbox.faults.add(RoboscopeFault(.conflict, at: .updateSession, times: nil))
            let error = try await place.failure(try Self.clip(place, "a.mp4", Self.closing))
            #expect(error?.verdict == .retry(after: nil) && error?.code == .conflict)
            #expect(place.count(.updateSession) == 3)
        }
    }

    // MARK: - Session files

    @Test func `a session file in the folder decides type, status and meta`() async throws {
        try await withRoboscope { place in
            let text = #"{"type":"repair","status":"archived","meta":{"crew":"Ann"}}"#
            try place.root.write(Array(text.utf8), to: "card/one/session.json")
            _ = try await place.deliver(try Self.clip(place))
            #expect(
                place.sandbox.sessions().first?.type == "repair" && place.sandbox.sessions().first?.status == "active")
            _ = try await place.deliver(try Self.clip(place, "a.mp4", Self.closing))
            let session = try #require(place.sandbox.sessions().first)
            #expect(session.status == "archived" && session.meta?["crew"]?.text == "Ann")
        }
    }

    @Test func `a session file that was delivered counts also when it is not there any more`() async throws {
        try await withRoboscope { place in
            _ = try await place.deliver(try Self.clip(place))
            let order = try place.order(
                "card/one/session.json", #"{"type":"other","status":"archived","meta":{"crew":"Ann"}}"#,
                fields: ["space": "atrium"], batch: Self.member)
            let proof = try await place.deliver(order)
            #expect(proof.method == .registered && proof.details?["session_id"] == place.sandbox.sessions().first?.id)
            try FileManager.default.removeItem(atPath: place.root.path.pushing(order.path).string)
            _ = try await place.deliver(try Self.clip(place, "a.mp4", Self.closing))
            let session = try #require(place.sandbox.sessions().first)
            #expect(session.status == "archived" && session.type == "other" && session.meta?["crew"]?.text == "Ann")
            #expect(place.sandbox.sessions().count == 1)
        }
    }

    @Test func `a session file that is wrong fails the end, not the files`() async throws {
        try await withRoboscope { place in
            try place.root.write(Array(#"{"typ":"repair"}"#.utf8), to: "card/one/session.json")
            _ = try await place.deliver(try Self.clip(place))
            let error = try await place.failure(try Self.clip(place, "a.mp4", Self.closing))
            #expect(error?.verdict == .giveUp && error?.code == .badSidecar)
            #expect(error?.reason.contains("did you mean 'type'?") == true)
            #expect(place.sandbox.sessions().first?.status == "active")
        }
    }

    @Test func `a session file without a unit says what is missing`() async throws {
        try await withRoboscope { place in
            let order = try place.order("card/one/session.json", "{}", fields: ["space": "atrium"])
            #expect(try await place.failure(order)?.reason.contains("unit: folder") == true)
            let lone = try await place.deliver(try Self.clip(place, "a.mp4", nil))
            #expect(lone.method == .registered && lone.url == "u:a.mp4" && place.requests == 0)
            let unstored = try place.order("card/one/b.mp4", fields: ["space": "atrium"], batch: Self.member)
            #expect(try await place.failure(unstored)?.verdict == .giveUp)
        }
    }

    @Test func `markers and models of a unit belong to its session`() async throws {
        try await withRoboscope { place in
            let fields = ["space": "atrium"]
            let markers = try place.order("card/one/markers.json", markerList(7), fields: fields, batch: Self.member)
            _ = try await place.deliver(markers)
            let model = try place.order("card/one/m.glb", stored: "u:m", fields: fields, batch: Self.member)
            _ = try await place.deliver(model)
            _ = try await place.deliver(try Self.clip(place, "a.mp4", Self.closing))
            let session = try #require(place.sandbox.sessions().first)
            #expect(place.sandbox.sessions().count == 1 && session.status == "done")
            #expect(
                place.sandbox.markers().count == 7 && place.sandbox.markers().allSatisfy { $0.sessionID == session.id })
            #expect(try place.space("atrium").modelGLBURL == "u:m")
        }
    }

    // MARK: - Presence and locks

    @Test func `who writes is seen, and has the lock until it is done`() async throws {
        try await withRoboscope { place in
            let order = try place.order("atrium/markers.json", markerList(200))
            let seen = Listing<Bool>()
            let attempt = Notes().attempt(isStopping: {
                if let session = place.sandbox.sessions().first, place.count(.bulkMarkers) == 1 {
                    seen.add(place.sandbox.isLocked(session: session.id))
                }
                return false
            })
            _ = try await place.attempt(order, attempt).get()
            let session = try #require(place.sandbox.sessions().first?.id)
            #expect(seen.all.contains(true) && !seen.all.contains(false))
            #expect(!place.sandbox.isLocked(session: session) && place.sandbox.present(in: session) == [])
            #expect(place.sandbox.visitors(of: session).contains { $0.hasPrefix("ingest:") })
        }
    }

    @Test func `a server without presence and locks is written to, and asked once`() async throws {
        try await withRoboscope(rules: RoboscopeRules(hasPresence: false, hasLocks: false)) { place in
            for index in 1...3 {
                let path = FilePath("atrium/\(index)/markers.json")
                _ = try await place.deliver(try place.order(path, markerList(index)))
            }
            #expect(place.sandbox.markers().count == 6)
            #expect(place.count(.lock) == 1 && place.count(.enter) == 1 && place.count(.leave) == 0)
        }
    }

    @Test func `switched off, neither is asked for`() async throws {
        let off: [String: ConfigValue?] = ["presence": .boolean(false), "locks": .boolean(false)]
        try await withRoboscope(settings: off) { place in
            _ = try await place.deliver(try place.order("atrium/markers.json", markerList(2)))
            #expect(place.count(.lock) == 0 && place.count(.enter) == 0 && place.sandbox.markers().count == 2)
        }
    }

    @Test func `a session that somebody has locked is waited for without a worker, and not for ever`() async throws {
        try await withRoboscope { place in
            _ = try await place.deliver(try Self.clip(place))
            let session = try #require(place.sandbox.sessions().first?.id)
            place.sandbox.lock(session: session, for: .seconds(3600))
            let order = try Self.clip(place, "a.mp4", Self.closing)
            let notes = Notes()
            let saying = try await place.attempt(order, notes.attempt()).get().wait().saying
            #expect(saying?.contains("locked") == true && place.sandbox.sessions().first?.status == "active")
            let since = try #require(notes.entries["locked"])
            let long = Notes(["locked": Array(String(WallTime.now.milliseconds - 700_000).utf8)])
            #expect(!since.isEmpty)
            try await place.attempt(order, long.attempt()).get().proof()
            #expect(place.sandbox.sessions().first?.status == "done")
        }
    }
}

/// What sessions shall be like, decided without a server.
struct RoboscopeSessionRuleTests {
    private static func file(_ text: String) throws -> SessionFile {
        try SessionFile(try JSONValue(parsing: text.utf8))
    }

    @Test func `a session file sets type, status and meta`() throws {
        #expect(try Self.file("null") == SessionFile())
        let file = try Self.file(#"{"type":"Repair","status":"archived","meta":{"crew":[1,2]}}"#)
        #expect(file.type == "repair" && file.status == "archived")
        #expect(file.meta == ["crew": .array([JSONValue(1), JSONValue(2)])])
        #expect(try Self.file(#"{"session_type":"other","meta":null}"#).type == "other")
    }

    @Test(arguments: [
        ("[]", "session"), (#"{"typ":"repair"}"#, "typ"), (#"{"type":"repairs"}"#, "type"),
        (#"{"status":1}"#, "status"),
        (#"{"meta":[]}"#, "meta"), (#"{"status":"open"}"#, "status"),
    ]) func `what is wrong in a session file is named`(_ text: String, _ field: String) {
        let fault = #expect(throws: SettingFault.self) { try Self.file(text) }
        #expect(fault?.key == field)
    }

    private static func session(_ text: String) throws -> RoboscopeObject {
        RoboscopeObject(fields: try #require(try JSONValue(parsing: text.utf8).object))
    }

    private static let first = WallTime(milliseconds: 1_760_954_400_000)
    private static let last = WallTime(milliseconds: 1_760_958_000_000)
    private static let batch = OrderBatch(
        id: 7, name: "card", isClosing: true, files: 3, firstCaptured: first, lastCaptured: last)

    private static func end(_ file: SessionFile? = nil, status: String? = nil, failed: Int = 0) -> SessionEnd {
        var batch = batch
        batch.failed = failed
        return SessionEnd(batch: batch, file: file, status: status, now: WallTime(milliseconds: 2_000_000_000_000))
    }

    private static let active = #"{"id":"s","status":"active","session_type":"inspection","meta":{"a":1}}"#

    @Test func `a unit that has arrived makes its session done, once`() throws {
        let session = try Self.session(Self.active)
        let change = try #require(Self.end().change(of: session))
        #expect(
            change == [
                "status": .string("done"), "started_at": .string("2025-10-20T10:00:00Z"),
                "completed_at": .string("2025-10-20T11:00:00Z"),
                "meta": .object(["a": JSONValue(1), "ingest_files": JSONValue(3)]),
            ])
        let after = RoboscopeObject(fields: session.fields.merging(change) { $1 })
        #expect(Self.end().change(of: after) == nil)
        #expect(Self.end(failed: 2).change(of: session)?["meta"]?["ingest_failed"]?.integer == 2)
    }

    @Test func `the session file counts most, then what was delivered of it, then the route`() throws {
        var file = SessionFile()
        let told = try Self.session(#"{"id":"s","status":"active","meta":{"ingest_status":"archived"}}"#)
        let plain = try Self.session(Self.active)
        #expect(Self.end(status: "draft").finalStatus(of: plain) == "draft")
        #expect(Self.end(status: "draft").finalStatus(of: told) == "archived")
        file.status = "active"
        #expect(Self.end(file, status: "draft").finalStatus(of: told) == "active")
        #expect(Self.end(file).change(of: plain)?["completed_at"] == nil)
        let odd = try Self.session(#"{"id":"s","status":"active","meta":{"ingest_status":"whatever"}}"#)
        #expect(Self.end().finalStatus(of: odd) == "done")
    }

    @Test func `of several sessions for one unit the oldest counts`() throws {
        let sessions = try [
            #"{"id":"c","created_at":"2025-10-20T10:00:01Z","meta":{"ingest_batch":"x"}}"#,
            #"{"id":"b","created_at":"2025-10-20T10:00:00.5Z","meta":{"ingest_batch":"x"}}"#,
            #"{"id":"a","created_at":"2025-10-20T10:00:00Z","meta":{"ingest_batch":"y"}}"#, #"{"id":"d","meta":null}"#,
            #"{"id":"../e","created_at":"2020-10-20T10:00:00Z","meta":{"ingest_batch":"x"}}"#,
        ].map(Self.session)
        #expect(RoboscopeObject.standing(for: "x", among: sessions)?.id == "b")
        #expect(RoboscopeObject.standing(for: "z", among: sessions) == nil)
        #expect(RoboscopeJob.stamp(Self.batch, host: "nas") == "nas:card#7")
    }
}

@Suite struct RoboscopeTallyTests {
    @Test(arguments: 1...30) func `what was noted is read again`(_ seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var tally = ConfirmedMarkers(session: "S-1")
        var known: Set<Int> = []
        for _ in 0..<20 {
            let first = Int.random(in: 0..<900, using: &generator)
            let numbers = first..<first + Int.random(in: 1...100, using: &generator)
            let isNews = tally.add(ConfirmedMarkers.set(numbers))
            #expect(isNews == !known.isSuperset(of: numbers))
            known.formUnion(numbers)
        }
        let listed = known.filter { _ in Bool.random(using: &generator) }
        #expect(tally.count == known.count)
        #expect(tally.missing(from: ConfirmedMarkers.set(listed.sorted())) == known.count - listed.count)
        let notes = [ConfirmedMarkers.note: tally.bytes]
        #expect(ConfirmedMarkers(notes, session: "S-1", count: 1000) == tally)
        #expect(ConfirmedMarkers(notes, session: "s-1", count: 1000).count == known.count)
        #expect(ConfirmedMarkers(notes, session: "S-2", count: 1000).count == 0)
    }

    @Test(arguments: [
        ("", 0), ("S", 0), ("S 0-9", 10), ("S 0-9 10-10 20-29", 21), ("S 5-4 x-1 3 1-2-3 0-0", 1), ("S 90-100", 0),
        ("T 0-9", 0),
    ]) func `a note that nobody can have written is nothing`(_ text: String, _ count: Int) {
        #expect(ConfirmedMarkers([ConfirmedMarkers.note: Array(text.utf8)], session: "S", count: 100).count == count)
    }
}
