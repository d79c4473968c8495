import ArgumentParser
import InletAgent
import InletCore
import InletDashboard
import InletLinux
import SystemPackage

struct Report: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "report",
        abstract:
            "Print the offload report of a batch or of cards: each file, its checksum, its places, and how they were verified.",
        discussion: """
            A batch is a folder that is delivered as one (unit: folder), or a file with its companions. With --card,
            --since or --project the report joins all files of cards that meet these criteria. Recordings that may not
            open come first, then undelivered files. HTML stands alone and prints well. JSON and CSV are never localised.

            Examples:
              inlet report
              inlet report 12 --format html --output offload.html
              inlet report --card EOS_DIGITAL --format pdf --output card.pdf
              inlet report --since 06:00 --format csv --output today.csv
            """)

    enum Format: String, ExpressibleByArgument, CaseIterable {
        case text
        case html
        case pdf
        case csv
        case json

        fileprivate var form: OffloadForm {
            switch self {
            case .text: .text
            case .html, .pdf: .html
            case .csv: .csv
            case .json: .json
            }
        }
    }

    @OptionGroup var options: ConfigOption
    @Argument(help: "The batch's number ('inlet batch list'); without it, the one that ended last.") var batch: Int64?
    @Option(
        help: ArgumentHelp(
            "All files of this card, also of earlier insertions: its name, UUID or label; may be repeated.",
            valueName: "CARD"))
    var card: [String] = []
    @Option(
        help: ArgumentHelp(
            "Only files of cards that came since then: 06:00, an RFC 3339 time, or an age such as 12h.",
            valueName: "TIME"))
    var since: String?
    @Option(
        help: ArgumentHelp(
            "Only files whose label 'project' is this, as the route's 'labels' or a sidecar sets it.",
            valueName: "NAME"))
    var project: String?
    @Option(help: "text, html, pdf, csv or json.") var format = Format.text
    @Flag(help: "With html and pdf: the first and the last frame of each recording (needs ffmpeg).") var frames = false
    @Option(
        help: ArgumentHelp(
            "The locale of numbers and dates, such as de_DE; without it, that of LC_ALL, LC_TIME and LC_NUMERIC.",
            valueName: "LOCALE"))
    var locale: String?
    @Flag(help: "The same as --format json.") var json = false
    @Option(help: "Write to this file instead of the terminal.", completion: .file()) var output: String?

    private var isOfCards: Bool { !card.isEmpty || since != nil || project != nil }

    func validate() throws {
        if let locale, ReportStyle(locale: locale) == nil {
            throw ValidationError("'\(locale)' is not a known locale; write it as de_DE")
        }
        if batch != nil, isOfCards { throw ValidationError("leave out the batch, or --card, --since and --project") }
        if let since, OffloadSelection.moment(since, at: .now) == nil {
            throw ValidationError("'\(since)' is not a time; write 06:00, 2026-11-27T06:00:00Z or 12h")
        }
        let chosen = json ? .json : format
        if chosen == .pdf, output == nil { throw ValidationError("name the PDF with --output FILE") }
        if frames, chosen != .html, chosen != .pdf {
            throw ValidationError("--frames needs --format html or --format pdf")
        }
    }

    func run() async throws {
        let style = locale.flatMap { ReportStyle(locale: $0) } ?? ReportStyle { ProcessSetup.environment($0) }
        var report = try await find()
        if frames {
            guard let grabber = FrameGrabber() else {
                throw ExitStatus.failed.saying("install ffmpeg; --frames needs it (apt install ffmpeg)")
            }
            try await grabber.add(to: &report)
        }
        let chosen = json ? .json : format
        let text = chosen == .json ? try Console.json(report) + "\n" : report.document(chosen.form, style)
        guard let output else { return Console.print(text.hasSuffix("\n") ? String(text.dropLast()) : text) }
        do {
            let bytes = chosen == .pdf ? try await PDFPrinter.print(text) : Array(text.utf8)
            try DurableFile.write(bytes, to: FilePath(output), mode: 0o644)
        } catch {
            throw ExitStatus.failed.saying("\(error)")
        }
    }

    private func find() async throws -> OffloadReport {
        guard isOfCards else {
            let found = try await options.use {
                try await $0.find(Endpoints.offload, [.id: batch.map { "\($0)" } ?? Endpoints.lastBatch])
            }
            if let found { return found }
            throw ExitStatus.failed.saying(batch.map { "there is no batch \($0)" } ?? "no batch has ended yet")
        }
        let request = OffloadRequest(cards: card, since: since, project: project)
        guard let report = try await options.use({ try await $0.find(Endpoints.cardReport, body: request) }) else {
            throw ExitStatus.failed.saying("there is no card \(card.map { "'\($0)'" }.joined(separator: " or "))")
        }
        if report.files.isEmpty { throw ExitStatus.failed.saying("no file of a card matches") }
        return report
    }
}
