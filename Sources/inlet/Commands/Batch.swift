import ArgumentParser
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
        @Option(help: "At most so many.") var limit = 50
        @Flag(help: "Print one JSON object a line.") var json = false

        func run() async throws {
            let batches = try await ControlAccess.use(try options.load()) {
                try await $0.ask(Endpoints.batches, [.limit: "\(limit)"])
            }
            if json {
                for batch in batches { Console.print(try JobText.json(batch)) }
            } else if batches.isEmpty {
                Console.print("There is no batch.")
            } else {
                let head = ["BATCH", "STATE", "FILES", "ENDED", "NAME"].map { Console.tint($0, .faint) }
                let rows = batches.map { batch in
                    [
                        Console.tint("\(batch.batch)", .strong), batch.state, "\(batch.files.values.reduce(0, +))",
                        batch.ended_at ?? "-", batch.name,
                    ]
                }
                Console.print(Console.table([head] + rows))
            }
        }
    }
}
