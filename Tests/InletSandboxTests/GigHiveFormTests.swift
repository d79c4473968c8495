import Foundation
import InletCore
import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

@Suite struct GigHiveFormTests {
    @Test(arguments: ["/api/uploads.php", "/api/uploads"])
    func `a form becomes an asset of its event`(_ path: String) async throws {
        try await withGigHive { sandbox, client async throws in
            let media = clip()
            let given = [
                "label": " Blue  moon ", "event_date": "2026-01-02", "org_name": " The   Ba\u{0308}nd ",
                "event_type": "wedding", "participants": "Ann, Bo", "keywords": "live", "location": "Hall",
                "rating": "4", "notes": "n",
            ]
            let answer = try await client.upload(media, name: "My \\\"clip\\\".MP4", fields: given, to: path)
            #expect(answer.status == 201 && answer.headers["content-type"] == "application/json")
            #expect(answer.json["checksum_sha256"] as? String == sha256(media))
            #expect(answer.json["file_name"] as? String == sha256(media) + ".mp4")
            #expect(
                answer.json["size_bytes"] as? Int == media.count && answer.json["mime_type"] as? String == "video/mp4")
            #expect((answer.json["delete_token"] as? String)?.count == 64)
            #expect(answer.text.contains("\"duration_seconds\":null"))
            let asset = try #require(sandbox.assets().first)
            #expect(try content(of: asset.path) == media && asset.sha256.hex == sha256(media))
            let entry = try #require(asset.entries.first)
            #expect(entry.label == "Blue  moon" && entry.orgName == "The Bänd" && entry.eventType == "wedding")
            #expect(entry.participants == "Ann, Bo" && entry.keywords == "live" && entry.location == "Hall")
            #expect(entry.rating == 4 && entry.notes == "n" && entry.eventDate == "2026-01-02")
            let read = try await client.send("GET", "/api/uploads/\(asset.id)")
            #expect(read.status == 200 && read.json["checksum_sha256"] as? String == sha256(media))
        }
    }

    @Test func `the same bytes are one asset, and of one event only once`() async throws {
        try await withGigHive { sandbox, client async throws in
            let first = try await client.upload(clip())
            let again = try await client.upload(clip(), fields: GigHiveClient.fields.merging(["label": "x"]) { $1 })
            #expect(again.status == 409 && again.json["checksum_sha256"] as? String == sha256(clip()))
            #expect(again.json["existing_asset_id"] as? Int == first.json["asset_id"] as? Int)
            let other = try await client.upload(
                clip(), fields: GigHiveClient.fields.merging(["event_date": "2026-01-03"]) { $1 })
            #expect(other.status == 201 && other.json["delete_token"] == nil)
            #expect(other.json["asset_id"] as? Int == first.json["asset_id"] as? Int)
            #expect(sandbox.assets().map(\.entries.count) == [2])
        }
    }

    @Test func `fields that are left out get the application's defaults`() async throws {
        try await withGigHive { sandbox, client async throws in
            #expect(try await client.upload(clip(), fields: ["label": "x", "rating": "four"]).status == 201)
            let entry = try #require(sandbox.assets().first?.entries.first)
            #expect(entry.orgName == "Band" && entry.eventType == "band" && entry.rating == nil)
            #expect(entry.eventDate.count == 10)
        }
    }

    /// Fields besides the usual ones, and what the application says.
    static let refusals: [([String: String], String)] = [
        (["label": "  "], "400 Label is required"),
        (["event_date": "2.1.2026"], "400 Invalid event_date format; expected YYYY-MM-DD"),
        (["event_date": ""], "400 Invalid event_date format; expected YYYY-MM-DD"),
        (["event_date": "2026-02-30"], "500 SQLSTATE[22007]"), (["event_date": "2026-13-01"], "500 SQLSTATE[22007]"),
        (["event_type": "party"], "500 SQLSTATE[01000]"), (["rating": "10"], "500 SQLSTATE[22003]"),
        (["org_name": String(repeating: "o", count: 129)], "500 SQLSTATE[22001]"),
        (["location": String(repeating: "l", count: 256)], "500 SQLSTATE[22001]"),
    ]

    @Test(arguments: refusals)
    func `fields over a limit are refused, and nothing is kept`(_ fields: [String: String], _ words: String)
        async throws
    {
        try await withGigHive { sandbox, client async throws in
            let answer = try await client.upload(clip(), fields: GigHiveClient.fields.merging(fields) { $1 })
            #expect(answer.words.hasPrefix(words))
            #expect(answer.json["error"] as? String == (answer.status == 400 ? "Bad Request" : "Server Error"))
            #expect(sandbox.assets().isEmpty)
        }
    }

    @Test func `a label that the database refuses leaves an asset without an event`() async throws {
        try await withGigHive { sandbox, client async throws in
            let long = GigHiveClient.fields.merging(["label": String(repeating: "x", count: 256)]) { $1 }
            #expect(try await client.upload(clip(), fields: long).words.hasPrefix("500 SQLSTATE[22001]"))
            #expect(sandbox.assets().map(\.entries.count) == [0])
            let corrected = try await client.upload(clip())
            #expect(corrected.status == 201 && corrected.json["delete_token"] == nil)
        }
    }

    /// Name, declared type, content, part, and what the application says.
    static let files: [(String, String, Data, String, String)] = [
        ("a.txt", "text/plain", Data("hello".utf8), "file", "400 Unsupported media type"),
        ("fake.mp4", "application/octet-stream", Data("hello".utf8), "file", "201 "),
        ("noextension", "video/mp4", clip(), "file", "201 "),
        ("noextension", "application/octet-stream", clip(), "file", "400 Unsupported media type"),
        ("a.mp4", "video/mp4", Data(), "file", "400 Empty upload"),
        ("a.mp4", "video/mp4", clip(), "file[]", "400 Multiple files not supported yet"),
        ("a.mp4", "video/mp4", clip(), "movie", "413 Upload exceeded server limits"),
    ]

    @Test(arguments: files) func `a file is judged by type, extension and part`(
        _ name: String, _ type: String, _ media: Data, _ part: String, _ words: String
    ) async throws {
        try await withGigHive { _, client async throws in
            let answer = try await client.upload(media, name: name, type: type, part: part)
            #expect(answer.words.hasPrefix(words))
        }
    }

    @Test func `what is no form is refused by the firewall on one path of two`() async throws {
        try await withGigHive { sandbox, client async throws in
            let answer = try await client.json("/api/uploads.php", ["label": "x"])
            #expect(answer.status == 415 && answer.headers["content-type"]?.hasPrefix("text/html") == true)
            #expect(try await client.json("/api/uploads", ["label": "x"]).status == 413)
            #expect(try await client.send("POST", "/api/uploads").words == "400 Missing file field")
            #expect(sandbox.assets().isEmpty)
        }
    }

    @Test(arguments: [
        (GigHiveRules.Firewall.off, 1 << 20, "400 File too large (exceeds application limit)"),
        (.detects, 1 << 20, "500 "),
        (.blocks, 1 << 20, "413 "), (.off, 1_200_000, "413 Upload exceeded server limits"), (.off, 2 << 20, "413 "),
    ])
    func `each layer refuses in its own voice`(
        _ firewall: GigHiveRules.Firewall, _ size: Int, _ words: String
    ) async throws {
        try await withGigHive { sandbox, client async throws in
            sandbox.rules.firewall = firewall
            let answer = try await client.upload(clip(size))
            #expect(answer.words.hasPrefix(words))
            #expect((answer.json["error"] == nil) == words.hasSuffix(" "))
            sandbox.rules = GigHiveRules()
            #expect(try await client.upload(clip(size)).status == 201)
        }
    }

    @Test(arguments: [
        (nil, ""), ("uploader", "wrong"), ("viewer", "canary-viewer"), ("somebody", "canary-admin"),
        ("admin", "canary-uploader"),
    ])
    func `who may not upload gets a page and a realm`(_ user: String?, _ password: String) async throws {
        try await withGigHive { sandbox, client async throws in
            let login = user.map { ["-u", "\($0):\(password)"] } ?? []
            let folder = try TemporaryDirectory()
            let media = try folder.write(clip(), to: "clip.mp4")
            let answer = folder.path.appending("answer")
            let calls = [
                ["-F", "label=x", "-F", "file=@\(media.string)", client.http.origin + "/api/uploads.php"],
                ["-X", "POST", "-H", "Tus-Resumable: 1.0.0", "-H", "Upload-Length: 1", client.http.origin + "/files/"],
                ["-d", "{}", client.http.origin + "/api/uploads/finalize"],
            ]
            for call in calls {
                #expect(try await SandboxClient.curl(["-i", "-m", "120", "-o", answer.string] + login + call) == 0)
                let text = String(decoding: try content(of: answer), as: UTF8.self)
                #expect(text.hasPrefix("HTTP/1.1 401 ") && text.contains("<html>"))
                #expect(text.lowercased().contains("www-authenticate: basic realm=\"gighive upload\""))
            }
            #expect(sandbox.assets().isEmpty)
            let admin = ["-u", "admin:canary-admin", "-o", answer.string]
            #expect(try await SandboxClient.curl(admin + calls[0]) == 0)
            #expect(sandbox.assets().map(\.size) == [Int64(clip().count)])
        }
    }
}

