import ArgumentParser
import InletConfig
import InletCore
import InletDashboard
import InletLinux
import SystemPackage

struct Doctor: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "doctor",
        abstract: "Find out what is wrong: look at everything that matters, and name the likeliest causes.",
        discussion: """
            Lists versions, limits, folders, clock, names, proxy, certificates, destinations and the last errors. It asks
            the running agent, and works without one. Secrets never appear. Exits with 0 when nothing is wrong, also with
            hints, and with 1 when something is.

            Examples:
              inlet doctor
              sudo -u inlet inlet doctor --config /etc/inlet/inlet.yaml
              inlet doctor --json | jq -r '.causes[].text'
            """)

    @OptionGroup var options: ConfigOption
    @Flag(help: "Print one JSON object.") var json = false

    func run() async throws {
        var examination = await Examination(options, Findings(isJSON: json))
        await examination.run()
        if json {
            Console.print(try Console.json(examination.report, isPretty: true))
        } else {
            Console.print("\n" + examination.conclusion(tint: Console.tint))
        }
        if !examination.isWell { throw ExitStatus.failed.code }
    }
}

/// Everything that `inlet doctor` looks at, part by part. Each part has a time of its own: one that fails, or does not
/// answer, is a line like others.
struct Examination {
    var findings: Findings
    /// nil where there is no configuration, or none that can be used.
    let config: LoadedConfig?
    private let refusal: ConfigErrors?
    private let isConfigured: Bool
    /// nil where no agent answers.
    let agent: StatusReport?
    private let socket: FilePath
    /// Whether the package's service reads this configuration.
    private let isOfService: Bool
    /// The server of each destination that is reached over a network, by the name of its findings.
    var hosts: [String: String] = [:]
    /// Whether a disk or a server of files has left a part without an answer: others that need it are left out.
    var hasHung = false
    let pool = BlockingPool(name: "doctor", threads: 8)

    /// - Parameter findings: receives what is found, as it is found.
    init(_ options: ConfigOption, _ findings: Findings) async {
        self.findings = findings
        isConfigured = options.isFound
        isOfService = options.isOfService
        (config, refusal) = Self.read(options)
        socket = options.socket()
        agent = await ControlAccess.status(at: socket.removingLastComponent())
    }

    private static func read(_ options: ConfigOption) -> (LoadedConfig?, ConfigErrors?) {
        guard options.isFound else { return (nil, nil) }
        do throws(ConfigErrors) { return (try options.reload(), nil) } catch { return (nil, error) }
    }

    /// Looks at everything. A part without an answer ends after ten seconds, and later where it asks for many things.
    /// All destinations are asked at the same time.
    mutating func run() async {
        let (agent, socket, config, isOfService) = (agent, socket, config, isOfService)
        let state = socket.removingLastComponent()
        await look(.program, "inlet") { $0.noteProgram(agent, at: socket, isOfService: isOfService) }
        await look(.program, "machine") { $0.noteMachine() }
        noteConfiguration()
        await look(.folders, "state_dir") { $0.noteState(state, isInUse: agent != nil, isConfigured: config != nil) }
        await look(.limits, "inotify") { $0.noteWatches(agent, at: socket) }
        await look(.limits, "resources") { $0.noteResources() }
        if let config {
            await lookAtFolders(config.settings)
            await lookAtDestinations(config)
            let hasHung = hasHung
            await ask(.system, "system") { part in
                await part.checkDashboard(config)
                if !hasHung { await part.checkConfinement(config) }
                part.checkMediaTypes(config.settings.routes)
                part.checkDerivations(config.settings.routes)
            }
        }
        let isJournalSound = isJournalSound
        await ask(.errors, "log") { part in
            if agent != nil {
                await part.noteErrors(ofAgentAt: socket)
            } else if let config, isJournalSound {
                await part.noteErrors(ofJournal: config)
            }
        }
    }

    /// Whether the journal was looked at, and is fine. One whose disk gave no answer is not opened.
    var isJournalSound: Bool {
        let own = findings.all.filter { $0.check == "journal" }
        return !own.isEmpty && own.allSatisfy { $0.grade == .fine }
    }

    private mutating func noteConfiguration() {
        findings.begin(.configuration)
        guard isConfigured else {
            return findings.add(
                .wrong, "configuration", "there is none, or this user may not see it",
                remedy: "write one with 'inlet init', or name it with --config FILE")
        }
        for error in refusal?.list ?? [] {
            let place = "\(error.file):\(error.line):\(error.column)"
            findings.add(
                .wrong, "configuration", "\(place): \(error.message)",
                remedy: "correct the line; 'inlet check' shows it with its place")
        }
        guard let config else { return }
        findings.add(.fine, "configuration", "\(config.file.display) is correct")
        for warning in config.warnings { findings.add(.warning, "configuration", warning.message) }
        findings.checkLimits(config.settings)
    }

