internal import GRDB
package import InletCore

/// A receiver of notices, as far as the journal must know it.
package struct NoticeSink: Sendable, Equatable {
    package var name: String
    package var events: Set<NoticeEvent>
    /// Only files and batches of these; empty = of all.
    package var routes: [String]

    package init(name: String, events: Set<NoticeEvent>, routes: [String] = []) {
        self.name = name
        self.events = events
        self.routes = routes
    }
}

/// What came of writing down the receivers.
package struct SinkChange: Sendable, Equatable {
    /// Tells this journal's notices from those of any other, for as long as it lives.
    package var identity: String
    /// Notices that waited for receivers which are no longer configured, by receiver: they are gone.
    package var dropped: [String: Int]

    package init(identity: String, dropped: [String: Int]) {
        self.identity = identity
        self.dropped = dropped
    }
}

extension Journal {
    /// Writes down who is told of what. From then on the transaction that ends a file or a batch also writes its notices,
    /// by triggers of this connection: without receivers there are none, and nothing costs anything.
    package func setSinks(_ sinks: [NoticeSink], at now: WallTime) async throws(JournalError) -> SinkChange {
        try await commit { database in
            for sql in Self.noTriggers { try database.execute(sql: sql) }
            try database.run(sql: "DELETE FROM sink")
            for sink in sinks {
                for event in sink.events {
                    for route in sink.routes.isEmpty ? [""] : sink.routes {
                        try database.change(
                            "INSERT OR IGNORE INTO sink (event, name, route) VALUES (?, ?, ?)", .text(event.rawValue),
                            .text(sink.name), .text(route))
                    }
                }
            }
            let dropped = try Self.dropNotices(exceptFor: Set(sinks.map(\.name)), before: now, database)
            let events = sinks.reduce(into: Set<NoticeEvent>()) { $0.formUnion($1.events) }
            if !events.isDisjoint(with: [.delivered, .failed, .rejected]) {
                try database.execute(sql: Self.fileTrigger)
            }
            if events.contains(.batchDone) { try database.execute(sql: Self.batchTrigger) }
            return SinkChange(identity: sinks.isEmpty ? "" : try Self.identity(database), dropped: dropped)
        }
    }

    private static let noTriggers = [
        "DROP TRIGGER IF EXISTS temp.notice_of_file", "DROP TRIGGER IF EXISTS temp.notice_of_batch",
    ]

    /// A file is finished when its receipt is written: whoever finishes one cannot forget to tell. The marker of a unit is
    /// nobody's file.
    private static let fileTrigger = """
        CREATE TEMP TRIGGER notice_of_file AFTER INSERT ON main.receipt BEGIN
            INSERT INTO outbox (sink, event, subject, created_at, payload, next_at)
            SELECT sink.name, sink.event, new.file_id, new.created_at, new.body, new.created_at
            FROM file CROSS JOIN sink
                ON sink.event = CASE file.state WHEN 'expired' THEN 'failed' WHEN 'gone' THEN 'failed' ELSE file.state END
                AND sink.route IN ('', ifnull(file.route, ''))
            WHERE file.id = new.file_id AND ifnull(file.role, '') <> '\(unitMarkerRole)';
        END
        """

    /// What is said of a batch is put together when its notice is sent: nothing of it changes unless it goes on.
    private static let batchTrigger = """
        CREATE TEMP TRIGGER notice_of_batch AFTER UPDATE OF ended_at ON main.batch
            WHEN old.ended_at IS NULL AND new.ended_at IS NOT NULL
        BEGIN
            INSERT INTO outbox (sink, event, subject, created_at, payload, next_at)
            SELECT name, event, new.id, new.ended_at, x'', new.ended_at FROM sink
            WHERE event = 'batch_done' AND route IN ('', ifnull(new.route, ''));
        END
        """

    /// From now back: how long notices that nobody took are kept to be looked at.
    private static let failedKept = Duration.seconds(-30 * 86_400)

    /// Of receivers that left the configuration everything goes; of the others what failed long ago.
    private static func dropNotices(
        exceptFor names: Set<String>, before now: WallTime, _ database: Database
    ) throws -> [String: Int] {
        let known = try database.rows("SELECT DISTINCT sink FROM outbox") { $0.text(0) ?? "" }
        for name in known {
            try database.change(
                "DELETE FROM outbox WHERE sink = ? AND state = 'failed' AND created_at < ?", .text(name),
                .integer((now + failedKept).milliseconds))
        }
        var dropped: [String: Int] = [:]
        for name in known where !names.contains(name) {
            let waiting = try database.row(
                "SELECT count(*) FROM outbox WHERE sink = ? AND state <> 'failed'", .text(name)
            ) { Int($0.integer(0)) }
            try database.change("DELETE FROM outbox WHERE sink = ?", .text(name))
            if let waiting, waiting > 0 { dropped[name] = waiting }
        }
        return dropped
    }

    /// Random, made once: a row's number alone would come again in the next journal.
    private static func identity(_ database: Database) throws -> String {
        try database.change(
            "INSERT OR IGNORE INTO counter (name, value) VALUES ('identity', ?)",
            .integer(Int64.random(in: 1...Int64.max)))
        let number = try database.row("SELECT value FROM counter WHERE name = 'identity'") { $0.integer(0) } ?? 0
        return String(number, radix: 36)
    }
}
