internal import InletAgent
internal import InletCore

/// In a few words: is it healthy, what is moving, what needs a person.
package struct Health: Codable, Sendable, Equatable, NamedSchema {
    package enum State: String, Codable, Sendable, CaseIterable, SchemaSample {
        /// Nothing needs anybody.
        case ok
        /// It goes on, and something of it waits for a person.
        case attention
        /// Something has stopped, and goes on only when a person has seen to it.
        case trouble
    }

    package var state: State
    /// For a person who looks for five seconds.
    package var sentence: String
    /// What needs a person, the worst first, each with what to do about it; at most `most`, and how many more there are.
    package var needs: [String]
    /// The same one by one, as many, and after them what is worth knowing and needs nobody; nil from an agent of an
    /// older version, as `needing`.
    package var findings: [HealthFinding]?
    package var needing: Int?

    static let notes: [String: SchemaDescription] = [
        "sentence": "What a person should know first.",
        "needs": "What needs a person, the worst first, each with its remedy.",
        "findings": "The same one by one, and after them what needs nobody.",
        "needing": "How many things need a person.",
    ]

    private static let most = 8

    package init(_ report: StatusReport) {
        let all = Self.findings(report)
        let needs = all.filter { $0.state == .trouble } + all.filter { $0.state == .attention }
        let moving = Self.moving(report)
        state = needs.first?.state ?? .ok
        needing = needs.count
        findings = Array(needs.prefix(Self.most)) + Array(all.filter { $0.state == .ok }.prefix(Self.most))
        self.needs = needs.prefix(Self.most).map(\.line)
        if needs.count > Self.most { self.needs.append("and \(needs.count - Self.most) more") }
        guard let worst = needs.first else {
            // What came back from a destination may go through the next time, and is no news; but it is not well.
            let again = report.queue.retrying
            sentence =
                again == 0
                ? "All is well: \(moving)."
                : "It goes on: \(moving), \(again) after an error ('inlet queue list' says which)."
            return
        }
        let others = needs.count == 1 ? "" : " (and \(needs.count - 1) more)"
        sentence = "\(state == .trouble ? "Trouble" : "Needs you"): \(worst.text)\(others); \(moving)."
    }

    private static func moving(_ report: StatusReport) -> String {
        let queue = report.queue
        if queue.in_flight == 0, queue.waiting == 0 { return "nothing is moving, nothing waits" }
        let moving = queue.in_flight == 0 ? "nothing is moving" : "\(queue.in_flight) moving"
        return queue.waiting == 0 ? moving : "\(moving), \(queue.waiting) waiting"
    }
}

/// One thing that a person should know.
package struct HealthFinding: Codable, Sendable, Equatable, NamedSchema {
    /// What it is about: where there is more of it.
    package enum Subject: String, Codable, Sendable, CaseIterable, SchemaSample {
        case agent, journal, dashboard, destination, root, files, queue, notices, limit
    }

    package var state: Health.State
    package var text: String
    package var remedy: String
    package var about: Subject
    package var name: String?

    static var schemaName: String { "Finding" }
    static let notes: [String: SchemaDescription] = [
        "state": "ok: it needs nobody.", "remedy": "What to do, or what happens by itself.",
        "name": "Of the destination, the watched folder, or the state of the files.",
    ]

    package init(_ state: Health.State, _ about: Subject, name: String? = nil, _ text: String, _ remedy: String) {
        (self.state, self.text, self.remedy, self.about, self.name) = (state, text, remedy, about, name)
    }

    var line: String { "\(text): \(remedy)" }
}

/// The rules: the only place where it is decided what needs a person.
extension Health {
    static func findings(_ report: StatusReport) -> [HealthFinding] {
        agent(report) + report.destinations.compactMap(destination) + report.roots.compactMap(root) + files(report)
            + queue(report) + (report.limits ?? []).compactMap(limit)
    }

