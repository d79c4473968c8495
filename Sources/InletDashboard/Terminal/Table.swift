internal import InletCore

/// Rows below headings, for a terminal or for a program.
///
/// On a terminal the columns line up at any colour, numbers are right-aligned, and rows fit: names are cut in the
/// middle, and notes follow below. In a pipe there is one tab between columns, and nothing is aligned, cut or coloured.
package struct Table: Sendable {
    package struct Column: Sendable {
        fileprivate enum Kind {
            case text, name, number, whole, note
        }

        fileprivate var heading: String
        fileprivate var kind: Kind
        fileprivate var least = 0

        /// A word; cut at its end once names are as short as allowed.
        package static func text(_ heading: String) -> Column { Column(heading: heading, kind: .text) }
        /// A path, a key or an id; cut in the middle.
        package static func name(_ heading: String) -> Column { Column(heading: heading, kind: .name) }
        /// Right-aligned, and never cut.
        package static func number(_ heading: String) -> Column { Column(heading: heading, kind: .number) }
        /// The last column of a table that may be wider than the terminal.
        package static func whole(_ heading: String) -> Column { Column(heading: heading, kind: .whole) }
        /// A sentence about the row: on a terminal below the row, in lines of its own.
        package static func note(_ heading: String) -> Column { Column(heading: heading, kind: .note) }

        /// The least width on a terminal, for rows in several tables.
        package func width(_ least: Int) -> Column {
            var column = self
            column.least = least
            return column
        }
    }

    /// The kind of output.
    package enum Output: Sendable, Equatable {
        case pipe
        case terminal(columns: Int, hasColour: Bool)
    }

    private let columns: [Column]
    private var rows: [[StyledText]]
    private let hasHeader: Bool

    /// The least widths of names and of words.
    private static let least = (name: 12, text: 6)
    private static let gap = "  "
    private static let noteIndent = 4

    /// - Parameter hasHeader: whether the headings are printed; columns without headings have none.
    package init(_ columns: [Column], _ rows: [[StyledText]], hasHeader: Bool = true) {
        (self.columns, self.rows) = (columns, rows)
        self.hasHeader = hasHeader && columns.contains { !$0.heading.isEmpty }
    }

    /// - Parameter indent: spaces before each row on a terminal.
    package func text(for output: Output, indent: Int = 0) -> String {
        switch output {
        case .pipe: plain
        case .terminal(let width, let hasColour):
            lines(width: max(1, width - indent)).map {
                String(repeating: " ", count: indent) + $0.text(hasColour: hasColour)
            }
            .joined(separator: "\n")
        }
    }

    private var plain: String {
        let header = hasHeader ? [columns.map(\.heading)] : []
        return (header + rows.map { $0.map { $0.text(hasColour: false) } }).map { $0.joined(separator: "\t") }
            .joined(separator: "\n")
    }

    private func lines(width: Int) -> [StyledText] {
        let shown = columns.indices.filter { columns[$0].kind != .note }
        let widths = widths(shown, within: width)
        let header = hasHeader ? [row(columns.map { StyledText($0.heading, .faint) }, shown, widths, width)] : []
        return header + rows.flatMap { cells in [row(cells, shown, widths, width)] + notes(cells, width) }
    }

    /// As wide as the widest cell; names, then words, shrink until a row fits.
    private func widths(_ shown: [Int], within most: Int) -> [Int] {
        var widths = shown.map { column in
            let cells = rows.map { $0[column].width } + [hasHeader ? DisplayWidth.of(columns[column].heading) : 0]
            return max(columns[column].least, cells.max() ?? 0)
        }
        let gaps = Self.gap.count * max(0, shown.count - 1)
        for (kind, least) in [(Column.Kind.name, Self.least.name), (.text, Self.least.text)] {
            let some = shown.indices.filter { columns[shown[$0]].kind == kind }
            while widths.reduce(gaps, +) > most, let widest = some.max(by: { widths[$0] < widths[$1] }),
                widths[widest] > least
            {
                widths[widest] -= 1
            }
        }
        return widths
    }

    private func row(_ cells: [StyledText], _ shown: [Int], _ widths: [Int], _ most: Int) -> StyledText {
        var line = StyledText()
        for (place, column) in shown.enumerated() {
            let kind = columns[column].kind
            let cell =
                kind == .name
                ? cells[column].shortened(widths[place])
                : kind == .text ? cells[column].cut(widths[place]) : cells[column]
            let room = StyledText(String(repeating: " ", count: max(0, widths[place] - cell.width)))
            line += StyledText(place > 0 ? Self.gap : "")
            line += kind == .number ? room + cell : place < shown.count - 1 ? cell + room : cell
        }
        return shown.last.map { columns[$0].kind == .whole } ?? false ? line : line.cut(most)
    }

    private func notes(_ cells: [StyledText], _ width: Int) -> [StyledText] {
        columns.indices.filter { columns[$0].kind == .note && cells[$0].width > 0 }.flatMap { column in
            cells[column].wrapped(max(1, width - Self.noteIndent)).map {
                (StyledText(String(repeating: " ", count: Self.noteIndent)) + $0).cut(width)
            }
        }
    }
}
