internal import Foundation

/// An agent's state for `inlet status --watch`: the last answer, transfer rates, and whether it still answers.
package struct WatchedStatus: Sendable {
    package private(set) var report: StatusReport
    package private(set) var rates = TransferRates()
    /// The note that the agent was restarted, stopped or fell silent; nil otherwise.
    package private(set) var notice: String?
    /// The agent listens, but does not answer.
    private var isSilent = false
    private var hasRun: Bool

    /// - Parameter seconds: of a monotonic clock.
    package init(_ report: StatusReport, at seconds: Double) {
        self.report = report
        hasRun = report.running
        rates.look(report, at: seconds)
    }

    /// Notes an answer.
    ///
    /// - Parameter clock: the time of day, for people.
    package mutating func take(_ next: StatusReport, at seconds: Double, clock: String) {
        if !report.running || next.started_at != report.started_at {
            notice = hasRun ? "The agent was started again at \(clock)." : "The agent was started at \(clock)."
            rates = TransferRates()
        } else if isSilent {
            notice = "The agent answers again since \(clock)."
            rates = TransferRates()
        }
        (isSilent, hasRun, report) = (false, true, next)
        rates.look(next, at: seconds)
    }

    /// Notes a missing answer.
    ///
    /// - Parameter hasStopped: whether nothing listens any more; otherwise the agent may be busy, and its last numbers
    ///   are still shown.
    package mutating func lose(hasStopped: Bool, clock: String) {
        guard report.running else { return }
        if hasStopped {
            notice = "The agent stopped at \(clock); these were its last numbers."
            (isSilent, report) = (false, report.stopped)
        } else if !isSilent {
            notice = "The agent does not answer since \(clock); these were its last numbers."
            isSilent = true
        }
    }
}

extension StatusReport {
    /// The status after the agent's end: nothing moves, and only the journal's numbers still hold.
    package var stopped: StatusReport {
        var report = self
        report.running = false
        (report.version, report.started_at, report.limits, report.resuming) = (nil, nil, nil, nil)
        report.dashboard = nil
        report.queue.waiting += report.queue.in_flight
        (report.queue.in_flight, report.in_flight, report.roots) = (0, [], [])
        for index in report.destinations.indices where report.destinations[index].state != "paused" {
            report.destinations[index].state = "not running"
            report.destinations[index].next_probe = nil
            report.destinations[index].standing = nil
            report.destinations[index].since = nil
        }
        report.health = Health(report)
        return report
    }
}

/// Transfer rates between two looks at the agent: of each transfer, and of all together, including files that came and
/// went in between. Smoothed, so that a figure can be read.
///
/// Bytes before the first look do not count: the transfer may continue an earlier one.
package struct TransferRates: Sendable {
    /// Seconds after which a change counts for about two thirds.
    private static let memory = 5.0
    /// Looks closer together than this are ignored.
    private static let least = 0.05

    /// By job and destination.
    private var courses: [String: (sent: Int64, rate: Double?)] = [:]
    private var last: (time: Double, delivered: Int64, files: Int)?
    /// Bytes per second of all together; nil until there are two looks.
    package private(set) var total: Double?
    /// Files that ended delivered, per second.
    package private(set) var files: Double?

    package init() {}

    /// - Parameter time: seconds of a monotonic clock.
    package mutating func look(_ report: StatusReport, at time: Double) {
        let moving = report.in_flight.filter { $0.next_look == nil }
        look(
            moving, delivered: report.bytes["delivered"] ?? 0, files: report.files["delivered"] ?? 0, at: time)
    }

    /// - Parameters:
    ///   - delivered: bytes of the files that have arrived so far.
    ///   - files: their number.
    package mutating func look(
        _ transfers: [StatusReport.Transfer], delivered: Int64, files count: Int, at time: Double
    ) {
        guard let former = last else {
            last = (time, delivered, count)
            for transfer in transfers { courses[Self.key(transfer)] = (transfer.sent, nil) }
            return
        }
        let span = time - former.time
        guard span >= Self.least else { return }
        last = (time, delivered, count)
        let weight = 1 - exp(-span / Self.memory)
        var moved: Int64 = 0
        var next: [String: (sent: Int64, rate: Double?)] = [:]
        for transfer in transfers {
            let key = Self.key(transfer)
            guard let course = courses.removeValue(forKey: key) else {
                next[key] = (transfer.sent, nil)
                continue
            }
            // Fewer bytes than before mean a new attempt.
            let step = max(0, transfer.sent - course.sent)
            moved += step
            next[key] = (transfer.sent, Self.smooth(course.rate, Double(step) / span, weight))
        }
        // A part of the bytes that arrived in between was counted already.
        moved += max(0, delivered - former.delivered - courses.values.reduce(0) { $0 + $1.sent })
        courses = next
        total = Self.smooth(total, Double(moved) / span, weight)
        files = Self.smooth(files, Double(max(0, count - former.files)) / span, weight)
    }

    /// Bytes per second of one transfer; nil before its second look.
    package func rate(of transfer: StatusReport.Transfer) -> Double? { courses[Self.key(transfer)]?.rate }

    /// The time for `bytes` at `rate`; nil where nothing moves, and beyond four days, which nobody can predict.
    package static func time(for bytes: Int64, at rate: Double?) -> Duration? {
        guard let rate, rate >= 1 else { return nil }
        let seconds = Double(max(0, bytes)) / rate
        return seconds < 4 * 86_400 ? .seconds(Int64(seconds.rounded(.up))) : nil
    }

    private static func key(_ transfer: StatusReport.Transfer) -> String { "\(transfer.job) \(transfer.destination)" }

    private static func smooth(_ former: Double?, _ now: Double, _ weight: Double) -> Double {
        former.map { $0 + (now - $0) * weight } ?? now
    }
}