    private static func agent(_ report: StatusReport) -> [HealthFinding] {
        var found: [HealthFinding] = []
        if report.journal_failing {
            let why = report.journal_reason.map { DisplayText.escape($0) } ?? "the log says why ('inlet tail')"
            found.append(.init(.trouble, .journal, "the journal cannot be written", why))
        }
        for incident in report.incidents ?? [] {
            let what = DisplayText.escape("\(incident.service) has stopped by itself")
            let remedy = "it begins again by itself; if it goes on so, restart Inlet\(because(incident.reason))"
            found.append(.init(.trouble, .agent, what, remedy))
        }
        if let log = report.log {
            let what =
                log.lost == 0
                ? "the log is not written as it should be"
                : "\(log.lost.counted("line of the log is", "lines of the log are")) lost"
            found.append(.init(.attention, .agent, name: "log", what, DisplayText.escape(log.reason)))
        }
        if !report.running {
            let remedy = "start it with 'inlet run', or 'systemctl start inlet'"
            found.append(.init(report.pending > 0 ? .trouble : .attention, .agent, "no agent runs", remedy))
        }
        if let page = report.dashboard, page.state == .failing {
            let remedy = "is dashboard.listen right, and its port free?\(because(page.error))"
            found.append(.init(.attention, .dashboard, "the page cannot be served", remedy))
        }
        if report.running, report.destinations.count > 1, report.destinations.allSatisfy({ $0.state == "down" }) {
            let remedy = "is this machine's network there?"
            found.append(.init(.trouble, .destination, "all destinations are down", remedy))
        }
        return found
    }

    private static func destination(_ destination: StatusReport.Destination) -> HealthFinding? {
        let (name, why) = (destination.name, because(destination.last_error))
        let rules: [String: (State, String, String)] = [
            "credentials refused": (
                .trouble, "refuses its credentials",
                "put new ones where the configuration reads them; they are tried by themselves\(why)"
            ),
            "down": (.attention, "is down", "it is tried again by itself; 'inlet resume \(name)' tries now\(why)"),
            "paused": (.attention, "is paused", "'inlet resume \(name)' lets it go on"),
            "asks for time": (.ok, "asks for time", "it is given some\(why)"),
        ]
        return rules[destination.state].map { .init($0, .destination, name: name, "\(name) \($1)", $2) }
    }

    private static func root(_ root: StatusReport.Root) -> HealthFinding? {
        let (path, state) = (root.path, DisplayText.escape(root.state))
        let rules: [(state: String, State, String, String)] = [
            ("failing", .trouble, "cannot be watched", "'inlet check' says more (\(state))"),
            (
                "paused", .trouble, "is not what it was",
                "if it is right as it is, 'inlet resume --root \(path)' goes on (\(state))"
            ),
            (
                "standby", .attention, "is watched by another agent",
                "this one takes over when that ends; if both are meant to, 'shared: true' says so in both (\(state))"
            ),
            ("missing", .attention, "is not there", "mount or make it; it is watched as soon as it is there"),
            ("starting", .ok, "is being listed", "what comes meanwhile is found too"),
        ]
        if let (_, grade, what, remedy) = rules.first(where: { state.hasPrefix($0.state) }) {
            return .init(grade, .root, name: path, "\(path) \(what)", remedy)
        }
        return root.stuck.map { stuck in
            .init(
                .attention, .root, name: path,
                "\(stuck.files.counted("file or folder", "files or folders")) in \(path) cannot be taken now",
                "mend that, and they go on by themselves\(because(stuck.reason))")
        }
    }

    /// So soon after its admission no person has tidied up: a file that is gone then belonged to a program, which took it away
    /// or renamed it.
    static let soon = Duration.seconds(10)
    static let goneSince = Duration.seconds(-86_400)
    /// Fewer are a person's change of mind.
    private static let mostGone = 5

