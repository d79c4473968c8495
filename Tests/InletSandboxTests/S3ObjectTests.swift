import Foundation
import InletCore
import InletSandbox
import InletTestSupport
import Synchronization
import SystemPackage
import Testing

@Suite struct S3ObjectTests {
    private static let digits = Data("123456789".utf8)

    @Test func `an object comes back with all that was given with it`() async throws {
        try await withS3 { sandbox, client async throws in
            let given = [
                "Content-Type": "video/mp4", "Cache-Control": "max-age=60", "x-amz-meta-mtime": "1700000000.5",
                "x-amz-storage-class": "STANDARD_IA", "x-amz-acl": "private",
            ]
            let answer = try await client.send("PUT", "gigs/ä b+c.mp4", Self.digits, headers: given)
            #expect(answer.status == 200 && answer.headers["etag"] == "\"\(md5(Self.digits))\"")
            for method in ["GET", "HEAD"] {
                let read = try await client.send(method, "gigs/ä b+c.mp4")
                #expect(read.status == 200 && read.body == (method == "GET" ? Self.digits : Data()))
                #expect(read.headers["content-length"] == "9" && read.headers["content-type"] == "video/mp4")
                #expect(read.headers["cache-control"] == "max-age=60")
                #expect(read.headers["x-amz-meta-mtime"] == "1700000000.5")
                #expect(read.headers["x-amz-storage-class"] == "STANDARD_IA" && read.headers["x-amz-acl"] == nil)
                #expect(read.headers["last-modified"]?.hasSuffix("GMT") == true)
            }
            let object = try #require(sandbox.objects().first)
            #expect(try content(of: object.path) == Self.digits && object.key == "gigs/ä b+c.mp4")
            #expect(object.attributes["x-amz-acl"] == "private")
            #expect(sandbox.counts()["putObject"] == 1 && sandbox.counts()["headObject"] == 1)
        }
    }

    @Test(arguments: [
        ("bytes=2-4", 206, "345"), ("bytes=7-", 206, "89"), ("bytes=-2", 206, "89"), ("bytes=9-", 416, nil),
    ])
    func `a range is a slice`(_ range: String, _ status: Int, _ text: String?) async throws {
        try await withS3 { _, client async throws in
            _ = try await client.send("PUT", "a", Self.digits)
            let answer = try await client.send("GET", "a", headers: ["Range": range])
            #expect(answer.status == status)
            #expect(text == nil ? answer.xml("Code") == "InvalidRange" : answer.text == text)
        }
    }

    /// What stands beside the body, and the answer. 4waSgw== is the check value of CRC-32C over "123456789", and
    /// rosUhgp5mIg= that of CRC-64/NVME.
    static let checksums: [(String, String, String)] = [
        ("Content-MD5", Data(MD5.bytes(of: digits)).base64EncodedString(), "200 "),
        ("Content-MD5", Data(MD5.bytes(of: Data())).base64EncodedString(), "400 BadDigest"),
        ("Content-MD5", "abc", "400 InvalidDigest"),
        ("x-amz-checksum-crc32c", "4waSgw==", "200 "),
        ("x-amz-checksum-crc32c", "4waSgg==", "400 BadDigest"),
        ("x-amz-checksum-crc32c", "4waSgw", "400 InvalidRequest"),
        ("x-amz-checksum-crc64nvme", "rosUhgp5mIg=", "200 "),
        ("x-amz-checksum-crc64nvme", "rosUhgp5mIk=", "400 BadDigest"),
        ("x-amz-checksum-sha256", Data(SHA256.bytes(of: digits)).base64EncodedString(), "200 "),
        ("x-amz-checksum-sha256", Data(SHA256.bytes(of: Data())).base64EncodedString(), "400 BadDigest"),
    ]

