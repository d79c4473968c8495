import InletCore
import InletTransfer
import SystemPackage
import Testing

@testable import InletPipelines

/// What a `type: roboscope` section may say, what a file is, and what its fields mean.
struct RoboscopeTableTests {
    private static func settings(_ values: [String: ConfigValue?]) throws(SettingFault) -> RoboscopeSettings {
        let usual: [String: ConfigValue?] = [
            "url": .string("https://robo.example/api/v1"), "storage": .string("spiral"),
        ]
        return try RoboscopeSettings(
            ConfigSection(
                values: usual.merging(values) { $1 }.compactMapValues(\.self), positions: [:],
                position: SourcePosition(line: 1, column: 1)))
    }

    @Test func `a destination needs an address and a storage`() throws {
        let settings = try Self.settings([:])
        #expect(settings.storage == "spiral" && settings.chunk == 100 && settings.presence && settings.locks)
        #expect(settings.token == nil && settings.connections == 8 && settings.trust.caFile == nil)
        let faults: [(String, [String: ConfigValue?])] = [
            ("url", ["url": nil]), ("url", ["url": .string("http://robo.example/api/v1")]),
            ("url", ["url": .string("robo.example")]), ("storage", ["storage": nil]),
            ("storage", ["storage": .string("")]), ("token", ["token": .secret(Secret("a\r\nb"))]),
        ]
        for (key, values) in faults {
            let fault = #expect(throws: SettingFault.self) { try Self.settings(values) }
            #expect(fault?.key == key)
        }
        #expect(try Self.settings(["token": .secret(Secret(""))]).token == nil)
        let http: [String: ConfigValue?] = ["url": .string("http://robo.example"), "allow_http": .boolean(true)]
        #expect(try Self.settings(http).url.redacted == "http://robo.example/")
    }

    static let roles: [(FilePath, RoboscopeRole, Bool)] = [
        ("atrium/model.glb", .model, true), ("atrium/MODEL.GLB", .model, true), ("atrium/a.usdz", .model, true),
        ("atrium/a.usdc", .model, true), ("atrium/scans/a.usdc", .scan, true), ("atrium/Scans/x/a.obj", .scan, true),
        ("scans/a.ply", .scan, true), ("atrium/a.ply", .file, true), ("scans/a.glb", .model, true),
        ("atrium/markers.json", .markers, false), ("atrium/Markers.YAML", .markers, false),
        ("markers.yml", .markers, false), ("atrium/my-markers.json", .file, true),
        ("card/session.yaml", .session, false), ("card/session.json", .session, false),
        ("card/session.txt", .file, true), ("atrium/preview.png", .preview, true), ("atrium/a.png", .file, true),
        ("card/clip.mp4", .file, true), ("card/noending", .file, true),
    ]

    @Test(arguments: roles) func `a name tells what a file is`(
        _ path: FilePath, _ role: RoboscopeRole, _ needsStorage: Bool
    ) {
        #expect(RoboscopeRole(path) == role)
        #expect(RoboscopeRole(path).needsStorage == needsStorage)
    }