@Suite struct GigHiveOtherTests {
    @Test func `an asset is deleted by its token, once`() async throws {
        try await withGigHive { sandbox, client async throws in
            let answer = try await client.upload(clip())
            let id = try #require(answer.json["asset_id"] as? Int)
            let token = try #require(answer.json["delete_token"] as? String)
            let path = try #require(sandbox.assets().first).path
            func delete(_ body: [String: Any]) async throws -> SandboxClient.Answer {
                try await client.json("/db/delete_media_files.php", body)
            }
            let wrong = try await delete(["asset_id": id, "delete_token": String(token.reversed())])
            #expect(wrong.words == "403 Invalid delete token" && wrong.json["success"] as? Bool == false)
            #expect(try await delete(["file_id": id]).status == 400)
            let done = try await delete(["asset_id": id, "delete_token": token])
            #expect(done.status == 200 && done.json["deleted_count"] as? Int == 1)
            #expect(sandbox.assets().isEmpty && !FileManager.default.fileExists(atPath: path.string))
            #expect(try await delete(["asset_id": id, "delete_token": token]).status == 403)
            let get = try await client.send("GET", "/db/delete_media_files.php")
            #expect(get.status == 405 && get.headers["allow"] == "POST")
        }
    }

    @Test func `the admin deletes many, and is told of those that are not there`() async throws {
        try await withGigHive { sandbox, client async throws in
            var admin = client
            (admin.user, admin.password) = ("admin", "canary-admin")
            var ids: [Int] = []
            for seed in 1...2 {
                ids.append(try await client.upload(clip(seed: UInt64(seed))).json["asset_id"] as? Int ?? 0)
            }
            let answer = try await admin.json("/db/delete_media_files.php", ["asset_ids": ids + [999_999]])
            #expect(answer.status == 200 && answer.json["success"] as? Bool == false)
            #expect(answer.json["deleted_count"] as? Int == 2 && answer.json["error_count"] as? Int == 1)
            #expect(sandbox.assets().isEmpty)
            #expect(try await admin.json("/db/delete_media_files.php", ["asset_ids": []]).status == 400)
        }
    }

