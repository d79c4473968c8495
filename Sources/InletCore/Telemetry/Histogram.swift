/// How often values were at most each of some fixed bounds: tells how long things take without keeping how long each took.
package struct Histogram: Sendable, Equatable {
    /// Ascending; a value that equals a bound is below it.
    package let bounds: [Double]
    /// One for each bound, without those of the bounds below it, and one more for what is above them all.
    private var counts: [Int]
    /// Of all values.
    package private(set) var sum: Double = 0

    package init(bounds: [Double]) {
        self.bounds = bounds
        counts = Array(repeating: 0, count: bounds.count + 1)
    }

    /// Deliveries: from a small file on a good line to a film on a bad one. Seconds, 50 ms to 6 hours.
    package static let ofDeliveries = Histogram(
        bounds: [
            0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21_600,
        ])

    /// Writes that are synced to a disk: from a good SSD to a disk that has to spin up. Seconds, 0.5 ms to 10 s.
    package static let ofWrites = Histogram(
        bounds: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10])

    /// How many values there are.
    package var count: Int { counts.reduce(0, +) }

    /// How many values are at most each bound.
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

    /// Adds a duration as its seconds.
    package mutating func add(_ duration: Duration) { add(duration.seconds) }
}

extension Duration {
    /// The duration in seconds, with their fractions.
    package var seconds: Double {
        let (whole, attoseconds) = components
        return Double(whole) + Double(attoseconds) / 1e18
    }
}
