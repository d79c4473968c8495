internal import InletAgent
internal import InletCore
internal import InletLinux

/// The one sentence that matters most, and everything that needs a person. The status, the page and the API share it.
package struct Health: Codable, Sendable, Equatable, NamedSchema {
    package enum State: String, Codable, Sendable, CaseIterable, SchemaSample {
        /// Nothing needs a person.
        case ok
        /// Work continues, and something waits for a person.
        case attention
        /// Something has stopped, and a person must act.
        case trouble
    }

    package var state: State
    /// The sentence for a first glance. "All is well" means that nothing waits, settles, moves or failed.
    package var sentence: String
    /// Whether every file is where it belongs; nil from an agent of an older version.
    package var safety: String?
    /// Problems and their remedies, the worst first: at most `most`, then the number of the others.
    package var needs: [String]
    /// The same problems one by one, then the notes that need nobody; nil from an agent of an older version, as `needing`.
    package var findings: [HealthFinding]?
    package var needing: Int?

    static let notes: [String: SchemaDescription] = [
        "sentence": "The sentence that a person should read first.",
        "safety": "Whether every file is where it belongs, in a sentence.",
        "needs": "Problems that need a person, the worst first, each with its remedy.",
        "findings": "The same problems one by one, then the notes that need nobody.",
        "needing": "The number of problems that need a person.",
    ]

    private static let most = 8
    /// The sentence where nothing waits, settles, moves or failed.
    static let allIsWell = "All is well."

    package init(_ report: StatusReport) { self.init(report, now: .now) }

    /// - Parameter now: the start of "in 40s".
    init(_ report: StatusReport, now: WallTime) {
        let all = Self.findings(report)
        let needs = all.filter { $0.state == .trouble } + all.filter { $0.state == .attention }
        state = needs.first?.state ?? .ok
        needing = needs.count
        safety = Self.safety(report)
        findings = Array(needs.prefix(Self.most)) + Array(all.filter { $0.state == .ok }.prefix(Self.most))
        self.needs = needs.prefix(Self.most).map(\.line)
        if needs.count > Self.most { self.needs.append("and \(needs.count - Self.most) more") }
        sentence =
            needs.first.map { Self.worst($0, needs.count - 1, report, now) } ?? Self.busy(report)
            ?? Self.allIsWell
    }

    /// For the files alone: a destination that is down, for example, makes no delivered file unsafe.
    private static func safety(_ report: StatusReport) -> String {
        if !report.running { return "Unknown: no agent runs." }
        let ends = [FileState.failed, .expired].map { count($0, report) }.reduce(0, +)
        if ends > 0 { return "No: \(ends.counted("file is not where it belongs", "files are not where they belong"))." }
        let stuck = report.roots.reduce(report.forbidden?.files ?? 0) { $0 + ($1.stuck?.files ?? 0) }
        if stuck > 0 { return "No: \(stuck.counted("file", "files")) cannot be taken." }
        guard report.isWorking else { return "Not known: a part of Inlet cannot work." }
        let coming = report.pending + report.roots.reduce(0) { $0 + $1.settling }
        if coming > 0 { return "Not yet: \(coming.counted("file is", "files are")) on the way." }
        let listed = report.roots.filter { $0.state.hasPrefix("starting") }
        if let first = listed.first { return "Not yet: \(first.path) is being listed." }
        let unseen = report.roots.filter { $0.state != "watching" && !$0.state.hasPrefix("standby") }
        if let first = unseen.first { return "Not known: \(first.path) is not watched." }
        return "Yes: every file that came is where it belongs\(exceptions(report))."
    }

    /// `; but 2 rejected, and not sent`: files that nothing will send. Their originals stay where they are.
    private static func exceptions(_ report: StatusReport) -> String {
        let states: [(FileState, String)] = [
            (.rejected, "rejected, and not sent"), (.gone, "gone before Inlet could send them"),
            (.cancelled, "cancelled by somebody"),
        ]
        let words = states.map { (count($0, report), $1) }.filter { $0.0 > 0 }.map { "\($0) \($1)" }
        return words.isEmpty ? "" : "; but \(words.joined(separator: "; "))"
    }

    /// The files that ended so. A rejected one that a person has left where it is needs nothing more.
    private static func count(_ state: FileState, _ report: StatusReport) -> Int {
        let all = report.files[state.rawValue] ?? 0
        return state == .rejected ? max(0, all - (report.rejected_left ?? 0)) : all
    }

    /// `store is down since 10:32; next try in 40s (and 2 more).`
    private static func worst(
        _ finding: HealthFinding, _ others: Int, _ report: StatusReport, _ now: WallTime
    ) -> String {
        let destination = report.destinations.first { finding.about == .destination && $0.name == finding.name }
        let left = destination?.next_probe.flatMap { WallTime(rfc3339: $0) }.map { ($0 - now).milliseconds / 1000 }
        let next = left.map { $0 > 0 ? "; next try in \(DurationText.format(.seconds($0)))" : "; trying now" } ?? ""
        return "\(finding.text)\(next)\(others == 0 ? "" : " (and \(others) more)")."
    }

    /// The sentence where nothing needs a person but work is left: files that are written, wait or move. nil without
    /// any.
    private static func busy(_ report: StatusReport) -> String? {
        let writing = report.roots.reduce(0) { $0 + $1.unsettled.count(where: \.writer) }
        if writing > 0 { return "\(writing.counted("file is", "files are")) still being written." }
        let settling = report.roots.reduce(0) { $0 + $1.settling }
        if settling > 0 { return "\(settling.counted("new file is", "new files are")) not complete yet." }
        let queue = report.queue
        let sent = "\(queue.in_flight.counted("file is", "files are")) being sent"
        let open = queue.waiting + queue.held
        if open > 0 {
            let names = report.destinations.filter { $0.waiting > 0 }.map(\.name).joined(separator: " and ")
            let what = "\(open.counted("delivery waits", "deliveries wait"))\(names.isEmpty ? "" : " for \(names)")"
            // The next try may succeed: worth knowing, but no reason to act.
            let again = queue.retrying == 0 ? "" : ", \(queue.retrying) after an error"
            return "\(what)\(again)\(queue.in_flight == 0 ? "" : "; \(sent)")."
        }
        if queue.in_flight > 0 { return "\(sent)." }
        let listed = report.roots.filter { $0.state.hasPrefix("starting") }
        if let first = listed.first { return "\(first.path) is being listed." }
        return report.pending > 0 ? "\(report.pending.counted("file is", "files are")) not finished yet." : nil
    }
}

