internal import Foundation

/// How fast bytes leave, from one look at the agent to the next: of each transfer, and of all together with the files that
/// came and went in between. Smoothed, so that a figure can be read.
///
/// What a transfer has sent when it is seen first is not counted: it may go on from where an earlier one stopped.
package struct TransferRates: Sendable {
    /// One delivery of one file.
    package struct Key: Hashable, Sendable {
        var job: Int64
        var destination: String

        init(_ transfer: StatusReport.Transfer) { (job, destination) = (transfer.job, transfer.destination) }
    }

    private struct Course: Sendable {
        var sent: Int64
        var rate: Double?
    }

    /// Seconds after which a change counts for about two thirds.
    private static let memory = 5.0
    /// Looks closer together than this say nothing.
    private static let least = 0.05

    private var courses: [Key: Course] = [:]
    private var last: (time: Double, delivered: Int64, files: Int)?
    /// Bytes per second of all together; nil until there are two looks.
    package private(set) var total: Double?
    /// Files that ended delivered, per second.
    package private(set) var files: Double?

    package init() {}

    /// - Parameter time: seconds of a clock that only goes on.
    package mutating func look(_ report: StatusReport, at time: Double) {
        let moving = report.in_flight.filter { $0.next_look == nil }
        look(
            moving, delivered: report.bytes["delivered"] ?? 0, files: report.files["delivered"] ?? 0, at: time)
    }

    /// - Parameters:
    ///   - delivered: bytes of the files that have arrived so far.
    ///   - files: how many these are.
    package mutating func look(
        _ transfers: [StatusReport.Transfer], delivered: Int64, files count: Int, at time: Double
    ) {
        guard let former = last else {
            last = (time, delivered, count)
            for transfer in transfers { courses[Key(transfer)] = Course(sent: transfer.sent) }
            return
        }
        let span = time - former.time
        guard span >= Self.least else { return }
        last = (time, delivered, count)
        let weight = 1 - exp(-span / Self.memory)
        var moved: Int64 = 0
        var next: [Key: Course] = [:]
        for transfer in transfers {
            let key = Key(transfer)
            guard let course = courses.removeValue(forKey: key) else {
                next[key] = Course(sent: transfer.sent)
                continue
            }
            // Less than before is a new attempt.
            let step = max(0, transfer.sent - course.sent)
            moved += step
            let rate = Self.smooth(course.rate, Double(step) / span, weight)
            next[key] = Course(sent: transfer.sent, rate: rate)
        }
        // Of what arrived in between, a part was counted while it was seen.
        moved += max(0, delivered - former.delivered - courses.values.reduce(0) { $0 + $1.sent })
        courses = next
        total = Self.smooth(total, Double(moved) / span, weight)
        files = Self.smooth(files, Double(max(0, count - former.files)) / span, weight)
    }

    /// Bytes per second of one transfer; nil until it was seen twice.
    package func rate(of transfer: StatusReport.Transfer) -> Double? { courses[Key(transfer)]?.rate }

    /// How long `bytes` take at `rate`; nil where nothing moves, and beyond four days, which nobody can know.
    package static func time(for bytes: Int64, at rate: Double?) -> Duration? {
        guard let rate, rate >= 1 else { return nil }
        let seconds = Double(max(0, bytes)) / rate
        return seconds < 4 * 86_400 ? .seconds(Int64(seconds.rounded(.up))) : nil
    }

    private static func smooth(_ former: Double?, _ now: Double, _ weight: Double) -> Double {
        former.map { $0 + (now - $0) * weight } ?? now
    }
}
