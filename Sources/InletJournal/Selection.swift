internal import GRDB
package import InletCore
package import SystemPackage

/// Selects the files that a question or an order is about: those that meet every criterion given.
package struct FileFilter: Sendable {
    /// nil = any.
    package var ids: [Int64]?
    package var states: [FileState]
    /// A destination of one of the file's deliveries.
    package var destination: String?
    package var route: String?
    /// The path below its root, by the rules of routes; the full path of a file that was sent by name.
    package var path: GlobPattern?
    /// Part of the full path; ASCII letters match either case.
    package var text: String?
    /// Only files with smaller numbers: where the previous page of a list ended.
    package var below: Int64?
    /// Only files up to this number: later ones were not there when a person was asked.
    package var upTo: Int64?
    package var labels: [String: String] = [:]
    /// The code of the file, or of one of its deliveries.
    package var code: String?
    /// Only files that ended at this time or before; files that have not ended count by their admission.
    package var before: WallTime?
    /// Only files that were admitted at this time or later.
    package var since: WallTime?
    /// Only files that were admitted at this time or before.
    package var until: WallTime?
    /// Only duplicates and rejected files that lie in their place, and that a person has not left there.
    package var isUnanswered = false
    /// Only files of removable volumes.
    package var isOnVolume = false
    package var batch: Int64?
    /// Only files that were meant to be sent: not units' markers, nor rejected files.
    package var hasDeliveries = false
    package var limit: Int

    package init(states: [FileState] = [], destination: String? = nil, limit: Int = 100) {
        self.states = states
        self.destination = destination
        self.limit = limit
    }
}

/// A file that a filter accepts, with its full path.
package typealias MatchedFile = (id: Int64, path: FilePath, size: Int64, state: FileState)

extension Journal {
    /// The number of ids that one query looks at: a long history must neither keep others from the journal nor be in
    /// memory at once. A row of the history takes a few microseconds, some tens with labels.
    static let stretch: Int64 = 1024

    /// The files that `filter` accepts in the next range of ids, in their order; the caller applies `filter.limit`.
    ///
    /// - Parameter cursor: where the range before ended; nil = the beginning.
    /// - Returns: the files, and where to continue; nil when that was all.
    package func matches(
        _ filter: FileFilter, from cursor: Int64? = nil, newestFirst: Bool = false
    ) async throws(JournalError) -> (files: [MatchedFile], next: Int64?) {
        try await read { database in
            // The history has files of only some states.
            let isInHistory = filter.states.isEmpty || filter.states.contains { Self.statesOfHistory.contains($0) }
            let searches = (isInHistory ? JournalTables.allCases : [.current]).map { FileQuery(filter, $0) }
            func next(after cursor: Int64?) throws -> Int64? {
                let found = try searches.compactMap { try $0.next(after: cursor, newestFirst, database) }
                return newestFirst ? found.max() : found.min()
            }
            guard let first = try next(after: cursor) else { return ([], nil) }
            // A requested number may be any, also one that no file has.
            let (end, isBeyond) =
                newestFirst
                ? first.subtractingReportingOverflow(Self.stretch - 1) : first.addingReportingOverflow(Self.stretch - 1)
            let last = isBeyond ? (newestFirst ? .min : .max) : end
            let files = try searches.flatMap { try $0.files(min(first, last)...max(first, last), database) }
            return (
                files.sorted { newestFirst ? $0.id > $1.id : $0.id < $1.id }, try next(after: last) == nil ? nil : last
            )
        }
    }
}

/// A filter as queries; a criterion that SQL cannot express is applied to each row.
private struct FileQuery {
    private let filter: FileFilter
    private let tables: JournalTables
    /// The index and the condition that leave the fewest rows.
    private let source: String
    private var conditions: [String] = []
    private var values: [any SQLValue] = []

