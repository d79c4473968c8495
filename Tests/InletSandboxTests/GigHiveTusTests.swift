import Foundation
import InletCore
import InletSandbox
import InletTestSupport
import Synchronization
import SystemPackage
import Testing

@Suite struct GigHiveTusTests {
    private static let media = clip(5000)

    @Test func `an upload in pieces becomes an asset when it is finalized`() async throws {
        try await withGigHive { sandbox, client async throws in
            let created = try await client.create(
                Self.media.count, metadata: ["filename": "Clip.MOV", "label": "Meta"])
            let url = try #require(created.headers["location"])
            #expect(created.status == 201 && url.hasPrefix(client.http.origin + "/files/") && created.body.isEmpty)
            #expect(try await client.offset(of: url) == "0")
            let first = try await client.patch(url, at: 0, Self.media.prefix(2000))
            #expect(first.status == 204 && first.headers["upload-offset"] == "2000")
            #expect(try await client.patch(url, at: 2000, Self.media.dropFirst(2000)).status == 204)
            let head = try await client.send("HEAD", url, headers: GigHiveClient.tus)
            #expect(
                head.headers["upload-offset"] == String(Self.media.count) && head.headers["cache-control"] == "no-store"
            )
            #expect(head.headers["upload-metadata"]?.contains("label TWV0YQ==") == true && head.body.isEmpty)
            #expect(try await client.patch(url, at: Self.media.count, Data()).status == 204)
            let answer = try await client.finalize(url, fields: ["event_date": "2026-01-02", "label": " "])
            #expect(answer.status == 201 && answer.json["checksum_sha256"] as? String == sha256(Self.media))
            #expect(answer.json["label"] as? String == "Meta" && answer.json["mime_type"] as? String == "video/mp4")
            #expect(answer.json["file_name"] as? String == sha256(Self.media) + ".mov")
            let asset = try #require(sandbox.assets().first)
            #expect(try content(of: asset.path) == Self.media)
            #expect(sandbox.openUploads().isEmpty)
        }
    }

    @Test func `finalize again gives the same answer without the token`() async throws {
        let folder = try TemporaryDirectory()
        let kept = Mutex<(url: String, text: String)>(("", ""))
        try await withGigHive(directory: folder.path) { sandbox, client async throws in
            let url = try await client.sent(Self.media)
            let first = try await client.finalize(url)
            #expect(first.status == 201 && first.json["delete_token"] != nil)
            let second = try await client.finalize(url)
            #expect(second.status == 201 && second.json["delete_token"] == nil)
            #expect(second.json["asset_id"] as? Int == first.json["asset_id"] as? Int)
            for method in ["HEAD", "DELETE"] {
                #expect(try await client.send(method, url, headers: GigHiveClient.tus).status == 404)
            }
            kept.withLock { $0 = (url, second.text) }
        }
        let (url, text) = kept.withLock { $0 }
        try await withGigHive(directory: folder.path) { _, client async throws in
            #expect(try await client.finalize(url).text == text)
        }
    }

    @Test func `calls that are not right are refused in the words of tus`() async throws {
        try await withGigHive { _, client async throws in
            #expect(try await client.send("POST", "/files/").text.hasPrefix("ERR_UNSUPPORTED_VERSION: "))
            #expect(try await client.send("POST", "/files").status == 404)
            let noLength = try await client.send("POST", "/files/", headers: GigHiveClient.tus)
            #expect(noLength.status == 400 && noLength.text.hasPrefix("ERR_INVALID_UPLOAD_LENGTH: "))
            let created = try await client.create(10)
            let url = try #require(created.headers["location"])
            let mismatch = try await client.patch(url, at: 3, Data("x".utf8))
            #expect(mismatch.status == 409 && mismatch.text.hasPrefix("ERR_MISMATCHED_OFFSET: "))
            let type = try await client.send("PATCH", url, Data("x".utf8), headers: GigHiveClient.tus)
            #expect(type.status == 400 && type.text.hasPrefix("ERR_INVALID_CONTENT_TYPE: "))
            let long = try await client.patch(url, at: 0, Data(count: 11))
            #expect(long.status == 413 && long.text.hasPrefix("ERR_UPLOAD_SIZE_EXCEEDED: "))
            #expect(try await client.send("PUT", url).status == 405)
            #expect(try await client.send("DELETE", url, headers: GigHiveClient.tus).status == 204)
            let gone = try await client.patch(url, at: 0, Data("x".utf8))
            #expect(gone.status == 404 && gone.text.hasPrefix("ERR_UPLOAD_NOT_FOUND: "))
            let options = try await client.send("OPTIONS", "/files/")
            #expect(options.status == 200 && options.headers["tus-version"] == "1.0.0")
            #expect(options.headers["tus-extension"]?.contains("termination") == true)
        }
    }

    @Test(arguments: [true, false])
    func `a cut PATCH counts only where no firewall holds it back`(_ holdsBack: Bool) async throws {
        var rules = GigHiveClient.rules
        rules.holdsBackPatches = holdsBack
        try await withGigHive(rules: rules) { sandbox, client async throws in
            let url = try #require(try await client.create(900_000).headers["location"])
            #expect(try await client.patch(url, at: 0, Data(count: 100)).status == 204)
            sandbox.faults.add(GigHiveFault(.reset(afterBytes: 1), at: .tusPatch))
            let folder = try TemporaryDirectory()
            let file = try folder.write([UInt8](repeating: 0, count: 899_900), to: "chunk")
            let fields = GigHiveClient.tus.merging(client.authorization) { $1 }.flatMap {
                ["-H", "\($0.key): \($0.value)"]
            }
            let status = try await SandboxClient.curl(
                ["-X", "PATCH", "-H", "Upload-Offset: 100", "-H", "Content-Type: application/offset+octet-stream"]
                    + fields + ["-m", "120", "--data-binary", "@\(file.string)", url])
            #expect([52, 55, 56].contains(status))
            // The server may still be at what it got when the client has seen the reset.
            try await eventually("what arrived counts") {
                guard let offset = try await client.offset(of: url).flatMap({ Int($0) }) else { return false }
                return holdsBack ? offset == 100 : 100 < offset && offset <= 900_000
            }
        }
    }

    @Test func `an upload outlives the sandbox at its offset`() async throws {
        let folder = try TemporaryDirectory()
        let path = Mutex("")
        try await withGigHive(directory: folder.path) { _, client async throws in
            let url = try #require(try await client.create(Self.media.count).headers["location"])
            _ = try await client.patch(url, at: 0, Self.media.prefix(1234))
            path.withLock { $0 = String(url.dropFirst(client.http.origin.count)) }
        }
        let url = path.withLock { $0 }
        try await withGigHive(directory: folder.path) { sandbox, client async throws in
            #expect(sandbox.openUploads().count == 1)
            #expect(try await client.offset(of: url) == "1234")
            #expect(try await client.patch(url, at: 1234, Self.media.dropFirst(1234)).status == 204)
            #expect(try await client.finalize(url).status == 201)
        }
        try await withGigHive(directory: folder.path) { sandbox, client async throws in
            #expect(try content(of: try #require(sandbox.assets().first).path) == Self.media)
            #expect(try await client.upload(Self.media).status == 409)
        }
    }

    @Test func `finalize says what it misses`() async throws {
        try await withGigHive { sandbox, client async throws in
            #expect(try await client.finalize("none").words.hasPrefix("500 Upload not found: "))
            #expect(try await client.finalize("a.b").words == "400 Missing or invalid upload_id")
            let part = try #require(try await client.create(10).headers["location"])
            #expect(try await client.finalize(part).words.contains("post-finish hook output has not been written yet"))
            let url = try await client.sent(Self.media)
            sandbox.rules.hookDelay = .seconds(3600)
            #expect(try await client.finalize(url).words.contains("post-finish hook output has not been written yet"))
            sandbox.rules.hookDelay = .zero
            #expect(try await client.finalize(url, fields: [:]).words == "400 Label is required")
            sandbox.rules.maximumBytes = 10
            #expect(try await client.finalize(url).words == "400 File too large (exceeds application limit)")
            sandbox.rules.maximumBytes = 1 << 20
            #expect(try await client.finalize(url).status == 201)
            let empty = try #require(try await client.create(0).headers["location"])
            #expect(try await client.finalize(empty).words == "500 Uploaded file is empty")
            let text = try await client.sent(Data("hello".utf8), metadata: ["filename": "a.txt"])
            #expect(try await client.finalize(text).words == "400 Unsupported media type")
            #expect(sandbox.openUploads().count == 3)
        }
    }

    @Test func `a duplicate is thrown away, and the same bytes in another event stay behind`() async throws {
        try await withGigHive { sandbox, client async throws in
            #expect(try await client.upload(Self.media).status == 201)
            let url = try await client.sent(Self.media)
            let answer = try await client.finalize(url)
            #expect(answer.status == 409 && answer.json["checksum_sha256"] as? String == sha256(Self.media))
            #expect(try await client.finalize(url).words == "500 Upload data missing on disk")
            let other = try await client.sent(Self.media)
            let fields = GigHiveClient.fields.merging(["org_name": "Other"]) { $1 }
            let filed = try await client.finalize(other, fields: fields)
            #expect(filed.status == 201 && filed.json["delete_token"] == nil)
            #expect(sandbox.openUploads().count == 1)
        }
    }

    @Test func `of two who finalize at once one fails, and is answered later`() async throws {
        var rules = GigHiveClient.rules
        rules.finalizeTime = .milliseconds(400)
        try await withGigHive(rules: rules) { _, client async throws in
            let url = try await client.sent(Self.media)
            let words = try await withThrowingTaskGroup(of: String.self) { group in
                for _ in 0..<2 { group.addTask { try await client.finalize(url).words } }
                return try await group.reduce(into: []) { $0.append($1) }.sorted()
            }
            #expect(words == ["201 ", "500 Failed to move file (rename)"])
            #expect(try await client.finalize(url).status == 201)
        }
    }
}