    @Test(arguments: checksums)
    func `a checksum beside the body is verified`(_ name: String, _ value: String, _ expected: String) async throws {
        try await withS3 { sandbox, client async throws in
            let answer = try await client.send("PUT", "a", Self.digits, headers: [name: value])
            #expect(answer.refusal == expected)
            #expect(sandbox.objects().count == (answer.status == 200 ? 1 : 0))
            let echo = answer.headers[name]
            #expect(answer.status != 200 || name == "Content-MD5" || echo == value)
            let algorithm = name.hasPrefix("x-amz-checksum-") ? name.split(separator: "-").last?.uppercased() : nil
            let upload = try await client.create(
                "b", headers: algorithm.map { ["x-amz-checksum-algorithm": $0] } ?? [:])
            let query = [("partNumber", "1"), ("uploadId", upload)]
            let part = try await client.send("PUT", "b", query: query, Self.digits, headers: [name: value])
            #expect(part.refusal == expected)
            // A part has no checksum that its upload was not opened with.
            let other = try await client.send(
                "PUT", "b", query: [("partNumber", "1"), ("uploadId", try await client.create("b"))], Self.digits,
                headers: [name: value])
            #expect(other.status == (algorithm == nil ? part.status : 400))
        }
    }

    @Test func `a composed object has the checksum that was said of it, or is not there`() async throws {
        try await withS3 { sandbox, client async throws in
            let (name, right) = ("x-amz-checksum-crc64nvme", "rosUhgp5mIg=")
            let whole = ["x-amz-checksum-type": "FULL_OBJECT"]
            let opening = whole.merging(["x-amz-checksum-algorithm": "CRC64NVME"]) { $1 }
            let upload = try await client.create("a", headers: opening)
            let etag = try await client.part("a", upload, 1, Self.digits).headers["etag"] ?? ""
            let wrong = try await client.complete(
                "a", upload, [(1, etag)], headers: whole.merging([name: "rosUhgp5mIk="]) { $1 })
            #expect(wrong.refusal == "400 BadDigest" && sandbox.objects().isEmpty)
            let done = try await client.complete("a", upload, [(1, etag)], headers: whole.merging([name: right]) { $1 })
            #expect(done.xml("ChecksumCRC64NVME") == right)
            #expect(
                try await client.send("HEAD", "a", headers: ["x-amz-checksum-mode": "ENABLED"]).headers[name] == right)
            #expect(try await client.send("HEAD", "a").headers[name] == nil)
        }
    }

    @Test func `a signed payload must be the body`() async throws {
        try await withS3 { sandbox, client async throws in
            let other = try await client.send("PUT", "a", Self.digits, signed: sha256(Data("x".utf8)))
            #expect(other.refusal == "400 XAmzContentSHA256Mismatch")
            #expect(other.xml("S3ComputedContentSHA256") == sha256(Self.digits))
            #expect(try await client.send("PUT", "a", Self.digits, signed: "UNSIGNED-PAYLOAD").status == 200)
            let chunked = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"
            #expect(try await client.send("PUT", "b", Self.digits, signed: chunked).status == 501)
            #expect(try await client.send("PUT", "b", Self.digits, signed: "abc").refusal == "400 InvalidArgument")
            #expect(sandbox.objects().map(\.key) == ["a"])
        }
    }

    @Test func `a key that must be new is written once`() async throws {
        try await withS3 { sandbox, client async throws in
            let new = ["If-None-Match": "*"]
            #expect(try await client.send("PUT", "a", Self.digits, headers: new).status == 200)
            let again = try await client.send("PUT", "a", Data("x".utf8), headers: new)
            #expect(again.refusal == "412 PreconditionFailed")
            let (upload, etags) = try await client.open("a", [Data("y".utf8)])
            #expect(try await client.complete("a", upload, etags, headers: new).refusal == "412 PreconditionFailed")
            #expect(sandbox.objects().map(\.versions) == [1] && sandbox.openUploads() == [upload])
            #expect(try await client.complete("a", upload, etags).status == 200)
            #expect(sandbox.objects().map(\.versions) == [2])
        }
    }

    @Test func `what is not there is told as S3 tells it`() async throws {
        try await withS3 { _, client async throws in
            #expect(try await client.send("HEAD", "").status == 200)
            #expect(try await client.send("GET", "none").refusal == "404 NoSuchKey")
            let head = try await client.send("HEAD", "none")
            #expect(head.status == 404 && head.body.isEmpty)
            var other = client
            other.bucket = "other"
            #expect(try await other.send("HEAD", "").status == 404)
            let refused = try await other.send("PUT", "a", Self.digits)
            #expect(refused.refusal == "404 NoSuchBucket" && refused.xml("BucketName") == "other")
            #expect(try await client.send("POST", "a", Self.digits).refusal == "501 NotImplemented")
            #expect(try await client.send("PUT", "a//b", Self.digits).refusal == "400 InvalidArgument")
        }
    }

    @Test func `a deleted object is gone, and deleting it again is no error`() async throws {
        try await withS3 { sandbox, client async throws in
            _ = try await client.send("PUT", "a/b", Self.digits)
            for _ in 0..<2 { #expect(try await client.send("DELETE", "a/b").status == 204) }
            #expect(sandbox.objects().isEmpty)
            #expect(try await client.send("GET", "a/b").status == 404)
        }
    }

    @Test func `a body over the limit is refused`() async throws {
        try await withS3(rules: .init(largestBody: 8)) { sandbox, client async throws in
            #expect(try await client.send("PUT", "a", Self.digits).refusal == "400 EntityTooLarge")
            #expect(sandbox.objects().isEmpty)
        }
    }

    @Test func `a listing comes in pages, in the order of bytes`() async throws {
        try await withS3(rules: .init(pageSize: 2)) { _, client async throws in
            for key in ["b/2", "b/1", "c", "b/ä<&>", "B", "d/x/1", "d/x/2"] {
                _ = try await client.send("PUT", key, Data(key.utf8))
            }
            func pages(_ query: [(String, String)], of name: String) async throws -> [[String]] {
                var pages: [[String]] = []
                var token: String?
                repeat {
                    let more = token.map { [("continuation-token", $0)] } ?? []
                    let answer = try await client.send("GET", "", query: [("list-type", "2")] + query + more)
                    #expect(answer.status == 200 && answer.xml("KeyCount") != nil)
                    pages.append(answer.xmls(name))
                    token = answer.xml("NextContinuationToken")
                    #expect(answer.xml("IsTruncated") == String(token != nil))
                } while token != nil
                return pages
            }
            #expect(
                try await pages([], of: "Key") == [
                    ["B", "b/1"], ["b/2", "b/ä&lt;&amp;&gt;"], ["c", "d/x/1"], ["d/x/2"],
                ])
            #expect(try await pages([("prefix", "b/"), ("max-keys", "1")], of: "Key").map(\.count) == [1, 1, 1])
            #expect(
                try await pages([("prefix", "b/ä"), ("encoding-type", "url")], of: "Key")[0][0]
                    == "b/%C3%A4%3C%26%3E")
        }
    }
}

