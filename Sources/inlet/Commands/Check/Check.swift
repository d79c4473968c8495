import ArgumentParser
import InletConfig
import InletCore
import InletDashboard
import InletLinux
import InletPipelines

struct Check: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "check",
        abstract:
            "Check the setup: the configuration, the folders and the destinations, with a remedy for each problem.",
        discussion: """
            Exits with 0 when all is fine, 1 on warnings, 69 when a destination is unavailable, 78 when the
            configuration or a folder is wrong.

            Examples:
              inlet check --config inlet.yaml
              inlet check --upload
              inlet check --json | jq -r '.checks[] | select(.grade != "ok") | .text'
            """)

    @OptionGroup var options: ConfigOption
    @Flag(help: "Also deliver a small test object to every destination, and delete it where that is possible.")
    var upload = false
    @Flag(help: "Print one JSON object.") var json = false

    func run() async throws {
        let config = try options.load()
        let settings = config.settings
        let factory = PipelineFactory.standard(config)
        defer { factory.shutdown() }
        let destinations = try config.makeDestinations(factory)
        let notificationClients = try config.makeNotificationClients(factory)
        var findings = Findings(isJSON: json)
        findings.add(.fine, "configuration", "\(config.file.display) is correct")
        for warning in config.warnings { findings.add(.warning, "configuration", warning.message) }
        findings.add(.fine, "time zone", "\(KeyTemplate.systemZone), for dates in keys without @ZONE")
        findings.checkLimits(settings)
        findings.checkAdoption(settings, destinations)
        findings.checkNames(settings)
        findings.begin(.folders)
        findings.checkState(settings.stateDirectory)
        for destination in destinations {
            guard let results = destination.results else { continue }
            findings.checkResults(results, of: destination.name, settings.watch)
        }
        findings.begin(.watch)
        for watch in settings.watch { findings.checkRoot(watch, settings) }
        findings.begin(.destinations)
        await findings.checkProxies(config, destinations, factory)
        for destination in destinations { await findings.check(destination, upload: upload, mayWrite: true) }
        for destination in destinations { findings.checkStorage(of: destination, settings.destinations) }
        findings.checkCopies(settings, destinations)
        findings.checkKinds(settings)
        findings.checkReceivers(settings.notify, notificationClients)
        findings.checkFleet(settings, destinations)
        findings.begin(.system)
        await findings.checkDashboard(config)
        await findings.checkConfinement(config)
        findings.checkMediaTypes(settings.routes)
        findings.checkDerivations(settings.routes)
        findings.checkWatchLimits(settings.watch)
        try findings.finish()
    }
}

/// The checklist that `check` prints as it is made, and the exit code that follows from it.
struct Findings {
    typealias Severity = CheckReport.Grade
    typealias Group = CheckReport.Group

    private let isJSON: Bool
    private let isSilent: Bool
    /// Whether the checks make no folder and no test file.
    let onlyLooks: Bool
    private var group = Group.configuration
    private var shownGroup: Group?
    private(set) var all: [CheckReport.Finding] = []

    /// - Parameter isJSON: prints one object at the end instead of a line per finding.
    init(isJSON: Bool = false) { (self.isJSON, isSilent, onlyLooks) = (isJSON, isJSON, false) }

    /// A list of `inlet doctor`, which only looks. It prints nothing: it is one part's, or is written to a file.
    init(silently group: Group) { (isJSON, isSilent, onlyLooks, self.group) = (false, true, true, group) }

    /// Later findings belong to `group`.
    mutating func begin(_ group: Group) { self.group = group }

    /// - Parameter remedy: what to do about it, as an order.
    mutating func add(
        _ grade: Severity, _ what: String, _ text: String, remedy: String? = nil, topic: ProblemTopic? = nil
    ) {
        append([
            CheckReport.Finding(group: group, check: what, grade: grade, text: text, remedy: remedy, topic: topic)
        ])
    }

    /// Adds findings that were made elsewhere.
    mutating func append(_ findings: [CheckReport.Finding]) {
        all += findings
        if !isSilent { for finding in findings { show(finding) } }
    }

