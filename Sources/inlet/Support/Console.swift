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

    /// The table that every command prints: lined up for a terminal, with one tab between columns for a program.
    static func table(_ columns: [Table.Column], _ rows: [[StyledText]], hasHeader: Bool = true, indent: Int = 0)
        -> String
    {
        let output =
            isTerminal ? Table.Output.terminal(columns: ProgressLine.columns, hasColour: hasColour) : .pipe
        return Table(columns, rows, hasHeader: hasHeader).text(for: output, indent: indent)
    }

    /// A moment of a report: `2026-11-22 18:00` by the local clock for people, RFC 3339 for programs.
    static func time(_ text: String) -> String {
        guard isTerminal, let time = WallTime(rfc3339: text) else { return text }
        return String(time.rfc3339(in: nil).prefix(16)).replacing("T", with: " ")
    }

    /// `█████·····  50 %`
    static func bar(_ done: Int64, of total: Int64, width: Int = 24) -> String {
        let share = total > 0 ? Double(done) / Double(total) : 1
        return StyledText.bar(share, width: width).text(hasColour: hasColour)
    }
}

extension String {
    func padded(_ width: Int) -> String { DisplayWidth.pad(self, width) }

    /// At most `width` columns, the middle left out.
    func shortened(_ width: Int) -> String { DisplayWidth.shorten(self, width) }
}
