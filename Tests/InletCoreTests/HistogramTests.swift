import InletCore
import Testing

@Suite struct HistogramTests {
    /// A value, and how many values are at most 1, at most 2, and there at all, once it is added to an empty histogram.
    @Test(arguments: [
        (0.0, [1, 1, 1]), (0.999, [1, 1, 1]), (1.0, [1, 1, 1]), (1.001, [0, 1, 1]), (2.0, [0, 1, 1]), (2.5, [0, 0, 1]),
        (1e12, [0, 0, 1]),
    ])
    func `a value is counted in its bound and in all above it`(value: Double, counts: [Int]) {
        var histogram = Histogram(bounds: [1, 2])
        histogram.add(value)
        #expect(histogram.atMost.map(\.bound) == [1, 2])
        #expect(histogram.atMost.map(\.count) + [histogram.count] == counts)
        #expect(histogram.sum == value)
    }

    @Test func `many values add up`() {
        var histogram = Histogram(bounds: [1, 2, 4])
        for value in [0.5, 0.5, 1.5, 3, 3, 3, 9] { histogram.add(value) }
        #expect(histogram.atMost.map(\.count) == [2, 3, 6] && histogram.count == 7 && histogram.sum == 20.5)
    }

    @Test func `a duration is counted in seconds`() {
        var histogram = Histogram(bounds: [0.05, 1])
        histogram.add(.milliseconds(50))
        histogram.add(.seconds(90))
        #expect(histogram.atMost.map(\.count) == [1, 1] && histogram.count == 2 && histogram.sum == 90.05)
    }

    @Test(arguments: [Histogram.ofDeliveries, .ofWrites])
    func `the bounds that are used ascend`(histogram: Histogram) {
        #expect(zip(histogram.bounds, histogram.bounds.dropFirst()).allSatisfy { $0 < $1 })
        #expect(histogram.count == 0 && histogram.sum == 0)
    }
}
