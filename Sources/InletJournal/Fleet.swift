internal import GRDB
package import InletCore
internal import Synchronization

/// The highest mark that was heard of the fleet, and when it was written last. It only ever grows, so a late one costs
/// nothing: most come with commits that happen anyway.
struct HeardMark: Sendable {
    private(set) var mark: Int64 = 0
    private var writtenAt: ContinuousClock.Instant?
    /// Whether receipts are kept for the fleet from now on.
    var keepsReceipts = false

    /// - Returns: whether to write the mark now.
    mutating func raise(to mark: Int64, at now: ContinuousClock.Instant) -> Bool {
        guard mark > self.mark else { return false }
        self.mark = mark
        if let writtenAt, now - writtenAt < .seconds(1) { return false }
        writtenAt = now
        return true
    }

    mutating func reset() { (mark, writtenAt) = (0, nil) }
}

/// An agent's memory of its fleet. Nothing is written here without `fleet:`.
extension Journal: FleetMemory {
    /// - Throws: when the token was sealed with another key than this state directory's.
    package func fleetIdentity() async throws(JournalError) -> FleetIdentity? {
        let notes = try await read { database in
            try database.row("SELECT identity, token FROM fleet WHERE identity IS NOT NULL") {
                ($0.bytes(0), $0.bytes(1))
            }
        }
        guard let notes else { return nil }
        do {
            var identity: FleetIdentity = try JSON.decode(notes.0)
            let sealed: ProofSecrets = try JSON.decode(notes.1)
            guard let token = seal.opened(sealed)?.reveal(Self.tokenName), let bytes = Self.bytes(token) else {
                throw JournalError.failed(
                    path,
                    "the fleet token of \(DisplayText.escape(identity.name)) cannot be opened: its key is lost. "
                        + "Run 'inlet fleet rejoin'")
            }
            identity.token = bytes
            return identity
        } catch {
            throw .from(error, at: path)
        }
    }

    /// Replaces the identity.
    ///
    /// - Parameter isFresh: it is another one than before. Hellos and marks begin anew, and keys of the former one need no
    ///   report: they stay its own. Keys of another fleet count for nothing.
    package func keepFleetIdentity(_ identity: FleetIdentity?, isFresh: Bool) async throws(JournalError) {
        let (note, token): ([UInt8]?, [UInt8]?)
        do {
            (note, token) = try identity.map { try notes(of: $0) } ?? (nil, nil)
        } catch {
            throw .from(error, at: path)
        }
        try await commit { database in
            let former = try database.row("SELECT fleet FROM fleet") { $0.text(0) } ?? nil
            try database.change(
                """
                INSERT INTO fleet (id, identity, token, fleet) VALUES (1, ?1, ?2, ?3)
                ON CONFLICT (id) DO UPDATE SET identity = ?1, token = ?2, fleet = ifnull(?3, fleet)
                """, note, token, identity?.fleet)
            guard isFresh else { return }
            try database.change("UPDATE fleet SET hello = 0, seen = 0, roster = NULL, is_draining = 0")
            try database.change("UPDATE fleet_key SET mark = 0 WHERE mark > 0")
            try database.change("UPDATE place_file SET mark = 0 WHERE mark > 0")
            try database.change("DELETE FROM own_prefix")
            try database.change("UPDATE place SET told = 0")
            guard let former, let identity, identity.fleet != former else { return }
            try database.change("DELETE FROM fleet_key")
            try database.change("DELETE FROM place_file")
        }
        if isFresh { heard.withLock { $0.reset() } }
    }

    /// The identity without its token, and the sealed token.
    private func notes(of identity: FleetIdentity) throws -> ([UInt8], [UInt8]) {
        let secret = ProofSecrets([Self.tokenName: identity.token.map { Self.hex($0) }.joined()])
        var plain = identity
        plain.token = []
        return (try JSON.encode(plain), try JSON.encode(seal.closed(secret)))
    }

    private static let tokenName = "fleet_token"

    private static func hex(_ byte: UInt8) -> String { (byte < 16 ? "0" : "") + String(byte, radix: 16) }

