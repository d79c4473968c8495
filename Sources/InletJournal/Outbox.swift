internal import GRDB
package import InletCore
package import SystemPackage

/// A notification receiver, as far as the journal must know it.
package struct NotificationSink: Sendable, Equatable {
    package var name: String
    package var events: Set<NotificationEvent>
    /// Only files and batches of these routes; empty = all.
    package var routes: [String]

    package init(name: String, events: Set<NotificationEvent>, routes: [String] = []) {
        self.name = name
        self.events = events
        self.routes = routes
    }
}

/// A row of `outbox`: a notification for a receiver.
package struct QueuedNotification: Sendable, Equatable {
    package var id: Int64
    package var sink: String
    package var event: NotificationEvent
    /// The file's or batch's id, or the number of a removable volume or a quiet folder; nil for other subjects.
    package var subject: Int64?
    package var createdAt: WallTime
    /// JSON: a file's receipt, or the text of a destination's or batch's notice. Empty until it has been composed.
    package var payload: [UInt8]
    /// The number of failed attempts.
    package var attempts: Int
}

/// The next notification for a receiver.
package enum NextNotification: Sendable, Equatable {
    case due(QueuedNotification)
    /// The first in line waits for its time, and everything else waits behind it.
    case blocked(until: WallTime)
    /// The line is empty; a refused notification is tried again then, or a gathering one is complete.
    case later(WallTime)
    case none
}

/// The last message about a thing, such as a volume. The same message is not posted twice in a row, even after a restart.
package typealias LastWord = (thing: String, word: String)

extension Journal {
    /// A destination as the subject of messages.
    package static func thing(destination: String) -> String { "destination:\(destination)" }
    /// The message about a destination that is down.
    package static let down = "down"
    /// A watched folder as the subject of messages.
    package static func thing(folder: FilePath) -> String { "folder:\(folder.display)" }
    /// Another agent of the fleet as the subject of messages.
    package static func thing(agent: String) -> String { "agent:\(agent)" }
    /// The arrivals in a watched folder as the subject of messages.
    package static func thing(arrivalsIn folder: FilePath) -> String { "arrivals:\(folder.display)" }
}

extension Journal {
    /// Registers the notification receivers. From then on the transaction that ends a file or a batch also writes its notices,
    /// by triggers of this connection: without receivers there are none, and nothing costs anything.
    ///
    /// - Returns: an identifier that distinguishes this journal's notices from any other's, for the journal's life; and
    ///   the number of dropped notices by receiver, for receivers that are no longer configured.
    package func setSinks(
        _ sinks: [NotificationSink], at now: WallTime
    ) async throws(JournalError) -> (identity: String, dropped: [String: Int]) {
        try await commit { database in
            try database.execute(sql: Self.noTriggers)
            try Self.repeatWords(for: sinks, database)
            try database.change("DELETE FROM sink")
            for sink in sinks {
                for event in sink.events {
                    for route in sink.routes.isEmpty ? [""] : sink.routes {
                        try database.change(
                            "INSERT OR IGNORE INTO sink (event, name, route) VALUES (?, ?, ?)", event, sink.name, route)
                    }
                }
            }
            let dropped = try Self.dropNotices(exceptFor: Set(sinks.map(\.name)), before: now, database)
            let events = sinks.reduce(into: Set<NotificationEvent>()) { $0.formUnion($1.events) }
            if !events.isDisjoint(with: [.delivered, .failed, .rejected]) {
                try database.execute(sql: Self.fileTrigger)
            }
            if events.contains(.batchDone) { try database.execute(sql: Self.batchTrigger) }
            return (sinks.isEmpty ? "" : try Self.identity(database), dropped)
        }
    }

    /// A receiver that is new, or wants more events, does not know about lasting faults: they are said again.
    private static func repeatWords(for sinks: [NotificationSink], _ database: Database) throws {
        func isNew(_ event: NotificationEvent) throws -> Bool {
            let known = try database.rows("SELECT DISTINCT name FROM sink WHERE event = ?", event) { $0.text(0) ?? "" }
            return sinks.contains { $0.events.contains(event) && !known.contains($0.name) }
        }
        // No word has this number, and the row stays: that a destination is up again is said, too.
        let forget = "UPDATE counter SET value = 0 WHERE substr(name, 1, length(?1)) = ?1"
        if try isNew(.rootQuiet) { try database.change(forget, counter(of: thing(arrivalsIn: ""))) }
        if try isNew(.rootPaused) { try database.change(forget, counter(of: thing(folder: ""))) }
        if try isNew(.destinationDown) {
            try database.change("\(forget) AND value = ?2", counter(of: thing(destination: "")), number(of: down))
        }
    }

