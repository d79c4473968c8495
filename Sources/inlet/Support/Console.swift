import InletCore
import InletLinux

/// What people read on their terminal. Whoever prints names of files escapes them first (`FilePath.display`).
enum Console {
    static let isTerminal = ProcessSetup.isTerminal(1)
    private static let hasColour =
        isTerminal && ProcessSetup.environment("NO_COLOR") == nil && ProcessSetup.environment("TERM") != "dumb"

    static func print(_ text: String) { _ = ProcessSetup.writeStandardOutput(Array((text + "\n").utf8)) }
    static func printError(_ text: String) { _ = ProcessSetup.writeStandardError(Array((text + "\n").utf8)) }

    /// Writes without a line's end, for a bar that is drawn again.
    static func draw(_ text: String) { _ = ProcessSetup.writeStandardOutput(Array(text.utf8)) }

    enum Tint: String {
        case good = "32"
        case bad = "31"
        case warning = "33"
        case faint = "2"
        case strong = "1"
        /// Looks like no tint, and is as long as one: columns stay aligned under a tinted heading.
        case plain = "0"
    }

    static func tint(_ text: String, _ tint: Tint) -> String {
        hasColour ? "\u{1B}[\(tint.rawValue)m\(text)\u{1B}[0m" : text
    }

    /// Rows with their columns aligned, two spaces apart; the last column is free.
    static func table(_ rows: [[String]]) -> String {
        let columns = rows.map(\.count).max() ?? 0
        let widths = (0..<columns).map { column in rows.map { $0.count > column ? $0[column].count : 0 }.max() ?? 0 }
        return rows.map { row in
            row.enumerated().map { index, cell in
                index == row.count - 1 ? cell : cell.padded(widths[index])
            }.joined(separator: "  ")
        }.joined(separator: "\n")
    }

    /// `[#####-----]  50 %`
    static func bar(_ done: Int64, of total: Int64, width: Int = 24) -> String {
        let share = total > 0 ? min(1, Double(done) / Double(total)) : 1
        let filled = Int(share * Double(width))
        let blank = String(repeating: "·", count: width - filled)
        return "\(String(repeating: "█", count: filled))\(blank) \("\(Int(share * 100))".leftPadded(3)) %"
    }
}

extension String {
    func padded(_ width: Int) -> String { self + String(repeating: " ", count: max(0, width - count)) }
    func leftPadded(_ width: Int) -> String { String(repeating: " ", count: max(0, width - count)) + self }

    /// At most `width` characters, the middle left out.
    func shortened(_ width: Int) -> String {
        guard count > width, width > 3 else { return self }
        let tail = (width - 1) / 2
        return prefix(width - 1 - tail) + "…" + suffix(tail)
    }
}
