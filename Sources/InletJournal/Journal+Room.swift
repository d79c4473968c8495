internal import GRDB
internal import InletCore

extension Journal {
    /// Files that are pending, and their sizes together; kept by triggers, not counted.
    package func pending() async throws(JournalError) -> (files: Int, bytes: Int64) {
        try await read { try Self.pending($0) }
    }

    private static func pending(_ database: Database) throws -> (files: Int, bytes: Int64) {
        try database.row("SELECT files, bytes FROM tally WHERE state = 'pending'") {
            (Int($0.integer(0)), $0.integer(1))
        } ?? (0, 0)
    }

    /// Whether the queue takes a file now, with its companions.
    ///
    /// What joins an open unit is always taken: its files wait for each other, and would do so for ever.
    static func hasRoom(
        for admission: Admission, _ limit: QueueLimit, _ isFull: Bool, _ database: Database
    ) throws -> Bool {
        let arrival = admission.arrival
        if let unit = admission.unit, let route = admission.plan?.route,
            try openBatch(arrival.root, unit, route, database) != nil
        {
            return true
        }
        if isFull { return false }
        let size = admission.companions.reduce(arrival.identity.size) { $0 + $1.arrival.identity.size }
        return limit.takes(files: 1 + admission.companions.count, bytes: size, besides: try pending(database))
    }
}
