import ArgumentParser
import InletConfig
import InletCore
import InletDashboard
import InletPipelines
import Synchronization
import SystemPackage

struct VOPI: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "vopi",
        abstract: "Show and manage a VOPI server's jobs, and the pictures that they made.",
        discussion: """
            The server is that of the destination of type vopi. The command uses the running agent's access token, so
            that only the agent renews it. Without an agent it uses and renews the tokens in state_dir. --json prints
            objects as the server sent them.

            Exits with 1 when the server refuses or has no such job, 69 when it is unavailable or refuses the login, 78
            when the configuration has no such destination.

            Examples:
              inlet vopi jobs --status completed
              inlet vopi show 3f0c2b9e-…
              inlet vopi download 3f0c2b9e-… -o ~/Pictures
            """,
        subcommands: [
            Jobs.self, Show.self, Cancel.self, Delete.self, Images.self, Frames.self, Download.self,
        ])

    /// Runs `body` with the server's calls, and prints what failed.
    static func use(
        _ server: ServerOption, _ body: (_ api: VOPIAPI, _ results: VOPIResults) async throws -> Void
    ) async throws {
        try await server.use("vopi") { config, settings, factory in
            let agent = try await ControlAccess.runningAgent(config)
            defer { agent?.shutdown() }
            let api = try config.checking(settings) { () throws(SettingFault) in
                try factory.vopiAPI(settings, borrowing: agent.map { Self.borrowed(settings.name, from: $0) })
            }
            try await body(api, factory.vopiResults(api))
        }
    }

    /// The agent's access token. Asks the agent each time one is needed; the agent renews a token that the server
    /// rejected early.
    private static func borrowed(
        _ destination: String, from agent: ControlClient
    ) -> @Sendable (_ refused: Secret?) async throws(DeliveryError) -> Secret {
        { refused async throws(DeliveryError) in
            let report: TokenReport
            do {
                report = try await agent.ask(
                    Endpoints.accessToken, [.destination: destination], body: refused.map { TokenRequest(refused: $0) })
            } catch {
                throw DeliveryError(.outage(after: nil), .connectFailed, "the running agent gave no token: \(error)")
            }
            guard let token = report.token else {
                throw DeliveryError(.credentials, .unauthorized, "the running agent has no token: \(report.message)")
            }
            return token
        }
    }
}