    @Test func `a guest's upload goes to the event of the token`() async throws {
        try await withGigHive { sandbox, client async throws in
            var guest = client
            guest.token = "canary-guest"
            let url = try await guest.sent(clip())
            let given: [String: Any] = ["label": "Dance", "event_date": "1999-01-01", "org_name": "Elsewhere"]
            for terms: Any in ["true", 1, false] {
                let answer = try await guest.finalize(url, fields: given.merging(["tos_accepted": terms]) { $1 })
                #expect(answer.words == "400 tos_accepted must be true")
            }
            let answer = try await guest.finalize(url, fields: given.merging(["tos_accepted": true]) { $1 })
            #expect(answer.status == 201 && answer.json["upload_job_id"] is Int)
            #expect((answer.json["status_nonce"] as? String)?.count == 32)
            let entry = try #require(sandbox.assets().first?.entries.first)
            #expect(entry.eventDate == "2026-05-06" && entry.orgName == "Anna & Ben" && entry.label == "Dance")
        }
    }

    @Test(arguments: [
        ("canary-other", 404, "invalid or expired"), (String(repeating: "t", count: 129), 400, "invalid token"),
    ])
    func `a token that is none is refused at finalize`(_ token: String, _ status: Int, _ error: String) async throws {
        try await withGigHive { _, client async throws in
            var guest = client
            guest.token = token
            let url = try await guest.sent(clip())
            let answer = try await guest.finalize(url, fields: ["label": "x", "tos_accepted": true])
            #expect(answer.status == status && answer.json["error"] as? String == error)
            #expect(try await client.send("GET", "/api/upload-token.php?token=\(token)").status == 404)
        }
    }

