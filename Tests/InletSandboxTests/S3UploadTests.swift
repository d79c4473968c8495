import Foundation
import InletCore
import InletSandbox
import InletTestSupport
import Synchronization
import Testing

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

    @Test func `parts and uploads are listed in pages`() async throws {
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
            let others = [try await client.create("k"), try await client.create("a"), try await client.create("m")]
            var ids: [String] = []
            var next: [(String, String)]? = []
            while let markers = next {
                let answer = try await client.send("GET", "", query: [("uploads", "")] + markers)
                ids += answer.xmls("UploadId")
                next = answer.xml("NextKeyMarker").flatMap { key in
                    answer.xml("NextUploadIdMarker").map { [("key-marker", key), ("upload-id-marker", $0)] }
                }
            }
            #expect(ids.first == others[1] && ids.last == others[2] && Set(ids) == Set(others + [upload]))
            let some = try await client.send("GET", "", query: [("uploads", ""), ("prefix", "m")])
            #expect(some.xmls("UploadId") == [others[2]] && some.xml("Initiated") != nil)
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
