package import InletCore

/// The functions of the schema that stations call. Each first looks at the session's own deadline (`call`).
extension FleetLink {
    // MARK: - Destinations and keys

    /// The address of a destination as the fleet has it.
    ///
    /// - Parameter address: normalised, without secrets: agents that mean the same place say the same.
    package static func hash(of address: String, type: String) -> [UInt8] {
        SHA256.bytes(of: "\(type)\n\(address)".utf8)
    }

    /// The fleet's number of a destination, for as long as the session lasts.
    package func destination(address: String, type: String, label: String) async throws(FleetError) -> Int32 {
        let hash = Self.hash(of: address, type: type)
        return try await destinationNumber(of: hash) { () throws(FleetError) in
            // false: no agent keeps whether the store refuses to overwrite.
            try await call(.destination, [.bytes(hash), .text(type), .text(label), .boolean(false)]).answer.number(0)
        }
    }

    /// Claims a folder of a destination. - Returns: the name of the agent that has it, or a part of it; nil: it is ours.
    package func ownPrefix(_ destination: Int32, _ prefix: String) async throws(FleetError) -> String? {
        try await call(.ownPrefix, [.integer(Int64(destination)), .text(prefix)]).answer.optionalText(0).map(Self.name)
    }

    /// At most 1,000 keys. Asked again with the same refs it answers the same.
    ///
    /// - Parameter place: the share whose files get them, which this agent must hold; nil: they are its own files'.
    package func reserve(
        _ destination: Int32, _ keys: [String], _ refs: [Int64], place: Int32? = nil
    ) async throws(FleetError) -> (mark: Int64, granted: [Bool]) {
        let (answer, mark) = try await marked(
            .reserve, [.integer(Int64(destination)), .texts(keys), .integers(refs), Self.number(place)])
        let granted = answer.rows.booleans(0, 1)
        guard granted.count == keys.count else { throw answer.unfit("an answer for each key", 1) }
        return (mark, granted)
    }

    /// Gives back keys under which nothing was ever sent. - Returns: the mark.
    @discardableResult
    package func unreserve(
        _ destination: Int32, _ keys: [String], _ refs: [Int64]
    ) async throws(FleetError) -> Int64 {
        try await marked(.unreserve, [.integer(Int64(destination)), .texts(keys), .integers(refs)]).mark
    }

    // MARK: - Contents and limits

    package func content(
        _ destination: Int32, _ content: FleetContent
    ) async throws(FleetError) -> FleetContentStanding {
        let answer = try await marked(.content, Self.values(destination, content)).answer
        let by = Self.name(try answer.text(2))
        switch try answer.text(1) {
        case "own": return .own
        case "there": return .there(key: try answer.text(3), url: answer.optionalText(4), by: by)
        default: return .wait(by: by)
        }
    }

    /// - Parameter key: nil when it was not brought: the next agent may.
    package func contentThere(
        _ destination: Int32, _ content: FleetContent, key: String?, url: String?
    ) async throws(FleetError) {
        _ = try await marked(.contentThere, Self.values(destination, content) + [Self.text(key), Self.text(url)])
    }

    /// Sets the limits of a destination where there are none. - Returns: the agent that has set other ones.
    package func limit(
        _ destination: Int32, bandwidth: Int64?, slots: Int?
    ) async throws(FleetError) -> String? {
        let values: [PostgresValue] = [
            .integer(Int64(destination)), bandwidth.map { .integer($0) } ?? .null,
            slots.map { .integer(Int64($0)) } ?? .null,
        ]
        return try await call(.limit, values).answer.optionalText(0).map(Self.name)
    }

    /// Asks for a part of a destination's limits; `rate` and `slots` 0 give it back. - Returns: nil without a limit.
    package func share(
        _ destination: Int32, rate: Int64, slots: Int, using: Int
    ) async throws(FleetError) -> FleetShare? {
        let values: [PostgresValue] = [
            .integer(Int64(destination)), .integer(rate), .integer(Int64(slots)), .integer(Int64(using)),
        ]
        let (answer, asked) = try await call(.share, values)
        guard answer.rows.count > 0 else { return nil }
        let (rate, slots) = (answer.rows.integer(0, 0), answer.rows.integer(0, 1))
        guard rate != nil || slots != nil else { return nil }
        let left = try answer.milliseconds(2)
        return FleetShare(
            rate: rate, slots: slots.map { Int($0) }, until: asked + left - max(left / 10, .milliseconds(300)))
    }

    // MARK: - Reports, receipts, orders