    @Test func `other paths answer as the real ones do`() async throws {
        try await withGigHive { _, client async throws in
            var nobody = client
            nobody.user = nil
            #expect(try await nobody.send("GET", "/api/upload-token.php?token=canary-guest").status == 200)
            #expect(try await client.send("GET", "/api/uploads/77").status == 404)
            #expect(try await client.send("DELETE", "/api/uploads/77").status == 404)
        }
    }

    /// A fault, where, and the beginning of its answer.
    static let replies: [(FaultReply, GigHiveOperation, String)] = [
        (.gigHive(500, error: "Server error", message: "DB connection failed: \"x\""), .upload, "500 DB connection"),
        (.page(503, "Service Unavailable"), .upload, "503 "), (.page(408, "Request Timeout"), .upload, "408 "),
        (.cloudflareLimit, .upload, "413 "),
        (.tus(423, "ERR_UPLOAD_LOCKED: file currently locked"), .tusCreate, "423 "),
    ]

    @Test(arguments: replies) func `each layer in front can answer in its own voice`(
        _ reply: FaultReply, _ operation: GigHiveOperation, _ words: String
    ) async throws {
        for action in [FaultAction.reply(reply), .earlyReply(reply)] {
            try await withGigHive(faults: GigHiveFault(action, at: operation)) { sandbox, client async throws in
                let answer = operation == .upload ? try await client.upload(clip()) : try await client.create(10)
                #expect(answer.words.hasPrefix(words) && answer.text == reply.body)
                #expect(sandbox.assets().isEmpty && sandbox.faults.injected(at: operation) == 1)
                #expect((answer.headers["cf-ray"] != nil) == (reply == .cloudflareLimit))
            }
        }
    }

    @Test(arguments: [FaultAction.loseAnswer, .replyAfterWork(.page(524, "A timeout occurred"))])
    func `an upload can arrive without its answer`(_ action: FaultAction) async throws {
        try await withGigHive(faults: GigHiveFault(action, at: .finalize)) { sandbox, client async throws in
            let url = try await client.sent(clip())
            let id = url.split(separator: "/").last ?? ""
            let body = #"{"upload_id":"\#(id)","label":"x"}"#
            let fields = client.authorization.flatMap { ["-H", "\($0.key): \($0.value)"] }
            let status = try await SandboxClient.curl(
                ["-m", "120", "-d", body, "-H", "Content-Type: application/json"] + fields
                    + [client.http.origin + "/api/uploads/finalize"])
            #expect(action == .loseAnswer ? [52, 56].contains(status) : status == 0)
            #expect(sandbox.assets().map(\.entries.count) == [1])
            let again = try await client.finalize(url)
            #expect(again.status == 201 && again.json["delete_token"] == nil)
            #expect(sandbox.counts()["finalize"] == 2)
        }
    }
}

/// Runs a GigHive sandbox on a folder of its own (or `directory`) while `body` talks to it over real sockets.
func withGigHive(
    directory: FilePath? = nil, faults: GigHiveFault..., rules: GigHiveRules = GigHiveClient.rules,
    _ body: @Sendable @escaping (GigHiveSandbox, GigHiveClient) async throws -> Void
) async throws {
    let folder = try TemporaryDirectory()
    let passwords = ["admin", "uploader", "viewer"].map { ($0, Secret("canary-" + $0)) }
    let sandbox = try GigHiveSandbox(
        directory: directory ?? folder.path, passwords: Dictionary(uniqueKeysWithValues: passwords), rules: rules,
        faults: FaultPlan(faults))
    try await whileServing({ try await sandbox.run() }) {
        try await body(sandbox, GigHiveClient(http: SandboxClient(port: try await sandbox.port())))
    }
}

/// What a small, honest client of both transports does.
struct GigHiveClient: Sendable {
    typealias Answer = SandboxClient.Answer

