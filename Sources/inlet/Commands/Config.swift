import ArgumentParser
import InletConfig
import InletCore
import InletDashboard
import InletLinux
import InletPipelines
import SystemPackage

struct Config: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "config",
        abstract: "Show the effective configuration, its difference from the running one, or its schema.",
        discussion: "Example: inlet config show",
        subcommands: [Show.self, Diff.self, Schema.self])

    struct Show: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "show", abstract: "Print the configuration with every default filled in; secrets show as ***.",
            discussion: "Example: inlet config show --config inlet.yaml")

        @OptionGroup var options: ConfigOption
        @Flag(help: "Print one JSON object; 'inlet config schema' describes it.") var json = false

        func run() async throws {
            let config = try options.load(warns: true)
            let text = ConfigPrinter.show(config, types: DestinationKinds.types)
            guard json else { return Console.print(text) }
            // Inlet's own text is always one document.
            Console.print(String(decoding: try YAMLAsJSON.convert(Array(text.utf8), file: config.file), as: UTF8.self))
        }
    }

    struct Schema: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "schema", abstract: "Print the JSON schema of the configuration, for editors.",
            discussion: "Example: inlet config schema > inlet.schema.json")

        func run() async throws { Console.draw(ConfigSchema.json(types: DestinationKinds.types)) }
    }
}

extension Config {
    struct Diff: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "diff", abstract: "Compare a file with the running configuration.",
            discussion: """
                Lists the changes that 'inlet reload' would make. Secrets show as *** and are not compared. Exits with 0 when
                nothing differs, 1 when something does, 75 when no agent runs.

                Examples:
                  inlet config diff
                  inlet config diff --config /etc/inlet/inlet.yaml draft.yaml
                """)

        @OptionGroup var options: ConfigOption
        @Argument(help: "The file; without it, that of --config.") var file: String?
        @Flag(help: "Print one JSON object a line: one for each difference.") var json = false

        func run() async throws {
            var draft = options
            if let file { draft.config = file }
            let config = try draft.load()
            // Without `--config`, the file's `state_dir` leads to the agent.
            let place = options.isFound ? options : draft
            guard let agent = try await ControlAccess.runningAgent(at: place.socket()) else {
                throw ExitStatus.tryLater.saying(
                    "no agent is running: there is nothing to compare \(config.file.display) with")
            }
            defer { agent.shutdown() }
            guard let running = try await agent.find(Endpoints.config) else {
                throw ExitStatus.tryLater.saying("this agent has no configuration file")
            }
            try show(running, config)
        }

        private func show(_ running: ConfigReport, _ config: LoadedConfig) throws {
            let types = DestinationKinds.types
            let shown = try ConfigFile.shown(
                running.text, file: FilePath(running.file), types: types, defaults: ConfigOption.defaults([:]))
            let changes = ConfigDiff.changes(from: shown, to: config.effective, types: types)
            if json {
                for change in changes { Console.print(try Console.json(ReloadReport.Change(change))) }
            } else if changes.isEmpty {
                Console.print("\(config.file.display) matches the running configuration, since \(running.loaded_at)")
            } else {
                Console.print(changes.map(\.text).joined(separator: "\n"))
            }
            if !changes.isEmpty { throw ExitStatus.failed.code }
        }
    }
}
