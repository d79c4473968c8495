import ArgumentParser
import InletAgent
import InletCore
import InletDashboard
import InletJournal

/// Selects files of the queue for a command.
struct SelectionOptions: ParsableArguments {
    @Option(
        help: "Only these states: pending, failed, delivered…", completion: .list(FileState.allCases.map(\.rawValue)))
    var state: [String] = []
    @Option(help: "Only files for this destination.", completion: .destinations)
    var destination: String?
    @Option(help: "Only files of this route.", completion: .routes) var route: String?
    @Option(help: "Only paths below their root that match, by the rules of routes: 'gigs/**', '*.mov'.")
    var path: String?
    @Option(help: "Only files with this label: NAME=VALUE; may be repeated.") var label: [String] = []
    @Option(
        help: "Only files with this error code, such as 'timed_out'.",
        completion: .list(ErrorCode.allCases.map(\.rawValue)))
    var code: String?
    @Option(help: "Only files older than this: 90m, 30d.") var older: String?
    @Option(help: "Only files of this batch.") var batch: Int64?
    @Option(help: "At most this many.") var limit: Int?

    /// Whether the selection has any filter besides the number of files.
    var isEmpty: Bool {
        state.isEmpty && label.isEmpty && [destination, route, path, code, older].allSatisfy { $0 == nil }
            && batch == nil
    }

    func selection(jobs: [Int64] = []) throws -> JobSelection {
        var selection = JobSelection()
        selection.jobs = jobs.isEmpty ? nil : jobs
        selection.states = try state.map { name in
            guard FileState(rawValue: name) != nil else {
                let known = FileState.allCases.map(\.rawValue).joined(separator: ", ")
                throw ValidationError("'\(name)' is not a state; choose one of \(known)")
            }
            return name
        }
        (selection.destination, selection.route, selection.code) = (destination, route, code)
        (selection.batch, selection.limit) = (batch, limit)
        if let path {
            do { _ = try GlobPattern(path) } catch { throw ValidationError("--path: \(error)") }
            selection.path = path
        }
        for pair in label {
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            guard parts.count == 2, !parts[0].isEmpty else {
                throw ValidationError("'\(pair)' is not a label; write NAME=VALUE")
            }
            selection.labels = (selection.labels ?? [:]).merging([parts[0]: parts[1]]) { $1 }
        }
        if let older {
            guard let age = DurationText.parse(older) else {
                throw ValidationError("'\(older)' is not an age; write 90m, 24h or 30d")
            }
            selection.older_ms = age.milliseconds
        }
        return selection
    }
}

extension SelectionOptions {
    /// Runs `queue retry|cancel|forget|clear`: on job numbers one by one, on a selection inside the agent.
    ///
    /// - Parameters:
    ///   - states: the command's states, when none are named.
    ///   - isConfirmed: whether a person has confirmed an order for several files; nil where it is harmless.
    func run(
        _ action: JobAction, _ jobs: [Int64], in states: [FileState], isDryRun: Bool, isConfirmed: Bool?,
        _ options: ConfigOption
    ) async throws {
        var selection = try selection(jobs: jobs)
        if selection.states?.isEmpty ?? true, jobs.isEmpty { selection.states = states.map(\.rawValue) }
        try await options.use { [selection] control in
            if !jobs.isEmpty, isEmpty, limit == nil, !isDryRun {
                return try await Self.act(action, on: jobs, control)
            }
            let endpoint = Endpoints.select(for: action)
            if jobs.isEmpty, isConfirmed == false, !isDryRun {
                let plan = try await control.ask(endpoint, [.dryRun: "1"], body: selection)
                guard plan.matched <= 1 else {
                    throw ValidationError(
                        "\(plan.matched.counted("file")), \(ByteText.format(plan.bytes)), would be \(action.done);"
                            + " confirm with --yes, or list them with --dry-run")
                }
                // The one file that nobody needs to be asked about, and no other that came meanwhile.
                return try Self.tell(try await control.ask(endpoint, body: selection.among(plan)), action.done)
            }
            try Self.tell(
                try await control.ask(endpoint, [.dryRun: isDryRun ? "1" : nil], body: selection), action.done)
        }
    }

    /// Exits with 1 if one of them failed.
    private static func act(_ action: JobAction, on jobs: [Int64], _ control: any ControlAPI) async throws {
        var isDone = true
        for job in jobs {
            let report = try await control.ask(Endpoints.act(on: action), [.id: "\(job)"])
            report.done ? Console.print(report.message) : Console.printError("inlet: \(report.message)")
            isDone = isDone && report.done
        }
        if !isDone { throw ExitStatus.failed.code }
    }

    private static func table(_ files: [SelectionReport.File]) -> String {
        Console.table(
            [.number("JOB"), .text("STATE"), .number("SIZE"), .name("PATH")],
            files.map {
                ["\($0.job)", StyledText($0.state), StyledText(ByteText.format($0.size)), StyledText($0.path)]
            }, indent: 2)
    }

    private static func tell(_ report: SelectionReport, _ done: String) throws {
        guard !report.dry_run else {
            Console.print("\(report.matched.counted("file")), \(ByteText.format(report.bytes)), would be \(done)")
            if !report.files.isEmpty { Console.print(Self.table(report.files)) }
            let left = report.matched - report.files.count
            if left > 0 { Console.print("  … and \(left) more") }
            for (reason, count) in report.skipped.sorted(by: { $0.key < $1.key }) {
                Console.print("\(count.counted("file")) would be skipped: \(reason)")
            }
            return
        }
        let fresh = report.done - report.hurried
        if fresh > 0 || report.hurried == 0 { Console.print("\(fresh.counted("file")) \(done)") }
        if report.hurried > 0 {
            let obstacles = report.waits_for ?? []
            let time = obstacles.isEmpty ? "now" : "now, but for what waits: \(obstacles.joined(separator: "; "))"
            Console.print("\(report.hurried.counted("file")) tried \(time)")
        }
        for (reason, count) in report.skipped.sorted(by: { $0.key < $1.key }) {
            Console.printError("inlet: \(count.counted("file")) skipped: \(reason)")
        }
        if !report.skipped.isEmpty { throw ExitStatus.failed.code }
    }
}

extension JobAction {
    fileprivate var done: String {
        switch self {
        case .retry: "queued again"
        case .cancel: "cancelled"
        case .forget: "forgotten"
        case .first: "put before the others"
        case .leave: "left in place"
        case .aside: "moved aside"
        case .remove: "removed once their destinations have proved that they have them"
        }
    }
}
