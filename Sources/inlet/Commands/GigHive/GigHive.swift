import ArgumentParser
import InletDashboard

struct GigHive: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "gighive",
        abstract: "Undoes uploads to GigHive servers.",
        discussion: "Example: inlet gighive delete 17",
        subcommands: [Delete.self])

    struct Delete: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Deletes at the server what a job has uploaded, with the token that came with it.",
            discussion: """
                The token is in the journal, and goes with its first use. The server gives none for files that it had
                already. The job stays delivered: 'inlet queue forget' lets the same file be sent again.

                Example: inlet gighive delete 17
                """)

        @OptionGroup var options: ConfigOption
        @Argument(help: "The job's number; 'inlet queue list' shows it.") var job: Int64

        func run() async throws {
            try await options.use { try await $0.ask(Endpoints.undo, [.id: "\(job)", .type: "gighive"]) }.show()
        }
    }
}
