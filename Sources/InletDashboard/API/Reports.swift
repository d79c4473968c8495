package import InletAgent
internal import InletCore
package import InletJournal
internal import SystemPackage

/// The control API's answers; `inlet status --json` prints them as they are. Paths are shown escaped, ids are the
/// journal's. Keys may be added, never renamed.
package struct StatusReport: Codable, Sendable {
    package struct Destination: Codable, Sendable {
        package var name: String
        package var type: String
        /// `up`, `down`, `credentials refused`, `asks for time`, `not asked yet`, `paused`.
        package var state: String
        package var last_error: String?
        package var next_probe: String?
        package var waiting: Int
    }

    package struct Root: Codable, Sendable {
        package var path: String
        package var state: String
        package var directories: Int
        package var settling: Int
        package var ignored: Int
        package var unsettled: [Unsettled]
    }

    package struct Unsettled: Codable, Sendable {
        package var path: String
        package var writer: Bool
        /// What it waits for besides writers and its quiet time.
        package var waits_for: String?
    }

    package struct Transfer: Codable, Sendable {
        package var job: Int64
        package var path: String
        package var destination: String
        package var sent: Int64
        package var size: Int64
        package var since: String
        /// How far it is of 100, and what is being done, where bytes do not tell.
        package var percent: Double?
        package var step: String?
        /// When the destination, which works on it, is asked again; nil while we work on it.
        package var next_look: String?
    }

    package var running: Bool
    package var version: String?
    package var started_at: String?
    package var journal_failing: Bool
    /// Files seen; equal to the sum of `files` and `ignored`.
    package var seen: Int
    package var pending: Int
    package var ignored: Int
    /// Files by state.
    package var files: [String: Int]
    package var bytes: [String: Int64]
    package var oldest_pending: String?
    package var destinations: [Destination]
    package var roots: [Root]
    package var in_flight: [Transfer]
    /// How far the files are that waited at the start; nil once all have been tried.
    package var resuming: ResumeSummary?

    /// What `view` shows now. `configured` names the destinations to list while no agent runs.
    package init(_ view: AgentView, configured: [(name: String, type: String)] = []) async throws(JournalError) {
        let balance = try await view.balance()
        let waiting = try await view.waiting()
        let paused = try await view.journal.paused()
        running = view.live != nil
        version = view.live?.version
        started_at = view.live?.startedAt.rfc3339
        journal_failing = view.live?.journalIsFailing() ?? false
        seen = balance.seen
        pending = balance.pending
        ignored = balance.ignored
        files = Dictionary(
            uniqueKeysWithValues: FileState.allCases.map { ($0.rawValue, balance.totals[$0]?.files ?? 0) })
        bytes = Dictionary(
            uniqueKeysWithValues: FileState.allCases.map { ($0.rawValue, balance.totals[$0]?.bytes ?? 0) })
        oldest_pending = try await view.journal.oldestPending()?.rfc3339
        destinations =
            view.live?.destinations().map { Self.destination($0, waiting) }
            ?? configured.map {
                Destination(
                    name: $0.name, type: $0.type, state: paused.contains($0.name) ? "paused" : "not running",
                    waiting: waiting[$0.name] ?? 0)
            }
        resuming = view.live?.resume()
        roots = view.live?.roots().map(Self.root) ?? []
        in_flight = view.live?.inFlight().map(Self.transfer) ?? []
        in_flight += try await view.journal.waiting(limit: Self.mostWaiting).map { delivery in
            Self.transfer(delivery, view.live?.step(delivery.id))
        }
    }

    /// Of deliveries that destinations work on; the rest is in the queue's list.
    private static let mostWaiting = 100

    private static func destination(_ status: DestinationBoard.Status, _ waiting: [String: Int]) -> Destination {
        var report = Destination(
            name: status.name, type: status.type, state: "up", last_error: status.lastError,
            waiting: waiting[status.name] ?? 0)
        switch status.state {
        case .up, .trial: break
        case .unproved: report.state = "not asked yet"
        case .slowed(_, let until):
            report.state = "asks for time"
            report.next_probe = until.rfc3339
        case .down(_, let probe):
            report.state = "down"
            report.next_probe = probe.rfc3339
        case .credentialsRefused(_, let probe):
            report.state = "credentials refused"
            report.next_probe = probe.rfc3339
        }
        if status.isPaused { report.state = "paused" }
        return report
    }

    private static func root(_ status: IntakeStatus) -> Root {
        let state =
            switch status.state {
            case .starting: "starting"
            case .missing: "missing"
            case .failing(let why): "failing: \(why)"
            case .watching: "watching"
            }
        return Root(
            path: status.root.display, state: state, directories: status.directories, settling: status.settling,
            ignored: status.ignored,
            unsettled: status.unsettled.map { Unsettled(path: $0.path.display, writer: $0.busy, waits_for: $0.why) })
    }

    private static func transfer(_ snapshot: InFlight.Snapshot) -> Transfer {
        Transfer(
            job: snapshot.ref.job, path: snapshot.ref.path.display, destination: snapshot.ref.destination,
            sent: snapshot.sent, size: snapshot.size, since: snapshot.since.rfc3339, percent: snapshot.step?.percent,
            step: snapshot.step.map { DisplayText.escape($0.step) })
    }

    /// Nothing of it is left to send.
    private static func transfer(_ delivery: WaitingDelivery, _ step: StepProgress?) -> Transfer {
        Transfer(
            job: delivery.file, path: delivery.path.display, destination: delivery.destination, sent: delivery.size,
            size: delivery.size, since: delivery.admittedAt.rfc3339, percent: step?.percent,
            step: (delivery.saying ?? step?.step).map { DisplayText.escape($0) }, next_look: delivery.until.rfc3339)
    }
}

