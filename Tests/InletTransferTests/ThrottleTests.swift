import InletCore
import InletLinux
import InletTestSupport
import InletTransfer
import SystemPackage
import Testing

@Suite(.timeLimit(.minutes(8))) struct ThrottleTests {
    /// A server that answers every request once it has it whole, a limited and an unlimited way to it.
    private struct Place {
        let throttle = Throttle()
        let requests = Seen<ReceivedRequest>()
        let heads = Seen<String>()
        let server: ScriptedServer
        let limited: HTTPClient
        let free: HTTPClient

        init() throws {
            server = try ScriptedServer { [requests, heads] connection in
                while true {
                    var request = try connection.readHead()
                    heads.append(request.line)
                    let length = request.headers["content-length"].flatMap { Int($0) } ?? 0
                    request.body = try connection.read(length)
                    // A while for those who wait beside it.
                    if let match = request.line.firstMatch(of: /while(\d+)/), let time = Int32(match.1) {
                        _ = connection.linger(milliseconds: time)
                    }
                    requests.append(request)
                    try connection.answer()
                }
            }
            free = makeClient()
            limited = free.limited(by: throttle.lane("a"))
        }

        func put(_ path: String, _ bytes: [UInt8], stall: Duration = .seconds(60)) throws -> HTTPRequest {
            HTTPRequest("PUT", try server.url(path), body: .bytes(bytes), stallTimeout: stall)
        }

        func hasBegun(_ path: String) async throws {
            try await eventually("\(path) arrives") { heads.all.contains { $0.contains(path) } }
        }
    }

    @Test func `at a rate of nothing no request with a body is begun, others pass, and it can be cancelled`()
        async throws
    {
        let place = try Place()
        place.throttle.set(0, for: "a")
        let (client, request) = (place.limited, try place.put("/held", [1, 2, 3]))
        let held = Task { await failure(client, request) }
        #expect(try await client.send(HTTPRequest("GET", place.server.url("/get"))).status == 200)
        #expect(try await place.free.send(place.put("/free", [1])).status == 200)
        held.cancel()
        #expect(await held.value?.code == .cancelled)
        #expect(place.requests.all.map(\.line) == ["GET /get HTTP/1.1", "PUT /free HTTP/1.1"])
    }

    @Test(arguments: [nil, 64 << 20] as [Int64?])
    func `what is held goes as soon as the limit is raised`(rate: Int64?) async throws {
        let place = try Place()
        place.throttle.set(0)
        let (client, body) = (place.limited, pattern(3_000_000))
        let requests = try [place.put("/small", Array(body.prefix(5000))), place.put("/large", body)]
        let held = requests.map { request in Task { try await client.send(request).status } }
        #expect(try await client.send(HTTPRequest("GET", place.server.url("/while1500"))).status == 200)
        #expect(place.heads.all.count == 1)
        place.throttle.set(rate)
        for task in held { #expect(try await task.value == 200) }
        #expect(place.requests.all.contains { $0.body == body })
    }

    @Test func `a body that is paused on its way is no standstill, and goes on to its end`() async throws {
        let place = try Place()
        place.throttle.set(100 << 10, for: "a")
        let (client, body, ended) = (place.limited, pattern(2_000_000), Seen<Bool>())
        let request = try place.put("/paused", body, stall: .seconds(2))
        let paused = Task {
            defer { ended.append(true) }
            return try await client.send(request).status
        }
        try await place.hasBegun("/paused")
        place.throttle.set(0, for: "a")
        #expect(try await place.free.send(HTTPRequest("GET", place.server.url("/while4000"))).status == 200)
        #expect(ended.all.isEmpty)
        place.throttle.set(nil, for: "a")
        #expect(try await paused.value == 200)
        #expect(place.requests.all.last?.body == body)
    }

    @Test func `a small request overtakes a large one`() async throws {
        let place = try Place()
        place.throttle.set(200 << 10)
        let directory = try TemporaryDirectory()
        let source = try SourceFile(opening: sparseFile(directory, size: 64 << 20))
        let large = HTTPRequest(
            "PUT", try place.server.url("/large"), body: .slice(source, offset: 0, length: 64 << 20))
        let (client, meter) = (place.limited, TransferMeter())
        let sending = Task { try await client.send(large, meter: meter).status }
        try await place.hasBegun("/large")
        let small = pattern(50_000)
        #expect(try await client.send(place.put("/small", small)).status == 200)
        #expect(meter.bytesSent < 64 << 20)
        #expect(place.requests.all.map(\.line) == ["PUT /small HTTP/1.1"])
        #expect(place.requests.all.first?.body == small)
        place.throttle.set(nil)
        #expect(try await sending.value == 200)
    }

    @Test func `a paused body is cancelled within 200 ms`() async throws {
        let bound = Duration.milliseconds(200)
        let time = try await fastest(below: bound) {
            let place = try Place()
            // However long this test has to wait for its turn, the body does not end meanwhile.
            place.throttle.set(10 << 10)
            let (client, request) = (place.limited, try place.put("/paused", pattern(4_000_000)))
            let task = Task(executorPreference: BlockingPool(name: "cancelled", threads: 1)) {
                (await failure(client, request), ContinuousClock.now)
            }
            try await place.hasBegun("/paused")
            place.throttle.set(0)
            let start = ContinuousClock.now
            task.cancel()
            let (error, end) = await task.value
            #expect(error?.code == .cancelled)
            return end - start
        }
        #expect(time < bound)
    }

    @Test(arguments: ["PUT", "POST"])
    func `a body larger than a piece arrives whole, and so does an empty one`(method: String) async throws {
        let place = try Place()
        place.throttle.set(1 << 20)
        let body = pattern(60_000)
        for bytes in [body, [], [7]] {
            let request = HTTPRequest(method, try place.server.url("/x"), body: .bytes(bytes))
            #expect(try await place.limited.send(request).status == 200)
            #expect(place.requests.all.last?.body == bytes)
        }
    }

    @Test func `limited and unlimited requests share their connections`() async throws {
        let place = try Place()
        place.throttle.set(64 << 20)
        for client in [place.free, place.limited, place.free.limited(by: place.throttle.lane("b"))] {
            #expect(try await client.send(place.put("/x", [1])).status == 200)
        }
        #expect(place.server.connections == 1)
        #expect(place.throttle.lane("b") === place.throttle.lane("b"))
    }

    @Test func `what must not be cut off is not held`() async throws {
        let place = try Place()
        place.throttle.set(0)
        var request = try place.put("/now", [1])
        request.outlivesCancellation = true
        #expect(try await place.limited.send(request).status == 200)
    }

    @Test func `whoever waits for a lane to open goes on when it does, or is cancelled`() async throws {
        let place = try Place()
        await place.limited.untilOpen()
        place.throttle.set(0, for: "a")
        let (client, passed) = (place.limited, Seen<Int>())
        let patient = Task {
            await client.untilOpen()
            passed.append(1)
        }
        let cancelled = Task { await client.untilOpen() }
        cancelled.cancel()
        await cancelled.value
        place.throttle.set(1 << 20)
        #expect(passed.all.isEmpty)
        place.throttle.set(1 << 20, for: "a")
        await patient.value
    }
}

/// What servers do with bodies that are paused.
@Suite(.timeLimit(.minutes(8))) struct ThrottledServerTests {
    /// Begins an upload at a server that runs `script` after the request's head, stops it, and opens the gate of the script.
    private func paused(
        _ script: @escaping @Sendable (ServerConnection) throws -> Void,
        _ body: (Throttle) async throws -> Void = { _ in }
    ) async throws -> Result<Int, TransferError> {
        let (throttle, gate, heads) = (Throttle(), Seen<Bool>(), Seen<Bool>())
        let server = try ScriptedServer { connection in
            _ = try connection.readHead()
            heads.append(true)
            while gate.all.isEmpty { guard connection.linger(milliseconds: 5) else { return } }
            try script(connection)
        }
        throttle.set(100 << 10)
        let client = makeClient().limited(by: throttle.lane("a"))
        let request = HTTPRequest("PUT", try server.url(), body: .bytes(pattern(2_000_000)))
        let task = Task { () async -> Result<Int, TransferError> in
            do throws(TransferError) {
                return .success(try await client.send(request).status)
            } catch { return .failure(error) }
        }
        try await eventually("the request arrives") { !heads.all.isEmpty }
        throttle.set(0)
        gate.append(true)
        try await body(throttle)
        return await task.value
    }

    @Test func `a refusal reaches the caller of a paused body`() async throws {
        let result = try await paused { connection in
            try connection.answer("403 Forbidden")
            connection.waitForEnd()
        }
        #expect(try result.get() == 403)
    }

    @Test func `a connection that the server has closed is noticed when its body goes on, at the latest`() async throws
    {
        let closed = Seen<Bool>()
        let result = try await paused { connection in
            connection.reset()
            closed.append(true)
        } _: { throttle in
            try await eventually("the server has closed") { !closed.all.isEmpty }
            throttle.set(nil)
        }
        let error = #expect(throws: TransferError.self) { try result.get() }
        #expect(error?.code == .connectionLost && error?.isOutage == true)
    }
}
