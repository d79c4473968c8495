import ArgumentParser
import InletAgent
import InletConfig
import InletDashboard
import InletLinux

struct ReloadCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "reload",
        abstract: "Make the running agent read its configuration again.",
        discussion: """
            A valid configuration takes effect at once; running deliveries continue unchanged. An invalid one changes
            nothing: the command shows its errors and exits with 78. Changes that need a restart are listed. Exits with
            75 when no agent runs. SIGHUP does the same; the log has the result.

            Examples:
              inlet reload --config /etc/inlet/inlet.yaml
              systemctl reload inlet
            """)

    @OptionGroup var options: ConfigOption

    func run() async throws {
        let report = try await ControlAccess.useRunning(
            at: options.socket(),
            absence: {
                // An invalid file is reported even when no agent runs.
                _ = try options.load(warns: true)
                return "no agent is running; 'inlet run' reads the configuration at its start"
            }, { try await $0.ask(Endpoints.reload) })
        guard report.done else {
            for fault in report.errors { Console.printError(fault.text) }
            throw ExitStatus.configuration.saying(report.message)
        }
        Console.print("reloaded: \(report.message)")
        for change in report.changes { Console.print("  \(change.line)") }
        for warning in report.warnings ?? [] { Console.printError("warning: \(warning.text)") }
    }
}

extension ReloadReport.Change {
    /// `destinations.r2.part_size: 8MiB -> 16MiB`.
    var line: String {
        "\(path): \(from ?? "(none)") -> \(to ?? "(none)")" + (effect == "restart" ? " (needs a restart)" : "")
    }
}
