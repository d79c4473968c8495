import Foundation
import InletCore
import InletSandbox
import InletTestSupport
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

    /// What stands beside the body, and the answer. 4waSgw== is the check value of CRC-32C over "123456789".
    static let checksums: [(String, String, String)] = [
        ("Content-MD5", Data(MD5.bytes(of: digits)).base64EncodedString(), "200 "),
        ("Content-MD5", Data(MD5.bytes(of: Data())).base64EncodedString(), "400 BadDigest"),
        ("Content-MD5", "abc", "400 InvalidDigest"),
        ("x-amz-checksum-crc32c", "4waSgw==", "200 "),
        ("x-amz-checksum-crc32c", "4waSgg==", "400 BadDigest"),
        ("x-amz-checksum-crc32c", "4waSgw", "400 InvalidRequest"),
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
            let upload = try await client.create("b")
            let query = [("partNumber", "1"), ("uploadId", upload)]
            let part = try await client.send("PUT", "b", query: query, Self.digits, headers: [name: value])
            #expect(part.refusal == expected)
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
                try await pages([("start-after", "b/2"), ("encoding-type", "url")], of: "Key")[0][0]
                    == "b/%C3%A4%3C%26%3E")
            let folders = try await pages([("delimiter", "/")], of: "CommonPrefixes")
            #expect(folders.flatMap { $0 } == ["<Prefix>b/</Prefix>", "<Prefix>d/</Prefix>"])
        }
    }
}
