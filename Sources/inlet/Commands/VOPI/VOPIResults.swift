import ArgumentParser
import InletCore
import InletPipelines
import Synchronization
import SystemPackage

extension VOPI {
    struct Images: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Lists the pictures that a job made, by variant of the product and version.",
            discussion: """
                The files are in a private bucket: 'inlet vopi download' fetches them.

                Example: inlet vopi images 3f0c2b9e-…
                """)

        @OptionGroup var server: ServerOption
        @Argument(help: "The job's id.") var job: String
        @Flag(help: "Print one JSON object a line: frame, version, url.") var json = false

        func run() async throws {
            try await VOPI.use(server) { api, _ in
                // The names of the result are those by which a picture can be deleted; the grouped list has others.
                var images = try await api.job(job).result?.commercialImages ?? [:]
                if images.isEmpty { images = try await api.groupedImages(job) }
                let rows = images.sorted { $0.key < $1.key }.flatMap { frame, versions in
                    versions.sorted { $0.key < $1.key }.map { version, url in
                        Answer(
                            .object(["frame": .string(frame), "version": .string(version), "url": .string(url)]))
                    }
                }
                AnswerTable(.init("FRAME", "frame"), .init("VERSION", "version"), none: "The job has no pictures.")
                    .print(rows, json: json)
            }
        }
    }

    struct Frames: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract:
                "Lists the frames of the video that a job chose: time, angle, variant, obstructions, backgrounds.",
            discussion: """
                Examples:
                  inlet vopi frames 3f0c2b9e-…
                  inlet vopi frames 3f0c2b9e-… --all --json | jq -r .timestamp
                """)

        @OptionGroup var server: ServerOption
        @Argument(help: "The job's id.") var job: String
        @Flag(help: "All frames that were looked at, not the chosen ones only.") var all = false
        @Flag(help: "Print one JSON object a line.") var json = false

        func run() async throws {
            try await VOPI.use(server) { api, _ in
                let frames = try await api.frames(job, final: !all)
                AnswerTable(
                    .init("FRAME", "frameId"), .init("SECOND", "timestamp"), .init("ANGLE", "angleEstimate"),
                    .init("PRODUCT", "productId"), .init("VARIANT", "variantId"),
                    .init("DESCRIPTION", "variantDescription"), .init("OBSTRUCTION", "obstruction"),
                    .init("BACKGROUND", "background"), none: "The job has no frames."
                ).print(frames.map { json ? Answer($0.plain) : Self.row($0) }, json: json)
            }
        }

        /// A frame for people: what is nested in it as words.
        private static func row(_ frame: VOPIValue) -> Answer {
            var fields = frame.plain.object ?? [:]
            fields["obstruction"] = frame.obstructionText.map { .string($0) }
            fields["background"] = frame.backgroundText.map { .string($0) }
            return Answer(.object(fields))
        }
    }

    struct Download: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Fetches what a job made: its pictures, chosen frames and product.json.",
            discussion: """
                They go into a folder with the job's id. What is there whole is not fetched again; what was broken off is
                gone on with. Where the server does not give all that the job speaks of, product.json says what is
                missing, and the command exits with 1; give it again later.

                Examples:
                  inlet vopi download 3f0c2b9e-…
                  inlet vopi download 3f0c2b9e-… -o ~/Pictures
                """)

        @OptionGroup var server: ServerOption
        @Argument(help: "The job's id.") var job: String
        @Option(
            name: .shortAndLong,
            help: ArgumentHelp(
                "The folder that gets the job's; without it, the destination's 'results'.", valueName: "DIR"))
        var output: String?

        func validate() throws {
            guard job.wholeMatch(of: /[A-Za-z0-9][A-Za-z0-9_-]{0,99}/) != nil else {
                throw ValidationError("'\(DisplayText.escape(job))' is no job's id; 'inlet vopi jobs' lists them")
            }
        }

        func run() async throws {
            try await VOPI.use(server) { api, results in
                let folder =
                    output.map { RouteCommand.absolute($0).appending(job) }
                    ?? VOPIResults.folder(of: job, in: api.settings)
                let count = FileCount()
                let line = ProgressLine()
                defer { line.erase() }
                let fetched = try await Watched.run { [job] in
                    try await results.fetch(job: job, into: folder) { count.set($0, of: $1, $2) }
                } show: {
                    count.show(on: line)
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
                Console.printError("inlet: the server does not give \(fetched.absent) of the files of the job\(why)")
                for name in fetched.missing { Console.printError("  \(DisplayText.escape(name))") }
                throw ExitStatus.failed
            }
        }
    }
}

/// How many files have been fetched, for the one who shows it.
private final class FileCount: Sendable {
    private let state = Mutex((done: 0, all: 0, name: ""))

    func set(_ done: Int, of all: Int, _ name: String) { state.withLock { $0 = (done, all, name) } }

    func show(on line: ProgressLine) {
        let (done, all, name) = state.withLock { $0 }
        line.draw(DisplayText.escape(name), Console.bar(Int64(done), of: Int64(all)), "\(done) of \(all) files")
    }
}
