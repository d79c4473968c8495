internal import GRDB
internal import InletCore
internal import SystemPackage

/// The numbers of words and places in the history, made where they are new. Good for one transaction: another may be
/// taken back, and what it made.
struct HistoryWords {
    private let database: Database
    private var words: [String: Int64] = [:]
    private var policies: [[UInt8]: Int64] = [:]
    private var places: [[UInt8]: Int64] = [:]

    init(_ database: Database) { self.database = database }

    mutating func number(_ word: String) throws -> Int64 {
        if let known = words[word] { return known }
        let number = try number(.text(word), "history_word", "word")
        words[word] = number
        return number
    }

    mutating func value(_ word: String?) throws -> SQLValue {
        guard let word else { return .null }
        return .integer(try number(word))
    }

    mutating func number(policy: [UInt8]) throws -> Int64 {
        if let known = policies[policy] { return known }
        let number = try number(.bytes(policy), "history_word", "word")
        policies[policy] = number
        return number
    }

    mutating func number(place: [UInt8]) throws -> Int64 {
        if let known = places[place] { return known }
        let number = try number(.bytes(place), "history_place", "name")
        places[place] = number
        return number
    }

    private func number(_ value: SQLValue, _ table: String, _ column: String) throws -> Int64 {
        let known = try database.row("SELECT id FROM \(table) WHERE \(column) = ?", value) { $0.integer(0) }
        if let known { return known }
        try database.change("INSERT INTO \(table) (\(column)) VALUES (?)", value)
        return database.lastInsertedRowID
    }
}

extension Disposition {
    /// Whether many files have this one.
    static func isCommon(_ text: String) -> Bool { text == kept || text == deleted }
}

extension Journal {
    /// By what a file is found in the history: its volume, or the folder that it was found in.
    static func placeName(_ root: FilePath, _ volume: String?) -> [UInt8] {
        volume.map { Array($0.utf8) } ?? root.bytes
    }

    /// The condition for a row of `history_as_file`, with the values `placeName` and a path.
    static let placeInHistory = "place = (SELECT id FROM history_place WHERE name = ?) AND path = ?"
}
