internal import GRDB
package import InletCore
internal import Synchronization
package import SystemPackage

/// A key to ask the fleet for, or to give back to it.
package struct KeyRequest: Sendable, Equatable {
    package var delivery: Int64
    package var destination: String
    package var key: String
    /// Tells deliveries apart: asking again with the same one gets the same answer.
    package var ref: Int64
    /// When the delivery began to wait.
    package var since: WallTime
    /// The full path of its file, for messages.
    package var path: FilePath
    /// The file's number; 0 for a key that goes back.
    package var job: Int64

    package init(
        delivery: Int64, destination: String, key: String, ref: Int64, since: WallTime = WallTime(milliseconds: 0),
        path: FilePath = FilePath(), job: Int64 = 0
    ) {
        (self.delivery, self.destination, self.key, self.ref) = (delivery, destination, key, ref)
        (self.since, self.path, self.job) = (since, path, job)
    }
}

/// The fleet's answer to a request.
package enum KeyAnswer: Sendable, Equatable {
    case granted(mark: Int64)
    /// Another agent has the key; the next free name is asked for.
    case taken
    /// The fleet cannot be asked: the file goes under its name with the agent's tag, which needs no grant.
    case tagged(tag: String)
    /// It waits on, and shows why.
    case waits(code: ErrorCode, reason: String)
}

/// Keys of a fleet: a delivery is not due before its key is granted. Each answer is in the journal, in one transaction
/// with its effect, before a delivery can be claimed.
extension Journal {
    /// From now on deliveries to these destinations wait until their keys are granted, except below the agent's own
    /// prefix. So do those that are due already, unless something may be visible under their keys. The others that
    /// waited are due. A start calls this before anything is claimed, and without a fleet with no destinations.
    ///
    /// - Parameter destinations: the agent's own prefix at each; nil is none.
    package func reserveKeys(at destinations: [String: String?]) async throws(JournalError) {
        try await commit { database in
            try database.execute(sql: KeyTriggers.removal)
            if destinations.isEmpty { return }
            try database.execute(sql: KeyTriggers.table)
            for (name, prefix) in destinations {
                try database.change("INSERT INTO reserved_destination (name, prefix) VALUES (?, ?)", name, prefix)
            }
            try database.execute(sql: KeyTriggers.all)
            try database.execute(sql: KeyTriggers.receipts)
        }
        var last: Int64? = 0
        while let from = last { last = try await commit { try Self.review(after: from, destinations, $0) } }
        try await holdDue(at: destinations.keys.sorted())
    }

    /// Has due deliveries to destinations wait that have no key of the fleet there. No effect where none is asked for.
    func holdDue(at destinations: [String]) async throws(JournalError) {
        for name in destinations {
            var last: Int64? = 0
            while let from = last { last = try await commit { try Self.hold(due: name, after: from, $0) } }
        }
    }

    /// A destination has another address: what was asked for at the former one is no answer for this one.
    static func askAnew(at destination: String, _ database: Database) throws {
        try database.change(
            """
            UPDATE key_request SET ref = ifnull(
                (SELECT ref FROM fleet_key WHERE \(KeyTriggers.known("key_request"))), random() & \(Int64.max))
            WHERE destination = ?
            """, destination)
    }

    /// Keys to ask for, oldest first. One that is going back is asked for after that.
    ///
    /// - Parameter last: only those of later deliveries.
    package func keyRequests(limit: Int, after last: Int64 = 0) async throws(JournalError) -> [KeyRequest] {
        try await read { database in
            try database.rows(
                """
                SELECT delivery.id, request.destination, request.key, ref, since, root, path, file.id
                FROM key_request AS request CROSS JOIN delivery ON delivery.id = delivery_id
                    CROSS JOIN file ON file.id = file_id
                WHERE delivery_id > ? AND delivery.state = 'ready' AND delivery.key = request.key AND NOT EXISTS (
                    SELECT 1 FROM fleet_key AS back
                    WHERE back.destination = request.destination AND back.key = request.key AND freed = 2)
                ORDER BY delivery_id LIMIT ?
                """, last, limit
            ) { row in
                KeyRequest(
                    delivery: row.integer(0), destination: row.text(1) ?? "", key: row.text(2) ?? "",
                    ref: row.integer(3), since: row.time(4), path: row.path(5).pushing(row.path(6)), job: row.integer(7)
                )
            }
        }
    }