/// One file and its deliveries.
package struct JobReport: Codable, Sendable {
    package struct Delivery: Codable, Sendable {
        package var destination: String
        package var key: String?
        package var state: String
        package var attempts: Int
        /// The destination that must have the file first.
        package var after: String?
        package var next_at: String?
        package var code: String?
        package var reason: String?
        package var url: String?
        package var etag: String?
        package var verified: String?
        /// What else the destination said; nothing secret.
        package var details: [String: String]?
    }

    package var job: Int64
    package var path: String
    package var size: Int64
    package var state: String
    package var route: String?
    package var code: String?
    package var reason: String?
    package var admitted_at: String
    package var ended_at: String?
    package var finished_at: String?
    package var disposition: String?
    package var deliveries: [Delivery]
    /// The files that it belongs to; only where a single job is asked for.
    package var batch: Batch?

    /// Files that belong together: a file with its companions, or a folder that is delivered as one.
    package struct Batch: Codable, Sendable {
        package var batch: Int64
        package var name: String
        /// `open` while files are still collected, `pending` until it ends, then the worst of its files' states.
        package var state: String
        package var created_at: String
        package var closed_at: String?
        package var ended_at: String?
        /// Files by state.
        package var files: [String: Int]

        init(_ batch: InletJournal.Batch) {
            self.batch = batch.id
            name = DisplayText.escape(batch.name)
            state = batch.isOpen ? "open" : batch.state.rawValue
            created_at = batch.createdAt.rfc3339
            closed_at = batch.closedAt?.rfc3339
            ended_at = batch.endedAt?.rfc3339
            files = Dictionary(uniqueKeysWithValues: batch.counts.map { ($0.key.rawValue, $0.value) })
        }
    }

    package init(_ job: Job, batch: InletJournal.Batch? = nil) {
        self.batch = batch.map { Batch($0) }
        let file = job.file
        self.job = file.id
        path = file.fullPath.display
        size = file.identity.size
        state = file.state.rawValue
        route = file.route
        code = file.code?.rawValue
        reason = file.reason
        admitted_at = file.admittedAt.rfc3339
        ended_at = file.endedAt?.rfc3339
        finished_at = file.finishedAt?.rfc3339
        disposition = file.disposition
        deliveries = job.deliveries.map { row in
            Delivery(
                destination: row.destination, key: row.proof?.key ?? row.key, state: row.state.rawValue,
                attempts: row.attempts,
                after: row.afterID.flatMap { id in job.deliveries.first { $0.id == id }?.destination },
                next_at: row.state == .ready && !row.isHeld ? row.nextAt.rfc3339 : nil,
                code: row.code?.rawValue, reason: row.reason, url: row.proof?.url, etag: row.proof?.etag,
                verified: row.proof?.method.rawValue, details: row.proof?.details)
        }
    }
}

/// What a command answers: whether it did something, and a sentence.
package struct CommandReport: Codable, Sendable {
    package var done: Bool
    package var message: String
    /// The job that `send` queued.
    package var job: Int64?

    package init(done: Bool, message: String, job: Int64? = nil) {
        self.done = done
        self.message = message
        self.job = job
    }
}