    /// Of the real limits and waits only the shape.
    static let rules = GigHiveRules(
        maximumBytes: 1 << 20, formLimit: 2 << 20, hookWait: .milliseconds(20),
        guestTokens: [.init(Secret("canary-guest"), eventDate: "2026-05-06", orgName: "Anna & Ben")])
    static let fields = ["label": "Song one", "event_date": "2026-01-02", "org_name": "The Band"]

    let http: SandboxClient
    var user: String? = "uploader"
    var password = "canary-uploader"
    var token: String?

    var authorization: [String: String] {
        if let token { return ["X-Upload-Token": token] }
        guard let user else { return [:] }
        return ["Authorization": "Basic " + Data("\(user):\(password)".utf8).base64EncodedString()]
    }

    func send(
        _ method: String, _ path: String, _ body: Data? = nil, headers: [String: String] = [:]
    ) async throws -> Answer {
        let fields = authorization.merging(headers) { $1 }
        let url = path.hasPrefix("http") ? path : http.origin + path
        return try await http.send(method, url, body, headers: fields)
    }

    func json(_ path: String, _ body: [String: Any]) async throws -> Answer {
        let data = try JSONSerialization.data(withJSONObject: body)
        return try await send("POST", path, data, headers: ["Content-Type": "application/json"])
    }

    /// One form with a file.
    func upload(
        _ media: Data, name: String = "clip.mp4", type: String = "video/mp4", part: String = "file",
        fields: [String: String] = fields, to path: String = "/api/uploads.php", headers: [String: String] = [:]
    ) async throws -> Answer {
        let boundary = "----inlet\(media.count)"
        var form = Data()
        for (field, value) in fields.sorted(by: { $0.key < $1.key }) {
            form += Data("--\(boundary)\r\nContent-Disposition: form-data; name=\"\(field)\"\r\n\r\n\(value)\r\n".utf8)
        }
        form += Data(
            "--\(boundary)\r\nContent-Disposition: form-data; name=\"\(part)\"; filename=\"\(name)\"\r\n".utf8)
        form += Data("Content-Type: \(type)\r\n\r\n".utf8) + media + Data("\r\n--\(boundary)--\r\n".utf8)
        let own = ["Content-Type": "multipart/form-data; boundary=\(boundary)"]
        return try await send("POST", path, form, headers: own.merging(headers) { $1 })
    }

    // MARK: tus

    static let tus = ["Tus-Resumable": "1.0.0"]

    func create(_ length: Int, metadata: [String: String] = ["filename": "clip.mp4"]) async throws -> Answer {
        let pairs = metadata.map { "\($0.key) \(Data($0.value.utf8).base64EncodedString())" }
        let own = ["Upload-Length": String(length), "Upload-Metadata": pairs.joined(separator: ",")]
        return try await send("POST", "/files/", headers: Self.tus.merging(own) { $1 })
    }

    func patch(_ url: String, at offset: Int, _ body: Data) async throws -> Answer {
        let own = ["Upload-Offset": String(offset), "Content-Type": "application/offset+octet-stream"]
        return try await send("PATCH", url, body, headers: Self.tus.merging(own) { $1 })
    }

    func offset(of url: String) async throws -> String? {
        try await send("HEAD", url, headers: Self.tus).headers["upload-offset"]
    }

    /// Sends all of `media` in one piece; returns the address of the upload.
    func sent(_ media: Data, metadata: [String: String] = ["filename": "clip.mp4"]) async throws -> String {
        let created = try await create(media.count, metadata: metadata)
        guard let url = created.headers["location"] else { throw Refused(answer: created.text) }
        let answer = try await patch(url, at: 0, media)
        guard answer.status == 204 else { throw Refused(answer: answer.text) }
        return url
    }

    func finalize(_ url: String, fields: [String: Any] = fields) async throws -> Answer {
        let id = url.split(separator: "/").last.map(String.init) ?? ""
        return try await json("/api/uploads/finalize", fields.merging(["upload_id": id]) { $1 })
    }
}

extension SandboxClient.Answer {
    /// The status and the application's words, e.g. `400 Label is required`.
    var words: String { "\(status) \(json["message"] as? String ?? "")" }
}

/// The beginning of an MP4 file, then `count` bytes that differ from seed to seed.
func clip(_ count: Int = 1000, seed: UInt64 = 1) -> Data {
    Data([0, 0, 0, 24]) + Data("ftypmp42\0\0\0\0mp42isom".utf8) + noise(count, seed: seed)
}
