import InletCore
import InletTestSupport
import Testing

struct BandwidthShareTests {
    /// KiB/s and requests.
    private static let rates: [(Int64, Int)] = [
        (100, 1), (100, 64), (1024, 16), (5120, 64), (102_400, 16), (1_048_576, 1), (1_048_576, 4),
    ]

    /// From the first second on, whatever the number of requests and however late they ask.
    @Test(arguments: rates)
    func `ten seconds carry what the rate says`(kib: Int64, requests: Int) {
        let rate = kib * 1024
        for (isForAll, seed) in [(true, 1), (false, 2)] as [(Bool, UInt64)] {
            var line = BandwidthLine(seed: seed, delay: 0...20)
            line.limit(rate, of: isForAll ? nil : "a")
            for _ in 0..<requests { line.add(.max, to: "a") }
            line.run(for: 1)
            let first = line.total
            line.run(for: 10)
            let carried = Double(line.total - first) / Double(rate * 10)
            #expect((0.95...1.05).contains(carried), "\(carried) of \(rate)")
        }
    }

    @Test func `a burst after a pause is a tenth of a second of the rate`() {
        var line = BandwidthLine()
        line.limit(10 << 20, of: nil)
        line.run(for: 60)
        line.add(.max, to: "a")
        line.ask()
        #expect(line.total <= 1 << 20 && line.total > 900_000)
    }

    @Test func `a rate can be changed, stopped and lifted while bytes move`() {
        var line = BandwidthLine()
        line.limit(5 << 20, of: "a")
        let flow = line.add(100 << 20, to: "a")
        line.run(for: 2)
        #expect((9 << 20...10 << 20).contains(line.total))
        line.limit(1 << 20, of: "a")
        let atChange = line.total
        line.run(for: 2)
        #expect((1_900_000...2_300_000).contains(line.total - atChange))
        line.limit(0, of: "a")
        let atStop = line.total
        line.run(for: 3600)
        #expect(line.total == atStop)
        #expect(line.next == nil && line.share.isClosed("a") && !line.share.isClosed("b"))
        line.limit(nil, of: "a")
        line.ask()
        #expect(line.left[flow] == 0)
    }

    @Test func `nothing is held where nothing is limited`() {
        var share = BandwidthShare()
        #expect(share.ask(BandwidthFlow(1), of: "a", wanted: 1 << 40, isSmall: false, at: .now) == 1 << 40)
        #expect(share.next(at: .now) == nil)
    }

    @Test func `one limit for all is shared evenly by destinations, not by requests`() {
        var line = BandwidthLine()
        line.limit(10 << 20, of: nil)
        for _ in 0..<16 { line.add(.max, to: "many") }
        line.add(.max, to: "one")
        line.run(for: 10)
        #expect(abs(line.sent(to: "many") - line.sent(to: "one")) <= 4 * 105_000)
    }

    @Test
    func `what a slow destination leaves goes to the other, and lifting its limit gives it no more than its half`() {
        var line = BandwidthLine()
        line.limit(10 << 20, of: nil)
        line.limit(1 << 20, of: "slow")
        line.add(.max, to: "slow")
        line.add(.max, to: "fast")
        line.run(for: 10)
        let (slow, fast) = (line.sent(to: "slow"), line.sent(to: "fast"))
        #expect((9_900_000...10_600_000).contains(slow))
        #expect((89_000_000...95_000_000).contains(fast))
        line.limit(nil, of: "slow")
        line.run(for: 1)
        #expect(abs((line.sent(to: "slow") - slow) - (line.sent(to: "fast") - fast)) < 600_000)
    }

    @Test func `a destination that was stopped for a minute has saved up no turns`() {
        var line = BandwidthLine()
        line.limit(10 << 20, of: nil)
        line.limit(0, of: "stopped")
        line.add(.max, to: "stopped")
        line.add(.max, to: "other")
        line.run(for: 60)
        #expect(line.sent(to: "stopped") == 0)
        let other = line.sent(to: "other")
        line.limit(nil, of: "stopped")
        line.run(for: 2)
        #expect(abs(line.sent(to: "stopped") - (line.sent(to: "other") - other)) < 600_000)
    }

