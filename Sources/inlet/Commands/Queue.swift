import ArgumentParser
import InletAgent
import InletCore
import InletDashboard
import InletJournal

struct Queue: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "queue", abstract: "Show the queue, and retry, cancel, answer or forget its files.",
        discussion: """
            'forget' and 'clear' change only the journal. 'aside' and 'remove' move and remove files that were not sent;
            'remove' needs a proof of their destinations.

            Examples:
              inlet queue list --state failed
              inlet queue show 17
              inlet queue retry 17 18
              inlet queue retry --all-failed
              inlet queue forget --state delivered --older 30d --dry-run
            """,
        subcommands: [
            List.self, Show.self, Retry.self, First.self, Cancel.self, Leave.self, Aside.self, Remove.self, Forget.self,
            Clear.self, Backup.self, Restore.self,
            Reset.self,
        ],
        defaultSubcommand: List.self)

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "list", abstract: "List files, newest first.",
            discussion: "Example: inlet queue list --state failed --destination archive --path 'gigs/**'")

        @OptionGroup var options: ConfigOption
        @OptionGroup(title: "Which files") var filters: SelectionOptions
        @Flag(help: "Print one JSON object a line.") var json = false

        func run() async throws {
            var selection = try filters.selection()
            selection.limit = selection.limit ?? 50
            let jobs = try await options.use { [selection] in try await $0.ask(Endpoints.list, body: selection) }
            if json {
                for job in jobs { Console.print(try Console.json(job)) }
            } else if jobs.isEmpty {
                let states = filters.state.joined(separator: " or ")
                Console.print(
                    filters.isEmpty
                        ? "The queue is empty." : filters.state.isEmpty ? "No matching files" : "No file is \(states).")
            } else {
                Console.print(JobReport.table(jobs))
            }
        }
    }

    struct Show: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "show", abstract: "Show the history of one file.", discussion: "Example: inlet queue show 17")

        @OptionGroup var options: ConfigOption
        @Argument(help: "The job's number.") var job: Int64
        @Flag(help: "Print one JSON object.") var json = false

        func run() async throws {
            guard let report = try await options.use({ try await $0.find(Endpoints.job, [.id: "\(job)"]) }) else {
                throw ExitStatus.failed.saying("there is no job \(job)")
            }
            Console.print(json ? try Console.json(report) : report.story)
        }
    }

    struct Retry: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "retry",
            abstract:
                "Send failed, expired, cancelled or vanished files again, and try waiting files now.",
            discussion: """
                Files that have ended get fresh attempts; files in quarantine are moved back first.
                Without --state, a selection covers the files that can be sent again.

                Examples:
                  inlet queue retry 17 18
                  inlet queue retry --all-failed
                  inlet queue retry --destination archive --code timed_out
                """)

        @OptionGroup var options: ConfigOption
        @Argument(help: "Job numbers.") var jobs: [Int64] = []
        @Flag(help: "Every failed and expired file.") var allFailed = false
        @OptionGroup(title: "Which files") var filters: SelectionOptions
        @Flag(help: "Show what would be done, and do nothing.") var dryRun = false

        func run() async throws {
            guard allFailed || !jobs.isEmpty || !filters.isEmpty else {
                throw ValidationError("name a job, a filter, or --all-failed")
            }
            try await filters.run(
                .retry, allFailed ? [] : jobs,
                in: allFailed ? [.failed, .expired] : [.failed, .expired, .cancelled, .gone, .pending],
                isDryRun: dryRun, isConfirmed: nil, options)
        }
    }

    struct Cancel: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "cancel", abstract: "Cancel files that wait or run.",
            discussion: """
                Examples:
                  inlet queue cancel 17 18
                  inlet queue cancel --route gig-videos --yes
                """)

        @OptionGroup var options: ConfigOption
        @Argument(help: "Job numbers.") var jobs: [Int64] = []
        @OptionGroup(title: "Which files") var filters: SelectionOptions
        @Flag(help: "Show what would be done, and do nothing.") var dryRun = false
        @Flag(help: "Do it to more than one file without asking.") var yes = false

        func run() async throws {
            guard !jobs.isEmpty || !filters.isEmpty else { throw ValidationError("name a job or a filter") }
            try await filters.run(.cancel, jobs, in: [.pending], isDryRun: dryRun, isConfirmed: yes, options)
        }
    }

    struct Forget: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "forget",
            abstract: "Remove ended files from the journal; Inlet treats them as new if it sees them again.",
            discussion: """
                Examples:
                  inlet queue forget 17
                  inlet queue forget --state delivered --older 30d --yes
                """)

        @OptionGroup var options: ConfigOption
        @Argument(help: "Job numbers.") var jobs: [Int64] = []
        @OptionGroup(title: "Which files") var filters: SelectionOptions
        @Flag(help: "Show what would be done, and do nothing.") var dryRun = false
        @Flag(help: "Do it to more than one file without asking.") var yes = false

        func run() async throws {
            guard !jobs.isEmpty || !filters.isEmpty else { throw ValidationError("name a job or a filter") }
            try await filters.run(
                .forget, jobs, in: FileState.allCases.filter(\.isFinal), isDryRun: dryRun, isConfirmed: yes, options)
        }
    }

    struct Clear: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "clear", abstract: "Cancel all files that wait or run, or a selection of them.",
            discussion: "Example: inlet queue clear --yes")

        @OptionGroup var options: ConfigOption
        @OptionGroup(title: "Which files") var filters: SelectionOptions
        @Flag(help: "Show what would be done, and do nothing.") var dryRun = false
        @Flag(help: "Do it without asking.") var yes = false

        func run() async throws {
            guard yes || dryRun else {
                throw ValidationError("this cancels every waiting file; confirm with --yes")
            }
            if filters.isEmpty, filters.limit == nil, !dryRun {
                return Console.print(try await options.use { try await $0.ask(Endpoints.clear) }.message)
            }
            try await filters.run(.cancel, [], in: [.pending], isDryRun: dryRun, isConfirmed: yes, options)
        }
    }
}