    /// A word is kept as a number. FNV-1a: the same in every process.
    private static func number(of word: String) -> Int64 {
        Int64(bitPattern: word.utf8.reduce(0xCBF2_9CE4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 })
    }

    private static let noTriggers =
        "DROP TRIGGER IF EXISTS temp.notice_of_file; DROP TRIGGER IF EXISTS temp.notice_of_batch;"

    /// A file is finished when its receipt is written, so no caller that finishes one can forget its notice. A unit's
    /// marker is not a file of the user. A person's later order about the source is no news.
    private static let fileTrigger = """
        CREATE TEMP TRIGGER notice_of_file AFTER INSERT ON main.receipt BEGIN
            INSERT INTO outbox (sink, event, subject, created_at, payload, next_at)
            SELECT sink.name, sink.event, new.file_id, new.created_at, new.body, new.created_at
            FROM file CROSS JOIN sink
                ON sink.event = CASE file.state WHEN 'expired' THEN 'failed' WHEN 'gone' THEN 'failed' ELSE file.state END
                AND sink.route IN ('', ifnull(file.route, ''))
            WHERE file.id = new.file_id AND ifnull(file.role, '') <> '\(unitMarkerRole)'
                AND NOT \(FilePolicy.isAnswered);
        END
        """

    /// A batch's notice is composed when it is sent: the batch changes only if it continues.
    private static let batchTrigger = """
        CREATE TEMP TRIGGER notice_of_batch AFTER UPDATE OF ended_at ON main.batch
            WHEN old.ended_at IS NULL AND new.ended_at IS NOT NULL
        BEGIN
            INSERT INTO outbox (sink, event, subject, created_at, payload, next_at)
            SELECT name, event, new.id, new.ended_at, x'', new.ended_at FROM sink
            WHERE event = 'batch_done' AND route IN ('', ifnull(new.route, ''));
        END
        """

    /// How long abandoned notifications are kept for inspection.
    private static let failedKept = Duration.seconds(-30 * 86_400)

    /// Everything for receivers that left the configuration; for the others, notifications that failed long ago.
    private static func dropNotices(
        exceptFor names: Set<String>, before now: WallTime, _ database: Database
    ) throws -> [String: Int] {
        let known = try database.rows("SELECT DISTINCT sink FROM outbox") { $0.text(0) ?? "" }
        for name in known {
            try database.change(
                "DELETE FROM outbox WHERE sink = ? AND state = 'failed' AND created_at < ?", name, now + failedKept)
        }
        var dropped: [String: Int] = [:]
        for name in known where !names.contains(name) {
            let waiting = try database.change("DELETE FROM outbox WHERE sink = ? AND state <> 'failed'", name)
            try database.change("DELETE FROM outbox WHERE sink = ?", name)
            if waiting > 0 { dropped[name] = waiting }
        }
        return dropped
    }

    /// Random, made once: a row's number alone would repeat in the next journal.
    private static func identity(_ database: Database) throws -> String {
        try database.change(
            "INSERT OR IGNORE INTO counter (name, value) VALUES ('identity', ?)", Int64.random(in: 1...Int64.max))
        let number = try database.integer("SELECT value FROM counter WHERE name = 'identity'") ?? 0
        return String(number, radix: 36)
    }

    /// Puts a notification about neither a file nor a batch into the outbox, once for each receiver that wants it.
    ///
    /// - Parameters:
    ///   - word: the message about a thing; posts nothing when it is the last one already.
    ///   - isReply: posts nothing either when there was no message about the thing.
    package func post(
        _ event: NotificationEvent, _ payload: [UInt8], at now: WallTime, once word: LastWord? = nil,
        isReply: Bool = false
    ) async throws(JournalError) {
        try await commit { database in
            if let (thing, word) = word {
                let changed = try database.change(
                    isReply
                        ? "UPDATE counter SET value = ?2 WHERE name = ?1 AND value <> ?2"
                        : """
                        INSERT INTO counter (name, value) VALUES (?1, ?2)
                        ON CONFLICT(name) DO UPDATE SET value = excluded.value WHERE value <> excluded.value
                        """, Self.counter(of: thing), Self.number(of: word))
                if changed == 0 { return }
            }
            try database.change(
                """
                INSERT INTO outbox (sink, event, subject, created_at, payload, next_at)
                SELECT DISTINCT name, event, ?, ?, ?, ? FROM sink WHERE event = ?
                """, event.mayBeWithdrawn ? word.map { Self.number(of: $0.thing) } : nil, now, payload, now, event)
        }
    }

