internal import InletAgent
internal import InletCore
internal import InletJournal

/// How far jobs are, for somebody who tells of them in their order: whatever can be told now, and what the next one does. What
/// comes after that one is not looked at, so that thousands of jobs can be asked about many times a second.
package struct FollowReport: Codable, Sendable, Described {
    /// What is told of a file: no more, because tens of thousands are told of by one command.
    package struct File: Codable, Sendable, Described {
        package struct Place: Codable, Sendable {
            package var destination: String
            package var state: String
            package var key: String?
            package var url: String?
        }

        package var job: Int64
        package var path: String
        package var size: Int64
        package var state: String
        package var reason: String?
        package var places: [Place]

        static var schemaName: String { "FollowFile" }
    }

    /// A job of which all is known that will be known soon.
    package struct End: Codable, Sendable, Described {
        package var job: Int64
        /// nil when the journal does not have it: somebody has had it forgotten.
        package var report: File?
        /// Why it has not ended and nobody knows when it will: the destination that it waits for is away.
        package var waits_for: String?

        static var schemaName: String { "FollowEnd" }
    }

    /// How many may be asked about at once: more would keep the others from the journal.
    package static let most = 128

    /// The first of the jobs, in their order.
    package var ends: [End]
    /// The one after them, which is on its way; nil when there is none.
    package var next: File?
    /// Its transfers that run now, and those that its destinations work on.
    package var moving: [StatusReport.Transfer]
}

extension FollowReport.File {
    init(_ job: Job) {
        let file = job.file
        self.init(
            job: file.id, path: file.fullPath.display, size: file.identity.size, state: file.state.rawValue,
            reason: file.reason,
            places: job.deliveries.map { row in
                Place(
                    destination: row.destination, state: row.state.rawValue, key: row.proof?.key ?? row.key,
                    url: row.proof?.url)
            })
    }
}

extension LocalControl {
    func follow(_ jobs: [Int64]) async throws -> FollowReport {
        let jobs = Array(jobs.prefix(FollowReport.most))
        let away = awayDestinations()
        let found = try await agent.jobs(jobs) { $0.file.state != .pending || Self.obstacle($0, away) != nil }
        var report = FollowReport(ends: [], moving: [])
        for (id, job) in zip(jobs, found) {
            let shown = job.map { FollowReport.File($0) }
            guard let job, job.file.state == .pending else {
                report.ends.append(FollowReport.End(job: id, report: shown))
                continue
            }
            if let why = Self.obstacle(job, away) {
                report.ends.append(FollowReport.End(job: id, report: shown, waits_for: why))
            } else {
                report.next = shown
                report.moving = try await moving(id)
            }
        }
        return report
    }

    /// Those that nothing can be sent to now, in words.
    func awayDestinations() -> [String: String] {
        guard let live = agent.live else {
            return Dictionary(uniqueKeysWithValues: agent.destinations.map { ($0.name, "\($0.name) is not running") })
        }
        let shut = live.limits.filter { $0.rate == 0 }
        // Those that are about to be asked, or asked for time themselves, are there.
        let fine = ["up", "not asked yet", "asks for time"]
        return live.destinations.reduce(into: [:]) { away, status in
            let report = StatusReport.destination(status, [:])
            if !fine.contains(report.state) {
                away[report.name] = "\(report.name) is \(report.state)" + (report.last_error.map { ": \($0)" } ?? "")
            } else if status.isShut,
                let limit = shut.first(where: { $0.destination == nil || $0.destination == report.name })
            {
                away[report.name] = "the limit is 0 (\(LimitReport(limit).text))"
            }
        }
    }

    /// Why nobody knows when a job will end; nil when it is on its way.
    private static func obstacle(_ job: Job, _ away: [String: String]) -> String? {
        if away.isEmpty { return nil }
        return job.deliveries.lazy.filter { $0.state == .ready }.compactMap { away[$0.destination] }.first
    }

    private func moving(_ job: Int64) async throws -> [StatusReport.Transfer] {
        let running = (agent.live?.inFlight ?? []).filter { $0.ref.job == job }
        if !running.isEmpty { return running.map { StatusReport.transfer($0) } }
        return try await agent.journal.waiting(limit: StatusReport.mostWaiting).filter { $0.file == job }
            .map { StatusReport.transfer($0, agent.live?.step($0.id)) }
    }
}
