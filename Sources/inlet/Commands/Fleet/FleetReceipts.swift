import ArgumentParser
import InletAgent
import InletCore
import InletDashboard
import InletFleet
import InletLinux
import SystemPackage

extension FleetCommands {
    struct Receipts: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "receipts", abstract: "Print the receipts of all agents, day by day.",
            discussion: """
                Examples:
                  inlet fleet receipts --since 06:00
                  inlet fleet receipts --since 24h --json | jq -r 'select(.state == "failed") | .path'
                """)

        @OptionGroup var options: ConfigOption
        @OptionGroup(title: "Database") var access: FleetURLOption
        @OptionGroup var period: FleetPeriod
        @Flag(help: "Print one JSON object a line.") var json = false

        func run() async throws {
            let format: FleetReceiptWriter.Format = json ? .json : .table
            let count = try await FleetReceiptWriter.write(format, since: period.start, access.required(options))
            if count == 0, !json { Console.print("No receipts in that time") }
        }
    }

    struct Export: AsyncParsableCommand {
        enum Format: String, ExpressibleByArgument, CaseIterable { case csv, json }

        static let configuration = CommandConfiguration(
            commandName: "export", abstract: "Print the receipts of all agents as a table for programs, day by day.",
            discussion: """
                Streams rows, however many there are. Within a day they come about in their order. CSV follows RFC
                4180; a cell that a spreadsheet would compute begins with an apostrophe. JSON is one object a line.

                Examples:
                  inlet fleet export --since 30d > receipts.csv
                  inlet fleet export --format json | gzip > receipts.json.gz
                """)

        @OptionGroup var options: ConfigOption
        @OptionGroup(title: "Database") var access: FleetURLOption
        @OptionGroup var period: FleetPeriod
        @Option(help: "csv or json.") var format = Format.csv

        func run() async throws {
            let format: FleetReceiptWriter.Format = format == .csv ? .csv : .json
            _ = try await FleetReceiptWriter.write(format, since: period.start, access.required(options))
        }
    }
}

/// `--since TIME`.
struct FleetPeriod: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Only receipts since then: 06:00, an RFC 3339 time, or an age such as 12h; without it, all.",
            valueName: "TIME"))
    var since: String?

    func validate() throws {
        if let since, OffloadSelection.moment(since, at: .now) == nil {
            throw ValidationError("'\(since)' is not a time; write 06:00, 2026-11-27T06:00:00Z or 12h")
        }
    }

    var start: WallTime { since.flatMap { OffloadSelection.moment($0, at: .now) } ?? WallTime(milliseconds: 0) }
}

/// Writes receipts as they come from the database: memory does not grow with their number.
private struct FleetReceiptWriter {
    enum Format { case table, csv, json }

    /// The reader of the output has gone, as `head` does.
    private struct ReaderGone: Error {}

    private static let rowsOfPage = 100
    private static let bytesOfPage = 64 << 10
    private static let columns = [
        "at", "agent", "destination", "state", "root", "path", "name", "size", "key", "url", "sha256", "labels",
    ]

    private let format: Format
    private var text = ""
    private var rows: [FleetReceiptRow] = []
    private var count = 0

    private init(_ format: Format) {
        self.format = format
        if format == .csv { text = CSVText.line(Self.columns) }
    }

    /// - Returns: the number of receipts.
    static func write(_ format: Format, since start: WallTime, _ address: PostgresAddress) async throws -> Int {
        do {
            return try await FleetConnection.use(address) { fleet in
                var writer = FleetReceiptWriter(format)
                try fleet.receipts(since: start) { try writer.add($0) }
                try writer.flush()
                return writer.count
            }
        } catch is ReaderGone {
            return 0
        }
    }

    private mutating func add(_ row: FleetReceiptRow) throws {
        switch format {
        case .table: rows.append(row)
        case .csv: text += CSVText.line(Self.cells(row))
        case .json: text += try Console.json(row) + "\n"
        }
        count += 1
        if rows.count >= Self.rowsOfPage || text.utf8.count >= Self.bytesOfPage { try flush() }
    }

    private mutating func flush() throws {
        if !rows.isEmpty {
            text = FleetFinding.table(rows.map { FleetFinding($0) }, hasHeader: count == rows.count) + "\n"
        }
        guard !text.isEmpty else { return }
        // A terminal must not obey the texts of others; programs get the bytes as they are.
        let shown =
            Console.isTerminal
            ? DisplayText.masked(text.replacing("\r\n", with: "\n"), keepsColours: Console.hasColour) : text
        (rows, text) = ([], "")
        if let error = StandardStream.output.write(Array(shown.utf8)).error {
            if error.code == .brokenPipe { throw ReaderGone() }
            throw ExitStatus.failed.saying("\(error)")
        }
    }

    private static func cells(_ row: FleetReceiptRow) -> [String] {
        [
            row.at, row.agent, row.destination, row.state, row.root, row.path, row.name, row.size.map { "\($0)" },
            row.key, row.url, row.sha256, row.labels.map { JSONValue.object($0.mapValues { .string($0) }).text },
        ].map { $0 ?? "" }
    }
}
