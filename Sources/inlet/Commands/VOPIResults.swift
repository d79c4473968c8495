import ArgumentParser
import Foundation
import InletCore
import InletPipelines
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
            try await VOPI.use(server) { desk in
                // The names of the result are those by which a picture can be deleted; the grouped list has others.
                var images = try await desk.api.job(job).result?.commercialImages ?? [:]
                if images.isEmpty { images = try await desk.api.groupedImages(job) }
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
            abstract: "Lists the frames of the video that a job chose, with time, angle and variant.",
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
            try await VOPI.use(server) { desk in
                let frames = try await all ? desk.api.frames(job) : desk.api.finalFrames(job)
                AnswerTable(
                    .init("FRAME", "frameId"), .init("SECOND", "timestamp"), .init("ANGLE", "angleEstimate"),
                    .init("PRODUCT", "productId"), .init("VARIANT", "variantId"),
                    .init("DESCRIPTION", "variantDescription"), none: "The job has no frames."
                ).print(frames.map { VOPI.answer($0.raw) }, json: json)
            }
        }
    }

    struct Download: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Fetches what a job made: its pictures, chosen frames and product.json.",
            discussion: """
                They go into a folder with the job's id. What is there whole is not fetched again; what was broken off is
                gone on with.

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

        func run() async throws {
            try await VOPI.use(server) { desk in
                let folder = output.map { RouteCommand.absolute($0) }
                let line = ProgressLine()
                let meter = VOPIDownloadMeter()
                do {
                    let report = try await Watched.run { [job] in
                        try await desk.download(job, into: folder, meter)
                    } show: {
                        line.show(meter.name, sent: Int64(meter.done), size: Int64(meter.total))
                    }
                    line.erase()
                    Self.show(report)
                } catch {
                    line.erase()
                    throw error
                }
            }
        }
    }
}
