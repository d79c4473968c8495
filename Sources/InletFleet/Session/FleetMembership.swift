package import InletCore

/// Becomes and ends being a member of a fleet, for commands and for an agent's first start.
package enum FleetMembership {
    private static let patience = Duration.seconds(10)
    private static let mostTags = 8

    /// Joins, or joins again with the same journal: that makes a new token, and ends those of all copies. Blocks.
    ///
    /// - Parameters:
    ///   - name: unique in the fleet.
    ///   - journal: the journal's UUID; after a lost answer it must be the same.
    ///   - seen: the highest mark that the journal has heard; above 0 for an agent that a restored fleet forgot.
    ///   - tag: the one that the journal had; nil for a new agent.
    package static func join(
        _ address: PostgresAddress, secret: [UInt8], name: String, journal: String, seen: Int64,
        about: [String: String], tag: String? = nil
    ) throws(FleetError) -> FleetIdentity {
        var connection = try PostgresConnection(address, application: "inlet")
        let token = [UInt8].unforeseeable(32)
        var attempt = 0
        while true {
            let tag = attempt == 0 && tag != nil ? tag : Self.tag(of: journal, attempt)
            let values: [PostgresValue] = [
                .bytes(secret), .text(name), .text(tag ?? ""), .text(journal), .bytes(token), .integer(seen),
                .text(FleetLink.text(about)),
            ]
            do throws(FleetError) {
                let rows = try connection.run(FleetFunction.join.statement, values, within: patience)
                let answer = FleetAnswer(rows: rows, function: .join)
                return FleetIdentity(
                    agent: try answer.number(0), name: name, tag: try answer.text(2), token: token, journal: journal,
                    fleet: try answer.text(1))
            } catch  where error.code == .argument && attempt < mostTags {
                // Another agent has the tag; or the name, and then the last attempt says so.
                attempt += 1
            } catch  where error.code == .unknownAgent {
                throw FleetError(.unknownAgent, "the join secret is wrong or closed", function: "v1_join")
            }
        }
    }

    /// After a restored journal, or a restored fleet that forgot this agent. Keys of before stay taken. Blocks.
    package static func rejoin(
        _ address: PostgresAddress, _ former: FleetIdentity, secret: [UInt8], seen: Int64, about: [String: String]
    ) throws(FleetError) -> FleetIdentity {
        try join(
            address, secret: secret, name: former.name, journal: former.journal, seen: seen, about: about,
            tag: former.tag)
    }

    /// For a copy of another agent: a member of its own under another name, which has nothing yet. Blocks.
    ///
    /// The memory keeps the identity with `isFresh`.
    package static func rejoinAsNew(
        _ address: PostgresAddress, secret: [UInt8], name: String, journal: String, about: [String: String]
    ) throws(FleetError) -> FleetIdentity {
        try join(address, secret: secret, name: name, journal: journal, seen: 0, about: about)
    }

    /// Retires the agent: its token is dead, its keys stay taken. Blocks.
    package static func leave(_ address: PostgresAddress, _ identity: FleetIdentity) throws(FleetError) {
        var connection = try PostgresConnection(address, application: "inlet")
        _ = try connection.run(
            FleetFunction.leave.statement, [.integer(Int64(identity.agent)), .bytes(identity.token)], within: patience)
    }

    /// Six letters, the same for one journal: a join whose answer was lost is repeated with them.
    static func tag(of journal: String, _ attempt: Int) -> String {
        let letters = Array("abcdefghijklmnopqrstuvwxyz234567")
        let hash = SHA256.bytes(of: "\(journal)\n\(attempt)".utf8)
        return String(hash.prefix(6).map { letters[Int($0 & 31)] })
    }
}
