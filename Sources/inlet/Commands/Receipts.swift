import ArgumentParser
import InletDashboard

struct Receipts: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "receipts",
        abstract: "Print the receipts of finished files, newest first, one JSON object a line.",
        discussion: """
            Examples:
              inlet receipts --limit 20
              inlet receipts | jq -r 'select(.state == "delivered") | .deliveries[].url'
            """)

    @OptionGroup var options: ConfigOption
    @Option(help: "At most this many.") var limit = 100
    @Flag(help: "Print one JSON object a line, as without this option.") var json = false

    func run() async throws {
        let receipts = try await options.use {
            try await $0.ask(Endpoints.receipts, [.limit: "\(limit)"])
        }
        for receipt in receipts { Console.print(receipt) }
    }
}
