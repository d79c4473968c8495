import InletAgent
import InletConfig
import InletCore
import InletDashboard
import InletLinux
import Synchronization
import SystemPackage

/// Output for people on their terminal. Callers escape file names and servers' texts first (`FilePath.display`,
/// `DisplayText`); this masks any other control character.
enum Console {
    static let isTerminal = ProcessSetup.isTerminal(1)
    private static let isDumb = ProcessSetup.environment("TERM") == "dumb"
    static let hasColour = isTerminal && ProcessSetup.allowsColour
    /// Whether the terminal can redraw; colours do not matter.
    static let isCanvas = isTerminal && !isDumb

    static func print(_ text: String) { _ = offer(text) }

    /// Prints. - Returns: false when the reader is gone.
    static func offer(_ text: String) -> Bool { StandardStream.output.write(line(text)).error == nil }

    private static let logsErrors = Atomic<Bool>(false)

    /// Turns errors into log lines: standard error holds nothing else while the JSON log goes there.
    static func logErrors(_ areLogged: Bool) { logsErrors.store(areLogged, ordering: .relaxed) }

    static func printError(_ text: String) {
        guard logsErrors.load(ordering: .relaxed) else { return write(line(text)) }
        let reason = text.hasPrefix("inlet: ") ? String(text.dropFirst("inlet: ".count)) : text
        write(AgentEvent.agentFailed(reason: reason.replacing("\n", with: " ")).json(at: .now))
    }

    /// Prints the errors of a configuration.
    static func printErrors(_ errors: ConfigErrors, in file: FilePath) {
        guard logsErrors.load(ordering: .relaxed) else { return write(line("\(errors)")) }
        write(AgentEvent.configRefused(file: file, errors: errors.list.map(\.description)).json(at: .now))
        write(AgentEvent.agentFailed(reason: "the configuration is not valid").json(at: .now))
    }

    private static func write(_ bytes: [UInt8]) { _ = StandardStream.errors.write(bytes) }

    private static func line(_ text: String) -> [UInt8] {
        Array((DisplayText.masked(text, keepsColours: hasColour) + "\n").utf8)
    }

    /// Writes text unmasked, for a redrawn bar: it contains Inlet's own control characters, and escaped texts only.
    static func draw(_ text: String) { _ = StandardStream.output.write(Array(text.utf8)) }

    /// A coloured word; lines that are cut to a width are `StyledText`.
    static func tint(_ text: String, _ tint: TextStyle) -> String { hasColour ? tint.paint(text) : text }

    /// JSON for programs, and safe to show on a terminal.
    static func json(_ value: some Encodable, isPretty: Bool = false) throws -> String {
        String(decoding: JSONString.masked(try JSON.encode(value, isPretty: isPretty)), as: UTF8.self)
    }

    /// The table of every command: aligned on a terminal, with one tab between columns for a program.
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

    /// At most `width` columns, cut in the middle.
    func shortened(_ width: Int) -> String { DisplayWidth.shorten(self, width) }
}
