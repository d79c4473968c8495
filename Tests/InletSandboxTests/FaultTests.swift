import Foundation
import InletCore
import InletSandbox
import InletTestSupport
import Synchronization
import SystemPackage
import Testing

@Suite struct FaultTests {
    private static let body = Data("0123456789".utf8)

    @Test func `a status comes as often as asked, where asked`() async throws {
        try await withSandbox(faults: Fault(.status(503, retryAfter: 7), at: .part, part: 2, times: 2)) {
            sandbox, client async throws in
            let upload = try await client.create(.r2, key: "a", parts: 2)
            #expect(try await client.send("PUT", upload.urls[0], Self.body).status == 200)
            for _ in 0..<2 {
                let answer = try await client.send("PUT", upload.urls[1], Self.body)
                #expect(answer.status == 503 && answer.headers["retry-after"] == "7")
            }
            #expect(try await client.send("PUT", upload.urls[1], Self.body).status == 200)
            #expect(sandbox.faults.injected == 2 && sandbox.faults.injected(at: .part) == 2)
            #expect(sandbox.faults.injected(at: .create) == 0)
        }
    }

    @Test(arguments: SpiralOperation.allCases)
    func `every operation can be made to fail`(_ operation: SpiralOperation) async throws {
        try await withSandbox { sandbox, client async throws in
            let upload = try await client.create(.v1, key: "a", parts: 1)
            _ = try await client.upload(.v1, key: "b", [Self.body])
            let presign = ["key": "c", "content_type": "text/plain"]
            let single = try await client.post("/v1/presign/upload", presign).json["url"] as? String ?? ""
            sandbox.faults.add(Fault(.status(418), at: operation))
            let answer =
                switch operation {
                case .create: try await client.post("/v1/multipart/create", ["key": "a", "parts": 1])
                case .part: try await client.send("PUT", upload.urls[0], Self.body)
                case .complete: try await client.complete(.v1, upload, etags: [(1, "")])
                case .abort: try await client.post("/v1/multipart/abort", ["key": "a", "upload_id": upload.id])
                case .presign: try await client.post("/v1/presign/upload", presign)
                case .single: try await client.send("PUT", single, Self.body, headers: ["Content-Type": "text/plain"])
                case .objectURL: try await client.send("GET", client.origin + "/v1/objects/url/b")
                case .read: try await client.send("GET", client.origin + "/public/b")
                }
            #expect(answer.status == 418)
            #expect(sandbox.faults.injected(at: operation) == 1)
        }
    }

    @Test func `a reset closes the socket in the middle of the body`() async throws {
        try await withSandbox(faults: Fault(.reset(afterBytes: 1 << 20), at: .part)) { sandbox, client async throws in
            let upload = try await client.create(.r2, key: "a", parts: 1)
            let folder = try TemporaryDirectory()
            let file = try folder.write(noise(32 << 20, seed: 1), to: "body")
            let status = try await SandboxClient.curl("-m", "120", "-H", "Expect:", "-T", file.string, upload.urls[0])
            #expect([52, 55, 56].contains(status))
            #expect(sandbox.traffic.bytesReceived < 8 << 20)
            #expect(try await client.send("PUT", upload.urls[0], Self.body).status == 200)
        }
    }

