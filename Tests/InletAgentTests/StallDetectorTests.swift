import InletJournal
import Testing

@testable import InletAgent

struct StallDetectorTests {
    private static let start = ContinuousClock.now
    private let one = lane("one")
    private let other = lane("other")

    private static func lane(_ name: String) -> LaneID { LaneID(destination: name, lane: .big) }
    private func at(_ seconds: Int) -> ContinuousClock.Instant { Self.start.advanced(by: .seconds(seconds)) }

    /// One with `places` places beside the lanes' own; a transfer hangs after 30 s.
    private func detector(places: Int) -> StallDetector {
        StallDetector(workers: places - StallDetector.spare, patience: .seconds(30))
    }

    /// Begins as many of `wanted` as there are places for. - Returns: their deliveries.
    private func begin(_ detector: inout StallDetector, _ wanted: [Int64], in lane: LaneID, at second: Int) -> [Int64] {
        let count = detector.take(wanted.count, for: lane, at: at(second))
        let begun = Array(wanted.prefix(count))
        detector.begin(begun, of: count, in: lane, at: at(second))
        return begun
    }

    @Test func `each lane has a place of its own, and takes more from the pool`() {
        var detector = detector(places: 2)
        #expect(begin(&detector, [1, 2, 3, 4, 5], in: one, at: 0) == [1, 2, 3])
        #expect(begin(&detector, [6, 7], in: other, at: 0) == [6])
        #expect(begin(&detector, [8], in: Self.lane("third"), at: 0) == [8])
        // Its own place comes first.
        detector.end(1)
        #expect(begin(&detector, [7], in: other, at: 0) == [7])
        detector.end(2)
        detector.end(3)
        #expect(begin(&detector, [9], in: one, at: 0) == [9])
    }

    @Test func `places that were taken count until it is known that nothing begins`() {
        var detector = detector(places: 1)
        #expect(detector.take(9, for: one, at: at(0)) == 2)
        #expect(detector.take(9, for: other, at: at(0)) == 1)
        detector.begin([], of: 2, in: one, at: at(0))
        #expect(detector.take(9, for: other, at: at(0)) == 1)
        detector.begin([3, 4], of: 2, in: other, at: at(0))
        #expect(detector.take(9, for: one, at: at(0)) == 1)
    }

    @Test func `what has not moved a byte for a while holds no place, until it goes on`() {
        var detector = detector(places: 2)
        #expect(begin(&detector, [1, 2, 3], in: one, at: 0) == [1, 2, 3])
        #expect(begin(&detector, [4, 5], in: other, at: 10) == [4])
        #expect(detector.nextLook(at: at(10)) == at(30))
        detector.note([1: 0, 2: 7, 3: 0, 4: 9], at: at(30))
        #expect(begin(&detector, [5, 6, 7], in: other, at: 30) == [5, 6])
        // What has hung goes on: for a while there are more than there are places.
        detector.note([1: 1, 3: 1], at: at(31))
        #expect(begin(&detector, [8], in: Self.lane("third"), at: 31) == [8])
        #expect(begin(&detector, [9], in: Self.lane("third"), at: 31).isEmpty)
        #expect(detector.nextLook(at: at(60)) == at(61))
    }

    @Test func `lanes in which all hang have their own place again`() {
        var detector = detector(places: 0)
        for number in 0..<5 as Range<Int64> {
            #expect(begin(&detector, [number, number + 100], in: one, at: 30 * Int(number)) == [number])
        }
        #expect(detector.nextLook(at: at(120)) == at(150))
    }
}
