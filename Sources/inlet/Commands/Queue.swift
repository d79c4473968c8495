import ArgumentParser
import Foundation
import InletCore
import InletDashboard

struct Queue: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Looks into the queue, and retries, cancels or forgets files of it.",
        discussion: """
            Nothing here ever deletes a file of yours: 'forget' and 'clear' are about the journal's rows.

            Examples:
              inlet queue list --state failed
              inlet queue show 17
              inlet queue retry 17 18
              inlet queue retry --all-failed
            """,
        subcommands: [
            List.self, Show.self, Retry.self, Cancel.self, Forget.self, Clear.self, Backup.self, Restore.self,
            Reset.self,
        ],
        defaultSubcommand: List.self)

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Lists files, newest first.",
            discussion: "Example: inlet queue list --state failed --destination archive")

        @OptionGroup var options: ConfigOption
        @Option(help: "Only these states: pending, failed, delivered…") var state: [String] = []
        @Option(help: "Only files for this destination.") var destination: String?
        @Option(help: "At most so many.") var limit = 50
        @Flag(help: "Print one JSON object a line.") var json = false

        func run() async throws {
            let states = try state.map { name in
                guard let state = FileState(rawValue: name) else {
                    throw ValidationError(
                        "'\(name)' is not a state; one of \(FileState.allCases.map(\.rawValue).joined(separator: ", "))"
                    )
                }
                return state
            }
            let jobs = try await ControlAccess.use(try options.load()) {
                try await $0.jobs(states: states, destination: destination, limit: limit)
            }
            if json {
                for job in jobs { Console.print(try JobText.json(job)) }
            } else if jobs.isEmpty {
                Console.print(state.isEmpty ? "The queue is empty." : "No file is \(state.joined(separator: " or ")).")
            } else {
                Console.print(JobText.table(jobs))
            }
        }
    }

    struct Show: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Shows one file's story.", discussion: "Example: inlet queue show 17")

        @OptionGroup var options: ConfigOption
        @Argument(help: "The job's number.") var job: Int64
        @Flag(help: "Print one JSON object.") var json = false

        func run() async throws {
            guard let report = try await ControlAccess.use(try options.load(), { try await $0.job(job) }) else {
                Console.printError("inlet: there is no job \(job)")
                throw ExitStatus.failed
            }
            Console.print(json ? try JobText.json(report) : JobText.story(report))
        }
    }

    struct Retry: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Sends failed, expired, cancelled or vanished files again, with fresh attempts.",
            discussion: """
                Examples:
                  inlet queue retry 17 18
                  inlet queue retry --all-failed
                """)

        @OptionGroup var options: ConfigOption
        @Argument(help: "The jobs' numbers.") var jobs: [Int64] = []
        @Flag(help: "Every failed and expired file.") var allFailed = false

        func run() async throws {
            guard allFailed || !jobs.isEmpty else { throw ValidationError("name a job, or --all-failed") }
            try await ControlAccess.use(try options.load()) { control in
                // Oldest first: what ended with the file it belongs to is queued again with that.
                let failed =
                    allFailed
                    ? try await control.jobs(states: [.failed, .expired], destination: nil, limit: 10_000).reversed()
                        .map(\.job) : []
                try await JobText.act(.retry, on: jobs + failed, control) { job in
                    guard failed.contains(job), let state = try await control.job(job)?.state else { return true }
                    return state == FileState.failed.rawValue || state == FileState.expired.rawValue
                }
            }
        }
    }

    struct Cancel: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Cancels files that wait or run.", discussion: "Example: inlet queue cancel 17 18")

        @OptionGroup var options: ConfigOption
        @Argument(help: "The jobs' numbers.") var jobs: [Int64]

        func run() async throws {
            try await ControlAccess.use(try options.load()) { try await JobText.act(.cancel, on: jobs, $0) }
        }
    }

    struct Forget: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Removes ended files from the journal; they are new ones if they are seen again.",
            discussion: "Example: inlet queue forget 17")

        @OptionGroup var options: ConfigOption
        @Argument(help: "The jobs' numbers.") var jobs: [Int64]

        func run() async throws {
            try await ControlAccess.use(try options.load()) { try await JobText.act(.forget, on: jobs, $0) }
        }
    }

    struct Clear: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Cancels everything that waits or runs.", discussion: "Example: inlet queue clear --yes")

        @OptionGroup var options: ConfigOption
        @Flag(help: "Do it without asking.") var yes = false

        func run() async throws {
            guard yes else { throw ValidationError("this cancels every waiting file; say --yes if you mean it") }
            let report = try await ControlAccess.use(try options.load()) { try await $0.clear() }
            Console.print(report.message)
        }
    }
}

