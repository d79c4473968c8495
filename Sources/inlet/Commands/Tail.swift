import ArgumentParser
import InletAgent
import InletConfig
import InletCore
import InletDashboard
import InletLinux
import SystemPackage

struct Tail: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Shows what the agent says, in words, as it happens.",
        discussion: """
            Reads the log file of the configuration (log.output), also across its rotation, or else asks the running agent; with
            FILE that file, with - standard input. What is no line of the log is shown as it is. Ends with Ctrl-C.

            Examples:
              inlet tail
              inlet tail --level warning -n 100
              inlet tail --job 17
              journalctl -o cat -u inlet -f | inlet tail -
            """)

    @OptionGroup var options: ConfigOption

    @Argument(
        help: ArgumentHelp("A log file, or - for standard input.", valueName: "FILE"), completion: .file())
    var source: String?

    @Option(name: .long, help: ArgumentHelp("The same as FILE.", valueName: "FILE"), completion: .file())
    var file: String?

    @Option(name: [.customShort("n"), .long], help: "Lines from before to begin with.")
    var lines = 20

    @Option(
        help: "Only lines of this level and above: debug, info, warning, error.",
        completion: .list(LogSettings.Level.allCases.map(\.rawValue)))
    var level = LogSettings.Level.info

    @Option(help: "Only lines about this job.") var job: Int64?

    func validate() throws {
        if source != nil, file != nil { throw ValidationError("either FILE or --file FILE") }
        if !(0...10_000).contains(lines) { throw ValidationError("-n takes 0 to 10000 lines") }
    }

    func run() async throws {
        let printer = LogPrinter(LogLineText.Filter(level: level, job: job))
        if let named = source ?? file {
            return named == "-" ? try await readInput(printer) : try await follow(FilePath(named), printer)
        }
        let config = try options.load()
        let output = config.settings.log.output
        if output.hasPrefix("/") { return try await follow(FilePath(output), printer) }
        try await AgentLog(config, lines: lines, filter: printer.filter).follow(printer)
    }

    // MARK: - Files

    /// How much of a file is looked through for its last lines.
    private static let mostTail: Int64 = 8 << 20
    private static let pause = Duration.milliseconds(250)

    private func follow(_ path: FilePath, _ printer: LogPrinter) async throws {
        do {
            var file = try FollowedFile(path, tail: Self.mostTail)
            var splitter = LineSplitter()
            var earlier: [[UInt8]] = []
            var isFirst = file.isCut
            while true {
                let bytes = try file.next()
                if bytes.isEmpty { break }
                for line in splitter.take(bytes) {
                    if !isFirst, printer.allows(line) { earlier.append(line) }
                    isFirst = false
                }
                // Twice as many at most, so that not every line moves all others.
                if earlier.count > 2 * lines { earlier.removeFirst(earlier.count - lines) }
            }
            for line in earlier.suffix(lines) where !printer.show(line) { return }
            while true {
                let bytes = try file.next()
                if bytes.isEmpty { try await Task.sleep(for: Self.pause) }
                for line in splitter.take(bytes) where !printer.show(line) { return }
            }
        } catch let error as SystemError {
            Console.printError("inlet: \(error)")
            throw ExitStatus.failed
        }
    }

    private func readInput(_ printer: LogPrinter) async throws {
        let pool = BlockingPool(name: "input", threads: 1)
        defer { pool.shutdown() }
        let fault: (any Error)? = await pool.run {
            var (splitter, buffer) = (LineSplitter(), [UInt8](repeating: 0, count: 64 << 10))
            do {
                while true {
                    let count = try buffer.withUnsafeMutableBytes { try FileDescriptor.standardInput.read(into: $0) }
                    if count == 0 { break }
                    for line in splitter.take(buffer.prefix(count)) where !printer.show(line) { return nil }
                }
            } catch {
                return error
            }
            if let rest = splitter.end() { printer.show(rest) }
            return nil
        }
        guard let fault else { return }
        Console.printError("inlet: standard input cannot be read: \(fault)")
        throw ExitStatus.failed
    }
}

extension LogSettings.Level: ExpressibleByArgument {}
