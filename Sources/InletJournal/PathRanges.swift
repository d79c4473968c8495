internal import GRDB
internal import InletCore
internal import SystemPackage

/// The journal's knowledge of many paths. Listings ask in the order of names, so that one query answers for a range of
/// them. For all files of a new folder it is as cheap as for one.
extension Journal {
    /// Fewer paths are asked about one by one.
    private static let shortestRange = 4
    /// Rows of a range, for each path in it. More are of other paths, such as those of a folder between two names.
    private static let rowsOfPath = 4

    /// The newest file of each path. Events report files in the order of their writing, which is rarely that of names.
    static func remembered(_ arrivals: [FoundFile], _ database: Database) throws -> [LatestFile?] {
        if arrivals.count < shortestRange || arrivals.areAscending { return try rememberedInOrder(arrivals, database) }
        let order = arrivals.indices.sorted { arrivals[$0].path.precedes(arrivals[$1].path) }
        var found = [LatestFile?](repeating: nil, count: arrivals.count)
        for (place, file) in zip(order, try rememberedInOrder(order.map { arrivals[$0] }, database)) {
            found[place] = file
        }
        return found
    }

    private static func rememberedInOrder(_ arrivals: [FoundFile], _ database: Database) throws -> [LatestFile?] {
        var found: [LatestFile?] = []
        found.reserveCapacity(arrivals.count)
        while found.count < arrivals.count {
            let range = ascending(arrivals[found.count...])
            if range.count >= shortestRange { found += try newest(in: range, database) }
            // The whole of a short range, and of a longer one what has no answer yet.
            while found.count < range.endIndex { found.append(try remembered(arrivals[found.count], database)) }
        }
        return found
    }

    /// The first of them that are of one folder or volume, each path behind the one before.
    private static func ascending(_ arrivals: ArraySlice<FoundFile>) -> ArraySlice<FoundFile> {
        var end = arrivals.startIndex + 1
        while end < arrivals.endIndex {
            let (one, next) = (arrivals[end - 1], arrivals[end])
            guard one.volume?.key == next.volume?.key, one.root == next.root, one.path.precedes(next.path) else {
                break
            }
            end += 1
        }
        return arrivals[..<end]
    }

    /// The newest files of the first paths of an ascending range; of all of them, unless much else lies between.
    private static func newest(in range: ArraySlice<FoundFile>, _ database: Database) throws -> [LatestFile?] {
        var found = try newest(in: range, from: .current, database)
        let unknown = found.indices.filter { found[$0] == nil }
        guard let first = unknown.first, let last = unknown.last else { return found }
        // Everything in the history is older.
        let past = range[(range.startIndex + first)...(range.startIndex + last)]
        let older = try newest(in: past, from: .history, database)
        for place in unknown where place - first < older.count { found[place] = older[place - first] }
        // Paths behind the last answer that are unknown may yet be in the history.
        if older.count < past.count, let open = unknown.first(where: { $0 >= first + older.count }) {
            found.removeSubrange(open...)
        }
        return found
    }

    private static func newest(
        in range: ArraySlice<FoundFile>, from tables: JournalTables, _ database: Database
    ) throws -> [LatestFile?] {
        guard let first = range.first, let last = range.last else { return [] }
        let (volume, most) = (first.volume?.key, range.count * rowsOfPath)
        let place: [any SQLValue] = tables == .history ? [placeName(first.root, volume)] : [volume ?? first.root]
        var files: [LatestFile?] = []
        files.reserveCapacity(range.count)
        var (current, rows): (LatestFile?, Int) = (nil, 0)
        _ = try database.rows(
            """
            SELECT \(LatestFile.columns), path FROM \(tables.files)
            WHERE \(rangeOfPaths(volume, tables)) AND path BETWEEN ? AND ? ORDER BY path, id LIMIT ?
            """, place + [first.path, last.path, most]
        ) { row in
            rows += 1
            var order = row.order(10, range[range.startIndex + files.count].path)
            while order > 0, files.count + 1 < range.count {
                files.append(current)
                current = nil
                order = row.order(10, range[range.startIndex + files.count].path)
            }
            if order == 0 { current = LatestFile(row) }
        }
        // Of the last path that was read, rows may be missing.
        if rows == most { return files }
        files.append(current)
        return files + Array(repeating: nil, count: range.count - files.count)
    }

    private static func rangeOfPaths(_ volume: String?, _ tables: JournalTables) -> String {
        if tables == .history { return "place = (SELECT id FROM history_place WHERE name = ?)" }
        return volume == nil ? "root = ? AND volume IS NULL" : "volume = ?"
    }
}

extension [FoundFile] {
    /// Whether each path sorts behind the one before; then none comes twice.
    var areAscending: Bool { zip(self, dropFirst()).allSatisfy { $0.path.precedes($1.path) } }
}
