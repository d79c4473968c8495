import ArgumentParser
import InletConfig
import InletPipelines

struct Config: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Shows the configuration as it takes effect, what differs from the running one, or its schema.",
        discussion: "Example: inlet config show",
        subcommands: [Show.self, Diff.self, Schema.self])

    struct Show: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Prints the configuration with every default filled in; secrets show as ***.",
            discussion: "Example: inlet config show --config inlet.yaml")

        @OptionGroup var options: ConfigOption

        func run() async throws {
            Console.print(ConfigPrinter.show(try options.load(warns: true), types: DestinationKinds.types))
        }
    }

    struct Schema: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Prints the JSON schema of the configuration, for editors.",
            discussion: "Example: inlet config schema > inlet.schema.json")

        func run() async throws { Console.draw(ConfigSchema.json(types: DestinationKinds.types)) }
    }
}
