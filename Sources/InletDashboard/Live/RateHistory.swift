internal import InletAgent
internal import InletCore

/// The rate to each destination over the last hour, in steps of ten seconds. It remembers the counted bytes of each
/// running delivery, so that the next look counts only the rest. Pure: time is a parameter.
struct RateHistory: Sendable {
    static let step: Int64 = 10_000
    static let steps = 360
    /// The complete steps, and the current one.
    private static let slots = steps + 1

    /// Bytes of each step by destination, at the step's number modulo their count.
    private var bytes: [String: [Int64]] = [:]
    /// The newest step with a place.
    private var newest: Int64

    /// By delivery. `counted` is nil until the first look at a delivery that continues an earlier process's or
    /// attempt's work.
    private var records: [Int64: (counted: Int64?, size: Int64, at: WallTime)] = [:]
    /// Many times what can run at once.
    private static let mostRecords = 10_000

    init(from start: WallTime) {
        newest = start.milliseconds / Self.step
    }

    /// Counts the bytes that an event reports as sent. - Returns: how many they are.
    @discardableResult
    mutating func hear(_ event: AgentEvent, at now: WallTime) -> Int64 {
        switch event {
        case .jobStarted(let ref, _, _, let size, let isPoll, let isResumed):
            if records.count >= Self.mostRecords { records = [:] }
            let counted: Int64? = isPoll ? size : isResumed || records[ref.delivery] != nil ? nil : 0
            records[ref.delivery] = (counted, size, now)
            return 0
        case .transferProgress(let ref, let sent, _, _):
            return look(sent, of: ref.delivery, to: ref.destination, at: now)
        case .jobWaiting(let ref, _, _, _):
            // Nothing of it is left to send.
            guard let size = records[ref.delivery]?.size else { return 0 }
            return look(size, of: ref.delivery, to: ref.destination, at: now)
        case .jobDelivered(let ref, let proof, _):
            defer { records[ref.delivery] = nil }
            guard !proof.isLink, ![.registered, .adopted, .carried].contains(proof.method) else { return 0 }
            return look(proof.size, of: ref.delivery, to: ref.destination, at: now)
        case .jobRetry: return 0  // The next try may go on where this one ended.
        case .jobFailed(let ref, _, _):
            records[ref.delivery] = nil
            return 0
        default: return 0
        }
    }

    /// Counts the bytes that a delivery has sent since the last look. - Returns: how many they are.
    @discardableResult
    mutating func look(_ sent: Int64, of delivery: Int64, to destination: String, at now: WallTime) -> Int64 {
        guard let record = records[delivery] else { return 0 }
        records[delivery]?.counted = max(sent, record.counted ?? 0)
        records[delivery]?.at = now
        guard let counted = record.counted, sent > counted else { return 0 }
        add(sent - counted, to: destination, from: record.at, until: now)
        return sent - counted
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

    /// Drops the steps that are older than what is shown, and starts new ones at 0.
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

/// The last hour in steps.
package struct RatesReport: Codable, Sendable, Equatable, NamedSchema {
    package var step_ms: Int64
    /// When the first step began.
    package var from: String
    /// Bytes per second, the oldest first.
    package var total: [Int64]
    /// By destination; those to which nothing went are left out.
    package var destinations: [String: [Int64]]

    static let notes: [String: SchemaDescription] = ["from": .time, "total": "Bytes per second."]
}
