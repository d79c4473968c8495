import InletAgent
import InletConfig
import InletCore
import InletDashboard
import InletLinux
import SystemPackage

// Parts of `inlet doctor`: files that failed, and the last lines of the log.

extension Findings {
    /// Lines of the log that are shown.
    private static let mostLines = 8
    private static let mostFiles = 1000

    /// Of the running agent.
    mutating func noteErrors(ofAgentAt socket: FilePath) async {
        let client = ControlClient(socket: socket)
        defer { client.shutdown() }
        do {
            try await noteFiles(client)
            var text = LogLineText()
            let lines = try await client.log(limit: Self.mostLines, level: .warning, job: nil)
            for line in lines {
                let shown = text.lines(line).map { $0.text(hasColour: false) }.joined(separator: " ")
                add(.fine, "log", shown)
            }
            if lines.isEmpty { add(.fine, "log", "no warning and no error since the agent's start") }
        } catch {
            add(.warning, "log", "the agent does not say: \(error)", topic: .agent)
        }
    }

    /// Of the journal, while no agent runs.
    mutating func noteErrors(ofJournal config: LoadedConfig) async {
        do {
            var found = Findings(silently: .errors)
            let isThere = try await ControlAccess.tryJournal(config) { control in
                try await found.noteFiles(control)
                return true
            }
            append(found.all)
            if isThere == nil { return add(.fine, "files", "none yet") }
        } catch StateDirectory.Fault.held {
            add(.fine, "files", "an agent has the journal, and does not answer yet: it starts or stops")
        } catch {
            add(.warning, "files", "the journal does not say: \(error)", topic: .state)
        }
    }

    private mutating func noteFiles(_ control: any ControlAPI) async throws {
        let status = try await control.ask(Endpoints.status)
        for finding in status.health?.findings ?? [] where finding.state != .ok { note(finding, status) }
        for state in [FileState.failed, .expired, .rejected].map(\.rawValue) {
            guard let count = status.files[state], count > 0 else { continue }
            var selection = JobSelection()
            (selection.states, selection.limit) = ([state], Self.mostFiles)
            noteCodes(try await control.ask(Endpoints.list, body: selection), state, count)
        }
        if !all.contains(where: { $0.check == "files" }) { add(.fine, "files", "none has failed") }
    }

    /// The error codes of files that ended so, the most frequent first.
    private mutating func noteCodes(_ jobs: [JobReport], _ state: String, _ count: Int) {
        var counts: [String: Int] = [:]
        for job in jobs {
            let codes = Set([job.code].compactMap(\.self) + job.deliveries.compactMap(\.code))
            for code in codes { counts[code, default: 0] += 1 }
        }
        let sorted = counts.sorted { ($1.value, $0.key) < ($0.value, $1.key) }
        let text = sorted.prefix(5).map { "\($0.value) × \($0.key)" }.joined(separator: ", ")
        let help = sorted.first.flatMap { ErrorCode(rawValue: $0.key)?.help }
        let words = [help?.remedy, "List them with 'inlet queue list --state \(state)'"].compactMap(\.self)
        add(
            .warning, "files", "\(count.counted("file")) \(state)\(text.isEmpty ? "" : ": \(text)")",
            remedy: words.filter { !$0.isEmpty }.joined(separator: " "), topic: .files)
    }

    /// A finding of the agent on itself, unless a part of its own looks at the same.
    private mutating func note(_ finding: HealthFinding, _ status: StatusReport) {
        let grade: Severity = finding.state == .trouble ? .wrong : .warning
        let (check, topic): (String, ProblemTopic)
        switch finding.about {
        case .journal: (check, topic) = ("journal", .state)
        case .agent where status.running: (check, topic) = ("agent", .service)
        case .limit: (check, topic) = ("limit", .held)
        case .queue, .notices: (check, topic) = (finding.about.rawValue, .files)
        case .fleet: (check, topic) = ("fleet", .service)
        case .dashboard: (check, topic) = ("dashboard", .advice)
        case .root: (check, topic) = ("watch \(finding.name ?? "")", .folder)
        case .files where !Self.counted.contains(finding.name ?? ""): (check, topic) = ("files", .files)
        case .destination where status.destinations.contains { $0.name == finding.name && $0.state == "paused" }:
            (check, topic) = ("destination \(finding.name ?? "")", .held)
        case .agent, .files, .destination: return
        }
        add(grade, check, finding.text, remedy: finding.remedy, topic: topic)
    }

    /// States whose files `noteCodes` counts.
    private static let counted = Set([FileState.failed, .expired, .rejected].map(\.rawValue))
}