    @Test(arguments: [(10, Int32(18)), (-3, Int32(0))])
    func `a wrong length is told, and the connection ends`(_ difference: Int, _ status: Int32) async throws {
        try await withSandbox(faults: Fault(.wrongLength(by: difference), at: .create, times: 2)) {
            sandbox, client async throws in
            let folder = try TemporaryDirectory()
            let (head, body) = (folder.path.appending("head").string, folder.path.appending("body").string)
            let url = client.origin + "/r2/multipart/create"
            let message = #"{"key":"a","parts":1}"#
            #expect(
                try await SandboxClient.curl("-m", "120", "-D", head, "-o", body, "-d", message, url) == status)
            let lines = try String(contentsOfFile: head, encoding: .utf8).lowercased().split(separator: "\r\n")
            let told = lines.compactMap { $0.split(separator: ":").first == "content-length" ? $0 : nil }
                .compactMap { Int($0.dropFirst("content-length:".count).filter { $0 != " " }) }
            let came = try Data(contentsOf: URL(fileURLWithPath: body)).count
            #expect(told.count == 1 && told.first == (difference > 0 ? came + difference : came))
            #expect(sandbox.openUploads().count == 1 && sandbox.faults.injected == 1)
        }
    }

    @Test func `a stall never answers, and clear ends it`() async throws {
        try await withSandbox(faults: Fault(.stall, at: .create, times: nil)) { sandbox, client async throws in
            let body = #"{"key":"a","parts":1}"#
            let url = client.origin + "/r2/multipart/create"
            #expect(try await SandboxClient.curl("-m", "3", "-d", body, url) == 28)
            let before = sandbox.faults.injected
            try await withThrowingTaskGroup(of: Int32.self) { group in
                group.addTask { try await SandboxClient.curl("-m", "120", "-d", body, url) }
                try await eventually("the stall") { sandbox.faults.injected > before }
                sandbox.faults.clear()
                #expect(try await client.create(.r2, key: "b", parts: 1).urls.count == 1)
                #expect([52, 56].contains(try await group.next() ?? 0))
            }
        }
    }

    @Test func `an endless answer never ends`() async throws {
        try await withSandbox(faults: Fault(.endlessAnswer, at: .complete)) { _, client async throws in
            let folder = try TemporaryDirectory()
            let file = folder.path.appending("answer")
            let url = client.origin + "/r2/multipart/complete"
            let words = ["-m", "15", "--limit-rate", "2M", "-d", "{}", "-o", file.string, url]
            #expect(try await SandboxClient.curl(words) == 28)
            #expect(try content(of: file).count >= 1 << 20)
        }
    }

    @Test func `garbage, web pages and redirects come in the place of answers`() async throws {
        try await withSandbox(
            faults: Fault(.garbage, at: .create), Fault(.html, at: .create),
            Fault(.redirect(to: "http://elsewhere.example/"), at: .create)
        ) { sandbox, client async throws in
            let body: [String: Any] = ["key": "a", "parts": 1]
            let garbage = try await client.post("/r2/multipart/create", body)
            #expect(garbage.status == 200 && garbage.json.isEmpty && garbage.body.count == 512)
            let page = try await client.post("/r2/multipart/create", body)
            #expect(page.status == 200 && page.headers["content-type"] == "text/html")
            let moved = try await client.post("/r2/multipart/create", body)
            #expect(moved.status == 307 && moved.headers["location"] == "http://elsewhere.example/")
            #expect(sandbox.openUploads().isEmpty)
        }
    }

    @Test func `ETags can be missing or wrong`() async throws {
        try await withSandbox { sandbox, client async throws in
            let upload = try await client.create(.r2, key: "a", parts: 1)
            func etag(_ action: FaultAction) async throws -> String? {
                sandbox.faults.add(Fault(action, at: .part))
                return try await client.send("PUT", upload.urls[0], Self.body).headers["etag"]
            }
            #expect(try await etag(.missingETag) == nil)
            let right = "\"\(md5(Self.body))\""
            let random = [try await etag(.wrongETag(.random)), try await etag(.wrongETag(.random))]
            #expect(random[0] != random[1] && !random.contains(right) && !random.contains(nil))
            let constant = [try await etag(.wrongETag(.constant)), try await etag(.wrongETag(.constant))]
            #expect(constant[0] == constant[1] && constant[0] != right)
            let told = try #require(constant[1])
            #expect(try await client.complete(.r2, upload, etags: [(1, told)]).status == 200)
            #expect(sandbox.objects().map(\.md5.hex) == [md5(Self.body)])
        }
    }

    @Test func `lists of part URLs can be wrong`() async throws {
        try await withSandbox(
            faults: Fault(.partURLs(.fewer)), Fault(.partURLs(.more)), Fault(.partURLs(.renumbered)),
            Fault(.partURLs(.origin("http://storage.example"))), Fault(.expiredURLs)
        ) { _, client async throws in
            #expect(try await client.create(.v1, key: "a", parts: 3).numbers == [1, 2])
            #expect(try await client.create(.seed, key: "a", parts: 3).numbers == [1, 2, 3, 4])
            #expect(try await client.create(.r2, key: "a", parts: 3).numbers == [0, 1, 2])
            let foreign = try await client.create(.v1, key: "a", parts: 1)
            #expect(foreign.urls[0].hasPrefix("http://storage.example/sandbox/a?"))
            let expired = try await client.create(.v1, key: "a", parts: 1)
            let answer = try await client.send("PUT", expired.urls[0], Self.body)
            #expect(answer.status == 403 && answer.text.contains("Request has expired"))
        }
    }

    @Test func `a lost answer leaves the work done`() async throws {
        try await withSandbox(faults: Fault(.loseAnswer, at: .complete)) { sandbox, client async throws in
            let upload = try await client.create(.v1, key: "a", parts: 1)
            let etag = try await client.send("PUT", upload.urls[0], Self.body).headers["etag"] ?? ""
            let message =
                #"{"key":"a","upload_id":"\#(upload.id)","parts":[{"part_number":1,"etag":"\#(md5(Self.body))"}]}"#
            #expect(etag == "\"\(md5(Self.body))\"")
            let url = client.origin + "/v1/multipart/complete"
            #expect(try await SandboxClient.curl("-m", "120", "-d", message, url) == 52)
            #expect(sandbox.objects().map(\.versions) == [1])
            #expect(sandbox.openUploads().isEmpty)
        }
    }

    @Test func `slow reads and delays take their time`() async throws {
        try await withSandbox(
            faults: Fault(.slowRead(bytesPerSecond: 1 << 20), at: .part),
            Fault(.delay(.milliseconds(300)), at: .complete)
        ) { _, client async throws in
            let clock = ContinuousClock()
            let upload = try await client.create(.v1, key: "a", parts: 1)
            let body = noise(1 << 19, seed: 1)
            let slow = try await clock.measure { _ = try await client.send("PUT", upload.urls[0], body) }
            #expect(slow >= .milliseconds(450))
            let late = try await clock.measure {
                let answer = try await client.complete(.v1, upload, etags: [(1, md5(body))])
                #expect(answer.status == 200)
            }
            #expect(late >= .milliseconds(300))
        }
    }

    @Test func `chance goes by the seed`() async throws {
        func pattern(seed: UInt64) async throws -> [Int] {
            let folder = try TemporaryDirectory()
            let plan = FaultPlan([Fault(.status(500), at: .read, times: nil, probability: 0.5)], seed: seed)
            let sandbox = try SpiralSandbox(directory: folder.path, apiKey: nil, faults: plan)
            return try await whileServing({ try await sandbox.run() }) {
                let client = SandboxClient(port: try await sandbox.port())
                var statuses: [Int] = []
                for _ in 0..<24 { statuses.append(try await client.send("GET", client.origin + "/public/x").status) }
                return statuses
            }
        }
        let first = try await pattern(seed: 7)
        #expect(Set(first) == [404, 500])
        #expect(try await pattern(seed: 7) == first)
        #expect(try await pattern(seed: 8) != first)
    }
}

