import InletCore
import InletTestSupport
import Testing

/// Judged on simulated lines: no clock, no network.
struct UploadPaceTests {
    private static let mebi = Double(1 << 20)

    /// Their own limit is the line's: more connections bring nothing.
    static let slow = [
        SimulatedUplink(name: "DSL", capacity: 0.1 * mebi, perConnection: 100 * mebi, overhead: 0.15),
        SimulatedUplink(name: "1 MiB/s", capacity: mebi, perConnection: 100 * mebi, overhead: 0.15),
        SimulatedUplink(name: "5 MiB/s", capacity: 5 * mebi, perConnection: 100 * mebi, overhead: 0.15),
        SimulatedUplink(
            name: "1 MiB/s, uneven", capacity: mebi, perConnection: 100 * mebi, overhead: 0.3, unevenness: 0.5),
    ]

    static let fast = [
        SimulatedUplink(name: "100 Mbit/s", capacity: 12 * mebi, perConnection: 100 * mebi, overhead: 0.1),
        SimulatedUplink(name: "1 Gbit/s", capacity: 117 * mebi, perConnection: 117 * mebi, overhead: 0.005),
        SimulatedUplink(name: "loopback", capacity: 1500 * mebi, perConnection: 700 * mebi, overhead: 0.002),
        SimulatedUplink(
            name: "loopback, connections cost", capacity: 1500 * mebi, perConnection: 1200 * mebi, overhead: 0.002,
            contention: 0.02),
        SimulatedUplink(
            name: "four at most", capacity: 1500 * mebi, perConnection: 400 * mebi, overhead: 0.002, wanted: 4),
    ]

    /// A window bounds each connection, or the store takes its time.
    static let far = [
        SimulatedUplink(
            name: "far", capacity: 400 * mebi, perConnection: 10 * mebi, overhead: 0.25, wanted: 32),
        SimulatedUplink(
            name: "far, small windows", capacity: 10 * mebi, perConnection: 0.3 * mebi, overhead: 0.3, wanted: 64),
        SimulatedUplink(name: "1 Gbit/s, far", capacity: 117 * mebi, perConnection: 20 * mebi, overhead: 0.3),
        SimulatedUplink(
            name: "slow store", capacity: 117 * mebi, perConnection: 117 * mebi, overhead: 1, wanted: 32),
    ]

    @Test(arguments: slow + fast + far, [1, 2, 3] as [UInt64])
    func `what it settles at carries 94 % of the best fixed number`(_ line: SimulatedUplink, _ seed: UInt64) {
        var pace = UploadPace()
        let course = line.run(&pace, bodies: 1500, warmUp: 500, seed: seed)
        let best = line.best(bodies: 300, seed: seed)
        #expect(course.goodput >= 0.94 * best, "\(line.name), seed \(seed): \(course.goodput / best)")
    }

    /// Also while it finds out, a fast line loses next to nothing against the number that was fixed before.
    @Test(arguments: fast, [4, 5, 6] as [UInt64])
    func `a fast line is never much slower than with four at once`(_ line: SimulatedUplink, _ seed: UInt64) {
        var pace = UploadPace()
        var unused = UploadPace()
        let course = line.run(&pace, bodies: 640, seed: seed)
        let fixed = line.run(&unused, fixed: 4, bodies: 640, seed: seed)
        #expect(course.goodput >= 0.96 * fixed.goodput, "\(line.name), seed \(seed)")
    }

    @Test(arguments: slow, [1, 2, 3] as [UInt64])
    func `a slow line is left with two or three connections`(_ line: SimulatedUplink, _ seed: UInt64) {
        var pace = UploadPace()
        let course = line.run(&pace, bodies: 1500, warmUp: 150, seed: seed)
        #expect(course.crowd <= 3, "\(line.name), seed \(seed): \(course.crowd) on average")
        let first = line.run(&pace, bodies: 1, from: 1e6, seed: seed)
        #expect(first.mostCrowd <= 3 || line.unevenness > 0.1, "\(line.name), seed \(seed)")
    }

