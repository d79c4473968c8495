import InletConfig
import InletCore
import InletDashboard
import InletLinux
import SystemPackage

/// The answer to `inlet` alone: the state of things, and the next commands, in at most eight lines.
struct NextStep {
    /// - Parameter options: those of a command line without any.
    static func text(_ options: ConfigOption) async -> String {
        guard options.isFound else { return hasClosedService ? closed : newcomer }
        // A wrong configuration may still lead to an agent that runs with the last right one.
        if let status = await ControlAccess.status(at: options.socket().removingLastComponent()) {
            return running(status)
        }
        do throws(ConfigErrors) {
            return stopped(try options.reload())
        } catch {
            let place = error.list.first.map { "\($0.file):\($0.line): \($0.message)" } ?? ""
            return """
                The configuration cannot be used. \(DisplayText.escape(place))

                \(line("inlet check", "shows every mistake with its place"))
                \(line("inlet init --help", "shows how a new one is written"))
                """
        }
    }

    private static var newcomer: String {
        """
        Inlet delivers files from watched folders. There is no configuration yet.

        \(line("inlet demo", "shows everything on this machine, without an account"))
        \(line("inlet init", "asks a few questions, and writes a configuration"))
        \(line("inlet --help", "lists all commands"))
        """
    }

    /// Whether the package's service is installed, with a configuration that this user may not see.
    private static var hasClosedService: Bool {
        MachineFacts.unit(InitService.unit) != nil && FileLook.glance(at: ConfigOption.ofService) == nil
    }

    private static var closed: String {
        """
        Inlet is installed here as a service, and this user may not see \(ConfigOption.ofService.display).

        \(line("sudo inlet status", "shows how the service is"))
        \(line("sudo inlet doctor", "looks for what is wrong"))
        \(line("inlet --help", "lists all commands"))
        """
    }

    private static func stopped(_ config: LoadedConfig) -> String {
        // The package's unit reads this one.
        let isService = MachineFacts.unit(InitService.unit) != nil && config.file == ConfigOption.ofService
        let start = isService ? "sudo systemctl start inlet" : "inlet run"
        return """
            \(config.file.display) is correct, and no agent runs with it: nothing is delivered.

            \(line("inlet check", "tries the folders and the destinations"))
            \(line("inlet run --dry-run", "shows what would be sent, and sends nothing"))
            \(line(start, "starts the agent"))
            \(line("inlet doctor", "looks for what is wrong"))
            """
    }

    private static func running(_ status: StatusReport) -> String {
        let health = status.health
        let needs = (health?.needs ?? []).prefix(2).map { "  \(DisplayText.escape($0))" }
        let more = max(0, (health?.needing ?? 0) - needs.count)
        let hint = more > 0 ? ["  and \(more) more: see 'inlet status'"] : []
        let page =
            status.dashboard?.state == .listening ? [line("inlet open", "prints a link to the page")] : []
        let steps =
            page + [line("inlet status --watch", "shows what moves"), line("inlet doctor", "looks for what is wrong")]
        return (["Inlet is running. \(DisplayText.escape(health?.sentence ?? ""))"] + needs + hint + [""] + steps)
            .joined(separator: "\n")
    }

    private static func line(_ command: String, _ meaning: String) -> String {
        "  \(Console.tint(command.padded(26), .strong)) \(meaning)"
    }
}
