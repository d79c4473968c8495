import Foundation
import InletCore
import InletLinux
import InletSandbox
import InletTestSupport
import InletTransfer
import SystemPackage
import Testing

@testable import InletPipelines

/// Models, scans and pictures that become fields of their space.
@Suite(.timeLimit(.minutes(15))) struct RoboscopeRegistrationTests {
    @Test func `a stored model is registered in a new space of its folder's name`() async throws {
        try await withRoboscope { place in
            let order = try place.order(
                "atrium/model.glb", stored: "https://cdn.example/m.glb", fields: ["name": "The atrium"])
            let proof = try await place.deliver(order)
            let space = try place.space("atrium")
            #expect(space.modelGLBURL == "https://cdn.example/m.glb" && space.name == "The atrium")
            #expect(space.modelUSDCURL == nil && space.previewURL == nil && space.scanURL == nil && space.changes == 1)
            #expect(proof.key == order.key && proof.method == .registered && proof.size == order.source.size)
            #expect(proof.url == "https://cdn.example/m.glb")
            #expect(proof.details?["space_id"] == space.id && proof.details?["space_key"] == "atrium")
            #expect(proof.details?["model_glb_url"] == "https://cdn.example/m.glb")
            #expect(proof.details?.keys.contains { $0.hasPrefix("previous_") } == false)
        }
    }

    @Test func `a model and its picture go in one PATCH, and only what differs is written`() async throws {
        try await withRoboscope { place in
            place.sandbox.addSpace(key: "atrium")
            let first = try place.order(
                "atrium/a.usdz", stored: "https://cdn.example/1",
                companions: [("atrium/a.png", "https://cdn.example/p")])
            _ = try await place.deliver(first)
            var space = try place.space("atrium")
            #expect(space.modelUSDCURL == "https://cdn.example/1" && space.previewURL == "https://cdn.example/p")
            #expect(space.changes == 1)
            _ = try await place.deliver(first)
            #expect(try place.space("atrium").changes == 1)
            let second = try place.order(
                "atrium/a.usdz", stored: "https://cdn.example/2",
                companions: [("atrium/a.png", "https://cdn.example/p")])
            let proof = try await place.deliver(second)
            space = try place.space("atrium")
            #expect(space.modelUSDCURL == "https://cdn.example/2" && space.changes == 2)
            #expect(proof.details?["previous_model_usdc_url"] == "https://cdn.example/1")
            #expect(proof.details?["previous_preview_url"] == nil)
            #expect(place.count(.createSpace) == 0)
        }
    }

    @Test func `scans and pictures have fields of their own`() async throws {
        try await withRoboscope { place in
            for (name, url) in [("atrium/scans/s.obj", "u:s"), ("atrium/preview.png", "u:p"), ("atrium/m.glb", "u:m")] {
                _ = try await place.deliver(try place.order(FilePath(name), stored: url))
            }
            let space = try place.space("atrium")
            #expect(space.scanURL == "u:s" && space.previewURL == "u:p" && space.modelGLBURL == "u:m")
            #expect(place.count(.createSpace) == 1 && space.changes == 3)
        }
    }

    @Test func `files of one new space that come together make one space`() async throws {
        try await withRoboscope(faults: RoboscopeFault(.delay(.milliseconds(30)), at: .createSpace)) { place in
            let orders = try (0..<8).map { try place.order(FilePath("hall/\($0).glb"), stored: "u:\($0)") }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for order in orders { group.addTask { _ = try await place.deliver(order) } }
                try await group.waitForAll()
            }
            #expect(place.sandbox.spaces().count == 1 && place.count(.createSpace) == 1)
        }
    }

    @Test func `a lost answer to a new space or to a change is no second one`() async throws {
        try await withRoboscope(
            faults: RoboscopeFault(.loseAnswer, at: .createSpace), RoboscopeFault(.loseAnswer, at: .updateSpace)
        ) { place in
            let notes = Notes()
            let proof = try await place.deliver(try place.order("atrium/m.glb", stored: "u:1"), notes)
            #expect(try place.space("atrium").modelGLBURL == "u:1")
            #expect(place.count(.createSpace) == 1 && place.count(.updateSpace) == 1)
            #expect(proof.details?["previous_model_glb_url"] == nil)
            #expect(notes.entries[CheckpointName.mayBeVisible] != nil)
        }
    }

    @Test func `the URL from before stays known when the answer is lost`() async throws {
        try await withRoboscope { place in
            _ = try await place.deliver(try place.order("atrium/m.glb", stored: "u:old"))
            place.sandbox.faults.add(RoboscopeFault(.loseAnswer, at: .updateSpace))
            let proof = try await place.deliver(try place.order("atrium/m.glb", stored: "u:new"))
            #expect(proof.details?["previous_model_glb_url"] == "u:old")
            #expect(try place.space("atrium").modelGLBURL == "u:new" && place.count(.updateSpace) == 2)
        }
    }

    @Test func `two spaces of one key are left to a person`() async throws {
        try await withRoboscope { place in
            place.sandbox.addSpace(key: "atrium")
            place.sandbox.addSpace(key: "atrium")
            expectError(
                try await place.failure(try place.order("atrium/m.glb", stored: "u:1")), .giveUp, code: .conflict)
            #expect(place.writes == 0)
        }
    }

    @Test func `without a URL or a space nothing is asked of the server`() async throws {
        try await withRoboscope { place in
            let bare = try place.order("atrium/m.glb")
            #expect(try await place.failure(bare)?.reason.contains("public_url") == true)
            var homeless = try place.order("m.glb", stored: "u:1")
            homeless.fields["space"] = ""
            let error = try await place.failure(homeless)
            #expect(error?.verdict == .giveUp && error?.reason.contains("no space is named") == true)
            var odd = try place.order("atrium/m.glb", stored: "u:1")
            odd.fields["role"] = "marker"
            #expect(try await place.failure(odd)?.reason.contains("did you mean 'markers'?") == true)
            #expect(place.requests == 0)
        }
    }

    @Test func `a source that changed or went is not registered by its attempt`() async throws {
        try await withRoboscope { place in
            let order = try place.order("atrium/m.glb", stored: "u:1")
            try place.root.write(Array("other bytes".utf8), to: "atrium/m.glb")
            #expect(try await place.failure(order)?.verdict == .sourceChanged)
            let attempt = Notes().attempt(isStopping: { true })
            #expect(
                try await place.failure(try place.order("atrium/m.glb", stored: "u:1"), attempt)?.verdict == .cancelled)
            #expect(place.writes == 0)
        }
    }

    @Test func `what is stored is registered although its file is gone; markers are not`() async throws {
        try await withRoboscope { place in
            let order = try place.order("atrium/m.glb", stored: "u:1")
            let path = place.root.path.pushing(order.path)
            try FileManager.default.removeItem(atPath: path.string)
            let proof = try #require(try await place.pipeline.conclude(path, order, Notes().attempt())).proof()
            #expect(proof.content == nil && proof.details?["model_glb_url"] == "u:1")
            #expect(try place.space("atrium").modelGLBURL == "u:1")
            let markers = try place.order("atrium/markers.json", markerList(1))
            #expect(try await place.pipeline.conclude(path, markers, Notes().attempt()) == nil)
            let unstored = try place.order("atrium/n.glb")
            #expect(try await place.pipeline.conclude(path, unstored, Notes().attempt()) == nil)
        }
    }

    @Test func `a wrong token pauses the destination, and is not told`() async throws {
        try await withRoboscope(settings: ["token": .secret(Secret("wrong-canary"))]) { place in
            let error = try await place.failure(try place.order("atrium/m.glb", stored: "u:1"))
            #expect(error?.verdict == .credentials && error?.reason.contains("canary") == false)
            await #expect(throws: DeliveryError.self) { try await place.pipeline.probe() }
        }
        try await withRoboscope { place in
            let said = try await place.pipeline.probe()
            #expect(said.contains("takes this token"))
            #expect(place.writes == 0)
        }
    }

    @Test func `an address without an API is an outage, not the file's fault`() async throws {
        try await withRoboscope(faults: RoboscopeFault(.status(404), at: .listSpaces, times: nil)) { place in
            let error = try await place.failure(try place.order("atrium/m.glb", stored: "u:1"))
            #expect(error?.verdict == .outage(after: nil) && error?.reason.contains("/api/v1") == true)
        }
    }

    @Test(arguments: [FaultAction.garbage, .html, .endlessAnswer, .reset(afterBytes: 0), .status(503, retryAfter: 3)])
    func `a server that speaks nonsense makes nothing fail for good`(_ action: FaultAction) async throws {
        try await withRoboscope(faults: RoboscopeFault(action, at: .listSpaces)) { place in
            let order = try place.order("atrium/m.glb", stored: "u:1")
            let error = try await place.failure(order)
            #expect(error != nil && error?.verdict != .giveUp)
            _ = try await place.deliver(order)
            #expect(try place.space("atrium").modelGLBURL == "u:1")
        }
    }

    @Test func `nothing is taken back`() async throws {
        try await withRoboscope { place in
            let order = try place.order("atrium/m.glb", stored: "u:1")
            let notes = Notes()
            _ = try await place.deliver(order, notes)
            try await place.pipeline.abandon(order, checkpoint: notes.entries)
            #expect(try place.space("atrium").modelGLBURL == "u:1")
        }
    }

    @Test func `a destination says what it needs of others`() async throws {
        try await withRoboscope { place in
            let storage = try #require(place.destination.storage)
            #expect(storage.destination == "spiral" && place.destination.closesBatches)
            #expect(storage.isNeeded("a/m.glb", [:]) && storage.isNeeded("a/clip.mp4", [:]))
            #expect(!storage.isNeeded("a/markers.json", [:]))
            #expect(storage.isNeeded("a/markers.json", ["role": "file"]))
            #expect(!storage.isNeeded("a/cracks.json", ["role": "markers"]))
            #expect(!storage.isNeeded("a/markers.json", ["role": "nonsense"]))
            #expect(!place.destination.takesSidecars && place.destination.fields["space"] != nil)
        }
    }
}