    @Test func `a far line gets all the connections that are wanted, within ten rounds of them`() {
        var pace = UploadPace()
        var line = Self.far[0]
        line.unevenness = 0
        _ = line.run(&pace, bodies: 10 * line.wanted, seed: 1)
        #expect(pace.limit == 32)
    }

    /// Lines that carry the same, whatever the number, but now a third less and now a third more, as do the bodies: the best
    /// is where it begins, or two on a slow line.
    @Test(arguments: [2, 12, 117, 400, 1500], 1...20 as ClosedRange<UInt64>)
    func `chance is not taken for gain`(_ rate: Double, _ seed: UInt64) {
        var pace = UploadPace()
        let line = SimulatedUplink(
            name: "\(rate)", capacity: rate * Self.mebi, perConnection: 2 * rate * Self.mebi, overhead: 0.01,
            wanted: 64, unevenness: 0.3, noise: 0.3)
        let course = line.run(&pace, bodies: 4000, warmUp: 100, seed: seed)
        let near = rate > 12 ? 3...6 : 2...4
        let there = course.limits.filter { near.contains($0.key) }.values.reduce(0, +) / course.seconds
        #expect(there >= 0.88, "\(rate) MiB/s, seed \(seed): \(there) of the time")
    }

    @Test(arguments: slow + fast + far)
    func `a number that is found is left in peace`(_ line: SimulatedUplink) {
        var pace = UploadPace()
        let course = line.run(&pace, bodies: 3000, warmUp: 1500, seed: 7)
        #expect(course.changes <= 70, "\(line.name): \(course.changes) changes in 1,500 bodies")
    }

    @Test func `a line that becomes another one is judged anew`() {
        var pace = UploadPace()
        var line = SimulatedUplink(
            name: "home", capacity: Self.mebi, perConnection: 100 * Self.mebi, overhead: 0.1, unevenness: 0)
        // Three hours and more: what it found holds for ten minutes by then, unless the rate changes.
        _ = line.run(&pace, bodies: 1500, seed: 1)
        #expect(pace.limit <= 3)
        line.capacity = 200 * Self.mebi
        line.perConnection = 10 * Self.mebi
        _ = line.run(&pace, bodies: 400, from: 12_100, seed: 1)
        #expect(pace.limit >= 12)
        line.capacity = Self.mebi
        _ = line.run(&pace, bodies: 600, from: 12_400, seed: 1)
        #expect(pace.limit <= 3)
    }

    // MARK: - Refusals

    @Test func `a server that asks for less gets less, once for all that was under way`() {
        var pace = UploadPace()
        #expect(pace.limit == 4)
        for number in 0..<8 { pace.refused(since: .zero, at: .seconds(1 + number)) }
        #expect(pace.limit == 2)
        pace.refused(since: .seconds(2), at: .seconds(9))
        #expect(pace.limit == 1)
        pace.refused(since: .seconds(10), at: .seconds(11))
        #expect(pace.limit == 1)
    }

    @Test func `a server that refuses more than five gets no more for nearly all the time`() {
        var pace = UploadPace()
        let line = Self.far[2]
        let course = line.run(&pace, bodies: 2000, warmUp: 300, refusesAbove: 5, seed: 3)
        #expect(course.crowd <= 5)
        #expect(pace.limit >= 1)
    }

    @Test func `bodies that fail say nothing of the line`() {
        var pace = UploadPace()
        for second in 0..<100 {
            let body = pace.begin(at: .seconds(second))
            pace.end(body, bytes: nil, wanted: 16, at: .seconds(second + 1))
        }
        #expect(pace.limit == 4 && pace.rate == nil)
    }

