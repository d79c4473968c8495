/// Lines of a table for spreadsheets and programs (RFC 4180).
package enum CSVText {
    /// With its end.
    package static func line(_ cells: [String]) -> String { cells.map(cell).joined(separator: ",") + "\r\n" }

    /// A spreadsheet computes a cell that begins like a formula: an apostrophe makes it a text.
    private static func cell(_ text: String) -> String {
        let isFormula = text.unicodeScalars.first.map { "=+-@\t\r".unicodeScalars.contains($0) } ?? false
        let plain = isFormula ? "'" + text : text
        guard plain.unicodeScalars.contains(where: { ",\"\r\n".unicodeScalars.contains($0) }) else { return plain }
        return "\"" + plain.replacing("\"", with: "\"\"") + "\""
    }
}