/// Jobs for people and for programs.
enum JobText {
    static func json(_ job: some Encodable) throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return String(decoding: try encoder.encode(job), as: UTF8.self)
    }

    static func table(_ jobs: [JobReport]) -> String {
        let head = ["JOB", "STATE", "SIZE", "TO", "PATH"].map { Console.tint($0, .faint) }
        return Console.table(
            [head]
                + jobs.map { job in
                    let tint: Console.Tint? =
                        ["failed": .bad, "rejected": .bad, "expired": .bad, "delivered": .good][job.state]
                    return [
                        Console.tint("\(job.job)", .strong), tint.map { Console.tint(job.state, $0) } ?? job.state,
                        Console.tint(ByteText.format(job.size), .strong),
                        job.deliveries.map(\.destination).joined(separator: ","),
                        job.path + (job.reason.map { "\n        \($0)" } ?? ""),
                    ]
                })
    }

    static func story(_ job: JobReport) -> String {
        var lines = [
            Console.tint("\(job.path)", .strong),
            "  job \(job.job), \(ByteText.format(job.size)), \(job.state)" + (job.route.map { ", route \($0)" } ?? ""),
            "  admitted \(job.admitted_at)",
        ]
        if let ended = job.ended_at { lines.append("  ended    \(ended)") }
        if let finished = job.finished_at { lines.append("  finished \(finished): \(job.disposition ?? "kept")") }
        if let batch = job.batch {
            let files = batch.files.sorted { $0.key < $1.key }.map { "\($0.value) \($0.key)" }.joined(separator: ", ")
            lines.append("  batch    \(batch.batch) \(batch.name): \(batch.state); \(files)")
        }
        if let reason = job.reason { lines.append("  \(reason) [\(job.code ?? "")]") }
        for delivery in job.deliveries {
            lines.append("  → \(delivery.destination): \(delivery.state), attempts \(delivery.attempts)")
            if let key = delivery.key { lines.append("      key      \(key)") }
            if let verified = delivery.verified { lines.append("      verified \(verified) \(delivery.etag ?? "")") }
            if let url = delivery.url { lines.append("      at       \(url)") }
            for (name, text) in (delivery.details ?? [:]).sorted(by: { $0.key < $1.key }) {
                lines.append("      \(name.padded(8)) \(text)")
            }
            if let after = delivery.after, delivery.state == DeliveryState.ready.rawValue, delivery.next_at == nil {
                lines.append("      after    \(after)")
            }
            if let next = delivery.next_at { lines.append("      next     \(next)") }
            if let reason = delivery.reason {
                lines.append("      \(reason)" + (delivery.code.map { " [\($0)]" } ?? ""))
            }
        }
        return lines.joined(separator: "\n")
    }

    /// Does `action` to each; exits with 1 when one of them could not be done.
    static func act(
        _ action: JobAction, on jobs: [Int64], _ control: any ControlAPI,
        where isWanted: (Int64) async throws -> Bool = { _ in true }
    ) async throws {
        var isDone = true
        for job in jobs where try await isWanted(job) {
            let report = try await control.act(action, on: job)
            report.done ? Console.print(report.message) : Console.printError("inlet: \(report.message)")
            isDone = isDone && report.done
        }
        if !isDone { throw ExitStatus.failed }
    }
}
