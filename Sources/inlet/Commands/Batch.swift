import ArgumentParser
import InletAgent
import InletCore
import InletDashboard

struct BatchCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "batch", abstract: "List batches.",
        discussion: "Example: inlet batch list --limit 5", subcommands: [List.self], defaultSubcommand: List.self)

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "list",
            abstract: "List batches, newest first: folders that are delivered as one, and files with companions.",
            discussion: "Example: inlet batch list --limit 5")

        @OptionGroup var options: ConfigOption
        @Option(help: "At most this many.") var limit = 50
        @Flag(help: "Print one JSON object a line.") var json = false

        func run() async throws {
            let batches = try await options.use { try await $0.ask(Endpoints.batches, [.limit: "\(limit)"]) }
            if json {
                for batch in batches { Console.print(try Console.json(batch)) }
            } else if batches.isEmpty {
                Console.print("No batches")
            } else {
                let rows: [[StyledText]] = batches.map { batch in
                    [
                        StyledText("\(batch.batch)", .strong), StyledText(batch.state),
                        StyledText("\(batch.files.values.reduce(0, +))"),
                        StyledText(batch.ended_at.map(Console.time) ?? "-"),
                        StyledText(batch.name),
                    ]
                }
                Console.print(
                    Console.table(
                        [.number("BATCH"), .text("STATE"), .number("FILES"), .text("ENDED"), .name("NAME")], rows))
            }
        }
    }
}
