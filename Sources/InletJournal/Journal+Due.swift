internal import GRDB
internal import InletCore

/// What a claim may take: the due deliveries, in their order.
extension Journal {
    /// The due deliveries of the highest priority, and of each priority those with the earliest times. Asked for each by itself:
    /// what is not due yet in one is not walked past to find what is due in the next.
    static func due(
        _ room: ClaimRoom, _ lane: Lane, _ most: Int, _ now: WallTime, _ database: Database
    ) throws -> (claims: [Claim], damaged: [DamagedDelivery]) {
        var (claims, damaged): ([Claim], [DamagedDelivery]) = ([], [])
        for priority in Priority.ranked where claims.count < most {
            let found = try due(room, lane, priority, most - claims.count, now, database)
            claims += found.claims
            damaged += found.damaged
        }
        return (claims, damaged)
    }

    /// Those of one priority, except where a window is closed: such a delivery is put back.
    private static func due(
        _ room: ClaimRoom, _ lane: Lane, _ priority: Priority, _ most: Int, _ now: WallTime, _ database: Database
    ) throws -> (claims: [Claim], damaged: [DamagedDelivery]) {
        var damaged: [DamagedDelivery] = []
        var postponed = 0
        while true {
            let found = try ready(room, lane, priority, most, now, database)
            damaged += found.damaged
            let open = try found.claims.filter {
                try !postpone($0.delivery, $0.file, uptime: room.uptime, now, database)
            }
            postponed += found.claims.count - open.count
            // However many wait for their window, they do not keep others from their turn.
            if !open.isEmpty || found.claims.isEmpty || !damaged.isEmpty || postponed >= postponedAtOnce {
                return (open, damaged)
            }
        }
    }

    /// What is due. One that was cancelled and put back while its holder still runs has an owner until that one has let go.
    private static func ready(
        _ room: ClaimRoom, _ lane: Lane, _ priority: Priority, _ most: Int, _ now: WallTime, _ database: Database
    ) throws -> (claims: [Claim], damaged: [DamagedDelivery]) {
        var damaged: [DamagedDelivery] = []
        let found = try database.rows(
            """
            SELECT \(DeliveryRow.qualified), \(FileRow.qualified),
                EXISTS (SELECT 1 FROM checkpoint WHERE delivery_id = delivery.id)
            FROM delivery INDEXED BY \(room.index) CROSS JOIN file ON file.id = delivery.file_id
            WHERE destination = ? AND lane = ? AND priority = ? AND delivery.state = 'ready' AND next_at <= ?
                AND owner IS NULL \(room.condition)
            ORDER BY next_at, delivery.id LIMIT ?
            """,
            .text(room.destination), .integer(Int64(lane.rawValue)), .integer(Int64(priority.rank)),
            .integer(now.milliseconds), .integer(Int64(most))
        ) { row -> (DeliveryRow, FileRow, hasNotes: Bool)? in
            do {
                let delivery = try DeliveryRow(row)
                let file = try FileRow(row, from: DeliveryRow.width)
                return (delivery, file, hasNotes: row.integer(DeliveryRow.width + FileRow.width) != 0)
            } catch {
                damaged.append(DamagedDelivery(row, error))
                return nil
            }
        }
        let claims = try found.compactMap(\.self).map { delivery, file, hasNotes in
            Claim(
                file: file, delivery: delivery, checkpoint: hasNotes ? try checkpoint(of: delivery.id, database) : [:])
        }
        return (claims, damaged)
    }
}
