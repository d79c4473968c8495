import InletCore
import InletTestSupport
import Testing

@testable import InletTransfer

struct DownloadTagTests {
    private func head(_ status: Int, _ fields: HTTPFields) -> HTTPResponse {
        HTTPResponse(status: status, headers: fields)
    }

    @Test func `only strong validators count`() {
        let date = ("Date", "Sun, 06 Nov 1994 08:49:37 GMT")
        let rows: [(HTTPFields, String?)] = [
            ([("ETag", "\"a\"")], "\"a\""), ([("etag", "W/\"a\"")], nil), ([("ETag", "a")], nil), ([], nil),
            ([("Last-Modified", "Sun, 06 Nov 1994 08:49:36 GMT"), date], "Sun, 06 Nov 1994 08:49:36 GMT"),
            ([("Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT"), date], nil),
            ([("Last-Modified", "Sun, 06 Nov 1994 08:49:36 GMT")], nil), ([("Last-Modified", "yesterday"), date], nil),
        ]
        for (fields, validator) in rows { #expect(DownloadTag(head(200, fields)).validator == validator, "\(fields)") }
    }

    @Test func `ranges are read exactly or not at all`() {
        #expect(ContentRange("bytes 5-9/10").map { [$0.first, $0.last, $0.total] } == [5, 9, 10])
        for text in [
            nil, "", "bytes", "bytes 5-9/*", "bytes */10", "bytes 9-5/10", "bytes 5-10/10", "items 5-9/10",
            "bytes -5-9/10",
            "bytes 5-9/10, 11-12/13", "bytes 5 - 9/10", "bytes 5-9/99999999999999999999", "bytes +5-9/10",
        ] as [String?] {
            #expect(ContentRange(text) == nil, "\(text ?? "nil")")
        }
    }

    @Test func `another boot goes on with what was synced, the same one with all`() {
        var tag = DownloadTag(head(200, [("ETag", "\"a\""), ("Content-Length", "100")]))
        (tag.boot, tag.synced) = ("one", 30)
        #expect(tag.trusted(of: 60, boot: "one") == 60)
        #expect(tag.trusted(of: 60, boot: "two") == 30)
        #expect(tag.trusted(of: 20, boot: "two") == 20)
        #expect(tag.trusted(of: 60, boot: nil) == 30)
        // More than there is of it: some other file.
        #expect(tag.trusted(of: 101, boot: "one") == 0)
        tag.etag = nil
        #expect(tag.trusted(of: 60, boot: "one") == 0)
    }

    @Test func `a tag outlives the process, and what is none reads as none`() throws {
        var tag = DownloadTag(
            head(
                200,
                [
                    ("ETag", "\"a\\\"b\""), ("Content-Length", "100"), ("x-amz-checksum-crc32c", "AAAAAQ=="),
                    ("Content-MD5", "x"),
                ]))
        #expect(tag.digests == [Digest(.crc32c, [0, 0, 0, 1])])
        tag.synced = 7
        #expect(DownloadTag(tag.note) == tag)
        for note in [nil, [], Array("{".utf8), Array("[]".utf8), [0xFF]] as [[UInt8]?] {
            #expect(DownloadTag(note) == nil)
        }
    }

    @Test func `no answer makes a file of bytes that do not belong together`() {
        var generator = SeededGenerator(seed: 4)
        for _ in 1...20_000 {
            var tag = DownloadTag()
            tag.etag = Bool.random(using: &generator) ? "\"a\"" : "\"b\""
            tag.length = Bool.random(using: &generator) ? Int64.random(in: 1...4, using: &generator) : nil
            let offset = Int64.random(in: 0...4, using: &generator)
            let numbers = (0..<3).map { _ in Int64.random(in: 0...5, using: &generator) }
            let etag = ["\"a\"", "\"b\""].randomElement(using: &generator) ?? ""
            let status = [200, 206, 416, 404].randomElement(using: &generator) ?? 0
            let fields = [("ETag", etag), ("Content-Range", "bytes \(numbers[0])-\(numbers[1])/\(numbers[2])")]
            guard case .rest(let total) = tag.judge(head(status, fields), offset: offset) else { continue }
            #expect(status == 206 && offset > 0 && numbers[0] == offset && tag.etag == etag)
            #expect(numbers[1] == total - 1 && (tag.length ?? total) == total)
        }
    }
}
