import ArgumentParser
import InletAgent
import InletConfig
import InletCore
import InletDashboard
import InletLinux
import Synchronization
import SystemPackage

/// What people read on their terminal. Whoever prints names of files, and what servers say, escapes them first
/// (`FilePath.display`, `DisplayText`); what would change the terminal all the same is masked at this door.
enum Console {
    static let isTerminal = ProcessSetup.isTerminal(1)
    private static let isDumb = ProcessSetup.environment("TERM") == "dumb"
    static let hasColour = isTerminal && ProcessSetup.allowsColour
    /// Whether a picture can be drawn over and over; colours do not matter.
    static let isCanvas = isTerminal && !isDumb

    static func print(_ text: String) { _ = offer(text) }

    /// Prints. - Returns: false when nobody reads any more.
    static func offer(_ text: String) -> Bool { StandardStream.output.write(line(text)).error == nil }

    private static let logsErrors = Atomic<Bool>(false)

    /// Makes errors lines of the log: where standard error holds its JSON lines, nothing else may be there.
    static func logErrors(_ areLogged: Bool) { logsErrors.store(areLogged, ordering: .relaxed) }

    static func printError(_ text: String) {
        guard logsErrors.load(ordering: .relaxed) else { return write(line(text)) }
        let reason = text.hasPrefix("inlet: ") ? String(text.dropFirst("inlet: ".count)) : text
        write(AgentEvent.agentFailed(reason: reason.replacing("\n", with: " ")).json(at: .now))
    }

    /// Prints what is wrong with a configuration.
    static func printErrors(_ errors: ConfigErrors, in file: FilePath) {
        guard logsErrors.load(ordering: .relaxed) else { return write(line("\(errors)")) }
        write(AgentEvent.configRefused(file: file, errors: errors.list.map(\.description)).json(at: .now))
        write(AgentEvent.agentFailed(reason: "the configuration is not valid").json(at: .now))
    }

    private static func write(_ bytes: [UInt8]) { _ = StandardStream.errors.write(bytes) }

    private static func line(_ text: String) -> [UInt8] {
        Array((DisplayText.masked(text, keepsColours: hasColour) + "\n").utf8)
    }

    /// Writes as it is, for a bar that is drawn again: it holds our own controls, and only escaped texts.
    static func draw(_ text: String) { _ = StandardStream.output.write(Array(text.utf8)) }

    /// A word in colour; lines that are cut by their width are `StyledText`.
    static func tint(_ text: String, _ tint: TextStyle) -> String { hasColour ? tint.paint(text) : text }

    /// For programs, and safe to be shown all the same.
    static func json(_ value: some Encodable, isPretty: Bool = false) throws -> String {
        String(decoding: JSONString.masked(try JSON.encode(value, isPretty: isPretty)), as: UTF8.self)
    }

    /// Rows with their columns aligned, two spaces apart, below their headings; the last column is free.
    static func table(_ rows: [[String]], headings: [String] = []) -> String {
        let rows = (headings.isEmpty ? [] : [headings.map { tint($0, .faint) }]) + rows
        let columns = rows.map(\.count).max() ?? 0
        let widths = (0..<columns).map { column in
            rows.map { $0.count > column ? DisplayWidth.of($0[column]) : 0 }.max() ?? 0
        }
        return rows.map { row in
            row.enumerated().map { index, cell in
                index == row.count - 1 ? cell : cell.padded(widths[index])
            }.joined(separator: "  ")
        }.joined(separator: "\n")
    }

    /// `█████·····  50 %`
    static func bar(_ done: Int64, of total: Int64, width: Int = 24) -> String {
        let share = total > 0 ? Double(done) / Double(total) : 1
        return StyledText.bar(share, width: width).text(hasColour: hasColour)
    }
}

extension String {
    func padded(_ width: Int) -> String { DisplayWidth.pad(self, width) }
    func leftPadded(_ width: Int) -> String { DisplayWidth.padLeft(self, width) }

    /// At most `width` columns, the middle left out.
    func shortened(_ width: Int) -> String { DisplayWidth.shorten(self, width) }
}

/// The exit codes, after sysexits(3).
enum ExitStatus: Int32, CaseIterable {
    case success = 0
    case failure = 1
    /// EX_USAGE, which the parser of arguments gives.
    case wrongUsage = 64
    /// EX_UNAVAILABLE
    case noDestination = 69
    /// EX_TEMPFAIL
    case temporary = 75
    /// EX_CONFIG
    case wrongConfiguration = 78
    /// 128 and SIGINT
    case stopped = 130

    static let failed = ExitCode(Self.failure.rawValue)
    static let unavailable = ExitCode(Self.noDestination.rawValue)
    static let tryLater = ExitCode(Self.temporary.rawValue)
    static let configuration = ExitCode(Self.wrongConfiguration.rawValue)
    static let interrupted = ExitCode(Self.stopped.rawValue)

    /// The name in sysexits(3); nil for a code that has none there.
    var symbol: String? {
        switch self {
        case .success: "EX_OK"
        case .wrongUsage: "EX_USAGE"
        case .noDestination: "EX_UNAVAILABLE"
        case .temporary: "EX_TEMPFAIL"
        case .wrongConfiguration: "EX_CONFIG"
        case .failure, .stopped: nil
        }
    }

    /// The manual's explanation.
    var meaning: String {
        switch self {
        case .success: "Everything is delivered, or every check is fine."
        case .failure:
            "Some files failed, `check` has warnings, `config diff` finds a difference, or `verify` misses a file."
        case .wrongUsage: "The command line is wrong."
        case .noDestination: "A destination is unavailable."
        case .temporary:
            "Try later. Another instance holds the lock, no agent runs, this machine lacks a resource, or the agent "
                + "that `send` followed has stopped for 30 s. `run`, `send` and `demo` wait 5 s for a command that "
                + "only reads the journal."
        case .wrongConfiguration: "The configuration, a folder or the journal is wrong."
        case .stopped: "A signal stopped `send` before its end, or a second signal stopped any command at once."
        }
    }

    /// What a command ends with that asked a server for one thing: whether the server could do it for nobody now, or not
    /// this.
    static func of(_ error: DeliveryError) -> ExitCode {
        switch (error.verdict, error.code) {
        // No better moment and no better server would help: it is this machine's disk, or what was asked for.
        case (_, .destinationFull), (_, .destinationUnwritable), (_, .notFound), (_, .corrupted): failed
        case (.outage, _), (.credentials, _), (.retry, _): unavailable
        case (.giveUp, _), (.sourceChanged, _), (.sourceGone, _), (.cancelled, _): failed
        }
    }
}

extension ExitCode {
    /// Says why on standard error: `throw ExitStatus.failed.saying("there is no job 17")`.
    func saying(_ reason: String) -> ExitCode {
        Console.printError("inlet: \(reason)")
        return self
    }
}
