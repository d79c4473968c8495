import Foundation

@testable import InletDashboard

/// An agent's answer, with what a test wants to be different.
enum SampleStatus {
    static let start = "2026-11-22T10:00:00.000Z"

    static func report(_ change: (inout StatusReport) throws -> Void = { _ in }) throws -> StatusReport {
        let text = """
            {"running": true, "version": "1.2.3", "started_at": "\(start)", "journal_failing": false, "seen": 9,
             "pending": 2, "ignored": 0, "files": {"pending": 2, "delivered": 7}, "bytes": {"pending": 3000, "delivered": 0},
             "queue": {"total": 2, "in_flight": 1, "waiting": 1, "retrying": 0, "held": 0, "parked": 0, "failed": 0,
                       "expired": 0},
             "destinations": [{"name": "store", "type": "r2", "state": "up", "waiting": 1}],
             "roots": [{"path": "/srv/drop", "state": "watching", "directories": 1, "polled": 0, "settling": 0,
                        "ignored": 0, "unsettled": []}],
             "in_flight": []}
            """
        var report = try JSONDecoder().decode(StatusReport.self, from: Data(text.utf8))
        try change(&report)
        return report
    }

    static func transfer(
        _ job: Int64 = 1, _ path: String = "/srv/drop/film.mov", sent: Int64, of size: Int64 = 1000
    ) -> StatusReport.Transfer {
        StatusReport.Transfer(job: job, path: path, destination: "store", sent: sent, size: size, since: start)
    }
}