@Suite struct DialectTests {
    private static let parts = [noise(5 << 20, seed: 1), noise(5 << 20, seed: 2), noise(1234, seed: 3)]

    @Test(arguments: Dialect.allCases) func `an upload arrives byte for byte`(_ dialect: Dialect) async throws {
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

@Suite struct RestartTests {
    /// The port of the first sandbox may be another program's by the time of the second.
    @Test func `an open upload and its URLs outlive the sandbox`() async throws {
        for _ in 0..<4 {
            do {
                return try await restart()
            } catch {
                guard error is SandboxStopped else { throw error }
            }
        }
        try await restart()
    }

    @Test func `what another version has kept is named, with what to do`() throws {
        let folder = try TemporaryDirectory()
        let records = folder.path.appending("records")
        try FileManager.default.createDirectory(atPath: records.string, withIntermediateDirectories: true)
        try Data(#"{"key":"a.bin","size":1}"#.utf8).write(to: URL(filePath: records.appending("a.json").string))
        let error = #expect(throws: (any Error).self) { try SpiralSandbox(directory: folder.path, apiKey: nil) }
        let text = try #require(error.map { "\($0)" })
        #expect(text.hasPrefix("\(records.string)/a.json is not a record of this version"), "\(text)")
        #expect(text.contains("remove the demo's folder"))
    }

    private func restart() async throws {
        let folder = try TemporaryDirectory()
        let (first, second) = (noise(5 << 20, seed: 1), noise(77, seed: 2))
        let kept = Mutex<(upload: SandboxClient.Upload, port: Int)?>(nil)
        try await withSandbox(directory: folder.path) { _, client async throws in
            let upload = try await client.create(.v1, key: "a/b.bin", parts: 2)
            _ = try await client.send("PUT", upload.urls[0], Data("replaced".utf8))
            _ = try await client.send("PUT", upload.urls[0], first)
            kept.withLock { $0 = (upload, client.port) }
        }
        let (upload, port) = try #require(kept.withLock { $0 })
        try await withSandbox(directory: folder.path, port: port) { sandbox, client async throws in
            #expect(sandbox.openUploads() == [upload.id])
            #expect(try await client.send("PUT", upload.urls[1], second).status == 200)
            let answer = try await client.complete(.v1, upload, etags: [(1, md5(first)), (2, md5(second))])
            #expect(answer.status == 200)
        }
        try await withSandbox(directory: folder.path) { sandbox, client async throws in
            #expect(sandbox.openUploads().isEmpty)
            let object = try #require(sandbox.objects().first)
            #expect(try content(of: object.path) == first + second)
            #expect(try await client.upload(.v1, key: "a/b.bin", [second]).status == 200)
            #expect(sandbox.objects().map(\.versions) == [2])
        }
    }

    @Test func `an upload that was committed but not moved is moved at the next start`() async throws {
        let folder = try TemporaryDirectory()
        let body = noise(1000, seed: 1)
        try await withSandbox(directory: folder.path) { _, client async throws in
            let answer = try await client.upload(.r2, key: "a/b.bin", [body])
            #expect(answer.status == 200)
        }
        // What a kill between the commit and the two moves leaves behind.
        let upload = try folder.makeDirectory("uploads/some-id")
        let records = folder.path.appending("records")
        let record = try #require(try FileManager.default.contentsOfDirectory(atPath: records.string).first)
        try FileManager.default.moveItem(
            atPath: records.appending(record).string, toPath: upload.appending("commit.json").string)
        try FileManager.default.moveItem(
            atPath: folder.path.appending("objects/a/b.bin").string, toPath: upload.appending("object").string)
        let sandbox = try SpiralSandbox(directory: folder.path, apiKey: nil)
        #expect(sandbox.openUploads().isEmpty)
        let object = try #require(sandbox.objects().first)
        #expect(try content(of: object.path) == body)
    }

    @Test func `a port in use ends the run and those who wait for it`() async throws {
        try await withSandbox { _, client async throws in
            let folder = try TemporaryDirectory()
            let second = try SpiralSandbox(directory: folder.path, apiKey: nil, port: client.port)
            await #expect(throws: (any Error).self) { try await second.run() }
            await #expect(throws: SandboxStopped.self) { try await second.port() }
        }
    }
}
