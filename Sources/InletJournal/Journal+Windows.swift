internal import GRDB
internal import InletCore

/// The time to live of what may begin at some hours only counts while its window is open. While it stands, `expires_at` is
/// the time that is left, negative; else, as for all others, when it ends on the destination's expiry clock.
///
/// That is noticed when the delivery is looked at while its window is closed: one that waits behind full workers all those
/// hours has them counted.
extension Journal {
    /// How many one transaction puts back before others have their turn.
    static let postponedAtOnce = 256

    /// Puts a delivery that is due, or whose time seems to be over, back until its route's window opens, with the time that it
    /// has left. It was not claimed: that is no attempt.
    ///
    /// - Parameter uptime: the destination's expiry clock, where the caller knows it.
    /// - Returns: false for one that may be claimed now, and for one whose time is over.
    static func postpone(
        _ row: DeliveryRow, _ file: FileRow, uptime: Int64?, _ now: WallTime, _ database: Database
    ) throws -> Bool {
        guard let window = try window(of: row, file, database), let opening = window.opening(at: now) else {
            return false
        }
        var standing = row.expiresAt
        if let expiry = row.expiresAt, expiry >= 0, let life = file.policy.retry.expire {
            let uptime = try clock(of: row.destination, uptime, database)
            let left = WindowLife(life: life.milliseconds, expiry: expiry, uptime: uptime)
                .left(closedFor: window.closedTime(until: now))
            guard left > 0 else { return false }
            standing = -left
        }
        try database.change(
            "UPDATE delivery SET next_at = ?, expires_at = ?, code = NULL, reason = ? WHERE id = ?",
            .integer(opening.milliseconds), SQLValue(standing), .text(window.reason), .integer(row.id))
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

    /// What `expires_at` is at admission, for a delivery that sends the bytes of its file: the time stands where its window is
    /// closed.
    static func firstExpiry(_ admission: Admission, uptime: Int64, _ now: WallTime) -> Int64? {
        guard let plan = admission.plan, let life = plan.retry.expire?.milliseconds else { return nil }
        guard let window = plan.window, window.concerns(size: admission.arrival.identity.size),
            window.opening(at: now) != nil
        else { return uptime + life }
        return -life
    }

    /// Lets the time to live of a delivery go on that has waited for its window, and forgets that it has. For one that is
    /// claimed: it may have waited for others of its content since.
    static func letIn(
        _ row: inout DeliveryRow, _ file: FileRow, uptime: Int64?, _ database: Database
    ) throws {
        guard let window = file.policy.window else { return }
        let hasWaited = row.reason == window.reason && row.code == nil
        // One without a time was put back by a version that forgot it.
        let left: Int64? =
            if let expiry = row.expiresAt {
                expiry < 0 ? -expiry : nil
            } else {
                try self.window(of: row, file, database) == nil ? nil : file.policy.retry.expire?.milliseconds
            }
        guard hasWaited || left != nil else { return }
        if hasWaited { row.reason = nil }
        if let left { row.expiresAt = try clock(of: row.destination, uptime, database) + left }
        try database.change(
            "UPDATE delivery SET reason = ?, expires_at = ? WHERE id = ?", SQLValue(row.reason),
            SQLValue(row.expiresAt), .integer(row.id))
    }

    /// A destination's expiry clock: what was written last may be older than what the caller knows.
    private static func clock(of destination: String, _ known: Int64?, _ database: Database) throws -> Int64 {
        let written = try database.row("SELECT uptime FROM destination WHERE name = ?", .text(destination)) {
            $0.integer(0)
        }
        return max(written ?? 0, known ?? 0)
    }
}
