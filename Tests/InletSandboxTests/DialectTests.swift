import Foundation
import InletCore
import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

@Suite struct DialectTests {
    private static let parts = [noise(5 << 20, seed: 1), noise(5 << 20, seed: 2), noise(1234, seed: 3)]

    @Test(arguments: Dialect.allCases)
    func `an upload arrives byte for byte`(_ dialect: Dialect) async throws {
        try await withSandbox { sandbox, client async throws in
            let answer = try await client.upload(dialect, key: "videos/ä b/clip+1.mov", Self.parts)
            #expect(answer.status == 200)
            let url = try #require(answer.json[dialect == .v1 ? "url" : "object_url"] as? String)
            let whole = Self.parts.reduce(Data(), +)
            let object = try #require(sandbox.objects().first)
            #expect(try content(of: object.path) == whole)
            #expect(object.md5.hex == md5(whole) && object.sha256.hex == sha256(whole))
            #expect(object.size == Int64(whole.count) && object.versions == 1)
            let sums = Self.parts.reduce(Data()) { $0 + Data(MD5.bytes(of: $1)) }
            #expect(object.etag == "\"\(md5(sums))-3\"")
            #expect(try await client.send("GET", url).body == whole)
            #expect(sandbox.openUploads().isEmpty)
            #expect(sandbox.counts()["part"] == 3 && sandbox.traffic.partOrder == [1, 2, 3])
            #expect(sandbox.traffic.bytesReceived > Int64(whole.count))
        }
    }

    @Test func `a completed upload is gone`() async throws {
        try await withSandbox { _, client async throws in
            let upload = try await client.create(.v1, key: "a", parts: 1)
            let etag = try await client.send("PUT", upload.urls[0], Data("x".utf8)).headers["etag"] ?? ""
            #expect(etag == "\"\(md5(Data("x".utf8)))\"")
            #expect(try await client.complete(.v1, upload, etags: [(1, etag)]).status == 200)
            let again = try await client.complete(.v1, upload, etags: [(1, etag)])
            #expect(again.status == 404 && again.text.contains("NoSuchUpload"))
            #expect(try await client.send("PUT", upload.urls[0], Data("y".utf8)).status == 404)
        }
    }

    @Test func `an aborted upload leaves nothing`() async throws {
        let folder = try TemporaryDirectory()
        try await withSandbox(directory: folder.path) { sandbox, client async throws in
            let upload = try await client.create(.r2, key: "a", parts: 1)
            _ = try await client.send("PUT", upload.urls[0], Data("x".utf8))
            let body = ["key": "a", "upload_id": upload.id]
            #expect(try await client.post("/r2/multipart/abort", body).status == 200)
            #expect(try await client.post("/r2/multipart/abort", body).status == 404)
            #expect(sandbox.openUploads().isEmpty)
            let left = try FileManager.default.contentsOfDirectory(atPath: folder.path.appending("uploads").string)
            #expect(left.isEmpty)
        }
    }

    @Test func `v1 asks for its key, and r2 for none`() async throws {
        try await withSandbox(apiKey: Secret("canary-key")) { _, client async throws in
            let body: [String: Any] = ["key": "a", "parts": 1, "content_type": "text/plain"]
            #expect(try await client.post("/v1/multipart/create", body).status == 401)
            let wrong = ["X-API-Key": "canary-kez"]
            #expect(try await client.post("/v1/multipart/create", body, headers: wrong).status == 401)
            #expect(try await client.send("GET", client.origin + "/v1/objects/url/a").status == 401)
            let right = ["X-API-Key": "canary-key"]
            #expect(try await client.post("/v1/multipart/create", body, headers: right).status == 200)
            #expect(try await client.post("/r2/multipart/create", body).status == 200)
        }
    }

    @Test func `a small file goes by one presigned PUT of its content type`() async throws {
        try await withSandbox { sandbox, client async throws in
            let presigned = try await client.post(
                "/v1/presign/upload", ["key": "notes/a b.txt", "content_type": "text/plain"])
            let url = try #require(presigned.json["url"] as? String)
            let body = Data("hello".utf8)
            let other = try await client.send("PUT", url, body, headers: ["Content-Type": "text/html"])
            #expect(other.status == 403 && other.text.contains("SignatureDoesNotMatch"))
            let answer = try await client.send("PUT", url, body, headers: ["Content-Type": "text/plain"])
            #expect(answer.status == 200 && answer.headers["etag"] == "\"\(md5(body))\"")
            #expect(sandbox.objects().map(\.contentType) == ["text/plain"])
            #expect(sandbox.counts()["single"] == 2)
        }
    }

    @Test func `an object is read through a presigned GET`() async throws {
        try await withSandbox { _, client async throws in
            #expect(try await client.send("GET", client.origin + "/v1/objects/url/a/b.bin").status == 404)
            let whole = noise(1 << 20, seed: 4)
            _ = try await client.upload(.r2, key: "a/b.bin", [whole])
            let answer = try await client.send("GET", client.origin + "/v1/objects/url/a/b.bin")
            let url = try #require(answer.json["url"] as? String)
            #expect(try await client.send("GET", url).body == whole)
            #expect(try await client.send("HEAD", url).status == 403)
            #expect(try await client.send("GET", client.origin + "/sandbox/a/b.bin").status == 403)
        }
    }

    @Test func `public reads know HEAD and ranges`() async throws {
        try await withSandbox { _, client async throws in
            _ = try await client.upload(.r2, key: "a.bin", [Data("0123456789".utf8)])
            let url = client.origin + "/public/a.bin"
            let head = try await client.send("HEAD", url)
            #expect(head.status == 200 && head.headers["content-length"] == "10" && head.body.isEmpty)
            #expect(head.headers["etag"]?.hasSuffix("-1\"") == true)
            for (range, text) in [("bytes=2-4", "234"), ("bytes=7-", "789"), ("bytes=-2", "89"), ("bytes=8-99", "89")] {
                let answer = try await client.send("GET", url, headers: ["Range": range])
                #expect(answer.status == 206 && answer.text == text, "\(range)")
            }
            let outside = try await client.send("GET", url, headers: ["Range": "bytes=10-"])
            #expect(outside.status == 416 && outside.headers["content-range"] == "bytes */10")
            #expect(try await client.send("GET", client.origin + "/public/none").status == 404)
        }
    }

    @Test func `a file of no bytes is an object of one empty part`() async throws {
        try await withSandbox { sandbox, client async throws in
            #expect(try await client.upload(.v1, key: "empty.txt", [Data()]).status == 200)
            #expect(sandbox.objects().map(\.size) == [0])
            #expect(try await client.send("GET", client.origin + "/public/empty.txt").body.isEmpty)
        }
    }
}
