import ArgumentParser
import InletAgent
import InletCore
import InletDashboard
import InletJournal

/// Orders about the order of sending, and about the sources of files that were not sent.
extension Queue {
    struct First: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "first", abstract: "Send waiting files before the others.",
            discussion: "Example: inlet queue first 17")

        @OptionGroup var options: ConfigOption
        @Argument(help: "Job numbers.") var jobs: [Int64] = []
        @OptionGroup(title: "Which files") var filters: SelectionOptions
        @Flag(help: "Show what would be done, and do nothing.") var dryRun = false

        func run() async throws {
            guard !jobs.isEmpty || !filters.isEmpty else { throw ValidationError("name a job or a filter") }
            try await filters.run(.first, jobs, in: [.pending], isDryRun: dryRun, isConfirmed: nil, options)
        }
    }

    struct Leave: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "leave", abstract: "Say that duplicates or rejected files may stay where they are.",
            discussion: """
                Inlet changes no file. Lists of files that need an answer no longer show them.
                It also withdraws an order to move or remove a file that has not begun.

                Examples:
                  inlet queue leave 17
                  inlet queue leave --state duplicate --yes
                """)

        @OptionGroup var options: ConfigOption
        @OptionGroup var answer: AnswerOptions

        func run() async throws { try await answer.run(.leave, [.duplicate, .rejected], options) }
    }

    struct Aside: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "aside", abstract: "Move duplicates to the archive, and rejected files to quarantine.",
            discussion: """
                The folders are those of the watched folder. A file that is being written, or has changed, stays.

                Examples:
                  inlet queue aside 17
                  inlet queue aside --state rejected --yes
                """)

        @OptionGroup var options: ConfigOption
        @OptionGroup var answer: AnswerOptions

        func run() async throws { try await answer.run(.aside, [.duplicate, .rejected], options) }
    }

    struct Remove: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "remove", abstract: "Remove duplicates that their destinations prove to have.",
            discussion: """
                Inlet asks each destination again, and reads the file again. Without a proof the file stays,
                and 'inlet queue show' has the reason. Inlet never removes a rejected file.

                Examples:
                  inlet queue remove 17
                  inlet queue remove --route gig-videos --yes
                """)

        @OptionGroup var options: ConfigOption
        @OptionGroup var answer: AnswerOptions

        func run() async throws { try await answer.run(.remove, [.duplicate], options) }
    }
}

/// The files that a person answers about.
struct AnswerOptions: ParsableArguments {
    @Argument(help: "Job numbers.") var jobs: [Int64] = []
    @OptionGroup(title: "Which files") var filters: SelectionOptions
    @Flag(help: "Show what would be done, and do nothing.") var dryRun = false
    @Flag(help: "Do it to more than one file without asking.") var yes = false

    func run(_ action: JobAction, _ states: [FileState], _ options: ConfigOption) async throws {
        guard !jobs.isEmpty || !filters.isEmpty else { throw ValidationError("name a job or a filter") }
        try await filters.run(action, jobs, in: states, isDryRun: dryRun, isConfirmed: yes, options)
    }
}
