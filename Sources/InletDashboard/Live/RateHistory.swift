internal import InletCore

/// How fast bytes went to each destination in the last hour, in steps of ten seconds. Pure: time is a parameter.
struct RateHistory: Sendable {
    static let step: Int64 = 10_000
    static let steps = 360
    /// The whole ones, and the one that is now.
    private static let slots = steps + 1

    /// Bytes of each step by destination, at the step's number modulo their count.
    private var bytes: [String: [Int64]] = [:]
    /// The newest step that there is a place for.
    private var newest: Int64

    init(from start: WallTime) {
        newest = start.milliseconds / Self.step
    }

    /// Counts bytes that left between two times, evenly.
    mutating func add(_ count: Int64, to destination: String, from start: WallTime, until end: WallTime) {
        advance(to: end)
        let last = min(end.milliseconds, (newest + 1) * Self.step - 1)
        let begin = min(max(start.milliseconds, (newest - Int64(Self.steps)) * Self.step), last)
        if count <= 0 { return }
        if bytes[destination] == nil { bytes[destination] = Array(repeating: 0, count: Self.slots) }
        var left = count
        for number in begin / Self.step...last / Self.step {
            let share: Int64
            if number == last / Self.step {
                share = left
            } else {
                let time = (number + 1) * Self.step - max(begin, number * Self.step)
                share = min(left, Int64(Double(count) * Double(time) / Double(last - begin + 1)))
            }
            bytes[destination]?[Int(number % Int64(Self.slots))] += share
            left -= share
        }
    }

    /// Steps that lie behind are forgotten, those that lie ahead begin with nothing.
    private mutating func advance(to time: WallTime) {
        let number = time.milliseconds / Self.step
        if number < newest - Int64(Self.steps) {
            // The clock was put back by more than is shown: what was counted belongs to times that come again.
            (bytes, newest) = ([:], number)
            return
        }
        guard number > newest else { return }
        for next in max(newest + 1, number - Int64(Self.steps))...number {
            for name in bytes.keys { bytes[name]?[Int(next % Int64(Self.slots))] = 0 }
        }
        newest = number
        bytes = bytes.filter { $0.value.contains { $0 > 0 } }
    }

    /// Bytes per second of each whole step of the last hour, the oldest first.
    mutating func series(at now: WallTime) -> RatesReport {
        advance(to: now)
        let numbers = (newest - Int64(Self.steps))..<newest
        func rates(_ slots: [Int64]) -> [Int64] {
            numbers.map { slots[Int($0 % Int64(Self.slots))] * 1000 / Self.step }
        }
        let destinations = bytes.mapValues(rates)
        let total = (0..<Self.steps).map { index in destinations.values.reduce(0) { $0 + $1[index] } }
        return RatesReport(
            step_ms: Self.step, from: WallTime(milliseconds: numbers.lowerBound * Self.step).rfc3339, total: total,
            destinations: destinations)
    }
}