    /// A call that the kernel refused, with its remedy.
    mutating func add(_ grade: Severity, _ what: String, _ error: SystemError, because why: String? = nil) {
        var text = "\(error)"
        if let remedy = error.remedy, text.hasSuffix("; \(remedy)") { text.removeLast(remedy.count + 2) }
        let remedy = [error.remedy, why].compactMap(\.self).joined(separator: ". ").nilIfEmpty
        add(grade, what, text, remedy: remedy, topic: error.isFull ? .space : nil)
    }

    private mutating func show(_ finding: CheckReport.Finding) {
        if shownGroup != finding.group {
            Console.print((shownGroup == nil ? "" : "\n") + Console.tint(Self.title(finding.group), .strong))
            shownGroup = finding.group
        }
        Console.print(Self.line(finding))
    }

    /// All findings as they are shown, without colours.
    var text: String {
        var lines: [String] = []
        for (index, finding) in all.enumerated() {
            if index == 0 || all[index - 1].group != finding.group {
                lines += (index == 0 ? [] : [""]) + [Self.title(finding.group)]
            }
            lines.append(Self.line(finding) { text, _ in text })
        }
        return lines.joined(separator: "\n")
    }

    private static func title(_ group: Group) -> String {
        switch group {
        case .program: "Inlet"
        case .errors: "Last errors"
        default: group.rawValue.prefix(1).uppercased() + group.rawValue.dropFirst()
        }
    }

    /// A finding with its remedy below it.
    ///
    /// - Parameter isNamed: whether it says what it is about.
    static func line(
        _ finding: CheckReport.Finding, isNamed: Bool = true, tint: (String, TextStyle) -> String = Console.tint
    ) -> String {
        let mark =
            switch finding.grade {
            // A line of the log is neither good nor bad now.
            case .fine where finding.group == .errors: tint("·", .faint)
            case .fine: tint("✓", .good)
            case .warning: tint("!", .warning)
            case .unavailable, .wrong: tint("✗", .bad)
            }
        let name = isNamed ? "\(DisplayText.escape(finding.check)): " : ""
        let remedy = finding.remedy.map { "\n    → \(DisplayText.escape($0))" } ?? ""
        return "\(mark) \(name)\(DisplayText.escape(finding.text))\(remedy)"
    }

    /// Prints the summary, and exits with its code.
    func finish() throws {
        let code = exitCode
        if isJSON {
            let report = CheckReport(
                checks: all, warnings: count(.warning), errors: errors, exit_code: Int((code ?? .success).rawValue))
            Console.print(try Console.json(report, isPretty: true))
        } else {
            Console.print("\n" + sum)
        }
        if let code { throw code.code }
    }

    private var exitCode: ExitStatus? {
        switch all.map(\.grade).max(by: { $0.rank < $1.rank }) ?? .fine {
        case .fine: nil
        case .warning: .failed
        case .unavailable: .unavailable
        case .wrong: .configuration
        }
    }

    private func count(_ grade: Severity) -> Int { all.count { $0.grade == grade } }
    private var errors: Int { count(.unavailable) + count(.wrong) }

    /// `2 warnings, 1 error: see watch /srv/drop, destination store`
    private var sum: String {
        let warnings = count(.warning)
        if warnings + errors == 0 { return Console.tint("All \(all.count) checks are fine.", .good) }
        let counts = [(warnings, "warning"), (errors, "error")].filter { $0.0 > 0 }.map { $0.0.counted($0.1) }
        let worst = all.filter { $0.grade.rank > 1 } + all.filter { $0.grade == .warning }
        var names: [String] = []
        for finding in worst where !names.contains(finding.check) { names.append(finding.check) }
        let more = names.count > Self.mostNames ? ", and \(names.count - Self.mostNames) more" : ""
        let text =
            "\(counts.joined(separator: ", ")): see \(names.prefix(Self.mostNames).joined(separator: ", "))\(more)"
        return Console.tint(text, errors > 0 ? .bad : .warning)
    }

    private static let mostNames = 5
}

extension String {
    fileprivate var nilIfEmpty: String? { isEmpty ? nil : self }
}
