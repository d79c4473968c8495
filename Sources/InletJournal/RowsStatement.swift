/// A statement about several rows, as text for each number of rows that is used.
///
/// SQLite prepares for undoing each statement that fires a trigger, and this costs more than a row does.
struct RowsStatement: Sendable {
    /// More rows gain little, and each text is kept prepared.
    private static let counts = [32, 8, 1]

    let columns: [String]
    private let texts: [Int: String]

    /// - Parameters:
    ///   - columns: of a row; each has a value of its own in each row.
    ///   - constants: what each row has before those.
    init(_ columns: [String], constants: String = "", _ text: (_ columns: String, _ rows: String) -> String) {
        self.columns = columns
        let row = "(\(constants)\(columns.map { _ in "?" }.joined(separator: ", ")))"
        texts = Dictionary(
            uniqueKeysWithValues: Self.counts.map { count in
                let rows = Array(repeating: row, count: count).joined(separator: ", ")
                return (count, text(columns.joined(separator: ", "), rows))
            })
    }

    /// How many of `rest` rows go into the next statement.
    static func count(of rest: Int) -> Int { counts.first { $0 <= rest } ?? 1 }

    /// - Parameter rows: a number from `count(of:)`.
    func sql(_ rows: Int) -> String { texts[rows] ?? "" }

    /// `items` in the pieces that one statement takes.
    static func pieces<Item>(of items: [Item]) -> [ArraySlice<Item>] {
        var (pieces, rest) = ([ArraySlice<Item>](), items[...])
        while !rest.isEmpty {
            let piece = rest.prefix(count(of: rest.count))
            pieces.append(piece)
            rest = rest.dropFirst(piece.count)
        }
        return pieces
    }
}