    private mutating func lookAtFolders(_ settings: Settings) async {
        for watch in settings.watch {
            await look(.watch, "watch \(watch.path.display)") { part in
                part.checkRoot(watch, settings)
                if watch.pattern == nil { part.noteSpace("watch \(watch.path.display)", at: watch.path) }
            }
        }
        await look(.watch, "watches", within: .seconds(30)) { $0.checkWatchLimits(settings.watch) }
    }
}

// Its parts.
extension Examination {
    /// Most take milliseconds.
    private static let patience = Duration.seconds(10)

    /// Runs a part that blocks, on a thread that is left behind where it hangs.
    mutating func look(
        _ group: Findings.Group, _ what: String, within patience: Duration = Self.patience,
        _ body: @escaping @Sendable (inout Findings) -> Void
    ) async {
        let (found, isLate) = await Self.looked(group, what, within: patience, on: pool, body)
        hasHung = hasHung || isLate
        findings.append(found)
    }

    /// The same for a part whose findings are shown later.
    static func looked(
        _ group: Findings.Group, _ what: String, within patience: Duration = Self.patience, on pool: BlockingPool,
        _ body: @escaping @Sendable (inout Findings) -> Void
    ) async -> (found: [CheckReport.Finding], isLate: Bool) {
        await pool.run {
            do throws(SystemError) {
                let made = try LoopThread.result(name: "part", within: patience) {
                    () throws(SystemError) -> [CheckReport.Finding] in
                    var own = Findings(silently: group)
                    body(&own)
                    return own.all
                }
                return (made ?? late(group, what, patience), made == nil)
            } catch {
                var own = Findings(silently: group)
                own.add(.warning, what, "\(error)", topic: .limits)
                return (own.all, false)
            }
        }
    }

    /// Runs a part that waits for others, and ends it where it takes too long. A call that blocks cannot be ended so:
    /// it belongs to `look`.
    mutating func ask(
        _ group: Findings.Group, _ what: String, within patience: Duration = Self.patience,
        _ body: @escaping @Sendable (inout Findings) async -> Void
    ) async {
        findings.append(await Self.answer(group, what, within: patience, body))
    }

    static func answer(
        _ group: Findings.Group, _ what: String, within patience: Duration,
        _ body: @escaping @Sendable (inout Findings) async -> Void
    ) async -> [CheckReport.Finding] {
        await withTaskGroup(of: [CheckReport.Finding]?.self) { tasks in
            tasks.addTask {
                var own = Findings(silently: group)
                await body(&own)
                return own.all
            }
            tasks.addTask {
                await Task.rest(for: patience)
                return nil
            }
            let first = await tasks.next() ?? nil
            tasks.cancelAll()
            return first ?? late(group, what, patience)
        }
    }

    private static func late(
        _ group: Findings.Group, _ what: String, _ patience: Duration
    ) -> [CheckReport.Finding] {
        var own = Findings(silently: group)
        own.add(
            .warning, what, "no answer within \(DurationText.format(patience)); this part is left out",
            remedy: "look for a server or a disk that hangs", topic: topic(ofLate: group))
        return own.all
    }

    private static func topic(ofLate group: Findings.Group) -> ProblemTopic {
        switch group {
        case .watch: .folder
        case .folders: .state
        case .clock, .network, .destinations: .network
        case .limits: .limits
        case .program, .configuration, .errors, .system: .agent
        }
    }
}

// Its end.
extension Examination {
    private var diagnosis: DoctorFindings { DoctorFindings(findings.all, hosts: hosts) }

    var isWell: Bool { diagnosis.isWell }

    var report: DoctorReport {
        let code: ExitStatus = isWell ? .success : .failed
        return DoctorReport(
            at: WallTime.now.rfc3339Seconds, version: Inlet.version, checks: findings.all, causes: diagnosis.causes,
            exit_code: Int(code.rawValue))
    }

    /// The likeliest causes, in words.
    func conclusion(tint: (String, TextStyle) -> String) -> String {
        let diagnosis = diagnosis
        guard !diagnosis.isWell else {
            let hints = diagnosis.hints
            return hints > 0
                ? tint("Nothing is wrong; \(hints.counted("hint")) above.", .good)
                : tint("Nothing is wrong: all \(findings.all.count) lines are fine.", .good)
        }
        var lines = [tint("Most likely:", .strong)]
        for (index, cause) in diagnosis.causes.enumerated() {
            lines.append("\(index + 1). \(DisplayText.escape(cause.text))")
            if let remedy = cause.remedy { lines.append("    → \(DisplayText.escape(remedy))") }
        }
        return lines.joined(separator: "\n")
    }
}
