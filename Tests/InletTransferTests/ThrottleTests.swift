import InletCore
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

@testable import InletTransfer

@Suite(.timeLimit(.minutes(15))) struct ThrottleTests {
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
        let request = try place.put("/paused", body, stall: .seconds(5))
        let paused = Task {
            defer { ended.append(true) }
            return try await client.send(request).status
        }
        try await place.hasBegun("/paused")
        place.throttle.set(0, for: "a")
        #expect(try await place.free.send(HTTPRequest("GET", place.server.url("/while7000"))).status == 200)
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

    @Test func `a change of a limit lets go on even who has no thread`() async {
        let (throttle, passed) = (Throttle(), Seen<Int>())
        throttle.set(0, for: "a")
        await withTaskGroup(of: Void.self) { group in
            group.addTask(executorPreference: ImmediateExecutor.shared) {
                await throttle.lane("a").untilOpen()
                passed.append(1)
            }
            #expect(throttle.isHolding("a"))
            throttle.set(nil, for: "a")
            #expect(passed.all == [1])
        }
        #expect(!throttle.isHolding("a"))
    }
}

/// What servers do with bodies that are paused.
@Suite(.timeLimit(.minutes(15))) struct ThrottledServerTests {
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

/// How much goes through a throttle, in a time that passes as the test says.
struct ThrottleRateTests {
    /// In KiB a second, and connections.
    private static let rates: [(Int64, Int)] = [(100, 1), (100, 32), (5120, 64), (102_400, 16)]

    /// From the first second on; the loop's thread may be late by a fifth of what a burst makes up for.
    @Test(arguments: rates) func `ten seconds carry what the rate says, for all and for one, on many connections`(
        kib: Int64, connections: Int
    ) async throws {
        let rate = kib << 10
        for destination in [nil, "a"] {
            let loop = SimulatedLoop()
            loop.throttle.set(rate, for: destination)
            for number in 0..<connections {
                try await loop.add(.max, to: destination ?? ["a", "b", "c"][number % 3])
            }
            loop.run(for: 1)
            let first = loop.total
            loop.run(for: 10)
            let carried = Double(loop.total - first) / Double(10 * rate)
            #expect((0.95...1.05).contains(carried), "\(carried) of \(rate)")
        }
    }

    @Test func `a rate that changes holds from then on, with the connections that there are`() async throws {
        let loop = SimulatedLoop()
        loop.throttle.set(5 << 20)
        for _ in 0..<32 { try await loop.add(.max, to: "a") }
        loop.run(for: 1)
        for (rate, seconds) in [(20 << 20, 10), (1 << 20, 10), (0, 3600), (5 << 20, 10)] as [(Int64, Int)] {
            loop.throttle.set(rate)
            // What a higher rate had given already.
            loop.run(for: 1)
            let before = loop.total
            loop.run(for: seconds)
            let expected = rate * Int64(seconds)
            #expect(abs(loop.total - before - expected) <= expected / 20, "\(loop.total - before) at \(rate)")
        }
        #expect(loop.waiting == 32)
    }

    @Test func `one limit is shared evenly by destinations, whatever connections they have`() async throws {
        let loop = SimulatedLoop()
        loop.throttle.set(10 << 20)
        for _ in 0..<32 { try await loop.add(.max, to: "many") }
        try await loop.add(.max, to: "one")
        loop.run(for: 10)
        let share = Double(loop.sent(to: "one")) / Double(loop.total)
        #expect((0.45...0.55).contains(share), "\(share)")
    }

    @Test func `a small file passes large ones within half a second of the rate`() async throws {
        let loop = SimulatedLoop()
        let rate: Int64 = 5 << 20
        loop.throttle.set(rate, for: "a")
        for _ in 0..<16 { try await loop.add(.max, to: "a") }
        loop.run(for: 2)
        let before = loop.total
        let small = try await loop.add(BandwidthShare.smallBody, to: "a")
        while !loop.hasEnded(small), loop.total - before < rate { loop.step() }
        #expect(loop.hasEnded(small) && loop.total - before <= rate / 2, "\(loop.total - before)")
    }

    @Test func `bytes that a request got and did not send go to the others`() async throws {
        let loop = SimulatedLoop()
        let rate: Int64 = 1 << 20
        loop.throttle.set(rate)
        for _ in 0..<4 { try await loop.add(.max, to: "a") }
        loop.run(for: 1)
        let before = loop.total
        for _ in 0..<50 {
            // It is given a piece and ends before it reads any of it.
            let broken = try await loop.add(.max, to: "a", isReading: false)
            loop.step()
            loop.end(broken)
        }
        let after = loop.now
        let expected = Double(rate) * ((after - loop.start) / .seconds(1))
        #expect(loop.total > before && Double(loop.total) > 0.9 * expected, "\(loop.total) of \(expected)")
    }
}

/// A transfer loop without curl: its requests ask as `Transfer` does when curl wants more of a body.
private final class SimulatedLoop {
    typealias Instant = ContinuousClock.Instant

    private struct Request {
        let turn: ThrottledRequest
        let destination: String
        let isReading: Bool
        var left: Int64
    }

    let throttle = Throttle()
    let start = ContinuousClock.now
    private(set) var now: Instant
    private(set) var total: Int64 = 0
    private var requests: [Int: Request] = [:]
    private var sent: [String: Int64] = [:]
    private var count = 0
    private var generator = SeededGenerator(seed: 6)
    /// What curl reads at a time.
    private static let room: Int64 = 64 << 10

    init() { now = start }

    var waiting: Int { requests.values.count { $0.turn.isWaiting } }

    func sent(to destination: String) -> Int64 { sent[destination, default: 0] }

    func hasEnded(_ request: Int) -> Bool { requests[request] == nil }

    func end(_ request: Int) { requests.removeValue(forKey: request)?.turn.leave() }

    /// - Parameter length: of what it sends; beyond the size of a small body it counts as large.
    @discardableResult
    func add(_ length: Int64, to destination: String, isReading: Bool = true) async throws -> Int {
        let body = [UInt8](repeating: 0, count: Int(min(length, BandwidthShare.smallBody + 1)))
        let url = try HTTPURL("http://127.0.0.1:1/", rules: .configured(allowHTTP: false))
        var turn: ThrottledRequest?
        _ = await withCheckedContinuation { continuation in
            let submission = Submission(
                HTTPRequest("PUT", url, body: .bytes(body)), lane: throttle.lane(destination), proxy: nil,
                CancellationToken(), continuation)
            turn = ThrottledRequest(submission) {}
            submission.end(.failure(submission.cancellation))
        }
        count += 1
        requests[count] = Request(
            turn: try #require(turn), destination: destination, isReading: isReading, left: length)
        return count
    }

    /// Everybody reads until nobody is given anything, then time passes until somebody may be, and a little more.
    func step(until end: Instant? = nil) {
        var asking = requests.keys.sorted()
        while !asking.isEmpty { asking = asking.filter(read) }
        let next = requests.values.first { $0.turn.isWaiting }?.turn.next(at: now)
        guard let next else { return now = end ?? now }
        // Otherwise a loop would spin.
        #expect(next > now)
        let late = next.advanced(by: .milliseconds(Int.random(in: 0...20, using: &generator)))
        now = end.map { min($0, late) } ?? late
    }

    func run(for seconds: Int) {
        let end = now.advanced(by: .seconds(seconds))
        while now < end { step(until: end) }
    }

    /// Returns whether it got something and wants more.
    private func read(_ number: Int) -> Bool {
        guard var request = requests[number] else { return false }
        let count = min(request.turn.allowance(of: request.left, at: now), Self.room)
        guard count > 0, request.isReading else { return false }
        request.turn.use(count)
        request.left -= count
        total += count
        sent[request.destination, default: 0] += count
        requests[number] = request
        if request.left == 0 { end(number) }
        return request.left > 0
    }
}
