import ArgumentParser
import InletDashboard

struct GigHive: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "gighive",
        abstract: "Undo uploads to GigHive servers.",
        discussion: "Example: inlet gighive delete 17",
        subcommands: [Delete.self])

    struct Delete: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "delete", abstract: "Delete a job's upload from the server.",
            discussion: """
                Uses the delete token that came with the upload; it is in the journal, and works once. The server gives
                none for files that it had already. The job stays delivered. To send the same file again, run 'inlet
                queue forget' first.

                Example: inlet gighive delete 17
                """)

        @OptionGroup var options: ConfigOption
        @Argument(help: "The job's number; 'inlet queue list' shows it.") var job: Int64

        func run() async throws {
            try await options.use { try await $0.ask(Endpoints.undo, [.id: "\(job)", .type: "gighive"]) }.show()
        }
    }
}