    /// Records answers with their effects, and the highest mark. An answer to a request that ended or changed meanwhile
    /// does nothing, except that a key granted for nobody goes back.
    ///
    /// - Returns: the number of deliveries that are due now, and of keys to ask for again.
    @discardableResult
    package func answerKeys(
        _ answers: [(KeyRequest, KeyAnswer)], at now: WallTime
    ) async throws(JournalError) -> (released: Int, again: Int) {
        let marks = answers.compactMap { if case .granted(let mark) = $0.1 { mark } else { nil } }
        if let highest = marks.max() { heard.withLock { _ = $0.raise(to: highest, at: .now) } }
        return try await commit { database in
            var (released, again) = (0, 0)
            for (request, answer) in answers {
                let waiting = try WaitingKey.one(request, database)
                switch answer {
                case .granted(let mark):
                    try Self.note(request, mark: mark, isFree: waiting == nil, database)
                    if let waiting, try Self.release(waiting, now, database) { released += 1 }
                case .taken:
                    if let waiting, try Self.refuse(waiting, database) { again += 1 }
                case .tagged(let tag):
                    if let waiting, try Self.tag(waiting, with: tag, now, database) { released += 1 }
                case .waits(let code, let reason):
                    if let waiting { try Self.show(code, reason, of: waiting, database) }
                }
            }
            try self.keepMark(database)
            return (released, again)
        }
    }

    // MARK: - Keys that nobody needs

    /// Keys that were granted, or may have been, and under which nothing was ever sent. Until they are back, nobody gets
    /// them.
    package func keysToReturn(limit: Int) async throws(JournalError) -> [KeyRequest] {
        try await commit { database in
            let freed = try database.rows(
                """
                SELECT id, destination, key, ifnull(mark, 1) > 0 AND address = \(KeyTriggers.address(of: "fleet_key"))
                FROM fleet_key INDEXED BY fleet_key_freed WHERE freed > 0 AND freed = 1 ORDER BY id LIMIT ?
                """, limit
            ) { (id: $0.integer(0), destination: $0.text(1) ?? "", key: $0.text(2) ?? "", isOurs: $0.bool(3)) }
            for one in freed {
                // Another delivery may have taken it since.
                if try Self.isTaken(one.key, one.destination, database) {
                    try database.change("UPDATE fleet_key SET freed = 0 WHERE id = ?", one.id)
                } else if one.isOurs {
                    try database.change("UPDATE fleet_key SET freed = 2 WHERE id = ?", one.id)
                } else {
                    try database.change("DELETE FROM fleet_key WHERE id = ?", one.id)
                }
            }
            return try database.rows(
                """
                SELECT destination, key, ref FROM fleet_key INDEXED BY fleet_key_freed
                WHERE freed > 0 AND freed = 2 ORDER BY id LIMIT ?
                """, limit
            ) { row in
                KeyRequest(
                    delivery: 0, destination: row.text(0) ?? "", key: row.text(1) ?? "", ref: row.integer(2))
            }
        }
    }

    /// Forgets keys that the fleet has back.
    package func keysReturned(_ keys: [KeyRequest]) async throws(JournalError) {
        try await commit { database in
            for key in keys {
                try database.change(
                    "DELETE FROM fleet_key WHERE destination = ? AND key = ? AND ref = ? AND freed = 2",
                    key.destination, key.key, key.ref)
            }
        }
    }
}

/// A row of `key_request`.
private struct WaitingKey {
    var delivery: Int64
    var destination: String
    var key: String
    var ref: Int64
    /// When its delivery is due once it has its key; `never` where it waits for others too.
    var nextAt: Int64
    var expiresAt: Int64?
    var refusals: Int
    var isNoted: Bool
    /// Its delivery as it is now; nil where it is gone.
    var state: DeliveryState?
    var currentKey: String?

