import ArgumentParser
import InletCore
import InletDashboard

struct BatchCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "batch", abstract: "Lists what was delivered together.",
        discussion: "Example: inlet batch list --limit 5", subcommands: [List.self], defaultSubcommand: List.self)

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Lists batches, newest first: folders that are delivered as one, and files with companions.",
            discussion: "Example: inlet batch list --limit 5")

        @OptionGroup var options: ConfigOption
        @Option(help: "The most to return.") var limit = 50
        @Flag(help: "Print one JSON object a line.") var json = false

        func run() async throws {
            let batches = try await options.use { try await $0.ask(Endpoints.batches, [.limit: "\(limit)"]) }
            if json {
                for batch in batches { Console.print(try Console.json(batch)) }
            } else if batches.isEmpty {
                Console.print("There is no batch.")
            } else {
                let rows = batches.map { batch in
                    [
                        Console.tint("\(batch.batch)", .strong), batch.state, "\(batch.files.values.reduce(0, +))",
                        batch.ended_at ?? "-", batch.name,
                    ]
                }
                Console.print(Console.table(rows, headings: ["BATCH", "STATE", "FILES", "ENDED", "NAME"]))
            }
        }
    }
}
