import Foundation
import InletCore
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

@testable import InletTransfer

@Suite(.timeLimit(.minutes(15))) struct DownloaderTests {
    @Test func `a file arrives whole under its name, with nothing beside it`() async throws {
        let body = text(700_001)
        let server = try ScriptedServer { connection in
            _ = try connection.readRequest()
            try connection.answer(headers: "ETag: \"v1\"\r\n", body)
        }
        let shelf = try Shelf()
        let steps = Seen<[Int64]>()
        let download = Download(target: shelf.target) { done, total in steps.append([done, total ?? -1]) }
        let got = try await shelf.fetch(download, server)
        #expect(try shelf.content() == body)
        #expect(got.path == shelf.target && got.size == 700_001 && got.checked == [])
        #expect(got.sha256 == Checksum.sha256(body.utf8))
        #expect(try shelf.names() == ["picture.png"])
        #expect(try SourceFile(opening: shelf.target).mode == 0o644)
        #expect(steps.all.last == [700_001, 700_001])
        #expect(steps.all.map { $0[0] } == steps.all.map { $0[0] }.sorted())
    }

    @Test(arguments: [0, 1]) func `so does one of no or one byte`(count: Int) async throws {
        let server = try ScriptedServer { connection in
            _ = try connection.readRequest()
            try connection.answer("200 OK", String("x".prefix(count)))
        }
        let shelf = try Shelf()
        #expect(try await shelf.fetch(Download(target: shelf.target), server).size == Int64(count))
        #expect(try shelf.names() == ["picture.png"])
    }

    @Test(arguments: [
        "ETag: \"v1\"\r\n", "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\nDate: Sun, 06 Nov 1994 08:49:38 GMT\r\n",
    ])
    func `what a cut connection left is gone on with, also by another process`(validator: String) async throws {
        let body = text(300_000)
        let seen = Seen<ReceivedRequest>()
        let server = try ScriptedServer { connection in
            let request = try connection.readRequest()
            seen.append(request)
            guard let range = request.headers["range"] else {
                let head = "HTTP/1.1 200 OK\r\n\(validator)Content-Length: 300000\r\n\r\n"
                return try connection.write(head + body.prefix(100_000))
            }
            let from = Int(range.dropFirst("bytes=".count).dropLast()) ?? 0
            let fields = "\(validator)Content-Range: bytes \(from)-299999/300000\r\n"
            if seen.all.count == 2 {
                let head = "HTTP/1.1 206 Partial Content\r\n\(fields)Content-Length: \(300_000 - from)\r\n\r\n"
                return try connection.write(head + body.dropFirst(from).prefix(50_000))
            }
            try connection.answer("206 Partial Content", headers: fields, String(body.dropFirst(from)))
        }
        let shelf = try Shelf()
        for place in [100_000, 150_000] as [Int64] {
            // A part-file opened anew each time: as a later process does.
            let open = try await shelf.downloader.open(Download(target: shelf.target))
            let request = HTTPRequest("GET", try server.url(), headers: open.headers)
            let error = await #expect(throws: TransferError.self) { try await shelf.downloader.fetch(open, request) }
            #expect(error?.code == .connectionLost)
            #expect(open.position == place)
        }
        #expect(try await shelf.fetch(Download(target: shelf.target), server).size == 300_000)
        #expect(try shelf.content() == body)
        #expect(seen.all.map { $0.headers["range"] } == [nil, "bytes=100000-", "bytes=150000-"])
        let wanted = validator.hasPrefix("ETag") ? "\"v1\"" : "Sun, 06 Nov 1994 08:49:37 GMT"
        #expect(seen.all.map { $0.headers["if-range"] } == [nil, wanted, wanted])
        #expect(try shelf.names() == ["picture.png"])
    }

    @Test func `without a validator a cut download begins anew`() async throws {
        let seen = Seen<String?>()
        let server = try ScriptedServer { connection in
            seen.append(try connection.readRequest().headers["range"])
            if seen.all.count == 1 { return try connection.write("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nabc") }
            try connection.answer("200 OK", "abcdef")
        }
        let shelf = try Shelf()
        _ = try await shelf.fetch(Download(target: shelf.target), server)
        #expect(try shelf.content() == "abcdef")
        #expect(seen.all == [nil, nil])
    }

    @Test func `a file that is another by now is fetched whole`() async throws {
        let count = Seen<Int>()
        let server = try ScriptedServer { connection in
            _ = try connection.readRequest()
            count.append(1)
            if count.all.count == 1 {
                return try connection.write("HTTP/1.1 200 OK\r\nETag: \"old\"\r\nContent-Length: 6\r\n\r\nabc")
            }
            try connection.answer(headers: "ETag: \"new\"\r\n", "uvwxyz!")
        }
        let shelf = try Shelf()
        let errors = Seen<ErrorCode>()
        _ = try await shelf.fetch(Download(target: shelf.target), server, errors: errors)
        #expect(try shelf.content() == "uvwxyz!")
        #expect(errors.all == [.connectionLost])
    }

    @Test(arguments: [
        ("206 Partial Content", "Content-Range: bytes 2-5/6\r\nETag: \"old\"\r\n"),
        ("206 Partial Content", "Content-Range: bytes 3-5/7\r\nETag: \"old\"\r\n"),
        ("206 Partial Content", "Content-Range: bytes 3-5/6\r\nETag: \"new\"\r\n"),
        ("206 Partial Content", ""), ("416 Range Not Satisfiable", "Content-Range: bytes */2\r\n"),
    ])
    func `a rest that does not fit is never put together`(status: String, fields: String) async throws {
        let seen = Seen<String?>()
        let server = try ScriptedServer { connection in
            seen.append(try connection.readRequest().headers["range"])
            switch seen.all.count {
            case 1: try connection.write("HTTP/1.1 200 OK\r\nETag: \"old\"\r\nContent-Length: 6\r\n\r\nabc")
            case 2: try connection.answer(status, headers: fields, "def")
            default: try connection.answer(headers: "ETag: \"new\"\r\n", "uvwxyz")
            }
        }
        let shelf = try Shelf()
        _ = try await shelf.fetch(Download(target: shelf.target), server)
        #expect(try shelf.content() == "uvwxyz")
        #expect(seen.all == [nil, "bytes=3-", nil])
    }

    @Test(arguments: ["404 Not Found", "403 Forbidden", "503 Busy", "302 Found"])
    func `an answer that is no file goes to the caller`(status: String) async throws {
        let server = try ScriptedServer { connection in
            _ = try connection.readRequest()
            try connection.answer(status, headers: "Location: /elsewhere\r\n", "why")
        }
        let shelf = try Shelf()
        let open = try await shelf.downloader.open(Download(target: shelf.target))
        let answer = try await shelf.downloader.fetch(open, HTTPRequest("GET", try server.url()))
        let response = try #require(answer)
        #expect(response.body == Array("why".utf8))
        #expect(String(response.status) == status.prefix(3))
        #expect(server.connections == 1)
        #expect(open.position == 0)
    }

    @Test func `a long answer needs no known length where its end is told`() async throws {
        let server = try ScriptedServer { connection in
            _ = try connection.readRequest()
            try connection.write(
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")
        }
        let shelf = try Shelf()
        _ = try await shelf.fetch(Download(target: shelf.target), server)
        #expect(try shelf.content() == "abcde")
    }

    @Test func `an answer whose end could be a cut is refused`() async throws {
        let server = try ScriptedServer { connection in
            _ = try connection.readRequest()
            try connection.write("HTTP/1.1 200 OK\r\n\r\nabc")
        }
        let shelf = try Shelf()
        let open = try await shelf.downloader.open(Download(target: shelf.target))
        let request = HTTPRequest("GET", try server.url())
        let error = await #expect(throws: TransferError.self) { try await shelf.downloader.fetch(open, request) }
        #expect(error?.code == .badAnswer)
    }
}

@Suite(.timeLimit(.minutes(15))) struct DownloadCheckTests {
    private func server(_ fields: String = "", _ body: String = "abcdef") throws -> ScriptedServer {
        try ScriptedServer { connection in
            while true {
                _ = try connection.readRequest()
                try connection.answer(headers: fields, body)
            }
        }
    }

    private func failure(_ shelf: Shelf, _ download: Download, _ server: ScriptedServer) async throws -> ErrorCode? {
        let url = try server.url()
        do throws(TransferError) {
            let open = try await shelf.downloader.open(download)
            let request = HTTPRequest("GET", url, headers: open.headers)
            _ = try await shelf.downloader.fetch(open, request)
            _ = try await shelf.downloader.finish(open)
            return nil
        } catch {
            return error.code
        }
    }

    @Test func `a length or checksum that differs keeps the file out`() async throws {
        let shelf = try Shelf()
        let wrong = Digest(.md5, Array(repeating: 7, count: 16))
        let downloads: [(Download, ErrorCode)] = [
            (Download(target: shelf.target, digest: wrong), .corrupted),
            (Download(target: shelf.target, limit: 5), .answerTooLarge),
        ]
        for (download, code) in downloads {
            #expect(try await failure(shelf, download, server()) == code)
            #expect(try !shelf.names().contains("picture.png"))
        }
        let right = Download(target: shelf.target, digest: Checksum.md5("abcdef".utf8), limit: 6)
        #expect(try await failure(shelf, right, server()) == nil)
        #expect(try shelf.content() == "abcdef")
    }

    @Test(arguments: [
        "Repr-Digest: sha-256=:%:\r\n", "x-amz-checksum-sha256: %\r\n", "repr-digest: md5=:eA==:, sha-256=:%:\r\n",
    ])
    func `a checksum that the server gives is held against the content`(field: String) async throws {
        let shelf = try Shelf()
        let sums = ["abcdef", "abcdeX"].map { Data(Checksum.sha256($0.utf8).bytes).base64EncodedString() }
        let fields = sums.map { field.replacing("%", with: $0) }
        #expect(try await failure(shelf, Download(target: shelf.target), server(fields[1])) == .corrupted)
        #expect(try !shelf.names().contains("picture.png"))
        #expect(try await failure(shelf, Download(target: shelf.target), server(fields[0])) == nil)
    }

    @Test func `a file that is there is replaced only where that was said`() async throws {
        let shelf = try Shelf()
        try shelf.directory.write("mine".utf8, to: "picture.png")
        #expect(try await failure(shelf, Download(target: shelf.target), server()) == .destinationExists)
        #expect(try shelf.content() == "mine")
        #expect(try await failure(shelf, Download(target: shelf.target, replaces: true), server()) == nil)
        #expect(try shelf.content() == "abcdef")
    }

    @Test func `two do not write one file, and what was given up can be dropped`() async throws {
        let shelf = try Shelf()
        let download = Download(target: shelf.target)
        let first = try await shelf.downloader.open(download)
        #expect(try await failure(shelf, download, server()) == .conflict)
        // Somebody is at it.
        try await shelf.downloader.discard(download)
        #expect(try shelf.names() == [".picture.png.inlet-part"])
        withExtendedLifetime(first) {}
    }

    @Test func `dropping leaves nothing, twice`() async throws {
        let shelf = try Shelf()
        let download = Download(target: shelf.target)
        let cut = try ScriptedServer { connection in
            _ = try connection.readRequest()
            try connection.write("HTTP/1.1 200 OK\r\nETag: \"v\"\r\nContent-Length: 6\r\n\r\nabc")
        }
        #expect(try await failure(shelf, download, cut) == .connectionLost)
        #expect(try shelf.names() == [".picture.png.inlet-part", ".picture.png.inlet-part.tag"])
        for _ in 1...2 { try await shelf.downloader.discard(download) }
        #expect(try shelf.names() == [])
    }

    @Test func `a cancelled download ends at once and keeps what came`() async throws {
        let server = try ScriptedServer { connection in
            _ = try connection.readRequest()
            try connection.write("HTTP/1.1 200 OK\r\nETag: \"v\"\r\nContent-Length: 600000\r\n\r\n" + text(1000))
            connection.waitForEnd()
        }
        let shelf = try Shelf()
        let came = Seen<Int64>()
        let open = try await shelf.downloader.open(Download(target: shelf.target) { done, _ in came.append(done) })
        let request = HTTPRequest("GET", try server.url())
        let task = Task { try await shelf.downloader.fetch(open, request) }
        try await eventually("bytes have come") { came.all.last == 1000 }
        task.cancel()
        let error = await #expect(throws: TransferError.self) { try await task.value }
        #expect(error?.code == .cancelled)
        #expect(open.position == 1000)
        #expect(open.headers.first?.value == "bytes=1000-")
    }

    @Test func `what is fetched into an open folder goes there, whatever is in its place by then`() async throws {
        let shelf = try Shelf()
        let (sub, moved) = (try shelf.directory.makeDirectory("sub"), shelf.directory.path.appending("moved"))
        let outside = try shelf.directory.makeDirectory("outside")
        let download = Download(target: sub.appending("picture.png"), in: try Folder(sub))
        try FileManager.default.moveItem(atPath: sub.string, toPath: moved.string)
        try FileManager.default.createSymbolicLink(atPath: sub.string, withDestinationPath: outside.string)
        #expect(try await failure(shelf, download, server()) == nil)
        #expect(try FileManager.default.contentsOfDirectory(atPath: outside.string) == [])
        #expect(try FileManager.default.contentsOfDirectory(atPath: moved.string) == ["picture.png"])
        try await shelf.downloader.discard(download)
    }

    @Test func `a name of the longest kind has a part-file too`() async throws {
        let shelf = try Shelf()
        let name = String(repeating: "ü", count: 125) + ".png"
        let target = shelf.directory.path.appending(name)
        #expect(try await failure(shelf, Download(target: target), server()) == nil)
        #expect(try shelf.names() == [name])
    }
}

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
        #expect(DownloadTag.range("bytes 5-9/10").map { [$0.first, $0.last, $0.total] } == [5, 9, 10])
        for text in [
            nil, "", "bytes", "bytes 5-9/*", "bytes */10", "bytes 9-5/10", "bytes 5-10/10", "items 5-9/10",
            "bytes -5-9/10",
            "bytes 5-9/10, 11-12/13", "bytes 5 - 9/10", "bytes 5-9/99999999999999999999", "bytes +5-9/10",
        ] as [String?] {
            #expect(DownloadTag.range(text) == nil, "\(text ?? "nil")")
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
                    ("x-amz-checksum-crc64nvme", "AAAAAAAAAAI="), ("Content-MD5", "x"),
                ]))
        #expect(tag.digests == [Digest(.crc32c, [0, 0, 0, 1]), Digest(.crc64nvme, [0, 0, 0, 0, 0, 0, 0, 2])])
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