    private static func bytes(_ hex: String) -> [UInt8]? {
        let digits = hex.compactMap(\.hexDigitValue)
        guard digits.count == hex.count, digits.count.isMultiple(of: 2) else { return nil }
        return stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
    }

    // MARK: - Hellos and marks

    package func nextHello() async throws(JournalError) -> Int64 {
        try await commit { database in
            try self.keepMark(database)
            return try database.integer(
                """
                INSERT INTO fleet (id, hello) VALUES (1, 1) ON CONFLICT (id) DO UPDATE SET hello = hello + 1
                RETURNING hello
                """) ?? 0
        }
    }

    package func fleetSeen() async throws(JournalError) -> Int64 {
        let written = try await read { try $0.integer("SELECT seen FROM fleet") } ?? 0
        return max(written, heard.withLock(\.mark))
    }

    /// Written with the next answer about keys, or at most once a second.
    package func saw(mark: Int64) async throws(JournalError) {
        guard heard.withLock({ $0.raise(to: mark, at: .now) }) else { return }
        try await commit { try self.keepMark($0) }
    }

    /// Writes the highest mark, in a transaction of others.
    func keepMark(_ database: Database) throws {
        try database.change("UPDATE fleet SET seen = ?1 WHERE seen < ?1", heard.withLock(\.mark))
    }

    // MARK: - What the fleet has said

    /// The folders that this agent has for itself, by the addresses of their destinations.
    package func ownPrefixes() async throws(JournalError) -> [String: String] {
        try await read { database in
            Dictionary(
                uniqueKeysWithValues: try database.rows("SELECT address, prefix FROM own_prefix") {
                    ($0.text(0) ?? "", $0.text(1) ?? "")
                })
        }
    }

    /// - Parameter prefix: nil forgets it.
    package func keepOwnPrefix(_ address: String, _ prefix: String?) async throws(JournalError) {
        guard let prefix else {
            try await change("DELETE FROM own_prefix WHERE address = ?", address)
            return
        }
        try await change("INSERT OR REPLACE INTO own_prefix (address, prefix) VALUES (?, ?)", address, prefix)
    }

    /// Whether the fleet had this agent as draining when it was asked last.
    package func fleetIsDraining() async throws(JournalError) -> Bool {
        try await read { try $0.integer("SELECT is_draining FROM fleet") } == 1
    }

    package func keepFleetDraining(_ isDraining: Bool) async throws(JournalError) {
        try await change("UPDATE fleet SET is_draining = ?1 WHERE is_draining <> ?1", isDraining)
    }

    /// Whether a command of the fleet was carried out before.
    package func knowsFleetCommand(_ id: String) async throws(JournalError) -> Bool {
        try await read { try $0.exists("SELECT 1 FROM fleet_command WHERE command = ?", id) }
    }

    /// Records a command of the fleet that was carried out.
    package func keepFleetCommand(_ id: String) async throws(JournalError) {
        try await commit { database in
            guard try database.change("INSERT OR IGNORE INTO fleet_command (command) VALUES (?)", id) > 0 else {
                return
            }
            let last = database.lastInsertedRowID
            try database.change("DELETE FROM fleet_command WHERE id <= ?", last - Self.rememberedCommands)
        }
    }

    /// Far more than a fleet keeps open.
    private static let rememberedCommands: Int64 = 10_000

    /// The agents that the fleet had when it was asked last.
    package func fleetRoster() async throws(JournalError) -> [(name: String, tag: String, journal: String)] {
        let note = try await read { try $0.row("SELECT roster FROM fleet") { $0.optionalBytes(0) } } ?? nil
        let agents: [[String]] = JSON.note(note) ?? []
        return agents.filter { $0.count == 3 }.map { ($0[0], $0[1], $0[2]) }
    }

    package func keepFleetRoster(
        _ agents: [(name: String, tag: String, journal: String)]
    ) async throws(JournalError) {
        let note: [UInt8]
        do {
            note = try JSON.encode(agents.map { [$0.name, $0.tag, $0.journal] })
        } catch {
            throw .from(error, at: path)
        }
        try await change("UPDATE fleet SET roster = ?1 WHERE roster IS NOT ?1", note)
    }
}
