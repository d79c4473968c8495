import InletCore
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

@testable import InletTransfer

/// Handles are used again, and nothing of a request with them.
@Suite(.timeLimit(.minutes(15))) struct CurlHandlesTests {
    private struct NoSink: ResponseSink {
        func begins(_ head: HTTPResponse) throws(TransferError) -> Bool { false }
        func take(_ piece: UnsafeRawBufferPointer) throws(TransferError) {}
    }

    private static func submission(certificate: Bool = false, sink: Bool = false) async throws -> Submission {
        var request = HTTPRequest("GET", try HTTPURL("http://127.0.0.1:9/", rules: .configured(allowHTTP: false)))
        request.readsCertificate = certificate
        let held = Seen<Submission>()
        _ = await withCheckedContinuation { continuation in
            let submission = Submission(
                request, lane: nil, sink: sink ? NoSink() : nil, proxy: nil, CancellationToken(), continuation)
            held.append(submission)
            submission.end(.failure(submission.cancellation))
        }
        return try #require(held.all.first)
    }

    @Test func `a handle is used again after a request that ended well, and only then`() async throws {
        let usual = try await Self.submission()
        var handles = CurlHandles(most: 2)
        let taken = handles.take(for: usual)
        let easy = try #require(taken)
        easy.add(field: "Authorization: secret")
        easy.setFields()
        handles.giveBack(easy, of: usual, isWell: true)
        #expect(handles.count == 1)
        let again = handles.take(for: usual)
        #expect(again === easy && handles.count == 0)
        handles.giveBack(easy, of: usual, isWell: false)
        #expect(handles.count == 0)
    }

    @Test func `no more are kept than may be`() async throws {
        let usual = try await Self.submission()
        var handles = CurlHandles(most: 2)
        let taken = (0..<5).compactMap { _ in handles.take(for: usual) }
        #expect(taken.count == 5)
        for easy in taken { handles.giveBack(easy, of: usual, isWell: true) }
        #expect(handles.count == 2)
    }

    @Test(arguments: [(true, false), (false, true)])
    func `what reads a certificate or a download has a handle of its own`(
        _ certificate: Bool, _ sink: Bool
    ) async throws {
        let (usual, other) = (
            try await Self.submission(), try await Self.submission(certificate: certificate, sink: sink)
        )
        var handles = CurlHandles(most: 2)
        let taken = handles.take(for: usual)
        let easy = try #require(taken)
        handles.giveBack(easy, of: usual, isWell: true)
        let special = handles.take(for: other)
        let own = try #require(special)
        #expect(own !== easy)
        handles.giveBack(own, of: other, isWell: true)
        #expect(handles.count == 1)
    }

    // MARK: - On the wire

    /// A request of any kind: with secrets, bodies that are read, inline or missing, and refusals.
    private static func request(
        _ server: ScriptedServer, _ source: SourceFile, _ generator: inout SeededGenerator
    ) throws -> HTTPRequest {
        let method = ["GET", "HEAD", "PUT", "POST", "PATCH", "DELETE"].randomElement(using: &generator) ?? "GET"
        var headers: HTTPFields = []
        let names = ["Authorization", "Content-Type", "Content-MD5", "X-Api-Key", "x-amz-security-token", "X-Empty"]
        for name in names where Int.random(in: 0..<3, using: &generator) == 0 {
            headers.append(
                (name, name == "X-Empty" ? "" : "secret-\(Int.random(in: 0..<1_000_000, using: &generator))"))
        }
        let length = [0, 1, 900, 65_536, 65_537, 300_000].randomElement(using: &generator) ?? 0
        let isBodyless = ["GET", "HEAD", "DELETE"].contains(method)
        let body: HTTPBody =
            switch isBodyless ? 0 : Int.random(in: 0..<3, using: &generator) {
            case 0: .none
            case 1: .bytes(pattern(length, seed: generator.next()))
            default: .slice(source, offset: 7, length: Int64(length))
            }
        let status = [200, 200, 204, 404, 500].randomElement(using: &generator) ?? 200
        let path = "/\(Int.random(in: 0..<1000, using: &generator))?status=\(status)&signature=secret"
        return HTTPRequest(method, try server.url(path), headers: headers, body: body)
    }

    @Test(arguments: 1...6 as ClosedRange<UInt64>)
    func `a request looks as it would with a handle of its own`(_ seed: UInt64) async throws {
        let seen = Seen<ReceivedRequest>()
        let server = try ScriptedServer { connection in
            while true {
                let request = try connection.readRequest()
                seen.append(request)
                let status = request.line.contains("status=204") ? "204 No Content" : "200 OK"
                let refused = ["404", "500"].first { request.line.contains("status=\($0)") }
                let length = status.hasPrefix("204") ? "" : "Content-Length: 0\r\n"
                try connection.write("HTTP/1.1 \(refused.map { "\($0) No" } ?? status)\r\n\(length)\r\n")
            }
        }
        let directory = try TemporaryDirectory()
        let source = try SourceFile(opening: directory.write(pattern(400_000), to: "source"))
        let client = makeClient(connectionsPerHost: 1)
        var generator = SeededGenerator(seed: seed)
        for _ in 0..<40 {
            let request = try Self.request(server, source, &generator)
            let again = try await client.send(request)
            let first = try await makeClient().send(request)
            #expect(again.status == first.status)
            let pair = seen.all.suffix(2)
            let (one, two) = (try #require(pair.first), try #require(pair.last))
            #expect(one.line == two.line && one.headers == two.headers && one.body == two.body, "seed \(seed)")
        }
    }

    /// A body that does not fit into the buffer that the one before it had.
    @Test func `buffers of bodies do not outlive them`() async throws {
        let seen = Seen<Int>()
        let server = try ScriptedServer { connection in
            while true {
                seen.append(try connection.readRequest().body.count)
                try connection.answer()
            }
        }
        let client = makeClient(connectionsPerHost: 1)
        let lengths = [70_000, 16_400, 2_000_000, 70_000, 3_000_000, 66_000]
        for length in lengths {
            _ = try await client.send(HTTPRequest("PUT", server.url(), body: .bytes(pattern(length))))
            _ = try await client.send(HTTPRequest("PUT", server.url(), body: .bytes(pattern(60_000))))
        }
        #expect(seen.all == lengths.flatMap { [$0, 60_000] })
    }

    @Test func `after a lost connection the next request is a whole one`() async throws {
        let server = try ScriptedServer { connection in
            while true {
                let request = try connection.readRequest()
                if request.line.contains("/lost") { return connection.reset() }
                try connection.answer("200 OK", request.headers["x-secret"] ?? "none")
            }
        }
        let client = makeClient(connectionsPerHost: 1)
        for _ in 0..<3 {
            let lost = HTTPRequest("POST", try server.url("/lost"), headers: [("X-Secret", "1")], body: .bytes([1]))
            #expect(await failure(client, lost)?.code == .connectionLost)
            let answer = try await client.send(HTTPRequest("GET", server.url("/")))
            #expect(String(decoding: answer.body, as: UTF8.self) == "none")
        }
    }
}

/// Which thread of a client takes a request.
struct ThreadShareTests {
    @Test(arguments: [
        (32, 1, [32]), (32, 2, [28, 4]), (32, 4, [20, 4, 4, 4]), (64, 2, [56, 8]), (16, 2, [14, 2]), (8, 2, [7, 1]),
        (7, 2, [4, 3]), (4, 2, [2, 2]), (4, 4, [1, 1, 1, 1]), (2, 2, [1, 1]), (1, 1, [1]),
    ]) func `the first thread has most of the connections`(_ connections: Int, _ threads: Int, _ shares: [Int]) {
        #expect(TransferThreads.shares(of: connections, among: threads) == shares)
        #expect(shares.reduce(0, +) == connections)
    }

    private static let small: Int64 = 64 << 10
    private static let middle: Int64 = small + 1
    private static let large: Int64 = 1 << 20 + 1

    /// Loads of two threads with 28 and 4 connections, the length of a body, and the thread that it goes to.
    @Test(
        arguments: [
            // Small ones share the wake-ups of the first as long as it has a connection, whoever else is idle.
            ([0, 0], small, 0), ([27, 0], small, 0), ([27, 0], 0, 0), ([28, 0], small, 1), ([28, 3], 0, 1),
            // Others go where less is under way.
            ([0, 0], middle, 0), ([1, 0], middle, 1), ([1, 1], middle, 0), ([3, 2], middle, 1), ([5, 4], middle, 0),
            ([0, 0], large, 0), ([1, 0], large, 1), ([4, 2], large, 1),
            // Large ones leave an eighth of the connections, and at least one, to the others.
            ([4, 3], large, 0), ([25, 3], large, 1), ([25, 2], large, 1), ([24, 3], middle, 1), ([28, 3], middle, 1),
            // All are busy: the shortest queue for its connections.
            ([28, 4], small, 0), ([29, 4], small, 1), ([56, 7], small, 1), ([56, 8], small, 0), ([55, 8], large, 0),
            ([25, 4], large, 0), ([28, 3], large, 1),
        ] as [([Int], Int64, Int)])
    func `a request goes to the thread that has room for it`(_ loads: [Int], _ length: Int64, _ expected: Int) throws {
        let boxes = zip(loads, [28, 4]).map { (load: $0, share: $1) }
        #expect(TransferThreads.choice(among: boxes, length: length) == expected)
    }

    @Test func `without a thread there is none to choose`() {
        #expect(TransferThreads.choice(among: [], length: 1) == nil)
    }
}

struct UploadBuffersTests {
    /// What so many bodies of one length get, one after the other.
    private static func sizes(_ count: Int, of length: Int64) -> [Int] {
        (0..<count).reduce(into: []) { sizes, _ in
            sizes.append(UploadBuffers.size(for: length, taken: sizes.reduce(0, +)))
        }
    }

    @Test func `eight large bodies at once have a large buffer each`() {
        #expect(Self.sizes(8, of: 8 << 20) == Array(repeating: 512 << 10, count: 8))
    }

    @Test(arguments: [1, 16, 64, 256])
    func `all buffers together stay below 6 MiB and 64 KiB for each body`(count: Int) {
        let sizes = Self.sizes(count, of: .max)
        #expect(sizes.reduce(0, +) <= (6 << 20) + count * (64 << 10))
        #expect(sizes.allSatisfy { $0 >= 64 << 10 })
    }

    @Test(arguments: [(0, 16 << 10), (20_000, 20_000), (300_000, 60 << 10), (1 << 20, 60 << 10)] as [(Int64, Int)])
    func `a small body has what it fills, and libcurl its least`(length: Int64, size: Int) {
        #expect(UploadBuffers.size(for: length, taken: 0) == size)
        #expect(UploadBuffers.size(for: length, taken: 1 << 30) == size)
    }

    @Test func `what is given back can be taken again`() {
        let room = UploadBuffers()
        let first = (0..<20).map { _ in room.take(for: 8 << 20) }
        for size in first { room.giveBack(size) }
        #expect((0..<20).map { _ in room.take(for: 8 << 20) } == first)
    }
}