/// A file on a loopback server, and the folder that it is fetched into.
struct Shelf {
    let directory: TemporaryDirectory
    let client = makeClient()
    let pool = BlockingPool(name: "downloads", threads: 2)

    init() throws { directory = try TemporaryDirectory() }

    var downloader: Downloader { Downloader(client: client, pool: pool) }
    var target: FilePath { directory.path.appending("picture.png") }

    /// Requests until all is there, as often as that takes, each error in its turn.
    func fetch(_ download: Download, _ server: ScriptedServer, errors: Seen<ErrorCode> = Seen()) async throws
        -> Downloaded
    {
        let open = try await downloader.open(download)
        let url = try server.url("/x")
        for _ in 1...10 {
            do throws(TransferError) {
                let request = HTTPRequest("GET", url, headers: open.headers)
                if try await downloader.fetch(open, request) == nil { return try await downloader.finish(open) }
            } catch {
                errors.append(error.code)
            }
        }
        throw TransferError(.internalFault, "not in ten requests", isOutage: false)
    }

    func content() throws -> String { try String(contentsOfFile: target.string, encoding: .utf8) }

    func names() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: directory.path.string).sorted()
    }
}

/// Text without a short period.
func text(_ count: Int) -> String { String(pattern(count / 2 + 1).hex.prefix(count)) }
