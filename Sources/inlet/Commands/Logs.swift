import ArgumentParser
import InletAgent
import InletConfig
import InletCore
import InletDashboard

struct Logs: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "logs", abstract: "Show or set the log level, or print the schema of log lines.",
        discussion: "Example: inlet logs level debug",
        subcommands: [Level.self, Schema.self])

    /// The former name, for scripts. Remove it at the end of 2027.
    struct Former: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "log", abstract: "The former name of 'inlet logs'.",
            discussion: "Example: inlet logs level debug", shouldDisplay: false,
            subcommands: [Level.self, Schema.self])
    }

    struct Level: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "level", abstract: "Show or set the log level of the running agent.",
            discussion: """
                A new level takes effect at once, and lasts until the next reload or start. For a permanent level, edit the
                configuration (log.level). Exits with 75 when no agent runs.

                Examples:
                  inlet logs level
                  inlet logs level debug
                """)

        @OptionGroup var options: ConfigOption
        @Argument(
            help: ArgumentHelp(
                "\(LogSettings.Level.allCases.map(\.rawValue).joined(separator: ", ")); without it, the current level is shown.",
                valueName: "LEVEL"))
        var level: String?
        @Flag(help: "Print one JSON object: the level, and all levels.") var json = false

        func validate() throws {
            if level != nil, json { throw ValidationError("--json prints the level; leave out LEVEL") }
            guard let level, LogSettings.Level(rawValue: level) == nil else { return }
            let levels = LogSettings.Level.allCases.map(\.rawValue)
            let hint = Suggestion.hint(level, in: levels)
            throw ValidationError("'\(level)' is not a level; choose one of \(levels.joined(separator: ", "))\(hint)")
        }

        func run() async throws {
            let config = try options.load()
            try await ControlAccess.useRunning(
                at: config.controlSocket,
                absence: { "no agent is running; the configuration sets its level (log.level)" }
            ) { agent in
                if let level {
                    return try await agent.ask(Endpoints.setLogLevel, body: LogLevelRequest(level: level)).show()
                }
                let report = try await agent.ask(Endpoints.logLevel)
                Console.print(json ? try Console.json(report) : report.text)
            }
        }
    }

    struct Schema: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "schema", abstract: "Print the JSON schema of log lines.",
            discussion: "Example: inlet logs schema > inlet-log.schema.json")

        func run() async throws { Console.draw(EventTable.schema) }
    }
}
