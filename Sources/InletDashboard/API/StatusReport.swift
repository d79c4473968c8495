package import InletAgent
internal import InletCore
package import InletJournal
internal import InletLinux
internal import SystemPackage

/// The control API's answers; `inlet status --json` prints them unchanged. Paths are escaped, ids are the journal's.
/// Keys may be added, never renamed.
package struct StatusReport: Codable, Sendable, NamedSchema {
    package struct Destination: Codable, Sendable, NamedSchema {
        package var name: String
        package var type: String
        package var state: String
        package var last_error: String?
        /// Since when it is down.
        package var since: String?
        package var next_probe: String?
        package var waiting: Int
        /// Its work, and the reason for which files wait.
        package var standing: String?

        static let notes: [String: SchemaDescription] = [
            "standing": "Its work, and why files wait, in words; left out where nothing waits and nothing runs.",
            "state": "up, down, credentials refused, asks for time, not asked yet, paused, or not running",
            "since": .time("Since when it is down."), "next_probe": .time, "waiting": "Deliveries.",
        ]
    }

    package struct Root: Codable, Sendable, NamedSchema {
        package var path: String
        package var state: String
        /// The share of the fleet that it is.
        package var place: String?
        package var mode: String?
        package var watches: Int?
        package var last_event: String?
        package var directories: Int
        /// Those whose changes raise no events.
        package var polled: Int
        package var settling: Int
        package var ignored: Int
        package var unsettled: [SettlingFile]
        package var stuck: BlockedFiles?
        package var last_file_at: String?
        /// How often a file is to come, as in the configuration.
        package var expect: String?
        package var quiet_since: String?

        static let notes: [String: SchemaDescription] = [
            "last_file_at": .time("When the last file of it was admitted; left out before any, and for cards."),
            "expect": "How often a file is to come; left out where nothing is expected.",
            "quiet_since": .time("Since when no file came, once that is longer than expect."),
            "state": "starting, watching, missing, or failing, paused or standby with the reason behind a colon",
            "place": "The share of the fleet that it is; left out for a folder of this agent's own.",
            "mode": "inotify, fanotify, poll, or mixed; absent before any folder of it was entered",
            "watches": "Of inotify.",
            "last_event": .time("The kernel's last event there; where it is polled, the last file found complete."),
            "stuck": "Files that cannot be admitted now, and folders that cannot be listed.",
        ]
    }

    /// The file that was admitted last.
    package struct LastFile: Codable, Sendable, NamedSchema {
        package var job: Int64
        package var path: String
        package var at: String

        static let notes: [String: SchemaDescription] = ["at": .time]

        init(_ file: Arrival) { (job, path, at) = (file.job, file.path.display, file.at.rfc3339) }
    }

    package struct SettlingFile: Codable, Sendable, NamedSchema {
        package var path: String
        package var writer: Bool
        /// Its other reason to wait, besides writers and its quiet time.
        package var waits_for: String?
        /// The process that has it open for writing, where that is visible.
        package var held_by: String?
        package var waiting_ms: Int64?
    }

    package struct Transfer: Codable, Sendable, NamedSchema {
        package var job: Int64
        package var path: String
        package var destination: String
        package var sent: Int64
        package var size: Int64
        package var since: String
        /// Its progress in per cent, and its present step, where bytes do not tell.
        package var percent: Double?
        package var step: String?
        /// The next question to the destination that is working on it; nil while we work on it.
        package var next_look: String?

        static let notes: [String: SchemaDescription] = ["since": .time, "next_look": .time]
    }

    /// Open deliveries by place, and those that need a person; a file has one delivery for each destination.
    package struct Queue: Codable, Sendable, NamedSchema {
        package var total: Int
        package var in_flight: Int
        /// Deliveries that wait for a worker or for their time.
        package var waiting: Int
        /// Deliveries among `waiting` that were tried before.
        package var retrying: Int
        /// Deliveries that wait for another file, or for their unit.
        package var held: Int
        /// Deliveries whose destination is not configured.
        package var parked: Int
        package var failed: Int
        package var expired: Int
        /// The admission time of the file that has waited longest.
        package var oldest_waiting: String?
        package var oldest_waiting_ms: Int64?

        static let notes: [String: SchemaDescription] = [
            "total": "Open deliveries.", "failed": "Files.", "expired": "Files.", "oldest_waiting": .time,
        ]
    }

    /// A part of the agent that ended unexpectedly.
    package struct ServiceFailure: Codable, Sendable, NamedSchema {
        package var service: String
        package var reason: String

        static let notes: [String: SchemaDescription] = ["service": "What it does."]
    }

    /// Files that cannot be processed now.
    package struct BlockedFiles: Codable, Sendable, NamedSchema {
        package var files: Int
        package var reason: String

        static let notes: [String: SchemaDescription] = ["files": "At most 10,000.", "reason": "Of the oldest."]
    }

    /// A removable volume that files wait for.
    package struct AwayVolume: Codable, Sendable, NamedSchema {
        package var volume: String
        package var path: String
        package var files: Int

        static let notes: [String: SchemaDescription] = [
            "volume": "Its UUID, label or device, and the folder on it.", "path": "Where it was last.",
        ]
    }

    /// The things that need a person; nil from an agent of an older version.
    package var health: Health?
    package var running: Bool
    package var queue: Queue
    package var version: String?
    package var started_at: String?
    package var journal_failing: Bool
    /// The reason, as in the log.
    package var journal_reason: String?
    /// Whether all parts of the agent work.
    var isWorking: Bool { !journal_failing && incidents == nil }
    package var seen: Int
    package var pending: Int
    package var ignored: Int
    package var files: [String: Int]
    package var bytes: [String: Int64]
    package var oldest_pending: String?
    package var destinations: [Destination]
    package var roots: [Root]
    /// nil before any file, and while no agent runs.
    package var last_file: LastFile?
    package var in_flight: [Transfer]
    /// Notices that their receivers (notify) have not accepted yet, and abandoned ones.
    package var notices_waiting: Int?
    package var notices_failed: Int?
    package var stuck: BlockedFiles?
    package var forbidden: BlockedFiles?
    package var gone_soon: Int?
    /// nil where there are none, and from an agent of an older version.
    package var rejected_left: Int?
    package var away: [AwayVolume]?
    /// nil while the log can be written.
    package var log: LogStatus?
    package var incidents: [ServiceFailure]?
    /// The progress of the files that waited at the start; nil once all have been tried.
    package var resuming: ResumeSummary?
    /// The bandwidth limits, the common one first; nil while no agent runs.
    package var limits: [LimitReport]?
    /// The windows of the routes that have one.
    package var windows: [WindowReport]?
    /// The page and the API on a port; nil where there is none.
    package var dashboard: DashboardReport?
    /// The parts of the file system that the running agent has given up.
    package var confinement: ConfinementReport?
    /// This agent's standing in its fleet, without the other agents; nil without a fleet.
    package var fleet: FleetReport?

    static let notes: [String: SchemaDescription] = [
        "started_at": .time, "seen": "Files seen: the sum of files and ignored.", "files": "Files by state.",
        "bytes": "Their bytes by state.", "oldest_pending": .time,
        "incidents": "Parts of the agent that ended unexpectedly, and start again.",
        "last_file": "The file that was admitted last.",
        "away": "Removable volumes that files wait for.", "log": "Why log lines are lost.",
        "stuck": "Files that could not be archived, deleted or quarantined at their end.",
        "forbidden": "Files that wait for permission to be read.",
        "rejected_left": "Rejected files that a person has left in their places.",
        "fleet": "The standing in its fleet; GET fleet has the agents. Left out without a fleet.",
        "gone_soon": "Files that ended as gone within seconds of their admission, since yesterday.",
    ]

    /// The state now.
    package init(_ agent: AgentControl) async throws(JournalError) {
        let live = agent.live
        let balance = try await agent.balance()
        let open = try await agent.queue()
        let waiting = open.byDestination
        queue = Queue(
            total: open.inFlight + open.waiting + open.held + open.parked, in_flight: open.inFlight,
            waiting: open.waiting, retrying: open.retrying, held: open.held, parked: open.parked,
            failed: balance.totals[.failed]?.files ?? 0, expired: balance.totals[.expired]?.files ?? 0,
            oldest_waiting: open.oldest?.rfc3339,
            oldest_waiting_ms: open.oldest.map { max(0, (.now - $0).milliseconds) })
        (running, confinement, version) = (live != nil, live?.confinement, live?.version)
        (started_at, journal_reason) = (live?.startedAt.rfc3339, live?.journalTrouble)
        journal_failing = journal_reason != nil
        seen = balance.seen
        (pending, ignored) = (balance.pending, balance.ignored)
        files = Dictionary(
            uniqueKeysWithValues: FileState.allCases.map { ($0.rawValue, balance.totals[$0]?.files ?? 0) })
        bytes = Dictionary(
            uniqueKeysWithValues: FileState.allCases.map { ($0.rawValue, balance.totals[$0]?.bytes ?? 0) })
        oldest_pending = try await agent.journal.oldestPending()?.rfc3339
        (resuming, limits) = (live?.resume, live?.limits.map { LimitReport($0) })
        destinations = try await Self.destinations(agent, waiting, limits ?? [])
        windows = live?.windows.map { WindowReport(route: $0.route, $0.window, at: .now) }
        let ended = live?.incidents ?? []
        incidents = ended.isEmpty ? nil : ended.map { ServiceFailure(service: $0.service, reason: $0.reason) }
        log = live?.logStanding
        roots = live?.roots.map(Self.root) ?? []
        last_file = live?.newest.map { LastFile($0) }
        in_flight = live?.inFlight.map(Self.transfer) ?? []
        in_flight += try await agent.journal.waiting(limit: Self.mostWaiting).map { delivery in
            Self.transfer(delivery, live?.step(delivery.id))
        }
        let backlog = try await agent.journal.outboxBacklog()
        notices_waiting = backlog.waiting > 0 ? backlog.waiting : nil
        notices_failed = backlog.failed > 0 ? backlog.failed : nil
        (stuck, forbidden, gone_soon, rejected_left, away) = try await Self.troubles(agent.journal)
        fleet = await Self.standing(agent)
        health = Health(self)
    }

    private static func destinations(
        _ agent: AgentControl, _ waiting: [String: Int], _ limits: [LimitReport]
    ) async throws(JournalError) -> [Destination] {
        if let live = agent.live {
            let (running, sizes) = (live.inFlight, try await agent.journal.bytes(ofWaiting: waiting))
            return live.destinations.map { status in
                var report = destination(status, waiting)
                let standing = DestinationStanding(
                    report, bytes: sizes[status.name] ?? 0, running, status.isLocal ? [] : limits, at: .now)
                report.standing = standing.text
                return report
            }
        }
        let paused = try await agent.journal.paused()
        return agent.destinations.map {
            Destination(
                name: $0.name, type: $0.type, state: paused.contains($0.name) ? "paused" : "not running",
                waiting: waiting[$0.name] ?? 0)
        }
    }

    /// A status is sent each second, so it leaves out the other agents, of whom there may be a thousand, and waits for
    /// no PostgreSQL.
    private static func standing(_ agent: AgentControl) async -> FleetReport? {
        var fleet = await agent.fleetAtOnce
        fleet?.agents = []
        return fleet
    }

    /// Files that a person should look at.
    private static func troubles(
        _ journal: Journal
    ) async throws(JournalError) -> (BlockedFiles?, BlockedFiles?, Int?, Int?, [AwayVolume]?) {
        let stuck = try await journal.stuck().map { BlockedFiles(files: $0.files, reason: $0.reason) }
        let forbidden = try await journal.forbidden().map { BlockedFiles(files: $0.files, reason: $0.reason) }
        let gone = try await journal.goneSoon(within: Health.soon, since: .now + Health.goneSince)
        let left = try await journal.rejectedLeft()
        return (stuck, forbidden, gone > 0 ? gone : nil, left > 0 ? left : nil, try await away(journal))
    }

    /// Removable volumes that files wait for; nil where there are none.
    private static func away(_ journal: Journal) async throws(JournalError) -> [AwayVolume]? {
        let volumes = try await journal.awayVolumes().map {
            AwayVolume(volume: DisplayText.escape($0.volume), path: $0.root.display, files: $0.files)
        }
        return volumes.isEmpty ? nil : volumes
    }

    /// Deliveries that destinations are working on; the queue's list has the rest.
    static let mostWaiting = 100

    static func destination(_ status: DestinationState, _ waiting: [String: Int]) -> Destination {
        var report = Destination(
            name: status.name, type: status.type, state: "up", last_error: status.lastError,
            waiting: waiting[status.name] ?? 0)
        switch status.state {
        case .up, .trial: break
        case .unproved: report.state = "not asked yet"
        case .slowed(_, let until):
            report.state = "asks for time"
            report.next_probe = until.rfc3339
        case .down(let since, let probe):
            report.state = "down"
            report.since = since.rfc3339
            report.next_probe = probe.rfc3339
        case .credentialsRefused(_, let probe):
            report.state = "credentials refused"
            report.next_probe = probe.rfc3339
        }
        if status.isPaused { report.state = "paused" }
        return report
    }

    static func root(_ status: RootStatus) -> Root {
        let state =
            switch status.state {
            case .starting: "starting"
            case .missing: "missing"
            case .failing(let why): "failing: \(why)"
            case .watching: "watching"
            case .guarded(let why): "paused: \(why)"
            case .standby(let holder): "standby: \(holder)"
            }
        return Root(
            path: status.root.display, state: state, place: status.place.map { DisplayText.escape($0) },
            mode: status.mode?.rawValue, watches: status.watches,
            last_event: status.lastEvent?.rfc3339, directories: status.directories, polled: status.polled,
            settling: status.settling, ignored: status.ignored,
            unsettled: status.unsettled.map {
                SettlingFile(
                    path: $0.path.display, writer: $0.busy, waits_for: $0.why, held_by: $0.holder?.text,
                    waiting_ms: $0.waiting?.milliseconds)
            }, stuck: status.stuck.map { BlockedFiles(files: $0.count, reason: $0.why) },
            last_file_at: status.lastFile?.rfc3339, expect: status.expect.map { DurationText.format($0) },
            quiet_since: status.quietSince?.rfc3339)
    }

    static func transfer(_ entry: Transfers.RunningTransfer) -> Transfer {
        let step = entry.step
        return Transfer(
            job: entry.ref.job, path: entry.ref.path.display, destination: entry.ref.destination, sent: entry.sent,
            size: entry.size, since: entry.since.rfc3339, percent: step?.percent,
            step: step.map { DisplayText.escape($0.step) })
    }

    /// Nothing of it is left to send.
    static func transfer(_ delivery: WaitingDelivery, _ step: StepProgress?) -> Transfer {
        Transfer(
            job: delivery.file, path: delivery.path.display, destination: delivery.destination, sent: delivery.size,
            size: delivery.size, since: delivery.admittedAt.rfc3339, percent: step?.percent,
            step: (delivery.saying ?? step?.step).map { DisplayText.escape($0) }, next_look: delivery.until.rfc3339)
    }
}

extension LogStatus: NamedSchema {
    static var schemaName: String { "Log" }
    static let notes: [String: SchemaDescription] = ["lost": "Lines lost since then."]
}

extension ResumeSummary: NamedSchema {
    static var schemaName: String { "Resuming" }
}

extension ConfinementReport: NamedSchema {
    static let notes: [String: SchemaDescription] = [
        "landlock": "The version of Landlock that confines the agent.",
        "denied_calls": "The number of system calls given up.",
        "calls_reason": "Why no system calls are given up, although Landlock confines it.",
        "reason": "Why it is not confined.",
        "readable": "Folders that the agent may read, with everything below them.",
        "writable": "Those of them in which it may create, change and remove files.",
    ]
}
