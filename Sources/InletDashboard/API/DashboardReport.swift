internal import Synchronization

/// Where the page and the API listen, and if they cannot, why.
package struct DashboardReport: Codable, Sendable, Equatable {
    package enum State: String, Codable, Sendable, CaseIterable {
        case starting
        case listening
        /// Tried again until it works.
        case failing
    }

    package var url: String
    package var state: State
    package var error: String?
}

/// The same, as it changes.
package final class DashboardStanding: Sendable {
    private let report: Mutex<DashboardReport>

    package init(url: String) { report = Mutex(DashboardReport(url: url, state: .starting)) }

    package var current: DashboardReport { report.withLock { $0 } }

    func listens(at url: String) { report.withLock { $0 = DashboardReport(url: url, state: .listening) } }

    /// - Returns: whether that is news.
    func fails(_ reason: String) -> Bool {
        report.withLock { report in
            defer { (report.state, report.error) = (.failing, reason) }
            return report.error != reason
        }
    }
}