    /// Lets the next message about this thing through, whatever the last one was.
    package func forgetLastWord(of thing: String) async throws(JournalError) {
        try await change("DELETE FROM counter WHERE name = ?", Self.counter(of: thing))
    }

    /// A removable volume is no longer done: takes back what `sinks` have not been asked to take yet. It may be said
    /// again.
    package func withdrawDone(of thing: String, from sinks: [String]) async throws(JournalError) {
        try await commit { database in
            var count = 0
            for sink in sinks {
                count += try database.change(
                    "DELETE FROM outbox WHERE sink = ? AND subject = ? AND event = ? AND attempts = 0", sink,
                    Self.number(of: thing), NotificationEvent.volumeDone)
            }
            if count > 0 { try database.change("DELETE FROM counter WHERE name = ?", Self.counter(of: thing)) }
        }
    }

    /// A folder counts as quiet no longer, although no file came: takes back what no receiver was asked to take yet. It
    /// may be said again.
    package func withdrawQuiet(_ root: FilePath) async throws(JournalError) {
        let thing = Self.thing(arrivalsIn: root)
        try await commit { database in
            try database.change(
                "DELETE FROM outbox WHERE event = ? AND subject = ? AND attempts = 0", NotificationEvent.rootQuiet,
                Self.number(of: thing))
            try database.change("DELETE FROM counter WHERE name = ?", Self.counter(of: thing))
        }
    }

    private static func counter(of thing: String) -> String { "said:\(thing)" }

    /// How long messages for people about removable volumes wait for others, to arrive as one.
    package static let gathering = Duration.seconds(60)

    /// The next notice for `sink`: those in line in their order, and refused ones between them when their time comes.
    ///
    /// - Parameter gathers: whether good news about a removable volume first waits for more of it (`gathered`).
    package func nextNotice(
        _ sink: String, gathers: Bool = false, at now: WallTime
    ) async throws(JournalError) -> NextNotification {
        try await read { database in
            let refused = try Self.notice("state = 'refused' ORDER BY next_at, id", sink, database)
            let gathering = "(event = ? AND attempts = 0 AND created_at > ?)"
            let minute: [any SQLValue] = [NotificationEvent.volumeDone, now + (.zero - Self.gathering)]
            let first = try Self.notice(
                gathers ? "state = 'ready' AND NOT \(gathering) ORDER BY id" : "state = 'ready' ORDER BY id", sink,
                database, gathers ? minute : [])
            // Otherwise a notice that is refused again and again would precede all others.
            let refusedIsFirst = if let refused, let first { refused.nextAt < first.nextAt } else { first == nil }
            if let refused, refusedIsFirst, refused.nextAt <= now { return .due(refused.notice) }
            if let first { return first.nextAt <= now ? .due(first.notice) : .blocked(until: first.nextAt) }
            let held =
                gathers
                ? try Self.notice("state = 'ready' AND \(gathering) ORDER BY created_at", sink, database, minute) : nil
            let times = [refused?.nextAt, held.map { $0.notice.createdAt + Self.gathering }].compactMap(\.self)
            return times.min().map { .later($0) } ?? .none
        }
    }

    /// A notice about a removable volume with the others of the same minute, and everything newer about the same
    /// volumes; oldest first.
    package func gathered(with notice: QueuedNotification) async throws(JournalError) -> [QueuedNotification] {
        try await read { database in
            let events = [NotificationEvent.volumeDone, .volumeProblem].literals
            return try database.rows(
                """
                WITH near AS (
                    SELECT id, subject FROM outbox
                    WHERE sink = ?1 AND state = (SELECT state FROM outbox WHERE id = ?2) AND event IN (\(events))
                        AND created_at BETWEEN ?3 AND ?4)
                SELECT \(Self.columns) FROM outbox
                WHERE sink = ?1 AND state <> 'failed' AND event IN (\(events))
                    AND (id IN (SELECT id FROM near) OR subject IN (SELECT subject FROM near))
                ORDER BY id
                """, notice.sink, notice.id, notice.createdAt + (.zero - Self.gathering),
                notice.createdAt + Self.gathering
            ) { Self.notice(notice.sink, $0).notice }
        }
    }

    private static let columns = "id, event, subject, created_at, payload, attempts, next_at"

    private static func notice(
        _ condition: String, _ sink: String, _ database: Database, _ values: [any SQLValue] = []
    ) throws -> (notice: QueuedNotification, nextAt: WallTime)? {
        try database.rows(
            "SELECT \(columns) FROM outbox WHERE sink = ? AND \(condition) LIMIT 1", [sink] + values
        ) { notice(sink, $0) }.first
    }