/// What a `type: roboscope` section may say, what a file is, and what its fields mean.
struct RoboscopeTableTests {
    private static func settings(_ values: [String: ConfigValue?]) throws(SettingFault) -> RoboscopeSettings {
        let usual: [String: ConfigValue?] = [
            "url": .string("https://robo.example/api/v1"), "storage": .string("spiral"),
        ]
        return try RoboscopeSettings(section(usual.merging(values) { $1 }.compactMapValues(\.self)))
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
        ("role", "model", "not a glb, usdc or usdz"),
    ]) func `a wrong field is named`(_ field: String, _ value: String, _ reason: String) {
        let fault = #expect(throws: SettingFault.self) { try RoboscopeFields([field: value], path: "card/clip.mp4") }
        #expect(fault?.key == field && fault?.message.contains(reason) == true, "\(String(describing: fault))")
    }

    // MARK: - Registrations

    private static func order(_ path: FilePath, _ upstream: [(FilePath, String?)]) -> DeliveryOrder {
        var order = DeliveryOrder(
            id: 1, destination: "spaces", key: "k", mediaType: "x/y", fields: [:],
            source: FileIdentity(size: 1, modified: 0, changed: 0, inode: 1, device: 1), path: path, root: "/r")
        order.upstream = upstream.map { path, url in
            UpstreamDelivery(
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

    @Test(arguments: answers)
    func `every status has one meaning`(_ status: Int, _ verdict: DeliveryError.Verdict, _ code: ErrorCode) throws {
        var response = HTTPResponse(
            status: status, headers: [("Retry-After", "7")], body: Array("no: Bearer robo-canary-9917".utf8))
        let url = try HTTPURL("https://h.example", rules: .configured(allowHTTP: false))
        response.sentCredentials = SentCredentials(
            HTTPRequest("GET", url, headers: [("Authorization", "Bearer robo-canary-9917")]))
        let error = RoboscopeAPI.error(response, "creating")
        #expect(error.verdict == verdict && error.code == code)
        #expect(!error.reason.contains("canary"))
    }

    @Test func `a list is bare or in an object, and nothing else`() throws {
        func list(_ text: String) throws -> Int {
            try RoboscopeAPI.list(HTTPResponse(status: 200, body: Array(text.utf8)), "listing").count
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
        #expect(RoboscopeAPI.areSameID(id, id.lowercased()))
        #expect(RoboscopeAPI.idText("nas.local/ä b") == "nas-local---b")
    }
}
