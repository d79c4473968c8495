import Foundation
import InletCore
import InletLinux
import InletTestSupport
import InletTransfer
import SystemPackage
import Testing

@Suite(.timeLimit(.minutes(8))) struct DownloaderTests {
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
        let response = try #require(answer.refusal)
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
