internal import InletCore

/// What somebody who watches an agent has seen of it: the last answer, how fast it goes, and whether it still answers.
package struct WatchedStatus: Sendable {
    private enum Contact: Sendable {
        case answering
        /// It listens, and says nothing.
        case silent
        case stopped
    }

    package private(set) var report: StatusReport
    package private(set) var rates = TransferRates()
    /// What has happened to the agent meanwhile; nil while nothing has.
    package private(set) var notice: String?
    private var contact: Contact
    private var hasRun: Bool

    /// - Parameter seconds: of a clock that only goes on.
    package init(_ report: StatusReport, at seconds: Double) {
        self.report = report
        hasRun = report.running
        contact = report.running ? .answering : .stopped
        rates.look(report, at: seconds)
    }

    /// It has answered.
    ///
    /// - Parameter clock: the time of day, for people.
    package mutating func take(_ next: StatusReport, at seconds: Double, clock: String) {
        if contact == .stopped || next.started_at != report.started_at {
            notice = hasRun ? "The agent was started again at \(clock)." : "The agent was started at \(clock)."
            rates = TransferRates()
        } else if contact == .silent {
            notice = "The agent answers again since \(clock)."
            rates = TransferRates()
        }
        (contact, hasRun, report) = (.answering, true, next)
        rates.look(next, at: seconds)
    }

    /// It has not answered.
    ///
    /// - Parameter hasStopped: nothing listens any more; otherwise it may be busy, and what was known is still shown.
    package mutating func lose(hasStopped: Bool, clock: String) {
        if hasStopped, contact != .stopped {
            notice = "The agent stopped at \(clock); this is what was known then."
            (contact, report) = (.stopped, report.stopped)
        } else if !hasStopped, contact == .answering {
            notice = "The agent does not answer since \(clock); this is what was known then."
            contact = .silent
        }
    }
}

extension StatusReport {
    /// What is left of it when the agent ends: nothing moves, and only the journal's numbers hold.
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
        }
        report.health = Health(report)
        return report
    }
}
