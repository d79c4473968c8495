import ArgumentParser
import InletAgent
import InletConfig
import InletCore
import InletDashboard

struct LogCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "log", abstract: "Changes what the running agent logs, or shows what its lines are like.",
        discussion: "Example: inlet log level debug",
        subcommands: [Level.self, Schema.self])

    struct Level: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Says which level the running agent logs, or sets it.",
            discussion: """
                Takes effect at once. It lasts until the configuration is read again or the agent is started again; what is
                to last longer belongs into the configuration (log.level). Exits with 75 when no agent runs.

                Examples:
                  inlet log level
                  inlet log level debug
                """)

        @OptionGroup var options: ConfigOption
        @Argument(
            help: ArgumentHelp(
                "\(LogSettings.Level.allCases.map(\.rawValue).joined(separator: ", ")); without it, what holds is shown.",
                valueName: "LEVEL"))
        var level: String?

        func validate() throws {
            guard let level, LogSettings.Level(rawValue: level) == nil else { return }
            let levels = LogSettings.Level.allCases.map(\.rawValue)
            let hint = Suggestion.hint(level, in: levels)
            throw ValidationError("'\(level)' is none of \(levels.joined(separator: ", "))\(hint)")
        }

        func run() async throws {
            let config = try options.load()
            try await ControlAccess.useRunning(
                at: config.controlSocket,
                absence: { "no agent is running; what it will log is in its configuration (log.level)" }
            ) { agent in
                if let level {
                    return try await agent.ask(Endpoints.setLogLevel, body: LogLevelRequest(level: level)).show()
                }
                Console.print(try await agent.ask(Endpoints.logLevel).text)
            }
        }
    }

    struct Schema: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Prints the JSON schema of the log's lines.",
            discussion: "Example: inlet log schema > inlet-log.schema.json")

        func run() async throws { Console.draw(EventTable.schema) }
    }
}
