import ArgumentParser
import InletAgent
import InletConfig
import InletCore
import InletDashboard
import InletLinux
import Synchronization
import SystemPackage

struct Tail: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "tail", abstract: "Show the log in words, as it happens.",
        discussion: """
            Reads the log file of the configuration (log.output), also across its rotation, or else asks the running agent; with
            FILE that file, with - standard input. Other lines pass through unchanged. Ctrl-C ends it.

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

    @Option(name: [.customShort("n"), .long], help: "Begin with this many earlier lines.")
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
        let printer = LogPrinter(level: level, job: job)
        if let named = source ?? file {
            return named == "-" ? try await readInput(printer) : try await follow(FilePath(named), printer)
        }
        let config = try options.load()
        let output = config.settings.log.output
        if output.hasPrefix("/") { return try await follow(FilePath(output), printer) }
        try await follow(agentAt: config.controlSocket, printer)
    }

    // MARK: - The agent

    /// The number of lines to ask for after a break, and the delay before it.
    private static let again = (lines: 500, pause: Duration.seconds(1))

    /// Follows the log of the running agent, and of the next agent when one stops, until the reader is gone.
    private func follow(agentAt socket: FilePath, _ printer: LogPrinter) async throws {
        let client = ControlClient(socket: socket)
        defer { client.shutdown() }
        let seen = Mutex<String?>(nil)
        var (isFirst, isAway) = (true, false)
        while true {
            do {
                let wanted = isFirst ? lines : Self.again.lines
                let earlier = try await client.log(limit: max(1, wanted), level: level, job: job)
                let time = seen.withLock { $0 }
                for line in earlier.suffix(wanted) where time.map({ line.time > $0 }) ?? true {
                    guard printer.show(line) else { return }
                }
                if let last = earlier.last { seen.withLock { $0 = last.time } }
                (isFirst, isAway) = (false, false)
                return try await client.followLog(after: earlier.last?.sequence, level: level) { line in
                    seen.withLock { $0 = line.time }
                    return printer.show(line)
                }
            } catch let failure as ControlClient.Failure {
                // A later silence is reported below, once.
                guard failure.isSilence, !isFirst else {
                    let hint =
                        failure.isAbsence ? "; name its log file, or: journalctl -o cat -u inlet -f | inlet tail -" : ""
                    throw ExitStatus.tryLater.saying("\(failure)\(hint)")
                }
            }
            if !isAway { Console.printError("inlet: the agent does not answer; waiting for it") }
            isAway = true
            try await Task.sleep(for: Self.again.pause)
        }
    }

    // MARK: - Files

    /// How much of a file is read to find its last lines.
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
                    if !isFirst, printer.allows(LogFields(line)) { earlier.append(line) }
                    isFirst = false
                }
                // At most twice as many, so that not every line moves all others.
                if earlier.count > 2 * lines { earlier.removeFirst(earlier.count - lines) }
            }
            for line in earlier.suffix(lines) where !printer.show(line) { return }
            while true {
                let bytes = try file.next()
                if bytes.isEmpty { try await Task.sleep(for: Self.pause) }
                for line in splitter.take(bytes) where !printer.show(line) { return }
            }
        } catch let error as SystemError {
            throw ExitStatus.failed.saying("\(error)")
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
        throw ExitStatus.failed.saying("standard input cannot be read: \(fault)")
    }
}

extension LogSettings.Level: ExpressibleByArgument {}
extension LogSettings.Format: ExpressibleByArgument {}

/// Prints lines of a log for people.
final class LogPrinter: Sendable {
    private let level: LogSettings.Level
    private let job: Int64?
    private let text = Mutex(LogLineText())

    init(level: LogSettings.Level, job: Int64?) { (self.level, self.job) = (level, job) }

    /// Whether the options select a line.
    func allows(_ line: LogFields?) -> Bool { LogLineText.isWanted(line, level: level, job: job) }

    /// - Returns: false when the reader is gone.
    @discardableResult
    func show(_ line: [UInt8]) -> Bool {
        let fields = LogFields(line)
        guard allows(fields) else { return true }
        return print(text.withLock { text in fields.map { text.lines($0) } ?? text.lines(line) })
    }

    /// - Returns: false when the reader is gone.
    @discardableResult
    func show(_ line: LogFields) -> Bool {
        allows(line) ? print(text.withLock { $0.lines(line) }) : true
    }

    private func print(_ lines: [StyledText]) -> Bool {
        lines.allSatisfy { Console.offer($0.text(hasColour: Console.hasColour)) }
    }
}
