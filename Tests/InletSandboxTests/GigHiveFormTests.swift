import Foundation
import InletCore
import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

@Suite struct GigHiveFormTests {
    @Test(arguments: ["/api/uploads.php", "/api/uploads", "/api/media-files"])
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

    @Test(arguments: files)
    func `a file is judged by type, extension and part`(
        _ name: String, _ type: String, _ media: Data, _ part: String, _ words: String
    ) async throws {
        try await withGigHive { _, client async throws in
            let answer = try await client.upload(media, name: name, type: type, part: part)
            #expect(answer.words.hasPrefix(words))
        }
    }

    @Test func `what is no form is refused by the firewall on two paths of three`() async throws {
        try await withGigHive { sandbox, client async throws in
            for path in ["/api/uploads.php", "/api/media-files"] {
                let answer = try await client.json(path, ["label": "x"])
                #expect(answer.status == 415 && answer.headers["content-type"]?.hasPrefix("text/html") == true)
            }
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

    @Test func `a client that takes pages gets pages`() async throws {
        try await withGigHive { _, client async throws in
            let accept = ["Accept": "application/json, text/html"]
            let answer = try await client.upload(clip(), headers: accept)
            #expect(answer.status == 201 && answer.headers["content-type"]?.hasPrefix("text/html") == true)
            #expect(answer.text.contains("<pre>{&quot;") && answer.text.contains("delete_token"))
        }
    }
}
