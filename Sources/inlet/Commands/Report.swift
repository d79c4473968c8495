import ArgumentParser
import InletCore
import InletDashboard
import InletLinux
import SystemPackage

struct Report: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract:
            "Prints the offload report of a batch: every file with its checksum, where it is, and how that was verified.",
        discussion: """
            A batch is a folder that is delivered as one (unit: folder), or a file with its companions. What was not
            delivered comes first. The HTML page needs nothing else and is made for paper.

            Examples:
              inlet report
              inlet report 12 --format html --output offload.html
            """)

    enum Format: String, ExpressibleByArgument, CaseIterable {
        case text
        case html
        case json
    }

    @OptionGroup var options: ConfigOption
    @Argument(help: "The batch's number ('inlet batch list'); without it, the one that ended last.") var batch: Int64?
    @Option(help: "text, html or json.") var format = Format.text
    @Flag(help: "The same as --format json.") var json = false
    @Option(help: "Write to this file instead of the terminal.", completion: .file()) var output: String?

    func run() async throws {
        let found = try await options.use {
            try await $0.find(Endpoints.offload, [.id: batch.map { "\($0)" } ?? Endpoints.lastBatch])
        }
        guard let report = found else {
            throw ExitStatus.failed.saying(batch.map { "there is no batch \($0)" } ?? "no batch has ended yet")
        }
        let text =
            switch json ? .json : format {
            case .text: report.text
            case .html: report.page
            case .json: try Console.json(report)
            }
        guard let output else { return Console.print(text) }
        do {
            try DurableFile.write(Array((text + "\n").utf8), to: FilePath(output), mode: 0o644)
        } catch {
            throw ExitStatus.failed.saying("\(error)")
        }
    }
}
