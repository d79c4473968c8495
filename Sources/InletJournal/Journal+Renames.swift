internal import Foundation
internal import GRDB
package import InletCore
package import SystemPackage

/// A file of the journal that has another path now.
package struct RenamedFile: Sendable, Equatable {
    package var file: FileRow
    /// It waits, and no destination has heard of it: its key is still free to change.
    package var isUntold: Bool
}

extension Journal {
    /// The file that was renamed from `old` to where `arrival` is, if it goes on as the same: it is the same inode with the same
    /// size and time, it waits or has arrived, it belongs to no others, and nothing was ever known of its new path.
    ///
    /// Whether the content is the same is for the caller to find out; and that `old` names it no more.
    package func renamed(from old: FilePath, to arrival: Arrival) async throws(JournalError) -> RenamedFile? {
        try await read { database in try Self.renamed(from: old, to: arrival, database) }
    }

    private static func renamed(
        from old: FilePath, to arrival: Arrival, _ database: Database
    ) throws -> RenamedFile? {
        let volume = arrival.volume?.key
        guard try latest(arrival.root, arrival.path, volume, database) == nil,
            let file = try latest(arrival.root, old, volume, database), file.batchID == nil, file.role == nil,
            arrival.identity.isUntouched(since: file.identity, ignoringChangeTime: true)
        else { return nil }
        switch file.state {
        case .pending: break
        case .delivered, .duplicate:
            // What is being disposed of has its old path in its notes.
            guard file.intent == nil, !Disposition.vacates(file.disposition) else { return nil }
        default: return nil
        }
        let told = try Int.fetchOne(
            database,
            sql: """
                SELECT 1 FROM delivery WHERE file_id = ? AND (started_at IS NOT NULL OR state NOT IN ('ready', 'parked')
                    OR EXISTS (SELECT 1 FROM checkpoint WHERE delivery_id = delivery.id)) LIMIT 1
                """, arguments: [file.id])
        return RenamedFile(file: file, isUntold: file.state == .pending && told == nil)
    }

    /// Gives the file its new path.
    ///
    /// - Parameter plan: what its routes say of it under that path, for a file that no destination has heard of; every other
    ///   keeps its key.
    /// - Returns: false when it is being sent, or is no longer what it was: to be looked at again.
    package func rename(
        _ renamed: RenamedFile, to arrival: Arrival, plan: Plan?
    ) async throws(JournalError) -> Bool {
        try await commit { database in
            let id = renamed.file.id
            guard try Self.renamed(from: renamed.file.path, to: arrival, database) == renamed else { return false }
            let running = try Int.fetchOne(
                database, sql: "SELECT 1 FROM delivery WHERE file_id = ? AND state = 'claimed' LIMIT 1", arguments: [id]
            )
            guard running == nil else { return false }
            let path = SQLValue.bytes(arrival.path.bytes)
            let changed = SQLValue.integer(arrival.identity.changed)
            try database.change(
                "UPDATE file SET path = ?, changed = iif(\(Self.isUnprovable), changed, ?) WHERE id = ?", path, changed,
                .integer(id))
            try database.change(
                "UPDATE history_file SET path = ?, changed = ? WHERE id = ?", path, changed, .integer(id))
            if renamed.isUntold, let plan { try Self.replan(id, plan, database) }
            return true
        }
    }

    /// What a plan takes from a file's name.
    private static func replan(_ id: Int64, _ plan: Plan, _ database: Database) throws {
        let labels = plan.labels.isEmpty ? nil : Data(try JournalJSON.encode(plan.labels))
        try database.run(
            sql: "UPDATE file SET category = ?, media_type = ?, labels = ? WHERE id = ?",
            arguments: [plan.category, plan.mediaType, labels, id])
        let fields = plan.with.isEmpty ? nil : Data(try JournalJSON.encode(plan.with))
        // Their own keys must not stand in their way.
        let deliveries = try job(file(id, database), database).deliveries
        try database.run(sql: "UPDATE delivery SET key = NULL WHERE file_id = ?", arguments: [id])
        var keys: [Int64: String] = [:]
        for delivery in deliveries where delivery.key != nil {
            // A registration goes by the key of what it registers.
            let wanted = delivery.afterID.flatMap { keys[$0] } ?? plan.key
            let key = try freeKey(wanted, delivery.destination, database)
            keys[delivery.id] = key
            try database.run(
                sql: "UPDATE delivery SET key = ?, fields = ? WHERE id = ?", arguments: [key, fields, delivery.id])
        }
    }
}
