import ArgumentParser
import InletAgent
import InletCore
import InletDashboard

/// Everything that the code declares once and the manual's reference pages are made from, as one JSON object. Keys of the
/// configuration and commands are not in it: `inlet config schema` and `--experimental-dump-help` print those.
struct Reference: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Prints the declarations that the manual's reference pages are made from.",
        discussion: "Example: inlet reference | jq .metrics", shouldDisplay: false)

    /// A command with `--json` that has no row here stops the build of the manual.
    private static let answers: [CommandAnswer] = [
        CommandAnswer("status", .object, StatusReport.self, "With `--watch`, one object a line."),
        CommandAnswer("check", .object, Findings.Report.self),
        CommandAnswer("run", .lines, RehearsalLine.self, "With `--dry-run`, a line for each file."),
        CommandAnswer("queue list", .lines, JobReport.self),
        CommandAnswer("queue show", .object, JobReport.self),
        CommandAnswer("batch list", .lines, JobReport.Batch.self),
        CommandAnswer("report", .object, OffloadReport.self, "With `--format json`."),
        CommandAnswer("verify", .lines, VerifyFinding.self),
        CommandAnswer("storage list", .lines, StorageList.Line.self),
        CommandAnswer("vopi", .lines, nil, "The VOPI server's own objects, unchanged."),
        CommandAnswer("roboscope", .lines, nil, "The Roboscope server's own objects, unchanged."),
    ]

    func run() {
        let errors = ErrorCode.allCases.map { code in
            JSONValue.members([
                "code": .string(code.rawValue), "verdict": .string(code.help.verdict.rawValue),
                "meaning": .string(code.help.meaning),
                "remedy": code.help.remedy.isEmpty ? nil : .string(code.help.remedy),
            ])
        }
        let verdicts = ErrorCodeHelp.Verdict.allCases.map { verdict in
            JSONValue.object(["name": .string(verdict.rawValue), "meaning": .string(verdict.meaning)])
        }
        let reference = JSONValue.object([
            "api": Endpoints.openAPI(version: Inlet.version), "answers": CommandAnswer.reference(Self.answers),
            "errors": .array(errors), "events": EventTable.reference, "exits": ExitStatus.reference,
            "metrics": MetricsPage.reference, "verdicts": .array(verdicts),
        ])
        Console.draw(reference.text + "\n")
    }
}