    @Test func `fields are read with their defaults`() throws {
        let none = try RoboscopeFields([:], path: "a/b.glb")
        #expect(
            none.space == nil && none.sessionType == "inspection" && none.sessionStatus == nil && none.role == .model)
        let all = try RoboscopeFields(
            [
                "space": " atrium ", "name": "Atrium", "session_type": "Repair", "session_status": "archived",
                "role": "scan", "label": "of another destination",
            ], path: "a/b.glb")
        #expect(all.space == "atrium" && all.name == "Atrium" && all.sessionType == "repair")
        #expect(all.sessionStatus == "archived" && all.role == .scan)
        #expect(try RoboscopeFields(["space": "", "role": "auto"], path: "scans/b.obj").role == .scan)
    }

    @Test(arguments: [
        ("session_type", "inspecton", "did you mean 'inspection'?"), ("session_status", "finished", "is not one of"),
        ("role", "modell", "did you mean 'model'?"),
        ("space", String(repeating: "x", count: 201), "has 201 characters"),
        ("role", "model", "none of glb, usdc and usdz"),
    ]) func `a wrong field is named`(_ field: String, _ value: String, _ reason: String) {
        let fault = #expect(throws: SettingFault.self) {
            try RoboscopeFields([field: value], path: "card/clip.mp4")
        }
        #expect(fault?.key == field && fault?.message.contains(reason) == true, "\(String(describing: fault))")
    }

    // MARK: - Registrations

    private static func order(_ path: FilePath, _ upstream: [(FilePath, String?)]) -> DeliveryOrder {
        var order = DeliveryOrder(
            id: 1, destination: "spaces", key: "k", mediaType: "x/y", fields: [:],
            source: FileIdentity(size: 1, modified: 0, changed: 0, inode: 1, device: 1), path: path, root: "/r")
        order.upstream = upstream.map { path, url in
            Upstream(
                destination: "spiral", path: path, mediaType: "x/y",
                proof: Proof(key: "k", size: 1, method: .size, url: url))
        }
        return order
    }

    static let wanted: [(RoboscopeRole, FilePath, [(FilePath, String?)], [String: String]?)] = [
        (.model, "a/m.glb", [("a/m.glb", "u1")], ["model_glb_url": "u1"]),
        (.model, "a/m.usdz", [("a/m.usdz", "u1")], ["model_usdc_url": "u1"]),
        (
            .model, "a/m.usdc", [("a/m.usdc", "u1"), ("a/m.png", "u2")],
            ["model_usdc_url": "u1", "preview_url": "u2"]
        ),
        (.model, "a/m.glb", [("a/m.jpg", "u2"), ("a/m.glb", "u1")], ["model_glb_url": "u1", "preview_url": "u2"]),
        (.model, "a/m.glb", [("a/m.glb", "u1"), ("a/m.txt", "u2")], ["model_glb_url": "u1"]),
        (.model, "a/m.glb", [("a/m.glb", "u1"), ("a/m.png", nil)], ["model_glb_url": "u1"]),
        (.scan, "a/scans/m.obj", [("a/scans/m.obj", "u1"), ("a/scans/m.png", "u2")], ["scan_url": "u1"]),
        (.preview, "a/preview.png", [("a/preview.png", "u1")], ["preview_url": "u1"]),
        (.file, "a/clip.mp4", [("a/clip.mp4", "u1")], [:]), (.model, "a/m.glb", [], nil),
        (.model, "a/m.glb", [("a/m.glb", nil)], nil), (.model, "a/m.glb", [("a/m.glb", "")], nil),
    ]

    @Test func `a file and the picture beside it become fields of a space`() {
        for (role, path, upstream, fields) in Self.wanted {
            do throws(DeliveryError) {
                let found = try RoboscopeJob.wanted(role, Self.order(path, upstream), storage: "spiral")
                #expect(found == fields)
            } catch {
                #expect(fields == nil)
                #expect(error.verdict == .giveUp && error.reason.contains("public_url"))
            }
        }
    }

    @Test func `URLs that are about to go are known`() {
        let space = RoboscopeObject(fields: [
            "model_glb_url": .string("old"), "scan_url": .null, "preview_url": .string("same"), "x": .string("y"),
        ])
        let wanted = ["model_glb_url": "new", "scan_url": "new", "preview_url": "same"]
        #expect(RoboscopeJob.replaced(in: space, by: wanted) == ["model_glb_url": "old"])
    }

    // MARK: - Answers

    static let answers: [(Int, DeliveryError.Verdict, ErrorCode)] = [
        (400, .giveUp, .badRequest), (422, .giveUp, .badRequest), (401, .credentials, .unauthorized),
        (403, .credentials, .unauthorized), (404, .giveUp, .notFound), (405, .giveUp, .notFound),
        (409, .giveUp, .conflict), (413, .giveUp, .tooLarge), (429, .retry(after: .seconds(7)), .throttled),
        (500, .retry(after: .seconds(7)), .serverError), (502, .outage(after: .seconds(7)), .serverError),
        (503, .outage(after: .seconds(7)), .serverError), (302, .giveUp, .redirected), (501, .giveUp, .notFound),
    ]

    @Test(arguments: answers) func `every status has one meaning`(
        _ status: Int, _ verdict: DeliveryError.Verdict, _ code: ErrorCode
    ) throws {
        var response = HTTPResponse(
            status: status, headers: [("Retry-After", "7")], body: Array("no: Bearer robo-canary-9917".utf8))
        let url = try HTTPURL("https://h.example", rules: .configured(allowHTTP: false))
        response.sentCredentials = SentCredentials(
            HTTPRequest("GET", url, headers: [("Authorization", "Bearer robo-canary-9917")]))
        let error = RoboscopeAnswer.error(response, "creating")
        #expect(error.verdict == verdict && error.code == code)
        #expect(!error.reason.contains("canary"))
    }

    @Test func `a list is bare or in an object, and nothing else`() throws {
        func list(_ text: String) throws -> Int {
            try RoboscopeAnswer.list(HTTPResponse(status: 200, body: Array(text.utf8)), "listing").count
        }
        #expect(try list("[]") == 0)
        #expect(try list(#"[{"id":"a"},{"id":"b"}]"#) == 2)
        #expect(try list(#"{"total":2,"items":[{"id":"a"},{"id":"b"}],"more":[1]}"#) == 2)
        for text in ["", "{}", "[1]", "<html>", "null", "[{}", #"{"items":3}"#] {
            let error = #expect(throws: DeliveryError.self) { try list(text) }
            #expect(error?.code == .badAnswer)
        }
    }

    @Test func `ids that lead elsewhere are none`() {
        for id in ["", "../x", "a/b", "a?b", "%2e", "a b", String(repeating: "a", count: 65), "ä"] {
            #expect(RoboscopeObject(fields: ["id": .string(id)]).id == "")
        }
        let id = "6F1C9F0E-2A54-4E0B-9B0C-0123456789AB"
        #expect(RoboscopeObject(fields: ["id": .string(id)]).id == id)
        #expect(RoboscopeID.areEqual(id, id.lowercased()))
        #expect(RoboscopeID.cleaned("nas.local/ä b") == "nas-local---b")
    }
}
