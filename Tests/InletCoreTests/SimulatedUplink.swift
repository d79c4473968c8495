import InletCore
import InletTestSupport

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
            let step = min(line.step(flights), max(moment - now, 1e-6))
            let moved = line.advance(&flights, by: step)
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
        let flowing = flights.filter { $0.waits <= 0 && $0.left > 0 }
        let shared = capacity / (1 + contention * Double(max(0, flights.count - 1)))
        let weights = flowing.reduce(0) { $0 + $1.weight }
        return flights.map { flight in
            guard flight.waits <= 0, flight.left > 0 else { return 0 }
            return min(perConnection * flight.weight, shared * flight.weight / weights)
        }
    }

    /// Until the next body begins to flow or ends.
    private func step(_ flights: [Flight]) -> Double {
        zip(flights, rates(flights)).map { flight, rate in
            flight.waits > 0 ? flight.waits : rate > 0 ? flight.left / rate : 0
        }.min() ?? 0
    }

    private func advance(_ flights: inout [Flight], by step: Double) -> Double {
        let rates = rates(flights)
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