    private static let question = """
        SELECT delivery_id, request.destination, request.key, ref, request.next_at, request.expires_at, refusals, is_noted,
            state, delivery.key
        FROM key_request AS request LEFT JOIN delivery ON delivery.id = delivery_id
        """

    private init(_ row: SQLRow) {
        (delivery, destination, key) = (row.integer(0), row.text(1) ?? "", row.text(2) ?? "")
        (ref, nextAt, expiresAt) = (row.integer(3), row.integer(4), row.optionalInteger(5))
        (refusals, isNoted) = (row.int(6), row.bool(7))
        (state, currentKey) = (row.text(8).flatMap(DeliveryState.init), row.text(9))
    }

    /// nil where the request ended, or is for another key by now.
    static func one(_ request: KeyRequest, _ database: Database) throws -> WaitingKey? {
        try database.row(
            "\(question) WHERE delivery_id = ? AND request.key = ? AND ref = ?", request.delivery, request.key,
            request.ref
        ) { WaitingKey($0) }
    }

    static func some(after delivery: Int64, limit: Int, _ database: Database) throws -> [WaitingKey] {
        try database.rows("\(question) WHERE delivery_id > ? ORDER BY delivery_id LIMIT ?", delivery, limit) {
            WaitingKey($0)
        }
    }

    var isOpen: Bool { state == .ready || state == .parked }
}

/// The effects of answers.
extension Journal {
    /// Others have a turn in between.
    private static let reviewedAtOnce = 1000

    /// Brings requests in line with the destinations, and with what happened to their deliveries while nobody held them.
    /// - Returns: where to continue; nil at the end.
    private static func review(
        after last: Int64, _ destinations: [String: String?], _ database: Database
    ) throws -> Int64? {
        let requests = try WaitingKey.some(after: last, limit: reviewedAtOnce, database)
        for request in requests {
            let prefix = destinations[request.destination]
            let isOwn = prefix.flatMap(\.self).map { request.key.utf8.starts(with: $0.utf8) } ?? false
            if !request.isOpen || request.currentKey == nil || prefix == nil || isOwn {
                if !isOwn {
                    try database.execute(
                        sql: KeyTriggers.remember(
                            "delivery_id = \(request.delivery)", isFree: request.state == nil ? "1" : "0"))
                }
                _ = try release(request, nil, database)
            } else if request.currentKey != request.key {
                try database.change("UPDATE delivery SET key = key WHERE id = ?", request.delivery)
            }
        }
        return requests.count == reviewedAtOnce ? requests.last?.delivery : nil
    }

    /// Has due deliveries without a key of the fleet wait for one.
    /// - Returns: where to continue; nil at the end.
    private static func hold(due destination: String, after last: Int64, _ database: Database) throws -> Int64? {
        let isAsked = try database.exists("SELECT 1 FROM sqlite_temp_master WHERE name = 'reserved_destination'")
        guard isAsked else { return nil }
        let due = try database.integers(
            """
            SELECT id FROM delivery INDEXED BY delivery_eldest
            WHERE destination = ? AND id > ? AND state = 'ready' AND next_at < \(never)
                AND \(DeliveryRow.isNotBeingWorkedOn)
            ORDER BY id LIMIT \(reviewedAtOnce)
            """, destination, last)
        let list = "[\(due.map(String.init).joined(separator: ","))]"
        // The triggers do the rest.
        try database.change(
            """
            UPDATE delivery SET next_at = next_at
            WHERE id IN (SELECT value FROM json_each(?)) AND (\(KeyTriggers.wants("delivery"))
                OR EXISTS (SELECT 1 FROM key_request WHERE delivery_id = delivery.id))
            """, list)
        return due.count == reviewedAtOnce ? due.last : nil
    }

