import InletCore
import InletTestSupport
import Testing

@testable import InletTransfer

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
            loop.throttle.set(rate, in: destination)
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

extension Throttle {
    /// - Parameter destination: nil = all together.
    fileprivate func set(_ rate: Int64?, in destination: String?) {
        if let destination { set(rate, for: destination) } else { set(rate) }
    }
}

/// A transfer loop without curl: its requests ask as `Transfer` does when curl wants more of a body.
private final class SimulatedLoop {
    typealias Instant = ContinuousClock.Instant

    private struct Request {
        let turn: ThrottlePlace
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
        var turn: ThrottlePlace?
        _ = await withCheckedContinuation { continuation in
            let submission = Submission(
                request: HTTPRequest("PUT", url, body: .bytes(body)), meter: nil, lane: throttle.lane(destination),
                sink: nil, ticket: Ticket(), proxy: nil, continuation: continuation)
            turn = ThrottlePlace(submission) {}
            submission.fail(submission.cancellation)
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
