import InletCore
import InletLinux
import InletTestSupport
import InletTransfer
import SystemPackage
import Testing

@Suite(.timeLimit(.minutes(8))) struct HTTPClientTests {
    /// Answers every request of a connection with 200 and keeps what came.
    private func recorder(_ seen: Seen<ReceivedRequest>) throws -> ScriptedServer {
        try ScriptedServer { connection in
            while true {
                seen.append(try connection.readRequest())
                try connection.answer(headers: "ETag: \"abc\"\r\nX-Two: 1\r\nx-two:  2 \r\n", "hello")
            }
        }
    }

    @Test func `an answer comes back with status, headers in any case and body`() async throws {
        let seen = Seen<ReceivedRequest>()
        let server = try recorder(seen)
        let answer = try await makeClient().send(HTTPRequest("GET", server.url("/a?b=c"), headers: [("X-Key", "v 1")]))
        #expect(answer.status == 200)
        #expect(answer.header("etag") == "\"abc\"")
        #expect(answer.headers.filter { $0.name.lowercased() == "x-two" }.map(\.value) == ["1", "2"])
        #expect(answer.body == Array("hello".utf8))
        let request = try #require(seen.all.first)
        #expect(request.line == "GET /a?b=c HTTP/1.1")
        #expect(request.headers["x-key"] == "v 1")
        #expect(request.headers["user-agent"] == "inlet-tests/1")
        #expect(request.headers["content-length"] == nil)
        #expect(request.headers["accept-encoding"] == nil)
    }

    @Test(arguments: ["PUT", "POST", "PATCH"])
    func `a body arrives byte for byte with its length and without waiting for 100`(method: String) async throws {
        let seen = Seen<ReceivedRequest>()
        let server = try recorder(seen)
        let bytes = pattern(300_001)
        _ = try await makeClient().send(HTTPRequest(method, server.url(), body: .bytes(bytes)))
        let request = try #require(seen.all.first)
        #expect(request.line == "\(method) / HTTP/1.1")
        #expect(request.body == bytes)
        #expect(request.headers["content-length"] == "300001")
        #expect(request.headers["expect"] == nil)
        #expect(request.headers["transfer-encoding"] == nil)
    }

    @Test(arguments: ["PUT", "POST"]) func `an empty body still has a length`(method: String) async throws {
        let seen = Seen<ReceivedRequest>()
        let server = try recorder(seen)
        _ = try await makeClient().send(HTTPRequest(method, server.url()))
        _ = try await makeClient().send(HTTPRequest(method, server.url(), body: .bytes([])))
        #expect(seen.all.map { $0.headers["content-length"] } == ["0", "0"])
    }

    @Test func `HEAD and DELETE carry no body and no length`() async throws {
        let seen = Seen<String>()
        let server = try ScriptedServer { connection in
            while true {
                let request = try connection.readRequest()
                seen.append(request.line + (request.headers["content-length"] ?? ""))
                try connection.write("HTTP/1.1 200 OK\r\nContent-Length: ")
                try connection.write(request.line.hasPrefix("HEAD") ? "999\r\n\r\n" : "0\r\n\r\n")
            }
        }
        let client = makeClient()
        #expect(try await client.send(HTTPRequest("HEAD", server.url("/h"))).header("Content-Length") == "999")
        #expect(try await client.send(HTTPRequest("DELETE", server.url("/d"))).status == 200)
        #expect(seen.all == ["HEAD /h HTTP/1.1", "DELETE /d HTTP/1.1"])
    }

    @Test(arguments: [(0, 1), (5, 100_000), (999_999, 1), (1_000_000, 0), (0, 1_000_000)])
    func `a slice is exactly its bytes`(offset: Int, length: Int) async throws {
        let seen = Seen<ReceivedRequest>()
        let server = try recorder(seen)
        let directory = try TemporaryDirectory()
        let bytes = pattern(1_000_000)
        let source = try SourceFile(opening: directory.write(bytes, to: "source"))
        let meter = TransferMeter()
        let body = HTTPBody.slice(source, offset: Int64(offset), length: Int64(length))
        _ = try await makeClient().send(HTTPRequest("PUT", server.url(), body: body), meter: meter)
        #expect(seen.all.first?.body == Array(bytes[offset..<offset + length]))
        #expect(seen.all.first?.headers["content-length"] == "\(length)")
        #expect(meter.bytesSent == Int64(length))
    }

    @Test func `ten at once all get their own answer`() async throws {
        let server = try ScriptedServer { connection in
            while true { try connection.answer("200 OK", connection.readRequest().line) }
        }
        let client = makeClient()
        let answers = try await withThrowingTaskGroup(of: (Int, String).self) { group in
            for number in 0..<10 {
                let request = HTTPRequest("PUT", try server.url("/\(number)"), body: .bytes(pattern(100_000)))
                group.addTask { (number, String(decoding: try await client.send(request).body, as: UTF8.self)) }
            }
            return try await group.reduce(into: [:]) { $0[$1.0] = $1.1 }
        }
        #expect(answers == Dictionary(uniqueKeysWithValues: (0..<10).map { ($0, "PUT /\($0) HTTP/1.1") }))
    }

    @Test func `one connection serves many requests`() async throws {
        let seen = Seen<ReceivedRequest>()
        let server = try recorder(seen)
        let client = makeClient()
        for number in 0..<20 {
            _ = try await client.send(HTTPRequest("PUT", server.url(), body: .bytes([UInt8(number)])))
        }
        #expect(seen.all.map(\.body) == (0..<20).map { [UInt8($0)] })
        #expect(server.connections == 1)
    }

    @Test func `a host never gets more connections than allowed`() async throws {
        let server = try ScriptedServer { connection in
            while true {
                _ = try connection.readRequest()
                try connection.answer()
            }
        }
        let client = makeClient(connectionsPerHost: 2)
        let request = HTTPRequest("GET", try server.url())
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<40 { group.addTask { _ = try await client.send(request) } }
            try await group.waitForAll()
        }
        #expect(server.connections <= 2)
    }

    @Test func `large bodies, however many, leave connections to small requests`() async throws {
        let (large, others) = (Seen<Bool>(), Seen<Bool>())
        let server = try ScriptedServer { connection in
            while true {
                if try connection.readHead().line.hasPrefix("PUT") {
                    large.append(true)
                    return connection.waitForEnd()
                }
                others.append(true)
                try connection.answer()
            }
        }
        let (client, body) = (makeClient(connectionsPerHost: 32), pattern(2 << 20))
        let requests = try (0..<40).map { HTTPRequest("PUT", try server.url("/\($0)"), body: .bytes(body)) }
        let sending = requests.map { request in Task { await failure(client, request) } }
        // 25 of 28 on the first thread, 3 of 4 on the second.
        try await eventually("what may be on its way is") { large.all.count == 28 }
        for _ in 0..<10 { #expect(try await client.send(HTTPRequest("GET", server.url())).status == 200) }
        #expect(others.all.count == 10 && large.all.count == 28)
        for task in sending { task.cancel() }
        for task in sending { #expect(await task.value?.code == .cancelled) }
    }

    @Test func `a connection that died while idle is replaced, and the body sent again`() async throws {
        let seen = Seen<ReceivedRequest>()
        let server = try ScriptedServer { connection in
            seen.append(try connection.readRequest())
            try connection.answer()
        }
        let directory = try TemporaryDirectory()
        let bytes = pattern(200_000)
        let body = HTTPBody.slice(
            try SourceFile(opening: directory.write(bytes, to: "source")), offset: 0, length: 200_000)
        let client = makeClient()
        let meter = TransferMeter()
        for _ in 0..<5 { _ = try await client.send(HTTPRequest("PUT", server.url(), body: body), meter: meter) }
        #expect(seen.all.map(\.body) == Array(repeating: bytes, count: 5))
        #expect(meter.bytesSent == 1_000_000)
    }

    @Test func `a redirect is an answer, not a way`() async throws {
        let seen = Seen<ReceivedRequest>()
        let other = try recorder(seen)
        let target = try other.url("/elsewhere").text
        let server = try ScriptedServer { connection in
            _ = try connection.readRequest()
            try connection.answer("307 Temporary Redirect", headers: "Location: \(target)\r\n")
        }
        let answer = try await makeClient().send(HTTPRequest("PUT", server.url(), body: .bytes([1, 2, 3])))
        #expect(answer.status == 307)
        #expect(answer.header("Location") == target)
        #expect(seen.all.isEmpty)
    }

    @Test func `interim answers are skipped and chunks joined`() async throws {
        let server = try ScriptedServer { connection in
            _ = try connection.readRequest()
            try connection.write("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 201 Created\r\n")
            try connection.write("Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")
        }
        let answer = try await makeClient().send(HTTPRequest("GET", server.url()))
        #expect(answer.status == 201)
        #expect(answer.header("Link") == nil)
        #expect(answer.body == Array("abcde".utf8))
    }

    @Test func `a Unix socket takes the place of host and port`() async throws {
        let directory = try TemporaryDirectory()
        let socket = directory.path.appending("s")
        let server = try ScriptedServer(unixSocket: socket) { connection in
            try connection.answer("200 OK", connection.readRequest().line)
        }
        let url = try HTTPURL("http://localhost/v1/state", rules: .configured(allowHTTP: false))
        let answer = try await makeClient().send(HTTPRequest("GET", url, unixSocket: socket))
        #expect(answer.body == Array("GET /v1/state HTTP/1.1".utf8))
        #expect(server.connections == 1)
    }
}