    /// - Parameters:
    ///   - mark: 0 for a key that needs no grant.
    ///   - isFree: whether no delivery waits for it.
    private static func note(_ request: KeyRequest, mark: Int64, isFree: Bool, _ database: Database) throws {
        try database.change(
            """
            INSERT INTO fleet_key (destination, address, key, ref, mark, freed)
            VALUES (?1, ifnull((SELECT address FROM destination WHERE name = ?1), ''), ?2, ?3, ?4, ?5)
            ON CONFLICT (destination, key, address) DO UPDATE SET ref = ?3, mark = ?4, freed = max(freed, ?5)
            """, request.destination, request.key, request.ref, mark, isFree)
    }

    /// Ends a request: its delivery is due, unless it waits for others too. Its time to live begins only now.
    /// - Returns: whether it is due.
    private static func release(_ request: WaitingKey, _ now: WallTime?, _ database: Database) throws -> Bool {
        try database.change("DELETE FROM key_request WHERE delivery_id = ?", request.delivery)
        let time = now.map { request.nextAt < $0.milliseconds ? $0.milliseconds : request.nextAt } ?? request.nextAt
        try database.change(
            """
            UPDATE delivery SET next_at = ?1, code = iif(?2, NULL, code), reason = iif(?2, NULL, reason),
                expires_at = CASE WHEN ?1 >= \(never) OR ?3 IS NULL THEN NULL WHEN ?3 < 0 THEN ?3 ELSE
                    (SELECT json_extract(CAST(policy AS TEXT), '$.retry.expire_ms') FROM file WHERE id = file_id)
                        + ifnull((SELECT uptime FROM destination WHERE name = delivery.destination), 0) END
            WHERE id = ?4 AND state IN ('ready', 'parked')
            """, time, request.isNoted, request.expiresAt, request.delivery)
        return request.isOpen && request.nextAt < never
    }

    /// Another agent has the key: nobody here gets it, and the delivery asks for the next free name.
    /// - Returns: false where the delivery has ended.
    private static func refuse(_ request: WaitingKey, _ database: Database) throws -> Bool {
        guard request.isOpen else { return false }
        try database.change(
            "INSERT OR IGNORE INTO spent_key (destination, key) VALUES (?, ?)", request.destination, request.key)
        let refusals = request.refusals + 1
        let key = try nextKey(after: request.key, refusals, request.destination, database)
        try rename(request, to: key, database)
        try database.change("UPDATE key_request SET refusals = ? WHERE delivery_id = ?", refusals, request.delivery)
        // It was never this agent's.
        try database.change(
            "DELETE FROM fleet_key WHERE destination = ? AND key = ? AND mark IS NULL", request.destination, request.key
        )
        return true
    }

    /// Its followers get the tag too: their names are as little known to the fleet.
    /// - Returns: whether it is due.
    private static func tag(
        _ request: WaitingKey, with tag: String, _ now: WallTime, _ database: Database
    ) throws -> Bool {
        guard request.isOpen else { return false }
        try giveTag(tag, to: request.delivery, request.key, request.destination, database)
        let isDue = try release(request, now, database)
        for follower in try followers(of: request.delivery, database) {
            let key = follower.key ?? ""
            let isTagged = try database.exists(
                "SELECT 1 FROM fleet_key WHERE destination = ? AND key = ? AND mark = 0", follower.destination, key)
            if isTagged { continue }
            let own = try WaitingKey.some(after: follower.id - 1, limit: 1, database).first
            try giveTag(tag, to: follower.id, key, follower.destination, database)
            if let own, own.delivery == follower.id { _ = try release(own, now, database) }
        }
        return isDue
    }

    private static func giveTag(
        _ tag: String, to delivery: Int64, _ key: String, _ destination: String, _ database: Database
    ) throws {
        let plain = try unnumbered(key, destination, database)
        let tagged = try freeKey(KeyTemplate.tagged(plain, tag: tag), destination, database)
        // Before the delivery has it, so that nothing asks for it.
        let own = KeyRequest(delivery: delivery, destination: destination, key: tagged, ref: delivery)
        try note(own, mark: 0, isFree: false, database)
        try setKey(tagged, of: delivery, database)
    }

