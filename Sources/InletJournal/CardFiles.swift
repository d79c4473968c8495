internal import GRDB
internal import InletCore
internal import SystemPackage

/// All files of a card, in whichever of its folders they lie.
extension Journal {
    /// Files of one page.
    private static let page = 256

    /// The newest file of each path on a card, with its deliveries: also of paths that are no longer on it.
    ///
    /// - Parameter key: the card's (`CardRow.key`).
    package func jobs(ofCard key: String) async throws(JournalError) -> [Job] {
        var found: [Job] = []
        for volume in try await volumes(of: key) {
            var last = FilePath()
            while true {
                let files = try await files(of: volume, after: last, limit: Self.page)
                guard let end = files.last else { break }
                last = end.path
                found += try await jobs(files.map(\.id)) { _ in true }.compactMap(\.self)
            }
        }
        return found
    }

    /// The volumes of a card: its key, and a watched folder on it. Only those of which the journal has files.
    func volumes(of key: String) async throws(JournalError) -> [String] {
        try await volumes(from: key + "/", below: key + "0")
    }

    /// The keys of the cards of which the journal has files, also of those that came before it had cards.
    package func volumes() async throws(JournalError) -> [String] {
        // A key begins with a small letter; the other places in the history are paths.
        try await volumes(from: "a", below: "{")
    }

    private func volumes(from first: String, below end: String) async throws(JournalError) -> [String] {
        try await read { database in
            var found: Set<String> = []
            var (next, comparison): (String?, String) = (first, ">=")
            // From one to the next in the index: no row is read.
            while let last = next {
                next =
                    try database.row(
                        """
                        SELECT min(volume) FROM file INDEXED BY file_by_volume
                        WHERE volume IS NOT NULL AND volume \(comparison) ? AND volume < ?
                        """, last, end
                    ) { $0.text(0) } ?? nil
                if let next { found.insert(next) }
                comparison = ">"
            }
            found.formUnion(
                try database.rows(
                    """
                    SELECT CAST(name AS TEXT) FROM history_place
                    WHERE name >= CAST(? AS BLOB) AND name < CAST(? AS BLOB) AND kept > 0
                    """, first, end
                ) { $0.text(0) ?? "" })
            return found.sorted()
        }
    }
}
