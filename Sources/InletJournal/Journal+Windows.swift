internal import GRDB
internal import InletCore

extension Journal {
    /// How many one transaction puts back before others have their turn.
    static let postponedAtOnce = 256

    /// Puts a delivery that is due back until its route's window opens. It was not claimed: that is no attempt. Its time to live
    /// begins when it is let in.
    ///
    /// - Returns: false for one that may be claimed now.
    static func postpone(
        _ row: DeliveryRow, _ file: FileRow, _ now: WallTime, _ database: Database
    ) throws -> Bool {
        guard let window = try window(of: row, file, database), let opening = window.opening(at: now) else {
            return false
        }
        try database.change(
            "UPDATE delivery SET next_at = ?, expires_at = NULL, code = NULL, reason = ? WHERE id = ?",
            .integer(opening.milliseconds), .text(window.reason), .integer(row.id))
        return true
    }

    /// The window that a delivery waits for; nil for one that sends no bytes of the file, or no more: what a destination works
    /// on, what registers, what closes a unit.
    private static func window(
        of row: DeliveryRow, _ file: FileRow, _ database: Database
    ) throws -> DeliveryWindow? {
        guard let window = file.policy.window, window.concerns(size: file.identity.size), row.waits == 0,
            row.closes == nil
        else { return nil }
        if let leader = row.afterID, try delivery(leader, database).fileID == row.fileID { return nil }
        return window
    }

    /// Begins the time to live of a delivery that has waited for its window, and forgets that it has. For one that is claimed:
    /// it may have waited for others of its content since.
    static func letIn(_ row: inout DeliveryRow, _ file: FileRow, _ database: Database) throws {
        guard let window = try window(of: row, file, database) else { return }
        let hasWaited = row.reason == window.reason && row.code == nil
        let life = row.expiresAt == nil ? file.policy.retry.expire : nil
        guard hasWaited || life != nil else { return }
        if hasWaited { row.reason = nil }
        if let life {
            let uptime = try database.row(
                "SELECT uptime FROM destination WHERE name = ?", .text(row.destination)
            ) { $0.integer(0) }
            row.expiresAt = (uptime ?? 0) + life.milliseconds
        }
        try database.change(
            "UPDATE delivery SET reason = ?, expires_at = ? WHERE id = ?", SQLValue(row.reason),
            SQLValue(row.expiresAt), .integer(row.id))
    }
}