    private static func show(
        _ code: ErrorCode, _ reason: String, of request: WaitingKey, _ database: Database
    ) throws {
        try database.change(
            "UPDATE delivery SET code = ?1, reason = ?2 WHERE id = ?3 AND (code IS NOT ?1 OR reason IS NOT ?2)", code,
            reason, request.delivery)
        try database.change(
            "UPDATE key_request SET is_noted = 1 WHERE delivery_id = ? AND is_noted = 0", request.delivery)
    }

    // MARK: - Names

    /// The next free name. From the third refusal on further ahead, by doubling: the ten thousandth equal name of a
    /// fleet needs some fifteen questions.
    private static func nextKey(
        after key: String, _ refusals: Int, _ destination: String, _ database: Database
    ) throws -> String {
        let plain = try unnumbered(key, destination, database)
        guard refusals >= 3 else { return try freeKey(plain, destination, database) }
        var number = 1 << min(refusals, 30)
        while true {
            let ahead = KeyTemplate.disambiguated(plain, number: number)
            if try !isTaken(ahead, destination, database) { return ahead }
            number *= 2
        }
    }

    /// The name that `freeKey` gave a number to, or `key` itself.
    static func unnumbered(_ key: String, _ destination: String, _ database: Database) throws -> String {
        guard let mark = key.lastIndex(of: "_") else { return key }
        let tail = key[key.index(after: mark)...]
        let digits = tail.prefix { $0.isASCII && $0.isNumber }
        let plain = String(key[..<mark] + tail.dropFirst(digits.count))
        guard let number = Int(digits), number > 1, KeyTemplate.disambiguated(plain, number: number) == key,
            try isTaken(plain, destination, database)
        else { return key }
        return plain
    }

    /// Gives a delivery another key, under which nothing can be visible. Companions keep their places beside their file,
    /// and registrations its name.
    private static func rename(_ request: WaitingKey, to key: String, _ database: Database) throws {
        try rename(request.delivery, from: request.key, to: key, database)
    }

    static func rename(_ id: Int64, from old: String, to key: String, _ database: Database) throws {
        try setKey(key, of: id, database)
        let leader = try delivery(id, database)
        for follower in try followers(of: id, database) {
            let former = follower.key ?? ""
            let wanted =
                isRegistration(follower, of: leader)
                ? key : beside(key, instead: old, try unnumbered(former, follower.destination, database))
            guard let wanted, wanted != former else { continue }
            let free = try freeKey(wanted, follower.destination, database)
            try setKey(free, of: follower.id, database)
        }
    }

    private static func setKey(_ key: String, of delivery: Int64, _ database: Database) throws {
        try database.change("UPDATE delivery SET key = ?, interrupted = 0, waits = 0 WHERE id = ?", key, delivery)
        try database.change("DELETE FROM checkpoint WHERE delivery_id = ?", delivery)
    }

    /// The open deliveries behind one that have keys of their own.
    private static func followers(of delivery: Int64, _ database: Database) throws -> [DeliveryRow] {
        try DeliveryRow.all(
            database, "WHERE after_id = ? AND state IN ('ready', 'parked') AND key IS NOT NULL ORDER BY id", delivery)
    }

    /// A companion's key beside `key`, from its key beside `old`; nil where it is not beside that.
    private static func beside(_ key: String, instead old: String, _ companion: String) -> String? {
        if companion.hasPrefix(old) { return key + companion.dropFirst(old.count) }
        let (stem, oldStem) = (stem(of: key), stem(of: old))
        return companion.hasPrefix(oldStem + ".") ? stem + companion.dropFirst(oldStem.count) : nil
    }

    private static func stem(of key: String) -> String {
        let start = key.lastIndex(of: "/").map { key.index(after: $0) } ?? key.startIndex
        return key[start...].lastIndex(of: ".").map { String(key[..<$0]) } ?? key
    }
}