    private static func files(_ report: StatusReport) -> [HealthFinding] {
        var found: [HealthFinding] = []
        func add(_ about: HealthFinding.Subject, name: String? = nil, _ text: String, _ remedy: String) {
            found.append(.init(.attention, about, name: name, text, remedy))
        }
        for state in [FileState.failed, .expired, .rejected].map(\.rawValue) {
            guard let count = report.files[state], count > 0 else { continue }
            let again = state == FileState.rejected.rawValue ? "" : ", 'inlet queue retry' sends them again"
            let remedy = "'inlet queue list --state \(state)' says why\(again)"
            add(.files, name: state, "\(count.counted("file")) \(state)", remedy)
        }
        if let gone = report.gone_soon, gone >= mostGone {
            add(
                .files, name: FileState.gone.rawValue, "\(gone) files were gone within seconds of their admission",
                "does another program take them away, or write under names that it changes? 'inlet queue list --state "
                    + "gone' names them; a longer 'settle' lets it end first")
        }
        if let forbidden = report.forbidden {
            add(
                .files, name: "forbidden", "\(forbidden.files.counted("file")) may not be read by Inlet",
                "have the owner allow it (chmod, chown or setfacl); what may be read goes on by itself"
                    + because(forbidden.reason))
        }
        for volume in report.away ?? [] {
            let what = volume.files.counted("file waits", "files wait")
            add(
                .root, name: volume.path, "\(what) for the card or disk that was at \(volume.path)",
                "put it in again, wherever: they go on by themselves (\(volume.volume))")
        }
        if let stuck = report.stuck {
            let what = "\(stuck.files.counted("file")) could not be archived, deleted or quarantined"
            add(.files, name: "stuck", what, "mend that, and it is done by itself\(because(stuck.reason))")
        }
        return found
    }

    private static func queue(_ report: StatusReport) -> [HealthFinding] {
        var found: [HealthFinding] = []
        if report.queue.parked > 0 {
            let what = "\(report.queue.parked.counted("delivery has", "deliveries have")) no destination"
            let remedy = "it left the configuration; put it back, or cancel with 'inlet queue cancel'"
            found.append(.init(.attention, .queue, what, remedy))
        }
        if let given = report.notices_failed, given > 0 {
            let what = "\(given.counted("notice was", "notices were")) not taken"
            found.append(.init(.attention, .notices, what, "try their receivers with 'inlet notify test'"))
        }
        return found
    }

    /// What a command stopped needs a person to go on; what the configuration or its schedule stops is as wanted.
    private static func limit(_ limit: LimitReport) -> HealthFinding? {
        guard limit.bytes_per_second == 0 else { return nil }
        let name = limit.destination
        let text = "nothing is sent\(name.map { " to \($0)" } ?? ""), the limit is 0"
        if limit.why == BandwidthPolicy.Cause.command.rawValue {
            let remedy = "'inlet limit auto\(name.map { " --to \($0)" } ?? "")' takes it away"
            return .init(.attention, .limit, name: name, text, remedy)
        }
        let end = limit.until.map { "by the schedule, until \($0)" } ?? "as configured"
        return .init(.ok, .limit, name: name, text, end)
    }

    private static func because(_ reason: String?) -> String {
        reason.map { " (\(DisplayText.escape($0)))" } ?? ""
    }
}

/// What `/readyz` answers: whether the agent does what it is there for, and if not, why.
struct ReadyReport: Codable, Sendable, NamedSchema {
    var ready: Bool
    /// Left out where there are none, and for those who may not see them.
    var reasons: [String]?

    /// Why an agent is not ready, in sentences; none where it is. Pure.
    ///
    /// - Parameters:
    ///   - journal: why it fails; nil when it does not.
    ///   - destinations: names, and states as `status` shows them.
    static func reasons(
        journal: String?, roots: [(path: String, state: RootStatus.State)],
        destinations: [(name: String, state: String)]
    ) -> [String] {
        var reasons = journal.map { ["the journal cannot be used: \(DisplayText.escape($0))"] } ?? []
        for root in roots {
            switch root.state {
            case .starting: reasons.append("\(root.path) is being listed")
            case .failing(let why): reasons.append("\(root.path) cannot be watched: \(why)")
            case .guarded(let why): reasons.append("\(root.path) is paused: \(why)")
            // One that is not there yet is no fault: it is picked up when it appears; nor is one that another agent has.
            case .missing, .standby, .watching: break
            }
        }
        let away = destinations.filter { ["down", "credentials refused"].contains($0.state) }
        if !destinations.isEmpty, away.count == destinations.count {
            reasons.append(
                "nothing can be sent: " + away.map { "\($0.name) is \($0.state)" }.sorted().joined(separator: ", "))
        }
        return reasons
    }

    static func reasons(_ live: AgentControl.Running?) -> [String] {
        guard let live else { return ["no agent is running"] }
        return reasons(
            journal: live.journalTrouble, roots: live.roots.map { ($0.root.display, $0.state) },
            destinations: live.destinations.map { ($0.name, StatusReport.destination($0, [:]).state) })
    }
}