    /// Publishes the state of this agent: JSON of at most 64 KiB, without secrets.
    package func report(_ body: [UInt8]) async throws(FleetError) {
        _ = try await call(.report, [Self.json(body)])
    }

    /// At most 1,000, in the journal's order. - Returns: the last one that the fleet has.
    @discardableResult
    package func receipts(_ rows: [FleetReceipt]) async throws(FleetError) -> Int64 {
        let last = try await call(.receipts, [.text(Self.text(rows))]).answer.integer(0)
        receiptsWereTaken(to: last)
        return last
    }

    package func commands() async throws(FleetError) -> [FleetCommand] {
        let rows = try await call(.commands, []).answer.rows
        commandsWereAsked()
        return (0..<rows.count).compactMap { row in
            guard let id = rows[row, 0], let verb = rows[row, 1] else { return nil }
            let args = JSON.object(rows[row, 2].map { Array($0.utf8) }) ?? [:]
            return FleetCommand(id: id, verb: verb, args: args, askedBy: Self.name(rows[row, 3] ?? ""))
        }
    }

    /// - Parameter done: false: it was refused, and `result` says why.
    package func commandEnded(_ id: String, done: Bool, result: [UInt8]?) async throws(FleetError) {
        _ = try await call(.commandEnded, [.text(id), .boolean(done), result.map(Self.json) ?? .null])
    }

    /// Hourly, by any agent.
    package func upkeep() async throws(FleetError) { _ = try await call(.upkeep, []) }

    // MARK: - Reports after a restore

    /// At most 1,000 keys that this agent was given. - Returns: the places in `keys` of those that belong to another now.
    ///
    /// - Parameter place: the share whose files have them.
    package func againKeys(
        _ destination: Int32, _ keys: [String], _ refs: [Int64], place: Int32? = nil
    ) async throws(FleetError) -> [Int] {
        let rows = try await call(
            .againKeys, [.integer(Int64(destination)), .texts(keys), .integers(refs), Self.number(place)]
        ).answer.rows
        return (0..<rows.count).compactMap { rows.integer($0, 0).map { Int($0) - 1 } }.filter(keys.indices.contains)
    }

    /// All is reported.
    ///
    /// - Parameters:
    ///   - begun: the standing when the report began. In a later session the database may have lost more.
    ///   - seen: the highest mark in the journal.
    ///   - roster: the agents that this one knows of.
    package func againDone(
        _ begun: FleetStanding, seen: Int64, roster: [(name: String, tag: String, journal: String)]
    ) async throws(FleetError) {
        let agents = roster.map { ["name": $0.name, "tag": $0.tag, "journal": $0.journal] }
        let values: [PostgresValue] = [.integer(max(seen, standing.seen)), .text(Self.text(agents))]
        let session = begun.session ?? 0
        let answer = try await marked(.againDone, values, in: session).answer
        reported(try answer.phase(1), epoch: begun.epoch, session: session)
    }

    // MARK: - The fleet's view

    /// The fleet, its agents and places, as JSON. Its text comes from other agents.
    package func overview() async throws(FleetError) -> [UInt8] {
        let bytes = Array(try await call(.overview, []).answer.text(0).utf8)
        waits(for: (JSON.value(bytes)?["status"]?["waiting_for"]?.array ?? []).compactMap { $0.string.map(Self.name) })
        return bytes
    }

    /// Receipts by name, beginning of a key, or SHA-256.
    package func search(_ text: String, limit: Int) async throws(FleetError) -> [FleetReceiptRow] {
        let rows = try await call(.search, [.text(text), .integer(Int64(limit))]).answer.rows
        // A row that another agent has made unreadable is left out.
        return (0..<rows.count).compactMap { JSON.note(rows[$0, 0].map { Array($0.utf8) }) }
    }

    // MARK: - Values

    private static func values(_ destination: Int32, _ content: FleetContent) -> [PostgresValue] {
        [
            .integer(Int64(destination)), .bytes(content.digest), .integer(content.size), .integer(content.purpose),
            .integer(content.ref),
        ]
    }

    private static func number(_ place: Int32?) -> PostgresValue { place.map { .integer(Int64($0)) } ?? .null }

    private static func text(_ text: String?) -> PostgresValue { text.map { .text($0) } ?? .null }

    private static func json(_ bytes: [UInt8]) -> PostgresValue { .text(String(decoding: bytes, as: UTF8.self)) }

    /// The name of another agent, or of a role: text from outside.
    static func name(_ text: String) -> String { String(DisplayText.escape(text.utf8).prefix(128)) }
}