extension VOPI {
    struct Jobs: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "jobs", abstract: "List jobs, newest first.",
            discussion: """
                On newer servers a job is 'pending' until it ends.

                Examples:
                  inlet vopi jobs --status failed
                  inlet vopi jobs --limit 100 --json | jq -r .id
                """)

        @OptionGroup var server: ServerOption
        @Option(help: "Only these: pending, completed, failed, cancelled…") var status: String?
        @Option(help: ArgumentHelp("At most this many, up to 100.", valueName: "N")) var limit = 20
        @Option(help: ArgumentHelp("Skip this many of the newest.", valueName: "N")) var offset = 0
        @Flag(help: "Print one JSON object a line.") var json = false

        func validate() throws {
            if !(1...100).contains(limit) { throw ValidationError("--limit must be a number from 1 to 100") }
            if offset < 0 { throw ValidationError("--offset must be 0 or more") }
        }

        func run() async throws {
            try await VOPI.use(server) { api, _ in
                let page = try await api.jobs(status: status, limit: limit, offset: offset)
                ResponseTable(
                    (.name("JOB"), "id"), (.text("STATUS"), "status"), (.text("CREATED"), "createdAt"),
                    (.text("UPDATED"), "updatedAt"), (.name("VIDEO"), "videoUrl"), none: "There are no such jobs."
                ).print(page.jobs.map(\.raw.plain), json: json)
                if !json, let total = page.total, offset + page.jobs.count < total {
                    Console.print("\(page.jobs.count) of \(total); more with --offset \(offset + page.jobs.count)")
                }
            }
        }
    }

    struct Show: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "show", abstract: "Show one job, or its product data.",
            discussion: """
                Examples:
                  inlet vopi show 3f0c2b9e-…
                  inlet vopi show 3f0c2b9e-… --product
                """)

        @OptionGroup var server: ServerOption
        @Argument(help: "The job's id; 'inlet vopi jobs' lists them, 'inlet queue show' has that of a file.")
        var job: String
        @Flag(help: "Print the product's data as JSON instead: its description, and the shops' formats.") var product =
            false
        @Flag(help: "Print the JSON object.") var json = false

        private static let first = [
            "id", "status", "progress", "error", "createdAt", "startedAt", "updatedAt", "completedAt", "videoUrl",
            "config",
            "result",
        ]

        func run() async throws {
            try await VOPI.use(server) { api, _ in
                guard product else {
                    let answer = ServerResponse(try await api.job(job).raw.plain)
                    return Console.print(json ? answer.line : answer.story(first: Self.first))
                }
                guard let metadata = try await api.metadata(job) else {
                    throw DeliveryError(.giveUp, .notFound, "job \(DisplayText.escape(job)) has no product data")
                }
                Console.print(json ? metadata.plain.text : metadata.plain.prettyText)
            }
        }
    }

    struct Cancel: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "cancel", abstract: "Cancel a job that has not ended.",
            discussion: """
                A running job may still end as 'completed', and then costs its price. To cancel a file's delivery
                together with its job, use 'inlet queue cancel'.

                Example: inlet vopi cancel 3f0c2b9e-…
                """)

        @OptionGroup var server: ServerOption
        @Argument(help: "The job's id.") var job: String

        func run() async throws {
            try await VOPI.use(server) { api, _ in
                try await api.cancel(job)
                Console.print("job \(DisplayText.escape(job)) is cancelled")
            }
        }
    }

    struct Delete: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "delete", abstract: "Delete a job and its files from the server, or one of its pictures.",
            discussion: """
                Downloaded files stay on this machine.

                Examples:
                  inlet vopi delete 3f0c2b9e-… --yes
                  inlet vopi delete 3f0c2b9e-… --image hero/solid --yes
                """)

        @OptionGroup var server: ServerOption
        @Argument(help: "The job's id.") var job: String
        @Option(help: ArgumentHelp("Only this picture; 'inlet vopi images' lists them.", valueName: "FRAME/VERSION"))
        var image: String?
        @Flag(help: "Do it without asking.") var yes = false

        func validate() throws {
            _ = try picture()
            guard yes else { throw ValidationError("this deletes at the server; confirm with --yes") }
        }

        func run() async throws {
            try await VOPI.use(server) { api, _ in
                guard let (frame, version) = try picture() else {
                    try await api.delete(job)
                    return Console.print("job \(DisplayText.escape(job)) is deleted")
                }
                let left = try await api.deleteImage(job, frame: frame, version: version)
                let count = left.values.reduce(0) { $0 + $1.count }
                let name = DisplayText.escape("\(frame)/\(version)")
                Console.print("picture \(name) is deleted; the job has \(count) more")
            }
        }

        /// The named picture; nil where none is named and the whole job is meant. An incomplete name is an error.
        private func picture() throws -> (frame: String, version: String)? {
            guard let image else { return nil }
            let parts = image.split(separator: "/", omittingEmptySubsequences: false)
            guard parts.count == 2, parts.allSatisfy({ !$0.isEmpty }) else {
                throw ValidationError("--image is written FRAME/VERSION, such as hero/solid")
            }
            return (String(parts[0]), String(parts[1]))
        }
    }
}

