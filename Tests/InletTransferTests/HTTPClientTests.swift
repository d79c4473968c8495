import Foundation
import InletCore
import InletLinux
import InletTestSupport
import Synchronization
import SystemPackage
import Testing

@testable import InletTransfer

@Suite(.timeLimit(.minutes(15))) struct HTTPClientTests {
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

/// A file between two texts, as one body.
@Suite(.timeLimit(.minutes(15))) struct HTTPClientFormTests {
    private static let header = Array("--b\r\nContent-Disposition: form-data; name=\"file\"\r\n\r\n".utf8)
    private static let footer = Array("\r\n--b--\r\n".utf8)

    private static func form(_ source: SourceFile, _ offset: Int, _ length: Int) -> HTTPBody {
        .form(header: header, source, offset: Int64(offset), length: Int64(length), footer: footer)
    }

    @Test(arguments: [(0, 0), (0, 1), (7, 100_000), (0, 1_000_000), (999_999, 1)])
    func `a form is header, bytes and footer, and only the file's count`(offset: Int, length: Int) async throws {
        let bytes = pattern(1_000_000)
        let directory = try TemporaryDirectory()
        let source = try SourceFile(opening: directory.write(bytes, to: "f"))
        let seen = Seen<ReceivedRequest>()
        let server = try ScriptedServer { connection in
            seen.append(try connection.readRequest())
            try connection.answer("201 Created")
        }
        let meter = TransferMeter()
        let request = HTTPRequest("POST", try server.url(), body: Self.form(source, offset, length))
        #expect(try await makeClient().send(request, meter: meter).status == 201)
        let got = try #require(seen.all.first)
        #expect(got.body == Self.header + bytes[offset..<offset + length] + Self.footer)
        #expect(got.headers["content-length"] == String(Self.header.count + length + Self.footer.count))
        #expect(got.headers["transfer-encoding"] == nil && got.headers["expect"] == nil)
        #expect(meter.bytesSent == Int64(length))
    }

    @Test func `a form that is refused counts nothing`() async throws {
        let directory = try TemporaryDirectory()
        let source = try SourceFile(opening: directory.write(pattern(50_000), to: "f"))
        let server = try ScriptedServer { connection in
            _ = try connection.readRequest()
            try connection.answer("413 Payload Too Large")
        }
        let meter = TransferMeter()
        let request = HTTPRequest("POST", try server.url(), body: Self.form(source, 0, 50_000))
        #expect(try await makeClient().send(request, meter: meter).status == 413)
        #expect(meter.bytesSent == 0)
    }

    @Test func `the end of a form is held back from a file that was written to`() async throws {
        let directory = try TemporaryDirectory()
        let path = try directory.write(pattern(100_000), to: "f")
        let source = try SourceFile(opening: path)
        let file = try FileDescriptor.open(path, .writeOnly, options: .closeOnExec)
        try file.closeAfter { _ = try file.writeAll(toAbsoluteOffset: 5, [1, 2, 3]) }
        let seen = Seen<ReceivedRequest>()
        let server = try ScriptedServer { connection in seen.append(try connection.readRequest()) }
        let error = await failure(
            makeClient(), HTTPRequest("POST", try server.url(), body: Self.form(source, 0, 100_000)))
        #expect(seen.all.isEmpty)
        #expect(error?.code == .sourceChanged)
    }

    @Test func `progress of a form is that of its file`() throws {
        let directory = try TemporaryDirectory()
        let source = try SourceFile(opening: directory.write(pattern(100), to: "f"))
        let body = Self.form(source, 0, 100)
        let start = Int64(Self.header.count)
        let table: [(Int64, Int64)] = [
            (0, 0), (start - 1, 0), (start, 0), (start + 1, 1), (start + 100, 100), (body.length, 100),
        ]
        for (sent, counted) in table { #expect(body.payload(in: sent) == counted) }
        #expect(HTTPBody.bytes([1, 2, 3]).payload(in: 2) == 2)
    }

    @Test func `a server may work in silence longer than a line may stall`() {
        let start = ContinuousClock.now
        func deadlines() -> Deadlines {
            Deadlines(
                stall: .seconds(60), silence: .seconds(330), answer: .seconds(330), sendsBody: true, now: start)
        }
        let stalled = deadlines()
        #expect(stalled.verdict(at: start.advanced(by: .seconds(60))) == .stalled)
        var working = deadlines()
        working.bodyEnded(at: start)
        #expect(working.verdict(at: start.advanced(by: .seconds(329))) == nil)
        #expect(working.next == start.advanced(by: .seconds(330)))
        #expect(working.verdict(at: start.advanced(by: .seconds(330))) == .timedOut)
        var dripping = deadlines()
        dripping.bodyEnded(at: start)
        dripping.answerMoved(at: start)
        #expect(dripping.verdict(at: start.advanced(by: .seconds(60))) == .stalled)
    }
}

/// A hash that moves on.
struct RunningHashTests {
    private let pool = BlockingPool(name: "hash", threads: 1)

    @Test(arguments: 0..<20 as Range<UInt64>)
    func `steps of any size come to the hash of the whole`(_ seed: UInt64) async throws {
        var generator = SeededGenerator(seed: seed)
        let size = Int.random(in: 0...700_000, using: &generator)
        let bytes = pattern(size, seed: seed + 1)
        let directory = try TemporaryDirectory()
        let source = try SourceFile(opening: directory.write(bytes, to: "f"))
        var hash = RunningHash()
        for _ in 0..<5 {
            // Also backwards, which changes nothing.
            let end = Int64.random(in: 0...Int64(size), using: &generator)
            hash = try await hash.advanced(to: end, of: source, on: pool)
            #expect(hash.digest == Checksum.sha256(bytes[..<Int(hash.position)]))
        }
        hash = try await hash.advanced(to: Int64(size), of: source, on: pool)
        #expect(hash.digest == Checksum.sha256(bytes))
    }
}

@Suite(
    .serialized, .timeLimit(.minutes(15)),
    .enabled(if: FileManager.default.isExecutableFile(atPath: TLSServer.path)))
struct HTTPClientTLSTests {
    private func url(_ server: TLSServer, host: String = "127.0.0.1") throws -> HTTPURL {
        try HTTPURL("https://\(host):\(server.port)/", rules: .configured(allowHTTP: false))
    }

    @Test func `an unknown certificate is refused, and taken when ca_file names it`() async throws {
        let server = try TLSServer()
        let error = try #require(await failure(makeClient(), HTTPRequest("GET", url(server))))
        #expect(error.code == .tlsFailed)
        #expect(error.reason.contains("ca_file"))
        let trusting = makeClient(trust: Trust(caFile: server.certificate))
        #expect(try await trusting.send(HTTPRequest("GET", url(server))).status == 200)
    }

    @Test func `a trusted certificate for another name is refused`() async throws {
        let server = try TLSServer()
        let trusting = makeClient(trust: Trust(caFile: server.certificate))
        let error = await failure(trusting, HTTPRequest("GET", try url(server, host: "localhost")))
        #expect(error?.code == .tlsFailed)
    }

    @Test func `a ca_file that is missing is named as the cause`() async throws {
        let server = try TLSServer()
        let error = await failure(
            makeClient(trust: Trust(caFile: "/nonexistent/ca.pem")), HTTPRequest("GET", try url(server)))
        #expect(error?.code == .tlsFailed)
        #expect(error?.reason.contains("ca_file") == true)
    }

    /// The server closes after each answer, and says in it whether the handshake was a whole one.
    @Test(arguments: ["-tls1_3", "-tls1_2"])
    func `a second connection resumes the session of the first`(_ version: String) async throws {
        let server = try TLSServer([version])
        let client = makeClient(trust: Trust(caFile: server.certificate))
        var handshakes: [Substring] = []
        for _ in 1...3 {
            let said = try await client.send(HTTPRequest("GET", url(server))).body
            handshakes += String(decoding: said, as: UTF8.self).split(separator: "\n").compactMap {
                $0.hasPrefix("New, ") || $0.hasPrefix("Reused, ") ? $0.prefix { $0 != "," } : nil
            }
        }
        #expect(handshakes == ["New", "Reused", "Reused"])
        // A resumed handshake shows no certificate.
        #expect(try await client.pin(of: url(server)) != nil)
    }

    @Test func `a session is not resumed with a server that is trusted otherwise`() async throws {
        let server = try TLSServer()
        let trusting = makeClient(trust: Trust(caFile: server.certificate))
        #expect(try await trusting.send(HTTPRequest("GET", url(server))).status == 200)
        #expect(await failure(makeClient(), HTTPRequest("GET", try url(server)))?.code == .tlsFailed)
    }

    @Test func `a server that speaks no TLS is a TLS failure`() async throws {
        let server = try ScriptedServer { connection in
            try connection.write("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
            connection.waitForEnd()
        }
        let url = try HTTPURL("https://127.0.0.1:\(server.port)/", rules: .configured(allowHTTP: false))
        #expect(await failure(makeClient(), HTTPRequest("GET", url))?.code == .tlsFailed)
    }
}

extension ScriptedServer {
    func url(_ path: String = "/") throws -> HTTPURL {
        try HTTPURL("http://127.0.0.1:\(port)\(path)", rules: .configured(allowHTTP: false))
    }
}

/// What a script has seen, for the test to read.
final class Seen<Value: Sendable>: Sendable {
    private let values = Mutex<[Value]>([])

    func append(_ value: Value) { values.withLock { $0.append(value) } }

    var all: [Value] { values.withLock { $0 } }
}

func makeClient(trust: Trust = .system, connectionsPerHost: Int = 32) -> HTTPClient {
    HTTPClient(trust: trust, connectionsPerHost: connectionsPerHost, userAgent: "inlet-tests/1")
}

/// The error of a send that must fail; an answer comes back as a failed expectation of the caller.
func failure(_ client: HTTPClient, _ request: HTTPRequest, meter: TransferMeter? = nil) async -> TransferError? {
    do throws(TransferError) {
        _ = try await client.send(request, meter: meter)
        return nil
    } catch { return error }
}

/// The fastest of up to five attempts, as soon as one takes less than `bound`: a busy machine makes some of them late, what
/// is slow by itself is slow each time.
func fastest(below bound: Duration, _ attempt: () async throws -> Duration) async throws -> Duration {
    var best = try await attempt()
    for _ in 0..<4 where best >= bound { best = min(best, try await attempt()) }
    return best
}

/// `count` bytes that differ from place to place.
func pattern(_ count: Int, seed: UInt64 = 1) -> [UInt8] {
    var generator = SeededGenerator(seed: seed)
    // A prime number of words, so that no block size of anyone's is a multiple of the period.
    let words = (0..<10_007).map { _ in generator.next() }
    return words.withUnsafeBytes { period in
        var bytes: [UInt8] = []
        bytes.reserveCapacity(count + period.count)
        while bytes.count < count { bytes.append(contentsOf: period) }
        return Array(bytes.prefix(count))
    }
}

/// A sparse file of `size` bytes.
func sparseFile(_ directory: TemporaryDirectory, size: Int64) throws -> FilePath {
    let path = directory.path.appending("sparse")
    let descriptor = try FileDescriptor.open(
        path, .writeOnly, options: [.create, .closeOnExec], permissions: [.ownerReadWrite])
    try descriptor.closeAfter { try descriptor.resize(to: size) }
    return path
}
