internal import InletCore
internal import InletFleet
internal import InletJournal
internal import InletLinux

/// Reports again what this agent was granted, after the database lost commits: until all agents have, the fleet gives
/// nothing away.
struct FleetRecovery: Sendable {
    let member: FleetMember
    let receipts: ReceiptPublisher

    static let batch = 1000

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
        guard standing.owesReport else { return try await claimPrefixes() }
        let keys = try await reportKeys(after: standing.reportFrom)
        let files = try await reportPlaces(after: standing.reportFrom)
        // Before the fleet is open, so that nobody is given a key below them.
        try await claimPrefixes(isAgain: true)
        try await receipts.beginAgain(after: standing.receipts)
        let seen = try await member.journal.fleetSeen()
        try await member.link.againDone(standing, seen: seen, roster: try await member.journal.fleetRoster())
        member.log.emit(.fleetReported(keys: keys, files: files))
    }

    /// A key was given at an address, so it is reported there, whatever its destination is called now.
    ///
    /// - Returns: how many keys were reported.
    private func reportKeys(after mark: Int64) async throws -> Int {
        var (count, unknown, last) = (0, 0, Int64(0))
        while true {
            let keys = try await member.journal.grantedKeys(after: mark, limit: Self.batch, from: last)
            for (name, group) in Dictionary(grouping: keys, by: member.destination(of:)) {
                if let name {
                    try await report(group, at: name)
                    count += group.count
                } else {
                    unknown += group.count
                }
            }
            guard keys.count == Self.batch, let end = keys.last else { break }
            last = end.id
        }
        if unknown > 0 { member.log.emit(.agentError(reason: Self.unreported(unknown))) }
        return count
    }

    private func report(_ keys: [GrantedKey], at name: String) async throws {
        let number = try await member.number(of: name)
        let clashes = try await member.link.againKeys(number, keys.map(\.key), keys.map(\.ref))
        for key in clashes.filter(keys.indices.contains).map({ keys[$0] }) {
            member.log.emit(.fleetKeyClash(destination: name, key: key.key, owner: "another agent"))
            // A destination that has moved since asks for its keys anew.
            if let now = member.places[key.destination], key.address ?? now.address != now.address { continue }
            _ = try await member.journal.loseKey(key.key, at: key.destination, because: Self.clash, now: .now)
        }
    }

    private static func unreported(_ count: Int) -> String {
        "fleet: \(count.counted("key was", "keys were")) not reported after the loss, because their destination left the "
            + "configuration: others may get them; put it back, and run 'inlet fleet restored'"
    }

    private static let clash = "the fleet gave its key to another agent after commits were lost"

    // MARK: - Prefixes

    /// Makes the prefixes of the configuration this agent's own, once a session. Until that is known their keys are
    /// asked for like others.
    ///
    /// - Parameter isAgain: those that were its own before the fleet lost commits.
    private func claimPrefixes(isAgain: Bool = false) async throws {
        guard isAgain || member.grants && member.beginsPrefixes() else { return }
        do {
            let before = try await member.journal.ownPrefixes()
            var known = before
            for (name, place) in member.places {
                guard let prefix = isAgain ? before[place.address] : place.share.prefix else { continue }
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
            // Files below a new prefix are free now.
            if try await member.reserveKeys(besides: known) { member.signals.raiseDeliverable() }
        } catch {
            member.endsPrefixes()
            throw error
        }
    }
}
