import ArgumentParser
import InletCore
import InletDashboard

/// Which files of the queue a command is about.
struct SelectionOptions: ParsableArguments {
    @Option(
        help: "Only these states: pending, failed, delivered…", completion: .list(FileState.allCases.map(\.rawValue)))
    var state: [String] = []
    @Option(help: "Only files for this destination.", completion: ConfiguredNames.destinations)
    var destination: String?
    @Option(help: "Only files of this route.", completion: ConfiguredNames.routes) var route: String?
    @Option(help: "Only paths below their root that match, by the rules of routes: 'gigs/**', '*.mov'.")
    var path: String?
    @Option(help: "Only files with this label: NAME=VALUE; may be repeated.") var label: [String] = []
    @Option(
        help: "Only files that are as they are for this reason, as in 'timed_out'.",
        completion: .list(ErrorCode.allCases.map(\.rawValue)))
    var code: String?
    @Option(help: "Only files that ended, or while they have not came, so long ago: 90m, 30d.") var older: String?
    @Option(help: "Only files of this batch.") var batch: Int64?
    @Option(help: "At most so many.") var limit: Int?

    /// Whether anything but the number of files is asked for.
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
                throw ValidationError("'\(name)' is not a state; one of \(known)")
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
                throw ValidationError("'\(pair)' is no label; write NAME=VALUE")
            }
            selection.labels = (selection.labels ?? [:]).merging([parts[0]: parts[1]]) { $1 }
        }
        if let older {
            guard let age = DurationText.parse(older) else {
                throw ValidationError("'\(older)' is no age; write 90m, 24h or 30d")
            }
            selection.older_ms = age.milliseconds
        }
        return selection
    }
}