extension VOPI {
    struct Images: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "images", abstract: "List the pictures that a job made, by product variant and version.",
            discussion: """
                The files are in a private bucket; 'inlet vopi download' downloads them.

                Example: inlet vopi images 3f0c2b9e-…
                """)

        @OptionGroup var server: ServerOption
        @Argument(help: "The job's id.") var job: String
        @Flag(help: "Print one JSON object a line: frame, version, url.") var json = false

        func run() async throws {
            try await VOPI.use(server) { api, _ in
                // The result's names are those for deleting a picture; the grouped list has others.
                var images = try await api.job(job).result?.commercialImages ?? [:]
                if images.isEmpty { images = try await api.groupedImages(job) }
                let rows = images.sorted { $0.key < $1.key }.flatMap { frame, versions in
                    versions.sorted { $0.key < $1.key }.map { version, url in
                        JSONValue.object(["frame": .string(frame), "version": .string(version), "url": .string(url)])
                    }
                }
                ResponseTable(
                    (.name("FRAME"), "frame"), (.text("VERSION"), "version"), none: "The job has no pictures."
                )
                .print(rows, json: json)
            }
        }
    }

    struct Frames: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "frames",
            abstract:
                "List the frames that a job chose from its video: time, angle, variant, obstructions, backgrounds.",
            discussion: """
                Examples:
                  inlet vopi frames 3f0c2b9e-…
                  inlet vopi frames 3f0c2b9e-… --all --json | jq -r .timestamp
                """)

        @OptionGroup var server: ServerOption
        @Argument(help: "The job's id.") var job: String
        @Flag(help: "All frames that the job examined, not only the chosen ones.") var all = false
        @Flag(help: "Print one JSON object a line.") var json = false

        func run() async throws {
            try await VOPI.use(server) { api, _ in
                let frames = try await api.frames(job, final: !all)
                ResponseTable(
                    (.name("FRAME"), "frameId"), (.number("SECOND"), "timestamp"), (.text("ANGLE"), "angleEstimate"),
                    (.text("PRODUCT"), "productId"), (.text("VARIANT"), "variantId"),
                    (.name("DESCRIPTION"), "variantDescription"), (.text("OBSTRUCTION"), "obstruction"),
                    (.text("BACKGROUND"), "background"), none: "The job has no frames."
                ).print(frames.map { json ? $0.plain : Self.row($0) }, json: json)
            }
        }

        /// A frame for people, its nested fields in words.
        private static func row(_ frame: VOPIValue) -> JSONValue {
            var fields = frame.plain.object ?? [:]
            fields["obstruction"] = frame.obstructionText.map { .string($0) }
            fields["background"] = frame.backgroundText.map { .string($0) }
            return .object(fields)
        }
    }

    struct Download: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "download",
            abstract: "Download a job's results: its pictures, chosen frames and product.json.",
            discussion: """
                They go into a folder named after the job's id. Complete files are not downloaded again, and interrupted
                ones continue. If the server returns only some of the job's files, product.json lists the missing ones,
                and the command exits with 1; repeat it later.

                Examples:
                  inlet vopi download 3f0c2b9e-…
                  inlet vopi download 3f0c2b9e-… -o ~/Pictures
                """)

        @OptionGroup var server: ServerOption
        @Argument(help: "The job's id.") var job: String
        @Option(
            name: .shortAndLong,
            help: ArgumentHelp(
                "The folder for the job's folder; without it, the destination's 'results'.", valueName: "DIR"))
        var output: String?

        func validate() throws {
            guard job.wholeMatch(of: /[A-Za-z0-9][A-Za-z0-9_-]{0,99}/) != nil else {
                throw ValidationError("'\(DisplayText.escape(job))' is not a job's id; 'inlet vopi jobs' lists them")
            }
        }

        func run() async throws {
            try await VOPI.use(server) { api, results in
                let folder =
                    output.map { FilePath.absolute($0).appending(job) }
                    ?? VOPIResults.folder(of: job, in: api.settings)
                let state = Mutex((done: 0, all: 0, name: ""))
                let line = ProgressLine()
                defer { line.erase() }
                let fetched = try await watched { [job] in
                    try await results.fetch(job: job, into: folder) { done, all, name in
                        state.withLock { $0 = (done, all, name) }
                    }
                } show: {
                    let (done, all, name) = state.withLock { $0 }
                    let bar = Console.bar(Int64(done), of: Int64(all))
                    line.draw(DisplayText.escape(name), bar, "\(done) of \(all) files")
                }
                line.erase()
                try Self.report(fetched)
            }
        }

        private static func report(_ fetched: VOPIResults.Summary) throws {
            for file in fetched.files { Console.print(fetched.folder.pushing(FilePath(file)).display) }
            Console.print("\(fetched.files.count) files, \(ByteText.format(fetched.bytes))")
            guard fetched.absent == 0 else {
                let why = fetched.reason.map { ": " + $0 } ?? ""
                Console.printError("inlet: the server did not return \(fetched.absent) of the files of the job\(why)")
                for name in fetched.missing { Console.printError("  \(DisplayText.escape(name))") }
                throw ExitStatus.failed.code
            }
        }
    }
}

extension VOPI: ServerCommand {
    static let outputs = [
        CommandOutput(server: "vopi frames", isLines: true),
        CommandOutput(server: "vopi images", isLines: true),
        CommandOutput(server: "vopi jobs", isLines: true),
        CommandOutput(server: "vopi show"),
    ]
}