    init(_ filter: FileFilter, _ tables: JournalTables) {
        self.filter = filter
        self.tables = tables
        if tables == .history {
            source = tables.files
        } else if filter.batch != nil {
            source = "file INDEXED BY file_by_batch"
        } else if filter.ids != nil || (!filter.isUnanswered && filter.states.isEmpty) {
            source = "file"
        } else {
            source = "file INDEXED BY " + (filter.isUnanswered ? "file_unanswered" : "file_by_state")
        }
        if let batch = filter.batch { add("batch_id = ?", batch) }
        if let ids = filter.ids {
            add("id IN (SELECT value FROM json_each(?))", "[\(ids.map(String.init).joined(separator: ","))]")
        }
        if !filter.states.isEmpty { conditions.append("state IN (\(filter.states.literals))") }
        if filter.hasDeliveries {
            conditions.append("EXISTS (SELECT 1 FROM \(tables.deliveries) WHERE file_id = file.id)")
        }
        if let route = filter.route { add("route = ?", route) }
        if let before = filter.before { add("ifnull(ended_at, admitted_at) <= ?", before.milliseconds) }
        if let since = filter.since { add("admitted_at >= ?", since.milliseconds) }
        if let until = filter.until { add("admitted_at <= ?", until.milliseconds) }
        if filter.isUnanswered { conditions.append(isUnanswered) }
        if filter.isOnVolume { conditions.append("volume IS NOT NULL") }
        if let text = filter.text {
            add("(CAST(root AS TEXT) || '/' || CAST(path AS TEXT)) LIKE ? ESCAPE '\\'", "%\(Self.literal(text))%")
        }
        if let below = filter.below { add("id < ?", below) }
        if let upTo = filter.upTo { add("id <= ?", upTo) }
        if let destination = filter.destination {
            add("EXISTS (SELECT 1 FROM \(tables.deliveries) WHERE file_id = file.id AND destination = ?)", destination)
        }
        if let code = filter.code {
            add("(code = ? OR EXISTS (SELECT 1 FROM \(tables.deliveries) WHERE file_id = file.id AND code = ?))", code)
            values.append(code)
        }
    }

    /// In the words of an index, which has few rows.
    private var isUnanswered: String { tables == .history ? "unanswered = 1" : FilePolicy.isUnanswered }

    private mutating func add(_ condition: String, _ value: any SQLValue) {
        conditions.append(condition)
        values.append(value)
    }

    /// Escapes the characters that LIKE does not take literally.
    private static func literal(_ text: String) -> String {
        text.map { "%_\\".contains($0) ? "\\\($0)" : String($0) }.joined()
    }

    /// The first id beyond `cursor` that may have a file; found in an index, without reading a row.
    func next(after cursor: Int64?, _ newestFirst: Bool, _ database: Database) throws -> Int64? {
        let cursor = cursor ?? (newestFirst ? Int64.max : 0)
        let (best, beyond) = newestFirst ? ("max(id)", "id < ?") : ("min(id)", "id > ?")
        if let ids = filter.ids {
            return newestFirst ? ids.filter { $0 < cursor }.max() : ids.filter { $0 > cursor }.min()
        }
        var found: [Int64] = []
        func look(_ condition: String, _ values: any SQLValue...) throws {
            let sql = "SELECT \(best) FROM \(source) WHERE \(condition)\(beyond)"
            found += try database.rows(sql, values + [cursor]) { $0.optionalInteger(0) }.compactMap(\.self)
        }
        if let batch = filter.batch {
            try look("batch_id = ? AND ", batch)
        } else if filter.isUnanswered {
            try look("\(isUnanswered) AND ")
        } else if filter.states.isEmpty || tables == .history {
            try look("")
        } else {
            for state in Set(filter.states) { try look("state = '\(state.rawValue)' AND ") }
        }
        return newestFirst ? found.max() : found.min()
    }

    /// The files of a range, oldest first.
    func files(_ stretch: ClosedRange<Int64>, _ database: Database) throws -> [MatchedFile] {
        let conditions = (conditions + ["id BETWEEN ? AND ?"]).joined(separator: " AND ")
        let values = values + [stretch.lowerBound, stretch.upperBound]
        return try database.rows(
            "SELECT id, root, path, size, state, labels FROM \(source) WHERE \(conditions)", values
        ) { row -> MatchedFile? in
            let path = row.path(2)
            guard filter.path?.matches(path) ?? true, hasLabels(row) else { return nil }
            let state = row.text(4).flatMap(FileState.init) ?? .failed
            return (row.integer(0), row.path(1).pushing(path), row.integer(3), state)
        }.compactMap(\.self).sorted { $0.id < $1.id }
    }

    private func hasLabels(_ row: SQLRow) -> Bool {
        if filter.labels.isEmpty { return true }
        let labels = row.labels(5)
        return filter.labels.allSatisfy { labels[$0.key] == $0.value }
    }
}