    @Test(arguments: 0..<200 as Range<UInt64>)
    func `a small body has gone out before its destination has sent what is promised`(seed: UInt64) {
        var line = BandwidthLine(seed: seed, delay: 0...3)
        let rate = Int64.random(in: 100 << 10...50 << 20, using: &line.generator)
        line.limit(rate, of: Bool.random(using: &line.generator) ? nil : "a")
        for _ in 0..<Int.random(in: 1...32, using: &line.generator) { line.add(.max, to: "a") }
        line.run(for: 1)
        let before = line.total
        let size = Int64.random(in: 1...BandwidthShare.smallBody, using: &line.generator)
        let count = Int64.random(in: 1...8, using: &line.generator)
        let small = (0..<count).map { _ in line.add(size, to: "a") }
        let piece = min(max(rate / 100, 4 << 10), 256 << 10)
        let bound = 2 * count * (size + piece) + 4 * piece
        while small.contains(where: { line.left[$0] != 0 }), line.total - before <= bound { line.step() }
        #expect(small.allSatisfy { line.left[$0] == 0 })
    }

    @Test func `small bodies without end leave a large one its half`() {
        var line = BandwidthLine()
        line.limit(1 << 20, of: "a")
        let large = line.add(.max, to: "a")
        for _ in 0..<3000 {
            line.forgetEnded()
            while line.left.count < 9 { line.add(64 << 10, to: "a") }
            line.step()
        }
        let share = Double(.max - (line.left[large] ?? 0)) / Double(line.total)
        #expect(share > 0.45)
    }

    @Test func `bytes of a request that ends early go to the others`() {
        var share = BandwidthShare()
        let start = ContinuousClock.now
        share.limit(100 << 10, at: start)
        let (first, second) = (BandwidthFlow(1), BandwidthFlow(2))
        let later = start.advanced(by: .milliseconds(41))
        #expect(share.ask(first, of: "a", wanted: 4096, isSmall: true, at: later) == 4096)
        #expect(share.ask(second, of: "b", wanted: 4096, isSmall: true, at: later) == 0)
        share.leave(first, unused: 4096)
        #expect(share.ask(second, of: "b", wanted: 4096, isSmall: true, at: later) == 4096)
    }
}

/// Requests on a line without an end of its own, in a time of its own.
struct BandwidthLine {
    private(set) var share = BandwidthShare()
    var generator: SeededGenerator
    private(set) var now = ContinuousClock.now
    private(set) var left: [BandwidthFlow: Int64] = [:]
    private(set) var total: Int64 = 0
    private var places: [BandwidthFlow: (destination: String, isSmall: Bool)] = [:]
    private var totals: [String: Int64] = [:]
    private var count: UInt64 = 0
    private let delay: ClosedRange<Int>

    /// - Parameter delay: how many milliseconds late they wake up.
    init(seed: UInt64 = 0, delay: ClosedRange<Int> = 0...0) {
        generator = SeededGenerator(seed: seed)
        self.delay = delay
    }

    /// - Parameter destination: nil = all together.
    mutating func limit(_ rate: Int64?, of destination: String?) {
        if let destination { share.limit(rate, of: destination, at: now) } else { share.limit(rate, at: now) }
    }

    func sent(to destination: String) -> Int64 { totals[destination, default: 0] }

    var next: ContinuousClock.Instant? {
        var share = share
        return share.next(at: now)
    }

    @discardableResult
    mutating func add(_ length: Int64, to destination: String) -> BandwidthFlow {
        count += 1
        let flow = BandwidthFlow(count)
        places[flow] = (destination, length <= BandwidthShare.smallBody)
        left[flow] = length
        return flow
    }

    /// Everybody asks until nobody gets anything.
    mutating func ask() {
        var asking = left.filter { $0.value > 0 }.keys.sorted()
        while !asking.isEmpty {
            asking = asking.filter { flow in
                guard let place = places[flow], let rest = left[flow], rest > 0 else { return false }
                let given = share.ask(
                    flow, of: place.destination, wanted: rest, isSmall: place.isSmall, at: now)
                left[flow] = rest - given
                total += given
                totals[place.destination, default: 0] += given
                return given > 0
            }
        }
    }

    mutating func forgetEnded() {
        for (flow, rest) in left where rest == 0 {
            share.leave(flow)
            left[flow] = nil
        }
    }

    /// Asks, and waits for the next turn, but not beyond `end`.
    mutating func step(until end: ContinuousClock.Instant? = nil) {
        ask()
        guard let next = share.next(at: now) else { return now = end ?? now }
        // Otherwise a loop would spin.
        #expect(next > now)
        let late = next.advanced(by: .milliseconds(Int.random(in: delay, using: &generator)))
        now = end.map { min($0, late) } ?? late
    }

    mutating func run(for seconds: Int) {
        let end = now.advanced(by: .seconds(seconds))
        while now < end { step(until: end) }
    }
}
