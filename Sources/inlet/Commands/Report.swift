import ArgumentParser
import InletCore
import InletDashboard
import InletLinux
import SystemPackage

struct Report: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract:
            "Print the offload report of a batch: each file, its checksum, its place, and how that was verified.",
        discussion: """
            A batch is a folder that is delivered as one (unit: folder), or a file with its companions. Undelivered files
            come first. The HTML page stands alone and prints well. JSON is never localised.

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
    @Option(
        help: ArgumentHelp(
            "The locale of numbers and dates, such as de_DE; without it, that of LC_ALL, LC_TIME and LC_NUMERIC.",
            valueName: "LOCALE"))
    var locale: String?
    @Flag(help: "The same as --format json.") var json = false
    @Option(help: "Write to this file instead of the terminal.", completion: .file()) var output: String?

    func validate() throws {
        if let locale, ReportStyle(locale: locale) == nil {
            throw ValidationError("'\(locale)' is not a known locale; write it as de_DE")
        }
    }

    func run() async throws {
        let style = locale.flatMap { ReportStyle(locale: $0) } ?? ReportStyle { ProcessSetup.environment($0) }
        let found = try await options.use {
            try await $0.find(Endpoints.offload, [.id: batch.map { "\($0)" } ?? Endpoints.lastBatch])
        }
        guard let report = found else {
            throw ExitStatus.failed.saying(batch.map { "there is no batch \($0)" } ?? "no batch has ended yet")
        }
        let text =
            switch json ? .json : format {
            case .text: report.text(style)
            case .html: report.page(style)
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