@Suite struct S3UploadTests {
    private static let five = noise(5 << 20, seed: 1)
    private static let rest = noise(777, seed: 2)

    @Test func `parts become one object with what create was given`() async throws {
        try await withS3 { sandbox, client async throws in
            let given = ["Content-Type": "video/mp4", "x-amz-meta-mtime": "9", "x-amz-storage-class": "STANDARD"]
            let upload = try await client.create("gigs/a.mp4", headers: given)
            var etags: [(Int, String)] = []
            for (number, part) in [(2, Self.rest), (1, Self.five)] {
                let answer = try await client.part("gigs/a.mp4", upload, number, part)
                #expect(answer.headers["etag"] == "\"\(md5(part))\"")
                etags.insert((number, answer.headers["etag"] ?? ""), at: 0)
            }
            let answer = try await client.complete("gigs/a.mp4", upload, etags)
            let sums = Data(MD5.bytes(of: Self.five)) + Data(MD5.bytes(of: Self.rest))
            #expect(answer.xml("ETag") == "&quot;\(md5(sums))-2&quot;")
            #expect(answer.xml("Key") == "gigs/a.mp4" && answer.xml("Bucket") == "archive")
            let read = try await client.send("GET", "gigs/a.mp4")
            #expect(read.body == Self.five + Self.rest && read.headers["content-type"] == "video/mp4")
            #expect(read.headers["x-amz-meta-mtime"] == "9" && read.headers["x-amz-storage-class"] == nil)
            #expect(sandbox.openUploads().isEmpty)
            #expect(sandbox.traffic.partOrder == [2, 1])
            #expect(try await client.complete("gigs/a.mp4", upload, etags).refusal == "404 NoSuchUpload")
        }
    }

