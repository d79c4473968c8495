/// Counts values by fixed upper bounds: shows how long things take without storing every duration.
package struct Histogram: Sendable, Equatable {
    /// Ascending; a value equal to a bound counts as below it.
    package let bounds: [Double]
    /// One count for each bound, excluding lower bounds, and one for values above all bounds.
    private var counts: [Int]
    /// The sum of all values.
    package private(set) var sum: Double = 0

    package init(bounds: [Double]) {
        self.bounds = bounds
        counts = Array(repeating: 0, count: bounds.count + 1)
    }

    /// Deliveries, from a small file on a good line to a film on a bad one: 50 ms to 6 h, in seconds.
    package static let ofDeliveries = Histogram(
        bounds: [
            0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21_600,
        ])

    /// Synced disk writes, from a good SSD to a disk that spins up: 0.5 ms to 10 s, in seconds.
    package static let ofWrites = Histogram(
        bounds: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10])

    /// Calls to a database, from one on this machine to one that gives up: 1 ms to 15 s, in seconds.
    package static let ofCalls = Histogram(bounds: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 15])

    /// The number of values.
    package var count: Int { counts.reduce(0, +) }

    /// The number of values up to each bound.
    package var atMost: [(bound: Double, count: Int)] {
        var sum = 0
        return zip(bounds, counts).map { bound, count in
            sum += count
            return (bound, sum)
        }
    }

    package mutating func add(_ value: Double) {
        counts[bounds.firstIndex { value <= $0 } ?? bounds.count] += 1
        sum += value
    }

    /// Adds a duration in seconds.
    package mutating func add(_ duration: Duration) { add(duration.seconds) }
}

extension Duration {
    /// The duration in seconds, including fractions.
    package var seconds: Double {
        let (whole, attoseconds) = components
        return Double(whole) + Double(attoseconds) / 1e18
    }
}