    @Test func `a number at which bodies fail is not stayed at`() {
        var pace = UploadPace()
        var (now, most) = (0.0, 0)
        // Four go well; of more, every one is lost.
        for _ in 0..<400 {
            let limit = pace.limit
            most = max(most, limit)
            let bodies = (0..<limit).map { _ in pace.begin(at: .seconds(now)) }
            now += 1
            for body in bodies { pace.end(body, bytes: limit > 4 ? nil : 64 << 20, wanted: 16, at: .seconds(now)) }
            #expect(pace.limit == 4 || limit == 4)
        }
        #expect(most > 4)
    }

    @Test func `few bodies, one after the other, never raise the number`() {
        var pace = UploadPace()
        for number in 0..<500 {
            let body = pace.begin(at: .milliseconds(100 * number))
            pace.end(body, bytes: 8 << 20, wanted: 1, at: .milliseconds(100 * number + 90))
        }
        #expect(pace.limit == 4)
    }

    // MARK: - Parts

    /// A pace that knows one rate.
    private func pace(_ rate: Double) -> UploadPace {
        var pace = UploadPace()
        var line = SimulatedUplink(name: "", capacity: 4 * rate, perConnection: rate, overhead: 0, wanted: 4)
        line.unevenness = 0
        _ = line.run(&pace, bodies: Int(40 + rate / Self.mebi), seed: 1)
        return pace
    }

    static let sizes: [(rate: Double, file: Int64, mebibytes: Int64)] = [
        (0.5, 5 << 30, 8), (4, 5 << 30, 8), (9, 5 << 30, 16), (17, 5 << 30, 32), (33, 5 << 30, 64), (900, 5 << 30, 64),
        // Four parts for each of four connections.
        (900, 256 << 20, 16), (900, 512 << 20, 32), (900, 100 << 20, 8), (900, 0, 8),
    ]

    @Test(arguments: sizes)
    func `a part is what a connection sends in two seconds`(_ rate: Double, _ file: Int64, _ mebibytes: Int64) {
        let size = pace(rate * Self.mebi).partSize(fileSize: file, smallest: 8 << 20, largest: 64 << 20, parallel: 4)
        #expect(size == mebibytes << 20)
    }

    @Test func `a size that is given stays, and so does the smallest where nothing is known`() {
        #expect(
            pace(900 * Self.mebi).partSize(fileSize: 5 << 30, smallest: 12 << 20, largest: 12 << 20, parallel: 4)
                == 12 << 20)
        #expect(UploadPace().partSize(fileSize: 5 << 30, smallest: 8 << 20, largest: 64 << 20, parallel: 4) == 8 << 20)
    }
}

/// A line to a store, in numbers: bodies share it evenly, none faster than its own window lets it.
struct SimulatedUplink {
    var name: String
    /// Bytes a second of all connections together, and of one at most.
    var capacity: Double
    var perConnection: Double
    /// Seconds of a body in which none of its bytes flow: the request, the answer, the store's work.
    var overhead: Double
    /// What each connection beyond the first costs the line.
    var contention = 0.0
    /// Bodies that are wanted at once.
    var wanted = 16
    var bodySize: Int64 = 8 << 20
    /// How much a body's share differs from the others', up and down.
    var unevenness = 0.1
    /// How much the line's capacity differs from one moment to the next, up and down.
    var noise = 0.0

    /// What came of a run.
    struct Course {
        var bytes = 0.0
        var seconds = 0.0
        /// Bodies under way on average, and at most.
        var crowd = 0.0
        var mostCrowd = 0
        /// Changes of the limit.
        var changes = 0
        /// Seconds at each limit.
        var limits: [Int: Double] = [:]

        var goodput: Double { bytes / seconds }

        mutating func note(_ moved: Double, in step: Double, by flights: Int, at limit: Int) {
            bytes += moved
            seconds += step
            crowd += Double(flights) * step
            limits[limit, default: 0] += step
            mostCrowd = max(mostCrowd, flights)
        }
    }