    @Test func `a list of parts that is not right is refused, and the upload stays`() async throws {
        try await withS3 { sandbox, client async throws in
            let (upload, etags) = try await client.open("a", [Self.five, Self.rest, Self.five])
            let table: [([(Int, String)], String)] = [
                ([etags[1], etags[0]], "400 InvalidPartOrder"), ([etags[0], etags[0]], "400 InvalidPartOrder"),
                ([etags[0], etags[1], etags[2]], "400 EntityTooSmall"), ([(9, etags[0].1)], "400 InvalidPart"),
                ([(1, etags[1].1)], "400 InvalidPart"), ([], "400 MalformedXML"),
            ]
            for (list, expected) in table {
                #expect(try await client.complete("a", upload, list).refusal == expected)
            }
            let bad = try await client.send("POST", "a", query: [("uploadId", upload)], Data("<Complete".utf8))
            #expect(bad.refusal == "400 MalformedXML")
            _ = try await client.part("a", upload, 2, Self.five + Data([1]))
            let uneven = (2, md5(Self.five + Data([1])))
            #expect(try await client.complete("a", upload, [etags[0], uneven, etags[2]]).refusal == "400 InvalidPart")
            #expect(sandbox.objects().isEmpty && sandbox.openUploads() == [upload])
            #expect(try await client.complete("a", upload, [etags[0], etags[2]]).status == 200)
        }
    }

    @Test func `parts of no upload, of another key or with an impossible number are refused`() async throws {
        try await withS3 { _, client async throws in
            let upload = try await client.create("a")
            #expect(try await client.part("a", "none", 1, Self.rest).refusal == "404 NoSuchUpload")
            #expect(try await client.part("b", upload, 1, Self.rest).refusal == "404 NoSuchUpload")
            for number in [0, 10_001] {
                #expect(try await client.part("a", upload, number, Self.rest).refusal == "400 InvalidArgument")
            }
            #expect(try await client.send("DELETE", "a", query: [("uploadId", upload)]).status == 204)
            #expect(try await client.send("DELETE", "a", query: [("uploadId", upload)]).refusal == "404 NoSuchUpload")
        }
    }

    @Test func `parts are listed in pages`() async throws {
        try await withS3(rules: .init(pageSize: 2)) { _, client async throws in
            let (upload, _) = try await client.open("k", (1...5).map { noise($0, seed: UInt64($0)) })
            var (seen, marker): ([String], String?) = ([], "0")
            while let from = marker {
                let query = [("uploadId", upload), ("part-number-marker", from)]
                let answer = try await client.send("GET", "k", query: query)
                seen += zip(answer.xmls("PartNumber"), answer.xmls("Size")).map { "\($0):\($1)" }
                marker = answer.xml("NextPartNumberMarker")
                #expect(answer.xml("IsTruncated") == String(marker != nil))
            }
            #expect(seen == ["1:1", "2:2", "3:3", "4:4", "5:5"])
        }
    }

    @Test func `objects, open uploads and their parts outlive the sandbox`() async throws {
        let folder = try TemporaryDirectory()
        let kept = Mutex("")
        try await withS3(directory: folder.path) { _, client async throws in
            _ = try await client.send("PUT", "one", Self.rest, headers: ["x-amz-meta-a": "b"])
            let (upload, _) = try await client.open("two", [Self.five])
            kept.withLock { $0 = upload }
        }
        let upload = kept.withLock { $0 }
        try await withS3(directory: folder.path) { sandbox, client async throws in
            #expect(try await client.send("HEAD", "one").headers["x-amz-meta-a"] == "b")
            let listed = try await client.send("GET", "two", query: [("uploadId", upload)])
            #expect(listed.xmls("ETag") == ["&quot;\(md5(Self.five))&quot;"])
            _ = try await client.part("two", upload, 2, Self.rest)
            let etags = [(1, md5(Self.five)), (2, md5(Self.rest))]
            #expect(try await client.complete("two", upload, etags).status == 200)
            #expect(try content(of: try #require(sandbox.objects().last).path) == Self.five + Self.rest)
        }
    }
}

@Suite struct S3FaultTests {
    private static let body = Data("0123456789".utf8)

    @Test func `a store that wants to be asked less often says so`() async throws {
        try await withS3(faults: S3Fault(.reply(.slowDown(retryAfter: 3)), at: .putObject)) {
            sandbox, client async throws in
            let answer = try await client.send("PUT", "a", Self.body)
            #expect(answer.refusal == "503 SlowDown" && answer.headers["retry-after"] == "3")
            #expect(try await client.send("PUT", "a", Self.body).status == 200)
            #expect(sandbox.faults.injected(at: .putObject) == 1)
        }
    }

