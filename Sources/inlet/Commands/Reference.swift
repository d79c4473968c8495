import ArgumentParser
import InletAgent
import InletCore
import InletDashboard

/// All declarations in code that the manual's reference pages are made from, as one JSON object. Commands and keys of
/// the configuration are not among them: `inlet config schema` and `--experimental-dump-help` print those.
struct Reference: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "reference", abstract: "Print the declarations behind the manual's reference pages.",
        discussion: "Example: inlet reference | jq .metrics", shouldDisplay: false)

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
        let exits = ExitStatus.allCases.map { status in
            JSONValue.members([
                "code": JSONValue(Int(status.rawValue)), "name": status.symbol.map { .string($0) },
                "meaning": .string(status.meaning),
            ])
        }
        let reference = JSONValue.object([
            "api": Endpoints.openAPI(version: Inlet.version), "answers": CommandOutput.document(Inlet.outputs),
            "errors": .array(errors), "events": EventTable.reference, "exits": .array(exits),
            "metrics": MetricsPage.reference, "verdicts": .array(verdicts),
        ])
        Console.draw(reference.text + "\n")
    }
}