    private static func notice(_ sink: String, _ row: SQLRow) -> (notice: QueuedNotification, nextAt: WallTime) {
        let notice = QueuedNotification(
            id: row.integer(0), sink: sink, event: row.text(1).flatMap(NotificationEvent.init) ?? .failed,
            subject: row.optionalInteger(2), createdAt: row.time(3), payload: row.bytes(4), attempts: row.int(5))
        return (notice, row.time(6))
    }

    /// Stores a notice's text, so that every attempt sends the same.
    package func keepPayload(_ payload: [UInt8], of notice: Int64) async throws(JournalError) {
        try await change("UPDATE outbox SET payload = ? WHERE id = ?", payload, notice)
    }

    /// The receiver accepted them, or they are no longer true: they leave the outbox.
    package func removeNotices(_ notices: [Int64]) async throws(JournalError) {
        try await commit { database in
            for notice in notices { try database.change("DELETE FROM outbox WHERE id = ?", notice) }
        }
    }

    /// Tries them again at `time`. - Parameter holdsLine: whether later notices wait too, because the receiver does not
    /// answer.
    package func noticesFailed(
        _ notices: [Int64], again time: WallTime, holdsLine: Bool, reason: String
    ) async throws(JournalError) {
        try await commit { database in
            for notice in notices {
                try database.change(
                    "UPDATE outbox SET state = ?, attempts = attempts + 1, next_at = ?, reason = ? WHERE id = ?",
                    holdsLine ? "ready" : "refused", time, reason, notice)
            }
        }
    }

    /// Abandons them. They are kept for inspection for a while.
    package func noticesGivenUp(_ notices: [Int64], reason: String) async throws(JournalError) {
        try await commit { database in
            for notice in notices {
                try database.change(
                    "UPDATE outbox SET state = 'failed', attempts = attempts + 1, reason = ? WHERE id = ?", reason,
                    notice)
            }
        }
    }

    /// Drops notices beyond `limit`: abandoned ones first, then the oldest about delivered files, then the oldest.
    /// - Returns: the number of waiting notices that were dropped.
    package func boundOutbox(to limit: Int) async throws(JournalError) -> Int {
        // The numbers at both ends are found without counting, and there are never more rows than their difference.
        let span = try await read {
            try $0.integer("SELECT (SELECT max(id) FROM outbox) - (SELECT min(id) FROM outbox)")
        }
        guard span ?? 0 >= limit else { return 0 }
        return try await commit { database in
            let count = try database.integer("SELECT count(*) FROM outbox") ?? 0
            guard count > Int64(limit) else { return 0 }
            let failed = try database.integer("SELECT count(*) FROM outbox WHERE state = 'failed'") ?? 0
            try database.change(
                """
                DELETE FROM outbox WHERE id IN (
                    SELECT id FROM outbox ORDER BY state <> 'failed', event <> 'delivered', id LIMIT ?)
                """, count - Int64(limit))
            return max(0, Int(count) - limit - Int(failed))
        }
    }

    /// The outbox's contents: waiting notices, and abandoned ones kept for inspection.
    package func outboxBacklog() async throws(JournalError) -> (waiting: Int, failed: Int) {
        try await read { database in
            try database.row("SELECT total(state <> 'failed'), total(state = 'failed') FROM outbox") {
                ($0.int(0), $0.int(1))
            } ?? (0, 0)
        }
    }

    /// An ended batch with its readable files, undelivered ones first, without a unit's marker. nil when it continues
    /// or is forgotten.
    package func endedBatch(_ id: Int64, limit: Int) async throws(JournalError) -> (batch: Batch, jobs: [Job])? {
        try await read { database in
            let batch: Batch
            do { batch = try Self.batch(id, database) } catch UnusableRow.missing { return nil }
            guard batch.endedAt != nil else { return nil }
            // A receiver that was away for long still gets its notice.
            let files = try JournalTables.allCases.flatMap { tables in
                try FileRow.all(
                    database, from: tables,
                    "WHERE batch_id = ? AND ifnull(role, '') <> ? ORDER BY state = 'delivered', id LIMIT ?",
                    [id, unitMarkerRole, limit], showing: true)
            }.sorted { ($0.state == .delivered ? 1 : 0, $0.id) < ($1.state == .delivered ? 1 : 0, $1.id) }
            return (batch, try files.prefix(limit).map { try Self.job($0, database, showing: true) })
        }
    }
}
