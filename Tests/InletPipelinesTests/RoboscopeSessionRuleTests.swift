import InletCore
import InletTestSupport
import SystemPackage
import Testing

@testable import InletPipelines

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
        id: 7, name: "card", role: .closing, files: 3, firstCaptured: first, lastCaptured: last)

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
