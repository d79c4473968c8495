import ArgumentParser
import InletAgent
import InletCore
import InletDashboard

/// Runs `queue retry|cancel|forget|clear`: on numbers one by one, on a selection where the agent is.
struct SelectionCommand {
    let action: JobAction
    let jobs: [Int64]
    let filters: SelectionOptions
    /// The states that the command is about, when none are named.
    let states: [FileState]
    let isDryRun: Bool
    /// Whether a person has said that more than one file is meant; nil where that harms nothing.
    let isConfirmed: Bool?

    func run(_ options: ConfigOption) async throws {
        var selection = try filters.selection(jobs: jobs)
        if selection.states?.isEmpty ?? true, jobs.isEmpty { selection.states = states.map(\.rawValue) }
        try await ControlAccess.use(try options.load()) { [selection] control in
            if !jobs.isEmpty, filters.isEmpty, filters.limit == nil, !isDryRun {
                return try await actOnEach(control)
            }
            if jobs.isEmpty, isConfirmed == false, !isDryRun {
                let plan = try await control.ask(Endpoints.select(for: action), [.dryRun: "1"], body: selection)
                guard plan.matched <= 1 else {
                    throw ValidationError(
                        "\(Self.files(plan.matched)), \(ByteText.format(plan.bytes)), would be \(done);"
                            + " say --yes if you mean it, or --dry-run to see them")
                }
            }
            try tell(
                try await control.ask(
                    Endpoints.select(for: action), [.dryRun: isDryRun ? "1" : nil], body: selection))
        }
    }

    /// Exits with 1 when one of them could not be done.
    private func actOnEach(_ control: any ControlAPI) async throws {
        var isDone = true
        for job in jobs {
            let report = try await control.ask(Endpoints.act(on: action), [.id: "\(job)"])
            report.done ? Console.print(report.message) : Console.printError("inlet: \(report.message)")
            isDone = isDone && report.done
        }
        if !isDone { throw ExitStatus.failed }
    }

    private var done: String {
        switch action {
        case .retry: "queued again"
        case .cancel: "cancelled"
        case .forget: "forgotten"
        }
    }

    private static func files(_ count: Int) -> String { count == 1 ? "1 file" : "\(count) files" }

    private func tell(_ report: SelectionReport) throws {
        guard !report.dry_run else {
            Console.print("\(Self.files(report.matched)), \(ByteText.format(report.bytes)), would be \(done)")
            for file in report.files {
                Console.print("  \(file.job)  \(file.state)  \(ByteText.format(file.size))  \(file.path)")
            }
            let left = report.matched - report.files.count
            if left > 0 { Console.print("  … and \(left) more") }
            return
        }
        let fresh = report.done - report.hurried
        if fresh > 0 || report.hurried == 0 { Console.print("\(Self.files(fresh)) \(done)") }
        if report.hurried > 0 {
            let obstacles = report.waits_for ?? []
            let time = obstacles.isEmpty ? "now" : "now, but for what waits: \(obstacles.joined(separator: "; "))"
            Console.print("\(Self.files(report.hurried)) tried \(time)")
        }
        for (reason, count) in report.skipped.sorted(by: { $0.key < $1.key }) {
            Console.printError("inlet: \(Self.files(count)) skipped: \(reason)")
        }
        if !report.skipped.isEmpty { throw ExitStatus.failed }
    }
}
