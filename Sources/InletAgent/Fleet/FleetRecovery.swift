internal import InletCore
internal import InletFleet
internal import InletJournal
internal import InletLinux

/// Reports again what this agent was granted, after the database lost commits: until all agents have, the fleet gives
/// nothing away.
struct FleetRecovery: Sendable {
    let member: FleetMember
    let receipts: ReceiptPublisher

    private static let batch = 1000

    func run() async {
        await member.signals[.fleet(.recovery)].loop {
            do {
                try await pass()
                return nil
            } catch let error as FleetError {
                if error.code == .fault || error.code == .argument {
                    member.log.emit(.agentError(reason: "fleet: the report after a loss failed: \(error)"))
                }
                return .now.advanced(by: FleetMember.pause)
            } catch {
                // The services that use the journal all the time report its failure.
                return .now.advanced(by: FleetMember.pause)
            }
        }
    }

    private func pass() async throws {
        let standing = member.standing
        guard standing.owesReport else {
            if member.grants, member.beginsPrefixes() {
                try await claimPrefixes(member.places.compactMapValues(\.share.prefix))
            }
            return
        }
        let keys = try await reportKeys(after: standing.reportFrom)
        // Keys below them were never asked for: nobody may get those once the fleet is open.
        let own = try await member.journal.ownPrefixes()
        try await claimPrefixes(member.places.compactMapValues { own[$0.address] })
        try await receipts.beginAgain(after: standing.receipts)
        let seen = try await member.journal.fleetSeen()
        try await member.link.againDone(standing, seen: seen, roster: try await member.journal.fleetRoster())
        member.log.emit(.fleetReported(keys: keys, files: 0))
    }

    /// - Returns: how many keys were reported.
    private func reportKeys(after mark: Int64) async throws -> Int {
        var (count, last) = (0, Int64(0))
        while true {
            let keys = try await member.journal.grantedKeys(after: mark, limit: Self.batch, from: last)
            for (place, group) in Dictionary(grouping: keys, by: { place(of: $0) }) {
                guard let place else { continue }
                let number = try await member.link.destination(
                    address: place.address, type: place.type, label: place.name, creates: false)
                let clashes = try await member.link.againKeys(number, group.map(\.key), group.map(\.ref))
                for index in clashes where group.indices.contains(index) {
                    let key = group[index].key
                    member.log.emit(.fleetKeyClash(destination: place.name, key: key, owner: "another agent"))
                    // At an address of before nothing waits under it.
                    guard place.isCurrent else { continue }
                    _ = try await member.journal.loseKey(key, at: place.name, because: Self.clash, now: .now)
                }
                count += group.count
            }
            guard keys.count == Self.batch, let end = keys.last else { return count }
            last = end.id
        }
    }

    /// Where a key was granted.
    private struct KeyPlace: Hashable {
        var name: String
        var address: String
        var type: String
        /// Whether the destination still has this address.
        var isCurrent: Bool
    }

    /// nil for a destination that the configuration has no more, under no name: its type is not known.
    private func place(of key: GrantedKey) -> KeyPlace? {
        let places = member.places
        let current = places[key.destination]
        guard let address = key.address ?? current?.address,
            let type = places.values.first(where: { $0.address == address })?.type ?? current?.type
        else { return nil }
        return KeyPlace(
            name: key.destination, address: address, type: type, isCurrent: address == current?.address)
    }

    private static let clash = "the fleet gave its key to another agent after commits were lost"

    // MARK: - Prefixes

    /// Makes prefixes this agent's own: those of the configuration once a session, and those that it had after a loss.
    /// Until that is known their keys are asked for like others.
    ///
    /// - Parameter prefixes: by the names of their destinations.
    private func claimPrefixes(_ prefixes: [String: String]) async throws {
        do {
            var known = try await member.journal.ownPrefixes()
            for (name, prefix) in prefixes {
                guard let place = member.places[name] else { continue }
                let other = try await member.link.ownPrefix(try await member.number(of: name), prefix)
                if let other {
                    known[place.address] = nil
                    try await member.journal.keepOwnPrefix(place.address, nil)
                    member.log.emit(
                        .agentError(
                            reason: "destinations.\(name).prefix: \(prefix) overlaps with a prefix of "
                                + "\(DisplayText.escape(other)); give this agent another one"))
                } else if known[place.address] != prefix {
                    known[place.address] = prefix
                    try await member.journal.keepOwnPrefix(place.address, prefix)
                }
            }
            try await member.journal.reserveKeys(at: member.reservations(known))
        } catch {
            member.endsPrefixes()
            throw error
        }
        // Files below a prefix are free now.
        member.signals.raiseDeliverable()
    }
}