/// One thing that a person should know.
package struct HealthFinding: Codable, Sendable, Equatable, NamedSchema {
    /// The subject, which leads to more details.
    package enum Subject: String, Codable, Sendable, CaseIterable, SchemaSample {
        case agent, journal, dashboard, destination, root, files, queue, notices, limit, fleet
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

/// The rules: nothing else decides what needs a person.
extension Health {
    static func findings(_ report: StatusReport) -> [HealthFinding] {
        agent(report) + report.destinations.compactMap(destination) + report.roots.compactMap(root) + files(report)
            + queue(report) + (report.limits ?? []).compactMap(limit)
            + fleet(report.fleet)
    }

    private static func agent(_ report: StatusReport) -> [HealthFinding] {
        var found: [HealthFinding] = []
        if report.journal_failing {
            let why = report.journal_reason.map { DisplayText.escape($0) } ?? "the log says why ('inlet tail')"
            found.append(.init(.trouble, .journal, "the journal cannot be written", why))
        }
        for incident in report.incidents ?? [] {
            let what = DisplayText.escape("\(incident.service) has stopped unexpectedly")
            let remedy = "Inlet starts it again; if this repeats, restart Inlet\(because(incident.reason))"
            found.append(.init(.trouble, .agent, what, remedy))
        }
        if let log = report.log {
            let what =
                log.lost == 0
                ? "the log cannot be written"
                : "\(log.lost.counted("log line is", "log lines are")) lost"
            found.append(.init(.attention, .agent, name: "log", what, DisplayText.escape(log.reason)))
        }
        if !report.running {
            let remedy = "start it as you usually do: 'inlet run', 'sudo systemctl start inlet', or its container"
            found.append(.init(report.pending > 0 ? .trouble : .attention, .agent, "no agent runs", remedy))
        }
        if let page = report.dashboard, page.state == .failing {
            let remedy = "check dashboard.listen and whether its port is free\(because(page.error))"
            found.append(.init(.attention, .dashboard, "the page cannot be served", remedy))
        }
        if report.running, report.destinations.count > 1, report.destinations.allSatisfy({ $0.state == "down" }) {
            let remedy = "check this machine's network"
            found.append(.init(.trouble, .destination, "all destinations are down", remedy))
        }
        return found
    }

    private static func destination(_ destination: StatusReport.Destination) -> HealthFinding? {
        let (name, why) = (destination.name, because(destination.last_error))
        let rules: [String: (State, String, String)] = [
            "credentials refused": (
                .trouble, "refuses its credentials",
                "update the keys; Inlet retries automatically\(why)"
            ),
            "down": (
                .attention,
                "is down\(destination.since.flatMap { WallTime(rfc3339: $0) }.map { " since \($0.shortClock)" } ?? "")",
                "retrying automatically; 'inlet resume \(name)' tries now\(why)"
            ),
            "paused": (.attention, "is paused", "'inlet resume \(name)' ends the pause"),
            "asks for time": (.ok, "asks for time", "Inlet sends more slowly\(why)"),
        ]
        return rules[destination.state].map { .init($0, .destination, name: name, "\(name) \($1)", $2) }
    }

    private static func root(_ root: StatusReport.Root) -> HealthFinding? {
        let (path, state) = (root.path, DisplayText.escape(root.state))
        if root.place != nil {
            // Standing by is no problem: this agent still sends files of the share.
            if state.hasPrefix("standby") { return nil }
            if state.hasPrefix("paused: ") { return share(path, String(state.dropFirst("paused: ".count))) }
        }
        let rules: [(state: String, State, String, String)] = [
            ("failing", .trouble, "cannot be watched", "run 'inlet check' for details (\(state))"),
            (
                "paused", .trouble, "is not what it was",
                "if the change is intended, run 'inlet resume --root \(path)' (\(state))"
            ),
            (
                "standby", .attention, "is watched by another agent",
                "this agent takes over when the other ends; to let both watch, set 'shared: true' in both (\(state))"
            ),
            ("missing", .attention, "is not there", "mount or create it; Inlet starts watching it at once"),
            ("starting", .ok, "is being listed", "Inlet also finds the files that arrive meanwhile"),
        ]
        if let (_, grade, what, remedy) = rules.first(where: { state.hasPrefix($0.state) }) {
            return .init(grade, .root, name: path, "\(path) \(what)", remedy)
        }
        if let stuck = root.stuck {
            return .init(
                .attention, .root, name: path,
                "\(stuck.files.counted("file or folder", "files or folders")) in \(path) cannot be taken now",
                "fix the cause; Inlet retries automatically\(because(stuck.reason))")
        }
        return root.quiet_since.flatMap { WallTime(rfc3339: $0) }.map { since in
            .init(
                .attention, .root, name: path, "\(path) is quiet since \(since.shortClock)",
                "look at what writes there: a file is expected every \(root.expect ?? "so often")")
        }
    }

    /// A file that vanishes this soon after its admission was moved or renamed by a program.
    static let soon = Duration.seconds(10)
    static let goneSince = Duration.seconds(-86_400)
    /// A person may have removed fewer.
    private static let mostGone = 5

    private static func files(_ report: StatusReport) -> [HealthFinding] {
        var found: [HealthFinding] = []
        func add(_ about: HealthFinding.Subject, name: String? = nil, _ text: String, _ remedy: String) {
            found.append(.init(.attention, about, name: name, text, remedy))
        }
        for state in [FileState.failed, .expired, .rejected] {
            let (count, name) = (count(state, report), state.rawValue)
            guard count > 0 else { continue }
            let next =
                state == .rejected ? "'inlet queue leave' lets them stay" : "'inlet queue retry' sends them again"
            let remedy = "see why with 'inlet queue list --state \(name)'; \(next)"
            add(.files, name: name, "\(count.counted("file")) \(name)", remedy)
        }
        if let gone = report.gone_soon, gone >= mostGone {
            add(
                .files, name: FileState.gone.rawValue, "\(gone) files were gone within seconds of their admission",
                "another program may move or rename them: see 'inlet queue list --state gone', and set a longer 'settle'"
            )
        }
        if let forbidden = report.forbidden {
            add(
                .files, name: "forbidden", "\(forbidden.files.counted("file")) may not be read by Inlet",
                "let Inlet read them (chmod, chown or setfacl); it then continues automatically"
                    + because(forbidden.reason))
        }
        for volume in report.away ?? [] {
            let what = volume.files.counted("file waits", "files wait")
            add(
                .root, name: volume.path, "\(what) for the card or disk that was at \(volume.path)",
                "connect it again; Inlet continues automatically (\(volume.volume))")
        }
        if let stuck = report.stuck {
            let what = "\(stuck.files.counted("file")) could not be archived, deleted or quarantined"
            add(.files, name: "stuck", what, "fix the cause; Inlet retries automatically\(because(stuck.reason))")
        }
        return found
    }

    private static func queue(_ report: StatusReport) -> [HealthFinding] {
        var found: [HealthFinding] = []
        if report.queue.parked > 0 {
            let what = "\(report.queue.parked.counted("delivery has", "deliveries have")) no destination"
            let remedy = "put the destination back into the configuration, or cancel them with 'inlet queue cancel'"
            found.append(.init(.attention, .queue, what, remedy))
        }
        if let given = report.notices_failed, given > 0 {
            let what = "\(given.counted("notification", "notifications")) failed"
            found.append(.init(.attention, .notices, what, "test the receivers with 'inlet notify test'"))
        }
        return found
    }

    /// Of a share that is not touched now. The reason names the remedy.
    private static func share(_ path: String, _ why: String) -> HealthFinding {
        let waits = why.hasPrefix(RootStatus.State.fleetWait)
        return .init(
            waits ? .attention : .trouble, .root, name: path, "\(path) is paused",
            waits ? "Inlet continues automatically (\(why))" : why)
    }

    /// A limit of 0 from a command needs a person; one from the configuration or its schedule is intended.
    private static func limit(_ limit: LimitReport) -> HealthFinding? {
        guard limit.bytes_per_second == 0 else { return nil }
        let name = limit.destination
        let text = "nothing is sent\(name.map { " to \($0)" } ?? ""): the limit is 0"
        if limit.why == BandwidthPolicy.Cause.command.rawValue {
            let remedy = "'inlet limit auto\(name.map { " --to \($0)" } ?? "")' lifts it"
            return .init(.attention, .limit, name: name, text, remedy)
        }
        let end = limit.until.map { "by the schedule, until \($0)" } ?? "as configured"
        return .init(.ok, .limit, name: name, text, end)
    }

    /// PostgreSQL may come back by itself, so only a refusal is trouble.
    private static func fleet(_ fleet: FleetReport?) -> [HealthFinding] {
        guard let fleet else { return [] }
        guard fleet.isDraining else { return standing(fleet) }
        let text = "this agent is draining: new files stay in their folders, and all others are sent"
        let remedy = "'inlet fleet undrain \(DisplayText.escape(fleet.name))' admits new files again"
        return [.init(.attention, .fleet, text, remedy)] + standing(fleet)
    }

    private static func standing(_ fleet: FleetReport) -> [HealthFinding] {
        let since = fleet.since.flatMap { WallTime(rfc3339: $0) }.map { " since \($0.shortClock)" } ?? ""
        let server = DisplayText.escape(fleet.server)
        let (state, text): (State, String)
        switch fleet.state {
        case .live, .confirming: return []
        case .connecting:
            guard fleet.message != nil else { return [] }
            (state, text) = (.attention, "the fleet at \(server) is not reached yet")
        case .away: (state, text) = (.attention, "the fleet's PostgreSQL (\(server)) is away\(since)")
        case .recovering:
            (state, text) = (.attention, "the fleet gives no keys until all agents have reported\(since)")
        case .refused: (state, text) = (.trouble, "the fleet refuses this agent")
        }
        let remedy = fleet.message.map { DisplayText.escape($0) } ?? "run 'inlet fleet status'; local folders continue"
        return [.init(state, .fleet, text, remedy)]
    }

    private static func because(_ reason: String?) -> String {
        reason.map { " (\(DisplayText.escape($0)))" } ?? ""
    }
}

/// The answer of `/readyz`: whether the agent works, and if not, why.
struct ReadyReport: Codable, Sendable, NamedSchema {
    var ready: Bool
    /// Omitted without reasons, and for callers who may not see them.
    var reasons: [String]?

    /// The reasons why an agent is not ready, in sentences; empty when it is. Pure.
    ///
    /// - Parameters:
    ///   - journal: the reason for its failure; nil when it works.
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
            // The fleet's server is no part of this agent.
            case .guarded where root.state.waitsForFleet: break
            case .guarded(let why): reasons.append("\(root.path) is paused: \(why)")
            // A missing folder is fine: Inlet watches it when it appears. So is one that another agent watches.
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