    @Test func `complete may answer 200 and mean an error`() async throws {
        try await withS3(faults: S3Fault(.reply(.errorIn200), at: .completeMultipartUpload)) {
            sandbox, client async throws in
            let (upload, etags) = try await client.open("a", [Self.body])
            #expect(try await client.complete("a", upload, etags).refusal == "200 InternalError")
            #expect(sandbox.openUploads() == [upload])
            #expect(try await client.complete("a", upload, etags).refusal == "200 ")
        }
    }

    @Test func `the answer can be lost after the work is done`() async throws {
        try await withS3(faults: S3Fault(.loseAnswer, at: .putObject)) { sandbox, client async throws in
            #expect([52, 56].contains(try await client.curl("PUT", "a", "hello")))
            #expect(sandbox.objects().map(\.versions) == [1])
            let (upload, etags) = try await client.open("a", [Self.body])
            sandbox.faults.add(S3Fault(.loseAnswer, at: .completeMultipartUpload))
            let list = S3Client.list(etags)
            #expect([52, 56].contains(try await client.curl("POST", "a", query: [("uploadId", upload)], list)))
            #expect(sandbox.objects().map(\.versions) == [2] && sandbox.openUploads().isEmpty)
        }
    }

    @Test func `an error can come after the work is done`() async throws {
        let error = FaultAction.replyAfterWork(.s3(500, "InternalError"))
        try await withS3(faults: S3Fault(error, at: .putObject)) { sandbox, client async throws in
            #expect(try await client.send("PUT", "a", Self.body).refusal == "500 InternalError")
            #expect(try content(of: try #require(sandbox.objects().first).path) == Self.body)
        }
    }

    @Test func `a reset leaves nothing of the body`() async throws {
        try await withS3(faults: S3Fault(.reset(afterBytes: 3), at: .putObject)) { sandbox, client async throws in
            #expect([52, 55, 56].contains(try await client.curl("PUT", "a", "hello")))
            #expect(sandbox.objects().isEmpty)
        }
    }

    @Test func `wrong and missing ETags come from parts, single puts and complete`() async throws {
        try await withS3 { sandbox, client async throws in
            sandbox.faults.add(S3Fault(.wrongETag(.random), at: .putObject), S3Fault(.missingETag, at: .putObject))
            let wrong = try await client.send("PUT", "a", Self.body)
            #expect(wrong.headers["etag"]?.count == 34 && wrong.headers["etag"] != "\"\(md5(Self.body))\"")
            #expect(try await client.send("PUT", "a", Self.body).headers["etag"] == nil)
            sandbox.faults.add(S3Fault(.wrongETag(.random), at: .uploadPart, part: 1))
            let (upload, etags) = try await client.open("b", [Self.body])
            #expect(etags[0].1 != "\"\(md5(Self.body))\"")
            let listed = try await client.send("GET", "b", query: [("uploadId", upload)])
            #expect(listed.xml("ETag") == etags[0].1.replacing("\"", with: "&quot;"))
            sandbox.faults.add(S3Fault(.missingETag, at: .completeMultipartUpload))
            let answer = try await client.complete("b", upload, etags)
            #expect(answer.status == 200 && answer.xml("ETag") == nil)
        }
    }

    @Test(arguments: S3Operation.allCases.filter { $0 != .unknown })
    func `every operation can be made to fail`(_ operation: S3Operation) async throws {
        try await withS3 { sandbox, client async throws in
            let (upload, etags) = try await client.open("a", [Self.body])
            sandbox.faults.add(S3Fault(.html, at: operation))
            let id = [("uploadId", upload)]
            let answer =
                switch operation {
                case .putObject: try await client.send("PUT", "a", Self.body)
                case .getObject: try await client.send("GET", "a")
                case .headObject: try await client.send("HEAD", "a")
                case .deleteObject: try await client.send("DELETE", "a")
                case .createMultipartUpload: try await client.send("POST", "a", query: [("uploads", "")])
                case .uploadPart: try await client.part("a", upload, 1, Self.body)
                case .listParts: try await client.send("GET", "a", query: id)
                case .completeMultipartUpload: try await client.complete("a", upload, etags)
                case .abortMultipartUpload: try await client.send("DELETE", "a", query: id)
                case .listObjects: try await client.send("GET", "", query: [("list-type", "2")])
                case .headBucket, .unknown: try await client.send("HEAD", "")
                }
            #expect(answer.status == 200 && answer.headers["content-type"] == "text/html")
            #expect(sandbox.faults.injected(at: operation) == 1)
        }
    }
}