    /// Seconds that a capacity holds where there is noise.
    private static let moment = 0.5

    private struct Flight {
        var body: UploadPace.Body?
        var waits: Double
        var left: Double
        var weight: Double
    }

    /// Sends `bodies` bodies, of which the first `warmUp` are left out of the result.
    ///
    /// - Parameters:
    ///   - pace: says how many go at once; it learns on.
    ///   - fixed: goes at so many instead.
    ///   - refusesAbove: a body that makes more under way than this is refused, and sent again.
    func run(
        _ pace: inout UploadPace, fixed: Int? = nil, bodies: Int, warmUp: Int = 0, refusesAbove: Int = .max,
        from start: Double = 0, seed: UInt64
    ) -> Course {
        var (random, course, flights, now, ended) = (SeededGenerator(seed: seed), Course(), [Flight](), start, 0)
        var limit = fixed ?? pace.limit
        var (line, moment) = (self, start)
        while ended < bodies {
            while flights.count < min(limit, wanted) {
                let weight = 1 + Double.random(in: -unevenness...unevenness, using: &random)
                let body = fixed == nil ? pace.begin(at: .seconds(now)) : nil
                if flights.count >= refusesAbove { pace.refused(since: .seconds(now), at: .seconds(now)) }
                flights.append(Flight(body: body, waits: overhead, left: Double(bodySize), weight: weight))
            }
            while now >= moment {
                line.capacity = capacity * (1 + Double.random(in: -noise...noise, using: &random))
                moment += Self.moment
            }
            let rates = line.rates(flights)
            let step = min(Self.step(flights, rates), max(moment - now, 1e-6))
            let moved = Self.advance(&flights, by: step, rates)
            now += step
            if ended >= warmUp { course.note(moved, in: step, by: flights.count, at: limit) }
            for index in flights.indices.reversed() where flights[index].waits <= 0 && flights[index].left <= 0.5 {
                let flight = flights.remove(at: index)
                ended += 1
                guard let body = flight.body else { continue }
                pace.end(body, bytes: bodySize, wanted: wanted, at: .seconds(now))
            }
            if fixed == nil, pace.limit != limit {
                limit = pace.limit
                if ended >= warmUp { course.changes += 1 }
            }
        }
        course.crowd /= course.seconds
        return course
    }

    /// The best that a fixed number reaches.
    func best(bodies: Int, seed: UInt64) -> Double {
        var pace = UploadPace()
        let choices = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64].filter { $0 <= wanted }
        return choices.map { run(&pace, fixed: $0, bodies: bodies, warmUp: 2 * $0, seed: seed).goodput }.max() ?? 0
    }

    private func rates(_ flights: [Flight]) -> [Double] {
        let shared = capacity / (1 + contention * Double(max(0, flights.count - 1)))
        var weights = 0.0
        for flight in flights where flight.waits <= 0 && flight.left > 0 { weights += flight.weight }
        return flights.map { flight in
            guard flight.waits <= 0, flight.left > 0 else { return 0 }
            return min(perConnection * flight.weight, shared * flight.weight / weights)
        }
    }

    /// Until the next body begins to flow or ends.
    private static func step(_ flights: [Flight], _ rates: [Double]) -> Double {
        var least = Double.infinity
        for (index, flight) in flights.enumerated() {
            let rate = rates[index]
            least = min(least, flight.waits > 0 ? flight.waits : rate > 0 ? flight.left / rate : 0)
        }
        return flights.isEmpty ? 0 : least
    }

    private static func advance(_ flights: inout [Flight], by step: Double, _ rates: [Double]) -> Double {
        var moved = 0.0
        for index in flights.indices {
            if flights[index].waits > 0 {
                flights[index].waits = flights[index].waits - step < 1e-9 ? 0 : flights[index].waits - step
            } else {
                flights[index].left -= rates[index] * step
                moved += rates[index] * step
            }
        }
        return moved
    }
}
